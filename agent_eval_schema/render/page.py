"""HTML pages: one shell and one environment for all reports, escaped by construction; and the form for notebooks.

In the latter, colors, bars and alignment stand in each tag: JupyterLab aligns the cells of every table right and
stripes its rows; untrusted notebooks and GitHub's viewer strip `<style>`. What a reader must see is therefore written
as `style` attributes, in colors that can be read on white and on black; where the style sheet is kept, it replaces them
by those of the theme.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from markupsafe import Markup, escape

from agent_eval_schema.metrics.alignment import EXTRA, MATCHED, MISSING, MOVED
from agent_eval_schema.render.figures import Bar, Distribution
from agent_eval_schema.render.phrases import number, plural
from agent_eval_schema.render.rows import row_data
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.describe import truncate
from agent_eval_schema.text.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment


CALL_MARKS = {
    MATCHED: ("=", "matched", ""),
    MOVED: ("↕", "in another place", "info"),
    EXTRA: ("+", "extra", "warning"),
    MISSING: ("−", "missing", "error"),
}
"""How a call of a trajectory is marked, here and in templates/row.js: a sign, words, the color."""


def page(title: str, body: Markup, *styles: str, script: bool = False) -> str:
    """A standalone page with these `styles`; with `script` it has the project's script, the only one allowed."""
    text, source = _script() if script else (Markup(""), "")
    shell = {"style": _style("style.css", *styles), "script": text, "script_source": source}
    return str(drawn("page.html", title=title, body=body, **shell))


def inline(body: Markup, *styles: str) -> str:
    return str(drawn("inline.html", style=_style("style.css", *styles, "inline.css"), body=styled(body)))


def drawn(template: str, **values: Any) -> Markup:
    return Markup(_environment().get_template(template).render(**values))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # 20 ms that only a page needs

    environment = Environment(
        loader=PackageLoader("agent_eval_schema", "render/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else visible(value),  # the renderer's own goes out
    )
    environment.globals |= {"version": __version__, "marks": CALL_MARKS}
    environment.globals["row_data"] = lambda block: json_block(
        row_data(block.rows, block.total, block.heads, block.edits) | {"noun": block.noun}
    )
    environment.filters |= {"code": with_code, "breakable": breakable}
    environment.filters["number"] = lambda count: "" if count is None else f"{count:,}"
    environment.filters |= {"cut": truncate, "type": lambda value: type(value).__name__}
    return environment


def with_code(text: str) -> Markup:
    """`names` of a message in the typeface of code; every part is escaped by itself."""
    parts = visible(text).split("`")
    if len(parts) % 2 == 0:  # one without its partner
        return escape(visible(text))
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))


def breakable(name: str) -> Markup:
    """A long name that may be broken after its underscores and slashes."""
    return Markup("<wbr>").join(re.findall("[^_/]*[_/]|[^_/]+", visible(name)))


@lru_cache(maxsize=4)
def _style(*files: str) -> Markup:
    return Markup("".join(_environment().loader.get_source(_environment(), f)[0] for f in files))  # type: ignore[union-attr]


@lru_cache(maxsize=2)
def _script(file: str = "page.js") -> tuple[Markup, str]:
    """The script with that of rows, and the source by which a policy names it."""
    text = _style("row.js", file)
    return text, _digest(text)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def review_page(data: Any = None) -> tuple[str, str]:
    """The page of a review, which is a program, and its policy: nothing runs but its script, and it asks nobody but its
    own server; with `data`, which it holds then, not even that."""
    text, source = _script("review.js")
    style = _style("style.css", "review.css")
    policy = "; ".join([
        *("default-src 'none'", f"script-src {source}", f"style-src {_digest(style)}", "base-uri 'none'"),
        "img-src data:",
        *("form-action 'none'", "connect-src 'none'" if data is not None else "connect-src 'self'"),
    ])  # fmt: skip
    block = Markup("") if data is None else json_block(data)
    page = drawn("review.html", title="review", style=style, script=text, policy=Markup(policy), data=block)
    return str(page), policy


def json_block(value: Any) -> Markup:
    """A value as JSON inside of a script element: nothing in it can end the element or begin another."""
    return Markup(_UNSAFE_IN_SCRIPT.sub(lambda m: f"\\u{ord(m[0]):04x}", msgspec.json.encode(value).decode()))


_UNSAFE_IN_SCRIPT = re.compile(
    "[<>&'\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)


def csv_link(rows: Iterable[Sequence[object]]) -> tuple[str, int]:
    """Rows as the address of a CSV file that a browser saves, and how many of them the address has room for."""
    parts: list[str] = []
    room = LONGEST_LINK
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(map(_csv_cell, row))
        text = quote(line.getvalue(), safe="")
        room -= len(text)
        if room < 0:
            break
        parts.append(text)
    return "data:text/csv;charset=utf-8," + "".join(parts), len(parts)


LONGEST_LINK = 60_000
"""Characters of a CSV file in a page, at most."""


def _csv_cell(value: object) -> object:
    """A cell that no spreadsheet takes for a formula; control characters are visible."""
    if value is None or isinstance(value, int):
        return value
    text = visible(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def percent(part: float, whole: float) -> float:
    """A width: it is only full, or nothing at all, if that is exactly so."""
    if part in (0, whole):
        return 100.0 if part else 0.0
    return min(max(round(100 * part / whole, 1), 0.5), 99.5)


def runs(shares: Iterable[float], least: float = 0.2, span: float = 0.8) -> list[dict[str, Any]]:
    """Equally full neighboring steps of a strip as rectangles, darker from `least` to `least + span`; no empty ones."""
    rectangles: list[dict[str, Any]] = []
    for x, part in enumerate(shares):
        opacity = round(least + span * part, 2) if part else 0.0
        if rectangles and rectangles[-1]["opacity"] == opacity:
            rectangles[-1]["width"] += 1
        else:
            rectangles.append({"x": x, "width": 1, "opacity": opacity})
    return [run for run in rectangles if run["opacity"]]


def heat(share: float) -> str:
    """The class of a cell's color: `h1` to `h4`, the darker the larger the share; none for 0."""
    return f"h{min(int(4 * share), 3) + 1}" if share > 0 else ""


PLOT_WIDTH, PLOT_HEIGHT = 300, 72
"""Of a distribution's bars."""


def plot(
    title: str,
    unit: str,
    distribution: Distribution,
    bars: list[Bar] | None = None,
    show: Callable[[float], str] | None = None,
    quantile: Callable[[float], float] | None = None,
) -> dict[str, Any]:
    """A distribution for the figure of a template, in its own bars or in others, its numbers as `show` writes them.
    `quantile` is more exact than its own."""
    show, quantile = show or number, quantile or distribution.quantile
    bars, end = (distribution.bars(), distribution.highest) if bars is None else (bars, bars[-1].high)
    marks = {"median": 0.5, "p90": 0.9, "p99": 0.99}
    quantiles = ", ".join(f"{k} {show(quantile(q))}" for k, q in marks.items())
    low, high, count = show(bars[0].low), show(end), plural(distribution.count, "row")
    return {
        "title": title,
        "unit": unit,
        "count": count,
        "bars": [_bar(bar, i, bars, show) for i, bar in enumerate(bars)],
        "low": low,
        "high": high,
        "quantiles": f"{quantiles}, highest {show(distribution.highest)}",
        "label": f"{title} of {count} from {low} to {' '.join([high, unit]).rstrip()}: {quantiles}",
    }


def _bar(bar: Bar, i: int, bars: list[Bar], show: Callable[[float], str]) -> dict[str, Any]:
    step = min(PLOT_WIDTH / len(bars), 40.0)
    height = round(PLOT_HEIGHT * bar.count / max(b.count for b in bars), 1)
    height = max(height, 1.5) if bar.count else 0
    values = show(bar.low) if bar.low == bar.high else f"{show(bar.low)} to {show(bar.high)}"
    return {
        "x": round(i * step, 1),
        "y": round(4 + PLOT_HEIGHT - height, 1),
        "width": round(step - 1, 1),
        "height": height,
        "title": f"{values}: {plural(bar.count, 'row')}",
    }


COLORS = {"error": "#d43c2f", "warning": "#a36d00", "info": "#3b7fc4", "good": "#2c8c45", "muted": "#7a838d"}

_CLASSES = {
    **{name: f"color:{color}" for name, color in COLORS.items()},
    "n": "text-align:right;white-space:nowrap",
    "tag": "font-weight:600",
    "count": "font-weight:600",
    "fix": "display:block",
    "lost": "display:block",
    "path": "font-family:monospace",
    "cell": "font-family:monospace",
    "meter": "display:block;min-width:5em;height:10px;background:#8884;overflow:hidden;margin-top:5px",
    "interval": "display:block;height:3px;margin-top:2px;background:#8884",
    "width": f"display:block;height:8px;margin:auto;background:{COLORS['good']}",
    **{f"h{level}": f"background:{COLORS['error']}{22 * level}" for level in range(1, 5)},
    "funnel": "list-style:none;padding:0",
    "gone": "display:block;text-align:center",
    "label": "display:block;text-align:center",
    "line": f"display:block;height:3px;background:{COLORS['muted']}",
    "bar": f"display:block;height:10px;background:{COLORS['good']}",
    "loss": f"background:{COLORS['error']}66",
    "bad": f"background:{COLORS['error']}",
    "plain": f"background:{COLORS['muted']}",
    "warn": f"background:{COLORS['warning']}",
    "hatched": f"background:repeating-linear-gradient(135deg,{COLORS['warning']} 0 4px,#8884 4px 8px)",
}
"""Styles by class."""

_TAGS = {
    "table": "border-collapse:collapse;table-layout:auto",
    "tr": "background:transparent",
    "th": "text-align:left;vertical-align:top;background:transparent",
    "td": "text-align:left;vertical-align:top;background:transparent",
    "a": "text-decoration:underline",
    "mark": "font-weight:600",
    "ins": f"color:{COLORS['good']}",
    "del": f"color:{COLORS['error']}",
}
"""Styles by tag; those of a class win."""

_TAG = re.compile(r"<([a-z][a-z0-9]*)((?: [a-z-]+(?:=\"[^\"]*\")?)*)>")
_CLASS, _STYLE = re.compile(r' class="([^"]*)"'), re.compile(r' style="([^"]*)"')


def styled(body: Markup) -> Markup:
    """The body with the styles in its tags. It is our own markup: in it, text of the data has no `<` and no quotes."""
    return Markup(_TAG.sub(_with_style, body))


def _with_style(found: re.Match[str]) -> str:
    tag, attributes = found[1], found[2]
    named = _CLASS.search(attributes)
    styles = [_TAGS.get(tag, ""), *(_CLASSES.get(name, "") for name in (named[1].split() if named else ()))]
    own = _STYLE.search(attributes)
    style = ";".join(s for s in (*styles, own[1] if own else "") if s)
    attributes = _STYLE.sub("", attributes)
    return f'<{tag}{attributes} style="{style}">' if style else found[0]
