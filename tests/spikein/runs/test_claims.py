"""Claims are fixed when the first run of a name starts."""

import json

import pytest

from analysis.studies.claims import Claim, claims_digest
from inject.errors import InputError
from spikein.runs.claims import CLAIMS_FILE, fix_claims
from spikein.runs.folder import check_home
from spikein.runs.publication import publish_run
from spikein.runs.record import read_record

SIZE = Claim(hypothesis="Size helps.", contrast={"large": 1, "small": -1})
TAIL = Claim(hypothesis="The tail hurts.", contrast={"long": 1, "short": -1})


def test_equal_claims_are_accepted_again(tmp_path):
    home = tmp_path / "study"
    fix_claims(home, {"size": SIZE, "tail": TAIL})
    check_home(home)
    fix_claims(home, {"tail": TAIL, "size": SIZE})


def test_changed_claims_are_refused_with_both_digests(tmp_path):
    home = tmp_path / "study"
    before = {"size": SIZE, "tail": TAIL}
    fix_claims(home, before)
    now = {"size": SIZE.model_copy(update={"margin": 0.1}), "more": TAIL}
    with pytest.raises(InputError) as refusal:
        fix_claims(home, now)
    message = str(refusal.value)
    for digest in (claims_digest(before), claims_digest(now)):
        assert digest[:12] in message
    assert "changed: size, added: more, removed: tail" in message
    assert "another `name`" in message
    fix_claims(home, before)


def test_claims_cannot_be_removed_after_the_start(tmp_path):
    fix_claims(tmp_path / "study", {"size": SIZE})
    with pytest.raises(InputError, match="removed: size"):
        fix_claims(tmp_path / "study", {})


def test_claims_cannot_be_added_after_a_run_finished(tmp_path):
    fix_claims(tmp_path / "study", {})
    assert not (tmp_path / "study").exists()
    publish_run(tmp_path, "study", lambda folder: None)
    fix_claims(tmp_path / "study", {})
    with pytest.raises(InputError, match="added: size"):
        fix_claims(tmp_path / "study", {"size": SIZE})


def test_damaged_file_is_refused(tmp_path):
    fix_claims(tmp_path / "study", {"size": SIZE})
    for text, problem in (("{", "cannot be read"), ("[]", "claims changed")):
        (tmp_path / "study" / CLAIMS_FILE).write_text(text)
        with pytest.raises(InputError, match=problem):
            fix_claims(tmp_path / "study", {"size": SIZE})


def test_run_records_the_digest_of_its_claims(tmp_path):
    digest = claims_digest({"size": SIZE})
    published = publish_run(tmp_path, "study", lambda folder: None, claims=digest)
    assert read_record(published.folder).claims == digest
    assert json.loads((published.folder / "run.json").read_text())["claims"] == digest
