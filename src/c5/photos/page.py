"""Pages for people: each is one HTML file with its pictures inside, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
from html import escape

STYLE = """
:root { color-scheme: light; --ink: #222; --faint: #78766f; --paper: #faf9f6; --line: #dedbd2; --accent: #2b6ca3; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 32px 28px 64px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 27px; line-height: 1.25; margin: 0 0 4px; } h2 { font-size: 19px; margin: 44px 0 6px; }
p { max-width: 78ch; margin: 6px 0 14px; } .faint, figcaption, th { color: var(--faint); }
table { border-collapse: collapse; margin: 10px 0 18px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 14px 4px 0; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } th { font-weight: 500; } td, th { padding-left: 10px; }
td:first-child, th:first-child { padding-left: 0; } tr.strong { font-weight: 600; }
figure { margin: 14px 0; } figcaption { font-size: 13px; } img { max-width: 100%; height: auto; display: block; }
button { font: inherit; padding: 3px 11px; border: 1px solid var(--line); border-radius: 6px; background: #fff;
  color: var(--ink); cursor: pointer; } button.on { background: var(--ink); color: #fff; border-color: var(--ink); }
"""


def make_page(title: str, body: str, *, style: str = "", script: str = "") -> bytes:
    """The content of an HTML file. The body is HTML; `escape` what comes from elsewhere."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}{style}</style></head><body>",
        body,
        f"<script>{script}</script>" if script else "",
        "</body></html>",
    ]
    return "\n".join(parts).encode(errors="replace")  # file names may not be UTF-8


def make_table(headings: list[str], rows: list[list[str]], strong: str | None = None) -> str:
    """A table; cells are text. The row that begins with `strong` is set off."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    lines = []
    for row in rows:
        start = "<tr class=strong>" if row[0] == strong else "<tr>"
        lines.append(start + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def embed(picture: bytes) -> str:
    """A picture, JPEG, PNG or SVG, as a data address."""
    kind = "png" if picture.startswith(b"\x89PNG") else "svg+xml" if picture.lstrip().startswith(b"<") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
