"""Privatize, estimate with every method, compare with the truth. Nothing is printed: progress is yielded."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Array, Floats
from hubbub.demo.city import City, load_city
from hubbub.demo.demo_study import EPSILON, demo_study
from hubbub.estimators import Estimate, estimate
from hubbub.intake.counting.content import spent_by
from hubbub.intake.study_input import StudyInput
from hubbub.mechanisms import PlanarGeometric
from hubbub.metrics import earth_mover_distance, total_variation
from hubbub.reporting import Page, make_page
from hubbub.reports import Reports

SEED = 1
METHODS = ("inv-n", "inv-p", "mle", "ibu", "auto")
TIGHTEST = 60  # of the busiest cells have the tightest intervals in the report, for the sake of time


@dataclass(frozen=True)
class Row:
    """One way to answer, and how far it is from the truth."""

    name: str
    probabilities: Floats
    total_variation: float
    earth_mover: float
    status: str


@dataclass(frozen=True)
class Result:
    """All that the demo found."""

    city: City
    mechanism: PlanarGeometric
    outputs: Array
    rows: tuple[Row, ...]
    page: Page


def run() -> Generator[tuple[int, int, str], None, Result]:
    """Yield (done, of, what is next); return the result."""
    steps = len(METHODS) + 3
    yield 0, steps, "reading the city"
    city = load_city()
    study = demo_study()
    mechanism = PlanarGeometric(city.grid, EPSILON)
    yield 1, steps, f"privatizing {city.people.sum():,} places"
    outputs = mechanism.privatize(city.values, rng=SEED)
    noisy = np.bincount(city.grid.index(outputs), minlength=len(city.grid)) / outputs.size
    rows = [_row(city, "noisy", noisy, "the reports as they came, counted")]
    reports = Reports.from_outputs(mechanism, outputs)
    for done, method in enumerate(METHODS):
        yield done + 2, steps, f"estimating by {method}"
        found = estimate(reports, method)
        rows.append(_row(city, method, found.probabilities, found.status))
    given = StudyInput(study, reports, outputs.size, {}, spent_by(study, reports.blocks, {}))
    page = yield from _paging(given, found, steps)
    return Result(city, mechanism, outputs, tuple(rows), page)


def _paging(given: StudyInput, found: Estimate, steps: int) -> Generator[tuple[int, int, str], None, Page]:
    """Make the report, as one step of several; `found` is the estimate of the last method."""
    making = make_page.steps(given, estimate=found, max_profile_values=TIGHTEST)
    while True:
        try:
            stage = next(making)
        except StopIteration as end:
            page: Page = end.value
            return page
        yield steps - 1, steps, f"report: {getattr(stage, 'what', 'checking')}"


def _row(city: City, name: str, probabilities: Floats, status: str) -> Row:
    return Row(
        name,
        probabilities,
        total_variation(city.shares, probabilities),
        earth_mover_distance(city.shares, probabilities, city.grid),
        status,
    )
