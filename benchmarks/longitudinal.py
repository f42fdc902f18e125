"""Several reports of one person from one permanent response: the joint likelihood, the product, and the average.

Run: python benchmarks/longitudinal.py [--runs N] [--only WORDS] [--jobs N]

Every row is a number of simulated studies, each with a truth of its own. The same reports are read in three ways: by
the joint likelihood of all reports of a person; by the product of the likelihoods of single reports, as if they were
independent; and by the average of all reports, inverted as if each were another person's, with the variance that is
published for that. The last two are what other tools do with several reports of one person.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import hubbub as hb
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.reports.reports import assemble
from hubbub.solvers.inversion import normalised
from measure import row, save_merged, side_by_side, study_parser

Floats = NDArray[np.float64]
RUNS = 100
DOMAIN = hb.Integers(0, 9)
USERS, EPSILON, FIRST = 2_000, 4.0, 1.0
REPORTS = (5, 20, 50)
LEVEL = 0.95
ERRORS = 3.0  # standard errors of simulation that are allowed for
WAYS = ("joint", "product", "average")


def _independent(kind: type[Any]) -> type[Any]:
    """Return a mechanism as somebody collects it who takes one person's reports for independent."""
    fields = {"joint_log_columns": hb.Mechanism.joint_log_columns, "__annotations__": {}, "__module__": __name__}
    return dataclass(frozen=True, init="init" in vars(kind))(type(f"Independent{kind.__name__}", (kind,), fields))


KINDS: dict[str, Callable[..., Longitudinal]] = {
    "L-GRR": hb.LongitudinalResponse,
    "L-SUE (RAPPOR)": hb.LongitudinalRappor,
    "L-OSUE": hb.LongitudinalUnary,
    "OLOLOHA": hb.LongitudinalHashing,
}


class Setting(NamedTuple):
    """One mechanism and a number of reports of each person."""

    kind: str
    reports: int

    @property
    def name(self) -> str:
        """Return the problem of its rows."""
        return f"{self.kind}, {self.reports} reports each"


class Study(NamedTuple):
    """One simulated study: which setting, and its number."""

    setting: Setting
    run: int


def studied(study: Study) -> dict[str, Any]:
    """Return the error of each way, how many of its intervals hold the truth, and how wide they are."""
    (kind, reports), run = study
    rng = np.random.default_rng([REPORTS.index(reports), list(KINDS).index(kind), run])
    truth = rng.dirichlet(np.full(len(DOMAIN), 1.0))
    mechanism = KINDS[kind](DOMAIN, EPSILON, FIRST)
    independent = _independent(type(mechanism))(DOMAIN, EPSILON, FIRST)
    kept = mechanism.permanent(rng.choice(len(DOMAIN), USERS, p=truth), rng=rng)
    codes = np.concatenate(
        [mechanism.output_space.encode(mechanism.instantaneous(kept, rng=rng)) for _ in range(reports)]
    )
    users = np.tile(np.arange(USERS), reports)
    found: dict[str, Any] = {"setting": study.setting}
    for way, each in (("joint", mechanism), ("product", independent)):
        sent = assemble(DOMAIN, {each: codes}, {each: users}, USERS)
        found[way] = hb.total_variation(hb.estimate(sent, "mle").probabilities, truth)
        intervals = [hb.interval(sent, value, LEVEL) for value in range(len(DOMAIN))]
        ends = np.array([(interval.low, interval.high) for interval in intervals])
        found[f"{way} holds"] = float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
        found[f"{way} width"] = float(np.ptp(ends, axis=1).mean())
    shares, reach = averaged(mechanism, codes)
    found["average"] = hb.total_variation(normalised(shares), truth)
    found["average holds"] = float((np.abs(shares - truth) <= reach).mean())
    found["average width"] = float(2 * reach.mean())
    return found


def averaged(mechanism: Any, codes: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the inverted shares of all reports, and half the width of their intervals as if no two were a person's."""
    true, other = mechanism.support
    supported = mechanism.support_counts(codes, np.ones(len(codes))) / len(codes)
    error = np.sqrt(supported * (1 - supported) / len(codes)) / (true - other)
    return (supported - other) / (true - other), float(ndtri((1 + LEVEL) / 2)) * error


def judged(setting: Setting, studies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a setting."""
    runs = len(studies)
    errors = {way: float(np.mean([study[way] for study in studies])) for way in WAYS}
    covered = {way: float(np.mean([study[f"{way} holds"] for study in studies])) for way in WAYS}
    widths = {way: float(np.mean([study[f"{way} width"] for study in studies])) for way in WAYS}
    least = LEVEL - 0.01 - ERRORS * float(np.std([study["joint holds"] for study in studies])) / math.sqrt(runs)

    def told(numbers: dict[str, float], form: str) -> str:
        return ", ".join(f"{way} {numbers[way]:{form}}" for way in WAYS)

    return [
        row(
            setting.name,
            f"mean error (total variation), {runs} studies",
            told(errors, ".4f"),
            "joint is least",
            holds=errors["joint"] <= min(errors.values()),
        ),
        row(
            setting.name,
            f"coverage of {LEVEL:.0%} intervals, {runs} studies",
            told(covered, ".1%"),
            f"joint at least 94%, less {ERRORS:g} standard errors",
            holds=covered["joint"] >= least,
        ),
        row(setting.name, f"mean width of intervals, {runs} studies", told(widths, ".3f"), "told", holds=True),
    ]


def main() -> None:
    """Print and keep the rows."""
    parser = study_parser(__doc__, RUNS)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    settings = [Setting(kind, reports) for kind in KINDS for reports in REPORTS]
    settings = [setting for setting in settings if setting.name.startswith(asked.only)]
    tasks = [Study(setting, run) for setting in settings for run in range(asked.runs)]
    found: dict[Setting, list[dict[str, Any]]] = {setting: [] for setting in settings}
    for answer in side_by_side(studied, tasks, asked.jobs, "studies"):
        found[answer["setting"]].append(answer)
    for setting in settings:
        save_merged("longitudinal", judged(setting, found[setting]))


if __name__ == "__main__":
    main()
