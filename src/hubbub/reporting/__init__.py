"""The page that people open: what the crowd said, and how far to trust it."""

from hubbub.reporting.api import check_path, report
from hubbub.reporting.html_page import write_page
from hubbub.reporting.page_content import make_page
from hubbub.reporting.page_values import Bounds, Page, Verdict

__all__ = ["Bounds", "Page", "Verdict", "check_path", "make_page", "report", "write_page"]
