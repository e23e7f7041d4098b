"""The documentation site: `make docs` builds it into docs/_build, with warnings as errors."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import c5

project = "C5"
author = "The C5 developers"
copyright = f"2026, {author}"
release = version = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "results/*", "paper/*"]  # docs/results.md and docs/paper.md are made of these
source_suffix = {".md": "markdown"}
nitpicky = True

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.strikethrough"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
autodoc_type_aliases = {
    name: name for name in ("ArrayLike", "Bools", "Float32s", "Float64s", "Floats", "ImageLike", "NDArray")
}

html_theme = "furo"
html_title = f"C5 {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def _escape_docstring(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings here are plain sentences with `code` in single backticks; reStructuredText wants more quoting."""
    parts = "\n".join(lines).split("`")
    for index, part in enumerate(parts):
        if index % 2:
            parts[index] = f"``{part}``"
        else:
            for mark in ("\\", "|", "*", "_"):
                part = part.replace(mark, f"\\{mark}")
            parts[index] = part
    lines[:] = "".join(parts).splitlines()


def _name_aliases(
    app: object, what: str, name: str, thing: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Sphinx writes a type alias inside of a union as TypeAliasForwardRef('Float64s')."""
    plain = [text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returned)]
    return plain[0], plain[1]


def _find_public_name(app: object, env: Any, node: Any, contents: Any) -> Any:
    """A type such as c5.histograms.Grid is documented under its public name, c5.Grid.

    Types in signatures that are other projects' or internal are plain text. What a page refers to must exist.
    """
    name = str(node.get("reftarget", "")).split(".")[-1]
    found = None
    if name in c5.__all__:
        domain = env.get_domain("py")
        found = domain.resolve_xref(env, node["refdoc"], env.app.builder, "obj", f"c5.{name}", node, contents)
    return contents if found is None and node["refdoc"] == "api" else found


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _escape_docstring)
    app.connect("autodoc-process-signature", _name_aliases)
    app.connect("missing-reference", _find_public_name)
