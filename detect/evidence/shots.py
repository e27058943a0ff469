"""Selects shots, and computes token statistics after them.

The order of a dataset's texts is random and depends only on the texts, so 3 shots are the first 3
of 7. A prefix takes at most half of the context: texts that no longer fit are skipped, and a note
reports if fewer shots fit or exist than requested. The separator after each text is part of the
prefix, encoded separately. A server receives a prefix as text, regardless of its context: not every
server accepts ids or reports how many fit.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from detect.engine.open_target import open_target
from detect.evidence.prefixed import (
    KNOWN_MEMBERS_FILE,
    Prefixed,
    Shots,
    read_shots,
    write_shots,
)
from detect.settings import DetectSettings, ScoringPolicy
from detect.target_identity import MeasuredCost, write_cost
from detect.targets.asked_text_model import READ_SERVED, is_served
from detect.targets.text_model import TextModel
from detect.token_statistics import TokenStatistics, unscored, write_statistics
from inject import keyed
from inject.examples.example import (
    Example,
    examples_of,
    members,
    read_examples,
    read_held_out,
)
from inject.step import StepContext, find_function
from inject.tables import read_parquet
from train.models.model_node import ModelNode

SEPARATOR = "\n\n"
NO_SHOT = "no shot: its dataset has no such text that fits into half of the context"
IS_SHOT = "it is a shot itself, or shares a passage with one"


def choose(context: StepContext) -> None:
    """Select the shots of every dataset, and write them."""
    from detect.engine.target import load_tokenizer_and_context

    side, first, count = context.settings["need"]
    need = Prefixed(shots=count, first=first, known=side)
    of_members = side == "members"
    folder = context.inputs["examples"]
    rows = read_known_members(folder) if of_members else read_held_out(folder)
    policy, tokenizer, longest = ScoringPolicy(), None, None
    if context.execution:
        policy = DetectSettings.model_validate(context.execution["detect"]).policy()
        node = ModelNode.given(context, "model")
        with node.unchanged():
            tokenizer, longest = load_tokenizer_and_context(
                node.path, revision=node.revision, trust_remote_code=node.trust_remote_code
            )
    by_dataset = {}
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
        if of_members and dataset:
            chosen = scored_as_members(
                chosen, [row.group for row in own if row.text in chosen.texts]
            )
        by_dataset[dataset] = chosen
    write_shots(context.out, by_dataset)


def build(context: StepContext, text_model: TextModel | None = None) -> None:
    """Compute the token statistics of every example after its dataset's shots, and write them.

    Args:
        context: context of the step.
        text_model: a server's model to query instead of the step's (see `asked_text_model`).
    """
    detect = DetectSettings.model_validate(context.execution["detect"])
    policy = detect.policy()
    rows = read_examples(context.inputs["examples"])
    chosen = read_shots(context.inputs["shots"])
    if is_served(context):
        written = {
            name: "".join(f"{text}{SEPARATOR}" for text in shots.texts)
            for name, shots in chosen.items()
        }
        prefixes = [written.get(row.dataset, "") for row in rows]
        texts = [row.text if prefix else "" for row, prefix in zip(rows, prefixes, strict=True)]
        read = find_function(READ_SERVED)(context, text_model, texts, before=prefixes)
        statistics = [
            result if prefix else unscored(NO_SHOT)
            for result, prefix in zip(read, prefixes, strict=True)
        ]
    else:
        statistics = statistics_behind(
            open_target(context),
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
            "shots": {name: len(shots.texts) for name, shots in chosen.items()},
            "separator": {name: list(shots.separator) for name, shots in chosen.items()},
            **policy.record(),
        },
    )
    scored = sum(map(len, statistics))
    before = sum(len(shots.ids) for shots in chosen.values())
    write_cost(context.out, MeasuredCost(passes=len(rows), tokens_in=scored + before))


def read_known_members(folder: Path) -> list[Example]:
    """Return the known members: a user's, else those of the split `tune`."""
    path = folder / KNOWN_MEMBERS_FILE
    if path.is_file():
        return examples_of(read_parquet(path))
    return [row for row in members(read_examples(folder)) if row.split == "tune"]


def shot_order(dataset: str, texts: Sequence[str]) -> list[int]:
    """Return the indices of a dataset's texts in random order, equal texts once."""
    first = {text: place for place, text in reversed(list(enumerate(texts)))}
    names = [f"{dataset}\n{text}" for text in first]
    words = keyed.words(0, keyed.Stream.SHOT, keyed.item_keys(names)).tolist()
    return [first[text] for _, text in sorted(zip(words, first, strict=True))]


def choose_shots(
    need: Prefixed,
    dataset: str,
    texts: Sequence[str],
    *,
    tokenizer: Any,
    context: int | None,
    policy: ScoringPolicy,
) -> Shots:
    """Return the shots before the texts of a dataset.

    Args:
        need: the number and kind of shots.
        dataset: its name.
        texts: candidates for shots, in any order.
        tokenizer: the target's own; None if only a server has it.
        context: maximum ids per window; None if there is no limit.
        policy: whether texts have a start token.
    """
    from detect.engine.prefix import join_shots
    from inject.corpus.tokenizer import encode_texts

    candidates = [text for text in texts if text.strip()]
    ordered = [candidates[place] for place in shot_order(dataset, candidates)]
    start, *parts = (
        join_shots(tokenizer, ordered, SEPARATOR, policy)
        if tokenizer is not None
        else [[] for _ in range(1 + len(ordered))]
    )
    most = math.inf if context is None else context // 2
    # Texts that do not fit by themselves are skipped at any index in the order.
    fitting = [
        (text, part)
        for text, part in zip(ordered, parts, strict=True)
        if len(start) + len(part) <= most
    ]
    ids = list(start)
    chosen: list[str] = []
    too_long = len(fitting) < min(len(ordered), need.first + need.shots)
    for text, part in fitting[need.first :]:
        if len(chosen) == need.shots:
            break
        if len(ids) + len(part) > most:
            too_long = True
            continue
        ids += part
        chosen.append(text)
    return Shots(
        texts=tuple(chosen),
        ids=tuple(ids) if chosen else (),
        separator=tuple(encode_texts(tokenizer, [SEPARATOR])[0].tolist())
        if tokenizer is not None
        else (),
        too_long=too_long and len(chosen) < need.shots,
    )


def with_shots_apart(
    statistics: Sequence[TokenStatistics],
    datasets: Sequence[str],
    groups: Sequence[str],
    shots: Mapping[str, Shots],
) -> list[TokenStatistics]:
    """Return the statistics, without those of shots and of rows in their groups."""
    apart = {(name, group) for name, chosen in shots.items() for group in chosen.groups}
    return [
        unscored(IS_SHOT) if (dataset, group) in apart else row
        for row, dataset, group in zip(statistics, datasets, groups, strict=True)
    ]


def statistics_behind(
    target: Any,
    texts: Sequence[str],
    datasets: Sequence[str],
    shots: Mapping[str, Shots],
    policy: ScoringPolicy,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **options: Any,
) -> list[TokenStatistics]:
    """Return the statistics of every text after its dataset's shots, each prefix read once.

    Args:
        target: model and tokenizer.
        texts: the scored texts.
        datasets: one per text.
        shots: shots by dataset.
        policy: as for the plain pass.
        progress: called with (texts done, texts in all).
        **options: `batch_tokens` and `compile_mode` of `token_statistics`.
    """
    from detect.engine.forward_pass import token_statistics
    from detect.engine.prefix import shared_prefix

    statistics = [unscored(NO_SHOT)] * len(texts)
    done = 0
    for name in sorted(set(datasets)):
        rows = [row for row, dataset in enumerate(datasets) if dataset == name]
        if name in shots and shots[name].texts:
            prefix = shared_prefix(target, shots[name].ids)
            dataset_statistics = token_statistics(
                target, [texts[row] for row in rows], policy, prefix, **options
            )
            for row, text_statistics in zip(rows, dataset_statistics, strict=True):
                statistics[row] = text_statistics
        done += len(rows)
        progress(done, len(texts))
    return statistics


def scored_as_members(shots: Shots, groups: Sequence[str]) -> Shots:
    """Return the shots with the groups of their rows."""
    return replace(shots, groups=tuple(dict.fromkeys(groups)))
