"""The step that writes what copies can carry, as tokens."""

from contextlib import ExitStack
from typing import Any, NamedTuple

from inject.corpus.tokenizer import load_tokenizer
from inject.examples.example import members, read_examples
from inject.examples.parts import UNSPLIT
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.step import Step, StepContext, find_function
from inject.variants.paraphrase import ServerTextGenerator, TextGenerator
from inject.variants.render import render_variants
from inject.variants.rendition import write_renditions
from inject.variants.settings import ParaphraseVariant, Variants


class LocalModels(NamedTuple):
    """How models run on this machine: functions of another package, `module:name` each.

    They are found by name, since this package knows of no models.
    """

    identity: str
    """From a path or hub id to what decides the model's numbers."""
    writer: str
    """From a variant, and a folder for answers, to the `TextGenerator` of its model."""


def variants_step(
    variants: Variants, examples: Step, tokenizer: Step, *, seed: int, local: LocalModels
) -> Step | None:
    """Write every variant of every member that copies can carry.

    None where all copies carry the whole example, which needs no step.

    Args:
        variants: which.
        examples: the pool.
        tokenizer: of the corpus.
        seed: of the arm.
        local: runs models that are not behind a server.
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
        for note in dict.fromkeys(note for one in writers for note in one.notes()):
            context.notice(note)
    write_renditions(context.out, renditions)


def _identities(variants: Variants, local: LocalModels) -> list[dict[str, Any]]:
    return [variant_identity(variant, local) for variant in variants.of]


def variant_identity(variant: Any, local: LocalModels) -> dict[str, Any]:
    """Return what decides a variant's texts: never an address or a key, nor its weight."""
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
