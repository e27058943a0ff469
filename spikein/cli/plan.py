"""`spikein plan`: what a run would do and cost, without doing it."""

from collections.abc import Iterable

from spikein.cli.options import STORE, ExperimentFile, Overrides, StoreFolder
from spikein.cli.output import Column, count, print_table, say


def plan(
    file: ExperimentFile,
    overrides: Overrides = None,
    store: StoreFolder = STORE,
) -> None:
    """Say what a run will do and what it will cost; run nothing.

    The whole file is checked, every combination of its sweep included.

    [bold]Examples[/]

      spikein plan configs/quickstart.yaml

      spikein plan my.yaml seeds=[0,1,2] corpus.tokens=2_000_000
    """
    from spikein.disk import human_bytes
    from spikein.progress import duration
    from spikein.run import plan_experiment

    result = plan_experiment(file, overrides or [], store_root=store)
    print_table(
        [
            Column("step", whole=True),
            Column("what"),
            Column("state", whole=True),
            Column("tokens", right=True),
            Column("FLOPs", right=True),
            Column("memory", right=True),
            Column("disk", right=True),
            Column("time", right=True),
        ],
        (
            (
                row.kind,
                row.label,
                "in the store" if row.stored else "to do",
                count(row.tokens),
                count(row.flops),
                human_bytes(row.memory_bytes) if row.memory_bytes is not None else "",
                human_bytes(row.disk_bytes) if row.disk_bytes is not None else "",
                duration(row.seconds) if row.seconds is not None else "",
            )
            for row in result.rows
        ),
    )
    todo = [row for row in result.rows if not row.stored]
    seconds = _sum(row.seconds for row in todo)
    disk = _sum(row.disk_bytes for row in todo)
    parts = [
        f"{result.name}: {result.arms} arms, {len(result.rows)} steps, {len(todo)} to do",
        f"about {duration(seconds)} on this machine" if seconds else "",
        f"about {human_bytes(disk)} on disk" if disk else "",
    ]
    say("; ".join(part for part in parts if part) + ". Nothing was run.")


def _sum(values: Iterable[float | None]) -> float:
    return sum(value for value in values if value is not None)
