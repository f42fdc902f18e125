"""`report`: one page that people open in a browser."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import stepwise
from hubbub.estimators import Estimate
from hubbub.exporting.result_files import check_output_path
from hubbub.reporting.html_page import write_page
from hubbub.reporting.page_content import Reportable, make_page

PAGE_SUFFIXES = (".html", ".htm")


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
