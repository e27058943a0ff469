"""Which server is asked, and how patiently: everything a client must know except what it asks.

None of it bears on what is written but the model, the address and the form of asking; the key is
named by its environment variable, read when a client is made, and stored nowhere.
"""

import os
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from inject.errors import InputError
from inject.secrets import is_variable, masked, secret_in

Api = Literal["completions", "chat"]
NO_KEY = "none"
"""Sent where no key is named; the protocol wants one."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A model behind an OpenAI-compatible server.

    Raises:
        InputError: not an address, or one that holds a password; a concurrency below 1; what cannot
            be the name of an environment variable.
    """

    base_url: str
    """Such as `http://localhost:8000/v1`."""
    model: str
    """The name that the server knows it by."""
    api: Api = "completions"
    """`completions`: prompts go to the model as they are; `chat`: as a user's message."""
    api_key_variable: str | None = None
    """Environment variable that holds the key."""
    concurrency: int = 8
    """Requests in flight at most."""
    timeout: float = 120.0
    """Seconds for one reply."""
    retries: int = 12
    """How often the library asks again where the server fails or limits the rate: for a minute or
    so, unless `Retry-After` says otherwise."""

    def __post_init__(self) -> None:
        if kind := secret_in(self.base_url):
            raise InputError(
                f"the address holds {kind}",
                where=masked(self.base_url),
                hint="Put the key into an environment variable, and name that variable.",
            )
        if not _is_address(self.base_url):
            raise InputError(
                "is not the address of a server",
                where=masked(self.base_url) or "the address",
                allowed="an address such as http://localhost:8000/v1",
            )
        if not self.model:
            raise InputError("the name of the model is missing", where=self.base_url)
        if self.concurrency < 1:
            raise InputError(
                f"{self.concurrency} requests in flight", where="concurrency", allowed="1 or more"
            )
        if self.api_key_variable is not None and not is_variable(self.api_key_variable):
            raise InputError(
                "is not the name of an environment variable",
                where="api_key_variable",
                allowed="letters, digits, underscores; the name, never the key itself",
            )

    def key(self) -> str:
        """Return the key.

        Raises:
            InputError: the environment variable is not set.
        """
        if self.api_key_variable is None:
            return NO_KEY
        value = os.environ.get(self.api_key_variable)
        if not value:
            raise InputError(
                f"the environment variable {self.api_key_variable} is not set",
                where="the key of the server",
                hint=f"export {self.api_key_variable}=… before the run.",
            )
        return value


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
