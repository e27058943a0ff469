"""Shots: which texts of a dataset stand before its scored texts, and as which ids.

The order of a dataset's texts is random and a function of the texts alone, so 3 shots are the first
3 of 7. A prefix takes at most half of the context: texts that no longer fit are passed over, and
where fewer shots fit than were asked for, or fewer are there, a note says so. The separator behind
each text is part of the prefix, by its own ids.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from detect.needs import Prefixed
from detect.policy import ScoringPolicy
from detect.token_statistics import TokenStatistics, unscored
from inject import keyed

SEPARATOR = "\n\n"
SHOTS_FILE = "shots.json"
NO_SHOT = "no shot: its dataset has no such text that fits into half of the context"
IS_SHOT = "it is a shot itself, or shares a passage with one"


@dataclass(frozen=True, kw_only=True)
class Shots:
    """The prefix of one dataset."""

    texts: tuple[str, ...]
    """In their order."""
    ids: tuple[int, ...]
    """Of the whole prefix: start token, and each text with the separator behind it."""
    separator: tuple[int, ...]
    """Of the separator."""
    groups: tuple[str, ...] = ()
    """Groups of the texts, where these are rows that are scored as well."""
    too_long: bool = False
    """Whether texts were left out for the context."""


def shot_order(dataset: str, texts: Sequence[str]) -> list[int]:
    """Return the places of a dataset's texts in random order, equal texts once."""
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
    """Return the shots that stand before the texts of a dataset.

    Args:
        need: how many, and which.
        dataset: its name.
        texts: those that shots are taken from, in any order.
        tokenizer: the target's own.
        context: ids that a window may hold; None where nothing sets a limit.
        policy: whether texts have a start token.
    """
    from detect.engine.prefix import join_shots
    from inject.corpus.tokenizer import encode_texts

    given = [text for text in texts if text.strip()]
    ordered = [given[place] for place in shot_order(dataset, given)]
    start, *parts = join_shots(tokenizer, ordered, SEPARATOR, policy)
    most = math.inf if context is None else context // 2
    # Texts that do not fit alone are passed over, whichever place in the order is asked for.
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
        separator=tuple(encode_texts(tokenizer, [SEPARATOR])[0].tolist()),
        too_long=too_long and len(chosen) < need.shots,
    )


def write_shots(folder: Path, shots: Mapping[str, Shots]) -> None:
    """Write the shots of every dataset as `shots.json`."""
    values = {name: asdict(one) for name, one in shots.items()}
    (folder / SHOTS_FILE).write_text(json.dumps(values, indent=1, sort_keys=True))


def read_shots(folder: Path) -> dict[str, Shots]:
    """Read what `write_shots` wrote."""
    values = json.loads((folder / SHOTS_FILE).read_text())
    return {
        name: Shots(
            texts=tuple(one["texts"]),
            ids=tuple(one["ids"]),
            separator=tuple(one["separator"]),
            groups=tuple(one["groups"]),
            too_long=one["too_long"],
        )
        for name, one in values.items()
    }


def shot_notes(
    need: Prefixed, shots: Mapping[str, Shots], datasets: Collection[str]
) -> tuple[str, ...]:
    """Return what is to be said of datasets with fewer shots than were asked for."""
    notes = []
    for name in sorted(datasets):
        one = shots.get(name)
        if one is None or len(one.texts) < need.shots:
            reason = (
                "more do not fit into half of the context"
                if one is not None and one.too_long
                else "there are no more such rows"
            )
            # Without the number that was asked for, so that a grid says it once.
            count = len(one.texts) if one else 0
            of = f" of {name}" if name else ""
            notes.append(f"at most {count} {need} stand before the texts{of}: {reason}")
    return tuple(notes)


def with_shots_apart(
    statistics: Sequence[TokenStatistics],
    datasets: Sequence[str],
    groups: Sequence[str],
    shots: Mapping[str, Shots],
) -> list[TokenStatistics]:
    """Return the statistics, those of rows that are shots or of their groups left out."""
    apart = {(name, group) for name, one in shots.items() for group in one.groups}
    return [
        unscored(IS_SHOT) if (dataset, group) in apart else one
        for one, dataset, group in zip(statistics, datasets, groups, strict=True)
    ]


def statistics_behind(
    target: Any,
    texts: Sequence[str],
    datasets: Sequence[str],
    shots: Mapping[str, Shots],
    policy: ScoringPolicy,
    **options: Any,
) -> list[TokenStatistics]:
    """Return the statistics of every text behind its dataset's shots, each prefix read once.

    Args:
        target: model and tokenizer.
        texts: what is scored.
        datasets: one a text.
        shots: by dataset.
        policy: as for the plain pass.
        **options: `batch_tokens`, `compile_mode` and `progress` of `prefixed_statistics`.
    """
    from detect.engine.forward_pass import prefixed_statistics
    from detect.engine.prefix import shared_prefix

    found = [unscored(NO_SHOT)] * len(texts)
    done = 0
    on_progress = options.pop("progress", None)
    for name in sorted(set(datasets)):
        rows = [row for row, dataset in enumerate(datasets) if dataset == name]
        if name in shots and shots[name].texts:
            prefix = shared_prefix(target, shots[name].ids)
            made = prefixed_statistics(
                target, [texts[row] for row in rows], policy, prefix, **options
            )
            for row, one in zip(rows, made, strict=True):
                found[row] = one
        done += len(rows)
        if on_progress is not None:
            on_progress(done, len(texts))
    return found


def scored_as_members(shots: Shots, groups: Sequence[str]) -> Shots:
    """Return the shots with the groups of the rows that they are."""
    return replace(shots, groups=tuple(dict.fromkeys(groups)))
