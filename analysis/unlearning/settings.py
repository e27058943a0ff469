"""What a user may say about the measures of unlearning."""

from typing import Annotated

from pydantic import Field

from inject.settings import PositiveFloat, Settings


class MeasureSettings(Settings):
    """Margins behind the verdict, and how sharp the tests are."""

    utility_margin: PositiveFloat = 0.1
    """Nats a token of retained or general text that an unlearned model may lose beyond the
    retrained one; a model that surely loses more is called ruined. 0.1 is a perplexity 10 %
    higher."""
    accuracy_margin: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """The same for the accuracy on the benchmark's questions that are retained."""
    small_denominator: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """PrivLeak divides by 1 - AUC of the retrained model; below this a warning stands beside it."""
    permutations: Annotated[int, Field(ge=99, le=100_000)] = 999
    """Swaps of the two models' values behind the p-value of forget quality."""
