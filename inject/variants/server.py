"""A model behind an OpenAI-compatible server.

The key comes from the environment variable that the experiment names, and is written nowhere: a
server that repeats it in its answer finds it masked in our message.
"""

import os

from inject.errors import InputError
from inject.secrets import masked
from inject.variants.settings import ParaphraseVariant

TIMEOUT_SECONDS = 120.0
RETRIES = 3
_NO_KEY = "none"


class ServerTextGenerator:
    """Asks a chat completion for each prompt.

    Raises:
        InputError: the environment variable of the key is not set.
    """

    def __init__(self, variant: ParaphraseVariant) -> None:
        from openai import OpenAI

        self._variant = variant
        self._key = _key(variant.api_key_variable)
        self._client = OpenAI(
            base_url=variant.base_url,
            api_key=self._key,
            timeout=TIMEOUT_SECONDS,
            max_retries=RETRIES,
        )

    def write(self, prompt: str, *, seed: int) -> str:
        """Return the server's answer.

        Raises:
            InputError: the server cannot be reached, or refuses.
        """
        from openai import OpenAIError

        refused = ""
        try:
            answer = self._client.chat.completions.create(
                model=self._variant.model or "",
                messages=[{"role": "user", "content": prompt}],
                temperature=self._variant.temperature,
                max_tokens=self._variant.max_tokens,
                seed=seed,
            )
        except OpenAIError as error:
            refused = masked(str(error) or type(error).__name__, self._key)
        if refused:
            # Raised out here, so that no traceback shows the library's own message.
            raise InputError(
                f"the server of the paraphrase model gave no answer ({refused})",
                where=masked(str(self._variant.base_url), self._key),
                hint="See that it runs, and knows the model "
                f"{self._variant.model!r}; answers so far are kept.",
            )
        return (answer.choices[0].message.content or "") if answer.choices else ""


def _key(variable: str | None) -> str:
    if variable is None:
        return _NO_KEY
    if not os.environ.get(variable):
        raise InputError(
            f"the environment variable {variable} is not set",
            where="variants.of.api_key_variable",
            hint=f"export {variable}=… before the run.",
        )
    return os.environ[variable]
