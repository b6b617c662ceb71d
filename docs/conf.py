"""Sphinx configuration: `make docs` builds the site offline, runs the tutorials and checks every internal link."""

import re
import shutil
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import wiseale
from wiseale import registry

HERE = Path(__file__).parent
project = "wiseale"
author = "The wiseale maintainers"
copyright = "the wiseale maintainers, Apache-2.0"
release = wiseale.__version__
extensions = [
    "myst_nb",  # Markdown pages; those with a kernel in their header are run as notebooks
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas are drawn by a copy of MathJax in the site, not from the network
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "cache"  # again only if its cells changed
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_ipywidgets_js = {}  # the site fetches nothing
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "tutorials", "gallery/**.ipynb", "gallery/**.py", "gallery/**.zip"]
html_theme = "furo"
html_title = "wiseale"
html_static_path = ["_static"]
html_css_files = ["wiseale.css"]
html_show_sourcelink = False
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
suppress_warnings = ["config.cache"]  # the gallery's order is an object, which cannot be kept between builds
copybutton_exclude = ".linenos, .gp, .go"

# Tutorials run in a copy of their folder, so that the files they write stay out of the sources. Of an earlier build
# only the pages shown in the site are kept there; where one is missing, all tutorials run again.
TUTORIALS, GALLERY = HERE / "_build" / "tutorials", HERE / "gallery"
WRITTEN_BY_TUTORIALS = ["digits.html"]
kept = {name: (TUTORIALS / name).read_bytes() for name in WRITTEN_BY_TUTORIALS if (TUTORIALS / name).exists()}
shutil.rmtree(TUTORIALS, ignore_errors=True)
if len(kept) < len(WRITTEN_BY_TUTORIALS):
    shutil.rmtree(GALLERY, ignore_errors=True)
shutil.copytree(HERE / "tutorials", TUTORIALS, dirs_exist_ok=True)
for name, content in kept.items():
    (TUTORIALS / name).write_bytes(content)
ORDER = ["tabular", "*", "signals", "images", "anomalies", "grid_search", "compare"]
ORDER += ["explore", "objective", "own_loop", "machines"]
sphinx_gallery_conf = {
    "examples_dirs": str(TUTORIALS),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder([name if name == "*" else f"{name}.py" for name in [*ORDER, "reproduce"]]),
    "capture_repr": (),
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "download_all_examples": False,
    "image_srcset": ["2x"],
}
REGISTERED = {kind: dict(known) for kind, known in registry.REGISTRIES.items()}  # before a tutorial adds its own


def registered(kind):
    """A section for every registered name of a kind, with the docstring of its class."""
    sections = []
    for name, path in sorted(REGISTERED[kind].items()):
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

    def copy_pages(app, error):
        """Pages that tutorials wrote and show, such as the explorer."""
        for name in WRITTEN_BY_TUTORIALS:
            if error is None and app.builder.name == "html":
                shutil.copy(TUTORIALS / name, Path(app.outdir) / name)

    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", escape_stars)
    app.connect("build-finished", copy_pages)
