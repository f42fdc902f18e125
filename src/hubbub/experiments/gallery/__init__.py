"""The gallery: one page with the paper's claims, what was measured, and every figure."""

from hubbub.experiments.gallery.claims import VERDICTS
from hubbub.experiments.gallery.html_page import page

__all__ = ["VERDICTS", "page"]
