"""The model that writes texts for a step, opened from the step's JSON: local, or on a server."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager

from detect.engine.open_target import open_target
from detect.target_identity import SERVER_FILE
from detect.targets.text_model import TextModel
from inject.step import StepContext, find_function

OPEN_SERVER = "detect.targets.server:open_server"
READ_SERVED = "detect.targets.served_statistics:read_served"
"""Found by name, since most models are on this machine."""


def is_served(context: StepContext) -> bool:
    """Return whether the model that a step queries is on a server."""
    return "server" in context.execution["model"]


@contextmanager
def asked_text_model(context: StepContext, model: TextModel | None = None) -> Iterator[TextModel]:
    """Open the model that a step queries; `SERVER_FILE` records the requests to a server.

    Args:
        context: context of the step, made with `detect.target_identity.target_execution`.
        model: queried instead, such as a model that counts the requests to a server.

    Raises:
        InputError: as `open_target`, or `detect.targets.server.open_server`.
    """
    if model is not None:
        yield model
    elif not is_served(context):
        from detect.targets.local import LocalTextModel

        yield LocalTextModel(open_target(context))
    else:
        with closing(find_function(OPEN_SERVER)(context.execution["model"])) as served:
            yield served
            record = {**served.cost._asdict(), "notes": served.notes()}
            (context.out / SERVER_FILE).write_text(json.dumps(record))
