"""Formulas as MathML, which browsers draw themselves: no script, no font and no network."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Draw a formula within a sentence."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Draw a formula on a line of its own."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Name the renderer for `html_math_renderer`."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
