"""The step of paraphrases: scores of each example's first paraphrase under one model.

The built-in detectors that need only the text's token statistics score it, with their defaults. A
pool without paraphrases queries no model.
"""

from detect.detector_settings import DetectorSetting, parse_detectors
from detect.engine.open_target import open_target
from detect.evidence import Evidence
from detect.evidence.views import View
from detect.registry import ALL
from detect.scores.table import write_scores
from detect.scoring import score_rows
from detect.settings import DetectSettings
from detect.target_identity import MeasuredCost, asking_step, write_cost
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.examples.example import read_examples
from inject.step import Step, StepContext
from train.models.model_node import ModelNode


def paraphrase_scores_step(model: ModelNode, examples: Step, detect: DetectSettings) -> Step:
    """Score the first paraphrase of every example that has one, under the example's id."""
    settings = paraphrase_detectors()
    return asking_step(
        model,
        detect,
        kind="paraphrase_scores",
        label=model.label,
        function=f"{__name__}:build",
        settings={
            "detectors": [f"{setting.name}:{setting.text}" for setting in settings],
            "policy": detect.policy().record(),
        },
        inputs={"examples": examples},
        code=tuple(begin for setting in settings for begin in setting.known.code),
    )


def build(context: StepContext) -> None:
    """Score the paraphrases, and write the scores."""
    rows = [row for row in read_examples(context.inputs["examples"]) if row.paraphrases]
    texts = [row.paraphrases[0] for row in rows]
    statistics: list[TokenStatistics] = []
    if texts:
        from detect.engine.view_statistics import read_texts

        statistics = read_texts(context, open_target(context), texts)
    else:
        write_cost(context.out, MeasuredCost(passes=0, tokens_in=0))
    # With their defaults, as the step names them.
    names = [entry.partition(":")[0] for entry in context.settings["detectors"]]
    scores, _ = score_rows(
        [row.example_id for row in rows],
        Evidence(texts=texts, statistics={TEXT: statistics}),
        parse_detectors(names) if texts else [],
    )
    write_scores(context.out, scores, record={"policy": context.settings["policy"]})


def paraphrase_detectors() -> list[DetectorSetting]:
    """Return the built-in detectors that need only the text's token statistics."""
    return [
        setting
        for setting in parse_detectors(ALL)
        if setting.needs == (View(TEXT),) and not setting.detector.depends_on_rows
    ]
