"""The step that tokenises the background, without documents that overlap with an example.

One corpus serves all arms of an experiment: no document overlaps with a row that any seed could
draw, whether or not it will be drawn. Its first tokens are theirs (a size sweep takes prefixes),
its last ones belong to the base model, so that no arm is trained on text that the base has seen.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from inject.corpus.background.files import FilesSource
from inject.corpus.background.mixture import SourceReport, mixed_documents
from inject.corpus.background.registry import SOURCES, AnySource, source_code, sources_identity
from inject.corpus.build import BuildOptions, build_corpus, too_short
from inject.corpus.corpus import OF_CORPUS, PLACES
from inject.corpus.tokenizer import load_tokenizer
from inject.examples.contaminant import Contaminant, checked_options, contaminant_identity
from inject.examples.datasets.registry import find_dataset, get_dataset
from inject.examples.example import Example
from inject.examples.load import load_examples
from inject.overlap.filter import OverlapFilter, write_overlaps
from inject.overlap.settings import OverlapSettings
from inject.reading.change_guard import unchanged
from inject.settings import Settings, plain
from inject.step import Cost, Step, StepContext


class SearchedRows(Settings):
    """The rows with which the background is compared."""

    contaminants: tuple[Contaminant, ...]
    """Of the experiment."""
    seeds: tuple[int, ...]
    """Of all arms: rows that follow the seed are looked for as each of them draws them."""
    rules: OverlapSettings
    """The rules of overlap; without any rule nothing is compared."""

    def settings(self) -> dict[str, Any]:
        """Return the settings of the rules, for `Step.settings`; {} without a rule."""
        if not self.rules.active:
            return {}
        return {"audit": plain(self.rules), "audited": self._identities()}

    def libraries(self) -> tuple[str, ...]:
        """Return the libraries that also decide it, for `Step.libraries`."""
        return ("unicode",) if self.rules.active else ()

    def code(self) -> tuple[str, ...]:
        """Return the entry modules of the datasets' code, for `Step.code`."""
        contaminants = self.contaminants if self.rules.active else ()
        return tuple(
            place
            for contaminant in contaminants
            for place in find_dataset(contaminant.dataset).code
        )

    def filter(self, settings: Mapping[str, Any]) -> OverlapFilter | None:
        """Return the filter of documents that overlap with a row; None without a rule.

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
        """Return the inputs of a dataset's rows: the number of rows only if they are generated."""
        identity = contaminant_identity(contaminant)
        n_rows = identity.pop("members") + identity.pop("nonmembers")
        held_out = identity.pop("held_out", 0)
        identity.pop("stratify")
        endless = get_dataset(contaminant.dataset).endless
        return {
            **identity,
            "rows": n_rows if endless else None,
            **({"held_out": held_out} if endless and held_out else {}),
            "seeds": self._seeds_of(contaminant),
        }

    def _seeds_of(self, contaminant: Contaminant) -> list[int]:
        """Return the seeds that determine a dataset's rows, ascending; none if its file does."""
        dataset = get_dataset(contaminant.dataset)
        options = checked_options(dataset, contaminant.options)
        return sorted(self.seeds) if dataset.follows_seed(options) else []


def corpus_step(
    sources: Sequence[AnySource],
    named: list[dict[str, Any]],
    tokenizer: Step,
    *,
    tokens: int,
    seed: int,
    searched: SearchedRows,
    label: str,
) -> Step:
    """Tokenise `tokens` tokens of the mixture of sources, in the order fixed by its seed.

    Documents that overlap with a row are left out and listed.

    Args:
        sources: of the background.
        named: their `sources_identity`.
        tokenizer: of the experiment.
        tokens: length of the corpus.
        seed: of the order of documents.
        searched: the rows.
        label: for people.
    """
    return Step(
        kind="corpus",
        label=label,
        function=f"{__name__}:build",
        settings={"tokens": tokens, "sources": named, "seed": seed, **searched.settings()},
        inputs={"tokenizer": tokenizer},
        libraries=("tokenizers", *searched.libraries()),
        volatile=(PLACES,),
        code=(*(place for source in sources for place in source_code(source)), *searched.code()),
        facets=OF_CORPUS,
        execution={
            "imported": None,
            "sources": [plain(source) for source in sources],
            "searched": plain(searched),
        },
        cost=Cost(disk_bytes=2 * tokens),
    )


def build(context: StepContext) -> None:
    """Write the corpus, and the documents that were left out."""
    settings, execution = context.settings, context.execution
    tokens: int = settings["tokens"]
    report: list[SourceReport] = []
    audit = SearchedRows.model_validate(execution["searched"]).filter(settings)
    sources = SOURCES.validate_python(execution["sources"])
    with unchanged("corpus.sources", lambda: sources_identity(sources), settings["sources"]):
        build_corpus(
            context.out,
            documents=mixed_documents(sources, seed=settings["seed"], report=report, keep=audit),
            tokenizer=load_tokenizer(str(context.inputs["tokenizer"])),
            tokens=tokens,
            report=report,
            on_progress=lambda done: context.report(done, tokens, unit="tokens"),
            options=BuildOptions(unfinished=context.unfinished),
        )
    if audit is not None:
        audit.require_none()
        write_overlaps(context.out, audit.found, audit.facts())


def require_background(corpus: Step) -> None:
    """Read the files of the background as a corpus step will, as far as it needs them.

    Sources of other kinds are not read, and with them tokens cannot be counted.

    Raises:
        InputError: a file cannot be read; or all documents that overlap with no example cannot hold
            so many tokens: one a byte, and two around each document.
    """
    settings, execution = corpus.settings, corpus.execution
    sources = SOURCES.validate_python(execution.get("sources", ()))
    files = [source for source in sources if isinstance(source, FilesSource)]
    if not files:
        return
    keep = SearchedRows.model_validate(execution["searched"]).filter(settings)
    n_bytes = documents = 0
    for document in mixed_documents(files, seed=settings["seed"], keep=keep):
        documents += 1
        n_bytes += len(document.text.encode()) + 2
        if n_bytes >= settings["tokens"] or len(files) < len(sources):
            return
    if len(files) == len(sources):
        raise too_short(f"at most {n_bytes:,}" if n_bytes else "0", documents, settings["tokens"])
