"""Passwords and keys: detected in files to share, masked in messages of others.

An experiment file is copied into every run's folder, which is made to be shared; so a URL with a
password in it, or a key, is rejected there and never becomes part of an identity. Texts that come
from elsewhere (a server's answer, a library's message) are masked before they are shown. A message
about a secret never repeats it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

MASK = "***"

_SHORTEST = 8
_USER = re.compile(r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^\s/?#'\"<>]+)@")
_QUERY = re.compile(
    r"(?P<name>[?&;#](?:(?:api|access|secret|private)?[-_]?key|sig|passwd|"
    r"[a-z0-9_-]*(?:auth|token|password|secret|signature))=)(?P<value>[^&;#\s'\"<>]+)",
    re.IGNORECASE,
)
_MIXED = "(?=[a-z0-9_.-]*[A-Z])[A-Za-z0-9_.-]"
"""Random letters, which have capitals among them; the names of files seldom do."""
_MAKERS = {
    # docs.github.com: About authentication to GitHub, token formats
    r"gh[oprsu][_-]": r"[A-Za-z0-9]{24,}",
    r"github_pat_": r"[A-Za-z0-9_]{40,}",
    # docs.gitlab.com: Security, token prefixes
    r"gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-": (
        rf"(?:{_MIXED}{{16,}}|[0-9a-f]{{20,}})"
    ),
    # docs.slack.dev: Token types
    r"(?:xox[a-z]\.)?xox[a-z]-|xapp-": r"[0-9]+-[A-Za-z0-9-]{8,}",
    # docs.npmjs.com: About access tokens
    r"npm_": r"[A-Za-z0-9]{30,}",
    # docs.nvidia.com: NGC, generating a personal API key
    r"nvapi-": rf"{_MIXED}{{40,}}",
    # huggingface.co/docs/hub/security-tokens, console.groq.com, docs.x.ai, replicate.com/docs
    r"(?:hf|gsk|xai|r8)[_-]": r"[A-Za-z0-9]{24,}",
    # platform.openai.com, and those who speak its protocol
    r"sk-(?:[a-z]+[0-9]*-)*": r"[A-Za-z0-9_]{16,}",
    # docs.aws.amazon.com: IAM identifiers
    r"A[KS]IA": r"[A-Z0-9]{16}",
    # cloud.google.com/docs/authentication/api-keys
    r"AIza": r"[A-Za-z0-9_-]{30,}",
    # RFC 7519: header and payload are JSON objects in base64url
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ": r"[A-Za-z0-9_.-]{8,}",
}
"""The forms of keys and tokens, by the pages of their issuers."""
_PEM = r"(?:[A-Z0-9]+ )*PRIVATE KEY-----"
"""RFC 7468."""
_KEY = re.compile(
    "|".join(
        [
            *(rf"(?<![A-Za-z0-9])(?:{start}){rest}" for start, rest in _MAKERS.items()),
            rf"-----BEGIN {_PEM}(?:.*?-----END {_PEM}|.*)",
        ]
    ),
    re.DOTALL,
)
# In a message, a key may be cut short, or have a form that is unknown here.
_SHOWN = (
    (re.compile(r"(?i)\b(?P<kept>bearer\s+)[^\s'\",;]{4,}"), rf"\g<kept>{MASK}"),
    (re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_*.-]{6,}"), MASK),
    (_KEY, MASK),
    (_USER, rf"\g<scheme>{MASK}@"),
    (_QUERY, rf"\g<name>{MASK}"),
)
_NAMES = re.compile(r"(?i)(^|_)(api_?key|key|token|secret|password|passwd|passphrase)$")

Path = tuple[str | int, ...]


def secret_in(text: str) -> str | None:
    """Return the kind of secret in a text, in words, or None; an ordinary path has none."""
    if _USER.search(text):
        return "a user name or password in a URL"
    if _QUERY.search(text) and "://" in text:
        return "a key or password in a URL"
    return "text that looks like a key" if _KEY.search(text) else None


def secrets_in(values: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield (place, kind) for every text or key with a secret in nested mappings and lists."""
    if isinstance(values, str):
        kind = secret_in(values)
        if kind:
            yield path, kind
    elif isinstance(values, Mapping):
        for name, value in values.items():
            yield from secrets_in(value, (*path, name))
    elif isinstance(values, list | tuple):
        for index, value in enumerate(values):
            yield from secrets_in(value, (*path, index))


def masked(text: str, *secrets: str | None) -> str:
    """Return a text to be shown, with `***` in place of secrets.

    Args:
        text: such as a server's error message.
        known: secrets by their value, as they were sent. The values of environment variables
            whose names mark them as keys, tokens or passwords are masked in any case.
    """
    values = {value for value in (*secrets, *_from_environment()) if value}
    # The longest first: one may be part of another.
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    for pattern, replacement in _SHOWN:
        text = pattern.sub(replacement, text)
    return text


def without_secrets(values: Any) -> Any:
    """Return nested mappings and lists with the secrets in all texts masked."""
    if isinstance(values, str):
        return masked(values) if secret_in(values) else values
    if isinstance(values, Mapping):
        return {name: without_secrets(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [without_secrets(value) for value in values]
    return values


def _from_environment() -> Iterator[str]:
    for name, value in os.environ.items():
        # Short values (`1`, `true`) would mask half of every message.
        if _NAMES.search(name) and len(value) >= _SHORTEST:
            yield value


def is_variable(name: str) -> bool:
    """Return whether a text is the name of an environment variable, and no key."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and secret_in(name) is None
