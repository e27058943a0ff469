"""What options of `spikein detect` can be set to."""

from enum import StrEnum


class LongText(StrEnum):
    """What to do with a text longer than the model's context."""

    window = "window"
    truncate = "truncate"
    error = "error"


class ScoreFirst(StrEnum):
    """Whether a text's first token is scored."""

    drop = "drop"
    start_token = "start_token"


class Dtype(StrEnum):
    """Number format of the model."""

    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"
    eight_bits = "8bit"
    four_bits = "4bit"


class DeviceMap(StrEnum):
    """Where the layers of a model go."""

    none = "none"
    auto = "auto"


class Api(StrEnum):
    """How a server is asked."""

    completions = "completions"
    chat = "chat"


class StartToken(StrEnum):
    """Whether a start token goes before each text."""

    auto = "auto"
    always = "always"
    never = "never"
