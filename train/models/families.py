"""The families of models that can be trained from scratch: what sets their blocks apart.

A family knows how many parameters a block has, which configuration of transformers builds it, and
which of its layers LoRA adapts by default. Everything else about sizes is in `train.models.shapes`.
Nothing here imports torch.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

Architecture = Literal["llama", "olmo", "olmo2", "gpt_neox", "qwen2"]

NEOX_ROTARY_SHARE = 0.25
"""Of each head's numbers, turned by the rotary positions of GPT-NeoX and every Pythia."""


class BlockSizes(Protocol):
    """What the parameters of a block follow from: `train.models.shapes.Shape` has them."""

    @property
    def hidden(self) -> int:
        """Numbers of a token in the residual stream."""
        ...

    @property
    def heads(self) -> int:
        """Heads of the attention."""
        ...

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values."""
        ...

    @property
    def intermediate(self) -> int:
        """Numbers inside the feed-forward layer."""
        ...


class Family(NamedTuple):
    """What sets an architecture apart."""

    configuration: str
    """Class of transformers."""
    block: Callable[[BlockSizes], int]
    """Parameters of one block."""
    final_norm: int
    """Parameters of the norm behind the last block, as a multiple of `hidden`."""
    gated: bool
    """Whether the feed-forward layer has a gate: three matrices in place of two."""
    grouped: bool
    """Whether heads can share keys and values (`kv_heads`)."""
    norm_name: str | None
    """The configuration's key for the epsilon of the norms; None where it is fixed."""
    rotary: Mapping[str, Any]
    """Further keys of its rotary positions."""
    norm_bytes: int
    """What the norms of a block, and the 16-bit copies of their outputs, keep of each of the
    `hidden` numbers of a token for the backward pass, with a float32 residual stream."""
    adapted: tuple[str, ...]
    """Layers that LoRA adapts by default: the projections of the attention."""


def _matrices(shape: BlockSizes, *, gated: bool) -> int:
    """Return the weights of a block's matrices: attention and feed-forward."""
    key_value = shape.key_value_heads * (shape.hidden // shape.heads)
    attention = 2 * shape.hidden * shape.hidden + 2 * shape.hidden * key_value
    return attention + (3 if gated else 2) * shape.hidden * shape.intermediate


def _llama(shape: BlockSizes) -> int:
    return _matrices(shape, gated=True) + 2 * shape.hidden


def _olmo(shape: BlockSizes) -> int:
    # Its norms have no parameters (Groeneveld et al. 2024, section 2.1).
    return _matrices(shape, gated=True)


def _olmo2(shape: BlockSizes) -> int:
    # Beside the two norms of the residual stream, one over all queries and one over all keys.
    key_value = shape.key_value_heads * (shape.hidden // shape.heads)
    return _matrices(shape, gated=True) + 3 * shape.hidden + key_value


def _qwen2(shape: BlockSizes) -> int:
    # Queries, keys and values have biases.
    key_value = shape.key_value_heads * (shape.hidden // shape.heads)
    return _llama(shape) + shape.hidden + 2 * key_value


def _gpt_neox(shape: BlockSizes) -> int:
    # Biases everywhere, and two norms with weight and bias.
    biases = 4 * shape.hidden + shape.intermediate + shape.hidden
    return _matrices(shape, gated=False) + biases + 4 * shape.hidden


_LLAMA = Family(
    configuration="LlamaConfig",
    block=_llama,
    final_norm=1,
    gated=True,
    grouped=True,
    norm_name="rms_norm_eps",
    rotary={},
    # Two norms, each with its input, the normalised numbers (4 bytes each) and a copy (2 bytes).
    norm_bytes=20,
    adapted=("q_proj", "k_proj", "v_proj", "o_proj"),
)

FAMILIES: Mapping[Architecture, Family] = {
    "llama": _LLAMA,
    "olmo": _LLAMA._replace(
        configuration="OlmoConfig", block=_olmo, final_norm=0, norm_name=None, norm_bytes=12
    ),
    "olmo2": _LLAMA._replace(configuration="Olmo2Config", block=_olmo2, norm_bytes=36),
    "qwen2": _LLAMA._replace(configuration="Qwen2Config", block=_qwen2),
    "gpt_neox": Family(
        configuration="GPTNeoXConfig",
        block=_gpt_neox,
        final_norm=2,
        gated=False,
        grouped=False,
        norm_name="layer_norm_eps",
        rotary={"partial_rotary_factor": NEOX_ROTARY_SHARE},
        # One input for both norms, and a copy of either's output.
        norm_bytes=8,
        adapted=("query_key_value", "dense"),
    ),
}
