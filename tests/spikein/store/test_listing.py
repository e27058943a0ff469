"""The folders of artifacts: by kind and by digest, in order, and nothing else of a store."""

import os
import re
from pathlib import Path

from spikein.store.listing import artifact_folders

FOLDERS = (
    "model/b-000000000001", "model/a-000000000002", "model/.000000000003.ab.tmp",
    "model/no digest", "model/c-00000000000g", "corpus/a-000000000001", ".runs/x-000000000001",
    ".unfinished/model-000000000001",
)  # fmt: skip


def made(root: Path) -> Path:
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    (root / "file").write_text("")
    return root


def names(root: Path, *arguments: str) -> list[str]:
    return [str(one.path.relative_to(root)) for one in artifact_folders(root, *arguments)]


def test_only_artifacts_are_listed_by_kind_and_digest(tmp_path):
    root = made(tmp_path)
    slow = sorted(
        str(path.relative_to(root))
        for path in root.glob("[!.]*/[!.]*")
        if re.fullmatch(r".+-[0-9a-f]{12}", path.name)
    )
    assert names(root) == slow
    assert names(root, "model") == ["model/a-000000000002", "model/b-000000000001"]
    assert names(root, "*", "000000000001") == ["corpus/a-000000000001", "model/b-000000000001"]
    assert names(root, "model", "000000000001") == ["model/b-000000000001"]
    for kind in ("no-such-kind", "file", ".runs"):
        assert names(root, kind) == []
    assert names(root / "no such store") == []


def test_a_folder_that_was_built_again_has_another_inode(tmp_path):
    root = made(tmp_path)
    [before] = artifact_folders(root, "model", "000000000001")
    assert before.inode == before.path.stat().st_ino
    (root / "new").mkdir()
    os.rename(before.path, root / "old")
    os.rename(root / "new", before.path)
    [after] = artifact_folders(root, "model", "000000000001")
    assert after.inode != before.inode
