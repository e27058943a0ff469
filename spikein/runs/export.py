"""Exporting the stream of a finished run: which arm, out of which artifacts.

Everything is taken from the artifacts that the run's folder names, so the sources that the
corpus was made from need not be there any more.
"""

from collections.abc import Callable
from pathlib import Path

from inject.corpus.build import corpus_tokenizer
from inject.errors import InputError, did_you_mean
from inject.examples.example import read_examples
from inject.formats import ExportFacts, Format, RowKind, export_view
from inject.plan.plan import Plan, read_plan
from inject.stream.view import clean_view
from spikein.runs.arms import RunArm, open_run_corpus, run_arms
from spikein.store.filesystem import disk_full, free_space


def export_run(
    folder: Path,
    out: Path,
    *,
    format: Format,
    arm: str | None = None,
    rows: RowKind = "documents",
    clean: bool = False,
    show_protected: bool = False,
    store: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ExportFacts:
    """Export the stream that one arm of a run was trained on.

    Args:
        folder: the run's folder.
        out: a new folder.
        format: of the files.
        arm: the arm's label; may be left out where all arms share the stream.
        rows: whether a row is a document or a window.
        clean: export the clean twin: the same length, without any copy.
        show_protected: export although there are copies of protected examples.
        store: the store's folder; None for the one that the run remembers.
        progress: told tokens done, and tokens in all.

    Raises:
        InputError: no such arm, or several and none chosen; an artifact is gone; as `export_view`.
    """
    chosen = _chosen(run_arms(folder, store), arm, folder, key=_clean_stream if clean else _stream)
    corpus = open_run_corpus(folder, chosen.corpus)
    tokenizer = corpus_tokenizer(chosen.corpus)
    plan = read_plan(chosen.plan)
    budget = plan.facts.budget
    if clean:
        view = clean_view(corpus, tokens=budget, context=plan.facts.context)
    else:
        view = plan.view(corpus)
    try:
        return export_view(
            view,
            format,
            out,
            tokenizer=tokenizer,
            copies=None if clean else plan.copies,
            rows=rows,
            protected=frozenset() if clean else _protected(chosen.examples, plan),
            show_protected=show_protected,
            progress=None if progress is None else lambda done: progress(done, budget),
        )
    except Exception as error:
        if not disk_full(error):
            raise
        raise InputError(
            f"the disk is full: {free_space(out.parent)} left",
            where=str(out),
            hint="Free some space, or give another --out; nothing was left behind.",
        ) from error


def _stream(arm: RunArm) -> tuple[object, ...]:
    return (arm.plan,)


def _clean_stream(arm: RunArm) -> tuple[object, ...]:
    facts = read_plan(arm.plan).facts
    return arm.corpus, facts.budget, facts.context


def _chosen(
    arms: list[RunArm],
    label: str | None,
    folder: Path,
    *,
    key: Callable[[RunArm], tuple[object, ...]],
) -> RunArm:
    """Return the arm of this label; without one any, where `key` is the same for all."""
    labels = [arm.label for arm in arms]
    listed = ", ".join(f"'{name}'" for name in labels)
    if not arms:
        raise InputError("the run has no trained arm", where=str(folder))
    if label is None:
        if len({key(arm) for arm in arms}) > 1:
            raise InputError(
                f"the run has {len(arms)} arms, which differ in their streams; choose one by --arm",
                where=str(folder),
                allowed=listed,
            )
        return arms[0]
    if label not in labels:
        raise InputError(
            f"no arm is called {label!r}.{did_you_mean(label, labels)}",
            where=str(folder),
            allowed=listed,
        )
    return arms[labels.index(label)]


def _protected(examples: Path, plan: Plan) -> frozenset[str]:
    """Return the ids of protected examples, where there are copies at all."""
    if not len(plan.copies):
        return frozenset()
    pool = read_examples(examples)
    return frozenset(example.example_id for example in pool if example.protected)
