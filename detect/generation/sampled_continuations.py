"""Several sampled continuations of each prompt, from one reading of the prompt.

An audit of an unlearned model lets it continue the first words of a chunk 20 times (Shi et al.
2024, section 7.2.1). A local model reads a prompt once and shares its keys and values among its
samples (`detect.targets.decoding`); a server is asked once a sample, each with a seed of its own,
and keeps its replies. What is written depends on (seed, text of the prompt, number of the sample)
alone: neither on order, nor on batch, nor on what else is asked for. Cost: a pass over each prompt
(over one at the edge of a batch, a second one), then a pass over each token that is written.
"""

from collections.abc import Sequence

from detect.engine.target import Target
from detect.targets.local import LocalTextModel
from detect.targets.text_model import Progress, Sampling, TextModel
from inject.errors import InputError


def sample_continuations(
    target: Target | TextModel,
    prompts: Sequence[str],
    *,
    samples: int,
    max_tokens: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[list[str]]:
    """Return `samples` texts that a model writes after each prompt, in the order given.

    Args:
        target: a local model, or one that writes (`LocalTextModel`, `ServerTextModel`).
        prompts: texts, which go to the model as they are.
        samples: continuations of each prompt.
        max_tokens: most tokens of a continuation, which may end before at an end token.
        temperature: 1 samples from the model's own distribution (multinomial sampling).
        top_p: share of the probability that is sampled from.
        seed: of the sampling.
        progress: called with (prompts done, prompts in all).

    Raises:
        InputError: numbers out of range; a prompt of a local model that leaves no room for its
            continuation, and would be cut; what `LocalTextModel.complete`, or a server, refuses.
    """
    sampling = Sampling(
        max_tokens=max_tokens, temperature=temperature, top_p=top_p, samples=samples, seed=seed
    )
    model = LocalTextModel(target) if isinstance(target, Target) else target
    if isinstance(model, LocalTextModel):
        _check_room(model, prompts, max_tokens)
    found = model.complete(prompts, sampling, progress=progress)
    return [[one.text for one in row] for row in found]


def _check_room(model: LocalTextModel, prompts: Sequence[str], max_tokens: int) -> None:
    """Refuse a prompt that would lose its beginning, or its continuation its end."""
    if model.context is None:
        return
    for number, tokens in enumerate(model.prompt_tokens(prompts)):
        if tokens + max_tokens > model.context:
            raise InputError(
                f"prompt {number} has {tokens:,} tokens and its continuation up to "
                f"{max_tokens:,}, together more than the model's {model.context:,} positions",
                where=model.name,
                hint="Take fewer words of the text, or shorter continuations.",
            )
