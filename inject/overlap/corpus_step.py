"""The step that tokenises the background: the clean corpus, without what overlaps with an example.

One corpus serves all arms of an experiment: its first tokens are theirs (a size sweep takes
prefixes), its last ones belong to the base model, so that no arm is trained on text that the base
has seen.
"""

from typing import Any

from inject.corpus.background import FilesSource
from inject.corpus.background.background import Background
from inject.corpus.background.mixture import MixtureReport
from inject.corpus.build import BuildOptions, build_corpus, too_short
from inject.corpus.imported_files import PLACES
from inject.corpus.parts import OF_CORPUS
from inject.corpus.tokenizer import load_tokenizer
from inject.overlap.filter import write_overlaps
from inject.overlap.searched_rows import SearchedRows
from inject.step import Cost, Step, StepContext


def corpus_step(
    background: Background,
    named: list[dict[str, Any]],
    tokenizer: Step,
    *,
    tokens: int,
    searched: SearchedRows,
    label: str,
) -> Step:
    """Tokenise `tokens` tokens of the mixture of sources, in the order fixed by its seed.

    Documents that overlap with a row are left out and listed.

    Args:
        background: the sources.
        named: their identity.
        tokenizer: of the experiment.
        tokens: length of the corpus.
        searched: the rows.
        label: for people.
    """
    return Step(
        kind="corpus",
        label=label,
        function=f"{__name__}:build",
        settings={
            "tokens": tokens,
            "sources": named,
            "seed": background.seed,
            **searched.settings(),
        },
        inputs={"tokenizer": tokenizer},
        libraries=("tokenizers", *searched.libraries()),
        volatile=(PLACES,),
        code=(*background.code(), *searched.code()),
        facets=OF_CORPUS,
        execution={
            "imported": None,
            "background": background.plain(),
            "searched": searched.plain(),
        },
        cost=Cost(disk_bytes=2 * tokens),
    )


def build(context: StepContext) -> None:
    """Write the corpus, and the documents that were left out."""
    settings, tokens = context.settings, context.settings["tokens"]
    background = Background.given(context.execution["background"])
    audit = SearchedRows.given(context.execution["searched"]).filter(settings)
    report = MixtureReport()
    with background.unchanged(settings["sources"]):
        build_corpus(
            context.out,
            documents=background.documents(report=report, keep=audit),
            tokenizer=load_tokenizer(str(context.inputs["tokenizer"])),
            tokens=tokens,
            mixture=report,
            on_progress=lambda done: context.report(done, tokens, unit="tokens"),
            options=BuildOptions(unfinished=context.unfinished),
        )
    if audit is not None:
        audit.require_none()
        write_overlaps(context.out, audit.found, audit.facts())


def require_background(background: Background, searched: SearchedRows, *, tokens: int) -> None:
    """Read the files of the background as the corpus will, as far as it needs them.

    Sources of other kinds are not read, and beside them tokens cannot be counted.

    Raises:
        InputError: a file cannot be read; or all documents that overlap with no example cannot hold
            so many tokens: one a byte, and two around each document.
    """
    sources = background.sources
    files = tuple(source for source in sources if isinstance(source, FilesSource))
    if not files:
        return
    held = documents = 0
    read = Background(sources=files, seed=background.seed)
    for document in read.documents(keep=searched.filter()):
        documents += 1
        held += len(document.text.encode()) + 2
        if held >= tokens or len(files) < len(sources):
            return
    if len(files) == len(sources):
        raise too_short(f"at most {held:,}" if held else "0", documents, tokens)
