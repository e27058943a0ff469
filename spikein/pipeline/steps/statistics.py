"""Steps of token statistics: of a view under one model, and token frequencies of a corpus.

Token statistics are made once for each model and view; every likelihood detector and setting is
then a function of the stored table.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from detect.settings import DetectSettings
from detect.token_statistics import write_statistics
from detect.views import view_text
from inject.corpus.corpus import corpus_tokenizer
from inject.examples.example import read_examples
from inject.reading.rows import files_identity
from inject.reading.unchanged import unchanged
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.measured_cost import COST_FILE, MeasuredCost, write_cost
from spikein.pipeline.steps.artifact_parts import TEXTS, TOKENS
from spikein.pipeline.steps.inputs import open_corpus
from spikein.pipeline.steps.training import ModelNode

if TYPE_CHECKING:
    from detect.engine.target import Target


def statistics_step(model: ModelNode, examples: Step, *, view: str, detect: DetectSettings) -> Step:
    """Make the token statistics of every example under one model, as one view shows it."""
    policy = detect.policy()

    def build(context: StepContext) -> None:
        from detect.engine.forward_pass import token_statistics

        rows = read_examples(context.inputs["examples"].path)
        target = open_target(model, context.inputs, detect)
        statistics = token_statistics(
            target,
            [view_text(view, row.text) for row in rows],
            policy,
            batch_tokens=detect.batch_tokens,
            compile_mode=detect.compile,
            progress=lambda done, total: context.report(done, total, unit="tokens"),
        )
        write_statistics(
            context.out,
            [row.example_id for row in rows],
            statistics,
            record={"view": view, **policy.record()},
        )
        scored = sum(map(len, statistics))
        write_cost(context.out, MeasuredCost(passes=len(rows), tokens_in=scored))

    return Step(
        kind="statistics",
        label=f"{view}-{model.label}",
        settings={
            "view": view,
            "policy": policy.record(),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=model_libraries(model, detect),
        code=(root(build),),
        reads={"examples": TEXTS},
        volatile=(COST_FILE,),
        build=build,
    )


def model_libraries(model: ModelNode, detect: DetectSettings) -> tuple[str, ...]:
    """Return the libraries whose versions decide what a model says."""
    found = ["torch", "transformers"]
    if "adapter" in (model.identity or {}):
        found.append("peft")
    if detect.dtype in ("8bit", "4bit"):
        found.append("bitsandbytes")
    return tuple(found)


def open_target(model: ModelNode, inputs: Mapping[str, Any], detect: DetectSettings) -> "Target":
    """Load the model that a step asks, its input of the name `model`."""
    from detect.engine.target import load_target

    with model.unchanged():
        return load_target(
            model.locate(inputs, "model"),
            revision=model.revision,
            trust_remote_code=model.trust_remote_code,
            device=detect.device,
            dtype=model.dtype(detect.dtype),
            device_map=detect.device_map,
        )


def frequency_step(corpus: Step, detect: DetectSettings) -> Step | None:
    """Count tokens: of the clean corpus, or of files of texts with the corpus's tokenizer."""
    if detect.frequency is None:
        return None
    pattern = None if detect.frequency == "corpus" else detect.frequency
    files: list[dict[str, Any]] = []
    if pattern is not None:
        files = files_identity(pattern)

    def build(context: StepContext) -> None:
        from detect.token_frequency import count_files, count_ids, save_frequency

        clean = open_corpus(corpus, context.inputs)
        if pattern is None:
            step = 1 << 20
            blocks = (
                clean.read(start, min(start + step, clean.n_tokens))
                for start in range(0, clean.n_tokens, step)
            )
            table = count_ids(blocks, clean.vocabulary)
        else:
            tokenizer = corpus_tokenizer(context.inputs["corpus"].path)
            with unchanged("detect.frequency", lambda: files_identity(pattern), files):
                table = count_files(tokenizer, pattern)
        save_frequency(context.out, table)

    return Step(
        kind="frequency",
        label="corpus" if pattern is None else "files",
        settings={"files": files},
        inputs={"corpus": corpus},
        code=(root(build),),
        reads={"corpus": TOKENS},
        build=build,
    )
