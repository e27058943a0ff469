"""Checks that a tokenizer belongs to a model: another numbering of tokens gives nonsense inputs.

No error would occur: the ids are in range, and only the loss is high. So the step that copies a
tokenizer compares the two id by id.
"""

from pathlib import Path
from typing import Any

from inject.corpus.named_tokenizer import load_named_tokenizer, tokenizer_identity
from inject.corpus.tokenizer import AnyTokenizer
from inject.errors import InputError
from inject.reading.change_guard import unchanged
from inject.settings import plain
from inject.step import Step, StepContext
from train.models.gguf import gguf_folder, gguf_identity, is_gguf
from train.models.pretrained import find_model
from train.models.weight_check import check_vocabulary, highest_stream_id
from train.settings import ModelSettings

_PROBE = "The 3 rivers of Ørsted met in 1987, didn't they?\n\tNo: they parted…"


def fitting_tokenizer(model: ModelSettings) -> AnyTokenizer:
    """Return the tokenizer that a model names or includes, checked against the model.

    The embedding is checked only for local folders; nothing is fetched from the hub for it.

    Raises:
        InputError: as `load_named_tokenizer`; as `require_own_tokenizer`; ids beyond the embedding.
    """
    name = str(model.tokenizer or model.pretrained)
    tokenizer = load_named_tokenizer(
        tokenizer_place(name),
        revision=None if model.tokenizer else model.revision,
        trust_remote_code=model.trust_remote_code,
    )
    if model.tokenizer is not None:
        require_own_tokenizer(tokenizer, model)
    if model.pretrained is not None and Path(tokenizer_place(model.pretrained)).is_dir():
        check_vocabulary(find_model(model.pretrained).path, highest_stream_id(tokenizer), name)
    return tokenizer


def require_own_tokenizer(tokenizer: AnyTokenizer, model: ModelSettings) -> "AnyTokenizer | None":
    """Check that a named tokenizer numbers texts as the pretrained model's own does.

    Args:
        tokenizer: the tokenizer of the corpus.
        model: names the model.

    Returns:
        The model's own tokenizer; None if it has none, so that a comparison is impossible.

    Raises:
        InputError: if they differ; reports the number of ids and the first one.
    """
    if model.pretrained is None:
        return None
    try:
        own = load_named_tokenizer(
            tokenizer_place(model.pretrained),
            revision=model.revision,
            trust_remote_code=model.trust_remote_code,
        )
    except InputError:
        return None
    tokens, own_tokens = ({number: token for token, number in candidate.get_vocab().items()}
                          for candidate in (tokenizer, own))  # fmt: skip
    # Tokens added to one of them have no counterpart in the other.
    differing = sorted(number for number in tokens.keys() & own_tokens.keys()
                       if tokens[number] != own_tokens[number])  # fmt: skip
    if differing:
        first = differing[0]
        problem = (
            f"{len(differing):,} of {len(tokens):,} ids stand for other texts than in the model's "
            f"own tokenizer; id {first} is {tokens[first]!r} here and {own_tokens[first]!r} there"
        )
    elif tokenizer.encode(_PROBE) != own.encode(_PROBE):
        problem = "it has the ids of the model's own tokenizer, but splits texts differently"
    else:
        return own
    raise InputError(
        f"the tokenizer {model.tokenizer} does not match the model {model.pretrained}: {problem}",
        where="model.tokenizer",
        hint="Remove model.tokenizer: the model has its own.",
    )


def tokenizer_place(name: str) -> str:
    """Return the folder or hub id of a named tokenizer; a GGUF file is dequantised for it.

    Raises:
        InputError: as `train.models.gguf.gguf_folder`.
    """
    return str(gguf_folder(name) if is_gguf(name) else Path(name).expanduser())


def copied_tokenizer_step(model: ModelSettings) -> Step:
    """Copy a tokenizer from a path or hub id."""
    return Step(
        kind="tokenizer",
        label=Path(_name(model)).name,
        function=f"{__name__}:build",
        settings={
            "from": _identity(model),
            **({"its_own_code": True} if model.trust_remote_code else {}),
        },
        libraries=("tokenizers", "transformers"),
        execution={"model": plain(model)},
    )


def build(context: StepContext) -> None:
    """Load the tokenizer, and save it."""
    model = ModelSettings.model_validate(context.execution["model"])
    with unchanged("model.tokenizer", lambda: _identity(model), context.settings["from"]):
        tokenizer = fitting_tokenizer(model)
    tokenizer.save_pretrained(context.out)


def _name(model: ModelSettings) -> str:
    return str(model.tokenizer or model.pretrained or "")


def _identity(model: ModelSettings) -> dict[str, Any]:
    name = _name(model)
    if is_gguf(name):
        return gguf_identity(name)
    return tokenizer_identity(
        name,
        revision=None if model.tokenizer else model.revision,
        trust_remote_code=model.trust_remote_code,
    )
