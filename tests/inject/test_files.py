import pytest


def test_all_files_are_flushed_and_the_first_error_is_raised(tmp_path, monkeypatch):
    import inject.files as module

    flushed: list[str] = []
    full: set[str] = set()
    paths = [tmp_path / str(number) for number in range(40)]

    def fsync(path):
        flushed.append(path.name)
        if path.name in full:
            raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(module, "fsync", fsync)
    module.fsync_all(paths)
    module.fsync_all([])
    assert sorted(flushed, key=int) == [path.name for path in paths]
    full.add("31")
    with pytest.raises(OSError, match="No space left"):
        module.fsync_all(paths)
