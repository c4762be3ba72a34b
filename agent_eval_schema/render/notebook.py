"""The inline form as notebooks are: colors, bars and alignment stand in each tag.

JupyterLab aligns the cells of every table right and stripes its rows; untrusted notebooks and GitHub's viewer strip
`<style>`. What a reader must see is therefore written as `style` attributes, in colors that can be read on white and on
black; where the style sheet is kept, it replaces them by those of the theme.
"""

from __future__ import annotations

import re

from markupsafe import Markup

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
