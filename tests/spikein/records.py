"""Records of runs that are changed so that their own digest does not give the change away."""

import json
from pathlib import Path
from typing import Any

from inject.digest import digest


def change_record(folder: Path, **changes: Any) -> None:
    """Change values of a run's `run.json`, and its digest."""
    values = json.loads((folder / "run.json").read_text(encoding="utf-8")) | changes
    values.pop("digest", None)
    text = json.dumps({**values, "digest": digest(values)})
    (folder / "run.json").write_text(text, encoding="utf-8")
