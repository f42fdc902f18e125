"""The page that people open: what the crowd said, and how far to trust it."""

from hubbub.reporting.api import check_path, report
from hubbub.reporting.groups_content import make_groups_page
from hubbub.reporting.groups_html import write_groups_page
from hubbub.reporting.groups_page import GroupsPage
from hubbub.reporting.html_page import write_page
from hubbub.reporting.page_content import make_page
from hubbub.reporting.page_values import Bounds, Page, Verdict

__all__ = [
    "Bounds",
    "GroupsPage",
    "Page",
    "Verdict",
    "check_path",
    "make_groups_page",
    "make_page",
    "report",
    "write_groups_page",
    "write_page",
]
