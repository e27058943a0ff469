"""Using a page as a reader does, in a headless Chromium: pressing, choosing, typing, looking.

The page stands in a frame of a driver page, whose script does what a test asks for and writes down
what it saw. The browser's own logs say what went to the console and what asked for the network.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.pages import _FLAGS, browser

_DRIVER = """<!doctype html><meta charset="utf-8">
<iframe id="page" style="border:0" width="WIDTH" height="3000"></iframe><pre id="out"></pre>
<script>
const frame = document.getElementById("page");
frame.onload = async () => {
  const page = frame.contentDocument, seen = frame.contentWindow;
  const rows = () => [...page.querySelectorAll(".explore tbody tr")]
    .filter(row => row.getClientRects().length).map(row => [...row.cells].map(c => c.textContent));
  const heads = () => [...page.querySelectorAll(".explore thead th")].map(one => ({
    name: one.textContent.trim(), sort: one.getAttribute("aria-sort")}));
  const press = name => [...page.querySelectorAll("button")]
    .find(one => one.textContent.trim() === name).click();
  const choose = (label, text) => {
    const found = [...page.querySelectorAll(".explore-controls label")]
      .find(one => one.firstChild.textContent.trim() === label).querySelector("select");
    found.value = [...found.options].find(one => one.textContent === text).value;
    found.dispatchEvent(new seen.Event("change", {bubbles: true}));
  };
  const type = text => {
    const found = page.querySelector("input[type=search]");
    found.value = text;
    found.dispatchEvent(new seen.Event("input", {bubbles: true}));
  };
  const status = () => page.querySelector(".explore-status").textContent;
  let found;
  try { found = await (async () => { SCRIPT })(); }
  catch (error) { found = {failed: String(error)}; }
  document.getElementById("out").textContent = "SEEN" + JSON.stringify(found) + "DONE";
};
frame.src = "URL";
</script>
"""


_OF_CHROMIUM = re.compile(r"https?://[a-z0-9.]*\.(google|googleapis)\.com/")
"""What the browser itself asks for; no page of ours names such a host."""


class Visit(NamedTuple):
    """What came of it."""

    found: Any
    """What the test's script returned."""
    console: list[str]
    """Everything that was written to the console."""
    requests: list[str]
    """Every address that was asked for, `file:` and `data:` left out."""


def visit(page: Path, folder: Path, script: str, *, width: int = 1280) -> Visit:
    """Open a page, run the test's script on it, and return what it saw.

    Args:
        page: the file.
        folder: for the driver, the browser's profile and its logs.
        script: the body of an async function; it may use `page`, `seen`, `rows()`, `heads()`,
            `press(name)`, `choose(label, text)`, `type(text)` and `status()`.
        width: of the window.
    """
    driver, network = folder / "driver.html", folder / "network.json"
    text = _DRIVER.replace("WIDTH", str(width)).replace("URL", page.as_uri())
    driver.write_text(text.replace("SCRIPT", script), encoding="utf-8")
    done = subprocess.run(
        [
            browser(),
            *_FLAGS,
            f"--user-data-dir={folder / 'profile'}",
            f"--log-net-log={network}",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            "--window-size=1600,3000",
            "--virtual-time-budget=20000",
            "--dump-dom",
            driver.as_uri(),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=180,
    )
    seen = re.search(r"SEEN(.*?)DONE</pre>", done.stdout, re.S)
    assert seen, "the browser saw nothing"
    plain = seen[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return Visit(json.loads(plain), _console(done.stderr), _requests(network))


def screenshot(page: Path, out: Path, *, width: int, height: int = 2400, dark: bool) -> Path:
    """Take a picture of a page, as a browser of this width shows it."""
    flags = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0") if dark else ()
    subprocess.run(
        [
            browser(),
            *_FLAGS,
            *flags,
            f"--user-data-dir={out.parent / 'profile'}",
            f"--window-size={width},{height}",
            f"--screenshot={out}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=180,
    )
    return out


def _console(log: str) -> list[str]:
    return [line for line in log.splitlines() if ":CONSOLE" in line]


def _requests(network: Path) -> list[str]:
    """Return the addresses in the browser's network log that pages ask for."""
    text = network.read_text(encoding="utf-8", errors="replace")
    found = re.findall(r'"url":"((?:https?|wss?|ftp)://[^"]*)"', text)
    return sorted({one for one in found if not _OF_CHROMIUM.match(one)})
