"""Files that come with spikein, known by name: experiments and model shapes in `configs/`.

A text is a *name* when it has no folder and does not end in `.yaml` or `.yml`; anything else is a
path. A name always means the shipped file, so that it means the same in every folder; a file of
one's own is given by its path, `quickstart.yaml`. Only if nothing of that name is shipped is a name
tried as a path. A wheel has `configs/` in this folder; a clone, and so an editable installation,
has it next to the packages.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inject.errors import InputError, unknown_name

_PACKAGE = Path(__file__).resolve().parent
# Next to the packages of a wheel there may be a foreign `configs`.
CONFIGS = next(
    (folder / "configs" for folder in (_PACKAGE, _PACKAGE.parent) if (folder / "configs").is_dir()),
    _PACKAGE / "configs",
)
"""The folder of all shipped files."""

_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The shipped files of one kind."""

    kind: str
    """The kind of a file, for messages: `experiment`, `model shape`."""
    folders: Sequence[str]
    """Their folders, below `CONFIGS`."""
    only: frozenset[str] | None = None
    """The names that are of this kind; None: all but `without`."""
    without: frozenset[str] = frozenset()
    """Names there that are of another kind."""

    def files(self) -> dict[str, Path]:
        """Return the shipped files by their names, sorted."""
        paths = [path for folder in self.folders for path in (CONFIGS / folder).glob("*.yaml")]
        return {
            path.stem: path
            for path in sorted(paths, key=lambda path: path.stem)
            if path.stem not in self.without and (self.only is None or path.stem in self.only)
        }

    def find(self, text: str | Path, *, folder: Path | None = None) -> Path:
        """Return the file that a name or a path means.

        Args:
            text: the name or path.
            folder: start of a relative path; None for the working directory.

        Raises:
            InputError: a name that is not shipped, or a missing file.
        """
        path = (folder or Path()) / os.path.expanduser(text)
        files = self.files()
        if is_name(text):
            if shipped := files.get(str(text)):
                return shipped
            if _may_exist(path) and path.is_file():
                return path
        # A name that no file can have is not a folder either, and not an error.
        if os.path.isdir(path):
            raise InputError(f"is a folder; an {self.kind} is a file", where=str(path))
        if is_name(text):
            raise self._no_name(str(text), path, files)
        if not _may_exist(path):
            raise self._no_file(path, files)
        return path

    def clash(self, text: str | Path, *, folder: Path | None = None) -> str | None:
        """Return a sentence if a name means a shipped file and a local one has the same name."""
        shipped = self.files().get(str(text)) if is_name(text) else None
        if shipped is None:
            return None
        for ending in ("", *_ENDINGS):
            local = (folder or Path()) / f"{text}{ending}"
            if local.is_file() and not local.samefile(shipped):
                return (
                    f"{str(text)!r} means the {self.kind} that comes with spikein ({shipped}). "
                    f"{local} is another file; give its path to use it."
                )
        return None

    def _no_name(self, name: str, path: Path, names: Iterable[str]) -> InputError:
        extension = next(
            (end for end in _ENDINGS if path.with_name(path.name + end).is_file()), None
        )
        hint = f"For a file of your own give its path, such as {name}.yaml."
        if extension:
            hint = f"There is a file {path}{extension}: give its whole name."
        elif not CONFIGS.is_dir():
            hint = (
                f"Shipped files are expected in {CONFIGS}, which is not there: install spikein "
                "again, from its wheel or, with `pip install -e`, from its clone."
            )
        return unknown_name(
            f"no {self.kind} of this name comes with spikein", name, names, where=name, hint=hint
        )

    def _no_file(self, path: Path, names: Iterable[str]) -> InputError:
        near = (
            sorted(file.name for file in path.parent.glob("*.y*ml")) if path.parent.is_dir() else []
        )
        return unknown_name(
            "there is no such file",
            path.name,
            near,
            where=str(path),
            hint=(
                f"Use the name {path.stem} for the {self.kind} that comes with spikein."
                if path.stem in names
                else f"Names that spikein knows: {', '.join(names)}."
            ),
        )


def _may_exist(path: Path) -> bool:
    """Return whether the file exists, or its existence is unknown; then reading it reports why."""
    try:
        return path.exists()
    except OSError:
        return True


def is_name(text: str | Path) -> bool:
    """Return whether a text is a name, not a path."""
    text = str(text)
    return bool(text) and not text.endswith(_ENDINGS) and not set("/\\") & set(text)


_AUDITS = frozenset({"unlearning-whp"})
EXPERIMENTS = Catalogue(
    kind="experiment", folders=("", "studies", "small", "paper", "gpu"), without=_AUDITS
)
AUDITS = Catalogue(kind="audit of an unlearned model", folders=("paper",), only=_AUDITS)
SHAPES = Catalogue(kind="model shape", folders=("models",))
