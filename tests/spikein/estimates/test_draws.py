"""The arms drawn before a run; `tests/spikein/cli/test_check.py` tests their problems."""

from types import SimpleNamespace

from spikein.estimates import draws


def part(**settings):
    return SimpleNamespace(digest="0", settings=settings)


def test_each_background_is_drawn_once_for_all_seeds(monkeypatch):
    drawn_nodes = []
    monkeypatch.setattr(draws, "_draw", lambda node, scratch: drawn_nodes.append(node))
    nodes = [
        SimpleNamespace(
            arm=SimpleNamespace(experiment=SimpleNamespace(contaminants=())),
            tokenizer=part(),
            corpus=part(sources=sources, seed=0),
            examples=part(seed=seed),
            plan=part(seed=seed),
        )
        for sources, seed in (("short", 0), ("short", 1), ("long", 0))
    ]
    assert not list(draws.draw_problems(nodes))
    assert [node.corpus.settings["sources"] for node in drawn_nodes] == ["short", "long"]
