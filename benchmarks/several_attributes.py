"""Several attributes, in one thread: an EM update against the bare products along the axes, the maximum, memory.

Run: python benchmarks/several_attributes.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.channels.kronecker import KroneckerChannel
from hubbub.estimators import estimate
from hubbub.likelihood import Likelihood
from measure import ONE_THREAD, apart, in_turn, row, save, seconds

CLASSES = 30  # of people, each with a distribution of its own on every attribute: so attributes depend on each other
CONCENTRATION = 0.2  # of these distributions: many values are rare
Part = Callable[..., hb.Mechanism]
BOX, CUBE, SQUARE, BITS = (100, 100, 10), (100, 100, 100), (80, 80), (32, 32)


def truth(sides: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Return a distribution over all combinations with many small shares."""
    total = np.zeros(sides)
    for weight in rng.dirichlet(np.full(CLASSES, 0.5)):
        shares = np.array(weight)
        for side in sides:
            shares = np.multiply.outer(shares, rng.dirichlet(np.full(side, CONCENTRATION)))
        total += shares
    return total.ravel()


def collect(part: Part, sides: tuple[int, ...], users: int, epsilon: float) -> hb.Reports:
    """Simulate users who report every attribute, each with epsilon."""
    rng = np.random.default_rng(0)
    shares = truth(sides, rng)
    mechanism = hb.Split({f"attribute{place}": part(hb.Integers(1, side), epsilon) for place, side in enumerate(sides)})
    cells = np.unravel_index(rng.choice(shares.size, users, p=shares), sides)
    values = {name: 1 + own for name, own in zip(mechanism.parts, cells, strict=True)}
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def updates(part: Part, sides: tuple[int, ...], users: int, epsilon: float) -> dict[str, Any]:
    """Time EM updates and bare products in turn."""
    likelihood = Likelihood.of(collect(part, sides, users, epsilon))
    channel = likelihood.channel
    assert isinstance(channel, KroneckerChannel)  # noqa: S101
    theta = np.full(channel.values, 1.0 / channel.values)

    def update() -> None:
        point = likelihood.at(theta)
        _ = point.log_likelihood
        _ = point.update

    bare = by_rows(channel, theta) if channel.patterns > channel.values else by_axes(channel, theta)
    update()
    own, other = in_turn([update, bare], 25)
    return {"own": own, "bare": other, "patterns": channel.patterns}


def by_axes(channel: KroneckerChannel, theta: Any) -> Callable[[], Any]:
    """Return the products of a box with one small matrix along each axis, there and back, and nothing else."""
    matrices = [axis.columns for axis in channel.axes]

    def along(box: Any, tables: list[Any]) -> Any:
        for table in tables:  # the first axis goes, its outputs come last
            box = box.reshape(table.shape[1], -1).T @ table.T
        return box.ravel()

    def bare() -> Any:
        return along(along(theta, matrices), [table.T for table in matrices])

    return bare


def by_rows(channel: KroneckerChannel, theta: Any) -> Callable[[], Any]:
    """Return the products of two axes' rows, gathered beforehand: one of all users' rows with theta, and back."""
    first, second = (axis.columns[picks] for axis, picks in zip(channel.axes, channel.picks.T, strict=True))
    box = theta.reshape(channel.sides)

    def bare() -> Any:
        fitted = np.einsum("ij,ij->i", first @ box, second)
        return first.T @ (second / fitted[:, None])

    return bare


def solve(
    part: Part, sides: tuple[int, ...], users: int, epsilon: float, tol: float, solver: str | None = None
) -> dict[str, Any]:
    """Solve in a process of its own: its peak memory holds the reports, too."""
    reports = collect(part, sides, users, epsilon)
    busy = time.process_time()
    spent, found = seconds(lambda: estimate(reports, "mle", tol=tol, solver=solver))
    return {
        "seconds": spent,
        "processor": time.process_time() - busy,
        "gap": found.gap,
        "iterations": found.iterations,
        "how": f"{found.settings['solver']}, {found.settings.get('linear algebra', '')}",
    }


def main() -> None:
    """Print and keep the rows."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # read by the processes that are started here
    rows = []
    for name, part, sides, users, epsilon in (
        ("k-RR", hb.RandomizedResponse, BOX, 1_000_000, 2.0),
        ("RAPPOR", hb.Rappor, BITS, 100_000, 4.0),
    ):
        one = apart(updates, part, sides, users, epsilon)
        rows.append(
            row(
                _problem(name, sides, users, epsilon),
                f"EM update / bare products ({one['patterns']:,} patterns)",
                f"{1000 * one['own']:.0f} / {1000 * one['bare']:.0f} ms = {one['own'] / one['bare']:.1f}",
                "under 3",
                holds=one["own"] < 3 * one["bare"],
            )
        )
    for name, part, sides, users, epsilon, tol, limit in (
        ("k-RR", hb.RandomizedResponse, BOX, 1_000_000, 4.0, 1e-6, 60.0),
        ("k-RR", hb.RandomizedResponse, BOX, 1_000_000, 2.0, 1e-6, 60.0),
        ("k-RR", hb.RandomizedResponse, BOX, 1_000_000, 2.0, 1e-9, 60.0),
        ("RAPPOR", hb.Rappor, BITS, 100_000, 4.0, 1e-6, 60.0),
        ("RAPPOR", hb.Rappor, BITS, 100_000, 2.0, 1e-6, 60.0),
        ("k-RR", hb.RandomizedResponse, CUBE, 1_000_000, 4.0, 1e-6, 60.0),
    ):
        found = apart(solve, part, sides, users, epsilon, tol)
        rows.append(
            row(
                _problem(name, sides, users, epsilon),
                f"mle to {tol:.0e} ({found['how']}, {found['iterations']} iterations)",
                f"gap {found['gap']:.1e} in {found['seconds']:.1f} s ({found['processor']:.1f} s of processor time), "
                f"peak {found['peak MiB']:.0f} MiB",
                f"in {limit:.0f} s",
                holds=bool(found["gap"] <= tol and found["seconds"] <= limit),
            )
        )
        save("several_attributes", rows)
    rows.append(both_solvers(hb.RandomizedResponse, SQUARE, 1_000_000, 2.0, 1e-6))
    save("several_attributes", rows)


def both_solvers(part: Part, sides: tuple[int, ...], users: int, epsilon: float, tol: float) -> dict[str, Any]:
    """Return the row that says which solver is quicker: on all values, or on few of them at a time."""
    own, other = (
        apart(solve, part, sides, users, epsilon, tol, name)["processor"]
        for name in ("interior point", "support generation")
    )
    return row(
        _problem("k-RR", sides, users, epsilon),
        f"mle to {tol:.0e}: support generation / interior point, processor time",
        f"{other:.1f} / {own:.1f} s = {other / own:.1f}",
        "shown",
        holds=True,
    )


def _problem(name: str, sides: tuple[int, ...], users: int, epsilon: float) -> str:
    return f"{name} {epsilon:g} each, {' x '.join(map(str, sides))}, n={users:.0e}".replace("e+0", "e")


if __name__ == "__main__":
    main()
