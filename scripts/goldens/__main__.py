"""`python -m scripts.goldens BEFORE [AFTER] [--reduced] [--keep FOLDER]`: did a number move?

BEFORE and AFTER are commits, or folders with a tree; by default, AFTER is this tree.
Both sides are built on this machine, side by side, each with its own tree on the path, a store and
runs of its own: the quickstart, twins, a trajectory, a reduced unlearning run, one `detect` and one
`bundle`; with --reduced only one small arm, `detect` and `bundle`. Then every table and weight is
compared to the last bit. Differences are printed by file and column, and the exit code is 1.

A side takes the experiment files of its own tree where it has them, else those of this one.
Ten minutes on two cores; one or two with --reduced.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from scripts.goldens.contents import Contents, contents

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
EXPERIMENTS = ("twins", "trajectory", "unlearning", "quickstart")
REDUCED = ("reduced",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build both sides and compare them; return 0 if they are equal."""
    parser = argparse.ArgumentParser(prog="python -m scripts.goldens", description=__doc__)
    parser.add_argument("before", help="a commit, or a folder with a tree")
    parser.add_argument("after", nargs="?", default=str(REPOSITORY), help="the same; this tree")
    parser.add_argument("--reduced", action="store_true", help="one small arm, detect and bundle")
    parser.add_argument("--keep", type=Path, help="an empty folder for the built files")
    options = parser.parse_args(arguments)
    experiments = REDUCED if options.reduced else EXPERIMENTS
    with ExitStack() as stack:
        work = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work = work.resolve()
        trees = [stack.enter_context(tree(name, work)) for name in (options.before, options.after)]
        sides = [work / "before", work / "after"]
        build_all(list(zip(trees, sides, strict=True)), experiments)
        before, after = map(contents, sides)
    lines = differences(before, after)
    for line in lines:
        print(line)
    print(
        f"{len(before)} files before, {len(after)} after: "
        f"{f'{len(lines)} differ' if lines else 'equal to the last bit'}."
    )
    return 1 if lines else 0


@contextmanager
def tree(name: str, work: Path) -> Iterator[Path]:
    """Yield a commit's tree as a temporary git worktree; a folder unchanged."""
    if Path(name).is_dir():
        yield Path(name).resolve()
        return
    git = ("git", "-C", str(REPOSITORY), "worktree")
    folder = work / f"tree-{name.replace('/', '-')}"
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), name], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def build_all(sides: Sequence[tuple[Path, Path]], experiments: Sequence[str]) -> None:
    """Build sides in parallel; each is a tree and its output folder.

    Raises:
        SystemExit: A side failed; the message gives its error.
    """
    with ExitStack() as stack:
        started = []
        for tree_, out in sides:
            files = experiment_files(tree_, out / "files")
            log = stack.enter_context((out / "log.txt").open("w"))
            environment = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **os.environ}
            environment["PYTHONPATH"] = str(tree_)
            # The cache of `detect`: a side does not reuse the other's.
            environment["XDG_CACHE_HOME"] = str(out / "cache")
            script = str(HERE / "build.py")
            # By its path, from another folder: only the side's tree is on the path.
            command = [sys.executable, "-P", script, *map(str, (tree_, files, out)), *experiments]
            process = subprocess.Popen(command, cwd=out, env=environment, stdout=log, stderr=log)
            stack.callback(process.kill)
            started.append((tree_, out, process))
        for tree_, out, process in started:
            if process.wait() != 0:
                log_tail = (out / "log.txt").read_text(errors="replace")[-3000:]
                sys.exit(f"{tree_} could not be built:\n{log_tail}")


def experiment_files(tree_: Path, folder: Path) -> Path:
    """Copy the experiment files of a side into a folder, and return it."""
    folder.mkdir(parents=True)
    own = tree_ / "scripts" / "goldens"
    goldens = own if own.is_dir() else HERE
    for path in [*goldens.glob("*.yaml"), goldens / "rows.jsonl"]:
        shutil.copyfile(path, folder / path.name)
    configs = (tree_ if goldens == own else REPOSITORY) / "configs"
    shutil.copyfile(configs / "quickstart.yaml", folder / "quickstart.yaml")
    return folder


def differences(before: Contents, after: Contents) -> list[str]:
    """Return a line for each file that differs, with its columns, or is on only one side."""
    lines = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key, []), after.get(key, [])
        if len(old) != len(new):
            lines.append(f"{key}: {len(old)} before, {len(new)} after")
            continue
        columns: set[str] = set()
        for earlier, other in zip(old, new, strict=True):
            names = earlier.keys() | other.keys()
            columns |= {name for name in names if earlier.get(name) != other.get(name)}
        if columns:
            lines.append(f"{key}: {', '.join(name or 'content' for name in sorted(columns))}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
