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

"""The HTML pages in a real browser: whole, drawn, silent, and asking nobody for anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from headless_browser import HeadlessBrowser, find_browser
from test_evaluation_report import evaluated

from macvo_ros.commands.run import write_all
from macvo_ros.evaluation.comparison import load, write_comparison

UNDECODED = """(async () => {
  const sources = [...document.querySelectorAll('image, img')].map(e => e.src || e.href.baseVal);
  const bad = [];
  for (const source of sources) {
    const image = new Image();
    image.src = source;
    try { await image.decode(); } catch (error) { bad.push(source.slice(0, 60)); continue; }
    if (!image.naturalWidth) bad.push(source.slice(0, 60));
  }
  return [sources.length, bad];
})()"""

DRAWN = """(() => {
  const boxes = [...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect());
  return [boxes.length, boxes.filter(box => box.width < 100 || box.height < 50).length,
          document.documentElement.scrollWidth <= window.innerWidth];
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadlessBrowser]:
    program = find_browser()
    if program is None:
        pytest.skip("apt install chromium to run this: no browser to open the page with")
    running = HeadlessBrowser(program, tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    write_all(folder / "with", evaluated("room <b>&amp;</b>", maps=True))
    write_all(folder / "without", evaluated(truth_known=False, maps=True))
    write_all(folder / "second", evaluated(seed=1))
    write_comparison(folder / "comparison.html", [load(folder / "with"), load(folder / "second")])
    return {
        "with truth": folder / "with" / "report.html",
        "without truth": folder / "without" / "report.html",
        "comparison": folder / "comparison.html",
    }


@pytest.mark.parametrize(
    ("name", "pictures"), [("with truth", 8), ("without truth", 8), ("comparison", 0)], ids=lambda value: str(value)
)
def test_page_opens_clean(browser: HeadlessBrowser, pages: dict[str, Path], name: str, pictures: int) -> None:
    url = pages[name].as_uri()
    browser.open(url)
    count, bad = browser.evaluate(UNDECODED)
    assert not bad
    assert count >= pictures, "keypoints, depth and two sigmas, of two frames"
    figures, collapsed, fits = browser.evaluate(DRAWN)
    assert figures >= 1
    assert collapsed == 0, "a figure is drawn without a size"
    assert fits, "the page is wider than the window"
    asked = {request["request"]["url"] for request in browser.named("Network.requestWillBeSent")}
    assert {address for address in asked if not address.startswith("data:")} == {url}
    assert browser.named("Network.loadingFailed") == []
    assert [entry["entry"] for entry in browser.named("Log.entryAdded")] == []
    assert browser.named("Runtime.consoleAPICalled") == []
    assert browser.named("Runtime.exceptionThrown") == []
    assert browser.evaluate("document.querySelectorAll('h1 b').length") == 0, "names are text, not markup"


def test_the_check_would_notice(browser: HeadlessBrowser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text('<img src="data:image/png;base64,AAAA"><img src="missing.png"><script>console.error("no")</script>')
    browser.open(page.as_uri())
    count, bad = browser.evaluate(UNDECODED)
    assert (count, len(bad)) == (2, 2)
    assert browser.named("Runtime.consoleAPICalled")
    assert browser.named("Network.loadingFailed")


def test_page_is_readable_in_the_dark(browser: HeadlessBrowser, pages: dict[str, Path]) -> None:
    browser.open(pages["with truth"].as_uri())
    colours = []
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        colours.append(
            browser.evaluate(
                "[getComputedStyle(document.body).backgroundColor, "
                "getComputedStyle(document.querySelector('figure svg text')).fill]"
            )
        )
    (light_page, light_text), (dark_page, dark_text) = colours
    assert light_page != dark_page
    assert light_text != dark_text
