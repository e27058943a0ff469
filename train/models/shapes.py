"""Model shapes: the sizes of a decoder-only model, and a model with new weights from them.

A shape is a small YAML file; the vocabulary comes from the tokenizer. A family defines the number
of parameters of a block, its configuration class in transformers, and the layers that LoRA adapts
by default. New weights are a pure function of (shape, vocabulary, seed) and leave the global random
state unchanged. Counting parameters and operations needs no torch; building the 1 M shape takes
about 50 ms.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from inject.builtin_files import SHAPES
from inject.errors import InputError, InputErrors, did_you_mean
from inject.keyed import item_key
from inject.settings import PositiveFloat, PositiveInt, Settings

if TYPE_CHECKING:
    from transformers import PreTrainedModel


Architecture = Literal["llama", "olmo", "olmo2", "gpt_neox", "qwen2"]

NEOX_ROTARY_SHARE = 0.25
"""Share of each head's numbers rotated by the positions of GPT-NeoX and every Pythia."""


class Family(NamedTuple):
    """Properties of an architecture."""

    configuration: str
    """Configuration class in transformers."""
    final_norm: int
    """Parameters of the norm after the last block, as a multiple of `hidden`."""
    gated: bool
    """Whether the feed-forward layer has a gate: three matrices instead of two."""
    grouped: bool
    """Whether heads can share keys and values (`kv_heads`)."""
    norm_name: str | None
    """The configuration's key for the epsilon of the norms; None if it is fixed."""
    rotary: Mapping[str, Any]
    """Further keys of its rotary positions."""
    norm_bytes: int
    """Bytes that a block's norms, and the 16-bit copies of their outputs, keep for the backward
    pass per token and `hidden` number, with a float32 residual stream."""
    adapted: tuple[str, ...]
    """Layers that LoRA adapts by default: the projections of the attention."""


def matrices(shape: "Shape") -> dict[str, tuple[int, int]]:
    """Return the matrices of one block by the names of their layers: numbers in, numbers out."""
    hidden, inner, key_value = shape.hidden, shape.intermediate, shape.key_value_width
    if shape.architecture == "gpt_neox":
        return {
            "query_key_value": (hidden, 3 * hidden),
            "dense": (hidden, hidden),
            "dense_h_to_4h": (hidden, inner),
            "dense_4h_to_h": (inner, hidden),
        }
    return {
        "q_proj": (hidden, hidden),
        "k_proj": (hidden, key_value),
        "v_proj": (hidden, key_value),
        "o_proj": (hidden, hidden),
        "gate_proj": (hidden, inner),
        "up_proj": (hidden, inner),
        "down_proj": (inner, hidden),
    }


def _vectors(shape: "Shape") -> int:
    """Return the number of parameters of one block outside matrices: norms and biases."""
    hidden, key_value = shape.hidden, shape.key_value_width
    vectors: dict[Architecture, int] = {
        "llama": 2 * hidden,
        # Its norms have no parameters (Groeneveld et al. 2024, section 2.1).
        "olmo": 0,
        # In addition to the residual stream's two norms, one over all queries and one over all
        # keys.
        "olmo2": 3 * hidden + key_value,
        # Queries, keys and values have biases.
        "qwen2": 3 * hidden + 2 * key_value,
        # Biases everywhere, and two norms with weight and bias.
        "gpt_neox": 9 * hidden + shape.intermediate,
    }
    return vectors[shape.architecture]


_LLAMA = Family(
    configuration="LlamaConfig",
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
        configuration="OlmoConfig", final_norm=0, norm_name=None, norm_bytes=12
    ),
    "olmo2": _LLAMA._replace(configuration="Olmo2Config", norm_bytes=36),
    "qwen2": _LLAMA._replace(configuration="Qwen2Config"),
    "gpt_neox": Family(
        configuration="GPTNeoXConfig",
        final_norm=2,
        gated=False,
        grouped=False,
        norm_name="layer_norm_eps",
        rotary={"partial_rotary_factor": NEOX_ROTARY_SHARE},
        # One input for both norms, and a copy of each output.
        norm_bytes=8,
        adapted=("query_key_value", "dense"),
    ),
}


_OLMO_EPSILON = 1.0e-5


class Shape(Settings):
    """The sizes of a decoder-only transformer, as in its published configuration."""

    architecture: Architecture
    """`llama` (Touvron et al. 2023), `olmo` (Groeneveld et al. 2024: norms without parameters),
    `olmo2` (OLMo 2, 2024: norms after the blocks and on queries and keys), `gpt_neox` (Black et al.
    2022, and Pythia: attention and feed-forward side by side, biases), `qwen2` (Yang et al. 2024:
    biases on queries, keys and values)."""
    hidden: PositiveInt
    """Width of the residual stream."""
    layers: PositiveInt
    """Number of blocks."""
    heads: PositiveInt
    """Attention heads of a block; divides `hidden`."""
    kv_heads: PositiveInt | None = None
    """Key and value heads (grouped-query attention); null for as many as `heads`."""
    intermediate: PositiveInt
    """Width of the feed-forward layer, gated in all but `gpt_neox`."""
    context: PositiveInt
    """Most positions the model can take."""
    rope_theta: PositiveFloat = 10_000.0
    """Base of the rotary position frequencies."""
    tie_embeddings: bool = False
    """Whether the output layer shares the input embedding's weights."""
    norm_eps: PositiveFloat = 1.0e-5
    """Epsilon of the norms; fixed at 1e-5 in `olmo`."""
    init_std: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """Standard deviation of new weights."""

    @model_validator(mode="after")
    def _check_divisibility(self) -> "Shape":
        if self.hidden % (2 * self.heads):
            raise ValueError(
                f"hidden {self.hidden} must be an even multiple of heads {self.heads} "
                "(rotary positions turn pairs of numbers)"
            )
        if self.heads % self.key_value_heads:
            raise ValueError(
                f"heads {self.heads} must be a multiple of kv_heads {self.key_value_heads}"
            )
        if self.kv_heads is not None and not FAMILIES[self.architecture].grouped:
            raise ValueError(
                f"{self.architecture} gives every head its own keys and values; remove kv_heads"
            )
        if self.architecture == "gpt_neox":
            turned = self.hidden // self.heads * NEOX_ROTARY_SHARE
            if turned % 2:
                raise ValueError(
                    f"hidden {self.hidden} must be a multiple of 8 heads, {8 * self.heads} "
                    "(gpt_neox turns a quarter of each head's numbers, in pairs)"
                )
        if self.architecture == "olmo" and self.norm_eps != _OLMO_EPSILON:
            raise ValueError(f"olmo has a fixed norm_eps of {_OLMO_EPSILON:g}; remove it")
        return self

    @property
    def key_value_heads(self) -> int:
        """Key and value heads, filled in."""
        return self.kv_heads or self.heads

    @property
    def key_value_width(self) -> int:
        """Width of all keys, or all values, of a token."""
        return self.key_value_heads * (self.hidden // self.heads)


def load_shape(name_or_path: str | Path) -> Shape:
    """Read a shape by the name of a shipped one, such as `llama-1m`, or from a YAML file.

    Raises:
        InputError: for an unknown name, a missing file, bad YAML, and all wrong keys and values
            together.
    """
    path = SHAPES.find(name_or_path)
    try:
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (YAMLError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"not readable as YAML ({error})", where=str(path)) from error
    if not isinstance(content, dict):
        raise InputError(
            f"a model shape is a mapping of keys to values, got {type(content).__name__}",
            where=str(path),
        )
    try:
        return Shape.model_validate(content)
    except ValidationError as error:
        problems = []
        for item in error.errors():
            key = ".".join(str(part) for part in item["loc"])
            message = item["msg"].removeprefix("Value error, ")
            if item["type"] == "extra_forbidden":
                message = f"unknown key.{did_you_mean(key, Shape.model_fields)}"
            problems.append(f"{key}: {message}" if key else message)
        raise InputErrors(problems, title=f"{path}: not a valid model shape") from error


def parameter_count(shape: Shape, vocabulary: int) -> int:
    """Return the number of trained parameters, shared ones counted once.

    Equal to what transformers builds (see the tests): LLaMA-7B has 6,738,415,616.
    """
    family = FAMILIES[shape.architecture]
    embeddings = vocabulary * shape.hidden * (1 if shape.tie_embeddings else 2)
    block = sum(rows * columns for rows, columns in matrices(shape).values()) + _vectors(shape)
    return embeddings + shape.layers * block + family.final_norm * shape.hidden


def flops_per_token(shape: Shape, vocabulary: int, context: int, adapters: int = 0) -> float:
    """Return the floating-point operations of one training token, forward and backward.

    6 N + 12 L H Q T (Chowdhery et al. 2022, PaLM, appendix B): N the parameters that take part in
    a matrix product (all but the input embedding, whose look-up multiplies nothing; a tied one
    counts as output layer), L layers, H heads, Q numbers per head, T tokens of context. The
    attention term counts the full square, not the causal half, as is usual for model FLOPs
    utilisation. Frozen weights below A trained weights of `adapters` need no gradients: 4 N + 6 A.
    """
    multiplied = parameter_count(shape, vocabulary)
    if not shape.tie_embeddings:
        multiplied -= vocabulary * shape.hidden
    weights = 4.0 * multiplied + 6.0 * adapters if adapters else 6.0 * multiplied
    return weights + 12.0 * shape.layers * shape.hidden * context


def build_model(shape: Shape, vocabulary: int, end_token: int, seed: int) -> "PreTrainedModel":
    """Return a causal language model with new float32 weights on the CPU.

    Args:
        shape: its sizes.
        vocabulary: rows of the embedding, usually `len(tokenizer)`.
        end_token: id of the end-of-text token, which begins and ends a document.
        seed: determines the weights, together with shape and vocabulary.

    Raises:
        InputError: if the vocabulary does not contain the end token.
    """
    import torch
    import transformers

    if not 0 <= end_token < vocabulary:
        raise InputError(
            f"end token {end_token} is outside the vocabulary of {vocabulary}", where="tokenizer"
        )
    family = FAMILIES[shape.architecture]
    sizes = {
        "vocab_size": vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "max_position_embeddings": shape.context,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": shape.rope_theta,
            **family.rotary,
        },
        "tie_word_embeddings": shape.tie_embeddings,
        "initializer_range": shape.init_std,
        "bos_token_id": end_token,
        "eos_token_id": end_token,
        "pad_token_id": None,
    }
    if family.grouped:
        sizes["num_key_value_heads"] = shape.key_value_heads
    if family.norm_name is not None:
        sizes[family.norm_name] = shape.norm_eps
    config = getattr(transformers, family.configuration)(**sizes)
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would also reseed the GPUs, which fork_rng does not restore here.
        torch.default_generator.manual_seed(item_key(f"weights/{seed}"))
        return transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation="sdpa"
        )
