"""No stream's audit takes another's place, however their models are called."""

from analysis.page.streams import stream_audits
from inject.stream.audit_report import AuditReport, write_audit


def audit_folder(root, digest: str, *, passed: bool):
    folder = root / f"poisson=2-splice-seed0-{digest}"
    folder.mkdir()
    report = AuditReport(
        passed=passed, members=1, nonmembers=1, zero_copy_members=0, copies_expected=1,
        copies_found=1, displaced=(), wrong_counts=(), nonmembers_found=(), background_hits=(),
        tokens_searched=len(digest),
    )  # fmt: skip
    write_audit(folder, report)
    return folder


def test_streams_of_one_label_are_all_shown_and_told_apart(tmp_path):
    """Models that were trained for other experiments keep those experiments' labels."""
    good = audit_folder(tmp_path, "a" * 12, passed=True)
    bad = audit_folder(tmp_path, "b" * 12, passed=False)
    for order in ((good, bad), (bad, good)):
        found = stream_audits([("seed=0", path) for path in order])
        assert [one.passed for one in found.values()] == [path == good for path in order]
        assert all("seed=0 (audit " in name for name in found)


def test_a_stream_that_models_share_is_shown_once_with_all_their_labels(tmp_path):
    folder = audit_folder(tmp_path, "a" * 12, passed=True)
    found = stream_audits([("lr=1,seed=0", folder), ("lr=2,seed=0", folder)])
    assert list(found) == ["lr=1,seed=0; lr=2,seed=0"]
