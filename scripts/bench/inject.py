"""The costs of injection: building a corpus, reading a view, planning, auditing.

Run as `python -m scripts.bench.inject`; the last line is one JSON object. `--only` selects parts.
Each part is a module of `scripts/bench/injection` and documents its measurement there.
"""

import argparse
import json
from collections.abc import Callable
from typing import Any

PARTS = ("building", "reading", "planning", "auditing")


def main() -> None:
    """Measure the chosen parts, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="parts to run")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    for part in arguments.only:
        figures |= _measure_of(part)()
        print(f"{part}: done", flush=True)
    print(json.dumps(figures))


def _measure_of(part: str) -> Callable[[], dict[str, Any]]:
    from scripts.bench.injection import auditing, building, planning, reading

    modules = {
        "building": building,
        "reading": reading,
        "planning": planning,
        "auditing": auditing,
    }
    return modules[part].measure


if __name__ == "__main__":
    main()
