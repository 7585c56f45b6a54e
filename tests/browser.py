"""A headless Chromium driven over its debugging pipe (file descriptors 3 and 4), with nothing but
the standard library.

Messages are JSON ended by a zero byte, as the DevTools protocol says.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page in a fresh profile. Everything that the console, the log or the network says is
    kept."""

    def __init__(self, profile: Path, timeout: float = 600) -> None:
        program = find_browser()
        assert program is not None, "expected chromium on the PATH, got none; run 'make browser'"
        to_child, self.write = os.pipe()
        self.read, from_child = os.pipe()
        # out of the way of 3 and 4
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (to_child, from_child)]
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={profile}"]

        def give() -> None:
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [program, *flags, "about:blank"], preexec_fn=give, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for fd in (to_child, from_child, *ends):
            os.close(fd)
        # a browser that hangs ends the reading below
        self.timer = threading.Timer(timeout, self.process.kill)
        self.timer.start()
        self.number, self.rest, self.session = 0, b"", None
        self.events: list[dict[str, Any]] = []
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{room}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)

    def receive(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.read, 1 << 16)
            assert more, "the browser ended"
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its result; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        content = json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode() + b"\0"
        while content:
            content = content[os.write(self.write, content) :]
        while (answer := self.receive()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, page: Path) -> None:
        """Go to a file and wait until it is loaded with its pictures."""
        self.visit(page.resolve().as_uri())

    def visit(self, url: str) -> None:
        """The same for any address."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def choose_file(self, selector: str, file: Path) -> None:
        """What a person does in the dialogue of a file field."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def complaints(self) -> list[str]:
        """What the console and the log of the page said, and exceptions."""
        said = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in said]

    def requests(self) -> list[str]:
        """All that was asked of the network or the disk."""
        asked = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in asked]

    def prefer(self, scheme: str, width: int = 1100) -> None:
        """Light or dark, on a screen of this width."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def print(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])
