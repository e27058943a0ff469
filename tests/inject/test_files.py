import pytest

from inject.files import replacing, write_text


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_text(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_new_file_replaces_the_old_one(tmp_path):
    path = tmp_path / "folder" / "file"
    write_text(path, "old")
    write_text(path, "new")
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]
