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

"""The look of the HTML pages: light and dark, nothing loaded from elsewhere, and figures that follow the theme.

Figures are SVG drawn by matplotlib in marker colours; `to_svg` replaces those by CSS variables, so one figure is
readable on a light and on a dark page.
"""

from __future__ import annotations

import html
import io
import re
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, GRID = "#010101", "#020202", "#030303"
ESTIMATE, TRUTH, SECOND, WARN, BAD, GOOD = "#040404", "#050505", "#060606", "#070707", "#080808", "#090909"
SERIES = ("#040404", "#060606", "#0a0a0a", "#0b0b0b", "#090909", "#080808")
_VARIABLES = {
    INK: "ink", MUTED: "muted", GRID: "grid", ESTIMATE: "estimate", TRUTH: "truth", SECOND: "second",
    WARN: "warn", BAD: "bad", GOOD: "good", "#0a0a0a": "third", "#0b0b0b": "fourth",
}  # fmt: skip
_salt = count()

STYLE = """
:root { color-scheme: light dark; --page:#f6f7f9; --card:#ffffff; --ink:#1d2330; --muted:#667085; --grid:#e4e7ec;
  --estimate:#2563eb; --truth:#98a2b3; --second:#d9660a; --third:#0d9488; --fourth:#9333ea; --warn:#d99a00;
  --bad:#d92d20; --good:#12834a; --soft:#eef2ff; }
@media (prefers-color-scheme: dark) { :root { --page:#0f1218; --card:#171b24; --ink:#e7eaf0; --muted:#98a1b3;
  --grid:#2b3140; --estimate:#7aa5ff; --truth:#7d879b; --second:#ff9d4d; --third:#2dd4bf; --fourth:#c084fc;
  --warn:#f2c14b; --bad:#ff7a70; --good:#5bd197; --soft:#1d2536; } }
* { box-sizing: border-box; }
body { margin:0; background:var(--page); color:var(--ink); font:15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; }
main { max-width:1120px; margin:0 auto; padding:28px 20px 60px; }
h1 { font-size:26px; margin:0 0 2px; letter-spacing:-.01em; } h2 { font-size:18px; margin:34px 0 6px; }
p { margin:4px 0 12px; max-width:78ch; } .muted, figcaption, .unit { color:var(--muted); }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(150px,1fr)); gap:12px; margin:18px 0; }
.card, figure, .table { background:var(--card); border:1px solid var(--grid); border-radius:12px; }
.card { padding:12px 16px; } .card b { display:block; font-size:24px; font-weight:650; letter-spacing:-.02em;
  font-variant-numeric:tabular-nums; } .card span { font-size:13px; color:var(--muted); }
.card .unit { font-size:14px; }
figure { margin:12px 0; padding:14px 16px 10px; } figure svg { width:100%; height:auto; display:block; }
figcaption { font-size:13px; margin-top:6px; max-width:100ch; } svg text { font-family:inherit !important; }
.pair { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr)); gap:12px; }
.pair figure { margin:0; } .table { overflow-x:auto; padding:4px 0; margin:12px 0; }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums; font-size:14px; }
th, td { padding:6px 11px; text-align:right; white-space:nowrap; border-bottom:1px solid var(--grid); }
th { color:var(--muted); font-weight:550; } th:first-child, td:first-child { text-align:left; }
tr:last-child td { border-bottom:0; } tr.ours td { background:var(--soft); font-weight:600; }
details { margin:10px 0; } summary { cursor:pointer; color:var(--muted); }
.bar { display:flex; height:14px; border-radius:7px; overflow:hidden; margin:10px 0 6px; background:var(--grid); }
.key span { margin-right:16px; }
.key i { display:inline-block; width:10px; height:10px; border-radius:3px; margin-right:6px; }
.facts { display:grid; grid-template-columns:repeat(auto-fill,minmax(230px,1fr)); gap:2px 24px; margin:8px 0; }
.facts b { font-weight:550; }
code { font:13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
"""


def figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, without pyplot's global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def legend(drawing: Figure, axes: Any) -> None:
    """The legend of `axes` in one row above everything; the empty title keeps the row free."""
    drawing.suptitle(" ", fontsize=11)
    drawing.legend(*axes.get_legend_handles_labels(), loc="upper right", ncol=6)


def style() -> Any:
    """The context in which figures are drawn and turned to SVG: our colours, quiet axes, real text."""
    import matplotlib

    matplotlib.use("Agg")
    return matplotlib.rc_context(
        {
            "svg.fonttype": "none", "font.size": 9.5, "text.color": INK, "axes.edgecolor": GRID,
            "axes.labelcolor": MUTED, "axes.titlecolor": INK, "axes.titlesize": 10,
            "axes.titlelocation": "left", "xtick.color": MUTED,
            "ytick.color": MUTED, "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.7, "axes.axisbelow": True,
            "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.4, "legend.frameon": False,
            "legend.labelcolor": INK, "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
            "xtick.major.size": 0, "ytick.major.size": 0, "axes.formatter.useoffset": False, "legend.fontsize": 9,
        }
    )  # fmt: skip


def to_svg(drawing: Figure) -> str:
    """A figure as an SVG element for a page, its colours those of the page."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": f"macvo{next(_salt)}"}):  # clip paths need names of their own
        drawing.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    for colour, name in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def page(title: str, body: str) -> str:
    """A whole HTML page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><main>\n{body}\n</main></body></html>\n"
    )


def html_figure(svg: str, caption: str = "") -> str:
    """A figure with its caption."""
    return f"<figure>{svg}{f'<figcaption>{html.escape(caption)}</figcaption>' if caption else ''}</figure>"


def html_table(heading: list[str], rows: list[list[str]], ours: tuple[int, ...] = ()) -> str:
    """A table; the rows numbered in `ours` stand out."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in heading)
    body = "".join(
        f"<tr{' class=ours' if index in ours else ''}>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        for index, row in enumerate(rows)
    )
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
