"""Detection rates of the background's audit, by the change and the length of a copy.

`python -m scripts.bench.injection.curve [--near T]`, about a minute. Rows are stretches of
documentation texts of the standard library, a text for each row. A copy of each row is in its
own document between two other texts, with a share of its words, drawn at random, replaced
by words of other texts. Prints found / planted, and flagged documents without a copy.
"""

import argparse
import random
from collections.abc import Sequence

from inject.corpus.background.docstrings import DocstringsSource
from inject.corpus.background.document import Document
from inject.examples.example import Example, example_id
from inject.overlap.filter import OverlapFilter
from inject.overlap.settings import OverlapSettings

LENGTHS = (15, 25, 50, 100, 200)
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)
ROWS = 60


def curve(
    settings: OverlapSettings,
    *,
    lengths: Sequence[int] = LENGTHS,
    shares: Sequence[float] = SHARES,
    clean: int | None = None,
) -> tuple[dict[tuple[int, float], int], int, int]:
    """Return the number of `ROWS` copies found by length and share, and the false positives.

    Args:
        settings: the rules.
        lengths: words in a row.
        shares: of the words that are replaced.
        clean: documents without a copy for each length; None for all there are.

    Returns:
        Copies found; documents without a copy that were flagged; and how many of those there are.
    """
    texts = [
        document.text.split()
        for document in DocstringsSource(kind="docstrings", packages=("stdlib",)).documents()
    ]
    draw = random.Random(0)
    draw.shuffle(texts)
    words = [word for text in texts[: len(texts) // 4] for word in text]
    long = [text for text in texts if len(text) >= max(LENGTHS)]
    rows, others = long[:ROWS], [text for text in texts if len(text) < max(LENGTHS)]
    n_found: dict[tuple[int, float], int] = {}
    flagged = compared = 0
    for length in lengths:
        cut = [text[:length] for text in rows]
        audit = OverlapFilter([_example(" ".join(text)) for text in cut], settings)
        for share in shares:
            hits = 0
            for number, text in enumerate(cut):
                changed = list(text)
                for place in draw.sample(range(length), round(share * length)):
                    changed[place] = draw.choice(words)
                before, after = others[2 * number], others[2 * number + 1]
                document = " ".join([*before, *changed, *after])
                name = example_id(" ".join(text))
                audit.found.clear()
                audit(Document(document, f"{number}:1"))
                hits += name in {overlap.example_id for overlap in audit.found}
            n_found[length, share] = hits
        for text in others[2 * ROWS :][:clean]:
            flagged += not audit(Document(" ".join(text), "clean:1"))
            compared += 1
    return n_found, flagged, compared


def _example(text: str) -> Example:
    name = example_id(text)
    return Example(example_id=name, dataset="docs", source_id=name, group=name, text=text, spans={})


def main() -> None:
    """Print the curve as a table of Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = OverlapSettings().near_duplicate
    parser.add_argument("--near", type=float, default=default, help="threshold; 0 for no such rule")
    parser.add_argument("--ngram", type=int, default=OverlapSettings().ngram, help="0 for none")
    options = parser.parse_args()
    settings = OverlapSettings(near_duplicate=options.near or None, ngram=options.ngram or None)
    n_found, flagged, compared = curve(settings)
    print(f"{settings.label()}; flagged without a copy: {flagged} of {compared:,}\n")
    print("| words | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |")
    print("|---" * (len(SHARES) + 1) + "|")
    for length in LENGTHS:
        cells = [f"{n_found[length, share]}/{ROWS}" for share in SHARES]
        print(f"| {length} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
