"""Build all compared files with the code on the path: `python -m scripts.goldens.build`.

Started by `scripts.goldens` once for each side, with the side's tree first on the path, so that one
script drives both. It uses only the command line, which stays stable when code moves.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from spikein.cli import main as cli


def build(files: Path, out: Path, experiments: Sequence[str]) -> None:
    """Run the experiments, one `detect` on a base model, and one `bundle` of the first experiment.

    Args:
        files: the folder of the experiment files and of the rows to detect.
        out: takes the store, the runs, the scores and the bundle.
        experiments: names of files.

    Raises:
        RuntimeError: a command failed.
    """
    places = ("--store", str(out / "store"), "--runs", str(out / "runs"))
    for name in experiments:
        file = str(files / f"{name}.yaml")
        # Each side has one core: both run at the same time.
        options = ["executor={kind: in-process}"]
        if name != "quickstart":
            options.append(f"folder={files}")
        command("run", file, *options, *places)
    (model, *_) = sorted((out / "store" / "model").glob("base-*"))
    detectors = "loss,zlib,lowercase,min_k,min_k_plus_plus,surp,dc_pdd"
    rows = str(files / "rows.jsonl")
    command(
        *("detect", "--model", str(model), "--examples", rows, f"frequency={rows}"),
        *("--detectors", detectors, "--out", str(out / "detect.parquet")),
    )
    bundle = ("--out", str(out / "packed.bundle"))
    command("bundle", experiments[0], *bundle, "--runs", str(out / "runs"))


def command(*arguments: str) -> None:
    """Run one command of spikein in this process.

    Raises:
        RuntimeError: when it fails; its output is above.
    """
    sys.argv = ["spikein", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{' '.join(sys.argv)} ended with {end.code}") from end


if __name__ == "__main__":
    tree, files, out = map(Path, sys.argv[1:4])
    if Path(cli.__file__).parents[2] != tree:
        sys.exit(f"{cli.__file__} would be compared, which is not of {tree}")
    build(files, out, sys.argv[4:])
