"""The wheel, and a trial without its clone.

It is built from the source distribution, so that both are complete. The trial follows a newcomer in
an empty folder with the installed command `spikein`: a first experiment file, checked and planned,
a run, and detectors judged on it. The clone is not on the path of these processes.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from inject.errors import SpikeinError

_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
_ROWS = "text,label\nA text that was never inserted into a corpus.,0\nAnother one of that kind.,0\n"


class CommandFailed(SpikeinError):
    """A command of the release ended with an error; the message contains its output."""

    exit_code = 1


def run(*command: object, folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command in a folder; return its output.

    Args:
        command: the program and its arguments.
        folder: the working directory.
        environment: variables instead of this process's.

    Raises:
        CommandFailed: The command ended with an error.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        line = " ".join(words)
        raise CommandFailed(f"$ {line}\n{done.stdout}\nIt ended with exit code {done.returncode}.")
    return done.stdout


def build(tree: Path, out: Path) -> Path:
    """Build the source distribution of a tree, and the wheel from it; return the wheel.

    The builder is this environment's, and no network is used.

    Args:
        tree: a copy of the repository; it takes the builder's files.
        out: the folder for both, without other files.
    """
    run(sys.executable, "-c", _SDIST, out, folder=tree)
    (archive,) = out.glob("spikein-*.tar.gz")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index")
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(archive) as opened:
        opened.extractall(unpacked, filter="data")
        source = Path(unpacked) / archive.name.removesuffix(".tar.gz")
        run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", out, source, folder=tree)
    (wheel,) = out.glob("spikein-*.whl")
    return wheel


def install(wheel: Path, environment: Path, *, constraints: Path | None) -> Path:
    """Make an environment with the wheel and its requirements; return its command `spikein`.

    Args:
        wheel: the file.
        environment: the folder of the new environment.
        constraints: pins what comes from the package index; None lends the libraries of this
            process's environment, without its own spikein.
    """
    pip = (environment / "bin" / "python", "-m", "pip", "install", "--quiet")
    away = _away()
    make = (sys.executable, "-m", "venv", environment)
    if constraints:
        run(*make, folder=wheel.parent)
        run(*pip, "--constraint", constraints, wheel, folder=wheel.parent, environment=away)
    else:
        run(*make, "--without-pip", folder=wheel.parent)
        # A line of a .pth file adds a folder; the .pth files in there, such as that of an editable
        # spikein, are not read.
        lent = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
        places = {"base": str(environment), "platbase": str(environment)}
        own = Path(sysconfig.get_path("purelib", "venv", places))
        (own / "lent.pth").write_text("\n".join(lent), encoding="utf-8")
        options = ("--no-deps", "--no-index", "--no-compile", "--ignore-installed")
        run(*pip, *options, wheel, folder=wheel.parent, environment=away)
    return environment / "bin" / "spikein"


def try_out(spikein: Path, folder: Path, overrides: Sequence[str] = ()) -> Iterator[str]:
    """Use an installed spikein as a newcomer does; yield what each command prints.

    Args:
        spikein: the command.
        folder: an empty folder; takes the run, its store and the caches.
        overrides: of the quickstart and of the file to start from, such as smaller numbers.

    Raises:
        CommandFailed: a command ended with an error.
    """
    (folder / "rows.csv").write_text(_ROWS, encoding="utf-8")
    for command in (
        ("--version",),
        ("presets",),
        ("init", "mine"),
        ("init", "--detector", "mine.py"),
        # DeepSpeed's settings are files of the wheel that training reads.
        (
            "check",
            "mine.yaml",
            "training_runtime.engine=deepspeed",
            "training_runtime.processes=2",
            *overrides,
        ),
        ("plan", "quickstart", "--no-time-training", *overrides),
        ("run", "quickstart", *overrides),
        ("validate", "mine.py:score", "runs/quickstart"),
        ("detect", "--model", "BASE", "--examples", "rows.csv", "--detectors", "loss,zlib"),
        ("datasets",),
    ):
        # The base model is there once the run is.
        base = next((folder / "store" / "model").glob("base-*"), "BASE")
        words = [base if word == "BASE" else word for word in command]
        own = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "200"}
        yield run(spikein, *words, folder=folder, environment=_away() | own)


def _away() -> dict[str, str]:
    """Return this process's variables without a way to the clone."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
