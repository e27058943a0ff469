"""Exporting the stream of a finished run: which arm, out of which artifacts.

Everything is taken from the artifacts that the run's folder names, so the sources that the
corpus was made from need not be there any more.
"""

from collections.abc import Callable
from pathlib import Path

from analysis.arm import find_arm
from inject.corpus.corpus import corpus_tokenizer
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.formats.export import ExportFacts, ExportSettings, export_view
from inject.plan.plan import Plan, read_plan
from inject.stream.view import clean_view
from spikein.runs.arms import RunArm, open_run_corpus, run_arms
from spikein.store.filesystem import disk_full, free_space


def export_run(
    folder: Path,
    out: Path,
    settings: ExportSettings,
    *,
    arm: str | None = None,
    clean: bool = False,
    store: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ExportFacts:
    """Export the stream that one arm of a run was trained on.

    Args:
        folder: the run's folder.
        out: a new folder.
        settings: what is written.
        arm: the arm's label; may be left out where all arms share the stream.
        clean: export the clean twin: the same length, without any copy.
        store: the store's folder; None for the one that the run remembers.
        progress: called with the tokens done, and the tokens in all.

    Raises:
        InputError: no such arm, or several and none chosen; an artifact is missing or damaged; as
            `export_view`.
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
            out,
            settings,
            tokenizer=tokenizer,
            copies=None if clean else plan.copies,
            protected=frozenset() if clean else _protected(chosen.examples, plan),
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
    if not arms:
        raise InputError("the run has no trained arm", where=str(folder))
    if label is None:
        if len({key(arm) for arm in arms}) > 1:
            raise InputError(
                f"the run has {len(arms)} arms, which differ in their streams; choose one by --arm",
                where=str(folder),
                allowed=", ".join(map(repr, labels)),
            )
        return arms[0]
    return arms[labels.index(find_arm(label, labels, where=str(folder)))]


def _protected(examples: Path, plan: Plan) -> frozenset[str]:
    """Return the ids of protected examples, where there are copies at all."""
    if not len(plan.copies):
        return frozenset()
    pool = read_examples(examples)
    return frozenset(example.example_id for example in pool if example.protected)
