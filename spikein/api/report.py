"""Render the page of a finished run again, only from the store."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path

from inject.errors import InputError
from inject.files import write_text
from inject.verified_files import file_digests
from spikein.api.run import publish
from spikein.config.load import read_experiment
from spikein.executors import InProcess
from spikein.pipeline.build_graph import build_graph
from spikein.pipeline.graph import Planned, plan
from spikein.progress import Progress
from spikein.runs.folder import numbered_run
from spikein.runs.publish import PAGE, fill_run
from spikein.runs.record import EXPERIMENT, checked_record, read_record, resolve_places
from spikein.store.filesystem import STORE_OPTION, check_file, check_folder, writing
from spikein.store.store import Store


def render_report(
    folder: Path,
    *,
    store_root: Path | None = None,
    show_protected: bool = False,
    out: Path | None = None,
) -> Path:
    """Render the page of a finished run again, only from the store.

    Args:
        folder: the run's folder.
        store_root: the folder of artifacts; None for the one that the run remembers.
        show_protected: show the texts of protected datasets in the page.
        out: a file for the page; None publishes a new run if the page differs.

    Returns:
        The page.

    Raises:
        InputError: when the store is not found, or lacks a step that would have to run.
    """
    started = time.monotonic()
    folder = numbered_run(Path(os.path.abspath(folder)))
    record = read_record(folder)
    store_folder, begun = resolve_places(folder, record)
    if out is not None:
        out = Path(os.path.abspath(out))
        check_file(out)
    root = store_root or store_folder
    if root is None:
        raise InputError(
            "the store that the run was made from is not found",
            where=str(folder),
            hint=f"Give its folder by {STORE_OPTION}.",
        )
    check_folder(root, STORE_OPTION)
    checked_record(folder, EXPERIMENT)
    if not root.is_dir():
        raise InputError(
            "there is no such folder, so no store either",
            where=str(root),
            hint=f"Give the folder of the run's store by {STORE_OPTION}.",
        )
    store = Store(root.absolute())
    with store.in_use(required=False), _work_inside(begun, folder):
        experiment_graph = build_graph(read_experiment(folder / EXPERIMENT))
        planned = plan(experiment_graph.graph, store)
        _require_whole(planned, store, folder, begun)
        report = InProcess().run(experiment_graph.graph, store, Progress())
        if out or (folder.parent.name, folder.name.isdecimal()) != (record.name, True):
            with tempfile.TemporaryDirectory() as made:
                fill_run(
                    Path(made),
                    experiment_graph,
                    report,
                    show_protected=show_protected,
                    page_alone=out is not None,
                )
                return _copy_page(Path(made), out) if out else _same_page(Path(made), folder)
        with writing(folder.parent.parent, "Give a file for the page by --out.", "the run's page"):
            return publish(
                experiment_graph,
                report,
                store.root,
                folder.parent,
                started,
                show_protected=show_protected,
            ).report


@contextmanager
def _work_inside(start_folder: Path, folder: Path) -> Iterator[None]:
    """Work in the folder that a run was started from: paths in its experiment are relative to it.

    Raises:
        InputError: when it is gone.
    """
    if not start_folder.is_dir():
        raise InputError(
            f"the folder that the run was started from is gone: {start_folder}",
            where=str(folder),
            hint="Its data must be there to be checked; put it back, or run the experiment again.",
        )
    with chdir(start_folder):
        try:
            yield
        except InputError as error:
            record = read_record(folder)
            if not Path(record.started_in.absolute).is_dir():
                error.add_note(
                    f"The run was started in {record.started_in.absolute}, which is gone; paths "
                    f"were looked up in {start_folder}."
                )
            raise


def _same_page(made: Path, folder: Path) -> Path:
    """Return the page of a run that was moved away from its siblings, if it is unchanged.

    Raises:
        InputError: when the page would differ, since a run never changes.
    """
    if file_digests(made, [PAGE])[PAGE] == read_record(folder).digests.get(PAGE):
        return folder / PAGE
    raise InputError(
        "the page would differ now, and a run's folder never changes",
        where=str(folder),
        hint="Give a file for the page by --out.",
    )


def _copy_page(made: Path, out: Path) -> Path:
    with writing(out.parent, "Give another file by --out.", "the page"):
        write_text(out, (made / PAGE).read_text(encoding="utf-8"))
    return out


def _require_whole(planned: Sequence[Planned], store: Store, folder: Path, begun: Path) -> None:
    """Refuse to render from damaged or missing inputs.

    Raises:
        InputError: naming the file, or the first step, and the command that repairs it.
    """
    again = f"spikein run {folder / EXPERIMENT} (in {begun})"
    for entry in planned:
        if entry.problem is not None:
            raise InputError(
                entry.problem.problem, where=entry.problem.where, hint=f"Run it again: {again}"
            )
    lacking = [entry.step.name for entry in planned if entry.state not in ("stored", "unneeded")]
    if lacking:
        raise InputError(
            f"the store {store.root} lacks {len(lacking)} of the steps that its experiment now "
            f"requires (the first: {lacking[0]}): artifacts were removed, or data, libraries or "
            "the code of spikein changed since",
            where=str(folder),
            hint=f"The original page is {folder / PAGE}. To build it again: {again}",
        )
