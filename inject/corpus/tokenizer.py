"""Tokenizers: trained here, or loaded from a folder; and the one way texts become token ids.

Texts are encoded as plain text: no token is added, and the letters of a special token (such
as `<|endoftext|>`) inside a text are encoded as letters, so that no document can forge the
end of a document. Encoding costs as much as the backend's batch encoding.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from inject.errors import InputError, first_line
from inject.keyed import I64
from inject.model_folder import require_own_files

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

AnyTokenizer: TypeAlias = "PreTrainedTokenizerBase"
"""A tokenizer, named without the import of transformers, which takes seconds."""

END = "<|endoftext|>"
SMALLEST_VOCABULARY = 257
LARGEST_VOCABULARY = 1 << 20
"""Four times the largest of published models; the trainer takes memory for all ids at once."""
_IN_NO_TEXT = "\U0010ffff"
"""A code point that Unicode gives to no character, before the pieces that no text may contain."""
_log = logging.getLogger(__name__)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> "PreTrainedTokenizerFast":
    """Train a byte-level BPE tokenizer; the same texts give the same tokenizer.

    Id 0 is `<|endoftext|>`, beginning and end of a document (never added by itself); ids 1 to
    256 are the bytes, so every text can be encoded and decoded without loss. There is no
    padding token.

    Args:
        texts: training texts, read once.
        vocabulary: number of ids, at least 257; fewer, with a warning, if the texts have
            too few different pairs.

    Raises:
        InputError: a vocabulary that is too small.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    if vocabulary < SMALLEST_VOCABULARY:
        raise InputError(
            f"a vocabulary of {vocabulary} is too small",
            allowed=f"{SMALLEST_VOCABULARY} or more: the 256 bytes and the end of a document",
        )
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=[END],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    reached = backend.get_vocab_size()
    if reached != vocabulary:
        _log.warning(
            "tokenizer: too few training texts for a vocabulary of %d; it has %d",
            vocabulary,
            reached,
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=END,
        eos_token=END,
        clean_up_tokenization_spaces=False,
    )


def load_tokenizer(folder: str, *, name: str | None = None, **trusted: Any) -> AnyTokenizer:
    """Load a tokenizer from a folder; `inject.corpus.named_tokenizer` also finds one on the hub.

    Args:
        folder: its path.
        name: the user's name for it, for messages; None for the folder.
        trusted: whether code that comes with the tokenizer may be executed.

    Raises:
        InputError: no such folder, or no tokenizer in it.
    """
    from transformers import AutoTokenizer

    path = Path(folder).expanduser()
    if not path.is_dir():
        raise InputError("tokenizer: no such folder", where=folder)
    require_own_files(path)
    try:
        return AutoTokenizer.from_pretrained(str(path), local_files_only=True, **trusted)
    # transformers wraps file and JSON errors in different types from release to release.
    except Exception as error:
        raise InputError(
            f"tokenizer cannot be loaded ({first_line(error)})",
            where=name or folder,
            hint=f"The {'repository' if name else 'folder'} must contain tokenizer.json.",
        ) from error


class EncodedText(NamedTuple):
    """The ids of a text, and their positions in it."""

    ids: I64
    """Shape [tokens]."""
    offsets: npt.NDArray[np.int32]
    """Characters from the first number (included) to the second (excluded), blanks included, shape
    [tokens, 2]. The bytes of one character can be spread over several tokens, all of which then
    contain it. -1 for a token that was added to the text."""


def encode_texts(
    tokenizer: AnyTokenizer, texts: Sequence[str], *, added: bool = False
) -> list[I64]:
    """Return the ids of each text, shape [tokens]; nothing is cut or padded.

    Special tokens spelled out in a text are encoded as ordinary letters; tokens that were added to
    the vocabulary and are not special are tokens like any other.

    Args:
        tokenizer: a fast one, or one written in Python.
        texts: any texts.
        added: whether to include the start and end tokens that the tokenizer adds by itself.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return encode_with(backend, texts, added=added)
    options = {"add_special_tokens": added, "split_special_tokens": True, "verbose": False}
    return [np.asarray(tokenizer.encode(text, **options), dtype=np.int64) for text in texts]


def encode_with(backend: Any, texts: Sequence[str], *, added: bool = False) -> list[I64]:
    """Return the ids of each text by a `tokenizers.Tokenizer`; as `encode_texts`."""
    encodings = _encodings(backend, texts, "encode_batch_fast", added)
    return [np.array(whole.ids, dtype=np.int64) for _, whole in encodings]


def encode_with_offsets(
    tokenizer: AnyTokenizer, texts: Sequence[str], *, added: bool = False
) -> list[EncodedText]:
    """Return the ids of `encode_texts`, and which characters of the text each stands for.

    Raises:
        InputError: when the tokenizer does not know it.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            "this tokenizer does not map tokens to characters",
            where="model.tokenizer",
            allowed="a fast tokenizer, one with a tokenizer.json",
        )
    encoded = []
    for plain, whole in _encodings(backend, texts, "encode_batch", added):
        offsets = np.full((len(whole.ids), 2), -1, dtype=np.int32)
        own = np.array(whole.special_tokens_mask) == 0
        offsets[own] = np.array(plain.offsets, dtype=np.int32).reshape(-1, 2)
        encoded.append(EncodedText(np.array(whole.ids, dtype=np.int64), offsets))
    return encoded


def encode_chat(tokenizer: AnyTokenizer, question: str, *, answer: str = "") -> list[int]:
    """Return the ids of a question in the tokenizer's chat template, the only source of specials.

    Args:
        tokenizer: one with a chat template.
        question: the user's message.
        answer: how the model's answer begins, in the letters of a template.
    """
    encoded = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}],
        chat_template=tokenizer.get_chat_template().removesuffix("\n") + answer,
        add_generation_prompt=True,
        return_dict=True,
        sanitize_control_tokens=True,
    )
    return list(encoded["input_ids"])


def end_token_id(tokenizer: AnyTokenizer) -> int:
    """Return the id of the token that ends a document.

    Raises:
        InputError: a tokenizer without an end token.
    """
    end = tokenizer.eos_token_id
    if end is None:
        raise InputError(
            "the tokenizer has no end token, so documents cannot be separated",
            where=str(tokenizer.name_or_path) or None,
            hint='Set its `eos_token`, for instance in tokenizer_config.json: "eos_token": "</s>".',
        )
    return int(end)


def vocabulary_size(tokenizer: AnyTokenizer) -> int:
    """Return the number of ids a model needs for it: the largest id and one."""
    return max(len(tokenizer), max(tokenizer.get_vocab().values()) + 1)


def _encodings(
    backend: Any, texts: Sequence[str], encode: str, added: bool
) -> list[tuple[Any, Any]]:
    """Return the `tokenizers.Encoding` of each text, and the same with added tokens around it."""
    special = {
        number for number, token in backend.get_added_tokens_decoder().items() if token.special
    }
    with _plain_text(backend) as processor:
        plain = list(getattr(backend, encode)(list(texts), add_special_tokens=False))
        forged = [row for row, encoding in enumerate(plain) if not special.isdisjoint(encoding.ids)]
        if forged:
            letters = _without_special_pieces(backend.to_str())
            again = getattr(letters, encode)([texts[row] for row in forged])
            for row, encoding in zip(forged, again, strict=True):
                plain[row] = encoding
        backend.post_processor = processor
        if not added:
            return list(zip(plain, plain, strict=True))
        return [(encoding, backend.post_process(encoding, None, True)) for encoding in plain]


@lru_cache(maxsize=4)
def _without_special_pieces(serialised: str) -> Any:
    """Return a tokenizer whose model does not know the letters of a special token as a piece.

    A Unigram or a word model finds every piece of its vocabulary in a text, special or not. Numbers
    and scores stay; the token for unknown letters is still written for these.
    """
    from tokenizers import Tokenizer

    state = json.loads(serialised)
    special = {token["content"] for token in state["added_tokens"] if token["special"]}

    def renamed(piece: Any) -> Any:
        return f"{_IN_NO_TEXT}{piece}" if piece in special else piece

    model = state["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {renamed(piece): number for piece, number in model["vocab"].items()}
    else:
        model["vocab"] = [[renamed(piece), score] for piece, score in model["vocab"]]
    if "merges" in model:
        model["merges"] = [
            pair for pair in model["merges"] if special.isdisjoint((*pair, "".join(pair)))
        ]
    if "unk_token" in model:
        model["unk_token"] = renamed(model["unk_token"])
    for token in state["added_tokens"]:
        token["content"] = renamed(token["content"])
    letters = Tokenizer.from_str(json.dumps(state))
    letters.encode_special_tokens = True
    return letters


@contextmanager
def _plain_text(backend: Any) -> Iterator[Any]:
    """Switch off special tokens, truncation, padding and what follows the model; put them back.

    Yields the post-processor, which adds tokens and can trim blanks off offsets.
    """
    special, cut, padded = backend.encode_special_tokens, backend.truncation, backend.padding
    processor = backend.post_processor
    backend.encode_special_tokens = True
    backend.post_processor = None
    backend.no_truncation()
    backend.no_padding()
    try:
        yield processor
    finally:
        backend.encode_special_tokens = special
        backend.post_processor = processor
        if cut is not None:
            backend.enable_truncation(**cut)
        if padded is not None:
            backend.enable_padding(**padded)
