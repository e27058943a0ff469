"""Steps of masked words: how surprising each word is, and what a model guesses in its place.

How surprising words are is found once for each reference model; a model is asked once for each way
of choosing and asking. A knowledge filter is one more model that is asked, before.
"""

from collections.abc import Mapping
from typing import Any

from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.generation.guesses import (
    GuessRequest,
    TextToMask,
    guess,
    known_parts,
    mask_text,
    read_guesses,
    request_record,
    write_guesses,
)
from detect.generation.word_statistics import read_words, write_words
from detect.settings import DetectSettings
from inject.examples.example import Example, read_examples
from inject.examples.parts import TEXTS, UNSPLIT
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.statistics import open_target
from spikein.pipeline.steps.training import ModelNode


def words_step(reference: ModelNode, examples: Step, detect: DetectSettings) -> Step:
    """Find out how surprising every word of every example is to a reference model."""
    reference = ModelNode(**vars(reference))

    def build(context: StepContext) -> None:
        from detect.engine.masked_model import MaskedModel
        from detect.generation.word_statistics import open_reference, word_statistics

        rows = read_examples(context.inputs["examples"].path)
        with reference.unchanged():
            model = open_reference(
                reference.locate(context.inputs, "model"),
                load_causal=lambda _: open_target(reference, context.inputs, detect),
                device=detect.device,
            )
        unit = "texts" if isinstance(model, MaskedModel) else "tokens"
        found = word_statistics(
            model,
            [row.text for row in rows],
            batch_tokens=detect.batch_tokens,
            progress=lambda done, total: context.report(done, total, unit=unit),
        )
        write_words(context.out, [row.example_id for row in rows], found)

    return Step(
        kind="words",
        label=reference.label,
        settings={
            "dtype": reference.dtype_identity(detect.dtype),
            **reference.settings("model"),
        },
        inputs={**reference.inputs("model"), "examples": examples},
        libraries=("torch", "transformers", "unicode"),
        code=(root(build),),
        reads={"examples": TEXTS},
        build=build,
    )


def guesses_step(
    model: ModelNode,
    examples: Step,
    *,
    request: GuessRequest,
    detect: DetectSettings,
    before: Mapping[str, Step],
) -> Step:
    """Ask one model for the masked parts of every example.

    Args:
        model: which one.
        examples: whose parts are masked.
        request: which parts, and how it is asked.
        detect: how it is loaded.
        before: `words` where a reference model chooses them; `filter` and `filter_100`, the guesses
            of a knowledge filter, where there is one.
    """
    model = ModelNode(**vars(model))

    def build(context: StepContext) -> None:
        from detect.targets.local import LocalTextModel

        rows = read_examples(context.inputs["examples"].path)
        masked = [mask_text(one, request) for one in texts_to_mask(rows, context.inputs)]
        ids = [row.example_id for row in rows]
        known = None
        if request.filtered:
            single, lists = (
                read_guesses(context.inputs[name].path) for name in ("filter", "filter_100")
            )
            known = known_parts([single[one] for one in ids], [lists[one] for one in ids])
        found = guess(
            LocalTextModel(open_target(model, context.inputs, detect)),
            masked,
            request,
            known=known,
            answers=context.unfinished,
            progress=lambda done, total: context.report(done, total, unit="prompts"),
        )
        write_guesses(context.out, ids, found)
        write_cost(
            context.out,
            MeasuredCost(
                passes=sum(len(one.wanted) for one in found),
                tokens_in=sum(one.tokens_in for one in found),
                tokens_out=sum(one.tokens_out for one in found),
            ),
        )

    return Step(
        kind="guesses",
        label=f"{request.method}-{model.label}",
        settings={
            "request": request_record(request),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples, **before},
        libraries=("torch", "transformers", "unicode"),
        code=(root(build),),
        reads={"examples": UNSPLIT},
        volatile=(COST_FILE,),
        build=build,
    )


def texts_to_mask(rows: list[Example], inputs: Mapping[str, Any]) -> list[TextToMask]:
    """Return the examples with their fields and, where they were made, the words' statistics."""
    words = read_words(inputs["words"].path) if "words" in inputs else {}
    return [TextToMask(row.text, row.fields, words.get(row.example_id, ())) for row in rows]
