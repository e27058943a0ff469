"""Background from the Hugging Face hub, streamed: nothing is downloaded that is not read.

The content cannot be hashed before it is read, so a hub source is identified by its commit.
The hub is asked once, with a timeout, before `datasets` is let loose with its long retries:
without a network the error comes in seconds. Documents come in the order of the data set.
"""

import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from inject.corpus.background.document import Document, Skipped, text_of
from inject.errors import InputError
from inject.offline import UNRESOLVED, note_unresolved
from inject.reading.rows import content_digest
from inject.settings import PositiveFloat, Settings

_TIMEOUT_SECONDS = 10.0
_LOCAL = "A local copy can be given instead: `{kind: files, path: ...}`."
_log = logging.getLogger(__name__)


class HubSource(Settings):
    """A data set of the hub by its id, streamed; or a local folder that `datasets` can load."""

    kind: Literal["hub"]
    """`hub`."""
    id: Annotated[str, Field(min_length=1)]
    """Id on the hub, such as `allenai/c4`; code of the repository is never executed."""
    config: str | None = None
    """Configuration (subset) of the data set, where it has several."""
    split: str = "train"
    """Which split is read."""
    field: str | None = None
    """The field that holds the text; found by its usual names (`text`, `content` …) if absent."""
    revision: str | None = None
    """Branch, tag or commit; the newest commit of the main branch if absent."""
    weight: PositiveFloat = 1.0
    """Share of this source in the bytes of the mixture, relative to the other weights."""

    finite: ClassVar[bool] = False

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return f"hub {self.id}" + (f" ({self.config})" if self.config else "")

    def identity(self) -> dict[str, Any]:
        """Return id, config, split, field and commit; a local folder by its content.

        Where the hub cannot be asked, the commit is `unresolved:REVISION`, with a warning.

        Raises:
            InputError: the hub was reached and has no such data set or revision.
        """
        common = {
            "kind": self.kind,
            "config": self.config,
            "split": self.split,
            "field": self.field,
        }
        folder = self._folder()
        if folder is not None:
            return {**common, "files": _folder_identity(folder)}
        try:
            commit = _commit(self.id, self.revision)
        except _Unreachable as error:
            commit = f"{UNRESOLVED}:{self.revision or 'main'}"
            if not note_unresolved(f"background {self.id}", str(error)):
                _log.warning(
                    "%s: the hub cannot be reached (%s); its revision stays unresolved, so results "
                    "made now are not known to belong to one commit",
                    self.label(),
                    error,
                )
        return {**common, "id": self.id, "commit": commit}

    def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
        """Yield one document for each row that has text, in the order of the data set.

        Raises:
            InputError: hub not reachable, no such data set, config or split, no text field.
        """
        skipped = skipped or Skipped()
        for number, values in enumerate(self._rows(), start=1):
            place = f"{self.id} ({self.split}):row {number}"
            text = text_of(values, self.field, place)
            if text is None:
                skipped.empty += 1
            else:
                yield Document(text, place)

    def _folder(self) -> Path | None:
        folder = Path(self.id).expanduser()
        return folder if folder.is_dir() else None

    def _rows(self) -> Iterator[dict[str, Any]]:
        import datasets

        folder = self._folder()
        try:
            name = str(folder) if folder else self.id
            revision = None if folder else _commit(self.id, self.revision)
            yield from datasets.load_dataset(
                name, self.config, split=self.split, streaming=True, revision=revision
            )
        except InputError:
            raise
        # `datasets` raises whatever its readers raise: pyarrow, JSON, network, OSError, ValueError.
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            raise InputError(
                f"cannot be read from the hub ({type(error).__name__}: {first}); tried "
                f"config {self.config!r}, split {self.split!r}, revision "
                f"{self.revision or 'main'!r}",
                where=self.id,
                hint=_LOCAL,
            ) from error


class _Unreachable(Exception):
    """The hub gave no answer."""


@lru_cache(maxsize=64)
def _commit(name: str, revision: str | None) -> str:
    """Return the commit that `revision` stands for.

    Raises:
        InputError: the hub answered: no such data set or revision, or no access to it.
        _Unreachable: no answer within the timeout, or offline mode.
    """
    if revision and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        info = HfApi().dataset_info(name, revision=revision, timeout=_TIMEOUT_SECONDS)
    except RevisionNotFoundError as error:
        raise InputError(f"the hub has no revision {revision!r} of it", where=name) from error
    except GatedRepoError as error:
        raise InputError(
            "the hub gives access to this data set only after its terms are accepted",
            where=name,
            hint=f"Accept them on its page and log in with `hf auth login`. {_LOCAL}",
        ) from error
    except RepositoryNotFoundError as error:
        raise InputError(
            "the hub has no such data set, or it is private", where=name, hint=_LOCAL
        ) from error
    except HFValidationError as error:
        raise InputError(
            "neither an id of the hub nor a folder here",
            where=name,
            allowed="ids such as 'owner/name'",
            hint=_LOCAL,
        ) from error
    # Network libraries share no base class of errors across versions of huggingface_hub.
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise _Unreachable(f"{type(error).__name__}: {first}") from error
    return str(info.sha)


def _folder_identity(folder: Path) -> list[dict[str, str]]:
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if not path.is_dir()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return [
        {"name": path.relative_to(folder).as_posix(), "sha256": content_digest(path)}
        for path in files
    ]
