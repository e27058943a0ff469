"""The detection settings of an experiment file: what is scored, and how it is computed.

`DetectSettings` has both, as the user writes one `detect:` section; `identity()` returns only the
settings that affect the scores, so that a batch size never changes an artifact's name.
`ScoringPolicy` contains the choices that affect every score and that papers do not specify; its
record is stored with statistics and scores.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import Field

from inject.errors import InputError
from inject.settings import PositiveFloat, PositiveInt, Settings

StartToken = Literal["auto", "always", "never"]
ScoreFirst = Literal["drop", "start_token"]
LongText = Literal["window", "truncate", "error"]

Adapters = Literal["all_linear", "peft"]
"""Tuning of a target by low-rank adapters: on all linear layers but the head, without weight decay;
or as in Zhang et al. 2025, on PEFT's default layers for the architecture, with a weight decay of
0.0005."""


@dataclass(frozen=True, kw_only=True)
class ScoringPolicy:
    """The mapping from a text to scored positions.

    Raises:
        InputError: for `score_first=start_token` with `bos=never`, a context below 2, or an inverse
            temperature that is not above 0, or listed twice.
    """

    bos: StartToken = "auto"
    """Start token: `auto` as the tokenizer does, `always` (added if absent), `never` (no special
    token of any kind is added)."""
    score_first: ScoreFirst = "drop"
    """`drop`: the first id has no history and is not scored (a start token, or else x_1);
    `start_token`: x_1 is scored after a start token, which is added if absent."""
    long: LongText = "window"
    """A text longer than the context: `window` (stride half; each token scored once, with
    the longer history), `truncate` (the first `context` tokens), `error`."""
    context: int | None = None
    """Maximum tokens per window; None: the model's own maximum."""
    inverse_temperatures: tuple[float, ...] = ()
    """β at which statistics of softmax(β · logits) are computed, in addition to the model's own."""

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
        """Return the policy as plain JSON values, to store with its results."""
        return {**asdict(self), "inverse_temperatures": list(self.inverse_temperatures)}

    def text_record(self) -> dict[str, Any]:
        """Return the part of the record that affects log-probabilities and gradients of a text.

        Inverse temperatures are columns only of the token statistics.
        """
        record = self.record()
        return {name: record[name] for name in ("bos", "score_first", "long", "context")}


CompileMode = Literal["auto", "always", "never"]
Dtype = Literal["auto", "float32", "bfloat16", "float16", "8bit", "4bit"]
DeviceMap = Literal["none", "auto"]

EXECUTION = frozenset({"batch_tokens", "compile", "device", "device_map"})
"""Fields that change the speed of scoring, never the scores."""


class NeighbourSettings(Settings):
    """The neighbours of each example, for the detector `neighbour`."""

    model: str
    """Masked language model that proposes them: a path or a hub id, such as bert-base-uncased."""
    count: PositiveInt = 25
    """Neighbours of each example; fewer if the model proposes no more."""


class DetectSettings(Settings):
    """The `detect:` section of an experiment file."""

    detectors: Literal["all"] | tuple[str, ...] = "all"
    """`all` built-in ones, or a list such as `[loss, "min_k:k=0.1", "my_detector.py:score"]`.
    `blind`, the control of the sides, always runs."""
    tune_share: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """Share of the examples on which settings are chosen; results are reported on the rest."""
    bos: StartToken = "auto"
    """Start token before each text: `auto` (as the tokenizer does), `always`, `never`."""
    score_first: ScoreFirst = "drop"
    """`drop` the first token, or score it after a `start_token`."""
    long: LongText = "window"
    """Texts longer than the context: overlapping windows (`window`), the first tokens (`truncate`),
    or an `error`."""
    context: PositiveInt | None = None
    """Maximum tokens per window; by default the model's maximum."""
    inverse_temperatures: tuple[PositiveFloat, ...] = ()
    """Further β of softmax(β · logits) such as `[0.5, 2]`, for `acmia`; each costs as much as the
    other statistics of the vocabulary."""
    reference: str | None = "base"
    """Model for `reference`: `base`, `twin` (the arm's clean twin), a path or a hub id; null
    disables it."""
    generate: bool = False
    """Let models write texts for detectors of `all`, which is expensive; named detectors may
    anyway."""
    word_reference: str | None = None
    """Masked or causal model that finds surprising words for `info_probe`: a path or a hub id; null
    for that of `reference`."""
    knowledge_filter: str | None = None
    """Model whose correct guesses `info_probe:filtered=true` skips."""
    tagger: str | None = None
    """spaCy pipeline or folder for `tag_tab:entities=one_word`, such as en_core_web_sm; requires
    `pip install 'spikein[tagger]'`."""
    neighbours: NeighbourSettings | None = None
    """Neighbours of each example, for the detector `neighbour`; null disables it."""
    frequency: str | None = "corpus"
    """Text counted for `dc_pdd` and `tag_tab`: `corpus`, or files of texts; null disables it."""
    dtype: Dtype = "auto"
    """Number format of the model: `float32`, `bfloat16`, `float16`, `auto` (float32 on a CPU,
    elsewhere that of the saved weights), or, with bitsandbytes, `8bit` or `4bit`."""
    batch_tokens: PositiveInt | None = None
    """Padded tokens in one batch; by default chosen for the device."""
    compile: CompileMode = "auto"
    """Compile the reduction over the vocabulary: `always`, `never`, or `auto`, if it saves time
    overall."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda`, `cuda:1`, `mps`."""
    device_map: DeviceMap = "none"
    """`auto` spreads a large model over all GPUs, then memory and disk; `none` puts it on
    `device`."""

    def policy(self) -> ScoringPolicy:
        """Return the scoring policy.

        Raises:
            InputError: if its parts contradict one another.
        """
        names = [part.name for part in fields(ScoringPolicy)]
        return ScoringPolicy(**{name: getattr(self, name) for name in names})

    def identity(self) -> dict[str, Any]:
        """Return, as plain JSON values, the settings that affect the scores."""
        return self.model_dump(mode="json", exclude=set(EXECUTION))


def detector_parts(detectors: str | Iterable[str]) -> list[str]:
    """Return the parts of `all`, of `min_k:k=0.2,surp`, or of a list of such texts."""
    texts = [detectors] if isinstance(detectors, str) else list(detectors)
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def names_all(detectors: str | Iterable[str]) -> bool:
    """Return whether `all` is requested, so that detectors with unmet needs may be omitted."""
    return any(part.lower() == "all" for part in detector_parts(detectors))
