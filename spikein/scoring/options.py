"""Options of `spikein detect` and `spikein.score_texts`.

The keys are those of `detect` in an experiment file, and those of a model without an experiment.
"""

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from detect.settings import DetectSettings, NeighbourSettings, detector_parts, names_all
from detect.user_rows.row_settings import RowSettings
from inject.errors import InputError
from inject.secrets import masked
from inject.server.request import Api, Server
from inject.settings import PositiveInt, Settings


class ServerSettings(Settings):
    """An OpenAI-compatible server."""

    base_url: str
    """Its address, such as `http://localhost:8000/v1`. The texts are sent there."""
    api: Api = "completions"
    """How it is queried: `completions`, prompts as they are; `chat`, as a user's message."""
    api_key_variable: str | None = None
    """Environment variable with the key."""
    concurrency: PositiveInt = 8
    """Maximum number of requests in flight."""
    cache: str | None = None
    """Folder for its replies; by default the user's cache folder."""

    @model_validator(mode="after")
    def _is_a_server(self) -> "ServerSettings":
        # Settings are written into folders that users share.
        try:
            self.server("any model")
        except InputError as error:
            raise ValueError(masked(str(error))) from None
        return self

    def server(self, model: str) -> Server:
        """Return the server of a model.

        Raises:
            InputError: for a malformed address, one with a secret, or a key in place of its
                variable.
        """
        parts = self.model_dump(include={"base_url", "api", "api_key_variable", "concurrency"})
        return Server(model=model, **parts)


class Price(Settings):
    """Prices of a server per million tokens."""

    tokens_in: Annotated[float, Field(ge=0)]
    """Of prompts."""
    tokens_out: Annotated[float, Field(ge=0)]
    """Of generated text."""


class ScoredServer(ServerSettings):
    """The server of the model that is scored, or of its reference."""

    @model_validator(mode="before")
    @classmethod
    def _has_an_address(cls, values: Any) -> Any:
        if isinstance(values, dict) and "base_url" not in values:
            raise ValueError("its address is missing: --server URL, or base_url=URL")
        return values

    confirm_above: Annotated[int, Field(ge=0)] = 1000
    """Maximum number of requests to send without `--yes` or confirmation."""
    price_per_million: Price | None = None
    """`{tokens_in: 0.15, tokens_out: 0.60}`, in any currency, to estimate the cost beforehand."""

    send_protected: tuple[str, ...] = ()
    """Protected datasets, by name, whose texts may be sent to it."""


class ScoringOptions(RowSettings, DetectSettings):
    """How rows are read and scored."""

    detectors: tuple[str, ...] = ("all",)
    """`all`, or names such as `min_k:k=0.2,zlib`, and `FILE.py:NAME`."""
    reference: str | None = None
    """A second model that has not seen the texts, for `reference`."""
    frequency: str | None = None
    """A file, folder or glob of texts, counted for `dc_pdd` and `tag_tab`."""
    held_out: str | None = None
    """A file, folder or glob of unseen texts, not scored: shots, populations (`recall`, `codec` …)
    and calibration of flags. Rows with label 1 are known members, for `con_recall`."""
    revision: str | None = None
    """Branch, tag or commit of a model on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with the model's repository."""
    server: ScoredServer | None = None
    """Server of the model; null for this machine."""
    reference_server: ScoredServer | None = None
    """Server of the model that `reference` names; null for this machine."""
    store: str | None = None
    """Folder of the artifacts; by default in the user's cache folder."""
    executor: str | None = None
    """Name of the executor; by default this process."""

    @field_validator("detectors", mode="before")
    @classmethod
    def _parts(cls, value: Any) -> Any:
        parts = [value] if isinstance(value, str) else value
        texts = isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts)
        return tuple(detector_parts(parts)) if texts else value

    @field_validator("neighbours", mode="before")
    @classmethod
    def _named_model(cls, value: Any) -> Any:
        return NeighbourSettings(model=value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _names_the_reference(self) -> "ScoringOptions":
        if self.reference_server is not None and self.reference is None:
            raise ValueError("reference_server: the model's name there is missing: reference=NAME")
        return self

    @property
    def servers(self) -> tuple[ScoredServer, ...]:
        """All servers."""
        return tuple(
            server for server in (self.server, self.reference_server) if server is not None
        )

    @property
    def leave_out(self) -> bool:
        """Whether detectors without their requirements may be skipped."""
        return names_all(self.detectors)
