"""`report`: one page that people open in a browser."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from hubbub.core import validation
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import finish
from hubbub.estimators import Estimate
from hubbub.intake import Tally
from hubbub.intake.result_files import check_output_path
from hubbub.intake.study_input import StudyInput
from hubbub.reporting.material import material_of
from hubbub.reporting.page import Page
from hubbub.reporting.page_content import gathering
from hubbub.reporting.page_file import write_page
from hubbub.reports import Reports

ENDINGS = (".html", ".htm")
Reportable = Reports | Estimate | Tally | StudyInput


def report(
    given: Reportable,
    path: str | Path,
    *,
    method: str | None = None,
    level: float | None = None,
    title: str | None = None,
    estimate: Estimate | None = None,
    quick: bool = False,
) -> Path:
    """Write one page that shows what the crowd said and how far to trust it; return its path.

    The page needs nothing else: no network, no other file, any browser. It shows the estimate with its intervals, lets
    people search, sort, and select sets of values, compares with the noisy reports, answers the questions of
    `check` in plain language, and says how everything was computed. The same reports give the same bytes.

    `given` is reports or a tally; or an estimate alone, which leaves the page without intervals and verdicts. `method`
    ("auto") is that of `estimate`; or pass an `estimate` of these reports. `level` (0.95) is that of the intervals.
    ``quick=True`` leaves out what takes long: verdicts, and the tightest intervals.
    """
    place = check_path(path, "report(path)")
    check_output_path(place)
    page = finish(reporting_on(given, method=method, level=level, title=title, estimate=estimate, quick=quick))
    write_page(page, place)
    return place


def reporting_on(
    given: Reportable,
    *,
    method: str | None = None,
    level: float | None = None,
    title: str | None = None,
    estimate: Estimate | None = None,
    quick: bool = False,
    most: int | None = None,
) -> Generator[Any, None, Page]:
    """Make the page that `report` writes, yielding progress; `most` values have intervals by profile likelihood."""
    validation.boolean(quick, "quick", "report")
    if title is not None and not isinstance(title, str):
        raise SettingError(
            "the title is not a text",
            where="report(title=)",
            got=shorten(title),
            expected="one line of text",
            remedy="leave title out for the study's name",
        )
    material = material_of(given, estimate, "report")
    if material.estimate is not None and method is not None:
        raise _means_nothing("method", method, "it was chosen when the estimate was made")
    if material.reports is None and level is not None:
        raise _means_nothing("level", level, "intervals need the reports")
    chosen = 0.95 if level is None else validation.level(level, "report")
    return gathering(material, method=method or "auto", level=chosen, title=title, quick=quick, most=most)


def _means_nothing(name: str, value: object, reason: str) -> SettingError:
    return SettingError(
        f"{name} means nothing to an estimate that is given",
        where=f"report({name}=)",
        got=shorten(value),
        expected=f"no {name}: {reason}",
        remedy=f"leave {name} out, or pass the reports alone",
    )


def check_path(path: object, where: str) -> Path:
    """Return the path of a page, or say why it cannot be one."""
    if not isinstance(path, str | Path) or not str(path).lower().endswith(ENDINGS):
        raise SettingError(
            "not the name of a page",
            where=where,
            got=shorten(str(path) if isinstance(path, Path) else path),
            expected="a path that ends in .html",
            remedy="name it for example report.html",
        )
    return Path(path)
