"""Plans against fresh simulations: predicted errors and users needed, and the time a table takes.

Fresh studies are made by the public functions alone, with draws of their own: values, privatize, reports, estimate.

Run: python benchmarks/plan.py [--counts FILE] [--runs 1.0] [--only WORDS]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.core.threads import threads_for
from measure import row, save, stored_rows
from problems import residents

CLOSE, CLOSE_USERS, LIMIT = 0.10, 0.15, 30.0
QUICK, SLOW = 200, 60  # fresh studies
NOISE = 1.96 * 1.2533  # of a median, for as many studies as there are


@dataclass(frozen=True)
class Setting:
    """One way to report, one truth, one method, so many users; and a target, where users needed are looked for."""

    name: str
    parts: list[tuple[hb.Mechanism, float]]
    truth: str
    method: str
    users: int
    target: float | None = None
    reports: int = 1
    runs: int = QUICK

    @property
    def problem(self) -> str:
        """The setting in words."""
        return f"{self.name}, {self.truth}, {self.method}"


def settings() -> list[Setting]:
    """Return all settings."""
    ten, twenty, line = hb.Integers(0, 9), hb.Integers(0, 19), hb.Bins(tuple(np.linspace(0, 30, 16)))
    words = hb.Categories([f"word {number}" for number in range(30)])
    town, village = hb.Grid(8, 6, cell=0.5), hb.Grid(6, 5, cell=0.5)

    def alone(mechanism: hb.Mechanism) -> list[tuple[hb.Mechanism, float]]:
        return [(mechanism, 1.0)]

    mixed: list[tuple[hb.Mechanism, float]] = [(hb.RandomizedResponse(ten, 1.0), 0.4), (hb.Rappor(ten, 1.0), 0.6)]
    planar: list[tuple[hb.Mechanism, float]] = [
        (hb.PlanarGeometric(town, 0.7), 0.5),
        (hb.PlanarGeometric(town, 2.0), 0.5),
    ]
    krr, rappor, oue = hb.RandomizedResponse, hb.Rappor, hb.OptimizedUnary
    return [
        Setting("k-RR, line of 10", alone(krr(ten, 1.0)), "bell", "ibu", 5_000, 0.08),
        Setting("k-RR, 30 categories", alone(krr(words, 2.0)), "zipf", "mle", 10_000, 0.1),
        Setting("k-RR, 30 categories", alone(krr(words, 2.0)), "block", "inv-p", 20_000, 0.05),
        Setting("RAPPOR, line of 10", alone(rappor(ten, 1.0)), "bells", "ibu", 10_000, 0.06),
        Setting("RAPPOR, 30 categories", alone(rappor(words, 2.0)), "zipf", "mle", 5_000, runs=100),
        Setting("RAPPOR, 30 categories", alone(rappor(words, 2.0)), "zipf", "inv-p", 30_000, 0.05, runs=100),
        Setting("OUE, line of 20", alone(oue(twenty, 1.0)), "dominant", "inv-p", 10_000, 0.1),
        Setting("OUE, line of 10", alone(oue(ten, 1.5)), "bell", "mle", 3_000, runs=100),
        Setting("OLH, 30 categories", alone(hb.LocalHashing(words, 2.0)), "block", "ibu", 5_000, 0.1, runs=100),
        Setting("OLH, 30 categories", alone(hb.LocalHashing(words, 1.0)), "bell", "inv-p", 20_000, runs=100),
        Setting("subset selection, line of 10", alone(hb.SubsetSelection(ten, 1.0)), "zipf", "ibu", 5_000, 0.06),
        Setting("subset selection, 30 categories", alone(hb.SubsetSelection(words, 1.0)), "bell", "inv-p", 5_000),
        Setting("truncated geometric, line of 20", alone(hb.TruncatedGeometric(twenty, 0.5)), "bells", "ibu", 20_000),
        Setting("truncated geometric, line of 20", alone(hb.TruncatedGeometric(twenty, 0.5)), "bell", "mle", 5_000),
        Setting("truncated geometric, line of 20", alone(hb.TruncatedGeometric(twenty, 1.0)), "bell", "inv-p", 20_000),
        Setting("geometric, line of 20", alone(hb.Geometric(twenty, 0.7)), "block", "ibu", 5_000),
        Setting("planar geometric, 8 x 6 cells", alone(hb.PlanarGeometric(town, 1.5)), "bells", "ibu", 10_000, 0.1),
        Setting("planar geometric, 8 x 6 cells", alone(hb.PlanarGeometric(town, 1.5)), "bells", "mle", 10_000),
        Setting(
            "planar geometric, untruncated",
            alone(hb.PlanarGeometric(village, 1.5, truncated=False)),
            "bell",
            "ibu",
            5_000,
        ),
        Setting("planar Laplace, 6 x 5 cells", alone(hb.PlanarLaplace(village, 1.5)), "bells", "ibu", 5_000),
        Setting("Laplace, 15 bins", alone(hb.Laplace(line, 0.5)), "bells", "ibu", 10_000),
        Setting("exponential, line of 20", alone(hb.Exponential(twenty, 2.0)), "block", "mle", 5_000),
        Setting("k-RR and RAPPOR, mixed", mixed, "bell", "ibu", 5_000, 0.08, runs=100),
        Setting("planar geometric, two epsilons", planar, "bells", "ibu", 10_000),
        Setting("k-RR, 2 reports per user", alone(krr(ten, 1.0)), "bell", "ibu", 5_000, 0.06, reports=2, runs=100),
        Setting(
            "truncated geometric, 2 reports",
            alone(hb.TruncatedGeometric(ten, 0.5)),
            "bells",
            "mle",
            3_000,
            reports=2,
            runs=100,
        ),
        Setting("RAPPOR, 2 reports per user", alone(rappor(words, 2.0)), "zipf", "ibu", 2_000, reports=2, runs=100),
        Setting("k-RR, line of 10", alone(krr(ten, 1.0)), "zipf", "auto", 5_000, runs=300),
        Setting("k-RR, 30 categories", alone(krr(words, 3.0)), "zipf", "auto", 10_000, 0.06, runs=SLOW),
        Setting(
            "truncated geometric, line of 20",
            alone(hb.TruncatedGeometric(twenty, 0.5)),
            "bells",
            "auto",
            5_000,
            runs=SLOW,
        ),
        Setting(
            "planar geometric, 6 x 5 cells", alone(hb.PlanarGeometric(village, 1.5)), "bells", "auto", 5_000, runs=300
        ),
    ]


# -- fresh studies: public functions, and nothing of the plan's ----------------------------------------------


def fresh_reports(setting: Setting, truth: np.ndarray, users: int, rng: np.random.Generator) -> hb.Reports:
    """Return one study's reports."""
    found = None
    ends = np.cumsum([round(share * users) for _, share in setting.parts])
    values = rng.choice(setting.parts[0][0].domain.labels, size=users, p=truth)
    for (mechanism, _), own in zip(setting.parts, np.split(values, ends[:-1]), strict=True):
        outputs = [mechanism.privatize(own, rng=rng) for _ in range(setting.reports)]
        if setting.reports == 1:
            reports = hb.Reports.from_outputs(mechanism, outputs[0])
        else:
            sent = zip(*outputs, strict=True)
            reports = hb.Reports.from_users([[(mechanism, output) for output in each] for each in sent])
        found = reports if found is None else found + reports
    assert found is not None  # noqa: S101
    return found


def fresh_errors(setting: Setting, truth: np.ndarray, users: int, runs: int, seed: int) -> np.ndarray:
    """Return total variations of fresh studies."""
    rng = np.random.default_rng([20_262, seed])
    errors = np.empty(runs)
    with threads_for(0):
        for run in range(runs):
            estimate = hb.estimate(fresh_reports(setting, truth, users, rng), setting.method)
            errors[run] = hb.total_variation(estimate.probabilities, truth)
    return errors


def fresh_needed(setting: Setting, truth: np.ndarray, near: float, runs: int, seed: int) -> float:
    """Return how many users fresh studies need: by a line through three points around the plan's answer."""
    assert setting.target is not None  # noqa: S101
    places = [round(near / 1.5), round(near), round(near * 1.5)]
    medians = [np.median(fresh_errors(setting, truth, users, runs, seed + users)) for users in places]
    slope, level = np.polyfit(np.log(places), np.log(medians), 1)
    return float(np.exp((np.log(setting.target) - level) / slope))


# -- rows ----------------------------------------------------------------------------------------------------


def check(setting: Setting, more: float, seed: int) -> list[dict[str, Any]]:
    """Return the rows of one setting."""
    keywords: dict[str, Any] = {"reports_per_user": setting.reports, "truth": setting.truth, "method": setting.method}
    start = time.perf_counter()
    plan = hb.plan({setting.name: setting.parts}, users=setting.users, **keywords)
    (found,) = plan.settings
    took, runs = time.perf_counter() - start, max(10, round(more * setting.runs))
    truth = plan.truths[0].probabilities
    errors = fresh_errors(setting, truth, setting.users, runs, seed)
    median = float(np.median(errors))
    noise = NOISE * float(errors.std()) / np.sqrt(runs) / median
    off = found.tv.median / median - 1.0
    closed = "" if found.closed is None else f"; deviation of plain inversion {found.closed:.3f} of the closed form"
    problem = setting.problem
    rows = [
        row(
            f"{problem}: total variation",
            f"{setting.users:,} users: planned {found.tv.median:.4g} by {found.runs:,} studies in {took:.1f} s; "
            f"fresh {median:.4g} ± {100 * noise:.1f}% by {runs}{closed}",
            f"{100 * off:+.1f}%",
            f"within {100 * CLOSE:.0f}%",
            holds=abs(off) <= CLOSE,
        )
    ]
    if setting.target is not None:
        start = time.perf_counter()
        (needed,) = hb.plan({setting.name: setting.parts}, target=setting.target, **keywords).needed
        took = time.perf_counter() - start
        assert needed.value is not None  # noqa: S101
        other = fresh_needed(setting, truth, needed.value, runs, seed)
        off = needed.value / other - 1.0
        rows.append(
            row(
                f"{problem}: users needed",
                f"for {setting.target:g}: planned {needed.value:,.0f} ({needed.low:,.0f} to {needed.high:,.0f}) in "
                f"{took:.1f} s; fresh {other:,.0f}",
                f"{100 * off:+.1f}%",
                f"within {100 * CLOSE_USERS:.0f}%",
                holds=abs(off) <= CLOSE_USERS,
            )
        )
    return rows


def table(counts: Path) -> list[dict[str, Any]]:
    """Return how long six epsilons by six numbers of users take in San Francisco."""
    grid, people = residents(counts)
    mechanisms = [hb.PlanarGeometric(grid, epsilon) for epsilon in (0.35, 0.7, 1.0, 1.5, 2.0, 4.0)]
    users = [1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000]
    start, spent = time.perf_counter(), time.process_time()
    found = hb.plan(mechanisms, users=users, truth=people / people.sum(), method="ibu").settings
    took, spent = time.perf_counter() - start, time.process_time() - spent
    complete = all(one.emd is not None and one.widths is not None for one in found)
    return [
        row(
            "San Francisco, 6 epsilons x 6 users, ibu",
            f"tv, emd and widths of 384 cells; {sum(one.runs for one in found):,} studies; {spent:.1f} s of processors",
            f"{took:.1f} s",
            f"<= {LIMIT:.0f} s",
            holds=complete and took <= LIMIT,
        )
    ]


def main() -> None:
    """Print and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=Path, help="the paper's counts of San Francisco: columns x, y, count")
    parser.add_argument("--runs", type=float, default=1.0, help="fresh studies, relative to what is usual")
    parser.add_argument("--only", default="", help="settings whose words hold this; other rows are kept as they are")
    given = parser.parse_args()
    rows = {one["problem"]: one for one in stored_rows("plan")}
    known = {setting.problem for setting in settings()}
    rows = {name: one for name, one in rows.items() if name.split(": ")[0] in known or name.startswith("San")}
    for seed, setting in enumerate(settings()):
        if given.only in setting.problem:
            rows |= {one["problem"]: one for one in check(setting, given.runs, 1_000 * seed)}
            save("plan", list(rows.values()))
    if given.counts is not None:
        rows |= {one["problem"]: one for one in table(given.counts)}
        save("plan", list(rows.values()))


if __name__ == "__main__":
    main()
