"""Steps of the background: the tokenizer and the clean corpus.

One corpus serves all arms of an experiment: its first tokens are theirs (a size sweep takes
prefixes), its last `base.tokens` belong to the base model, so that no arm is trained on
text that the base has seen.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from inject.corpus.background.document import Document
from inject.corpus.background.files import FilesSource
from inject.corpus.background.mixture import MixtureReport, mixed_documents
from inject.corpus.background.registry import source_code
from inject.corpus.build import BuildOptions, build_corpus, too_short
from inject.corpus.imported_files import PLACES
from inject.corpus.named_tokenizer import tokenizer_identity
from inject.corpus.parts import OF_CORPUS
from inject.corpus.tokenizer import load_tokenizer, train_tokenizer
from inject.examples.contaminant import Contaminant, checked_options, contaminant_identity
from inject.examples.datasets.registry import find_dataset, get_dataset
from inject.examples.example import Example
from inject.examples.load import load_examples
from inject.formats.cleaning import import_audited
from inject.overlap.filter import OverlapFilter, write_overlaps
from inject.overlap.settings import OverlapSettings
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.source_digest import root
from inject.step import Cost
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.background_identity import sources_identity
from train.models.tokenizer_check import fitting_tokenizer
from train.settings import TokenizerTraining

TOKENIZER_SAMPLE_BYTES = 8_000_000
"""A tokenizer is trained on this much of the mixture; more changes little and takes long."""


def tokenizer_step(experiment: Experiment, named: list[dict[str, Any]]) -> Step:
    """Make the tokenizer: trained on the sources, or copied from a path or hub id.

    Args:
        experiment: the experiment.
        named: `sources_identity` of it.
    """
    model = experiment.model
    if isinstance(model.tokenizer, TokenizerTraining):
        vocabulary = model.tokenizer.train
        sources, seed = experiment.corpus.sources, experiment.corpus.seed

        def train(context: StepContext) -> None:
            with unchanged("corpus.sources", lambda: sources_identity(experiment), named):
                texts = _sample(mixed_documents(sources, seed=seed), TOKENIZER_SAMPLE_BYTES)
                tokenizer = train_tokenizer(texts, vocabulary)
            tokenizer.save_pretrained(context.out)

        return Step(
            kind="tokenizer",
            label=f"bpe-{vocabulary}",
            settings={
                "train": vocabulary,
                "sample_bytes": TOKENIZER_SAMPLE_BYTES,
                "sources": named,
                "seed": seed,
            },
            libraries=("tokenizers",),
            code=(root(train), *(one for source in sources for one in source_code(source))),
            build=train,
        )

    name = model.tokenizer or model.pretrained or ""
    revision = None if model.tokenizer else model.revision
    named_by = partial(
        tokenizer_identity, name, revision=revision, trust_remote_code=model.trust_remote_code
    )
    identity = named_by()

    def copy(context: StepContext) -> None:
        with unchanged("model.tokenizer", named_by, identity):
            tokenizer = fitting_tokenizer(model)
        tokenizer.save_pretrained(context.out)

    return Step(
        kind="tokenizer",
        label=Path(name).name,
        settings={
            "from": identity,
            **({"its_own_code": True} if model.trust_remote_code else {}),
        },
        libraries=("tokenizers", "transformers"),
        code=(root(copy),),
        build=copy,
    )


def require_background(experiment: Experiment, *, tokens: int, seeds: Sequence[int]) -> None:
    """Read the files of the background as the corpus will, as far as it needs them.

    Sources of other kinds are not read, and beside them tokens cannot be counted.

    Raises:
        InputError: a file cannot be read; or all documents that overlap with no example cannot hold
            so many tokens: one a byte, and two around each document.
    """
    sources = experiment.corpus.sources
    files = [source for source in sources if isinstance(source, FilesSource)]
    if experiment.corpus.imported is not None or not files:
        return
    rules, contaminants = experiment.audit, experiment.contaminants
    keep = None
    if rules.active:
        rows = rows_identities(contaminants, seeds)
        keep = overlap_filter(contaminants, seeds, rules, rows)
    held = documents = 0
    for document in mixed_documents(files, seed=experiment.corpus.seed, keep=keep):
        documents += 1
        held += len(document.text.encode()) + 2
        if held >= tokens or len(files) < len(sources):
            return
    if len(files) == len(sources):
        raise too_short(f"at most {held:,}" if held else "0", documents, tokens)


def corpus_step(
    experiment: Experiment,
    tokenizer: Step,
    named: list[dict[str, Any]],
    *,
    tokens: int,
    seeds: Sequence[int],
) -> Step:
    """Tokenise `tokens` tokens of the mixture of sources, in the order fixed by its seed.

    Documents that overlap with a row of any contaminant, whether or not it will be drawn, are left
    out and listed. An imported corpus is read and checked instead; its files stay where they lie,
    and documents of it that overlap are skipped there. Where that is, is the step's execution
    (`spikein.pipeline.steps.inputs`).

    Args:
        experiment: the experiment.
        tokenizer: its tokenizer.
        named: `sources_identity` of it.
        tokens: length of the corpus.
        seeds: of all arms, which share the corpus: rows that follow the seed are looked for as
            each of them draws them.
    """
    sources, seed = experiment.corpus.sources, experiment.corpus.seed
    imported = experiment.corpus.imported
    contaminants, rules = experiment.contaminants, experiment.audit
    audited = rules.active
    rows = rows_identities(contaminants, seeds) if audited else []

    def overlaps() -> OverlapFilter | None:
        return overlap_filter(contaminants, seeds, rules, rows) if audited else None

    def take(context: StepContext) -> None:
        if imported is None:
            raise TypeError("there is no corpus to import")
        with unchanged("corpus.imported", lambda: sources_identity(experiment), named):
            import_audited(
                context.out,
                imported,
                tokenizer=load_tokenizer(str(context.inputs["tokenizer"].path)),
                tokens=tokens,
                audit=overlaps(),
                progress=lambda done: context.report(done, tokens, unit="tokens"),
            )

    def build(context: StepContext) -> None:
        report, audit = MixtureReport(), overlaps()
        with unchanged("corpus.sources", lambda: sources_identity(experiment), named):
            build_corpus(
                context.out,
                documents=mixed_documents(sources, seed=seed, report=report, keep=audit),
                tokenizer=load_tokenizer(str(context.inputs["tokenizer"].path)),
                tokens=tokens,
                mixture=report,
                on_progress=lambda done: context.report(done, tokens, unit="tokens"),
                options=BuildOptions(unfinished=context.unfinished),
            )
        if audit is not None:
            audit.require_none()
            write_overlaps(context.out, audit.found, audit.facts())

    return Step(
        kind="corpus",
        label=experiment.corpus.label(),
        settings={
            "tokens": tokens,
            "sources": named,
            "seed": seed,
            **(
                {
                    "audit": plain(rules),
                    "audited": rows,
                }
                if audited
                else {}
            ),
        },
        inputs={"tokenizer": tokenizer},
        libraries=("tokenizers", "unicode") if audited else ("tokenizers",),
        volatile=(PLACES,),
        execution=imported,
        code=(
            root(build if imported is None else take),
            *(one for source in sources for one in source_code(source)),
            *(place for one in contaminants if audited for place in find_dataset(one.dataset).code),
        ),
        facets=OF_CORPUS,
        build=build if imported is None else take,
        cost=Cost(disk_bytes=None if imported else 2 * tokens),
    )


def overlap_filter(
    contaminants: Sequence[Contaminant],
    seeds: Sequence[int],
    rules: OverlapSettings,
    rows: list[dict[str, Any]],
) -> OverlapFilter:
    """Return what leaves out documents that overlap with a row that any of the seeds could draw.

    Args:
        contaminants: of the experiment.
        seeds: of all arms.
        rules: what counts as an overlap.
        rows: `rows_identities` when the step was named; refused where they have changed since.
    """
    with unchanged("contaminants", lambda: rows_identities(contaminants, seeds), rows):
        return OverlapFilter(_candidates(contaminants, seeds), rules)


def _candidates(contaminants: Sequence[Contaminant], seeds: Sequence[int]) -> list[Example]:
    """Return every row that any of the seeds could draw, as an example."""
    found: dict[tuple[str, str], Example] = {}
    for contaminant in contaminants:
        for seed in _seeds_of(contaminant, seeds) or [0]:
            for example in load_examples(contaminant, seed=seed).every:
                found.setdefault((example.dataset, example.example_id), example)
    return list(found.values())


def rows_identities(
    contaminants: Sequence[Contaminant], seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """Return what decides the rows of contaminants, as plain JSON values."""
    return [_rows_identity(one, seeds) for one in contaminants]


def _seeds_of(contaminant: Contaminant, seeds: Sequence[int]) -> list[int]:
    """Return the seeds that bear on a contaminant's rows, ascending; none where its file does."""
    dataset = get_dataset(contaminant.dataset)
    options = checked_options(dataset, contaminant.options)
    return sorted(seeds) if dataset.follows_seed(options) else []


def _rows_identity(contaminant: Contaminant, seeds: Sequence[int]) -> dict[str, Any]:
    """Return what decides a contaminant's rows; how many are spiked does not, unless made up."""
    identity = contaminant_identity(contaminant)
    wanted = identity.pop("members") + identity.pop("nonmembers")
    held_out = identity.pop("held_out", 0)
    identity.pop("stratify")
    endless = get_dataset(contaminant.dataset).endless
    return {
        **identity,
        "rows": wanted if endless else None,
        **({"held_out": held_out} if endless and held_out else {}),
        "seeds": _seeds_of(contaminant, seeds),
    }


def _sample(documents: Iterable[Document], limit: int) -> Iterator[str]:
    """Yield texts until they hold `limit` UTF-8 bytes."""
    taken = 0
    for document in documents:
        if taken >= limit:
            return
        taken += len(document.text.encode())
        yield document.text
