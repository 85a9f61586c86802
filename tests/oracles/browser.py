"""A real browser without a screen: chromium, spoken to over its own debugging socket."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader "
    "--hide-scrollbars --window-size=1000,640 --remote-debugging-port=0"
)  # fmt: skip


def chromium() -> str | None:
    """Where the browser is, if it is there."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page of a new, empty browser."""

    def __enter__(self) -> Browser:
        from websockets.sync.client import connect

        program = chromium()
        assert program is not None
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = [program, *FLAGS.split(), f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = self._port()
        pages = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/json").read())
        page = next(p for p in pages if p["type"] == "page")
        self.socket = connect(page["webSocketDebuggerUrl"], max_size=None, proxy=None)
        self.numbers = itertools.count(1)
        return self

    def _port(self) -> int:
        file = Path(self.folder.name) / "DevToolsActivePort"
        for _ in range(300):
            if file.exists() and file.read_text().strip():
                return int(file.read_text().split()[0])
            time.sleep(0.1)
        raise RuntimeError("chromium did not start within 30 s")

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    def call(self, method: str, **params: Any) -> dict:
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv(timeout=60))
            if answer.get("id") == number:
                return answer.get("result", {})

    def open(self, address: str) -> None:
        self.call("Page.enable")
        self.call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True).get("result", {}).get("value")

    def wait_for(self, expression: str, seconds: float = 40.0) -> None:
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"waited {seconds} s for {expression}"
            time.sleep(0.1)

    def screenshot(self) -> bytes:
        """A PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
