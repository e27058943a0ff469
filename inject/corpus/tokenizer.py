"""Tokenizers: trained here, or loaded; and the one way texts become token ids.

Texts are encoded as plain text: no token is added, and the letters of a special token (such
as `<|endoftext|>`) inside a text are encoded as letters, so that no document can forge the
end of a document. Encoding costs what the backend's batch encoding costs.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def encode_texts(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str]
) -> list[npt.NDArray[np.int64]]:
    """Return the ids of each text, shape [tokens]; nothing is added, cut or padded.

    Special tokens spelled out in a text are encoded as ordinary letters.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return [
            np.asarray(
                tokenizer.encode(
                    text, add_special_tokens=False, split_special_tokens=True, verbose=False
                ),
                dtype=np.int64,
            )
            for text in texts
        ]
    return encode_with(backend, texts)


def encode_with(backend: Any, texts: Sequence[str]) -> list[npt.NDArray[np.int64]]:
    """Return the ids of each text by a `tokenizers.Tokenizer`; as `encode_texts`."""
    with _plain_text(backend):
        encodings = backend.encode_batch_fast(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]


def encode_offsets(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str]
) -> list[npt.NDArray[np.int64]]:
    """Return where each id of `encode_texts` stands in its text, shape [tokens, 2].

    A token holds the characters from the first number (included) to the second (excluded); the
    bytes of one character can be spread over several tokens, which then all hold it.

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
    with _plain_text(backend):
        encodings = backend.encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2) for encoding in encodings]


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


@contextmanager
def _plain_text(backend: Any) -> Iterator[None]:
    """Switch off special tokens, truncation and padding of a backend, and put them back."""
    special, cut, padded = backend.encode_special_tokens, backend.truncation, backend.padding
    backend.encode_special_tokens = True
    backend.no_truncation()
    backend.no_padding()
    try:
        yield
    finally:
        backend.encode_special_tokens = special
        if cut is not None:
            backend.enable_truncation(**cut)
        if padded is not None:
            backend.enable_padding(**padded)
