"""The gallery: one page with the paper's claims, what was measured, and every figure."""

from hubbub.paper.gallery.gallery_page import SHOWN_VERDICTS, gallery_html

__all__ = ["SHOWN_VERDICTS", "gallery_html"]
