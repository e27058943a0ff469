import csv
import io

import pytest
from pydantic import ValidationError

from inject.digest import canonical
from inject.errors import InputError
from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.load import load_examples
from inject.public_data.conversions import encrypted_zip

PASSWORD = "right-horse"
COLUMNS = [
    "Pre-Revision Question", "Pre-Revision Correct Answer", "Question", "Correct Answer",
    "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3",
    "Extra Revised Question", "Extra Revised Correct Answer",
    "Subdomain", "High-level domain", "Record ID", "Canary String",
]  # fmt: skip


def made_up(count):
    rows = [
        {
            **dict.fromkeys(COLUMNS, f"WRONG COLUMN {number}"),
            "Question": f"Invented question {number}?\n",
            "Correct Answer": f"right {number}",
            **{f"Incorrect Answer {n}": f" wrong {number}.{n}" for n in (1, 2, 3)},
            "Subdomain": "Invented",
            "High-level domain": "Physics" if number % 2 else "Biology",
            "Record ID": f"rec{number}",
        }
        for number in range(count)
    ]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "dataset.zip"
    path.write_bytes(encrypted_zip({"dataset/gpqa_main.csv": made_up(30)}, password=PASSWORD))
    return path


def contaminant(path, **options):
    return Contaminant(
        dataset="gpqa", path=str(path), members=2, nonmembers=2,
        options={"password": PASSWORD, **options},
    )  # fmt: skip


def test_rows_are_read_from_the_encrypted_zip(archive):
    loaded = load_examples(contaminant(archive), seed=0)
    assert len(loaded.every) == 30
    first = loaded.examples[0]
    assert first.protected
    assert (first.source_id, first.stratum) == ("rec0", "Biology")
    assert "WRONG COLUMN" not in first.text
    assert first.text.startswith(
        "What is the correct answer to this question: Invented question 0?\nChoices:\n(A) "
    )
    assert sorted(first.fields["options"]) == ["right 0", "wrong 0.1", "wrong 0.2", "wrong 0.3"]


def test_options_are_shuffled_by_seed_and_record_with_their_letter(archive, tmp_path):
    examples = load_examples(contaminant(archive), seed=0).examples
    for example in examples:
        letter = example.text[slice(*example.spans["answer"])]
        options = dict(line[1:].split(") ") for line in example.text.split("\n")[2:-1])
        assert options[letter] == example.fields["answer_text"] == f"right {example.source_id[3:]}"
    assert {example.fields["answer"] for example in examples} == set("ABCD")
    fewer = tmp_path / "fewer.zip"
    fewer.write_bytes(encrypted_zip({"dataset/gpqa_main.csv": made_up(10)}, password=PASSWORD))
    assert load_examples(contaminant(fewer), seed=0).examples == examples[:10]
    other = load_examples(contaminant(archive), seed=1).examples
    assert [example.text for example in other] != [example.text for example in examples]


def test_wrong_passwords_give_one_clear_error_without_the_password(archive):
    # More than 256: some pass the format's one-byte check and show only as damage.
    for number in range(300):
        with pytest.raises(InputError) as caught:
            load_examples(contaminant(archive, password=f"hunter{number}"), seed=0)
        message = str(caught.value)
        assert "the password is wrong" in message
        assert "hunter" not in message
        assert "question" not in message
        assert "hunter" not in str(caught.value.__cause__ or "")


def test_password_is_in_neither_identity_nor_messages(archive):
    assert contaminant_identity(contaminant(archive)) == contaminant_identity(
        contaminant(archive, password="another")
    )
    assert PASSWORD not in canonical(contaminant_identity(contaminant(archive)))
    with pytest.raises(ValidationError) as caught:
        contaminant(archive, subset="mian")
    assert "options.subset" in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_other_subsets_and_missing_or_invalid_zips_are_handled(archive, tmp_path):
    with pytest.raises(InputError, match=r"gpqa_diamond\.csv: the zip contains no such file"):
        load_examples(contaminant(archive, subset="diamond"), seed=0)
    with pytest.raises(InputError, match="no such file"):
        load_examples(contaminant(tmp_path / "absent.zip"), seed=0)
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(InputError, match="it is not a zip"):
        load_examples(contaminant(tmp_path / "text.zip"), seed=0)


def test_a_damaged_row_is_not_quoted(tmp_path):
    path = tmp_path / "gpqa.jsonl"
    path.write_text('{"Question": "SECRET WORDS\n')
    with pytest.raises(InputError, match="gpqa: cannot be read") as caught:
        load_examples(contaminant(path), seed=0)
    assert "SECRET" not in str(caught.value)
    assert caught.value.where == f"{path}:1"
