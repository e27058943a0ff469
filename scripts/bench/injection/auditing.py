"""How fast the background's text is audited, and whether memory grows with it.

Examples are generated rows; the background is the docstrings of the standard library, numpy and
scipy, repeated. Speed is bytes of text over this process's CPU time, so other work on the machine
does not count. Memory is the peak of a process that audits 10 MB, and of one that audits 1 GB.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

from inject.corpus.background.document import Document
from inject.examples.contaminant import Contaminant
from inject.examples.load import load_examples
from inject.overlap.filter import OverlapFilter
from inject.overlap.settings import OverlapSettings
from scripts.bench.injection.building import real_texts
from scripts.bench.injection.memory import peak_mib

EXAMPLES = 2_000
SMALL, LARGE = 10, 1_000
_MB = 1_000_000


def measure(*, large: int = LARGE) -> dict[str, Any]:
    """Return MB of text a second of CPU time, and peaks of memory in MiB.

    Args:
        large: MB of text of the larger run.
    """
    small, big = _run(SMALL), _run(large)
    return {
        "audit_mb_per_second": big["mb_per_second"],
        "audit_peak_mib": big["peak_mib"],
        "audit_peak_mib_of_10_mb": small["peak_mib"],
        "audit_mb": big["mb"],
        "audit_examples": big["examples"],
        "audit_found": big["found"],
    }


def _run(megabytes: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench.injection.auditing", str(megabytes)],
        check=True,
        capture_output=True,
        text=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Audit the given number of MB, and print one JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("megabytes", type=int)
    size = parser.parse_args().megabytes * _MB
    contaminant = Contaminant(dataset="fictional", members=EXAMPLES // 2, nonmembers=EXAMPLES // 2)
    examples = load_examples(contaminant, seed=0).examples
    audit = OverlapFilter(examples, OverlapSettings())
    documents = list(_repeated(real_texts(), min(size, 10 * _MB)))
    started = time.process_time()
    for document in cycle(documents):
        audit(document)
        if audit.facts().bytes >= size:
            break
    seconds = time.process_time() - started
    print(
        json.dumps(
            {
                "mb": audit.facts().bytes / _MB,
                "mb_per_second": audit.facts().bytes / _MB / seconds,
                "peak_mib": peak_mib(),
                "examples": len(examples),
                "found": len(audit.found),
            }
        )
    )


def _repeated(texts: list[str], size: int) -> Iterator[Document]:
    """Yield documents of at least `size` bytes together."""
    size_so_far = 0
    for index, text in enumerate(cycle(texts)):
        if size_so_far >= size:
            return
        size_so_far += len(text.encode())
        yield Document(text, f"text:{index}")


if __name__ == "__main__":
    main()
