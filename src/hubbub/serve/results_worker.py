"""The process that computes live results: it counts new reports into a tally, and makes the report page from that.

It has a process of its own, with a low priority, so that no report waits for an estimate. It reads the database by
itself and shares nothing with the collector but a pipe. What computes is imported here alone.
"""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import HubbubError
from hubbub.intake.study import Study

if TYPE_CHECKING:
    from hubbub.estimators import Estimate
    from hubbub.intake import Tally
    from hubbub.reporting import Page

TALLY = "results.tally.parquet"
NICENESS = 10


@dataclass(frozen=True)
class ResultsSnapshot:
    """The results at one time: the page, the same as JSON, and what both are about."""

    page: bytes
    document: bytes
    reports: int
    users: int
    computed: str


@dataclass(frozen=True)
class ResultsTask:
    """What results are computed from."""

    study: Study
    source: str  # the address of the collector's table
    folder: str  # for the tally, which the next computation continues


Outcome = ResultsSnapshot | str | None  # what is wrong as a sentence; None if nothing is new, or nobody has answered


def compute_on_request(pipe: Connection, task: ResultsTask) -> None:
    """Compute results whenever something comes through the pipe, until it is closed."""
    for each in (signal.SIGINT, signal.SIGTERM):  # the collector is told to stop, too, and ends this process
        signal.signal(each, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    counted = -1
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            pipe.recv()
            outcome = current_results(task, counted)
            if isinstance(outcome, ResultsSnapshot):
                counted = outcome.reports
            pipe.send(outcome)


def current_results(task: ResultsTask, counted: int) -> Outcome:
    """Return results that are newer than those of so many counted reports."""
    from hubbub.intake import collect

    try:
        path = Path(task.folder) / TALLY
        names_users = (task.study.collector or {}).get("access") == "tokens"
        if names_users:
            path.unlink(missing_ok=True)  # a person's later reports belong to the earlier ones: all are counted anew
        tally = collect(task.study, task.source, path, watermark=False if names_users else None)
        return None if tally.rows == counted else _snapshot(tally)
    except HubbubError as error:
        return None if error.code == "no-reports" else f"{error.what}: {error.got}"
    except Exception as error:  # a mistake of ours: the collector goes on
        return f"a mistake of the program ({type(error).__name__})"


def _snapshot(tally: Tally) -> ResultsSnapshot:
    from hubbub.estimators import estimate
    from hubbub.intake.report_dates import ReportDates
    from hubbub.intake.study_input import StudyInput
    from hubbub.reporting import make_page
    from hubbub.reporting.html_page import render_page

    computed = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    summary = replace(tally.summary, dates=ReportDates.made_on(tally.summary.dates, computed))
    answer = estimate(tally.reports)
    page = make_page(StudyInput(tally.reports, summary), estimate=answer)
    document = results_document(page, answer, tally, computed)
    content = json.dumps(document, allow_nan=False).encode("ascii")
    return ResultsSnapshot(render_page(page).encode("utf-8"), content, tally.rows, tally.users, computed)


def results_document(page: Page, answer: Estimate, tally: Tally, computed: str) -> Mapping[str, Any]:
    """Return what `/results.json` says: the numbers of the page."""
    own = answer.document()
    ends = zip(page.shown_low.tolist(), page.shown_high.tolist(), strict=True)
    values = [
        {"value": entry["value"], "probability": entry["probability"], "low": _number(low), "high": _number(high)}
        for entry, (low, high) in zip(own["estimate"], ends, strict=True)
    ]
    return {
        "version": 1,
        "fingerprint": tally.study.fingerprint,
        "computed": computed,
        "reports": tally.rows,
        "users": tally.users,
        "method": own["method"],
        "status": own["status"],
        "level": page.level,
        "summary": page.summary,
        "estimate": values,
    }


def _number(end: float) -> float | None:
    return None if math.isnan(end) else end
