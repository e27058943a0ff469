"""The step that writes what copies can carry, and how later steps read it."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inject.corpus.tokenizer import load_tokenizer
from inject.examples.example import members, read_examples
from inject.examples.parts import UNSPLIT
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.source_digest import root
from inject.stream.exposures import TextKey
from inject.variants.paraphrase import TextGenerator
from inject.variants.render import render_variants
from inject.variants.rendition import WHOLE, Rendition, read_renditions, write_renditions
from inject.variants.settings import ParaphraseVariant, Variants
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.inputs import example_tokens


def variants_step(
    experiment: Experiment, examples: Step, tokenizer: Step, *, seed: int
) -> Step | None:
    """Write every variant of every member that copies can carry, as tokens.

    None where all copies carry the whole example, which needs no step.
    """
    variants = experiment.variants
    if variants.of == Variants().of:
        return None
    named = _identities(variants)

    def build(context: StepContext) -> None:
        pool = read_examples(context.inputs["examples"].path)
        encoder = load_tokenizer(str(context.inputs["tokenizer"].path))
        spiked = members(pool)
        writers: list[TextGenerator] = []
        with (
            unchanged("variants.of", lambda: _identities(variants), named),
            ExitStack() as opened,
        ):

            def writer(variant: ParaphraseVariant) -> TextGenerator:
                found = open_writer(variant, context.unfinished)
                opened.callback(found.close)
                writers.append(found)
                return found

            renditions = render_variants(
                spiked,
                example_tokens(spiked, encoder),
                variants,
                tokenizer=encoder,
                seed=seed,
                writer=writer,
                progress=lambda done, total: context.report(done, total, unit="paraphrases"),
            )
            for note in dict.fromkeys(note for one in writers for note in one.notes()):
                context.notice(note)
        write_renditions(context.out, renditions)

    return Step(
        kind="variants",
        label=f"{variants.label()}-seed{seed}",
        settings={"variants": named, "seed": seed},
        inputs={"examples": examples, "tokenizer": tokenizer},
        libraries=("unicode",),
        code=(root(build),),
        reads={"examples": UNSPLIT},
        build=build,
    )


def open_writer(variant: ParaphraseVariant, cache: Path) -> TextGenerator:
    """Open the model that writes paraphrases: on a server, or on this machine.

    Args:
        variant: says which.
        cache: a folder for its answers.
    """
    if variant.base_url is not None:
        from inject.variants.server import ServerTextGenerator

        return ServerTextGenerator(variant, cache)
    from train.models.generation import LocalWriter

    return LocalWriter(variant, cache)


def _identities(variants: Variants) -> list[dict[str, Any]]:
    return [_identity(variant) for variant in variants.of]


def _identity(variant: Any) -> dict[str, Any]:
    """Return what decides a variant's texts: never an address or a key, nor its weight."""
    unread = {"base_url", "api_key_variable", "send_protected", "weight"}
    if isinstance(variant, ParaphraseVariant) and variant.by == "data":
        unread |= {"temperature", "prompt", "max_tokens", "seed"}
    settings = plain(variant, exclude=unread)
    if isinstance(variant, ParaphraseVariant) and variant.model and variant.base_url is None:
        from train.models.pretrained import model_identity

        settings["model"] = model_identity(variant.model)
    return settings


def variants_of(plan: Step) -> dict[str, Step]:
    """Return a plan's variants as an input of the steps that read them, where it has any."""
    return {"variants": plan.inputs["variants"]} if "variants" in plan.inputs else {}


def renditions_folder(inputs: Mapping[str, Any]) -> str | None:
    """Return the folder of the texts that copies can carry; None where all carry whole examples."""
    return str(inputs["variants"].path) if "variants" in inputs else None


def renditions_of(inputs: Mapping[str, Any]) -> list[Rendition] | None:
    """Return the texts that copies can carry; None where they all carry the whole example."""
    folder = renditions_folder(inputs)
    return None if folder is None else read_renditions(Path(folder))


def copy_texts(
    inputs: Mapping[str, Any], tokens: Mapping[str, npt.NDArray[np.int64]]
) -> dict[TextKey, npt.NDArray[np.int64]]:
    """Return the token ids of each text that copies can carry, by example_id and variant.

    Args:
        inputs: of the step; with `variants` where the experiment has any.
        tokens: token ids of each whole example.
    """
    renditions = renditions_of(inputs)
    if renditions is None:
        return {(name, WHOLE): ids for name, ids in tokens.items()}
    return {(one.example_id, one.variant): one.tokens for one in renditions}
