"""Facts once, several renderers: text, HTML, pictures. Nothing here computes an estimate."""

from hubbub.render.cells import spreadsheet_safe
from hubbub.render.facts import Fact, as_html, as_text, facts_html, most_probable, table_html
from hubbub.render.plot import draw_distribution, draw_whiskers

__all__ = [
    "Fact",
    "as_html",
    "as_text",
    "draw_distribution",
    "draw_whiskers",
    "facts_html",
    "most_probable",
    "spreadsheet_safe",
    "table_html",
]
