"""Sphinx configuration: builds offline, `make docs`."""

import re

import wiseale
from wiseale import registry

project = "wiseale"
author = "The wiseale maintainers"
release = wiseale.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "wiseale"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
suppress_warnings = ["myst.xref_missing"]


def registered(kind):
    """A section for every registered name of a kind, with the docstring of its class."""
    sections = []
    for name, path in sorted(registry.REGISTRIES[kind].items()):
        directive = f"```{{eval-rst}}\n.. autoclass:: {path.replace(':', '.')}\n   :no-index:\n```"
        sections.append(f"### `{name}`\n\n{directive}\n")
    return "\n".join(sections)


def setup(app):
    """Replace lines such as ``% registered: objective`` by what the registry holds, before a page is parsed."""

    def fill_in(app, page, source):
        source[0] = re.sub(r"^% registered: (.+)$", lambda found: registered(found[1]), source[0], flags=re.M)

    def escape_stars(app, what, name, obj, options, lines):
        """A shape such as (M, *x_shape) is not the start of emphasis; what stands in double backticks is left alone."""
        for number, line in enumerate(lines):
            parts = line.split("``")
            parts[::2] = [part.replace("*x_shape", r"\*x_shape") for part in parts[::2]]
            lines[number] = "``".join(parts)

    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", escape_stars)
