"""The script that measures pages finds a page's faults, and none in a sound page."""

import json

import pytest

from scripts.pictures import page_measures
from scripts.pictures.chromium import find_chromium

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="NO CHROMIUM ON THIS MACHINE: no page is measured"
)
FRAME = (
    '<!doctype html><meta charset="utf-8"><style>body{{margin:0;font:16px sans-serif}}'
    "@media (prefers-color-scheme:dark){{body{{background:#111;color:#eee}}}}</style>{}"
)
SOUND = """
<a href="#end">end</a> <a href="sibling.html#place">sibling</a> <a href="https://x.org">far</a>
<div id="first"><p>A sentence.</p><p>Another, in <b>two</b> parts side by side.</p></div>
<table><tr><td>one</td></tr></table>
<details><summary>More</summary><table><tr><td>folded</td></tr></table><p>Text in a fold.</p>
</details>
<svg width="200" height="40"><text x="0" y="15">above</text><text x="0" y="32">below</text></svg>
<p style="position:relative"><span style="position:absolute;left:0;visibility:hidden">hidden</span>
seen</p><p id="end" style="page-break-before:always">The end.</p>
"""
FAULTS = f"""
<a href="#nowhere">1</a> <a href="missing.html">2</a> <a href="sibling.html#elsewhere">3</a>
<div id="first" style="height:950px"><p style="margin-top:930px">too far down</p></div>
{"<table><tr><td>one</td></tr></table>" * 13}
<div style="position:relative;height:3em"><p style="position:absolute;top:0;left:0">A text</p>
<p style="position:absolute;top:4px;left:10px">over it</p></div>
<details><summary>Folded</summary><svg width="200" height="40"><text x="5" y="20">label</text>
<text x="20" y="22">number</text><text x="180" y="38">a name too long</text></svg></details>
<div style="width:500px">wide</div>
{'<p style="page-break-before:always;height:700px">sheet</p>' * 10}
<!-- {"x" * 1_000_000} -->
"""


def test_planted_faults_are_found_and_a_sound_page_has_none(tmp_path, capsys):
    (tmp_path / "sibling.html").write_text('<p id="place">here</p>')
    pages = [tmp_path / "sound.html", tmp_path / "faults.html"]
    for page, body in zip(pages, (SOUND, FAULTS), strict=True):
        page.write_text(FRAME.format(body))
    pictures = tmp_path / "pictures"

    status = page_measures.main([*map(str, pages), "--pictures", str(pictures)])

    assert status == 1
    sound, faults = json.loads(capsys.readouterr().out)
    assert sound["broken"] == []
    assert (sound["tables"], sound["sheets"]) == (1, 2)
    assert 0 < sound["first_screen"] < sound["height"] <= page_measures.SCREEN
    assert (faults["tables"], faults["dead_links"]) == (13, 3)
    assert faults["sheets"] > 10
    assert (faults["overlaps_1280"], faults["overlaps_390"]) == (2, 2)
    assert (faults["cut_1280"], faults["cut_390"]) == (1, 1)
    assert 100 <= faults["scroll"] <= 126
    assert faults["screens"] > 8
    assert 930 < faults["first_screen"] < 1100
    assert len(faults["broken"]) == len(page_measures.LIMITS)
    problems = "\n".join(faults["broken"])
    for planted in ("over it", "number", "a name too long", "#nowhere", "missing.html"):
        assert planted in problems
    names = {path.stem for path in pictures.iterdir()}
    looks = {"1280-light", "1280-dark", "390-light", "390-dark", "printed"}
    assert names == {f"{page.stem}-{look}" for page in pages for look in looks}
    light, dark = ((pictures / f"sound-390-{look}.png").read_bytes() for look in ("light", "dark"))
    assert light != dark
    assert max(map(len, (light, dark))) < 150_000
