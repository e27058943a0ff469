"""The step that imports a corpus: its files stay where they lie, and are read and checked."""

from pydantic import TypeAdapter

from inject.corpus.imported_files import PLACES
from inject.corpus.parts import OF_CORPUS
from inject.corpus.tokenizer import load_tokenizer
from inject.formats.cleaning import import_audited
from inject.formats.importing import AnyImport
from inject.overlap.searched_rows import SearchedRows
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.step import Cost, Step, StepContext

_IMPORT: TypeAdapter[AnyImport] = TypeAdapter(AnyImport)


def import_step(
    imported: AnyImport, tokenizer: Step, *, tokens: int, seed: int, searched: SearchedRows
) -> Step:
    """Import the first `tokens` tokens; documents that overlap with a row are skipped and listed.

    Where the files lie is execution (`inject.stream.inputs.corpus_execution`).

    Args:
        imported: what to import.
        tokenizer: the one that made the ids.
        tokens: length of the corpus.
        seed: `corpus.seed`.
        searched: the rows.
    """
    return Step(
        kind="corpus",
        label=imported.kind,
        function=f"{__name__}:build",
        settings={
            "tokens": tokens,
            "sources": _identity(imported),
            "seed": seed,
            **searched.settings(),
        },
        inputs={"tokenizer": tokenizer},
        libraries=("tokenizers", *searched.libraries()),
        volatile=(PLACES,),
        code=searched.code(),
        facets=OF_CORPUS,
        execution={"imported": plain(imported), "searched": searched.plain()},
        cost=Cost(),
    )


def build(context: StepContext) -> None:
    """Write the corpus, and the documents that were left out."""
    settings, tokens = context.settings, context.settings["tokens"]
    imported = _IMPORT.validate_python(context.execution["imported"])
    searched = SearchedRows.given(context.execution["searched"])
    with unchanged("corpus.imported", lambda: _identity(imported), settings["sources"]):
        import_audited(
            context.out,
            imported,
            tokenizer=load_tokenizer(str(context.inputs["tokenizer"])),
            tokens=tokens,
            audit=searched.filter(settings),
            progress=lambda done: context.report(done, tokens, unit="tokens"),
        )


def _identity(imported: AnyImport) -> list[dict[str, object]]:
    return [{"imported": imported.identity()}]
