"""Several attributes of census-like people: marginals of the joint estimate beside inversion's, for SPL, SMP and RS+FD.

Run: python benchmarks/attribute_references.py [--runs 4] [--jobs 1] [--only TEXT] [--checkout DIR]

The settings are those of Arcolezi et al. (CIKM 2021): ages, sexes, education and hours of work, epsilon from ln 2 to
ln 7, and SPL, SMP and RS+FD with k-RR and with unary encoding. The people are drawn from a table made here, with
marginals and dependences like a census'. Inversion is that of benchmarks/attribute_inversion.py, which needs nothing of
hubbub; its estimates are made distributions by clipping, as multi-freq-ldpy does, and by projecting. The error of a
setting is the mean squared error over all values of all attributes, and over the runs.

With `--checkout`, a copy of multi-freq-ldpy's repository, its clients and aggregators run once beside ours.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

import hubbub as hb
from attribute_inversion import (
    Inversion,
    Oracle,
    amplified,
    clipped,
    projected,
    rs_fd_grr,
    rs_fd_grr_ratios,
    rs_fd_oue_ratios,
    rs_fd_ue_r,
)
from hubbub.mechanisms.several_attributes import SeveralAttributes
from measure import row, save, save_merged, side_by_side, stored_rows

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Shares = list[Floats]  # of the values of each attribute

NAME = "attribute_references"
RUNNER = Path(__file__).parent / "peers" / "run_attribute_protocols.py"
SHARE_OF_SETTINGS = 0.9  # in which the joint estimate is to be at least as close as inversion
NEARLY = 1.05  # times as far counts as equally far, where both are nearly the same estimate
FIRST_DRAW = 1_000  # earlier ones served to choose constants of `auto`
LEVEL = 0.001  # of the test that both simulators draw alike
RATIOS = "RS+FD"
AGES = hb.Bins([17, 27, 37, 47, 57, 91])
SEXES = hb.Categories(["f", "m"])
EDUCATION = hb.Categories([f"level {level}" for level in range(1, 17)])
HOURS = hb.Bins([0, 20, 35, 41, 100])
PEOPLE = hb.Product(age=AGES, sex=SEXES, education=EDUCATION, hours=HOURS)


def census() -> Floats:
    """Return the share of each combination, with an axis for each attribute.

    Ages peak in the thirties; men are two thirds, as in the "Adult" extract that the literature uses; education has the
    peaks of finished schools (levels 9, 10 and 13), moves up after the early twenties and down for the old; hours peak
    at 40, and are shorter for the young, the old and women.
    """
    ages = np.arange(len(AGES)) - 2.0  # decades after the thirties
    age = np.exp(-0.5 * (ages / np.where(ages < 0.0, 1.7, 2.1)) ** 2)
    women = 0.29 + 0.09 * np.exp(-0.7 * (ages + 2.0))
    sex = np.stack([women, 1.0 - women], axis=1)
    levels = np.arange(1, 17) - 9.0
    schools = np.array([0.2, 0.5, 1.0, 2.0, 1.6, 2.8, 3.6, 1.3, 32.0, 22.0, 4.2, 3.3, 16.0, 5.3, 1.8, 1.2])
    lift = (0.12 * np.tanh(ages + 1.5) - 0.05 * ages)[:, None] + np.array([0.0, 0.01])
    education = schools * np.exp(lift[..., None] * levels)
    middle = 2.4 - 1.1 * np.exp(-(ages + 2.0)) - 0.16 * ages.clip(0.0) ** 2
    middle = middle[:, None, None] + np.array([-0.45, 0.15])[:, None] + 0.04 * levels
    places = np.arange(len(HOURS))
    hours = np.exp(-0.5 * ((places - middle[..., None]) / 0.9) ** 2) + 0.8 * np.exp(
        -((middle[..., None] - 2.2) ** 2)
    ) * (places == 2)
    shares = (age[:, None] * sex)[..., None] * education / education.sum(axis=2, keepdims=True)
    joint = shares[..., None] * hours / hours.sum(axis=3, keepdims=True)
    return np.asarray(joint / joint.sum())


@dataclass(frozen=True)
class Protocol:
    """A way to report: its mechanism here, and the inversion of each attribute as the literature has it."""

    name: str
    way: Callable[[dict[str, hb.Mechanism]], SeveralAttributes]
    part: Callable[[hb.Domain, float], hb.Mechanism]
    inner: Callable[[float], float]  # the epsilon of each attribute's mechanism
    inversion: Callable[[float, int], Inversion]  # of a stated epsilon and an attribute

    def mechanism(self, epsilon: float) -> SeveralAttributes:
        """Return the mechanism at a stated epsilon."""
        inner = self.inner(epsilon)
        return self.way({name: self.part(domain, inner) for name, domain in PEOPLE.attributes.items()})


SIDES = PEOPLE.sides
COUNT = len(SIDES)
AMPLIFIED = partial(amplified, attributes=COUNT)


def _split(epsilon: float) -> float:
    return epsilon / COUNT


def _whole(epsilon: float) -> float:
    return epsilon


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "SPL[GRR]", hb.Split, hb.RandomizedResponse, _split, lambda e, a: Inversion(Oracle.grr(e / COUNT, SIDES[a]))
        ),
        Protocol(
            "SMP[GRR]", hb.SampleOne, hb.RandomizedResponse, _whole, lambda e, a: Inversion(Oracle.grr(e, SIDES[a]))
        ),
        Protocol(
            "RS+FD[GRR]", hb.SampleOneWithFakes, hb.RandomizedResponse, AMPLIFIED, lambda e, a: rs_fd_grr(e, SIDES, a)
        ),
        Protocol("SPL[OUE]", hb.Split, hb.OptimizedUnary, _split, lambda e, _: Inversion(Oracle.oue(e / COUNT))),
        Protocol("SMP[OUE]", hb.SampleOne, hb.OptimizedUnary, _whole, lambda e, _: Inversion(Oracle.oue(e))),
        Protocol(
            "RS+FD[OUE-r]", hb.SampleOneWithFakes, hb.OptimizedUnary, AMPLIFIED, lambda e, a: rs_fd_ue_r(e, SIDES, a)
        ),
    )
}


@dataclass(frozen=True)
class Setting:
    """A way to report, a stated epsilon (the logarithm of a whole number) and a number of users."""

    protocol: str
    odds: int
    users: int
    runs: int
    methods: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the setting is called in tables."""
        return f"{self.protocol}, epsilon ln {self.odds}, {self.users:,} users"


def settings(runs: int, methods: tuple[str, ...]) -> list[Setting]:
    """Return all settings; unary reports seldom repeat, so these have fewer of them."""
    found = []
    for name in PROTOCOLS:
        unary = "OUE" in name
        for users in (10_000,) if unary else (10_000, 100_000):
            found += [Setting(name, odds, users, runs, methods) for odds in ((2, 4, 7) if unary else range(2, 8))]
    return found


@dataclass(frozen=True)
class Reported:
    """What users sent: their reports, and for each attribute how many supported each value, of how many."""

    mechanism: SeveralAttributes
    reports: hb.Reports
    supporting: Shares
    users: list[int]

    @classmethod
    def drawn(cls, mechanism: SeveralAttributes, joint: Floats, users: int, rng: np.random.Generator) -> Reported:
        """Simulate the users."""
        values = np.unravel_index(rng.choice(joint.size, users, p=joint.ravel()), joint.shape)
        table = {
            name: domain.labels[own]
            for (name, domain), own in zip(mechanism.domain.attributes.items(), values, strict=True)
        }
        sent = mechanism.privatize(table, rng=rng)
        supporting, counts = [], []
        for name, part in mechanism.parts.items():
            column = sent[name]
            if column.dtype == object:
                column = np.array([entry for entry in column if entry is not None])
            size = len(part.domain)
            if column.ndim == 2:
                supporting.append(np.unpackbits(column.astype(np.uint8), axis=1, count=size).sum(axis=0, dtype=float))
            else:
                supporting.append(np.bincount(part.domain.index(column), minlength=size).astype(float))
            counts.append(len(column))
        return cls(mechanism, hb.Reports.from_outputs(mechanism, sent), supporting, counts)

    def inverted(self, inversions: list[Inversion]) -> Shares:
        """Return the unbiased shares of each attribute."""
        pairs = zip(inversions, self.supporting, self.users, strict=True)
        return [inversion.shares(supporting, users) for inversion, supporting, users in pairs]


def marginals(joint: Floats) -> Shares:
    """Return the shares of each attribute."""
    every = range(joint.ndim)
    return [joint.sum(axis=tuple(other for other in every if other != place)) for place in every]


def squared_error(shares: Shares, truth: Shares) -> float:
    """Return the squared error, averaged over the values of an attribute and then over attributes."""
    return float(np.mean([np.mean((own - true) ** 2) for own, true in zip(shares, truth, strict=True)]))


def variation(shares: Shares, truth: Shares) -> float:
    """Return the total variation, averaged over attributes."""
    return float(np.mean([hb.total_variation(own, true) for own, true in zip(shares, truth, strict=True)]))


def errors(setting: Setting) -> dict[str, Any]:
    """Return the errors of all estimates of the marginals, averaged over the runs."""
    joint, protocol, epsilon = census(), PROTOCOLS[setting.protocol], math.log(setting.odds)
    truth, mechanism = marginals(joint), protocol.mechanism(epsilon)
    inversions = [protocol.inversion(epsilon, place) for place in range(COUNT)]
    found: dict[str, list[tuple[float, float]]] = {}
    for run in range(FIRST_DRAW, FIRST_DRAW + setting.runs):
        rng = np.random.default_rng([run, setting.odds, setting.users, list(PROTOCOLS).index(setting.protocol)])
        sent = Reported.drawn(mechanism, joint, setting.users, rng)
        unbiased = sent.inverted(inversions)
        shares = {"clipped": [clipped(own) for own in unbiased], "projected": [projected(own) for own in unbiased]}
        for method in setting.methods:
            estimate = hb.estimate(sent.reports, method=method)
            shares[method] = marginals(estimate.probabilities.reshape(SIDES))
        for name, own in shares.items():
            found.setdefault(name, []).append((squared_error(own, truth), variation(own, truth)))
    means = {name: np.mean(pairs, axis=0).tolist() for name, pairs in found.items()}
    return {"setting": setting.name, "runs": setting.runs, "errors": means}


def setting_row(found: dict[str, Any]) -> dict[str, Any]:
    """Return the row of one setting."""
    text = ", ".join(f"{name} {square:.3g} / {far:.4f}" for name, (square, far) in found["errors"].items())
    kept = row(
        found["setting"], f"mean squared error / TV of marginals, {found['runs']} runs", text, "shown", holds=True
    )
    return {**kept, "errors": found["errors"]}


def summaries(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield in how many settings an estimate was at least as close as inversion."""
    measured = [one["errors"] for one in rows if "errors" in one]
    for place, distance in enumerate(("mean squared error", "TV")):
        for method in ("mle", "auto"):
            for repair in ("clipped", "projected"):
                pairs = [(own[method][place], own[repair][place]) for own in measured if method in own]
                if pairs:
                    closer = np.mean([mine <= other for mine, other in pairs])
                    nearly = np.mean([mine <= NEARLY * other for mine, other in pairs])
                    ratio = math.exp(np.mean([math.log(mine / other) for mine, other in pairs]))
                    reached = f"{closer:.1%} of {len(pairs)} settings; up to 5% {nearly:.1%}; mean ratio {ratio:.3f}"
                    holds = bool(closer >= SHARE_OF_SETTINGS)
                    problem = f"all settings: {method}, inversion {repair}, {distance}"
                    asked = f"at least {SHARE_OF_SETTINGS:.0%}"
                    yield row(problem, "marginals at least as close as inversion's", reached, asked, holds=holds)


# -- RS+FD's epsilon, and multi-freq-ldpy ------------------------------------------------------------------------------


def ratio_rows() -> Iterator[dict[str, Any]]:
    """Yield the exact log-ratios of RS+FD at a stated epsilon of 1, from full matrices."""
    for sides in ((4, 4), (2, 16), (4, 4, 4), (2, 2, 2, 2), SIDES):
        yield _ratio_row("GRR", sides, rs_fd_grr_ratios(1.0, sides))
    for kind in ("r", "z"):
        for sides in ((4, 4), (2, 5), (3, 3, 3)):
            yield _ratio_row(f"OUE-{kind}", sides, rs_fd_oue_ratios(1.0, sides, kind))


def _ratio_row(kind: str, sides: tuple[int, ...], ratios: tuple[float, float]) -> dict[str, Any]:
    problem = f"{RATIOS}[{kind}], stated epsilon 1: {' x '.join(map(str, sides))} values"
    reached = f"any two inputs {ratios[0]:.4f}, two that differ in one attribute {ratios[1]:.4f}"
    asked = f"shown; inner epsilon {amplified(1.0, len(sides)):.4f}"
    return row(problem, "largest log-ratio of two probabilities", reached, asked, holds=True)


def beside_multi_freq_ldpy(checkout: Path, users: int = 20_000, epsilon: float = 1.0) -> Iterator[dict[str, Any]]:
    """Run its clients and aggregators once, to see whether both simulators draw alike and both formulas agree."""
    joint = np.multiply.outer(np.array([0.5, 0.3, 0.2]), np.array([0.7, 0.3])) * 0.7
    joint[0, 1] += 0.3
    ways = {
        "SPL": (hb.Split, epsilon / 2, lambda place: Inversion(Oracle.grr(epsilon / 2, joint.shape[place]))),
        "SMP": (hb.SampleOne, epsilon, lambda place: Inversion(Oracle.grr(epsilon, joint.shape[place]))),
        "RSpFD": (hb.SampleOneWithFakes, amplified(epsilon, 2), lambda place: rs_fd_grr(epsilon, joint.shape, place)),
    }
    for name, (way, inner, inversion) in ways.items():
        domains = [hb.Integers(0, side - 1) for side in joint.shape]
        mechanism = way(**{f"a{place}": hb.RandomizedResponse(own, inner) for place, own in enumerate(domains)})
        rng = np.random.default_rng(5)
        values = np.stack(np.unravel_index(rng.choice(joint.size, users, p=joint.ravel()), joint.shape), axis=1)
        sent = mechanism.privatize({"a0": values[:, 0], "a1": values[:, 1]}, rng=rng)
        mine = np.stack([_entries(sent[field]) for field in ("a0", "a1")], axis=1)
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            np.savez(home / "problem.npz", values=values, reports=mine, sides=joint.shape, epsilon=epsilon, way=name)
            paths = os.environ | {"PYTHONPATH": str(checkout / "src")}
            subprocess.run([sys.executable, str(RUNNER), folder], check=True, env=paths)  # noqa: S603
            answer = np.load(home / "answer.npz")
        tables = np.stack([_counted(rows, joint.shape) for rows in (mine, answer["reports"])])
        p_value = chi2_contingency(tables[:, tables.sum(axis=0) > 0]).pvalue
        problem = f"beside multi-freq-ldpy: {name}[GRR], 3 x 2 values, {users:,} users"
        what = "both simulators draw the same outputs: p-value of a chi-square test"
        yield row(problem, what, f"{p_value:.3f}", f"at least {LEVEL:g}", holds=bool(p_value >= LEVEL))
        apart = 0.0
        for place, side in enumerate(joint.shape):
            own = mine[mine[:, place] >= 0, place]
            shares = inversion(place).shares(np.bincount(own, minlength=side).astype(float), own.size)
            apart = max(apart, float(np.abs(clipped(shares) - answer[f"shares{place}"]).max()))
        what = "shares of the same reports by both inversions: largest difference"
        yield row(problem, what, f"{apart:.1e}", "at most 1e-12", holds=apart <= 1e-12)


def _entries(column: NDArray[Any]) -> Positions:
    return np.array([-1 if entry is None else entry for entry in column.tolist()], dtype=np.int64)


def _counted(reports: Positions, sides: tuple[int, ...]) -> Positions:
    """Return how often each combination of outputs was sent, missing ones included."""
    sizes = [side + 1 for side in sides]
    return np.bincount(np.ravel_multi_index(list((reports + 1).T), sizes), minlength=math.prod(sizes))


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=3, help="simulated studies of each setting")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--only", default="", help="settings whose name begins so; others are kept; 'all' sums up what there is"
    )
    parser.add_argument("--methods", nargs="+", default=["mle", "auto"])
    parser.add_argument("--checkout", type=Path, help="a copy of multi-freq-ldpy, to run it beside hubbub")
    options = parser.parse_args()
    if options.checkout is not None:
        save_merged(NAME, list(beside_multi_freq_ldpy(options.checkout)))
        return
    save_merged(NAME, list(ratio_rows()))
    chosen = [own for own in settings(options.runs, tuple(options.methods)) if own.name.startswith(options.only)]
    order = [own.name for own in settings(1, ())]
    for found in side_by_side(errors, chosen, options.jobs, "settings"):
        save_merged(NAME, [setting_row(found)])
    rows = [one for one in stored_rows(NAME) if not one["problem"].startswith("all settings")]
    rows.sort(key=lambda one: order.index(one["problem"]) if one["problem"] in order else -1)
    save(NAME, [*rows, *summaries(rows)])


if __name__ == "__main__":
    main()
