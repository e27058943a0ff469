"""A headless Chromium that is spoken to over two pipes: no port, no driver, no library.

`--remote-debugging-pipe` reads commands of the DevTools protocol from descriptor 3 and answers on
4, each message ended by a zero byte. The browser reaches no network. Starting it takes a second.
"""

import base64
import json
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)
_SECONDS = 300
"""Seconds after which a browser is killed and its callers fail."""


def find_chromium() -> str | None:
    """Return the program, or None if the machine has none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Chromium:
    """A browser with one tab, to be used in a `with` statement.

    `events` contains the parameters of each kind of event that it sent unprompted.
    """

    def __enter__(self) -> "Chromium":
        """Start the browser."""
        program = find_chromium()
        if program is None:
            raise SystemExit(f"no browser on this machine: install one of {', '.join(PROGRAMS)}")
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # The shell puts our pipes where Chromium looks for them.
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$@" 3<&0 4>&1 1>&2', "sh", program, *_FLAGS,
             f"--user-data-dir={self._profile.name}", "about:blank"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._killer = Timer(_SECONDS, self._process.kill)
        self._killer.daemon = True
        self._killer.start()
        self._number, self._session, self._rest = 0, "", b""
        self.events: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        tabs = self._call("Target.getTargets")["targetInfos"]
        tab = next(target["targetId"] for target in tabs if target["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the browser in any case."""
        self._killer.cancel()
        self._process.kill()
        self._process.communicate()
        self._profile.cleanup()

    def open(
        self, page: Path, *, width: int, height: int, dark: bool = False, medium: str = "screen"
    ) -> None:
        """Show a page in a window of so many pixels, and wait until it is loaded."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", media=medium, features=[scheme])
        self._call("Page.navigate", url=page.resolve().as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass
        self.evaluate("document.fonts.ready.then(() => true)")

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page; a promise is waited for."""
        answer = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def screenshot(self, *, top: int = 0) -> bytes:
        """Return the window after scrolling down to a position, as a PNG."""
        self.evaluate(f"scrollTo(0, {top})")
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def pdf(self) -> bytes:
        """Return the page as a printer gets it, on A4."""
        # A page that names its media is printed as that: here, as paper.
        self._call("Emulation.setEmulatedMedia", media="")
        answer = self._call(
            "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True
        )
        return base64.b64decode(answer["data"])

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        while (answer := self._message()).get("id") != self._number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _message(self) -> dict[str, Any]:
        """Return the browser's next message."""
        assert self._process.stdout is not None
        while b"\0" not in self._rest:
            part = self._process.stdout.read1(1 << 20)  # type: ignore[attr-defined]
            if not part:
                raise RuntimeError(f"the browser ended, or was killed after {_SECONDS} s")
            self._rest += part
        head, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(head)
        if "method" in message:
            self.events[message["method"]].append(message["params"])
        return message
