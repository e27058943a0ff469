"""`spikein presets` and `spikein data`: shipped experiments, and the data that they read."""

import json
import re
from pathlib import Path

import pytest

from inject.builtin_files import AUDITS, EXPERIMENTS
from inject.hub.address import fits
from inject.public_data.catalogue import data_sets
from tests.command_line import invoke
from tests.hub_mirror import add_data_sets
from tests.hub_server import TOKEN, connect, serving

SHIPPED = {*EXPERIMENTS.files(), *AUDITS.files()}
REAL = {"llama-continue", "llama-finetune"}
"""Presets of a real model, which read the same data as the small ones."""


def spikein(*arguments: object) -> str:
    result = invoke(*arguments, code=0)
    return result.output


def refusal(*arguments: object) -> str:
    result = invoke(*arguments, code=2)
    return " ".join(result.output.replace("│", " ").split())


@pytest.fixture(scope="module")
def listed() -> list[dict]:
    return json.loads(spikein("presets", "--json"))


def test_presets_are_listed_with_question_cost_and_data(listed):
    assert {row["name"] for row in listed} == SHIPPED
    for row in listed:
        assert row["question"]
        if row["name"] in AUDITS.files():
            continue
        assert row["arms"] >= row["seeds"] > 0
        assert row["tokens"] > 0
        assert (row["gpu_hours"] is None) == bool(row["time"]), row["name"]
        small = row["folder"] in ("small", "studies") or row["name"] in REAL
        assert row["fetched"] == small, row["name"]
        assert bool(row["data"]) == (small or bool(row["folder"])), row["name"]
        assert not row["fetched"] or {*row["data"]} <= {data_set.name for data_set in data_sets()}
    hours = {row["name"]: row["gpu_hours"] for row in listed}
    assert hours["min-k-table4"] == pytest.approx(2 * hours["min-k-table3"])


def test_all_data_of_small_presets_can_be_fetched():
    files = [file.path for data_set in data_sets() for file in data_set.files]
    for name, path in EXPERIMENTS.files().items():
        patterns = re.findall(r"\$\{data\}/([^\"]+)", path.read_text(encoding="utf-8"))
        small = path.parent.name in ("small", "studies") or name in REAL
        assert bool(patterns) == small, name
        for pattern in patterns:
            assert any(fits(file, pattern) for file in files), f"{name}: {pattern}"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("presets", "forgeting"), "forgeting: no preset has this name. Did you mean 'forgetting'"),
        (("data", "fetsh"), r"has no action 'fetsh'. Did you mean 'fetch'\? Allowed: fetch, list."),
        (("data", "fetch", "bolq"), "bolq: no dataset of this name can be fetched. Did you mean"),
        (("data", "fetch", "quickstart"), "reads no data folder, so there is nothing to fetch"),
        (("data", "fetch", "min-k-table3"), "`spikein presets min-k-table3` lists what it reads"),
        (("data", "fetch", "gpqa"), "gpqa: it has terms.*--accept-terms gpqa"),
        (("data", "fetch", "gpqa", "--accept-terms", "gppa"), "gppa: no dataset of this name"),
        (
            ("data", "fetch", "boolq", "--accept-terms", "boolq"),
            "--accept-terms boolq: has no terms",
        ),
        (("data", "fetch", "boolq", "--to", "{here}/file"), "file: no folder can be made there"),
        (("data", "fetch", "boolq", "--to", ""), "is empty"),
        (("data", "list", "nothing"), "nothing: no dataset of this name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_refused_with_the_allowed_values(tmp_path: Path, arguments, expected: str):
    (tmp_path / "file").write_text("")
    command = [text.replace("{here}", str(tmp_path)) for text in arguments]
    assert re.search(expected, refusal(*command))


def test_fetched_data_serves_the_small_presets(monkeypatch, tmp_path: Path, data_folder: Path):
    """Fetched data passes a check; a folder and `hf://` addresses give the same plan."""
    with serving() as hub:
        connect(monkeypatch, hub, tmp_path / "hub")
        monkeypatch.setenv("SPIKEIN_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        add_data_sets(hub, data_sets(()), data_folder)
        folder = tmp_path / "data"
        output = spikein("data", "fetch", "--to", folder)
        assert "boolq: BoolQ: yes/no questions about a passage. Licence: CC BY-SA 3.0." in output
        assert "gpqa: skipped. GPQA's authors ask" in output
        spikein("data", "fetch", "gpqa", "--accept-terms", "gpqa", "--to", folder)
        assert "0 fetched now" in spikein("data", "fetch", "--to", folder)
        assert f"forget10.json.gz  [in {folder}]" in spikein("data", "list", "--to", folder)
        store = ["--store", tmp_path / "store"]
        missing = refusal("check", "learning-rate", f"data={tmp_path}/none", *store)
        assert f"`spikein data fetch learning-rate --to {tmp_path}/none`" in missing
        checked = spikein("check", "learning-rate", f"data={folder}", *store)
        assert "learning-rate: nothing wrong was found" in checked
        from spikein.api.plan import plan

        planned = plan(
            "real-small", overrides=[f"data={folder}", "seeds=[0]"], store=tmp_path / "s"
        )
        assert (planned.problems, planned.unresolved) == ((), {})
        by_folder = plan("twins-small", overrides=[f"data={folder}"], store=tmp_path / "store")
        by_hub = plan("twins-small", overrides=["data=hf://presets"], store=tmp_path / "store")
        assert by_hub.rows == by_folder.rows
