"""Sentence embeddings of texts, and the cosine between them.

A sentence-transformers model turns a text into a vector of length one; the cosine of two is their
similarity, from -1 to 1 (Shi et al. 2024 take SimCSE so). The library is optional:
`pip install 'spikein[embeddings]'`. The model is a folder, or a hub id; of either only JSON, word
lists and safetensors are read, no code of it runs, and nothing is fetched once it lies here. A text
beyond the model's limit (256 tokens for all-MiniLM-L6-v2, 180 to 200 words) is embedded as far as
it fits, so long texts are compared by their beginnings; `cut` counts them. Vectors do not depend on
what else is embedded, but for the last bits. Cost: for all-MiniLM-L6-v2 some 70 ms of one core a
text of 200 words.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inject.errors import InputError

EXTRA = "pip install 'spikein[embeddings]'"

F32 = npt.NDArray[np.float32]
_TOGETHER = 32


class Embedder:
    """A model that embeds texts, loaded once."""

    def __init__(self, path_or_id: str, *, device: str = "cpu") -> None:
        """Load the model.

        Args:
            path_or_id: a folder that sentence-transformers saved, or a hub id.
            device: as torch names it.

        Raises:
            InputError: sentence-transformers is not installed; no such folder or id; no weights in
                safetensors; no model for sentences.
        """
        folder = find_embedder(path_or_id)
        self.name = path_or_id
        self.cut = 0
        """Texts so far that were longer than the model takes."""
        self._model = _load(str(folder), path_or_id, device)

    @property
    def longest(self) -> int | None:
        """Tokens of a text that are read, special ones included; None where there is no limit."""
        return None if (found := self._model.max_seq_length) is None else int(found)

    def embed(self, texts: Sequence[str]) -> F32:
        """Return one vector of length one a text, [texts, size]; equal texts are embedded once."""
        place = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        if not place:
            return np.zeros((0, int(self._model.get_embedding_dimension())), np.float32)
        self.cut += sum(map(self._is_longer, place))
        vectors = self._model.encode(
            list(place),
            batch_size=_TOGETHER,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, np.float32)[[place[text] for text in texts]]

    def similarities(self, written: Sequence[str], references: Sequence[str]) -> list[float]:
        """Return the cosine of each text and its reference, pair by pair.

        Raises:
            ValueError: not as many references as texts.
        """
        if len(written) != len(references):
            raise ValueError(f"{len(written)} texts and {len(references)} references")
        vectors = self.embed([*written, *references]).astype(np.float64)
        products = (vectors[: len(written)] * vectors[len(written) :]).sum(axis=1)
        return [float(one) for one in np.clip(products, -1.0, 1.0)]

    def _is_longer(self, text: str) -> bool:
        if self.longest is None:
            return False
        ids = self._model.tokenizer(text, truncation=False, verbose=False)["input_ids"]
        return len(ids) > self.longest


def find_embedder(path_or_id: str) -> Path:
    """Return the folder of a model for sentences; nothing is loaded.

    Raises:
        InputError: sentence-transformers is not installed; no such folder or id; no model for
            sentences.
    """
    if find_spec("sentence_transformers") is None:
        raise InputError(
            "embeddings need sentence-transformers, which is not installed",
            where=path_or_id,
            hint=EXTRA,
        )
    from train.models.pretrained import find_model

    folder = find_model(path_or_id).path
    if not (folder / "modules.json").is_file():
        raise InputError(
            "this is no model for sentences: it holds no modules.json",
            where=path_or_id,
            allowed="a folder that sentence-transformers saved, or such a model's hub id",
        )
    return folder


def _load(folder: str, name: str, device: str) -> Any:
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    from train.process_state import plain_transformers

    try:
        with plain_transformers():
            model = SentenceTransformer(
                folder,
                device=device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
    except (
        *(OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError),
        SafetensorError,
    ) as error:
        lines = str(error).strip().splitlines()
        raise InputError(
            f"the model for sentences cannot be loaded: {lines[0] if lines else error!r}",
            where=name,
        ) from error
    return model.eval()
