"""The rows that an audit reads from its text files."""

from analysis.unlearning_audit.texts import read_given


def test_rows_are_read_up_to_the_limit_and_by_their_delimiter(tmp_path):
    """The limit applies per file; a note names only the files with more rows."""
    columns = [f"id~body\nt{at}~text {at} of the file\n" for at in range(2)]
    texts, holdout = tmp_path / "texts.csv", tmp_path / "holdout.csv"
    texts.write_text(columns[0] + "t1~a second text\nt2~a third text\n")
    holdout.write_text(columns[1] + "t5~another text\n")
    audit_texts = read_given(
        {"texts": str(texts), "holdout": str(holdout)},
        column="body",
        words=None,
        prompt_words=1,
        limit=2,
        delimiter="~",
    )
    assert [text.source_id for text in audit_texts.texts] == ["t0", "t1"]
    assert [chunk.text for chunk in audit_texts.chunks] == [
        "text 0 of the file", "a second text", "text 1 of the file", "another text",
    ]  # fmt: skip
    assert audit_texts.notes == ["texts: only the first 2 rows were read (limit)"]
