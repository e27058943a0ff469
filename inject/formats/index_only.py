"""A corpus known by its index alone, for planning: its length and its documents, no tokens.

From an `.idx` of Megatron-LM without its `.bin`, or a short JSON or YAML file:

    tokens: 1_000_000_000_000
    documents: starts.npy          # int64 document starts, or a list of them; may be left out

Nothing is read but the index; document starts are computed when they are first asked for.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from inject.errors import InputError
from inject.formats.layout import I64, ascending
from inject.formats.megatron import MegatronIndex
from inject.model_folder import inside
from inject.reading.rows import content_digest
from inject.settings import Settings

_FORM = "a mapping with `tokens` (a number) and, if known, `documents`"


class IndexOnlyImport(Settings):
    """A corpus that is described by an index and is not here; it can be planned for only."""

    kind: Literal["index_only"]
    """`index_only`."""
    path: Annotated[str, Field(min_length=1)]
    """An `.idx` file of Megatron-LM, or a `.json` or `.yaml` file with `tokens` and perhaps
    `documents` (a list of document starts, or the name of an `.npy` file of them)."""

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return f"described {self.path}"

    def identity(self) -> dict[str, Any]:
        """Return the digests of the index and of the file of document starts it names."""
        path = self._file()
        files = [content_digest(path)]
        if path.suffix != ".idx":
            documents = _description(path).get("documents")
            if isinstance(documents, str):
                where = inside(path.parent, documents, where=f"{path}: documents")
                files.append(content_digest(where))
        return {"kind": self.kind, "files": files}

    def source(self) -> "IndexOnlySource":
        """Open the index.

        Raises:
            InputError: it is missing, damaged, or not of the form that is asked for.
        """
        path = self._file()
        if path.suffix == ".idx":
            index = MegatronIndex.open(path)
            return IndexOnlySource(
                index.tokens,
                lambda: np.concatenate(list(index.document_starts())),
                where=str(path),
                knows_documents=True,
            )
        return _described(path)

    def _file(self) -> Path:
        path = Path(self.path).expanduser()
        if path.suffix not in (".idx", ".json", ".yaml", ".yml"):
            raise InputError(
                "not an index", where=self.path, allowed="an .idx, .json or .yaml file"
            )
        if not path.is_file():
            raise InputError("no such file", where=self.path)
        return path


class IndexOnlySource:
    """A source of tokens (`inject.stream.view.TokenSource`) that knows all but the tokens.

    Args:
        n_tokens: length of the stream.
        starts: gives the document starts; called once, when they are first asked for.
        where: the index, for messages.
        knows_documents: False where the stream counts as one document for want of better.
    """

    def __init__(
        self, n_tokens: int, starts: Callable[[], I64], *, where: str, knows_documents: bool
    ) -> None:
        self.n_tokens = n_tokens
        self.knows_documents = knows_documents
        self._starts = starts
        self._where = where

    @cached_property
    def doc_starts(self) -> I64:
        """Ascending positions at which documents start; the first is 0."""
        return self._starts()

    def read(self, start: int, stop: int) -> I64:
        """Refuse: there are no tokens here.

        Raises:
            InputError: always.
        """
        raise InputError(
            f"tokens {start:,} to {stop:,} were asked for, but the corpus is only described",
            where=self._where,
            hint="It can be planned for (`spikein plan`); to run, import the token files.",
        )


def _described(path: Path) -> IndexOnlySource:
    values = _description(path)
    tokens, documents = values["tokens"], values.get("documents")
    if documents is None:
        only = np.zeros(1, dtype=np.int64)
        return IndexOnlySource(tokens, lambda: only, where=str(path), knows_documents=False)
    if isinstance(documents, str):
        where = inside(path.parent, documents, where=f"{path}: documents")
        try:
            starts = np.load(where, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"cannot be read ({error})", where=str(where)) from error
    else:
        where, starts = path, _integers(documents)
    fits = starts.ndim == 1 and starts.dtype == np.int64 and len(starts) and starts[0] == 0
    if not fits or not ascending(starts) or starts[-1] >= tokens:
        raise InputError(
            f"the document starts do not fit a stream of {tokens:,} tokens",
            where=str(where),
            allowed="int64 positions that ascend from 0 and lie within the stream",
        )
    return IndexOnlySource(tokens, lambda: starts, where=str(path), knows_documents=True)


def _integers(values: list[Any]) -> I64:
    plain = all(type(value) is int and abs(value) < 2**63 for value in values)
    return np.array(values if plain else [], dtype=np.int64)


def _description(path: Path) -> dict[str, Any]:
    try:
        values = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), allowed=_FORM) from error
    if not isinstance(values, dict) or not set(values) <= {"tokens", "documents"}:
        raise InputError("not a description of a corpus", where=str(path), allowed=_FORM)
    tokens, documents = values.get("tokens"), values.get("documents")
    if type(tokens) is not int or tokens < 1:
        raise InputError(f"tokens: {tokens!r}", where=str(path), allowed="a number of 1 or more")
    if not (documents is None or isinstance(documents, str | list)):
        raise InputError(
            f"documents: {documents!r}",
            where=str(path),
            allowed="a list of document starts, or the name of an .npy file of them",
        )
    return values
