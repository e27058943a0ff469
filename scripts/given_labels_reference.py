"""Write the tables of benchmarks in docs/score-any-model.md from the presets themselves.

    python -m scripts.given_labels_reference

A test compares, so that the page cannot drift from the code.
"""

from pathlib import Path

from detect.user_rows.benchmarks import benchmark_names, get_benchmark

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "score-any-model.md"
MARK = "<!-- from here on written by python -m scripts.given_labels_reference -->\n"


def reference() -> str:
    """Return the tables as Markdown."""
    lines = [
        "### Presets",
        "",
        "| `--benchmark` | what it is | where it is published | its columns |",
        "|---|---|---|---|",
    ]
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in benchmark_names():
        rows.setdefault(_cells(name), []).append(f"`{name}`")
    lines += [f"| {' | '.join([', '.join(names), *cells])} |" for cells, names in rows.items()]
    lines += ["", "Where their labels come from:", ""]
    warnings: dict[str, list[str]] = {}
    for name in benchmark_names():
        warnings.setdefault(get_benchmark(name).warning, []).append(f"`{name}`")
    lines += [f"- {', '.join(names)}: {warning}." for warning, names in warnings.items()]
    return "\n".join(lines).rstrip("\n") + "\n"


def _cells(name: str) -> tuple[str, ...]:
    """Return the cells of a preset; the number at the end of its name is N."""
    benchmark = get_benchmark(name)
    cells = (benchmark.summary, benchmark.source, benchmark.columns)
    number = name.rpartition("-")[2]
    return tuple(cell.replace(number, "N") for cell in cells) if number.isdigit() else cells


def document(existing: str) -> str:
    """Return the whole document: the text before the mark, then the tables."""
    return existing.split(MARK)[0] + MARK + "\n" + reference()


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {DOCUMENT}")
