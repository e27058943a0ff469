"""The background of an experiment as steps are given it: its sources, and the seed of their order.

Sources are named by what they hold before any of them is read, and compared with that afterwards.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from inject.corpus.background.document import Document
from inject.corpus.background.mixture import MixtureReport, mixed_documents
from inject.corpus.background.registry import AnySource, source_code, source_identity
from inject.reading.unchanged import unchanged


@dataclass(frozen=True, kw_only=True)
class Background:
    """Where clean text comes from."""

    sources: tuple[AnySource, ...]
    seed: int
    """Of the order of documents."""

    def identity(self) -> list[dict[str, Any]]:
        """Return what the background is: the content of each source, and its weight.

        Reads the sources' files (or asks the hub), so it is called once an experiment.
        """
        return [
            {"content": source_identity(source), "weight": source.weight} for source in self.sources
        ]

    def code(self) -> tuple[str, ...]:
        """Return where the code of the sources begins, for `Step.code`."""
        return tuple(place for source in self.sources for place in source_code(source))

    def documents(
        self,
        *,
        report: MixtureReport | None = None,
        keep: Callable[[Document], bool] | None = None,
    ) -> Iterator[Document]:
        """Yield the documents in their order (see `mixed_documents`)."""
        return mixed_documents(self.sources, seed=self.seed, report=report, keep=keep)

    def unchanged(self, named: Any) -> AbstractContextManager[None]:
        """Read the sources inside; they must still hold what they held when they were named.

        Args:
            named: `identity` of then.
        """
        return unchanged("corpus.sources", self.identity, named)

    def plain(self) -> Any:
        """Return it as plain JSON values, for `Step.execution`."""
        return _BACKGROUND.dump_python(self, mode="json")

    @staticmethod
    def given(values: Any) -> "Background":
        """Return the background of which `plain` made these values."""
        return _BACKGROUND.validate_python(values)


_BACKGROUND = TypeAdapter(Background)
