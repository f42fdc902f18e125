"""`run_demo`: privatize, estimate with every method, compare with the truth, and make the report."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Array, Floats
from hubbub.core.progress import Progress, map_steps, stepwise
from hubbub.demo.city import EPSILON_PER_KM, City, demo_study, load_city
from hubbub.estimators import estimate
from hubbub.intake.counting.counted_reports import spent_by
from hubbub.intake.study_input import StudyInput
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.mechanisms import PlanarGeometric
from hubbub.metrics import earth_mover_distance, total_variation
from hubbub.reporting import Page, make_page
from hubbub.reports import Reports

SEED = 1
METHODS = ("inv-n", "inv-p", "mle", "ibu", "auto")  # the report shows the last one


@dataclass(frozen=True)
class MethodResult:
    """The estimate of one method, and its distances from the truth."""

    name: str
    probabilities: Floats
    total_variation: float
    earth_mover: float
    status: str


@dataclass(frozen=True)
class DemoResult:
    """The city, its noisy outputs, the result of each method, and the report."""

    city: City
    mechanism: PlanarGeometric
    outputs: Array
    methods: tuple[MethodResult, ...]  # the first counts the noisy outputs
    page: Page


@stepwise
def run_demo() -> Generator[Progress, None, DemoResult]:
    """Run the demo; nothing is written."""
    steps = len(METHODS) + 3
    yield Progress(0, steps, "reading the city")
    city = load_city()
    study = demo_study()
    mechanism = PlanarGeometric(city.grid, EPSILON_PER_KM)
    yield Progress(1, steps, f"privatizing {city.people.sum():,} locations")
    outputs = mechanism.privatize(city.values, rng=SEED)
    noisy = np.bincount(city.grid.index(outputs), minlength=len(city.grid)) / outputs.size
    methods = [_compare_with_truth(city, "noisy", noisy, "the noisy reports, counted")]
    reports = Reports.from_outputs(mechanism, outputs)
    for done, method in enumerate(METHODS):
        yield Progress(done + 2, steps, f"estimating by {method}")
        answer = estimate(reports, method)
        methods.append(_compare_with_truth(city, method, answer.probabilities, answer.status))
    summary = Summary(study, reports.users, outputs.size, {}, (), spent_by(study, reports.blocks, {}))
    page = yield from map_steps(
        make_page.steps(StudyInput(reports, summary), estimate=answer),
        lambda step: Progress(steps - 1, steps, f"report: {getattr(step, 'what', 'checking')}"),
    )
    return DemoResult(city, mechanism, outputs, tuple(methods), page)


def _compare_with_truth(city: City, name: str, probabilities: Floats, status: str) -> MethodResult:
    moved = earth_mover_distance(city.shares, probabilities, city.grid)
    return MethodResult(name, probabilities, total_variation(city.shares, probabilities), moved, status)
