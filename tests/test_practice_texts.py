"""Practice texts and the rows of both sides come from different halves of a benchmark."""

import json

from scripts.practice_texts import MOST_WORDS, halves


def test_rows_that_share_a_passage_are_in_one_half(tmp_path):
    rows = [
        {"question": f"is {at} more than {at % 7}", "passage": f"Number {at // 2}.", "answer": True}
        for at in range(60)
    ]
    rows.append({"question": "is it long", "passage": "word " * MOST_WORDS, "answer": False})
    path = tmp_path / "boolq.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    texts, others = halves("boolq", str(path))
    practised = {row["text"].splitlines()[0] for row in texts}
    remaining = {str(row["passage"]) for row in others}
    assert len(practised) > 5
    assert len(remaining) > 5
    assert not practised & remaining
    assert practised | remaining >= {f"Number {number}." for number in range(30)}
    assert all(row in rows for row in others)
    assert all(row["text"].endswith("Answer: yes") for row in texts)
    assert len(texts) + len(others) in (60, 61)
