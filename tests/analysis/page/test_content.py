"""Page parts made of plain values: settings, notes on the pool, provenance."""

import pytest

from analysis.page.cost import detector_cost_listing, detector_costs, provenance
from analysis.page.inputs import (
    ArmSettings,
    DetectorWork,
    EvidenceStep,
    NamedArtifact,
    PageInputs,
)
from analysis.page.sections.experiment import (
    description,
    pool_notes,
    pretrained_name,
    setup,
)
from detect.settings import DetectSettings
from inject.examples.contaminant import Contaminant, PoolSettings
from inject.examples.example import DropReason
from inject.examples.twin_membership import Twins
from inject.plan.settings import Copies, Placement
from inject.variants.settings import Variants
from tests.analysis.page.test_page import step
from train.settings import BaseSettings, ModelSettings, TrainSettings

QUIET = {
    "losses": {}, "split": 0, "repeated_ids": 0, DropReason.CUT_BEFORE_ANSWER: [], "strata": 3,
    "strata_pooled": {"strata": 0, "rows": 0}, "protected": False,
}  # fmt: skip


def arm(tokens: int, lr: float, **more) -> ArmSettings:
    return ArmSettings(
        axes={"corpus.tokens": str(tokens), "train.lr": f"{lr:g}"},
        background="texts.jsonl",
        tokens=tokens,
        contaminants=(Contaminant(dataset="fictional", members=1200, nonmembers=30),),
        model=ModelSettings(pretrained="some/model"),
        base=more.get("base"),
        train=TrainSettings(
            lr=lr, context=64, batch_tokens=1024, precision=more.get("precision", "float32")
        ),
        copies=Copies(poisson=2),
        placement=Placement(),
        variants=Variants(),
        twins=more.get("twins", Twins()),
        pool=PoolSettings(),
        detect=DetectSettings(),
    )


def test_swept_settings_appear_with_all_values_and_others_once():
    arms = [arm(40_000, 0.001), arm(40_000, 0.01), arm(80_000, 0.001), arm(80_000, 0.01)]
    text = description(arms, ["quiz", "exam"])
    assert "1,200 texts (quiz, exam) were drawn at random" in text
    assert "training streams of 40,000 and 80,000 tokens" in text
    assert "4 models were trained on them, starting from the pretrained model some/model" in text
    facts = dict(setup(arms, swept=["corpus.tokens", "train.lr"], seeds=[3, 4]).rows)
    assert facts["Stream"] == "40,000 tokens, copies included; 80,000 tokens, copies included"
    assert facts["Learning rate"].count(";") == 1
    assert facts["Copies"] == "2 copies on average (Poisson)"
    assert facts["Swept: train.lr"] == "0.001, 0.01"
    assert facts["Seeds"] == "3, 4"
    assert not {"Base model", "Twins of each arm", "Copies carry"} & facts.keys()


@pytest.mark.parametrize("name", ["some/model", "hf://owner/name/tiny.gguf", "tiny.gguf"])
def test_gguf_file_is_named_without_its_folders(name):
    folder = "/home/me/models/" if name == "tiny.gguf" else ""
    assert pretrained_name(ModelSettings(pretrained=f"{folder}{name}")) == name


def test_setup_shows_base_model_twins_and_precision():
    base = BaseSettings(tokens=4_000, lr=0.002, precision="float32")
    facts = dict(setup([arm(40_000, 0.001, base=base)], swept=[], seeds=[0]).rows)
    assert facts["Base model"].startswith("4,000 clean tokens, lr 0.002")
    twins = Twins(clean=True)
    facts = dict(
        setup([arm(40_000, 0.001), arm(40_000, 0.01, twins=twins)], swept=[], seeds=[0]).rows
    )
    assert facts["Twins of each arm"] == twins.label()
    arms = [arm(40_000, 0.001, base=base), arm(40_000, 0.001, base=base, precision="bfloat16")]
    facts = dict(setup(arms, swept=[], seeds=[0]).rows)
    assert facts["Base model"].endswith(", float32")
    first, second = facts["Training"].split("; ")
    assert first.endswith("tokens per step, float32")
    assert second.endswith("tokens per step, bfloat16")


def test_dropped_rows_and_protected_texts_are_named_by_dataset_and_pool():
    facts = QUIET | {
        "losses": {
            DropReason.DUPLICATE: 3,
            DropReason.TOO_LONG: 2,
            DropReason.NEAR_DUPLICATE: 1,
            DropReason.CUT: 4,
        },
        "strata_pooled": {"strata": 2, "rows": 7},
        "protected": True,
    }
    notes = pool_notes([("seed0", {"quiz": facts})])
    assert notes[0] == (
        "quiz: dropped 3 duplicates, 2 for their length (longer than the context or "
        "pool.max_tokens), 1 near-duplicates."
    )
    assert notes[1].startswith("quiz: 2 of 3 strata (7 rows) are too small")
    assert notes[2] == "quiz: 4 rows are longer than the context and were cut to it."
    assert notes[3].startswith("quiz is a protected dataset")
    two = pool_notes([("seed0", {"quiz": facts}), ("seed1", {"quiz": QUIET})])
    assert two[0].startswith("seed0 · quiz: dropped")
    again = pool_notes([("p", {"quiz": QUIET | {"repeated_ids": 2}})])
    assert again == ["quiz: 2 rows have the id of an earlier row; all are kept."]
    split_notes = pool_notes([("p", {"quiz": QUIET | {"split": 2}})])
    assert split_notes == [
        "quiz: 2 rows are longer than the context and were kept whole, over several windows."
    ]


def test_provenance_counts_steps_if_their_code_varies():
    steps = [
        step("b", created="2026-01-02T00:00:00+00:00", code="1.0 (abc)"),
        step("a", code="1.0 (abc)"),
        step("c", created="2026-01-03T00:00:00+00:00", code=None),
    ]
    named = [NamedArtifact("results", "d" * 64, "c" * 64)]
    inputs = PageInputs(
        name="x", experiment_yaml="", arms=[], analysis=None, steps=steps, artifacts=named,
        code="1.1", libraries={"torch": "2.13.0"},
    )  # fmt: skip
    facts = dict(provenance(inputs))
    assert facts["Steps computed"] == "2026-01-01 00:00:00 UTC to 2026-01-03 00:00:00 UTC"
    assert facts["Computed by spikein"] == "1.0 (abc) (2 of 3 steps); not recorded (1 of 3 steps)"
    assert facts["Computed on"] == "x86_64"
    assert facts["Page made by spikein"] == "1.1"
    assert facts["torch"] == "2.13.0"
    assert facts["results"] == f"{'d' * 12} · content {'c' * 12}"


def work(detector: str, *steps: EvidenceStep, scoring: float | None = 0.5) -> DetectorWork:
    return DetectorWork(detector=detector, cost="target 1×", steps=steps, scoring_seconds=scoring)


def test_a_shared_pass_is_listed_per_detector_and_counted_once_in_total():
    text = EvidenceStep(key="text", seconds=4.0, tokens_in=1000)
    lower = EvidenceStep(key="lower", seconds=5.0, tokens_in=1100)
    of_all = [work("loss", text), work("zlib", text), work("lower", text, lower)]
    costs = {cost.detector: cost for cost in detector_costs(of_all)}
    assert list(costs) == ["lower", "loss", "zlib", "all together"]
    assert (costs["loss"].seconds, costs["loss"].own_seconds) == (4.0, 0.0)
    assert (costs["lower"].seconds, costs["lower"].own_seconds) == (9.0, 5.0)
    total = costs["all together"]
    assert (total.tokens_in, total.seconds, total.scoring_seconds) == (2100, 9.0, 1.5)
    other = EvidenceStep(key="text-2", seconds=2.0, tokens_in=1000)
    (models,) = detector_costs([work("ratio", text, lower), work("ratio", other, lower)])
    assert (models.tokens_in, models.seconds, models.scoring_seconds) == (3100, 11.0, 1.0)
    unknown = detector_costs([work("loss", text, scoring=None), work("zlib", text)])
    assert {cost.detector: cost.scoring_seconds for cost in unknown} == {
        "loss": None, "zlib": 0.5, "all together": None,
    }  # fmt: skip
    table = detector_cost_listing([work("loss", text), work("blind")])
    assert "Tokens out" not in table.heads, "no detector generated texts"
    assert [row[0] for row in table.rows] == ["loss", "blind", "all together"]
    assert table.rows[0][table.heads.index("Tokens in")] == "1,000"
    assert table.rows[1][table.heads.index("Exclusive steps")] == "–"
    assert detector_cost_listing([]) is None
