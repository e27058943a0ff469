import sys
import textwrap

import pytest

from inject.errors import InputError
from inject.plugins import PluginKind, file_reference, load_file

ANY = PluginKind(noun="detector", accepts=callable, allowed="a function")


def write(folder, **files):
    for name, source in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))


def load(text, expected=ANY):
    return load_file(file_reference(str(text)), expected)


def test_reference_has_file_name_and_parameters():
    assert file_reference("my.py:score") == ("my.py", "score", "")
    assert file_reference(" a b/my.py:score:k=0.2:rule=x.py:y ") == (
        "a b/my.py",
        "score",
        "k=0.2:rule=x.py:y",
    )
    assert file_reference("C:\\my.py:score") == ("C:\\my.py", "score", "")
    assert file_reference("my.py") == ("my.py", "", "")
    assert file_reference("min_k:k=0.2") is None
    assert str(file_reference("my.py:score:k=1")) == "my.py:score"


def test_file_is_executed_once_and_again_after_an_edit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, my="def score(): return 1\ndef other(): return 2\n")
    first, second = load("my.py:score"), load("my.py:score")
    assert first.value is second.value
    assert first.digest == second.digest != load("my.py:other").digest
    assert (first.value(), first.name, first.origin) == (1, "score", "my.py:score")
    write(tmp_path, my="def score(): return 2\n")
    edited = load("my.py:score")
    assert (first.value(), edited.value()) == (1, 2)
    assert edited.digest != first.digest


def test_digest_covers_local_modules_imported_indirectly(tmp_path):
    write(
        tmp_path,
        my="""
            import parts.first as first
            import os.path
            from parts import second

            def score():
                import json
                return first.ONE + second.TWO + len(os.path.sep)
        """,
        unused="raise ValueError",
        **{
            "parts/__init__": "",
            "parts/first": "ONE = 10",
            "parts/second": "from . import first\nfrom .third import TWICE\nTWO = TWICE * 10",
            "parts/third": "TWICE = 2",
        },
    )
    plugin = load(tmp_path / "my.py:score")
    assert plugin.value() == 31
    seen = {plugin.digest}
    for name in ("parts/__init__", "parts/first", "parts/second", "parts/third"):
        path = tmp_path / f"{name}.py"
        path.write_text(path.read_text() + "\n# edited\n")
        seen.add(load(tmp_path / "my.py:score").digest)
    assert len(seen) == 5
    (tmp_path / "unused.py").write_text("")
    assert load(tmp_path / "my.py:score").digest in seen
    assert str(tmp_path) not in sys.path
    assert not {"parts", "my"} & set(sys.modules)


def test_digest_ignores_the_folder_and_folders_do_not_mix(tmp_path):
    for folder, number in (("one", 1), ("two", 2), ("three", 1)):
        write(
            tmp_path / folder,
            my="import helper\ndef score(): return helper.NUMBER",
            helper=f"NUMBER = {number}",
        )
    first, second, third = (
        load(tmp_path / folder / "my.py:score") for folder in ("one", "two", "three")
    )
    assert (first.value(), second.value()) == (1, 2)
    assert first.digest == third.digest != second.digest
    assert first.value is not third.value


def test_imported_package_code_is_listed(tmp_path):
    write(
        tmp_path,
        my="""
            import inject.digest
            from detect.detectors.min_k import lowest_means as lowest
            from spikein import read_rows
            def score(): return lowest
        """,
    )
    # A neighbouring folder with a package's name is not the package.
    write(tmp_path, **{"detect/__init__": "raise ValueError"})
    plugin = load(tmp_path / "my.py:score")
    assert plugin.code == ("detect.detectors.min_k", "inject.digest", "inject.reading.rows")
    from detect.detectors.min_k import lowest_means

    assert plugin.value() is lowest_means


@pytest.mark.parametrize(
    ("source", "reference", "message"),
    [
        (None, "my.py:score", r"my\.py: there is no such file.*current folder"),
        ("x = 1", "my.py", r"my\.py: the name of the detector is missing.*offers no detector"),
        ("def score(): pass", "my.py:scor", r"no 'scor'\. Did you mean 'score'.*offers: score"),
        (
            "import json\n\nnumber = json.loads('{')\n",
            "my.py:score",
            r"my\.py: cannot be imported at my\.py:3 \(`number = json\.loads\('\{'\)`\): "
            "JSONDecodeError",
        ),
        ("import no_such_module", "my.py:score", "my.py:1 .*No module named 'no_such_module'"),
        ("raise SystemExit(0)", "my.py:score", "tries to end the program at my.py:1"),
        ("def score():\n    import helper\n", "my.py:score", "line 2: imports helper inside"),
    ],
)
def test_bad_files_are_explained(tmp_path, monkeypatch, source, reference, message):
    write(tmp_path, helper="\n1 / 0\n", broken="def (")
    if source is not None:
        write(tmp_path, my=source)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    with pytest.raises(InputError, match=message):
        load(reference)
    # No partial module remains: a second call gives the same error.
    with pytest.raises(InputError, match=message):
        load(reference)
    left = {name for name in set(sys.modules) - before if name.startswith("spikein_plugin_")}
    executed = "offers" in message
    assert len(left) == (1 if executed else 0)
