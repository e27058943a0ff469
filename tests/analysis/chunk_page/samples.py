"""Pages of invented chunks: some continuations repeat the truth, some do not."""

import random

from analysis.chunk_page.page import ChunkContinuation, ChunkPage, ChunkRow

_TEXT = (
    "the river ran slowly under an old bridge where children sold apples and nobody asked why "
    "their lantern was green until winter came with letters from a captain who had never learned "
    "to read, so every evening a different neighbour told him what they said, or might have said"
)


def words(drawn: random.Random, count: int) -> str:
    return " ".join(drawn.choices(_TEXT.split(), k=count)).capitalize() + "."


def row(number: int, *, length: int = 40, show_text: bool = True) -> ChunkRow:
    drawn = random.Random(number)
    truth = words(drawn, length)
    kept = truth.split()[length // 4 : length // 4 + drawn.randrange(3, length // 2)]
    close = f"{words(drawn, 6)} {' '.join(kept)} {words(drawn, length // 3)}"
    ratio = drawn.uniform(0.8, 2.2)
    similarity = len(kept) / length
    return ChunkRow(
        chunk=f"book-{number}",
        suspicion=-abs(ratio - 1),
        suspicious=abs(ratio - 1) < 0.15,
        ratio=ratio,
        similarity=similarity,
        scores={"original": -2.1, "unlearned": -2.1 * ratio, "retrained": -4.3},
        context=words(drawn, length),
        truth=truth,
        continuations=tuple(
            ChunkContinuation(model=name, text=text, similarities={"ROUGE-L": value, "cosine": 0.5})
            for name, text, value in (
                ("original", truth, 1.0),
                ("unlearned", close, similarity),
                ("retrained", words(drawn, length), 0.12),
            )
        ),
        show_text=show_text,
    )


def page(rows: tuple[ChunkRow, ...], **more) -> ChunkPage:
    return ChunkPage(
        **{
            "title": "gradient-difference against its original",
            "sentences": (
                f"{sum(one.suspicious for one in rows)} of {len(rows)} chunks are suspicious, "
                "12 % [8 %, 17 %].",
            ),
            "facts": (
                ("Original", "runs/tofu/models/original", ""),
                ("Band of the ratio", "1/1.15 to 1.15", "of the paper"),
                ("False alarms on the retrained model", "61 % [52 %, 69 %] of 120 chunks", ""),
            ),
            "rows": rows,
            "detector": "Min-K% Prob, k = 20 %",
            **more,
        }
    )
