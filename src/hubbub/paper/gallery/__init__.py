"""The gallery: one page with the paper's claims, what was measured, and every figure."""

from hubbub.paper.gallery.claim_verdicts import VERDICTS
from hubbub.paper.gallery.gallery_page import gallery_html

__all__ = ["VERDICTS", "gallery_html"]
