"""Claims are fixed when the first run of a name starts."""

import json
import re

import pytest

from analysis.studies.claims import Claim, claims_digest
from inject.errors import InputError
from spikein.runs.claims import CLAIMS_FILE, fix_claims
from spikein.runs.folder import check_home
from spikein.runs.publication import publish_run
from spikein.runs.record import read_record

SIZE = Claim(hypothesis="Size helps.", contrast={"large": 1, "small": -1})
TAIL = Claim(hypothesis="The tail hurts.", contrast={"long": 1, "short": -1})
DESIGN = {"seeds": [0, 1, 2], "analysis.confidence": 0.95, "arms.large": {"lr": "0.001"}}


def test_equal_claims_are_accepted_again(tmp_path):
    home = tmp_path / "study"
    fix_claims(home, {"size": SIZE, "tail": TAIL}, DESIGN)
    check_home(home)
    fix_claims(home, {"tail": TAIL, "size": SIZE}, DESIGN)


def test_changed_claims_are_refused_with_both_digests(tmp_path):
    home = tmp_path / "study"
    before = {"size": SIZE, "tail": TAIL}
    fix_claims(home, before, DESIGN)
    now = {"size": SIZE.model_copy(update={"margin": 0.1}), "more": TAIL}
    with pytest.raises(InputError) as refusal:
        fix_claims(home, now, DESIGN)
    message = str(refusal.value)
    for digest in (claims_digest(before, DESIGN), claims_digest(now, DESIGN)):
        assert digest[:12] in message
    assert "changed: size, added: more, removed: tail" in message
    assert "another `name`" in message
    fix_claims(home, before, DESIGN)


def test_claims_cannot_be_removed_after_the_start(tmp_path):
    fix_claims(tmp_path / "study", {"size": SIZE}, DESIGN)
    with pytest.raises(InputError, match="removed: size"):
        fix_claims(tmp_path / "study", {}, DESIGN)


def test_claims_cannot_be_added_after_a_run_finished(tmp_path):
    publish_run(tmp_path, "study", lambda folder: None)
    fix_claims(tmp_path / "study", {}, DESIGN)
    with pytest.raises(InputError, match="added: size"):
        fix_claims(tmp_path / "study", {"size": SIZE}, DESIGN)


def test_claims_cannot_be_added_after_a_run_started_without_any(tmp_path):
    fix_claims(tmp_path / "study", {}, DESIGN)
    with pytest.raises(InputError, match=r"claims changed .*now \(added: size\)"):
        fix_claims(tmp_path / "study", {"size": SIZE}, DESIGN)
    # Without claims the design is free.
    fix_claims(tmp_path / "study", {}, DESIGN | {"seeds": [7]})


@pytest.mark.parametrize(
    ("now", "changes"),
    [
        (DESIGN | {"seeds": [0, 1, 2, 3]}, "changed: seeds"),
        (DESIGN | {"analysis.confidence": 0.5}, "changed: analysis.confidence"),
        (DESIGN | {"arms.large": {"lr": "0.002"}}, "changed: arms.large"),
        (DESIGN | {"arms.small": {}}, "added: arms.small"),
        ({"seeds": [0, 1, 2], "arms.large": DESIGN["arms.large"]}, "removed: analysis.confidence"),
    ],
)
def test_the_design_that_decides_claims_cannot_be_changed(tmp_path, now, changes):
    fix_claims(tmp_path / "study", {"size": SIZE}, DESIGN)
    with pytest.raises(InputError) as refusal:
        fix_claims(tmp_path / "study", {"size": SIZE}, now)
    message = str(refusal.value)
    assert "the design of the claims changed after the run started" in message
    assert f"now ({changes})" in message
    assert "another `name`" in message
    assert claims_digest({"size": SIZE}, DESIGN)[:12] in message
    with pytest.raises(InputError, match=re.escape(f"now (added: tail; {changes})")):
        fix_claims(tmp_path / "study", {"size": SIZE, "tail": TAIL}, now)


def test_records_of_claims_without_a_design_fix_only_the_claims(tmp_path):
    (tmp_path / "study").mkdir()
    record = {name: SIZE.model_dump(mode="json", exclude_none=True) for name in ("a", "format")}
    (tmp_path / "study" / CLAIMS_FILE).write_text(json.dumps(record))
    fix_claims(tmp_path / "study", {"a": SIZE, "format": SIZE}, DESIGN | {"seeds": [7]})
    with pytest.raises(InputError, match=r"claims changed .*\(changed: a, removed: format\)"):
        fix_claims(tmp_path / "study", {"a": TAIL}, DESIGN)


def test_damaged_file_is_refused(tmp_path):
    fix_claims(tmp_path / "study", {"size": SIZE}, DESIGN)
    for text, problem in (("{", "cannot be read"), ("[]", "claims changed")):
        (tmp_path / "study" / CLAIMS_FILE).write_text(text)
        with pytest.raises(InputError, match=problem):
            fix_claims(tmp_path / "study", {"size": SIZE}, DESIGN)


def test_run_records_the_digest_of_its_claims(tmp_path):
    digest = claims_digest({"size": SIZE}, DESIGN)
    published = publish_run(tmp_path, "study", lambda folder: None, claims=digest)
    assert read_record(published.folder).claims == digest
    assert json.loads((published.folder / "run.json").read_text())["claims"] == digest
