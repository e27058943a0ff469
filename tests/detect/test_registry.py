import textwrap

import pytest

from detect.detector_settings import parse_detectors
from detect.detector_table import detector_table
from detect.registry import (
    BUILT_IN,
    _built_in_names,
    detector_names,
    detector_title,
    get_detector,
)
from detect.scoring import score_rows
from inject.errors import InputError
from tests.detect.evidence_samples import evidence_of, statistics_of
from tests.inject.plugins.packages import forget, install
from tests.processes import printed

FUNCTION = '''
def lowest(example):
    """The least likely token."""
    return float(example.statistics["text"].log_probability.min())
'''
DETECTOR = """
from spikein import Detector, Reference, Score, Settings, View, each_example

class Parameters(Settings):
    k: int = 3

def score(example, settings):
    return [Score(float(one.k)) for one in settings]

MINE = Detector(
    name="mine", summary="k", needs=(View("text"),), parameters=Parameters,
    grid=(Parameters(), Parameters(k=4)), score=each_example(score),
)
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(tmp_path, name, source):
    (tmp_path / name).write_text(textwrap.dedent(source))


def scores(specification):
    evidence = evidence_of(statistics_of([-3.0, -5.0]), statistics_of([-1.0, -2.0]))
    table = score_rows(["a", "b"], evidence, parse_detectors(specification))[0]
    return {
        (row["detector"], row["setting"], row["example_id"]): row["score"]
        for row in table.to_pylist()
    }


def test_aliases():
    names = ["ppl", "min-k", "MinK++", "Min-K%++", "dc-pdd", "DC_PDD", "ref"]
    expected = ["loss", "min_k", "min_k_plus_plus", "min_k_plus_plus", "dc_pdd", "dc_pdd"]
    assert [get_detector(name).detector.name for name in names] == [*expected, "reference"]


def test_titles_find_built_in_detectors_and_plugins_keep_their_name(tmp_path):
    titles = {row.name: row.title for row in detector_table()[0] if row.origin == BUILT_IN}
    assert titles["gap_k"] == "Gap-K%"
    assert titles["dc_pdd"] == "DC-PDD"
    assert {get_detector(title).detector.name: title for title in titles.values()} == titles
    assert [detector_title(name) for name in ("gap_k", "of.mine")] == ["Gap-K%", "of.mine"]
    write(tmp_path, "my.py", FUNCTION)
    assert detector_table(["my.py:lowest"])[0][-1].title == "my.lowest"


@pytest.mark.parametrize("title", ["two\nlines", "x" * 41, 3])
def test_invalid_title_is_rejected(tmp_path, title):
    write(tmp_path, "my.py", DETECTOR.replace('name="mine"', f'name="mine", title={title!r}'))
    with pytest.raises(InputError, match="one line of at most 40 characters"):
        get_detector("my.py:MINE")


def test_title_of_a_built_in_detector_is_rejected(tmp_path):
    write(tmp_path, "my.py", DETECTOR.replace('name="mine"', 'name="mine", title="Gap-K%"'))
    with pytest.raises(InputError, match="the title 'Gap-K%' is taken by a built-in detector"):
        get_detector("my.py:MINE")


def test_built_in_detector_is_in_the_file_of_its_name():
    assert set(detector_names()) == set(_built_in_names())
    assert all(get_detector(name).detector.name == name for name in detector_names())
    assert detector_names()[:3] == ("loss", "zlib", "lowercase")


def test_listing_detectors_imports_none_of_them():
    code = (
        "import sys, spikein.cli.main; from detect.registry import _built_in_names as names;"
        "print(len(names()));"
        "print([name for name in sys.modules if name.startswith('detect.detectors.')])"
    )
    assert printed(code).splitlines() == [str(len(_built_in_names())), "[]"]


def test_function_in_a_file_is_a_text_detector(tmp_path):
    write(tmp_path, "my file.py", FUNCTION)
    results = scores(["loss", "my file.py:lowest"])
    assert results["my_file.lowest", "-", "a"] == -5.0
    assert results["my_file.lowest", "-", "b"] == -2.0
    registered = get_detector("my file.py:lowest")
    assert registered.origin == "my file.py:lowest"
    assert registered.detector.summary == "The least likely token."


def test_detector_in_a_file_takes_parameters(tmp_path):
    write(tmp_path, "mine.py", DETECTOR)
    results = scores("mine.py:MINE,mine.py:MINE:k=7")
    assert results["mine", "k=3", "a"] == 3.0
    assert results["mine", "k=7", "a"] == 7.0
    with pytest.raises(InputError, match=r"mine has no parameter 'kk'\. Did you mean 'k'"):
        scores("mine.py:MINE:kk=7")


def test_invalid_detector_is_explained(tmp_path):
    for source, message in (
        ("MINE = 3", "not a detector. Allowed: a Detector, or a function from"),
        ("def MINE(a, b): return 1", "my.py:MINE: the function does not take one argument"),
        (DETECTOR.replace('name="mine"', 'name="ppl"'), "'ppl' is taken by a built-in"),
        (DETECTOR.replace('name="mine"', 'name="all"'), "'all' is taken"),
        (DETECTOR.replace('name="mine"', 'name="a,b:c"'), "cannot name a detector"),
        (DETECTOR.replace('View("text")', 'View("uper")'), "view that does not exist"),
        (DETECTOR.replace('View("text")', "Reference"), r"Write Reference\(\), not"),
        (DETECTOR.replace("each_example(score)", "None"), "its score is not callable"),
        (DETECTOR.replace("= 3", "").replace("Parameters(), ", ""), "need a default each"),
        (DETECTOR.replace("Parameters(k=4)", "3"), "entries that are not its parameters"),
        ("import nothing_of_the_kind", "cannot be imported at my.py:1"),
    ):
        write(tmp_path, "my.py", source)
        with pytest.raises(InputError, match=message):
            parse_detectors(["loss", "my.py:MINE"])


def test_plugins_with_the_same_name_are_rejected(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write(tmp_path, f"{folder}/my.py", FUNCTION + f"\n# {folder}")
    with pytest.raises(
        InputError, match=r"two/my\.py:lowest: the name 'my\.lowest' is already used by one"
    ):
        parse_detectors("one/my.py:lowest,two/my.py:lowest")
    assert len(parse_detectors("one/my.py:lowest,one/my.py:lowest")) == 1


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(
        tmp_path,
        "probe-kit",
        modules={"probe.py": FUNCTION + DETECTOR, "broken_probe.py": "import no_such_module"},
        entry_points={
            "spikein.detectors": {
                "probe": "probe:MINE",
                "lowest": "probe:lowest",
                "broken": "broken_probe:score",
                "loss": "probe:lowest",
            }
        },
        version="2.0",
    )
    yield
    forget("probe", "broken_probe")


def test_package_detector_has_its_entry_point_name(package, tmp_path):
    assert scores("probe:k=5,lowest")["probe", "k=5", "a"] == 5.0
    assert get_detector("lowest").origin == "probe-kit 2.0"
    assert get_detector("loss").origin == BUILT_IN
    assert "probe" not in {setting.name for setting in parse_detectors("all")}
    with pytest.raises(InputError, match=r"unknown detector 'prob'\. Did you mean 'probe'"):
        get_detector("prob")
    with pytest.raises(InputError, match=r"detector broken \(probe-kit 2\.0\).*no_such_module"):
        get_detector("broken")
    write(tmp_path, "my.py", DETECTOR.replace('name="mine"', 'name="probe"'))
    with pytest.raises(InputError, match=r"'probe' is taken by a detector of probe-kit 2\.0"):
        get_detector("my.py:MINE")


def test_table_lists_detector_origins_and_skipped_plugins(package, tmp_path):
    write(tmp_path, "my.py", FUNCTION)
    rows, warnings = detector_table(["my.py:lowest"])
    origins = {row.name: row.origin for row in rows}
    assert origins["loss"] == BUILT_IN
    assert origins["probe"] == origins["lowest"] == "probe-kit 2.0"
    assert origins["my.lowest"] == "my.py:lowest"
    assert len(warnings) == 2
    text = " ".join(warnings)
    assert "detector broken (probe-kit 2.0)" in text
    assert "detector loss (probe-kit 2.0): the name is taken, by a built-in detector" in text
