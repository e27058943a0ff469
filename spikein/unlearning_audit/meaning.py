"""How alike continuations are to the truth in meaning: by embeddings, and by a judge.

Both are asked for by name. The judge's texts leave this machine; what it costs is in its notes.
What can be known to be missing is refused before any model is asked; where one of them fails later,
its column stays null, and a note says so: what the models wrote is not lost.
"""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from detect.score_file.evidence.provider import Progress
from detect.score_file.served import REPLIES_FILE, default_cache
from inject.errors import InputError
from inject.secrets import masked
from spikein.unlearning_audit.request import AuditSettings, Judge


def check_meaning(settings: AuditSettings) -> None:
    """Refuse an embedder or a judge that cannot be used, before anything is asked.

    Raises:
        InputError: no such model; sentence-transformers is not installed; the environment variable
            of the judge's key is not set.
    """
    if settings.judge is not None:
        settings.judge.server().key()
    if settings.embeddings is not None:
        from analysis.similarity.embeddings import find_embedder

        find_embedder(settings.embeddings)


def with_meaning(
    settings: AuditSettings, table: pa.Table, rests: Mapping[int, str], progress: Progress
) -> tuple[pa.Table, tuple[str, ...]]:
    """Fill the columns `embedding` and `judge` of continuations, as far as they were asked for.

    Args:
        settings: of the audit.
        table: continuations.
        rests: the true continuation of each chunk.
        progress: called with what is being done, requests done and in all.

    Returns:
        The table, and what to know of it: also why a column stayed null.
    """
    written = table["text"].to_pylist()
    truths = [rests[chunk].strip() for chunk in table["chunk"].to_pylist()]
    notes: list[str] = []
    if settings.embeddings is not None and written:
        try:
            likeness, remarks = _embedded(settings, settings.embeddings, written, truths)
            table = _with(table, "embedding", likeness)
            notes += remarks
        except InputError as error:
            notes.append(f"THERE IS NO SIMILARITY BY EMBEDDINGS: {error}")
    if settings.judge is not None and written:
        try:
            scores, remarks = _judged(settings.judge, written, truths, progress)
            table = _with(table, "judge", scores)
            notes += remarks
        except InputError as error:
            notes.append(
                f"THE JUDGE FAILED, and its scores are left out: {masked(str(error))} The same "
                "audit again asks it for what it has not yet replied."
            )
    return table, tuple(notes)


def _embedded(
    settings: AuditSettings, model: str, written: list[str], truths: list[str]
) -> tuple[list[float], list[str]]:
    from analysis.similarity.embeddings import Embedder

    embedder = Embedder(model, device="cpu" if settings.device == "auto" else settings.device)
    found = embedder.similarities(written, truths)
    if not embedder.cut:
        return found, []
    return found, [
        f"{embedder.cut:,} texts were longer than the {embedder.longest} tokens that {model} "
        "reads, and were compared by their beginnings"
    ]


def _judged(
    given: Judge, written: list[str], truths: list[str], progress: Progress
) -> tuple[list[float | None], list[str]]:
    from contextlib import closing

    from analysis.similarity.judge import Judge as Rater
    from analysis.similarity.judge import Pair

    folder = Path(given.cache).expanduser() if given.cache else default_cache()
    with closing(Rater(given.server(), cache=folder / REPLIES_FILE)) as rater:
        found = rater.rate(
            [Pair(truth, text) for truth, text in zip(truths, written, strict=True)],
            progress=lambda done, total: progress("the judge rates", done, total),
        )
        notes = list(rater.notes())
    without = sum(one.score is None for one in found)
    if without:
        notes.append(f"{without:,} of {len(found):,} replies of the judge hold no score")
    return [None if one.score is None else float(one.score) for one in found], notes


def _with(table: pa.Table, name: str, values: list[float] | list[float | None]) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, pa.array(values, pa.float64()))
