"""The texts of the variants, the models that write paraphrases, and the step that does both."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.examples.example import Example, Span, write_examples
from inject.step import Step, StepContext, find_function
from inject.variants.paraphrase import TRIES, SeededPrompt, ServerTextGenerator
from inject.variants.rendition import read_renditions
from inject.variants.settings import Variants
from inject.variants.variants_step import LocalModels, render_variants, replaced, variants_step
from tests.inject.examples.drawing import plain_row
from tests.stub_server import stub_server

PASSAGE, QUESTION, ANSWER = "The river is wide.", "Is the river wide?", "Yes, it is"
TEXT = f"Passage: {PASSAGE}\nQuestion: {QUESTION}\nAnswer: {ANSWER}"


def example(**changes) -> Example:
    def span(part: str) -> Span:
        start = TEXT.rindex(part)
        return Span(start, start + len(part))

    given_fields = {
        "example_id": "e1",
        "dataset": "toy",
        "source_id": "row-7",
        "group": "g",
        "text": TEXT,
        "spans": {"passage": span(PASSAGE), "question": span(QUESTION), "answer": span(ANSWER)},
        "paraphrases": ("The river: is it wide? It is.", "Wide is the river, they say."),
        "side": "member",
    }
    return Example(**{**given_fields, **changes})


def rendered(tokenizer, *kinds, row=None, writer=None, **more):
    row = row or example()
    return render_variants(
        [row],
        Variants.model_validate({"of": kinds}),
        tokenizer=tokenizer,
        seed=0,
        writer=writer or (lambda _: pytest.fail("no model was requested")),
        **more,
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ({"kind": "whole"}, TEXT),
        ({"kind": "question"}, f"Passage: {PASSAGE}\nQuestion: {QUESTION}"),
        ({"kind": "no_answer"}, f"Passage: {PASSAGE}\nQuestion: {QUESTION}\nAnswer:"),
        ({"kind": "lower_case"}, TEXT.lower()),
        ({"kind": "paraphrase"}, "The river: is it wide? It is."),
    ],
)
def test_variants_have_their_texts(tiny_tokenizer, kind, text):
    [rendition] = rendered(tiny_tokenizer, kind)
    assert tiny_tokenizer.decode(rendition.tokens) == text
    expected = "paraphrase-1" if kind["kind"] == "paraphrase" else kind["kind"]
    assert (rendition.example_id, rendition.variant, rendition.kind) == ("e1", expected, 0)


def test_versions_have_distinct_labels(tiny_tokenizer):
    renditions = rendered(
        tiny_tokenizer,
        {"kind": "replaced", "share": 0.25, "versions": 2},
        {"kind": "paraphrase", "versions": 2},
        {"kind": "truncated", "share": 0.5},
    )
    assert [rendition.variant for rendition in renditions] == [
        "replaced=0.25-1", "replaced=0.25-2", "truncated=0.5", "paraphrase-1", "paraphrase-2",
    ]  # fmt: skip
    assert not np.array_equal(renditions[0].tokens, renditions[1].tokens)


@given(
    tokens=st.lists(st.integers(0, 20), min_size=2, max_size=80),
    share=st.floats(0.01, 0.99),
    version=st.integers(0, 5),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=50, deadline=None)
def test_exact_share_of_tokens_is_replaced_by_other_ordinary_tokens(tokens, share, version, seed):
    given_tokens = np.array(tokens)
    allowed = np.array([1, 2, 5, 7, 8, 13])
    draw = {"allowed": allowed, "example_id": "e", "version": version, "seed": seed}
    changed_ids = replaced(given_tokens, share, **draw)
    changed = np.flatnonzero(changed_ids != given_tokens)
    assert len(changed) == max(round(share * len(tokens)), 1)
    assert set(changed_ids[changed].tolist()) <= set(allowed.tolist())
    assert np.array_equal(changed_ids, replaced(given_tokens, share, **draw))


def test_replacements_are_uniform_over_the_allowed_tokens():
    from scipy.stats import chisquare

    tokens = np.full(20_000, 7)
    changed_ids = replaced(
        tokens, 0.9, allowed=np.array([1, 5, 7, 9]), example_id="e", version=0, seed=0
    )
    counts = [int((changed_ids == value).sum()) for value in (1, 5, 9)]
    assert sum(counts) == 18_000
    assert chisquare(counts).pvalue > 1e-4
    places = np.flatnonzero(changed_ids != tokens)
    assert chisquare(np.histogram(places, bins=20, range=(0, 20_000))[0]).pvalue > 1e-4


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ({"kind": "no_answer"}, {"spans": {}}, r"`no_answer` needs the position of the answer"),
        ({"kind": "paraphrase", "versions": 3}, {}, "needs 3 paraphrases .* row-7 has 2"),
    ],
)
def test_missing_part_of_an_example_is_rejected(tiny_tokenizer, kind, changes, message):
    with pytest.raises(InputError, match=message):
        rendered(tiny_tokenizer, kind, row=example(**changes))


class Script:
    """A model that answers from a list."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[SeededPrompt] = []

    def write(self, questions, *, progress=None) -> list[str]:
        self.asked += questions
        if progress is not None:
            progress(len(questions), len(questions))
        return [self.answers.pop(0) for _ in questions]


BY_MODEL = {"kind": "paraphrase", "by": "model", "model": "m", "prompt": "Again: {text}"}


def test_model_is_retried_until_the_text_changes(tiny_tokenizer):
    model = Script("", TEXT.upper(), "  Other words. ")
    [rendition] = rendered(tiny_tokenizer, BY_MODEL, writer=lambda _: model)
    assert tiny_tokenizer.decode(rendition.tokens) == "Other words."
    assert [prompt for prompt, _ in model.asked] == [f"Again: {TEXT}"] * 3
    assert len({seed for _, seed in model.asked}) == 3


def test_model_that_never_changes_the_text_is_an_error(tiny_tokenizer):
    model = Script(*[f" {TEXT}\n"] * TRIES)
    message = f"model m returned the text unchanged for row row-7, {TRIES} times"
    with pytest.raises(InputError, match=message):
        rendered(tiny_tokenizer, BY_MODEL, writer=lambda _: model)


def test_only_unusable_texts_are_retried_and_progress_counts_all(tiny_tokenizer):
    model = Script("One.", TEXT, "Three.", "", "Two words.")
    seen: list[tuple[int, int]] = []
    renditions = rendered(
        tiny_tokenizer,
        {**BY_MODEL, "versions": 3},
        writer=lambda _: model,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert [tiny_tokenizer.decode(rendition.tokens) for rendition in renditions] == [
        "One.",
        "Two words.",
        "Three.",
    ]
    assert [question.seed for question in model.asked] == [0, TRIES, 2 * TRIES, 5, 6]
    assert seen == [(3, 3), (3, 3), (3, 3)]


def test_protected_text_is_sent_to_a_server_only_if_its_dataset_is_named(tiny_tokenizer):
    protected = example(protected=True)
    with stub_server() as stub:
        variant = {"kind": "paraphrase", "by": "model", "model": "m", "base_url": stub.url}
        with pytest.raises(InputError, match=r"texts of protected data \(toy\) would be sent"):
            rendered(tiny_tokenizer, variant, row=protected, writer=ServerTextGenerator)
        assert stub.received == []
        named = {**variant, "send_protected": ["toy"]}
        assert len(rendered(tiny_tokenizer, named, row=protected, writer=ServerTextGenerator)) == 1
        assert len(stub.received) == 1
        assert len(rendered(tiny_tokenizer, variant, writer=ServerTextGenerator)) == 1
    local = {"kind": "paraphrase", "by": "model", "model": "m"}
    model = Script("Said here.")
    assert len(rendered(tiny_tokenizer, local, row=protected, writer=lambda _: model)) == 1


LOCAL = LocalModels(f"{__name__}:identity", f"{__name__}:Writer")
EXAMPLES = Step(kind="examples", label="e", function="inject.digest:digest", settings={})
TOKENIZER = Step(kind="tokenizer", label="t", function="inject.digest:digest", settings={})
HERE = {"kind": "paraphrase", "by": "model", "model": "here"}
SERVED = {**HERE, "base_url": "http://localhost:1/v1"}


def identity(name: str) -> dict[str, str]:
    return {"files": f"of {name}"}


class Writer:
    """Answers with capitals, and leaves a file in its folder."""

    def __init__(self, variant, cache: Path) -> None:
        cache.mkdir()
        (cache / variant.model).touch()

    def write(self, questions, *, progress=None):
        return [question.prompt.upper() for question in questions]

    def notes(self):
        return ("answers were kept",)

    def close(self) -> None:
        pass


def step(*kinds) -> Step | None:
    variants = Variants.model_validate({"of": kinds})
    return variants_step(variants, EXAMPLES, TOKENIZER, seed=0, local=LOCAL)


def test_whole_examples_need_no_step():
    assert step({"kind": "whole"}) is None


@pytest.mark.parametrize(("kind", "local"), [(HERE, True), (SERVED, False)])
def test_local_model_identity_includes_its_code(kind, local):
    variants_step = step(kind)
    assert variants_step is not None
    assert variants_step.settings["variants"][0]["model"] == (identity("here") if local else "here")
    assert variants_step.code == (tuple(LOCAL) if local else ())


def test_writer_is_resolved_by_name(tmp_path, tiny_tokenizer):
    folders = {name: tmp_path / name for name in ("out", "examples", "tokenizer")}
    for folder in folders.values():
        folder.mkdir()
    row = plain_row("a", text="the bridge")
    write_examples(folders["examples"], [row])
    tiny_tokenizer.save_pretrained(folders["tokenizer"])
    variants_step = step({**HERE, "prompt": "{text}!"})
    assert variants_step is not None
    notes: list[str] = []
    find_function(variants_step.function)(
        StepContext(
            out=folders["out"],
            inputs=folders,
            settings=variants_step.settings,
            execution=variants_step.execution,
            unfinished=tmp_path / "unfinished",
            report=lambda *_, **__: None,
            notice=notes.append,
        )
    )
    (rendition,) = read_renditions(folders["out"])
    assert tiny_tokenizer.decode(rendition.tokens) == "THE BRIDGE!"
    assert (tmp_path / "unfinished" / "here").is_file()
    assert notes == ["answers were kept"]
