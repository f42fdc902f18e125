"""`report`: one page that people open in a browser."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import stepwise
from hubbub.estimators import Estimate
from hubbub.exporting.result_files import check_output_path
from hubbub.polygons import Regions
from hubbub.reporting.groups_content import ReportableGroups, make_groups_page
from hubbub.reporting.groups_html import write_groups_page
from hubbub.reporting.html_page import write_page
from hubbub.reporting.page_content import Reportable, make_page

PAGE_SUFFIXES = (".html", ".htm")


@stepwise
def report(
    given: Reportable | ReportableGroups,
    path: str | Path,
    *,
    method: str | None = None,
    level: float | None = None,
    title: str | None = None,
    estimate: Estimate | None = None,
    quick: bool = False,
    against: str | None = None,
    min_group: int | None = None,
    regions: Regions | None = None,
    region_intervals: str = "auto",
) -> Generator[Any, None, Path]:
    """Write an HTML page that shows what the crowd said and how far to trust it.

    The page needs nothing else: no network, no other file, any browser. It shows the estimate with its intervals, lets
    readers search, sort and select sets of values, compares the estimate with the noisy reports, answers the questions
    of `check` in plain language, and says how everything was computed. The same reports give the same bytes.

    Several groups, given by name, are compared: the page shows whether they differ, their estimates side by side on one
    scale, and their differences, all as `compare` or `compare_groups` returns them. Groups keep their order.

    Parameters
    ----------
    given : Reports, Tally or Estimate, or mapping from str to Reports or Tally
        What the page is about. An estimate alone gives a page without intervals and verdicts; a mapping gives a page
        that compares groups.
    path : str or Path
        Where to write the page; the name ends in .html or .htm.
    method : str, optional
        The method of `estimate`; "auto" by default. Not with an estimate, which has its method, nor with groups.
    level : float, optional
        The confidence level of the intervals; 0.95 by default.
    title : str, optional
        The title of the page; by default the name of the study.
    estimate : Estimate, optional
        An estimate from these reports, if you have one: otherwise it is computed.
    quick : bool, default False
        Leave out what takes long: the verdicts, and the tightest intervals.
    against : str, optional
        With groups: the one that all others are compared with. By default each is compared with all others together.
    min_group : int, optional
        With groups: those with fewer users are joined to one called others.
    regions : Regions, optional
        Districts of a map, from `hubbub.regions`: the map has their outlines, places are called by their names, and a
        table has the share of each with its interval. Not with groups.
    region_intervals : str, default "auto"
        How intervals of regions are computed: the `method` of ``Regions.shares``.

    Returns
    -------
    Path
        The path of the page.

    Raises
    ------
    SettingError
        If an option does not go with what was given, or the path is not that of a page.
    EstimateError
        If `given` is nothing that a page can be about.
    ReportsError
        If groups are not about the same values.
    IntakeError
        If the page cannot be written there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> reports = hb.Reports.from_counts(coin, {"yes": 60, "no": 40})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = hb.report(reports, Path(folder) / "survey.html", title="A survey", quick=True)
    ...     "<title>A survey</title>" in page.read_text(encoding="utf-8")
    True
    """
    page_path = check_path(path, "report(path)")
    check_output_path(page_path)
    if isinstance(given, Mapping):
        _refuse(
            "groups have the estimates that they are compared by", method=method, estimate=estimate, regions=regions
        )
        groups_page = yield from make_groups_page.steps(
            given,
            level=level,
            title=title,
            quick=quick,
            against=against,
            min_group=1 if min_group is None else min_group,
        )
        write_groups_page(groups_page, page_path)
        return page_path
    _refuse("there are no groups", against=against, min_group=min_group)
    page = yield from make_page.steps(
        given,
        method=method,
        level=level,
        title=title,
        estimate=estimate,
        quick=quick,
        regions=regions,
        region_intervals=region_intervals,
    )
    write_page(page, page_path)
    return page_path


def _refuse(reason: str, **given: object) -> None:
    """Refuse keywords that mean nothing to what the page is about."""
    for name, value in given.items():
        if value is not None:
            raise SettingError(
                f"{name} does not apply to this page",
                where=f"report({name}=)",
                got=shorten(value),
                expected=f"no {name}: {reason}",
                remedy=f"leave {name} out",
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
