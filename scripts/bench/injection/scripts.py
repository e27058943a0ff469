"""Runs of characters of a script that are as rare as words, for docs/contamination-audit.md.

`python -m scripts.bench.injection.scripts FOLDER …`: each folder contains the same pages in another
language, as `.html` or `.txt` files of the same names; pages missing from a folder are skipped.
For each n: the share of runs of n words in one half of the pages that occur in the other half by
chance; mean of five halvings, the same in all languages.
"""

import argparse
import random
import re
from pathlib import Path

from inject.words import WORD_WEIGHT, run_stops, weight, words_of

LENGTHS = (4, 5, 6, 7, 8)
HALVINGS = 5
_BODY = re.compile(r"<main>(.*?)</main>", re.DOTALL)
_CODE = re.compile(r"<pre.*?</pre>", re.DOTALL)


def main() -> None:
    """Print a table of Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="the same pages, a folder a language")
    folders: list[Path] = parser.parse_args().folders
    names = sorted(set.intersection(*map(_names, folders)))
    pages = {folder: [words_of(_text(folder / name)) for name in names] for folder in folders}
    for folder, texts in pages.items():
        heavy = sum(weight(unit) for units in texts for unit in units) / WORD_WEIGHT
        print(f"{folder}: {sum(map(len, texts)):,} units, {heavy:,.0f} words, {len(names)} pages")
    print("| n | " + " | ".join(folder.name for folder in folders) + " |")
    print("|---" * (len(folders) + 1) + "|")
    for size in LENGTHS:
        print(
            f"| {size} | "
            + " | ".join(f"{_rate(pages[column], size):.2%}" for column in folders)
            + " |"
        )


def _names(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.*")
        if path.suffix in (".html", ".txt") and path.stem not in ("print", "toc", "404")
    }


def _text(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    body = _BODY.search(text)
    return _CODE.sub(" ", body[1] if body else text)


def _rate(texts: list[list[str]], size: int) -> float:
    runs = [
        [tuple(units[start:stop]) for start, stop in enumerate(run_stops(units, size))]
        for units in texts
    ]
    n_shared = n_runs = 0
    for number in range(HALVINGS):
        order = list(range(len(runs)))
        random.Random(number).shuffle(order)
        first_half = {run for index in order[::2] for run in runs[index]}
        for index in order[1::2]:
            n_runs += len(runs[index])
            n_shared += sum(run in first_half for run in runs[index])
    return n_shared / max(n_runs, 1)


if __name__ == "__main__":
    main()
