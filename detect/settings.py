"""What an experiment file says about detection: what is scored, and how it is computed.

`DetectSettings` holds both, as the user writes one `detect:` section; `identity()` returns only
what bears on the scores, so that a batch size never changes an artifact's name. `ScoringPolicy`
holds the choices that every score depends on and that papers leave unsaid; its record is stored
with statistics and scores.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from inject.errors import InputError
from inject.settings import PositiveFloat, PositiveInt, Settings

StartToken = Literal["auto", "always", "never"]
ScoreFirst = Literal["drop", "start_token"]
LongText = Literal["window", "truncate", "error"]

Adapters = Literal["all_linear", "peft"]
"""How a target is tuned by low-rank adapters: on all linear layers but the head, without weight
decay; or as Zhang et al. 2025 do, on the layers that are PEFT's default for the architecture, with
a weight decay of 0.0005."""


@dataclass(frozen=True, kw_only=True)
class ScoringPolicy:
    """How a text becomes scored positions.

    Raises:
        InputError: for `score_first=start_token` with `bos=never`, a context below 2, or an inverse
            temperature that is not above 0, or given twice.
    """

    bos: StartToken = "auto"
    """Start token: `auto` as the tokenizer does, `always` (added where it is not), `never`
    (no special token of any kind is added)."""
    score_first: ScoreFirst = "drop"
    """`drop`: the first id has no history and is not scored (a start token, or else x_1);
    `start_token`: x_1 is scored after a start token, which is added where there is none."""
    long: LongText = "window"
    """A text longer than the context: `window` (stride half; each token scored once, with
    the longer history), `truncate` (the first `context` tokens), `error`."""
    context: int | None = None
    """Tokens a window may hold; None: the model's own maximum."""
    inverse_temperatures: tuple[float, ...] = ()
    """β at which statistics of softmax(β · logits) are made besides those of the model itself."""

    def __post_init__(self) -> None:
        if self.score_first == "start_token" and self.bos == "never":
            raise InputError(
                "score_first=start_token scores the first token after a start token, "
                "and bos=never forbids one",
                allowed="score_first=start_token with bos=auto or bos=always",
            )
        if self.context is not None and self.context < 2:
            raise InputError(
                f"a context of {self.context} tokens leaves no token to score",
                where="context",
                allowed="2 or more",
            )
        betas = self.inverse_temperatures
        if not all(0 < beta < math.inf for beta in betas) or len(set(betas)) < len(betas):
            raise InputError(
                f"inverse temperatures cannot be {', '.join(map(str, betas))}",
                where="inverse_temperatures",
                allowed="numbers above 0, each once",
            )

    def record(self) -> dict[str, Any]:
        """Return the policy as plain JSON values, to be stored with what it produced."""
        return {**asdict(self), "inverse_temperatures": list(self.inverse_temperatures)}

    def text_record(self) -> dict[str, Any]:
        """Return what of the record bears on log-probabilities and gradients of a text.

        Inverse temperatures are columns of the token statistics alone.
        """
        record = self.record()
        return {name: record[name] for name in ("bos", "score_first", "long", "context")}


CompileMode = Literal["auto", "always", "never"]
Dtype = Literal["auto", "float32", "bfloat16", "float16", "8bit", "4bit"]
DeviceMap = Literal["none", "auto"]

EXECUTION = frozenset({"batch_tokens", "compile", "device", "device_map"})
"""Fields that change how fast scores come, never the scores."""


class NeighbourSettings(Settings):
    """The neighbours of each example, for the detector `neighbour`."""

    model: str
    """Masked language model that proposes them: a path or a hub id, such as bert-base-uncased."""
    count: PositiveInt = 25
    """Neighbours of each example; fewer where the model proposes no more."""


class DetectSettings(Settings):
    """The `detect:` section of an experiment file."""

    detectors: Literal["all"] | tuple[str, ...] = "all"
    """`all` built-in ones, or a list such as `[loss, "min_k:k=0.1", "my_detector.py:score"]`:
    names, with parameters, and `FILE.py:NAME` for your own. `blind`, the control of the sides, runs
    unasked."""
    tune_share: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """Share of the examples on which hyper-parameters are chosen; the rest is reported."""
    bos: StartToken = "auto"
    """Start token before each text: as the tokenizer does, always, or never."""
    score_first: ScoreFirst = "drop"
    """`drop` the first token, or score it after a `start_token`."""
    long: LongText = "window"
    """A text longer than the context: overlapping windows, its first tokens only, or an error."""
    context: PositiveInt | None = None
    """Tokens a window may hold; by default the model's maximum."""
    inverse_temperatures: tuple[PositiveFloat, ...] = ()
    """Further β such as `[0.5, 2]` of softmax(β · logits) (`acmia`); each takes about the time of
    the other statistics of the vocabulary."""
    reference: str | None = "base"
    """Model of the `reference` detector: `base`, `twin` (the arm's clean twin), a path or a hub id;
    null leaves it out."""
    generate: bool = False
    """Let models write, for those detectors of `all` that read it: dear, a token at a time. A
    detector that is named needs no leave."""
    word_reference: str | None = None
    """Model that says which words of a text surprise, for `info_probe`: a masked or a causal one, a
    path or a hub id; null for the one of `reference`."""
    knowledge_filter: str | None = None
    """Model whose guesses `info_probe:filtered=true` leaves out: a path or a hub id."""
    tagger: str | None = None
    """spaCy pipeline that finds named entities, for `tag_tab:entities=one_word`: an installed one
    such as en_core_web_sm, or a folder; takes `pip install 'spikein[tagger]'`."""
    neighbours: NeighbourSettings | None = None
    """Neighbours of each example, for the detector `neighbour`; null leaves it out."""
    frequency: str | None = "corpus"
    """Text counted for `dc_pdd` and `tag_tab`: `corpus`, or files of texts; null leaves it out."""
    dtype: Dtype = "auto"
    """Number format of the model: `auto` is float32 on a CPU, elsewhere the checkpoint's own;
    `8bit` and `4bit` quantise, and need bitsandbytes."""
    batch_tokens: PositiveInt | None = None
    """Padded tokens in one batch; by default chosen for the device."""
    compile: CompileMode = "auto"
    """Compile the reduction over the vocabulary: `auto` where that repays its time."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda`, `cuda:1`, `mps`."""
    device_map: DeviceMap = "none"
    """`auto` spreads a model that is too large for one device over all GPUs, then memory and disk;
    `none` puts it on `device`."""

    def policy(self) -> ScoringPolicy:
        """Return the scoring policy.

        Raises:
            InputError: where its parts contradict one another.
        """
        return ScoringPolicy(
            bos=self.bos,
            score_first=self.score_first,
            long=self.long,
            context=self.context,
            inverse_temperatures=self.inverse_temperatures,
        )

    def identity(self) -> dict[str, Any]:
        """Return, as plain JSON values, the settings that bear on the scores."""
        return self.model_dump(mode="json", exclude=set(EXECUTION))


def detector_parts(given: str | Iterable[str]) -> list[str]:
    """Return the parts of `all`, of `min_k:k=0.2,surp`, or of a list of such texts."""
    texts = [given] if isinstance(given, str) else list(given)
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def names_all(given: str | Iterable[str]) -> bool:
    """Return whether `all` was asked for, so that detectors without their needs may be left out."""
    return any(part.lower() == "all" for part in detector_parts(given))
