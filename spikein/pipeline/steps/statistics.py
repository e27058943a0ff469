"""Steps of token statistics: of a view or behind shots, and token frequencies of a corpus.

Token statistics are made once for each model and view; every likelihood detector and setting is
then a function of the stored table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.needs import Prefixed
from detect.settings import DetectSettings
from detect.shots import (
    choose_shots,
    read_shots,
    scored_as_members,
    statistics_behind,
    with_shots_apart,
    write_shots,
)
from detect.token_statistics import write_statistics
from detect.views import TEXT, view_text
from inject.corpus.corpus import Corpus, corpus_tokenizer
from inject.corpus.parts import TOKENS
from inject.examples.example import (
    EXAMPLES_FILE,
    Example,
    members,
    read_examples,
    read_held_out,
)
from inject.examples.parts import HELD_OUT, TEXTS, UNSPLIT
from inject.reading.rows import files_identity
from inject.reading.unchanged import unchanged
from inject.source_digest import root
from inject.step import Reading
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.inputs import open_corpus
from spikein.pipeline.steps.training import ModelNode

if TYPE_CHECKING:
    from detect.engine.target import Target

_NO_WEIGHTS = Reading(files=("*.json", "*.jinja", "*.model", "*.txt", "*.py"))
"""A model's configuration, its tokenizer, and code that comes with either."""

_TOKENS_A_BLOCK = 1 << 18
# Decoding and counting words takes about a second a million tokens.
_TOKENS_FOR_WORDS = 20_000_000


def statistics_step(
    model: ModelNode,
    examples: Step,
    *,
    view: str,
    detect: DetectSettings,
    held_out: bool = False,
) -> Step:
    """Make the token statistics of every example under one model, as one view shows it.

    Args:
        model: what is asked.
        examples: the pool.
        view: the form of the texts.
        detect: how models are asked.
        held_out: of the held-out rows, in place of the examples.
    """
    policy = detect.policy()
    read = read_held_out if held_out else read_examples

    def build(context: StepContext) -> None:
        from detect.engine.forward_pass import token_statistics

        rows = read(context.inputs["examples"].path)
        target = open_target(model, context.inputs, detect)
        statistics = token_statistics(
            target,
            [view_text(view, row.text) for row in rows],
            policy,
            batch_tokens=detect.batch_tokens,
            compile_mode=detect.compile,
            progress=lambda done, total: context.report(done, total, unit="tokens"),
        )
        write_statistics(
            context.out,
            [row.example_id for row in rows],
            statistics,
            record={"view": view, **policy.record()},
        )
        scored = sum(map(len, statistics))
        write_cost(context.out, MeasuredCost(passes=len(rows), tokens_in=scored))

    return Step(
        kind="statistics",
        label=f"{view}{'-held-out' if held_out else ''}-{model.label}",
        settings={
            "view": view,
            **({"rows": "held_out"} if held_out else {}),
            "policy": policy.record(),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=(*model_libraries(model, detect), *(() if view == TEXT else ("unicode",))),
        code=(root(build),),
        reads={"examples": HELD_OUT if held_out else TEXTS},
        volatile=(COST_FILE,),
        build=build,
    )


def model_libraries(model: ModelNode, detect: DetectSettings) -> tuple[str, ...]:
    """Return the libraries whose versions decide what a model says."""
    found = ["torch", "transformers"]
    if "adapter" in (model.identity or {}):
        found.append("peft")
    if detect.dtype in ("8bit", "4bit"):
        found.append("bitsandbytes")
    return tuple(found)


def shots_step(model: ModelNode, examples: Step, need: Prefixed, detect: DetectSettings) -> Step:
    """Choose the shots that stand before each dataset's texts: held-out rows, or known members."""
    policy = detect.policy()
    of_members = need.known == "members"

    def build(context: StepContext) -> None:
        from detect.engine.target import load_tokenizer_and_context

        folder = context.inputs["examples"].path
        rows = read_known_members(folder) if of_members else read_held_out(folder)
        with model.unchanged():
            tokenizer, longest = load_tokenizer_and_context(
                model.locate(context.inputs, "model"),
                revision=model.revision,
                trust_remote_code=model.trust_remote_code,
            )
        found = {}
        for dataset in sorted({row.dataset for row in rows}):
            own = [row for row in rows if row.dataset == dataset]
            chosen = choose_shots(
                need,
                dataset,
                [row.text for row in own],
                tokenizer=tokenizer,
                context=policy.context or longest,
                policy=policy,
            )
            if of_members:
                chosen = scored_as_members(
                    chosen, [row.group for row in own if row.text in chosen.texts]
                )
            found[dataset] = chosen
        write_shots(context.out, found)

    return Step(
        kind="shots",
        label=f"{need.name}-{model.label}",
        settings={
            "need": [need.known, need.first, need.shots],
            "policy": policy.record(),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("transformers",),
        code=(root(build),),
        reads={
            "examples": Reading(files=(EXAMPLES_FILE,)) if of_members else HELD_OUT,
            **({"model": _NO_WEIGHTS} if model.step else {}),
        },
        build=build,
    )


def prefixed_step(model: ModelNode, examples: Step, need: Prefixed, detect: DetectSettings) -> Step:
    """Make the token statistics of every example behind its dataset's shots.

    How many shots were asked for is no part of it: where no more fit, 12 shots cost no second pass.
    """
    policy = detect.policy()
    shots = shots_step(model, examples, need, detect)

    def build(context: StepContext) -> None:
        rows = read_examples(context.inputs["examples"].path)
        target = open_target(model, context.inputs, detect)
        chosen = read_shots(context.inputs["shots"].path)
        statistics = statistics_behind(
            target,
            [row.text for row in rows],
            [row.dataset for row in rows],
            chosen,
            policy,
            batch_tokens=detect.batch_tokens,
            compile_mode=detect.compile,
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
        write_statistics(
            context.out,
            [row.example_id for row in rows],
            with_shots_apart(
                statistics, [row.dataset for row in rows], [row.group for row in rows], chosen
            ),
            record={
                "shots": {name: len(one.texts) for name, one in chosen.items()},
                "separator": {name: list(one.separator) for name, one in chosen.items()},
                **policy.record(),
            },
        )
        scored = sum(map(len, statistics))
        before = sum(len(one.ids) for one in chosen.values())
        write_cost(context.out, MeasuredCost(passes=len(rows), tokens_in=scored + before))

    return Step(
        kind="statistics",
        label=f"behind-{need.name}-{model.label}",
        settings={
            "behind": "shots",
            "policy": policy.record(),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples, "shots": shots},
        libraries=model_libraries(model, detect),
        code=(root(build),),
        reads={"examples": UNSPLIT},
        volatile=(COST_FILE,),
        build=build,
    )


def read_known_members(folder: Path) -> list[Example]:
    """Return the members of the split `tune`, who may be known; those of `test` are not."""
    return [row for row in members(read_examples(folder)) if row.split == "tune"]


def open_target(model: ModelNode, inputs: Mapping[str, Any], detect: DetectSettings) -> "Target":
    """Load the model that a step asks, its input of the name `model`."""
    from detect.engine.target import load_target

    with model.unchanged():
        return load_target(
            model.locate(inputs, "model"),
            revision=model.revision,
            trust_remote_code=model.trust_remote_code,
            device=detect.device,
            dtype=model.dtype(detect.dtype),
            device_map=detect.device_map,
        )


def _texts(clean: Corpus, tokenizer: Any) -> Iterator[str]:
    """Yield the documents of a corpus as text, as far as their words are counted."""
    rest = np.zeros(0, np.int64)
    stop = min(clean.n_tokens, _TOKENS_FOR_WORDS)
    for start in range(0, stop, _TOKENS_A_BLOCK):
        block = np.concatenate([rest, clean.read(start, min(start + _TOKENS_A_BLOCK, stop))])
        ends = np.flatnonzero(block == clean.end_token)
        *documents, rest = np.split(block, ends)
        yield from tokenizer.batch_decode(
            [ids.tolist() for ids in documents], skip_special_tokens=True
        )
    yield tokenizer.decode(rest.tolist(), skip_special_tokens=True)


def frequency_step(corpus: Step, detect: DetectSettings) -> Step | None:
    """Count tokens and words: of the clean corpus (words of its first 20 M tokens), or of files."""
    if detect.frequency is None:
        return None
    pattern = None if detect.frequency == "corpus" else detect.frequency
    files: list[dict[str, Any]] = []
    if pattern is not None:
        files = files_identity(pattern)

    def build(context: StepContext) -> None:
        from detect.token_frequency import count_files, count_ids, count_words, save_frequency

        clean = open_corpus(corpus, context.inputs)
        if pattern is None:
            step = 1 << 20
            blocks = (
                clean.read(start, min(start + step, clean.n_tokens))
                for start in range(0, clean.n_tokens, step)
            )
            tokenizer = corpus_tokenizer(context.inputs["corpus"].path)
            words = count_words(_texts(clean, tokenizer))
            table = replace(count_ids(blocks, clean.vocabulary), words=words)
        else:
            tokenizer = corpus_tokenizer(context.inputs["corpus"].path)
            with unchanged("detect.frequency", lambda: files_identity(pattern), files):
                table = count_files(tokenizer, pattern)
        save_frequency(context.out, table)

    return Step(
        kind="frequency",
        label="corpus" if pattern is None else "files",
        settings={"files": files},
        inputs={"corpus": corpus},
        libraries=("unicode",),
        code=(root(build),),
        reads={"corpus": TOKENS},
        build=build,
    )
