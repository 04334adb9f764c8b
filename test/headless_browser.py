# Copyright 2026 macvo_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""A real browser without a screen, driven over the DevTools protocol's pipe; needs nothing but chromium."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TIMEOUT = 60.0

START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser's end of the pipe is file descriptors 3 (it reads) and 4 (it writes), by definition."""


def find_browser() -> str | None:
    """The path of a Chromium, None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class HeadlessBrowser:
    """One tab. `events` holds whatever the browser reported: requests, console lines, exceptions."""

    def __init__(self, program: str, profile: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self._buffer = b""
        self._count = 0
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [
            *(program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"),
            *("--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"),
            *(f"--user-data-dir={profile}", "--window-size=1200,1000", "about:blank"),
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(to_browser), str(from_browser), *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = ""
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser and everything it started."""
        os.close(self._write)
        os.close(self._read)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def open(self, url: str) -> None:
        """Load a page and wait until it is whole."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not self.named("Page.loadEventFired"):
            self._receive()

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def named(self, method: str) -> list[dict[str, Any]]:
        """Parameters of the events of that name since the page was opened."""
        return [event["params"] for event in self.events if event["method"] == method]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, take in events until it is answered."""
        self._count += 1
        request: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if getattr(self, "_session", ""):
            request["sessionId"] = self._session
        os.write(self._write, json.dumps(request).encode() + b"\0")
        while True:
            message = self._receive()
            if message.get("id") == self._count:
                assert "error" not in message, f"{method}: {message['error']}"
                return dict(message["result"])

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + TIMEOUT
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser ended"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message
