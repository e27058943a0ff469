"""What went wrong with a server, as an error that somebody can act on.

No message holds the key: what a server says is masked, shortened, and freed of what is not
printable.
"""

from inject.errors import InputError
from inject.secrets import masked
from inject.server.address import Server


class ServerRefusal(InputError):
    """A server gave no answer.

    Args:
        problem: what happened.
        where: its address.
        hint: what to do next.
        status: of its last reply; None where there was none.
    """

    def __init__(self, problem: str, *, where: str, hint: str, status: int | None) -> None:
        super().__init__(problem, where=where, hint=hint)
        self.status = status


_LONGEST = 300
_HINTS = {
    400: "It refuses a part of the request; its own words say which.",
    401: "See that the key is right; --api-key-variable or api_key_variable names the variable.",
    403: "The key may not use this model.",
    404: "See that the address ends as the server's does (often /v1) and that it knows the model.",
    422: "It refuses a part of the request; its own words say which.",
    429: "Ask with a lower concurrency, or later.",
}
_TEMPLATE = "A model without a chat template is asked by completions, not by chat."


def shown(text: str, key: str) -> str:
    """Return a text of the server's in one line, masked and shortened."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    line = " ".join(masked(plain, key).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def refusal(server: Server, problem: str, *, key: str, status: int | None = None) -> ServerRefusal:
    """Return the error for a server that gave no answer.

    Args:
        server: which one.
        problem: what happened, perhaps in the server's words.
        key: masked wherever it stands.
        status: of its last reply.
    """
    hint = _HINTS.get(status or 0, "")
    if status in (400, 422) and "top_k" in problem:
        hint = "It does not know top_k, which is none of OpenAI's; leave out what asks for it."
    if status is None:
        hint = "See that it runs and is reached at this address."
    elif status >= 500:
        hint = "See its own log."
    if wants_template(problem) or (server.api == "chat" and (status or 0) >= 500):
        hint = f"{_TEMPLATE} {hint}".strip()
    return ServerRefusal(
        f"the server gave no answer for the model {server.model!r}: {shown(problem, key)}",
        where=masked(server.base_url, key),
        hint=f"{hint} Replies that came are kept.".strip(),
        status=status,
    )


def wants_template(text: str) -> bool:
    """Return whether a server says that its model has no chat template."""
    return "chat template" in text.lower() or "chat_template" in text.lower()
