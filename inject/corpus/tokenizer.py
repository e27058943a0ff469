"""Tokenizers: trained here, or loaded; and the one way texts become token ids.

Texts are encoded as plain text: no token is added, and the letters of a special token (such
as `<|endoftext|>`) inside a text are encoded as letters, so that no document can forge the
end of a document. Encoding costs what the backend's batch encoding costs.
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inject.errors import InputError
from inject.hub.model_code import foreign_code, trusted_code
from inject.hub.offline import UNRESOLVED
from inject.hub.resolver import first_line, identity_commit
from inject.hub.snapshot import CODE_FILES, TOKENIZER_FILES, fetch_snapshot
from inject.model_folder import require_own_files, tokenizer_class, tokenizer_files

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

END = "<|endoftext|>"
SMALLEST_VOCABULARY = 257
LARGEST_VOCABULARY = 1 << 20
"""Four times the largest of published models; the trainer takes memory for all ids at once."""
_IN_NO_TEXT = "\U0010ffff"
"""A code point that Unicode gives to no character, before the pieces that no text may hold."""
_log = logging.getLogger(__name__)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> "PreTrainedTokenizerFast":
    """Train a byte-level BPE tokenizer; the same texts give the same tokenizer.

    Id 0 is `<|endoftext|>`, beginning and end of a document (never added by itself); ids 1 to
    256 are the bytes, so every text can be encoded and decoded without loss. There is no
    padding token.

    Args:
        texts: training texts, read once.
        vocabulary: number of ids, at least 257; fewer, with a warning, where the texts hold
            too few different pairs.

    Raises:
        InputError: the vocabulary is too small.
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
            "tokenizer: the training texts are too few for a vocabulary of %d; it has %d",
            vocabulary,
            reached,
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=END,
        eos_token=END,
        clean_up_tokenization_spaces=False,
    )


def load_tokenizer(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> "PreTrainedTokenizerBase":
    """Load a tokenizer from a folder or, by its id, from the hub.

    Args:
        path_or_id: a folder that exists, or an id such as `gpt2` or `owner/name`.
        revision: branch, tag or commit on the hub.
        trust_remote_code: whether code that comes with the tokenizer may be executed.

    Raises:
        InputError: no such folder, no tokenizer in it, hub not reachable or no such id.
    """
    from transformers import AutoTokenizer

    folder, commit = _tokenizer_folder(path_or_id, revision, trust_remote_code)
    trusted = {}
    if trust_remote_code:
        trusted = trusted_code(folder, name=path_or_id, commit=commit)
    try:
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, **trusted)
    # transformers wraps network, JSON and file errors in different types from release to release.
    except Exception as error:
        raise InputError(
            f"tokenizer cannot be loaded ({first_line(error)})",
            where=path_or_id,
            hint="The folder must hold tokenizer.json."
            if commit is None
            else "The repository must hold tokenizer.json.",
        ) from error


def _tokenizer_folder(
    path_or_id: str, revision: str | None, trust_remote_code: bool
) -> tuple[Path, str | None]:
    """Return the folder of a tokenizer, and its commit where it was fetched from the hub."""
    folder = Path(os.path.expanduser(path_or_id))
    if folder.is_dir():
        require_own_files(folder)
        return folder, None
    if path_or_id[:1] in "./~" or path_or_id.count("/") > 1 or folder.exists():
        raise InputError(
            "tokenizer: no such folder",
            where=path_or_id,
            allowed="a folder with tokenizer files, or an id of the hub",
        )
    wanted = (*TOKENIZER_FILES, *CODE_FILES) if trust_remote_code else TOKENIZER_FILES
    found = fetch_snapshot(path_or_id, revision, wanted)
    require_own_files(found.path)
    return found.path, found.commit


def tokenizer_identity(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> dict[str, Any]:
    """Return what decides a tokenizer's ids: the digests of its files, or its hub commit.

    Args:
        path_or_id: a folder that exists, or an id of the hub.
        revision: branch, tag or commit on the hub.
        trust_remote_code: whether code that it takes from another repository may be executed,
            whose commit then counts, too.

    Raises:
        Unreachable: a hub that cannot be reached.
        InputError: a folder without tokenizer files; an id that the hub does not know.
    """
    folder = Path(path_or_id).expanduser()
    if folder.is_dir():
        files = tokenizer_files(folder)
        if not files:
            raise InputError(
                "the folder holds no tokenizer", where=path_or_id, allowed="tokenizer.json …"
            )
        identity: dict[str, Any] = {"files": files, "class": tokenizer_class(folder)}
        commit = None
    else:
        commit = identity_commit("model", path_or_id, revision, what=f"tokenizer {path_or_id}")
        identity = {"hub": path_or_id, "commit": commit}
        if trust_remote_code and commit != UNRESOLVED:
            folder = fetch_snapshot(path_or_id, commit, TOKENIZER_FILES).path
    if trust_remote_code and commit != UNRESOLVED:
        code = foreign_code(folder, name=path_or_id, commit=commit)
        identity |= {"code": code.identity()} if code else {}
    return identity


class EncodedText(NamedTuple):
    """The ids of a text, and where they stand in it."""

    ids: npt.NDArray[np.int64]
    """Shape [tokens]."""
    offsets: npt.NDArray[np.int32]
    """Characters from the first number (included) to the second (excluded), blanks included, shape
    [tokens, 2]. The bytes of one character can be spread over several tokens, which then all hold
    it. -1 for a token that was added to the text."""


def encode_texts(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], *, added: bool = False
) -> list[npt.NDArray[np.int64]]:
    """Return the ids of each text, shape [tokens]; nothing is cut or padded.

    Special tokens spelled out in a text are encoded as ordinary letters; tokens that were added to
    the vocabulary and are not special are tokens like any other.

    Args:
        tokenizer: a fast one, or one written in Python.
        texts: any texts.
        added: whether start and end tokens stand where the tokenizer puts them by itself.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return encode_with(backend, texts, added=added)
    options = {"add_special_tokens": added, "split_special_tokens": True, "verbose": False}
    return [np.asarray(tokenizer.encode(text, **options), dtype=np.int64) for text in texts]


def encode_with(
    backend: Any, texts: Sequence[str], *, added: bool = False
) -> list[npt.NDArray[np.int64]]:
    """Return the ids of each text by a `tokenizers.Tokenizer`; as `encode_texts`."""
    found = _encodings(backend, texts, "encode_batch_fast", added)
    return [np.array(whole.ids, dtype=np.int64) for _, whole in found]


def encode_with_offsets(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], *, added: bool = False
) -> list[EncodedText]:
    """Return the ids of `encode_texts`, and which characters of the text each stands for.

    Raises:
        InputError: when the tokenizer does not know it.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            "this tokenizer does not say which characters a token stands for",
            where="model.tokenizer",
            allowed="a fast tokenizer, one with a tokenizer.json",
        )
    found = []
    for plain, whole in _encodings(backend, texts, "encode_batch", added):
        offsets = np.full((len(whole.ids), 2), -1, dtype=np.int32)
        own = np.array(whole.special_tokens_mask) == 0
        offsets[own] = np.array(plain.offsets, dtype=np.int32).reshape(-1, 2)
        found.append(EncodedText(np.array(whole.ids, dtype=np.int64), offsets))
    return found


def encode_chat(
    tokenizer: "PreTrainedTokenizerBase", question: str, *, answer: str = ""
) -> list[int]:
    """Return the ids of a question in the tokenizer's chat template, which holds the only specials.

    Args:
        tokenizer: one with a chat template.
        question: what the user says.
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


def end_token_id(tokenizer: "PreTrainedTokenizerBase") -> int:
    """Return the id of the token that ends a document.

    Raises:
        InputError: the tokenizer has none.
    """
    end = tokenizer.eos_token_id
    if end is None:
        raise InputError(
            "the tokenizer has no end token, so documents cannot be told apart",
            where=str(tokenizer.name_or_path) or None,
            hint='Set its `eos_token`, for instance in tokenizer_config.json: "eos_token": "</s>".',
        )
    return int(end)


def vocabulary_size(tokenizer: "PreTrainedTokenizerBase") -> int:
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
        found = list(getattr(backend, encode)(list(texts), add_special_tokens=False))
        forged = [row for row, one in enumerate(found) if not special.isdisjoint(one.ids)]
        if forged:
            letters = _without_special_pieces(backend.to_str())
            again = getattr(letters, encode)([texts[row] for row in forged])
            for row, encoding in zip(forged, again, strict=True):
                found[row] = encoding
        backend.post_processor = processor
        return [(one, backend.post_process(one, None, True) if added else one) for one in found]


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
