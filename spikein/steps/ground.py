"""Steps of the ground truth: tokenizer, corpus, examples, plan, audit.

One corpus serves all arms of an experiment: its first tokens are theirs (a size sweep takes
prefixes), its last `base.tokens` belong to the base model, so that no arm is trained on
text that the base has seen.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inject.audit import AuditFailed, audit, read_audit, write_audit
from inject.background.document import Document
from inject.background.mixture import MixtureReport, mixed_documents
from inject.corpus import Corpus, build_corpus
from inject.datasets.contaminant import contaminant_identity
from inject.datasets.load import load_examples
from inject.datasets.registry import get_dataset
from inject.example import Example, read_examples, write_examples
from inject.fit import fit_examples
from inject.plan import make_plan, read_plan, write_plan
from inject.pool import deal
from inject.settings import plain
from inject.tokenizer import (
    encode_texts,
    load_tokenizer,
    tokenizer_identity,
    train_tokenizer,
)
from inject.view import Stretch
from spikein.experiment import Experiment
from spikein.graph import Cost, Step, StepContext
from train.settings import TokenizerTraining

TOKENIZER_SAMPLE_BYTES = 8_000_000
"""A tokenizer is trained on this much of the mixture; more changes little and takes long."""


def sources_identity(experiment: Experiment) -> list[dict[str, Any]]:
    """Return what the background is: the content of each source, and its weight.

    Reads the sources' files (or asks the hub), so it is called once an experiment.
    """
    return [
        {"content": source.identity(), "weight": source.weight}
        for source in experiment.corpus.sources
    ]


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
            texts = _sample(mixed_documents(sources, seed=seed), TOKENIZER_SAMPLE_BYTES)
            train_tokenizer(texts, vocabulary).save_pretrained(context.out)

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
            build=train,
        )

    name = model.tokenizer or model.pretrained or ""
    revision = None if model.tokenizer else model.revision
    identity = tokenizer_identity(name, revision=revision)

    def copy(context: StepContext) -> None:
        tokenizer = load_tokenizer(
            name, revision=revision, trust_remote_code=model.trust_remote_code
        )
        tokenizer.save_pretrained(context.out)

    return Step(
        kind="tokenizer",
        label=Path(name).name,
        settings={"from": identity},
        libraries=("tokenizers", "transformers"),
        build=copy,
    )


def corpus_step(
    experiment: Experiment, tokenizer: Step, named: list[dict[str, Any]], *, tokens: int
) -> Step:
    """Tokenise `tokens` tokens of the mixture of sources, in the order fixed by its seed."""
    sources, seed = experiment.corpus.sources, experiment.corpus.seed

    def build(context: StepContext) -> None:
        report = MixtureReport()
        build_corpus(
            context.out,
            documents=mixed_documents(sources, seed=seed, report=report),
            tokenizer=load_tokenizer(str(context.inputs["tokenizer"].path)),
            tokens=tokens,
            progress=lambda done: context.report(done, tokens, unit="tokens"),
            mixture=report,
        )

    return Step(
        kind="corpus",
        label="-".join(source.kind for source in sources)[:40],
        settings={
            "tokens": tokens,
            "sources": named,
            "seed": seed,
        },
        inputs={"tokenizer": tokenizer},
        libraries=("tokenizers",),
        build=build,
        cost=Cost(disk_bytes=2 * tokens),
    )


def examples_step(experiment: Experiment, tokenizer: Step, *, seed: int) -> Step:
    """Load all datasets, fit them to the model, and deal members, non-members and splits."""
    contaminants, pool = experiment.contaminants, experiment.pool
    context_tokens = experiment.train.context
    tune_share = experiment.detect.tune_share

    def build(context: StepContext) -> None:
        encoder = load_tokenizer(str(context.inputs["tokenizer"].path))
        examples: list[Example] = []
        reports: dict[str, Any] = {}
        for done, contaminant in enumerate(contaminants):
            context.report(done, len(contaminants), unit="datasets", note=contaminant.name)
            loaded = load_examples(contaminant, seed=seed)
            fitted = fit_examples(
                loaded.examples,
                encoder,
                context=context_tokens,
                min_tokens=pool.min_tokens,
                policy=pool.long_examples,
            )
            dealt = deal(
                fitted.examples,
                members=contaminant.members,
                nonmembers=contaminant.nonmembers,
                tune_share=tune_share,
                stratify=contaminant.stratify,
                near_duplicate=pool.near_duplicate,
                seed=seed,
            )
            examples.extend(dealt.examples)
            reports[contaminant.name] = {
                **asdict(loaded.report),
                "too_short": fitted.too_short,
                "too_long": fitted.too_long,
                "long_examples": pool.long_examples,
                "considered": dealt.considered,
                "near_duplicates": [list(item) for item in dealt.near_duplicates],
                "members": contaminant.members,
                "nonmembers": contaminant.nonmembers,
                "protected": get_dataset(contaminant.dataset).protected,
            }
        write_examples(context.out / "examples.parquet", examples)
        (context.out / "examples.json").write_text(json.dumps(reports, indent=1))

    return Step(
        kind="examples",
        label=f"{'-'.join(contaminant.name for contaminant in contaminants)[:40]}-seed{seed}",
        settings={
            "contaminants": [contaminant_identity(contaminant) for contaminant in contaminants],
            "pool": plain(pool),
            "context": None if pool.long_examples == "split" else context_tokens,
            "tune_share": tune_share,
            "seed": seed,
        },
        inputs={"tokenizer": tokenizer},
        protected=any(get_dataset(contaminant.dataset).protected for contaminant in contaminants),
        build=build,
    )


def plan_step(experiment: Experiment, corpus: Step, examples: Step, *, seed: int) -> Step:
    """Draw copies and anchors for one arm."""
    copies, placement = experiment.copies, experiment.placement
    budget, window = experiment.corpus.tokens, experiment.train.context

    def build(context: StepContext) -> None:
        pool, tokens, clean = read_ground(context.inputs)
        plan = make_plan(
            pool,
            tokens,
            copies=copies,
            placement=placement,
            seed=seed,
            source=clean,
            budget=budget,
            context=window,
            end_token=clean.end_token,
            vocabulary=clean.vocabulary,
        )
        write_plan(context.out, plan)

    return Step(
        kind="plan",
        label=f"{copies.label()}-{placement.policy}-seed{seed}",
        settings={
            "copies": plain(copies),
            "placement": plain(placement),
            "budget": budget,
            "context": window,
            "seed": seed,
        },
        inputs={"corpus": corpus, "examples": examples},
        libraries=("scipy",),
        build=build,
    )


def audit_step(corpus: Step, examples: Step, plan: Step) -> Step:
    """Search the contaminated stream and the clean corpus for every example."""

    def build(context: StepContext) -> None:
        pool, tokens, clean = read_ground(context.inputs)
        planned = read_plan(context.inputs["plan"].path)
        report = audit(
            planned.view(clean),
            clean,
            clean.doc_starts,
            tokens=tokens,
            realised=planned.realised(),
            sides={example.example_id: example.side for example in pool},
        )
        write_audit(context.out, report)

    return Step(
        kind="audit",
        label=plan.label,
        settings={},
        inputs={"corpus": corpus, "examples": examples, "plan": plan},
        build=build,
    )


def require_passed(inputs: Mapping[str, Any]) -> None:
    """Stop the graph where the audit failed.

    Raises:
        AuditFailed: with the first findings.
    """
    folder = inputs["audit"].path
    report = read_audit(folder)
    if not report.passed:
        raise AuditFailed(report, folder)


def read_ground(
    inputs: Mapping[str, Any],
) -> tuple[list[Example], dict[str, npt.NDArray[np.int64]], Corpus]:
    """Return examples, their token ids and the clean corpus of a step's inputs."""
    clean = Corpus.open(inputs["corpus"].path)
    pool = read_examples(inputs["examples"].path / "examples.parquet")
    tokenizer = load_tokenizer(str(inputs["corpus"].path / "tokenizer"))
    return pool, example_tokens(pool, tokenizer), clean


def example_tokens(examples: Sequence[Example], tokenizer: Any) -> dict[str, npt.NDArray[np.int64]]:
    """Return the token ids of each example's text, by example_id; no special tokens."""
    encoded = encode_texts(tokenizer, [example.text for example in examples])
    return {example.example_id: ids for example, ids in zip(examples, encoded, strict=True)}


def _sample(documents: Iterable[Document], limit: int) -> Iterator[str]:
    """Yield texts until they hold `limit` UTF-8 bytes."""
    taken = 0
    for document in documents:
        if taken >= limit:
            return
        taken += len(document.text.encode())
        yield document.text


def base_stretch(corpus: Corpus, tokens: int) -> Stretch:
    """Return the part of the corpus that belongs to the base model: its last tokens."""
    return Stretch(corpus, corpus.n_tokens - tokens, corpus.n_tokens)
