"""A real browser without a window, spoken to over pipes as its developer tools do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class Browser:
    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        heard, say = os.pipe()
        hear, said = os.pipe()
        # It reads its commands from file 3, and answers in file 4.
        start = f'exec "$@" 3<&{heard} 4>&{said}'
        arguments = [CHROMIUM, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            ["bash", "-c", start, "bash", *arguments],
            pass_fds=(heard, said),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(heard)
        os.close(said)
        self._say, self._hear = os.fdopen(say, "wb", 0), os.fdopen(hear, "rb", 0)
        self._rest = b""
        self._number = 0
        self._session: str | None = None

    def open(self, url: str) -> None:
        target = self._do("Target.createTarget", url=url)["targetId"]
        attached = self._do("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]

    def wait_for(self, expression: str) -> None:
        """Until an expression of JavaScript is true on the page."""
        pause = threading.Event()
        while True:
            found = self._do("Runtime.evaluate", expression=expression)
            if found["result"].get("value") is True:
                return
            pause.wait(0.02)

    def _do(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._say.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "result" in answer, answer
                return answer["result"]

    def _receive(self) -> Any:
        while b"\0" not in self._rest:
            found = self._hear.read(65536)
            assert found, "the browser has ended"
            self._rest += found
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def close(self) -> None:
        self._session = None
        self._do("Browser.close")
        self._process.wait()
        self._say.close()
        self._hear.close()
