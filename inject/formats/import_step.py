"""The step that imports a corpus: its files stay where they lie, and are read and checked."""

from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from inject.corpus.tokenizer import load_tokenizer
from inject.formats.cleaning import import_audited
from inject.formats.importing import AnyImport
from inject.overlap.corpus_step import corpus_step
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
    """
    step = corpus_step(
        (),
        _identity(imported),
        tokenizer,
        tokens=tokens,
        seed=seed,
        searched=searched,
        label=imported.kind,
    )
    return replace(
        step,
        function=f"{__name__}:build",
        execution={"imported": plain(imported), "searched": plain(searched)},
        cost=Cost(),
    )


def build(context: StepContext) -> None:
    """Write the corpus, and the documents that were left out."""
    tokens = context.settings["tokens"]
    imported = _IMPORT.validate_python(context.execution["imported"])
    searched = SearchedRows.model_validate(context.execution["searched"])
    with unchanged("corpus.imported", lambda: _identity(imported), context.settings["sources"]):
        import_audited(
            context.out,
            imported,
            tokenizer=load_tokenizer(str(context.inputs["tokenizer"])),
            tokens=tokens,
            audit=searched.filter(context.settings),
            progress=lambda done: context.report(done, tokens, unit="tokens"),
        )


def _identity(imported: AnyImport) -> list[dict[str, Any]]:
    return [{"imported": imported.identity()}]
