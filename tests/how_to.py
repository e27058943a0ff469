"""Running a how-to page: writing its files and running its commands.

A page is Markdown. A fenced block with `title="PATH"` is a complete file; a `console` block
contains commands after `$ `, each followed by its output: the lines shown must be in the output, in
that order (`…` stands for any text). A page starts in an empty folder; the comment
`<!-- folder: repository -->` changes to a copy of the repository, `<!-- folder: yours -->` back,
and `<!-- model: PATH -->` gives the path of the reader's model (here a tiny one).
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDERS = ("yours", "repository")
_PARTS = re.compile(
    r"^<!-- (?P<comment>folder|model): (?P<value>[\w/-]+) -->$"
    r"|^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One step of a page."""

    folder: str
    """`yours` or `repository`."""
    title: str | None
    """The file that it is; None for commands."""
    text: str


def models(page: str) -> list[str]:
    """Paths of the reader's model, in the reader's folder."""
    return [match["value"] for match in _PARTS.finditer(page) if match["comment"] == "model"]


class Command(NamedTuple):
    """One command, and its documented output lines."""

    line: str
    shown: tuple[str, ...]


def blocks(page: str) -> list[Block]:
    """The files and commands of a page, in order; other blocks are for reading only."""
    page_blocks, folder = [], "yours"
    for match in _PARTS.finditer(page):
        if match["comment"] == "folder":
            folder = match["value"]
            assert folder in FOLDERS, f"no folder is called {folder!r}"
        elif match["title"] or match["language"] == "console":
            page_blocks.append(Block(folder, match["title"], match["text"]))
    return page_blocks


def commands(text: str) -> list[Command]:
    """The commands of a `console` block."""
    block_commands: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            block_commands.append(Command(line[2:], ()))
        elif line.strip():
            assert block_commands, f"a line before the first command: {line!r}"
            block_commands[-1] = Command(block_commands[-1].line, (*block_commands[-1].shown, line))
    return block_commands


class Reader:
    """A reader who follows a page."""

    def __init__(self, folder: Path) -> None:
        self.folders = {name: folder / name for name in FOLDERS}
        self.folders["yours"].mkdir(parents=True)
        self._installed = folder / "installed"
        self._programs = folder / "bin"
        self._programs.mkdir()
        for name, call in {
            "spikein": "-m spikein.cli.main",
            "python": "",
            "pytest": "-m pytest -p no:cacheprovider",
            "ruff": "-m ruff",
            "mypy": "-m mypy",
            # A page installs into a separate folder, on top of this machine's packages.
            "pip": f"{Path(__file__).with_name('pip_into.py')} {self._installed}",
        }.items():
            program = self._programs / name
            program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {call} "$@"\n')
            program.chmod(0o755)

    def follow(self, page: str, model: Path) -> None:
        """Write the files and run the commands of a page; `model` is what its readers have."""
        for place in models(page):
            shutil.copytree(model, self.folders["yours"] / place)
        for block in blocks(page):
            folder = self._enter(block.folder)
            if block.title is None:
                for command in commands(block.text):
                    self.run(command, folder)
            else:
                path = folder / block.title
                assert path.resolve().is_relative_to(folder.resolve()), block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")

    def run(self, command: Command, folder: Path) -> str:
        """Run one command; it must succeed and print the documented output."""
        package_root = folder if (folder / "spikein").is_dir() else REPOSITORY
        done = subprocess.run(
            command.line,
            shell=True,
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{self._programs}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": os.pathsep.join([str(package_root), str(self._installed)]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "COLUMNS": "200",
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=500,
        )
        assert done.returncode == 0, f"$ {command.line}\n{done.stdout}"
        missing = not_shown(command.shown, done.stdout)
        assert missing is None, f"$ {command.line}\nprints no {missing!r}:\n{done.stdout}"
        return done.stdout

    def _enter(self, name: str) -> Path:
        folder = self.folders[name]
        if not folder.exists():
            copy_repository(folder)
        return folder


def not_shown(expected: tuple[str, ...], output: str) -> str | None:
    """The first expected line that is missing from the output in order, or None."""
    remaining = " ".join(output.split())
    for line in expected:
        for words in (" ".join(part.split()) for part in line.split("…")):
            if words:
                if words not in remaining:
                    return line
                remaining = remaining.split(words, 1)[1]
    return None


def copy_repository(folder: Path) -> None:
    """Copy the current files of the repository and their compiled versions."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        source = REPOSITORY / name
        if source.is_file() and not name.startswith("docs/images/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)
            compiled = Path(cache_from_source(str(source)))
            if source.suffix == ".py" and compiled.is_file():
                # With its time, which must match the source's.
                (folder / name).parent.joinpath("__pycache__").mkdir(exist_ok=True)
                shutil.copy2(compiled, cache_from_source(str(folder / name)))
