"""A headless chromium, driven over a pipe with the Chrome DevTools Protocol.

Source: https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_DEADLINE_S = 60


class Tab:
    """One tab of the browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to = to_browser
        self._from = from_browser
        self._read = b""
        self._number = 0
        self._session = ""
        self.requested: list[str] = []
        """Addresses of all requests."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        number = self._number
        answer = self._next(lambda got: got.get("id") == number)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def show(self, page: Path, *, width: int, dark: bool, height: int = 900) -> None:
        """Open a file in a window of this width and colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.requested.clear()
        self.call("Page.navigate", url=page.as_uri())
        self._next(lambda got: got.get("method") == "Page.loadEventFired")

    def allow_clipboard(self) -> None:
        """Let pages write to the clipboard and read it."""
        session, self._session = self._session, ""
        self.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self._session = session

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def _next(self, wanted: Any) -> dict[str, Any]:
        deadline = time.monotonic() + _DEADLINE_S
        while time.monotonic() < deadline:
            while b"\0" in self._read:
                text, _, self._read = self._read.partition(b"\0")
                got: dict[str, Any] = json.loads(text)
                if got.get("method") == "Network.requestWillBeSent":
                    self.requested.append(got["params"]["request"]["url"])
                if wanted(got):
                    return got
            if select.select([self._from], [], [], 1)[0]:
                part = os.read(self._from, 1 << 20)
                assert part, "the browser ended"
                self._read += part
        raise TimeoutError("the browser does not answer")


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A tab of a new browser with an empty profile. The browser has no network."""
    command_out, to_browser = os.pipe()
    from_browser, answer_in = os.pipe()

    def as_three_and_four() -> None:
        os.dup2(command_out, 13)
        os.dup2(answer_in, 14)
        os.dup2(13, 3)
        os.dup2(14, 4)

    process = subprocess.Popen(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}",
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
        preexec_fn=as_three_and_four,  # noqa: PLW1509 - the test process has no other threads here
    )  # fmt: skip
    os.close(command_out)
    os.close(answer_in)
    try:
        yield Tab(to_browser, from_browser)
    finally:
        process.kill()
        process.wait()
        os.close(to_browser)
        os.close(from_browser)
