"""Colours, and marks besides: what a picture tells apart by colour it tells apart by something else as well."""

from __future__ import annotations

# The colour-blind-safe palette of Okabe and Ito.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE = (
    "#000000",
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
)
GREY, PALE, INK = "#7f7f7f", "#d9d9d9", "#555555"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # in the order in which lines of a picture take them
