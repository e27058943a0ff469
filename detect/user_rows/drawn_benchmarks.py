"""Benchmarks whose members were drawn: inserted in training, or trained on before a checkpoint.

Members and non-members come from one distribution, so `blind` should not separate them. Columns and
files are those that the authors document.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from detect.user_rows.benchmark import Benchmark, labelled
from detect.user_rows.id_columns import IdRows
from detect.user_rows.labelled_rows import LabelledRows, placed_rows
from detect.user_rows.row_settings import RowSettings, column_names
from inject.errors import InputError, first_names
from inject.examples.example import example_id

_TOAA = (
    "condition", "suffix_type", "n_suffix_tokens", "duplication", "input_ids", "suffix_start",
    "membership",
)  # fmt: skip
_SUFFIXES = ("plain", "rare", "random", "model_based")
_SIDES = {"member-": True, "nonmember-": False}
_NAMED = 40


class _Row(NamedTuple):
    """A row of a benchmark."""

    text: str
    member: bool
    subset: str
    part: str
    """As in `LabelledRows.parts`."""


def _rows_of(rows: Iterator[_Row], name: str, pattern: str, how: RowSettings) -> LabelledRows:
    """Return the rows of a subset, `limit` of each side."""
    if how.names_columns:
        raise InputError(f"the columns of {name} are known, and cannot be named", where=pattern)
    chosen: list[_Row] = []
    subsets: dict[str, None] = {}
    counts, limited = {True: 0, False: 0}, False
    for row in rows:
        subsets[row.subset] = None
        # Non-members without a part belong to every subset.
        if how.subset not in (None, row.subset) and row.part:
            continue
        if counts[row.member] == how.limit:
            limited = True
            continue
        counts[row.member] += 1
        chosen.append(row)
    if how.subset is not None and how.subset not in subsets:
        raise InputError(
            f"there is no subset {how.subset!r}",
            where=pattern,
            allowed=first_names(sorted(subsets), _NAMED),
        )
    lacking = [side for side, member in (("members", True), ("non-members", False))
               if not counts[member]]  # fmt: skip
    if lacking:
        raise InputError(f"the rows have no {' and no '.join(lacking)}", where=pattern)
    return LabelledRows(
        texts=[row.text for row in chosen],
        ids=[example_id(row.text) for row in chosen],
        labels=[row.member for row in chosen],
        groups=None,
        limited=limited,
        parts=[row.part for row in chosen],
    )


def _column(values: dict[str, Any], name: str, place: str, columns: tuple[str, ...]) -> Any:
    if name not in values:
        raise InputError(
            f"the row has no column {name!r}, only {column_names(values)}",
            where=place,
            allowed=f"the columns {', '.join(columns)}",
        )
    return values[name]


def _one_of(value: Any, allowed: tuple[Any, ...], name: str, place: str) -> Any:
    if value not in allowed or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}", where=place, allowed=", ".join(map(str, allowed)))
    return value


def _read_toaa(pattern: str, how: RowSettings) -> LabelledRows:
    """Read ids, from the suffix on if there is one (as the authors score them)."""
    id_rows = IdRows()

    def rows() -> Iterator[_Row]:
        for place, values in placed_rows(pattern, how):
            row = {name: _column(values, name, place, _TOAA) for name in _TOAA}
            _one_of(row["suffix_type"], _SUFFIXES, "suffix_type", place)
            _one_of(row["duplication"], (1, 4, 16), "duplication", place)
            member = _one_of(row["membership"], (0, 1), "membership", place)
            suffix = _one_of(row["n_suffix_tokens"], (0, 1, 8, 32), "n_suffix_tokens", place)
            start = row["suffix_start"] if suffix else None
            condition = str(row["condition"])
            chosen = how.subset in (None, condition)
            text = id_rows.text(row["input_ids"], start, place) if chosen else ""
            yield _Row(text, bool(member), condition, f"condition {condition}")

    read = _rows_of(rows(), "toaa", pattern, how)
    return read._replace(highest_id=id_rows.highest)


def _read_hubble(pattern: str, how: RowSettings) -> LabelledRows:
    """Read texts with their number of copies, in a column or in `meta`."""

    def rows() -> Iterator[_Row]:
        for place, values in placed_rows(pattern, how):
            text = _column(values, "text", place, ("text", "duplicates"))
            copies = values.get("duplicates", _of_meta(values.get("meta")))
            if not isinstance(text, str) or type(copies) is not int or copies < 0:
                raise InputError(
                    f"the row has the text {str(text)[:_NAMED]!r} and {copies!r} duplicates",
                    where=place,
                    allowed="a text, and a whole number from 0 on in duplicates or meta",
                )
            yield _Row(text, copies > 0, str(copies), f"{copies} copies" if copies else "")

    return _rows_of(rows(), "hubble", pattern, how)


def _of_meta(meta: Any) -> Any:
    """Return the `duplicates` of a column that is JSON; None if it has none."""
    try:
        facts = json.loads(meta) if isinstance(meta, str) else meta
    except ValueError:
        return None
    return facts.get("duplicates") if isinstance(facts, dict) else None


def _read_checkmia(pattern: str, how: RowSettings) -> LabelledRows:
    """Read ids; the name of a file is that of its split, which is the side."""
    id_rows = IdRows()

    def rows() -> Iterator[_Row]:
        for place, values in placed_rows(pattern, how):
            file = Path(place.rpartition(":")[0]).name
            side = next((side for side in _SIDES if file.startswith(side)), None)
            if side is None:
                raise InputError(
                    "the file's name does not begin with that of a split",
                    where=place,
                    allowed="files member-… and nonmember-…",
                )
            tokens = _column(values, "tokens", place, ("tokens", "text"))
            yield _Row(id_rows.text(tokens, None, place), _SIDES[side], "", "")

    read = _rows_of(rows(), "checkmia", pattern, how)
    return read._replace(highest_id=id_rows.highest, parts=None)


DRAWN = (
    Benchmark(
        name="toaa",
        summary="exact ids, inserted 1, 4 or 16 times or never (Bordt et al. 2026)",
        source="hub sbordt/TOAA-Membership-Inference, commit 01051ac (`spikein data fetch toaa`)",
        columns=", ".join(_TOAA),
        warning=(
            "members were inserted in the training of sbordt/OLMo-2-179M-Exp, and sbordt/OLMo-2-"
            "179M (reference=) saw no row. In `rare` conditions members share a rare token and "
            "non-members have others: a score without the reference model also measures the token"
        ),
        read=_read_toaa,
        hub="sbordt/TOAA-Membership-Inference",
        commit="01051ac",
        has_subsets=True,
    ),
    Benchmark(
        name="hubble",
        summary="passages with 0 to 256 copies (Wei et al. 2025)",
        source="hub allegrolab/passages_wikipedia, passages_wikipedia_nodup.jsonl.gz, and the like",
        columns="text, duplicates (or meta with duplicates)",
        warning=(
            "copies were inserted in the training of allegrolab/hubble-1b-100b_toks-perturbed-hf "
            "and other perturbed models; the standard model of the same size saw none (reference=)"
        ),
        read=_read_hubble,
        has_subsets=True,
    ),
    Benchmark(
        name="checkmia",
        summary="exact ids before and after a checkpoint of Pythia or OLMo (Wang et al. 2026)",
        source="hub jeffreygwang/pythia_dedupe_mia_… and mfli314/OLMo-7B-mia-…, files member-… and "
        "nonmember-…",
        columns="tokens, text",
        warning=(
            "members were trained on before a checkpoint, non-members after it: score that "
            "checkpoint (revision=), not the final model"
        ),
        read=_read_checkmia,
    ),
    Benchmark(
        name="olmomia",
        summary="members of steps 0 to 100k, non-members of steps 400k to 450k (Kim et al. 2024)",
        source="built by github gyuwankim/em-mia, folder olmomia",
        columns="input, label",
        warning=(
            "score a checkpoint of allenai/OLMo-7B between steps 100k and 400k. The settings easy, "
            "medium and hard are clusters of texts, which `blind` may separate"
        ),
        read=lambda pattern, how: labelled(pattern, how, "olmomia"),
    ),
)
