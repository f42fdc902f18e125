"""The page that people open: what the crowd said, and how far to trust it."""

from hubbub.reporting.api import check_path, report, reporting_on
from hubbub.reporting.page import Bounds, Covariance, Page, Verdict
from hubbub.reporting.page_file import write_page

__all__ = ["Bounds", "Covariance", "Page", "Verdict", "check_path", "report", "reporting_on", "write_page"]
