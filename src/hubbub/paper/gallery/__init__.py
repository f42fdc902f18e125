"""The gallery: one page with the paper's claims, what was measured, and every figure."""

from hubbub.paper.gallery.claims_table import VERDICTS
from hubbub.paper.gallery.gallery_page import page

__all__ = ["VERDICTS", "page"]
