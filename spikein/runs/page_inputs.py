"""The inputs of a run's page, collected from its graph and its artifacts.

`analysis.page` determines the page's text and knows neither experiment nor graph: this module
passes folders, tables and settings, and writes no text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa

from analysis.findings import read_table
from analysis.page.inputs import (
    ArmSettings,
    DetectorWork,
    EvidenceStep,
    ModelStream,
    NamedArtifact,
    PageInputs,
    StepRecord,
)
from analysis.page.streams import TrainedModel, audit_facts, copies_by_model
from analysis.page.unlearning.sections import UnlearningInputs
from analysis.results import Analysis, open_arms
from analysis.studies.claims import claims_digest
from analysis.task_accuracy.gain_step import BACKGROUND_LOSS
from detect.detector_settings import DetectorSetting, needs_of, with_grids
from detect.detector_table import DetectorFacts, describe_detector
from detect.evidence.needs import cost_text
from detect.scores_step import asked_settings, detectors_left_out
from detect.target_identity import COST_FILE, MeasuredCost, read_cost
from inject.examples.examples_step import read_pool_reports
from inject.overlap.filter import read_overlaps
from inject.plan.plan import read_plan
from inject.step import Step, library_versions
from inject.stream.exposures import copy_outcomes, read_exposures
from spikein.config.load import resolved_yaml
from spikein.config.schema import Experiment
from spikein.config.sweep import ArmExperiment
from spikein.executors import Outcome, RunReport
from spikein.pipeline.arm_nodes import detector_steps
from spikein.pipeline.build_graph import ExperimentGraph
from spikein.runs.claims import claims_design
from spikein.store.artifact import Artifact, verified
from spikein.store.environment import CODE, MACHINE, code_version

_LIBRARIES = ("torch", "transformers", "accelerate", "tokenizers", "numpy", "scikit-learn")


def page_inputs(
    experiment_graph: ExperimentGraph,
    report: RunReport,
    *,
    analysis: Analysis,
    trajectory: Mapping[str, pa.Table] | None,
    unlearning: UnlearningInputs | None,
    figure_links: bool,
    show_protected: bool,
) -> PageInputs:
    """Return the inputs of the page.

    Args:
        experiment_graph: the experiment and its steps.
        report: the outcomes of the steps.
        analysis: the results.
        trajectory: detection along training; None without scored checkpoints.
        unlearning: measures of unlearned models; None if there are none.
        figure_links: link the page to the files of its pictures, in the adjacent `figures/`.
        show_protected: show the texts of protected datasets in the page.
    """
    experiment = experiment_graph.experiment
    results = {
        name: report.artifact(step).path for name, step in experiment_graph.page_steps.items()
    }
    corpora = {node.corpus.digest: node.corpus for node in experiment_graph.nodes}
    overlaps = (read_overlaps(report.artifact(step).path) for step in corpora.values())
    several_seeds = len(experiment.seeds) > 1
    return PageInputs(
        name=experiment.name,
        experiment_yaml=resolved_yaml(experiment),
        datasets=[contaminant.name for contaminant in experiment.contaminants],
        seeds=experiment.seeds,
        swept=list(experiment_graph.nodes[0].arm.labels),
        claims=claims_digest(experiment.claims, claims_design(experiment_graph)) or "",
        settings=[arm_settings(node.arm) for node in experiment_graph.nodes],
        arms=open_arms(experiment_graph.results.settings["arms"], results),
        analysis=analysis,
        analysis_settings=experiment.analysis,
        audits=audit_facts(audited_models(experiment_graph, report), several_seeds=several_seeds),
        copies=copies_by_model(_trained_models(experiment_graph, report)),
        streams=list(_streams(experiment_graph, report)),
        backgrounds=[overlap for overlap in overlaps if overlap is not None],
        pools=_pools(experiment_graph, report),
        accuracy=_trained_table(experiment_graph, report, "accuracy"),
        background_loss=_trained_table(experiment_graph, report, BACKGROUND_LOSS),
        trajectory=trajectory,
        unlearning=unlearning,
        steps=[_step_record(outcome) for outcome in report.outcomes],
        detectors=_detector_facts(experiment_graph),
        left_out=list(
            dict.fromkeys(
                contaminant
                for node in experiment_graph.nodes
                for contaminant in detectors_left_out(node.sources)
            )
        ),
        detector_work=detector_work(experiment_graph, report),
        artifacts=_named_artifacts(experiment_graph, report),
        code=code_version(),
        libraries=library_versions(_LIBRARIES),
        notes=experiment_graph.notes,
        figure_links=figure_links,
        show_protected=show_protected,
    )


def _trained_table(
    experiment_graph: ExperimentGraph, report: RunReport, question: str
) -> pa.Table | None:
    """Return the rows of one question on the effects of training; None without any."""
    gain = experiment_graph.accuracy_gain
    if gain is None:
        return None
    table = read_table(report.artifact(gain).path, question)
    return table if len(table) else None


def arm_settings(arm: ArmExperiment) -> ArmSettings:
    """Return the settings of an arm that the page shows."""
    experiment = arm.experiment
    sections = {field.name for field in fields(ArmSettings)} & Experiment.model_fields.keys()
    own: dict[str, Any] = {
        "name": arm.name,
        "axes": arm.labels,
        "background": experiment.corpus.described(),
        "tokens": experiment.corpus.tokens,
    }
    return ArmSettings(**{**{name: getattr(experiment, name) for name in sections}, **own})


def audited_models(experiment_graph: ExperimentGraph, report: RunReport) -> list[TrainedModel]:
    """Return all models whose streams were audited, in the order of the run."""
    arms = {node.trained.digest: node.arm for node in experiment_graph.nodes}
    steps = (outcome.step for outcome in report.outcomes)
    audited = (step for step in steps if step.kind == "model" and "audit" in step.inputs)
    return [_trained_model(step, arms, report) for step in audited]


def _trained_models(experiment_graph: ExperimentGraph, report: RunReport) -> list[TrainedModel]:
    """Return the models of all arms, then of their twins, as far as they were built."""
    arms = {node.trained.digest: node.arm for node in experiment_graph.nodes}
    steps = [node.trained for node in experiment_graph.nodes]
    steps += [twin.trained for node in experiment_graph.nodes for twin in node.twins.models]
    # A twin that no other step reads is not built.
    built = {outcome.step.digest for outcome in report.outcomes}
    unique = {step.digest: step for step in steps if step.digest in built}
    return [_trained_model(step, arms, report) for step in unique.values()]


def _trained_model(
    step: Step, arms: Mapping[str, ArmExperiment], report: RunReport
) -> TrainedModel:
    audit = step.inputs.get("audit")
    model = TrainedModel(
        label=step.label,
        digest=step.digest,
        folder=report.artifact(step).path,
        audit=None if audit is None else report.artifact(audit).path,
    )
    arm = arms.get(step.digest)
    return model if arm is None else replace(model, axes=arm.labels, seed=arm.seed)


def _streams(experiment_graph: ExperimentGraph, report: RunReport) -> Iterator[ModelStream]:
    """Yield the training data of each arm and each reported twin."""
    for node in experiment_graph.nodes:
        for model in (node.contaminated, *node.reported):
            facts = read_plan(report.artifact(model.plan).path).facts
            yield ModelStream(
                axes=model.arm.labels,
                model=model.role,
                seed=model.arm.seed,
                tokens=facts.budget,
                payload=facts.budget - facts.background,
                copies=copy_outcomes(read_exposures(report.artifact(model.trained).path)),
            )


def _pools(
    experiment_graph: ExperimentGraph, report: RunReport
) -> list[tuple[str, Mapping[str, Mapping[str, Any]]]]:
    steps = {node.examples.digest: node.examples for node in experiment_graph.nodes}
    return [(step.label, read_pool_reports(report.artifact(step).path)) for step in steps.values()]


def _requested_detectors(experiment_graph: ExperimentGraph) -> list[DetectorSetting]:
    """Return the detectors that run in some arm, with the requested parameters."""
    settings = {
        (setting.name, setting.text): setting
        for node in experiment_graph.nodes
        for setting in asked_settings(node.sources)[0]
    }
    return list(settings.values())


def _detector_facts(experiment_graph: ExperimentGraph) -> list[DetectorFacts]:
    """Return the detectors' declarations, each with its first requested parameters."""
    facts_by_name: dict[str, DetectorFacts] = {}
    for setting in _requested_detectors(experiment_graph):
        facts = describe_detector(setting.known, setting.parameters)
        facts_by_name.setdefault(setting.name, facts)
    return list(facts_by_name.values())


def detector_work(experiment_graph: ExperimentGraph, report: RunReport) -> list[DetectorWork]:
    """Return the sources of each detector's scores of each model, with their cost."""
    artifacts = {outcome.step.digest: outcome.artifact for outcome in report.outcomes}
    words: dict[str, dict[str, None]] = {}
    for setting in _requested_detectors(experiment_graph):
        passes = cost_text(needs_of(with_grids([setting])))
        words.setdefault(setting.name, {})[passes] = None
    return [
        DetectorWork(
            detector=entry.detector,
            cost="; ".join(words[entry.detector]),
            steps=tuple(
                _evidence_step(artifacts[step.digest])
                for step in entry.evidence
                if step.digest in artifacts
            ),
            scoring_seconds=_scoring_seconds(artifacts.get(entry.scores.digest), entry.detector),
        )
        for entry in detector_steps(experiment_graph.nodes)
    ]


def _evidence_step(artifact: Artifact) -> EvidenceStep:
    cost = _read_measured_cost(artifact) or MeasuredCost()
    return EvidenceStep(
        key=artifact.digest,
        seconds=artifact.manifest.seconds,
        tokens_in=cost.tokens_in,
        tokens_out=cost.tokens_out,
    )


def _scoring_seconds(scores: Artifact | None, detector: str) -> float | None:
    cost = None if scores is None else _read_measured_cost(scores)
    return None if cost is None else cost.scoring_seconds.get(detector)


def _read_measured_cost(artifact: Artifact) -> MeasuredCost | None:
    return read_cost(verified(artifact, (COST_FILE,)).path)


def _step_record(outcome: Outcome) -> StepRecord:
    manifest = outcome.artifact.manifest
    expected, measured = outcome.step.cost, _read_measured_cost(outcome.artifact)
    tokens = expected.tokens if expected else None
    if measured is not None and measured.tokens_in is not None:
        tokens = measured.tokens_in + (measured.tokens_out or 0)
    return StepRecord(
        name=outcome.step.name,
        tokens=tokens,
        seconds=manifest.seconds,
        created=manifest.created,
        code=manifest.environment.get(CODE),
        machine=manifest.environment.get(MACHINE),
    )


def _named_artifacts(experiment_graph: ExperimentGraph, report: RunReport) -> list[NamedArtifact]:
    steps = {"results": experiment_graph.results}
    for node in experiment_graph.nodes:
        steps[f"corpus {node.corpus.label}"] = node.corpus
        if node.base is not None and node.base.node.step is not None:
            steps[f"base model {node.base.node.label}"] = node.base.node.step
        steps[f"model {node.arm.label}"] = node.trained
        steps |= {f"model {model.trained.label}": model.trained for model in node.reported}
        for unlearned in node.unlearning.unlearned if node.unlearning else ():
            steps[f"model {unlearned.trained.label}"] = unlearned.trained
    return [
        NamedArtifact(name, step.digest, report.artifact(step).manifest.content)
        for name, step in steps.items()
    ]
