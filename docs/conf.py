"""Sphinx makes the project's site from this folder; BUILD.md has the command.

The pages are Markdown that also reads in the repository: `tools/site_pages.py` turns
their links and lists into the site's. The pages of the API come from the docstrings.
"""

from __future__ import annotations

import pathlib
import sys
import tomllib
from typing import Any

from sphinx import addnodes

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "tools"), str(HERE.parent)]

import api_pages  # noqa: E402
import docstrings  # noqa: E402
import site_pages  # noqa: E402

import tfrl  # noqa: E402

# How the docstrings begin that Python gives to named tuples and their fields.
_OF_NAMED_TUPLES = ("Create new instance of ", "Alias for field number ")
_PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]

project = _PROJECT["name"]
author = "The tfrl authors"
version = release = tfrl.__version__

extensions = [
    "mathml",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
highlight_language = "none"
suppress_warnings = ["myst.header"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
nb_execution_mode = "off"

autodoc_typehints_format = "short"
autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
# In the docstrings, `text` is code, and a link where it names something of the API.
default_role = "py:obj"
add_module_names = False
maximum_signature_line_length = 80
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
# Its own underlines the names of modules, as if they were links.
pygments_dark_style = "github-dark"
html_title = "tfrl"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
toc_object_entries_show_parents = "hide"


def setup(app: Any) -> None:
    """Connects what turns the repository's pages into the site's."""
    address = _PROJECT.get("urls", {}).get("Repository", "")
    app.add_config_value("repository", address, "env", types=[str])
    app.connect("config-inited", _name_the_repository)
    app.connect("builder-inited", _write_the_pages_of_the_api)
    app.connect("html-page-context", _shorten_the_list_of_pages, priority=400)
    app.connect("source-read", _adapt)
    app.connect("doctree-read", _link_types)
    app.connect("autodoc-skip-member", _is_left_out)
    app.connect("autodoc-process-docstring", _adapt_docstring, priority=400)


def _name_the_repository(app: Any, config: Any) -> None:
    """Gives the pages a link to their source, and one to edit it."""
    if config.repository:
        config.html_theme_options = {
            "source_repository": config.repository,
            "source_branch": "main",
            "source_directory": "docs/",
        }


def _shorten_the_list_of_pages(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Unfolds in the list beside a page only its own part, not the whole API."""
    toctree = context["toctree"]
    context["toctree"] = lambda **options: toctree(**options | {"collapse": True})


def _write_the_pages_of_the_api(app: Any) -> None:
    api_pages.write(HERE / "reference")


def _adapt(app: Any, docname: str, source: list[str]) -> None:
    path = pathlib.Path(app.env.doc2path(docname))
    if path.suffix in (".md", ".ipynb"):
        source[0] = site_pages.adapted(source[0], path, app.config.repository)


def _adapt_docstring(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    written = [x for x in lines if not x.startswith(_OF_NAMED_TUPLES)]
    lines[:] = docstrings.as_rst(written, api_pages.classes())


def _link_types(app: Any, doctree: Any) -> None:
    """Links the classes in signatures; Sphinx would search all names for each type."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refspecific"):
            name = node["reftarget"].rpartition(".")[2]
            if place := api_pages.classes().get(name):
                node["reftarget"], node["refspecific"] = place, False
            else:
                node.replace_self(node.children)


def _is_left_out(
    app: Any, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leaves out the fields of named tuples, and members that others have written."""
    is_field = (getattr(obj, "__doc__", None) or "").startswith(_OF_NAMED_TUPLES)
    module = getattr(obj, "__module__", None) or "tfrl"
    return True if is_field or not module.startswith("tfrl") else None
