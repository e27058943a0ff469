import pytest

from inject.errors import InputError
from inject.plugins import PluginKind, installed_plugins, load_installed
from inject.plugins.plugin import _source
from tests.inject.plugins.packages import forget, install

FUNCTION = PluginKind(noun="detector", accepts=callable, allowed="a function")
GROUP = "spikein.detectors"


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    forget("probe", "broken_probe", "other_probe")
    _source.cache_clear()


def test_entry_points_are_listed_without_import_and_loaded_on_request(site):
    install(
        site,
        "probe-kit",
        modules={"probe/__init__.py": "", "probe/main.py": "def score(): return 3"},
        entry_points={GROUP: {"probe": "probe.main:score"}},
        version="2.1",
    )
    import sys

    installed = installed_plugins(GROUP)["probe"]
    assert "probe" not in sys.modules
    plugin = installed.load(FUNCTION)
    assert plugin.value() == 3
    assert (plugin.name, plugin.origin) == ("probe", "probe-kit 2.1")


def test_plugin_digest_covers_source_package_and_version(site):
    def digest(*, version="1.0", main="def score(): return part.X", part="X = 1"):
        forget("probe")
        _source.cache_clear()
        for old in site.glob("*.dist-info"):
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
        install(
            site,
            "probe-kit",
            modules={
                "probe/__init__.py": "",
                "probe/main.py": f"from probe import part\n{main}",
                "probe/part.py": part,
            },
            entry_points={GROUP: {"probe": "probe.main:score"}},
            version=version,
        )
        return installed_plugins(GROUP)["probe"].load(FUNCTION).digest

    first = digest()
    assert digest() == first
    others = {digest(version="1.1"), digest(main="def score(): return 2"), digest(part="X = 22")}
    assert len(others | {first}) == 4


def test_failing_plugin_is_named_and_the_others_load(site):
    install(
        site,
        "probe-kit",
        modules={"probe.py": "def score(): return 3\nNUMBER = 3\n"},
        entry_points={
            GROUP: {"good": "probe:score", "absent": "probe:nothing", "number": "probe:NUMBER"}
        },
    )
    install(
        site,
        "broken-kit",
        modules={"broken_probe.py": "import no_such_module\n"},
        entry_points={GROUP: {"broken": "broken_probe:score", "loss": "broken_probe:loss"}},
    )
    plugins, warnings = load_installed(GROUP, FUNCTION, taken={"loss": "built in"})
    assert set(plugins) == {"good"}
    text = "\n".join(warnings)
    assert len(warnings) == 4
    assert "detector broken (broken-kit 1.0): its broken_probe:score cannot be imported" in text
    assert "No module named 'no_such_module'" in text
    assert "has no attribute 'nothing'" in text
    assert "probe:NUMBER: is an object of type int, not a detector. Allowed: a function." in text
    assert "detector loss (broken-kit 1.0): the name is taken, built in" in text


def test_name_used_by_two_packages_is_rejected(site):
    for name in ("one", "two"):
        install(
            site,
            f"probe-{name}",
            modules={"probe.py": "def score(): return 3"},
            entry_points={GROUP: {"probe": "probe:score"}},
        )
    with pytest.raises(InputError, match=r"probe-one 1\.0 and probe-two 1\.0.*several installed"):
        installed_plugins(GROUP)["probe"].load(FUNCTION)
