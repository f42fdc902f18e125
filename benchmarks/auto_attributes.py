"""Several attributes: how close `auto` comes to the truth, against `mle`, `ibu` and the inverse of the noise.

Randomized response on every attribute, with an equal part of the budget for each; truths of two and three attributes
that are independent, smooth, pairwise, of a few classes, dense or sparse. Each setting is drawn several times, and the
mean total variation is compared. Inversion is the exact inverse along each axis, projected onto the distributions as
`inv-p` does.

    python benchmarks/auto_attributes.py [--draws 5] [--only independent] [--jobs 2]
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

import hubbub as hb
from hubbub.core.arrays import Floats
from hubbub.solvers.repairs import projected
from measure import row, save, seconds, side_by_side

EPSILONS, USERS, SIZES = (1.0, 2.0, 4.0), (1_000, 10_000, 100_000), (2, 3)
METHODS = ("auto", "mle", "ibu", "inv-p")
TIE = 1.02  # times the error of another method: as close, up to the chance of a few draws
TRUTHS = ("independent", "copula", "pairwise", "classes", "dense", "sparse")
SIDES = {2: (10, 8), 3: (6, 5, 4)}
LINES = {2: (16, 12), 3: (12, 8, 2)}  # of the copula: the first two are lines
TIMED = (20, 10, 5)


class Setting(NamedTuple):
    """A truth, the number of attributes, the whole budget, the users, and how often it is drawn."""

    truth: str
    attributes: int
    epsilon: float
    users: int
    draws: int = 5

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"{self.truth}, {self.attributes} attributes, epsilon {self.epsilon:g}, {self.users:,} users"


def product(setting: Setting) -> hb.Product:
    """Return the domain: categories, or two lines (and a category)."""
    if setting.truth != "copula":
        return hb.Product(
            {f"a{place}": hb.Categories(range(side)) for place, side in enumerate(SIDES[setting.attributes])}
        )
    sides = LINES[setting.attributes]
    lines: dict[str, hb.Domain] = {"age": hb.Integers(0, sides[0] - 1), "income": hb.Integers(0, sides[1] - 1)}
    return hb.Product(lines | ({"sex": hb.Categories(["f", "m"])} if setting.attributes == 3 else {}))


def truth(setting: Setting, sides: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return a distribution over the combinations."""
    if setting.truth == "independent":
        shares = _outer([rng.dirichlet(np.full(side, 2.0)) for side in sides])
    elif setting.truth == "copula":
        shares = _copula(sides)
    elif setting.truth == "pairwise":
        logs = np.zeros(sides)
        for first in range(len(sides)):
            for second in range(first + 1, len(sides)):
                pair = [side if place in (first, second) else 1 for place, side in enumerate(sides)]
                logs = logs + rng.normal(0.0, 0.8, pair)
        shares = np.exp(logs)
    elif setting.truth == "classes":
        parts = [_outer([rng.dirichlet(np.full(side, 0.7)) for side in sides]) for _ in range(3)]
        shares = np.tensordot([0.5, 0.3, 0.2], parts, 1)
    else:
        shares = rng.dirichlet(np.ones(int(np.prod(sides))))
        if setting.truth == "sparse":
            shares = np.where(rng.permutation(shares.size) < shares.size / 10, shares, 0.0)
    return np.asarray(shares.ravel() / shares.sum())


def _outer(margins: list[Floats]) -> Floats:
    shares = np.ones(())
    for margin in margins:
        shares = np.multiply.outer(shares, margin)
    return shares


def _copula(sides: tuple[int, ...]) -> Floats:
    """Return a Gaussian copula with correlation 0.6 and skewed margins; with a third attribute, women have less."""
    first, second = np.meshgrid(np.linspace(-2.0, 2.5, sides[0]), np.linspace(-1.5, 3.0, sides[1]), indexing="ij")
    shares = [
        np.exp(-0.5 * (first**2 - 1.2 * first * (second - shift) + (second - shift) ** 2) / 0.64)
        for shift in ((0.0,) if len(sides) == 2 else (-0.3, 0.4))
    ]
    return np.stack(shares, axis=-1) if len(sides) > 2 else shares[0]


def split(domain: hb.Product, epsilon: float) -> hb.Split:
    """Return randomized response on every attribute, with equal parts of the budget."""
    part = epsilon / len(domain.attributes)
    return hb.Split(domain, **{name: hb.RandomizedResponse(own, part) for name, own in domain.attributes.items()})


def inverted(mechanism: hb.Split, outputs: Any) -> Floats:
    """Return the inverse of the noise along each axis, applied to the shares of outputs, and projected."""
    domain = mechanism.domain
    shares = np.bincount(domain.index(outputs), minlength=len(domain)) / len(outputs)
    box = shares.reshape(domain.sides)
    for place, (_, part) in enumerate(mechanism.parts_):
        box = np.moveaxis(np.moveaxis(box, place, -1) @ np.linalg.inv(part.matrix()), -1, place)
    return projected(box.ravel())


def drawn(setting: Setting, draw: int) -> tuple[hb.Split, Floats, Any]:
    """Return the mechanism, the truth and the outputs of one draw."""
    rng = np.random.default_rng([draw, *setting.name.encode()])
    domain = product(setting)
    shares = truth(setting, domain.sides, rng)
    mechanism = split(domain, setting.epsilon)
    values = domain.labels[np.repeat(np.arange(len(domain)), rng.multinomial(setting.users, shares))]
    return mechanism, shares, mechanism.privatize(values, rng=rng)


def measured(setting: Setting) -> dict[str, Any]:
    """Return the mean total variation of each method, over some draws."""
    errors: dict[str, list[float]] = {method: [] for method in METHODS}
    for draw in range(setting.draws):
        mechanism, shares, outputs = drawn(setting, draw)
        reports = hb.Reports.from_outputs(mechanism, outputs)
        for method in METHODS:
            by_name = method != "inv-p"
            estimate = hb.estimate(reports, method).probabilities if by_name else inverted(mechanism, outputs)
            errors[method].append(hb.total_variation(estimate, shares))
    return {"setting": setting, **{method: float(np.mean(own)) for method, own in errors.items()}}


def timed() -> float:
    """Return the seconds that `auto` takes on a table of some size."""
    domain = hb.Product({f"a{place}": hb.Integers(0, side - 1) for place, side in enumerate(TIMED)})
    mechanism = split(domain, 2.0)
    values = domain.labels[np.random.default_rng(1).integers(0, len(domain), 100_000)]
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=2))
    return seconds(lambda: hb.estimate(reports))[0]


def summary(found: list[dict[str, Any]], took: float) -> None:
    """Print and keep what was found."""
    rows = []
    for kind in TRUTHS:
        own = [one for one in found if one["setting"].truth == kind]
        if not own:
            continue
        best = [min(one["mle"], one["ibu"]) for one in own]
        ratio = float(np.exp(np.mean([np.log(one["auto"] / least) for one, least in zip(own, best, strict=True)])))
        close = sum(one["auto"] <= TIE * least for one, least in zip(own, best, strict=True))
        reached = f"{ratio:.2f} of the better of mle and ibu; as close in {close} of {len(own)}"
        rows.append(row(kind, "total variation of auto, geometric mean", reached, "at most 1", holds=ratio <= 1.0))
    close = [one["auto"] <= TIE * min(one["mle"], one["ibu"]) for one in found]
    share = float(np.mean(close))
    rows.append(
        row(
            "all settings", f"auto as close as mle and ibu (of {len(found)})", f"{share:.1%}", "90%", holds=share >= 0.9
        )
    )
    name = " x ".join(map(str, TIMED))
    rows.append(row(name, "seconds of auto, 100,000 users", f"{took:.1f} s", "some seconds", holds=took <= 20.0))
    save("auto_attributes", rows)


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--only", default="", help="settings whose name holds this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    asked = parser.parse_args()
    settings = [
        Setting(kind, attributes, epsilon, users, asked.draws)
        for kind in TRUTHS
        for attributes in SIZES
        for epsilon in EPSILONS
        for users in USERS
    ]
    settings = [setting for setting in settings if asked.only in setting.name]
    found = []
    for one in side_by_side(measured, settings, asked.jobs, "settings"):
        print(f"{one['setting'].name:<62}" + "  ".join(f"{method} {one[method]:.3f}" for method in METHODS), flush=True)
        found.append(one)
    summary(found, timed())


if __name__ == "__main__":
    main()
