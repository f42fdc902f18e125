"""The page of groups as one HTML file without any script: its charts are drawn when it is made."""

from __future__ import annotations

from pathlib import Path

from hubbub.comparison.comparison_sentences import p_text
from hubbub.core.files import write_file
from hubbub.core.text import whole_percent
from hubbub.reporting.group_panels import difference_panels, share_panels
from hubbub.reporting.group_tables import changes_table, groups_table, numbers_table
from hubbub.reporting.groups_page import GroupsPage
from hubbub.reporting.html_page import PACKAGE, REMEDY_WHILE_WRITTEN
from hubbub.reporting.html_templates import content_policy, read_asset, render
from hubbub.reporting.over_groups import over_groups

MAX_OPEN_ROWS = 30  # of the table of all numbers; a longer one is folded


def write_groups_page(page: GroupsPage, path: Path) -> None:
    """Write the page in one step: whoever has the old one open never sees half of the new one."""
    write_file(path, render_groups_page(page).encode("utf-8"), remedy=REMEDY_WHILE_WRITTEN)


def render_groups_page(page: GroupsPage) -> str:
    """Return the page as HTML: the same text for the same content and version.

    The policy allows no script at all, and nothing to be fetched.
    """
    numbers = numbers_table(page)
    return render(
        PACKAGE,
        "groups.html",
        page=page,
        policy=content_policy([]),
        style=read_asset(PACKAGE, "assets/report.css") + read_asset(PACKAGE, "assets/groups.css"),
        level=whole_percent(page.level),
        p_text=p_text(page.comparison.p_value),
        test=next(fact.text for fact in page.comparison.facts() if fact.label == "test"),
        shares=share_panels(page),
        differences=difference_panels(page),
        over=over_groups(page),
        groups=groups_table(page),
        changes=changes_table(page),
        numbers=numbers,
        is_long=len(numbers.rows) > MAX_OPEN_ROWS,
    )
