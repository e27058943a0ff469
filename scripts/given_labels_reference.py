"""Writes the tables of docs/given-labels.md from the presets and the suites themselves.

    python -m scripts.given_labels_reference

A test compares, so that the page cannot drift from the code.
"""

from pathlib import Path

from detect.compat.suites import SUITES
from detect.score_file.benchmarks import benchmark_names, get_benchmark

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "given-labels.md"
MARK = "<!-- from here on written by python -m scripts.given_labels_reference -->\n"


def reference() -> str:
    """Return the tables as Markdown."""
    lines = [
        "## Presets",
        "",
        "| `--benchmark` | what it is | where it is published | its columns |",
        "|---|---|---|---|",
    ]
    for name in benchmark_names():
        one = get_benchmark(name)
        lines.append(f"| `{one.name}` | {one.summary} | {one.source} | {one.columns} |")
    lines += ["", "What their labels rest on:", ""]
    warnings: dict[str, list[str]] = {}
    for name in benchmark_names():
        warnings.setdefault(get_benchmark(name).warning, []).append(f"`{name}`")
    lines += [f"- {', '.join(names)}: {warning}." for warning, names in warnings.items()]
    lines += ["", "## Public suites", ""]
    for suite in SUITES:
        files = ", ".join(f"`{path}` ({commit})" for path, commit in suite.files.items())
        lines += [
            f"### {suite.name}",
            "",
            f"Read in `{suite.repository}` (GitHub): {files}.",
            "",
            "| of the suite | ours beside it | what the suite does otherwise |",
            "|---|---|---|",
        ]
        for one in suite.detectors:
            lines.append(f"| `{one.name}` | `{one.ours}` | {one.difference or 'nothing found'} |")
        lines += ["", "Not reproduced:", ""]
        lines += [f"- {sentence}." for sentence in suite.not_reproduced]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def document(existing: str) -> str:
    """Return the whole document: what stands before the mark, then the tables."""
    return existing.split(MARK)[0] + MARK + "\n" + reference()


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {DOCUMENT}")
