"""The folders of artifacts: by kind and by digest, in order, and nothing else of a store."""

from pathlib import Path

from spikein.store.listing import artifact_folders

FOLDERS = (
    "model/b-000000000001", "model/a-000000000002", "model/.000000000003.ab.tmp",
    "model/no digest", "model/c-00000000000g", "corpus/a-000000000001", ".runs/x-000000000001",
    ".unfinished/model-000000000001",
)  # fmt: skip


def make_artifacts(root: Path) -> Path:
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    (root / "file").write_text("")
    return root


def names(root: Path, *arguments: str) -> list[str]:
    return [str(path.relative_to(root)) for path, _ in artifact_folders(root, *arguments)]


def test_only_artifacts_are_listed_by_kind_and_digest(tmp_path):
    root = make_artifacts(tmp_path)
    assert names(root) == [
        "corpus/a-000000000001", "model/a-000000000002", "model/b-000000000001",
    ]  # fmt: skip
    assert names(root, "model") == ["model/a-000000000002", "model/b-000000000001"]
    assert names(root, "*", "000000000001") == ["corpus/a-000000000001", "model/b-000000000001"]
    assert names(root, "model", "000000000001") == ["model/b-000000000001"]
    for kind in ("no-such-kind", "file", ".runs"):
        assert names(root, kind) == []
    assert names(root / "no such store") == []
