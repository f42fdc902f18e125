"""The colours of all plots. What a plot distinguishes by colour, it also distinguishes by position, line or mark."""

from __future__ import annotations

# The palette of Okabe and Ito, which colour-blind readers can distinguish.
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
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # in the order in which the lines of a plot take them

# Matplotlib's cividis at equal steps: one ramp from dark blue to yellow whose lightness rises for every reader, on
# the page and in pictures.
RAMP = (
    "#00224e", "#002e6a", "#1a386f", "#32436d", "#434e6c", "#535a6d",
    "#61656f", "#6f7073", "#7d7c78", "#8c8878", "#9b9476", "#aba072",
    "#bcae6c", "#cdbb63", "#dec958", "#f0d846", "#fee838",
)  # fmt: skip
