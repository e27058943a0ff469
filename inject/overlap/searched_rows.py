"""The rows that no document of the background may overlap with: all that any seed could draw.

Whether or not they will be drawn, so that one corpus serves all arms.
"""

from collections.abc import Mapping
from typing import Any

from inject.examples.contaminant import Contaminant, checked_options, contaminant_identity
from inject.examples.datasets.registry import find_dataset, get_dataset
from inject.examples.example import Example
from inject.examples.load import load_examples
from inject.overlap.filter import OverlapFilter
from inject.overlap.settings import OverlapSettings
from inject.reading.unchanged import unchanged
from inject.settings import Settings, plain


class SearchedRows(Settings):
    """What the background is compared with."""

    contaminants: tuple[Contaminant, ...]
    """Of the experiment."""
    seeds: tuple[int, ...]
    """Of all arms: rows that follow the seed are looked for as each of them draws them."""
    rules: OverlapSettings
    """What counts as an overlap; without any rule nothing is compared."""

    def settings(self) -> dict[str, Any]:
        """Return what decides which documents stay, for `Step.settings`; {} without a rule."""
        if not self.rules.active:
            return {}
        return {"audit": plain(self.rules), "audited": self._identities()}

    def libraries(self) -> tuple[str, ...]:
        """Return what else decides it, for `Step.libraries`."""
        return ("unicode",) if self.rules.active else ()

    def code(self) -> tuple[str, ...]:
        """Return where the code of the datasets begins, for `Step.code`."""
        every = self.contaminants if self.rules.active else ()
        return tuple(
            place for contaminant in every for place in find_dataset(contaminant.dataset).code
        )

    def filter(self, settings: Mapping[str, Any]) -> OverlapFilter | None:
        """Return what leaves out documents that overlap with a row; None without a rule.

        Args:
            settings: of the step, `settings()` among them.

        Raises:
            InputError: as `load_examples`; the rows have changed since the step was named.
        """
        if not self.rules.active:
            return None
        with unchanged("contaminants", self._identities, settings["audited"]):
            return OverlapFilter(self._rows(), self.rules)

    def _rows(self) -> list[Example]:
        rows: dict[tuple[str, str], Example] = {}
        for contaminant in self.contaminants:
            for seed in self._seeds_of(contaminant) or [0]:
                for example in load_examples(contaminant, seed=seed).every:
                    rows.setdefault((example.dataset, example.example_id), example)
        return list(rows.values())

    def _identities(self) -> list[dict[str, Any]]:
        return [self._identity(contaminant) for contaminant in self.contaminants]

    def _identity(self, contaminant: Contaminant) -> dict[str, Any]:
        """Return what decides a dataset's rows; how many are spiked does not, unless made up."""
        identity = contaminant_identity(contaminant)
        wanted = identity.pop("members") + identity.pop("nonmembers")
        held_out = identity.pop("held_out", 0)
        identity.pop("stratify")
        endless = get_dataset(contaminant.dataset).endless
        return {
            **identity,
            "rows": wanted if endless else None,
            **({"held_out": held_out} if endless and held_out else {}),
            "seeds": self._seeds_of(contaminant),
        }

    def _seeds_of(self, contaminant: Contaminant) -> list[int]:
        """Return the seeds that decide a dataset's rows, ascending; none where its file does."""
        dataset = get_dataset(contaminant.dataset)
        options = checked_options(dataset, contaminant.options)
        return sorted(self.seeds) if dataset.follows_seed(options) else []
