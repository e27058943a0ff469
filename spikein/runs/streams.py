"""The training streams of a run, read back for its page: their audits, and what was read of them.

Streams are the trained models' of the run's own report, which are the ones its folder links to, and
their audits are read by `auditing.stream_audits`: the page cannot show fewer than `spikein audit`.
"""

from collections.abc import Mapping, Sequence

from analysis.arm import short_axis
from analysis.page.streams import Stream
from inject.plan.plan import read_plan
from inject.stream.exposures import CopyOutcomes, copy_outcomes, read_exposures
from spikein.config.sweep import ArmExperiment
from spikein.executors import RunReport
from spikein.pipeline.build_graph import CONTAMINATED, ExperimentGraph
from spikein.pipeline.graph import Step
from spikein.runs.audit import stream_audits


def audited_streams(
    experiment_graph: ExperimentGraph, report: RunReport
) -> dict[str, dict[str, object]]:
    """Return what the audit of each stream found, by a label that no other stream has."""
    models = [
        outcome.step
        for outcome in report.outcomes
        if outcome.step.kind == "model" and "audit" in outcome.step.inputs
    ]
    arms = {node.trained.digest: node.arm for node in experiment_graph.nodes}
    users: dict[str, list[Step]] = {}
    for model in models:
        users.setdefault(model.inputs["audit"].digest, []).append(model)
    seeds = len(experiment_graph.experiment.seeds) > 1
    found = stream_audits(
        (label, report.artifact(same[0].inputs["audit"]).path)
        for same in users.values()
        for label in _labels(same, arms, seeds=seeds)
    )
    return {
        label: {
            "passed": audit.passed,
            "copies planned": audit.copies_expected,
            "copies found": audit.copies_found,
            "members that drew no copy": audit.zero_copy_members,
            "non-members found": len(audit.nonmembers_found),
            "copies not where they were planned": len(audit.displaced),
            "examples found in the background": len(audit.background_hits),
            "member and non-member pairs that share a run of words": len(audit.between_sides),
            "tokens searched": audit.tokens_searched,
        }
        for label, audit in found.items()
    }


def _labels(models: Sequence[Step], arms: Mapping[str, ArmExperiment], *, seeds: bool) -> list[str]:
    """Name one stream: twins by their own labels, arms by the axes on which all of them agree."""
    trained = [arms[model.digest] for model in models if model.digest in arms]
    labels = [model.label for model in models if model.digest not in arms]
    if trained:
        first = trained[0]
        parts = [
            f"{short_axis(axis)} {text}"
            for axis, text in first.labels.items()
            if all(arm.labels[axis] == text for arm in trained)
        ]
        parts += [f"seed {first.seed}"] if seeds or not parts else []
        labels.insert(0, ", ".join(parts))
    return labels


def fed_streams(experiment_graph: ExperimentGraph, report: RunReport) -> dict[str, CopyOutcomes]:
    """Return what became of the copies of each model that was fed any, shadow models included."""
    trained = [node.trained for node in experiment_graph.nodes]
    for node in experiment_graph.nodes:
        twins = [node.twins.clean, node.twins.retrained, *node.twins.shadows]
        trained += [twin.trained for twin in twins if twin is not None]
    found = {}
    for step in {step.digest: step for step in trained}.values():
        try:
            path = report.artifact(step).path
        except KeyError:
            # A twin of which nobody needed anything is not made.
            continue
        copies = copy_outcomes(read_exposures(path))
        if copies.planned:
            # Twins of streams of several lengths share their label.
            taken = step.label in found
            found[f"{step.label} ({step.digest[:12]})" if taken else step.label] = copies
    return found


def run_streams(experiment_graph: ExperimentGraph, report: RunReport) -> list[Stream]:
    """Return what each arm, and each twin that is reported, was trained on."""
    found = []
    for node in experiment_graph.nodes:
        found.append(_stream(node.arm, CONTAMINATED, node.plan, node.trained, report))
        found += [
            _stream(node.arm, one.model, one.twin.plan, one.twin.trained, report)
            for one in node.reported
        ]
    return found


def _stream(arm: ArmExperiment, model: str, plan: Step, trained: Step, report: RunReport) -> Stream:
    facts = read_plan(report.artifact(plan).path).facts
    return Stream(
        axes=arm.labels,
        model=model,
        seed=arm.seed,
        tokens=facts.budget,
        payload=facts.budget - facts.background,
        copies=copy_outcomes(read_exposures(report.artifact(trained).path)),
    )
