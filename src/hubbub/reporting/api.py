"""`report`: one page that people open in a browser."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from hubbub.core import validation
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import stepwise
from hubbub.estimators import Estimate
from hubbub.intake import Tally
from hubbub.intake.result_files import check_output_path
from hubbub.intake.study_input import StudyInput
from hubbub.reporting.html_page import write_page
from hubbub.reporting.page import Page
from hubbub.reporting.page_content import page_content
from hubbub.reporting.page_input import page_input
from hubbub.reports import Reports

PAGE_SUFFIXES = (".html", ".htm")
DEFAULT_LEVEL = 0.95
Reportable = Reports | Estimate | Tally | StudyInput


@stepwise
def report(
    given: Reportable,
    path: str | Path,
    *,
    method: str | None = None,
    level: float | None = None,
    title: str | None = None,
    estimate: Estimate | None = None,
    quick: bool = False,
) -> Generator[Any, None, Path]:
    """Write one page that shows what the crowd said and how far to trust it.

    The page needs nothing else: no network, no other file, any browser. It shows the estimate with its intervals, lets
    readers search, sort and select sets of values, compares the estimate with the noisy reports, answers the questions
    of `check` in plain language, and says how everything was computed. The same reports give the same bytes.

    Parameters
    ----------
    given : Reports, Tally or Estimate
        What the page is about. An estimate alone gives a page without intervals and verdicts.
    path : str or Path
        Where to write the page; the name ends in .html or .htm.
    method : str, optional
        The method of `estimate`; "auto" by default. Not with an estimate, which has its method.
    level : float, optional
        The confidence level of the intervals; 0.95 by default.
    title : str, optional
        The title of the page; by default the name of the study.
    estimate : Estimate, optional
        An estimate from these reports, if you have one: otherwise it is computed.
    quick : bool, default False
        Leave out what takes long: the verdicts, and the tightest intervals.

    Returns
    -------
    Path
        The path of the page.

    Raises
    ------
    SettingError
        If an option does not go with what was given, or the path is not that of a page.
    """
    page_path = check_path(path, "report(path)")
    check_output_path(page_path)
    page = yield from make_page.steps(given, method=method, level=level, title=title, estimate=estimate, quick=quick)
    write_page(page, page_path)
    return page_path


@stepwise
def make_page(
    given: Reportable,
    *,
    method: str | None = None,
    level: float | None = None,
    title: str | None = None,
    estimate: Estimate | None = None,
    quick: bool = False,
    max_profile_values: int | None = None,
) -> Generator[Any, None, Page]:
    """Return the content of the page that `report` writes.

    The `max_profile_values` largest values get intervals by profile likelihood, the others by the linear estimate; None
    leaves the number to the time that they take.
    """
    validation.boolean(quick, "quick", "report")
    if title is not None:
        validation.text(title, "title", "report", default="the name of the study")
    source = page_input(given, estimate, "report")
    if source.estimate is not None and method is not None:
        raise _not_with_an_estimate("method", method, "the estimate has its method already")
    if source.reports is None and level is not None:
        raise _not_with_an_estimate("level", level, "intervals need the reports")
    checked_level = DEFAULT_LEVEL if level is None else validation.level(level, "report")
    return (
        yield from page_content(
            source,
            method=method or "auto",
            level=checked_level,
            title=title,
            quick=quick,
            max_profile_values=max_profile_values,
        )
    )


def check_path(path: object, where: str) -> Path:
    """Return the path of a page; refuse a name that does not end in .html or .htm."""
    if not isinstance(path, str | Path) or not str(path).lower().endswith(PAGE_SUFFIXES):
        raise SettingError(
            "the name of the page must end in .html",
            where=where,
            got=shorten(str(path) if isinstance(path, Path) else path),
            expected="a path that ends in .html or .htm",
            remedy="name it report.html, for example",
        )
    return Path(path)


def _not_with_an_estimate(name: str, value: object, reason: str) -> SettingError:
    return SettingError(
        f"{name} cannot be combined with an estimate",
        where=f"report({name}=)",
        got=shorten(value),
        expected=f"no {name}: {reason}",
        remedy=f"leave {name} out, or pass the reports alone",
    )
