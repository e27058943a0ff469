"""The step that writes the possible contents of copies, as tokens: every variant of every member.

Deterministic except for a server's answers; the tokens of `whole` are the example's own. Cost: one
pass of the tokenizer over the texts and one over those that differ, and that of a model.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from inject import keyed
from inject.corpus.tokenizer import AnyTokenizer, encode_texts, load_tokenizer
from inject.errors import InputError
from inject.examples.example import UNSPLIT, Example, Span, members, read_examples
from inject.keyed import I64
from inject.reading.change_guard import unchanged
from inject.settings import plain
from inject.step import Step, StepContext, find_function
from inject.variants.paraphrase import (
    ServerTextGenerator,
    TextGenerator,
    dataset_paraphrases,
    model_paraphrases,
)
from inject.variants.rendition import Rendition, write_renditions
from inject.variants.settings import (
    ParaphraseVariant,
    ReplacedVariant,
    TruncatedVariant,
    Variants,
    protected_texts_error,
)

MIN_TOKENS = 2


class LocalModels(NamedTuple):
    """How models run on this machine: functions of another package, `module:name` each.

    They are found by name, since this package does not import models.
    """

    identity: str
    """From a path or hub id to the inputs that determine the model's numbers."""
    writer: str
    """From a variant, and a folder for answers, to the `TextGenerator` of its model."""


def variants_step(
    variants: Variants, examples: Step, tokenizer: Step, *, seed: int, local: LocalModels
) -> Step | None:
    """Write every variant of every member that copies can carry.

    None if all copies carry the whole example, which needs no step.

    Args:
        variants: which.
        examples: the pool.
        tokenizer: of the corpus.
        seed: of the arm.
        local: runs models without a server.
    """
    if variants.of == Variants().of:
        return None
    return Step(
        kind="variants",
        label=f"{variants.label()}-seed{seed}",
        function=f"{__name__}:build",
        settings={"variants": _identities(variants, local), "seed": seed},
        inputs={"examples": examples, "tokenizer": tokenizer},
        libraries=("unicode",),
        code=tuple(local) if any(map(_writes_here, variants.of)) else (),
        reads={"examples": UNSPLIT},
        execution={"variants": plain(variants), "local": list(local)},
    )


def build(context: StepContext) -> None:
    """Render the variants, and write them."""
    settings = context.settings
    variants = Variants.model_validate(context.execution["variants"])
    local = LocalModels(*context.execution["local"])
    encoder = load_tokenizer(str(context.inputs["tokenizer"]))
    spiked = members(read_examples(context.inputs["examples"]))
    writers: list[TextGenerator] = []
    with (
        unchanged("variants.of", lambda: _identities(variants, local), settings["variants"]),
        ExitStack() as opened,
    ):

        def writer(variant: ParaphraseVariant) -> TextGenerator:
            model: TextGenerator
            if variant.base_url is not None:
                model = ServerTextGenerator(variant, context.unfinished)
            else:
                model = find_function(local.writer)(variant, context.unfinished)
            opened.callback(model.close)
            writers.append(model)
            return model

        renditions = render_variants(
            spiked,
            variants,
            tokenizer=encoder,
            seed=settings["seed"],
            writer=writer,
            progress=lambda done, total: context.report(done, total, unit="paraphrases"),
        )
        for note in dict.fromkeys(note for writer in writers for note in writer.notes()):
            context.notice(note)
    write_renditions(context.out, renditions)


def _identities(variants: Variants, local: LocalModels) -> list[dict[str, Any]]:
    return [variant_identity(variant, local) for variant in variants.of]


def variant_identity(variant: Any, local: LocalModels) -> dict[str, Any]:
    """Return the inputs that determine a variant's texts: never an address, a key or its weight."""
    unread = {"base_url", "api_key_variable", "send_protected", "weight"}
    if isinstance(variant, ParaphraseVariant) and variant.by == "data":
        unread |= {"temperature", "prompt", "max_tokens", "seed"}
    settings = plain(variant, exclude=unread)
    if _writes_here(variant):
        settings["model"] = find_function(local.identity)(variant.model)
    return settings


def _writes_here(variant: Any) -> bool:
    """Return whether a model on this machine writes a variant."""
    if not isinstance(variant, ParaphraseVariant) or variant.model is None:
        return False
    return variant.base_url is None


def render_variants(
    members: Sequence[Example],
    variants: Variants,
    *,
    tokenizer: AnyTokenizer,
    seed: int,
    writer: Callable[[ParaphraseVariant], TextGenerator],
    progress: Callable[[int, int], None] | None = None,
) -> list[Rendition]:
    """Return every variant of every member, variant by variant.

    Args:
        members: the examples that are spiked.
        variants: which variants.
        tokenizer: encodes texts.
        seed: keys the random replacements.
        writer: opens the model of a variant `paraphrase` with `by: model`.
        progress: called with the number of a model's answers so far, and in all.

    Raises:
        InputError: a part or a paraphrase that an example lacks; a model that does not answer
            or answers with the text itself; a variant of fewer than two tokens.
    """
    whole = encode_texts(tokenizer, [member.text for member in members])
    allowed = _ordinary_ids(tokenizer)
    renditions: list[Rendition] = []
    texts: list[tuple[str, int, str, str]] = []
    for kind, variant in enumerate(variants.of):
        label = variant.label()
        if isinstance(variant, ParaphraseVariant):
            for member, versions in zip(
                members, _paraphrases(members, variant, writer, progress), strict=True
            ):
                for number, text in enumerate(versions, 1):
                    texts.append((member.example_id, kind, f"{label}-{number}", text))
            continue
        for member, ids in zip(members, whole, strict=True):
            name = member.example_id
            if isinstance(variant, ReplacedVariant):
                for version in range(variant.versions):
                    own = f"{label}-{version + 1}" if variant.versions > 1 else label
                    changed = replaced(
                        ids,
                        variant.share,
                        allowed=allowed,
                        example_id=name,
                        version=version,
                        seed=seed,
                    )
                    renditions.append(Rendition(name, kind, own, changed))
            elif isinstance(variant, TruncatedVariant):
                renditions.append(Rendition(name, kind, label, truncated(ids, variant.share)))
            elif variant.kind == "whole":
                renditions.append(Rendition(name, kind, label, ids))
            else:
                texts.append((name, kind, label, _TEXTS[variant.kind](member)))
    encoded = encode_texts(tokenizer, [text for *_, text in texts])
    renditions += [
        Rendition(name, kind, label, ids)
        for (name, kind, label, _), ids in zip(texts, encoded, strict=True)
    ]
    _check_lengths(renditions, {member.example_id: member for member in members})
    return renditions


def _paraphrases(
    members: Sequence[Example],
    variant: ParaphraseVariant,
    writer: Callable[[ParaphraseVariant], TextGenerator],
    progress: Callable[[int, int], None] | None,
) -> list[list[str]]:
    """Return the paraphrases of each member."""
    if variant.by == "data":
        return [dataset_paraphrases(member, variant.versions) for member in members]
    # A protected text without permission to send is refused before the first is sent.
    datasets = {
        example.dataset
        for example in members
        if not variant.may_send(example.dataset, protected=example.protected)
    }
    if datasets:
        raise protected_texts_error(sorted(datasets))
    return model_paraphrases(members, variant, writer=writer(variant), progress=progress)


def _ordinary_ids(tokenizer: AnyTokenizer) -> I64:
    """Return all ids but those of special tokens, ascending."""
    return np.setdiff1d(
        np.array(sorted(tokenizer.get_vocab().values()), dtype=np.int64),
        np.array(tokenizer.all_special_ids, dtype=np.int64),
    )


def _check_lengths(renditions: Sequence[Rendition], members: Mapping[str, Example]) -> None:
    for rendition in renditions:
        if len(rendition.tokens) < MIN_TOKENS:
            example = members[rendition.example_id]
            raise InputError(
                f"the variant `{rendition.variant}` leaves {len(rendition.tokens)} tokens of row "
                f"{example.source_id}",
                where=f"contaminants.{example.dataset}",
                allowed=f"{MIN_TOKENS} or more",
                hint="Raise its share, leave the variant out, or raise pool.min_tokens.",
            )


def question_only(example: Example) -> str:
    """Return the text up to the end of the question.

    Raises:
        InputError: the dataset's template names no question.
    """
    return example.text[: _span(example, "question").stop]


def without_answer(example: Example) -> str:
    """Return the text without the answer; blanks that the cut leaves at the end go with it.

    Raises:
        InputError: the dataset's template names no answer.
    """
    span = _span(example, "answer")
    return (example.text[: span.start] + example.text[span.stop :]).rstrip()


def _span(example: Example, part: str) -> Span:
    if part not in example.spans:
        raise InputError(
            f"the variant `{'question' if part == 'question' else 'no_answer'}` needs the "
            f"position of the {part}, and row {example.source_id} has no such part",
            where=f"contaminants.{example.dataset}",
            allowed=f"datasets whose template names {{{part}}}; this one names "
            f"{', '.join(example.spans) or 'nothing'}",
            hint="Give the contaminant a `template` that names it, or omit the variant.",
        )
    return example.spans[part]


_TEXTS: Mapping[str, Callable[[Example], str]] = {
    "question": question_only,
    "no_answer": without_answer,
    "lower_case": lambda example: example.text.lower(),
}


def truncated(tokens: I64, share: float) -> I64:
    """Return the first tokens, `share` of them, rounded to the nearest whole number."""
    return tokens[: round(share * len(tokens))]


def replaced(
    tokens: I64, share: float, *, allowed: I64, example_id: str, version: int, seed: int
) -> I64:
    """Return the tokens with a share of them replaced, each by another one.

    Args:
        tokens: shape [n].
        share: of the tokens; at least one is replaced.
        allowed: ids to draw from, ascending; no special tokens.
        example_id: keys the draws.
        version: which of the example's versions, from 0.
        seed: the experiment's seed.
    """
    count = max(round(share * len(tokens)), 1)
    place = np.arange(len(tokens), dtype=np.uint64)
    key = keyed.item_key(example_id)
    order = np.argsort(keyed.words(seed, keyed.Stream.REPLACED, key, place, 2 * version))
    chosen = np.sort(order[:count])
    words = keyed.words(seed, keyed.Stream.REPLACED, key, place[chosen], 2 * version + 1)
    # One id fewer to choose from if the token itself is among them; ids after it move up.
    original_ids = tokens[chosen]
    slot = np.searchsorted(allowed, original_ids)
    is_allowed = (slot < len(allowed)) & (
        allowed[np.minimum(slot, len(allowed) - 1)] == original_ids
    )
    indices = keyed.below(len(allowed) - is_allowed.astype(np.uint64), words).astype(np.int64)
    result = tokens.copy()
    result[chosen] = allowed[indices + (is_allowed & (indices >= slot))]
    return result
