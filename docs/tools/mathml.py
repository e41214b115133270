"""Shows equations as MathML, which browsers draw by themselves.

Sphinx's own renderer loads a script from the network when a page is read.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging


def setup(app: Any) -> dict[str, bool]:
    """Registers the renderer, as `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _visit_inline(self: Any, node: nodes.math) -> None:
    self.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _visit_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, as_block: bool) -> str:
    """Returns the MathML of an equation; what docutils does not know is a warning."""
    try:
        return latex2mathml.tex2mathml(node.astext().strip(), as_block=as_block)
    except MathError as error:
        logger = logging.getLogger(__name__)
        logger.warning("%s in %s", error, node.astext(), location=node)
        return ""
