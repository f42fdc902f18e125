"""The page that people open: what the crowd said, and how far to trust it."""

from hubbub.reporting.front import report, reporting_on
from hubbub.reporting.page import Bounds, Covariance, Page, Verdict

__all__ = ["Bounds", "Covariance", "Page", "Verdict", "report", "reporting_on"]
