"""Using a page as a reader does, in a headless Chromium: pressing, choosing, typing, looking.

A script in the page performs a test's actions and returns its observations. The browser reports
console messages and network requests.
"""

from pathlib import Path
from typing import Any, NamedTuple

from tests.pages import chromium

_READER = """(async () => {
  const page = document, seen = window;
  const rows = () => [...page.querySelectorAll(".explore tbody tr")]
    .filter(row => row.getClientRects().length).map(row => [...row.cells].map(c => c.textContent));
  const heads = () => [...page.querySelectorAll(".explore thead th")].map(one => ({
    name: one.textContent.trim(), sort: one.getAttribute("aria-sort")}));
  const press = name => [...page.querySelectorAll("button")]
    .find(one => one.textContent.trim() === name).click();
  const choose = (label, text) => {
    const list = [...page.querySelectorAll(".explore-controls label")]
      .find(one => one.firstChild.textContent.trim() === label).querySelector("select");
    list.value = [...list.options].find(one => one.textContent === text).value;
    list.dispatchEvent(new seen.Event("change", {bubbles: true}));
  };
  const type = text => {
    const field = page.querySelector("input[type=search]");
    field.value = text;
    field.dispatchEvent(new seen.Event("input", {bubbles: true}));
  };
  const status = () => page.querySelector(".explore-status").textContent;
  SCRIPT
})()"""


class Visit(NamedTuple):
    """What came of it."""

    found: Any
    """The return value of the test's script."""
    console: list[str]
    """All console messages."""
    requests: list[str]
    """All requested addresses except `file:` and `data:`."""


def visit(page: Path, script: str, *, width: int = 1280) -> Visit:
    """Open a page, run the test's script on it, and return its observations.

    Args:
        page: the file.
        script: the body of an async function; it may use `page`, `seen`, `rows()`, `heads()`,
            `press(name)`, `choose(label, text)`, `type(text)` and `status()`.
        width: of the window.
    """
    with chromium() as browser:
        browser.open(page, width=width, height=3000)
        result = browser.evaluate(_READER.replace("SCRIPT", script))
        events = browser.events
    urls = [event["request"]["url"] for event in events["Network.requestWillBeSent"]]
    urls += [event["url"] for event in events["Network.webSocketCreated"]]
    console = [event["entry"]["text"] for event in events["Log.entryAdded"]]
    console += [str(event) for event in events["Runtime.consoleAPICalled"]]
    console += [str(event) for event in events["Runtime.exceptionThrown"]]
    return Visit(result, console, [url for url in urls if not url.startswith(("file:", "data:"))])
