"""Which of our modules an experiment of one arm runs: `python -m scripts.bench.modules_of_one_arm`.

One small arm with `loss` and `min_k` is run in this process, to its page; prints JSON with the
number of modules of which a function was called, by package. Takes a minute.
"""

import inspect
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

import spikein

FILES = Path(__file__).resolve().parents[1] / "goldens"
PACKAGES = ("inject", "train", "detect", "analysis", "spikein")


def main() -> None:
    """Run the arm and print what ran."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        # The body of a module or a class runs when it is imported.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            name = frame.f_globals.get("__name__", "")
            if name.partition(".")[0] in PACKAGES and not frame.f_code.co_filename.startswith("<"):
                called.add(name)

    sys.setprofile(note)
    with tempfile.TemporaryDirectory() as folder:
        spikein.run(
            FILES / "reduced.yaml",
            overrides=[
                f"folder={FILES}",
                "seeds=[0]",
                "sweep=null",
                "detect.detectors=[loss, min_k]",
                "executor={kind: in-process}",
            ],
            store=Path(folder) / "store",
            runs=Path(folder) / "runs",
            progress=False,
        )
    sys.setprofile(None)
    counts = Counter(name.partition(".")[0] for name in called)
    print(json.dumps({"modules": counts.total(), **counts}, indent=1))


if __name__ == "__main__":
    main()
