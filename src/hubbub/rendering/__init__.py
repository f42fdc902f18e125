"""Labelled facts as text and HTML, spreadsheet-safe CSV, map files and plots; nothing here computes an estimate."""

from hubbub.rendering.distribution_plot import draw_distribution, picture_bytes
from hubbub.rendering.estimate_plot import EstimatePlot
from hubbub.rendering.facts import (
    Fact,
    distribution_html,
    facts_html,
    facts_text,
    most_probable,
    table_html,
    upper_text,
)
from hubbub.rendering.geojson_features import cell_columns, cell_sides, check_on_map, geojson
from hubbub.rendering.geoparquet import parquet_bytes
from hubbub.rendering.picture_text import picture_title
from hubbub.rendering.product_html import crosstab_html
from hubbub.rendering.product_plot import ProductPlot
from hubbub.rendering.spreadsheet import csv_bytes, from_spreadsheet_safe, spreadsheet_safe, write_csv_row

__all__ = [
    "EstimatePlot",
    "Fact",
    "ProductPlot",
    "cell_columns",
    "cell_sides",
    "check_on_map",
    "crosstab_html",
    "csv_bytes",
    "distribution_html",
    "draw_distribution",
    "facts_html",
    "facts_text",
    "from_spreadsheet_safe",
    "geojson",
    "most_probable",
    "parquet_bytes",
    "picture_bytes",
    "picture_title",
    "spreadsheet_safe",
    "table_html",
    "upper_text",
    "write_csv_row",
]
