"""Commands of `spikein` in this process."""

from typing import Any

from typer.testing import CliRunner

from spikein.cli.main import app


def invoke(*words: object, code: int | None = None) -> Any:
    """Run a command; if `code` is given, the command must end with it."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert code in (None, result.exit_code), result.output
    return result
