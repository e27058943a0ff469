"""Background from the Hugging Face hub, streamed: nothing is downloaded that is not read.

The content cannot be hashed before it is read, so a hub source is identified by its commit, which
is looked up (`inject.hub.resolver`) before `datasets` starts with its long retries: without a
network the error comes in seconds. Documents come in the order of the dataset.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from inject.corpus.background.document import Document, Skipped, row_documents
from inject.hub.dataset_rows import HubDataset, hub_errors, load_hub_dataset
from inject.hub.resolver import identity_commit
from inject.reading.rows import content_digest
from inject.settings import PositiveFloat, Settings

_LOCAL = "A local copy can be given instead: `{kind: files, path: ...}`."


class HubSource(Settings):
    """A dataset of the hub by its id, streamed; or a local folder that `datasets` can load."""

    kind: Literal["hub"]
    """`hub`."""
    id: Annotated[str, Field(min_length=1)]
    """Hub id, such as `allenai/c4`; code of the repository is never executed."""
    config: str | None = None
    """Configuration (subset) of the dataset, if it has several."""
    split: str = "train"
    """Split to read."""
    field: str | None = None
    """Field with the text; by default its usual names (`text`, `content` …)."""
    revision: str | None = None
    """Branch, tag or commit on the hub; by default the newest."""
    weight: PositiveFloat = 1.0
    """Relative share of this source in the bytes of the mixture."""

    finite: ClassVar[bool] = False

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return f"hub {self.id}" + (f" ({self.config})" if self.config else "")

    def identity(self) -> dict[str, Any]:
        """Return id, config, split, field and commit; a local folder by its content.

        Raises:
            Unreachable: the hub gives no answer; a plan continues (`inject.hub.resolver`).
            InputError: no such dataset or revision on the hub, which was reached.
        """
        common = self.model_dump(include={"kind", "config", "split", "field"})
        folder = self._folder()
        if folder is not None:
            return {**common, "files": _folder_identity(folder)}
        commit = identity_commit("dataset", self.id, self.revision, label=f"background {self.id}")
        return {**common, "id": self.id, "commit": commit}

    def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
        """Yield one document for each row that has text, in the order of the dataset.

        Raises:
            InputError: hub not reachable, no such dataset, config or split, no text field.
        """
        rows = (
            (f"{self.id} ({self.split}):row {number}", values)
            for number, values in enumerate(self._rows(), start=1)
        )
        yield from row_documents(rows, self.field, skipped)

    def _folder(self) -> Path | None:
        folder = Path(self.id).expanduser()
        return folder if folder.is_dir() else None

    def _rows(self) -> Iterator[dict[str, Any]]:
        folder = self._folder()
        tried = (
            f"config {self.config!r}, split {self.split!r}, revision {self.revision or 'main'!r}"
        )
        with hub_errors(self.id, hint=f"Tried: {tried}. {_LOCAL}"):
            if folder is None:
                place = HubDataset(self.id, self.split, self.config)
                yield from load_hub_dataset(place, revision=self.revision, streaming=True)
                return
            import datasets

            yield from datasets.load_dataset(
                str(folder), self.config, split=self.split, streaming=True
            )


def _folder_identity(folder: Path) -> list[dict[str, str]]:
    return [
        {"name": name.as_posix(), "sha256": content_digest(folder / name)}
        for name in sorted(path.relative_to(folder) for path in folder.rglob("*"))
        if not (folder / name).is_dir() and not any(part.startswith(".") for part in name.parts)
    ]
