"""`samia`: do the model's samples after the beginning contain the words of the rest?

Kaneko et al. 2024, "Sampling-based Pseudo-Likelihood for Membership Inference Attacks": ROUGE-1
recall of the true rest (each of its words, as often as it occurs there), averaged over ten
samples after the first half at temperature 1 among the 50 likeliest tokens. The variant `zlib`
multiplies each sample's recall by the bytes that zlib makes of the sample, against repetition.
Here a sample is cut to the length of the rest; the authors' code allows 1,024 tokens, in which
common words eventually occur.
"""

import zlib
from decimal import Decimal
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field

from detect.access import Access
from detect.detector import Detector
from detect.detectors.prefix import each_written
from detect.generation.continuations import ContinuationRequest, Continued, PromptLength
from detect.generation.text_overlap import compared_words, rouge_1_recall
from inject.settings import PositiveFloat, PositiveInt, Settings


class SamiaParameters(Settings):
    """The sampling of continuations, and whether their compressed size weights them."""

    samples: PositiveInt = 10
    """Continuations of each text."""
    zlib: bool = False
    """Multiply each recall by the bytes that zlib makes of the sample."""
    share: Annotated[Decimal, Field(gt=0, lt=1)] = Decimal("0.5")
    """Share of the words in the prompt."""
    temperature: Annotated[PositiveFloat, Field(le=2)] = 1.0
    """Sampling temperature; 1 leaves the model's distribution unchanged."""
    top_k: PositiveInt | None = 50
    """Number of likeliest tokens to sample from; none for all."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the sampling."""


def sampled(parameters: Any) -> ContinuationRequest:
    """Return the request to the model, for parameters of `samia` or of `cdd`."""
    sampling = parameters.model_dump(include={"samples", "temperature", "top_k", "seed"})
    return ContinuationRequest(beginning=PromptLength("share", parameters.share), **sampling)


def recall(written: str, remainder: str, *, compressed: bool) -> float:
    """Return ROUGE-1 recall of one sample, times its compressed bytes if requested."""
    share = rouge_1_recall(written, remainder)
    if not compressed:
        return share
    words, _ = compared_words(written, remainder)
    return share * len(zlib.compress(" ".join(words).encode()))


def _score(written: Continued, setting: SamiaParameters) -> float:
    return fmean(recall(text, written.rest, compressed=setting.zlib) for text in written.texts)


DETECTOR = Detector(
    name="samia",
    title="SaMIA",
    summary="share of the words of a text's rest that sampled continuations hold",
    source="Kaneko et al. 2024 (SaMIA)",
    needs=(),
    access=Access.TEXT,
    assumption="samples after the beginning of a seen text have more of its words",
    order=122,
    libraries=("zlib",),
    parameters=SamiaParameters,
    grid=(SamiaParameters(), SamiaParameters(zlib=True)),
    **each_written(sampled, _score),
)
