"""The step that tokenises the background: the clean corpus, without what overlaps with an example.

One corpus serves all arms of an experiment: its first tokens are theirs (a size sweep takes
prefixes), its last ones belong to the base model, so that no arm is trained on text that the base
has seen.
"""

from collections.abc import Sequence
from typing import Any

from inject.corpus.background.files import FilesSource
from inject.corpus.background.mixture import SourceReport, mixed_documents
from inject.corpus.background.registry import SOURCES, AnySource, source_code, sources_identity
from inject.corpus.build import BuildOptions, build_corpus, too_short
from inject.corpus.corpus import OF_CORPUS, PLACES
from inject.corpus.tokenizer import load_tokenizer
from inject.overlap.filter import write_overlaps
from inject.overlap.searched_rows import SearchedRows
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.step import Cost, Step, StepContext


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

    Sources of other kinds are not read, and beside them tokens cannot be counted.

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
    held = documents = 0
    for document in mixed_documents(files, seed=settings["seed"], keep=keep):
        documents += 1
        held += len(document.text.encode()) + 2
        if held >= settings["tokens"] or len(files) < len(sources):
            return
    if len(files) == len(sources):
        raise too_short(f"at most {held:,}" if held else "0", documents, settings["tokens"])
