"""Facts once, several renderers: text, HTML, pictures. Nothing here computes an estimate."""

from hubbub.rendering.distribution_plot import draw_distribution, draw_whiskers, picture_bytes
from hubbub.rendering.facts import Fact, as_html, as_text, facts_html, most_probable, table_html, upper_text
from hubbub.rendering.geojson import check_on_the_map, geojson, on_the_map
from hubbub.rendering.spreadsheet import as_csv, from_spreadsheet_safe, spreadsheet_safe, write_row

__all__ = [
    "Fact",
    "as_csv",
    "as_html",
    "as_text",
    "check_on_the_map",
    "draw_distribution",
    "draw_whiskers",
    "facts_html",
    "from_spreadsheet_safe",
    "geojson",
    "most_probable",
    "on_the_map",
    "picture_bytes",
    "spreadsheet_safe",
    "table_html",
    "upper_text",
    "write_row",
]
