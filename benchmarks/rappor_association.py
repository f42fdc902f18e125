"""Two variables by RAPPOR with Bloom filters: `mle` and `auto` beside google/rappor's own association EM.

Run: python benchmarks/rappor_association.py [--checkout DIR] [--only TEXT] [--draws 1] [--loops C++] [--methods mle]

The settings are those of google/rappor's simulations: `tests/assoc_sim.R` with `tests/params.csv`, and the Bloom
filters and privacy of `tests/regtest_spec.py`; and basic RAPPOR, one bit for each of 32 values. With `--checkout`, a
copy of its repository (commit a13fa96), its R code and its faster C++ loop run on the same reports, in the same run,
with one thread each, `mle` to a gap of 1e-6 nats per user; times are seconds of the processor, which a busy machine
does not change much. What they gave is kept in results/rappor_association.json. Without it, hubbub runs again and its
errors are compared with what was kept. `--draws N` draws each setting N times and compares the errors alone, with the
C++ loop, whose estimate is the same.
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.sampling import RandomSource
from measure import row, save_merged, stored_rows

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]
Positions = NDArray[np.int64]

NAME = "rappor_association"
TOLERANCE = (
    1e-6  # nats per user, of `mle`: the other tool's EM stops at changes of 1e-6, and is farther from the maximum
)
RUNNER = Path(__file__).parent / "peers" / "run_rappor_association.R"
MAX_LISTED_BITS = 16
FASTER = 100.0  # times, than its R code
METHODS = ("mle", "auto")
THEIRS = {"R": "google/rappor, R", "C++": "google/rappor, C++"}


@dataclass(frozen=True)
class BloomRappor(hb.Mechanism):
    """RAPPOR of one cohort: the bits of a value's Bloom filter, each sent as a one with one of two probabilities.

    With B_x the bits of value x, and P(1) = `own` for these, `other` for all others::

        P(z | x) = prod over j of  r_j^z_j (1 - r_j)^(1 - z_j),   r_j = own if j is in B_x, other if not
    """

    domain: hb.Domain
    filters: tuple[tuple[int, ...], ...]  # the bits of each value
    bits: int
    own: float
    other: float
    full_support: ClassVar[bool] = True  # every bit may be turned

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the filters
        """The largest log-ratio over all pairs of values, exactly."""
        table = self._table
        only = table @ (1.0 - table.T)  # bits of one value that another does not have
        ratios = only * math.log(self.own / self.other) + only.T * math.log((1.0 - self.other) / (1.0 - self.own))
        return float(ratios.max())

    @property
    def outputs(self) -> NDArray[Any] | None:
        """All rows of bits, packed, where they are few."""
        if self.bits > MAX_LISTED_BITS:
            return None
        every = np.arange(2**self.bits)[:, None] >> np.arange(self.bits - 1, -1, -1)
        return np.packbits((every & 1).astype(bool), axis=1)

    @cached_property
    def output_space(self) -> OutputSpace:
        """Rows of bits."""
        return BitRowOutputs(self.bits, type(self).__name__)

    @cached_property
    def _table(self) -> Floats:
        table = np.zeros((len(self.domain), self.bits))
        for place, own in enumerate(self.filters):
            table[place, list(own)] = 1.0
        return table

    def matrix(self) -> Floats:
        """Return P(z | x) for all outputs."""
        return np.exp(self.log_columns(np.asarray(self._listed())))

    def log_columns(self, codes: NDArray[Any], among: NDArray[np.int64] | None = None) -> Floats:
        """Return log P(z | x), which is linear in the bits."""
        sent = np.unpackbits(codes, axis=1, count=self.bits).astype(np.float64)
        table = self._table if among is None else self._table[among]
        one, zero = math.log(self.own / self.other), math.log((1.0 - self.own) / (1.0 - self.other))
        ones = sent.sum(axis=1)
        flat = ones * math.log(self.other) + (self.bits - ones) * math.log(1.0 - self.other)
        return np.asarray(table @ (sent * (one - zero)).T + zero * table.sum(axis=1)[:, None] + flat)

    def draw(self, positions: Positions, source: RandomSource) -> Bits:
        """Draw every bit independently."""
        chances = self.other + (self.own - self.other) * self._table[positions]
        return np.packbits(source.uniforms(chances.size).reshape(chances.shape) < chances, axis=1)


@dataclass(frozen=True)
class Setting:
    """How two variables are encoded: k bits, h hashes, m cohorts; p, q and f as in the RAPPOR paper."""

    name: str
    bits: int
    hashes: int
    cohorts: int
    p: float
    q: float
    f: float
    users: int
    values: tuple[int, int] = (8, 9)

    @property
    def own(self) -> float:
        """The probability of a one where the Bloom filter has one."""
        return (1.0 - self.f / 2) * self.q + self.f / 2 * self.p

    @property
    def other(self) -> float:
        """The probability of a one where it has none."""
        return (1.0 - self.f / 2) * self.p + self.f / 2 * self.q

    def joint(self) -> Floats:
        """Return the joint shares.

        As in `tests/assoc_sim.R`: the first is 1 + Poisson(1), cut at its last value; the second is the first, or one
        more, by a coin. Of 32 values: harmonic shares, and the second is the first in half of all cases.
        """
        first, second = self.values
        if first == second:
            shares = 1.0 / np.arange(1.0, first + 1.0)
            shares /= shares.sum()
            return 0.5 * np.diag(shares) + 0.5 * np.outer(shares, shares)
        shares = np.array([math.exp(-1.0) / math.factorial(count) for count in range(first)])
        shares /= shares.sum()
        joint = np.zeros((first, second))
        joint[np.arange(first), np.arange(first)] = joint[np.arange(first), np.arange(first) + 1] = shares / 2
        return joint

    def mechanisms(self, rng: np.random.Generator) -> list[hb.Split]:
        """Return both variables' mechanisms for each cohort; hashes are drawn, as in its `CreateMap`."""
        domains = [hb.Integers(1, size) for size in self.values]
        found = []
        for _ in range(self.cohorts):
            parts = []
            for domain in domains:
                basic = self.hashes == 1 and self.bits == len(domain)
                drawn = (
                    np.arange(self.bits)[:, None] if basic else rng.integers(self.bits, size=(len(domain), self.hashes))
                )
                filters = tuple(tuple(sorted(set(line))) for line in drawn.tolist())
                parts.append(BloomRappor(domain, filters, self.bits, self.own, self.other))
            found.append(hb.Split(first=parts[0], second=parts[1]))
        return found


SETTINGS = (
    Setting("assoc_sim.R, 10,000 users", 16, 2, 4, 0.1, 0.9, 0.2, 10_000),
    Setting("assoc_sim.R, 100,000 users", 16, 2, 4, 0.1, 0.9, 0.2, 100_000),
    Setting("assoc_sim.R, 1,000,000 users", 16, 2, 4, 0.1, 0.9, 0.2, 1_000_000),
    Setting("8 bits, 128 cohorts, p 0.225, q 0.775, f 0", 8, 2, 128, 0.225, 0.775, 0.0, 10_000),
    Setting("8 bits, 128 cohorts, p 0.39, q 0.61, f 0.45", 8, 2, 128, 0.39, 0.61, 0.45, 10_000),
    Setting("basic RAPPOR 32 x 32, p 0.25, q 0.75, f 0", 32, 1, 1, 0.25, 0.75, 0.0, 5_000, (32, 32)),
)


@dataclass(frozen=True)
class Problem:
    """Reports of a setting: for each user a cohort, and the bits of both variables."""

    setting: Setting
    mechanisms: list[hb.Split]
    cohorts: Positions
    bits: tuple[Bits, Bits]

    @classmethod
    def drawn(cls, setting: Setting, seed: int = 1) -> Problem:
        """Simulate the users."""
        rng = np.random.default_rng(seed)
        mechanisms = setting.mechanisms(rng)
        joint = setting.joint()
        values = np.unravel_index(rng.choice(joint.size, setting.users, p=joint.ravel()), joint.shape)
        cohorts = rng.integers(setting.cohorts, size=setting.users)
        bits = tuple(np.zeros((setting.users, setting.bits), dtype=np.uint8) for _ in values)
        for place, mechanism in enumerate(mechanisms):
            mine = cohorts == place
            for rows, part, own in zip(bits, mechanism.parts.values(), values, strict=True):
                sent = part.privatize(own[mine] + 1, rng=rng)
                rows[mine] = np.unpackbits(sent, axis=1, count=setting.bits)
        return cls(setting, mechanisms, cohorts, (bits[0], bits[1]))

    def reports(self) -> hb.Reports:
        """Return the reports, from the bits."""
        packed = [np.packbits(rows, axis=1) for rows in self.bits]
        kinds = [(name, np.uint8, rows.shape[1:]) for name, rows in zip(("first", "second"), packed, strict=True)]
        outputs = np.empty(self.setting.users, dtype=kinds)
        outputs["first"], outputs["second"] = packed
        parts = [
            hb.Reports.from_outputs(mechanism, outputs[self.cohorts == place])
            for place, mechanism in enumerate(self.mechanisms)
            if (self.cohorts == place).any()
        ]
        while len(parts) > 1:  # in pairs, so that no cohort is merged more often than need be
            parts = [sum(parts[first + 1 : first + 2], start=parts[first]) for first in range(0, len(parts), 2)]
        return parts[0]

    def write(self, folder: Path) -> None:
        """Write what the runner reads."""
        setting = self.setting
        np.array([setting.users, setting.bits, setting.cohorts, *setting.values], dtype=np.int32).tofile(
            folder / "size"
        )
        np.array([setting.p, setting.q, setting.f]).tofile(folder / "parameters")
        (self.cohorts + 1).astype(np.int32).tofile(folder / "cohorts")
        for place, name in enumerate(("first", "second")):
            self.bits[place].tofile(folder / f"bits{place + 1}")
            filters = np.stack([mechanism.parts[name]._table for mechanism in self.mechanisms])  # type: ignore[attr-defined]
            filters.astype(np.uint8).tofile(folder / f"filters{place + 1}")


@dataclass(frozen=True)
class Answer:
    """What one tool gave for one problem."""

    tool: str
    joint: Floats
    seconds: float
    said: str

    def line(self, problem: Problem, reports: hb.Reports) -> str:
        """Return error, time and log-likelihood, as results keep them."""
        far = error(self.joint, problem.setting)
        gap = hb.optimality_gap(reports, self.joint)
        by = self.tool.rpartition(", ")[2]
        return f"TV by {by} {far:.4f}, gap {gap:.1e}, time of {by} {self.seconds:.3g} s ({self.said})"


def ours(problem: Problem, method: str, tol: float = TOLERANCE) -> Answer:
    """Estimate from the bits: reports are put together, and estimated; the second of two runs counts."""
    settings: Any = {"tol": tol} if method == "mle" else {}
    hb.estimate(problem.reports(), method=method, **settings)  # compiled loops are compiled or loaded here
    start = time.process_time()
    estimate = hb.estimate(problem.reports(), method=method, **settings)
    took = time.process_time() - start
    return Answer(f"hubbub, {method}", estimate.probabilities, took, f"{estimate.iterations} iterations")


def theirs(problem: Problem, checkout: Path, loop: str) -> Answer:
    """Run google/rappor's functions in R, with its own loop or the one in C++."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem.write(folder)
        command = [_program("Rscript"), str(RUNNER), str(checkout), name, name]
        if loop == "C++":
            program = folder / "fast_em"
            source = checkout / "analysis" / "cpp" / "fast_em.cc"
            _run([_program("g++"), "-O3", "-o", str(program), str(source)])
            command.append(str(program))
        _run(command)
        facts = dict(line.split(": ", 1) for line in (folder / "facts").read_text(encoding="utf-8").splitlines())
        joint = np.fromfile(folder / "probabilities")
    return Answer(THEIRS[loop], joint, float(facts["seconds"]), f"{facts['iterations']} iterations")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is not here")
    return found


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def error(joint: Floats, setting: Setting) -> float:
    """Return the distance to the true joint shares."""
    return hb.total_variation(joint, setting.joint().ravel())


def measured(setting: Setting, checkout: Path, loops: list[str], methods: list[str]) -> Iterator[dict[str, Any]]:
    """Run all tools on one problem."""
    problem = Problem.drawn(setting)
    reports = problem.reports()
    answers = {method: ours(problem, method) for method in methods}
    for own in answers.values():
        yield row(setting.name, own.tool, own.line(problem, reports), "shown", holds=True)
    for loop in loops:
        name, other = THEIRS[loop], theirs(problem, checkout, loop)
        yield row(setting.name, name, other.line(problem, reports), "shown", holds=True)
        ratio = other.seconds / answers["mle"].seconds
        asked = f"at least {FASTER:g}" if loop == "R" else "shown"
        what = f"processor time of {name} / mle"
        yield row(setting.name, what, f"{ratio:.0f}", asked, holds=loop != "R" or ratio >= FASTER)
        if loop == "R":
            gap = hb.optimality_gap(reports, other.joint)
            ratio = other.seconds / ours(problem, "mle", gap).seconds
            what = f"{what}, both to the gap where it stops"
            yield row(setting.name, what, f"{ratio:.0f} ({gap:.1e})", asked, holds=ratio >= FASTER)
        if loop == loops[0]:
            for method, own in answers.items():
                yield error_row(
                    setting, f"TV of {method} / {name}", error(own.joint, setting), error(other.joint, setting)
                )


def error_row(setting: Setting, what: str, mine: float, other: float) -> dict[str, Any]:
    """Return a row that compares two errors."""
    return row(setting.name, what, f"{mine / other:.3f}", "at most 1", holds=mine <= other)


def drawn_again(setting: Setting, checkout: Path, draws: int) -> Iterator[dict[str, Any]]:
    """Compare mean errors over several draws."""
    found: dict[str, list[float]] = {}
    for seed in range(1, draws + 1):
        problem = Problem.drawn(setting, seed)
        found.setdefault("theirs", []).append(error(theirs(problem, checkout, "C++").joint, setting))
        for method in METHODS:
            estimate = hb.estimate(problem.reports(), method=method)
            found.setdefault(method, []).append(error(estimate.probabilities, setting))
    other = np.array(found.pop("theirs"))
    for method, errors in found.items():
        mine = np.array(errors)
        closer = f"{mine.mean():.4f} / {other.mean():.4f}, closer in {np.mean(mine <= other):.0%}"
        reached = f"{mine.mean() / other.mean():.3f}; {closer}"
        what = f"mean TV of {method} / google/rappor, {draws} draws"
        yield row(f"{setting.name}, again", what, reached, "at most 1", holds=bool(mine.mean() <= other.mean()))


def compared_with_kept(setting: Setting) -> Iterator[dict[str, Any]]:
    """Compare errors with those that google/rappor had on the same reports, when it was run."""
    problem = Problem.drawn(setting)
    for one in stored_rows(NAME):
        if one["problem"] == setting.name and one["measured"] == THEIRS["R"]:
            other = float(one["reached"].split(",")[0].split()[-1])
            for method in METHODS:
                estimate = hb.estimate(problem.reports(), method=method)
                yield error_row(
                    setting, f"TV of {method} / {one['measured']}, kept", error(estimate.probabilities, setting), other
                )


def main() -> None:
    """Measure the settings that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--checkout", type=Path, help="a copy of google/rappor, to run it beside hubbub")
    parser.add_argument("--only", default="", help="settings whose name begins so; other rows are kept as they are")
    parser.add_argument("--draws", type=int, default=1, help="compare errors over so many draws of each setting")
    parser.add_argument("--loops", nargs="+", choices=list(THEIRS), default=list(THEIRS), help="of google/rappor")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), help="of hubbub, mle among them"
    )
    options = parser.parse_args()
    for setting in SETTINGS:
        if not setting.name.startswith(options.only):
            continue
        if options.checkout is None:
            list(compared_with_kept(setting))
        elif options.draws > 1:
            save_merged(NAME, list(drawn_again(setting, options.checkout, options.draws)))
        else:
            save_merged(NAME, list(measured(setting, options.checkout, options.loops, options.methods)))


if __name__ == "__main__":
    main()
