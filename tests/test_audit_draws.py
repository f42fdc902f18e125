"""The audit's draws, budget, sentences and terminal.

Samplers of these tests are seeded, so that they pass always or never; where hubbub's own are drawn from the operating
system, a correct library fails with probability below 1e-6 for each test.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
from hubbub.auditing import audit_study
from hubbub.auditing.count_tests import binomial_p_values, chi_square
from hubbub.auditing.empirical_bounds import clopper_pearson_bounds
from hubbub.auditing.privacy_budget import budget_from_spending, privacy_budget
from hubbub.cli.audit import command
from hubbub.sampling import BitFlipLaw, Law, LineNoiseLaw, RandomSource, ResponseLaw
from terminal import hubbub as run

Outputs = NDArray[Any]
LINE = hb.Integers(0, 4)
COLOURS = hb.Categories(["red", "green", "blue"])
SURE = 1 - 1e-9


def seeded(mechanism: hb.Mechanism, seed: int = 0) -> Callable[[Outputs], Outputs]:
    """Return a mechanism's simulation as a sampler."""
    rng = np.random.default_rng(seed)
    return lambda values: mechanism.privatize(values, rng=rng)


# -- the bound ----------------------------------------------------------------------------------------------


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    cases = [(0, 50), (1, 50), (17, 50), (49, 50), (50, 50), (3, 100_000), (17, 50)]
    happened_each, trials_each = np.array(cases).T
    lows, highs = clopper_pearson_bounds(happened_each, trials_each, 0.01)
    for (happened, trials), low, high in zip(cases, lows, highs, strict=True):
        expected = stats.binomtest(happened, trials).proportion_ci(0.98, method="exact")
        assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-9)
        assert clopper_pearson_bounds(happened, trials, 0.01) == (low, high)


@pytest.mark.slow
def test_the_bound_is_seldom_above_the_truth() -> None:
    """Of 300 audits at level 0.7 less than 30% may be wrong; choosing and counting in the same draws fails this."""
    wrong = 0
    mechanism = hb.RandomizedResponse(hb.Integers(0, 5), 0.5)
    for seed in range(300):
        result = hb.audit(seeded(mechanism, seed), domain=mechanism.domain, epsilon=0.5, draws=100, level=0.7)
        wrong += result.empirical.refuted
    assert wrong <= stats.binom.ppf(1 - 1e-6, 300, 0.3)
    assert wrong > 0  # the level is not thrown away


# -- samplers of your own -----------------------------------------------------------------------------------


def test_an_honest_sampler_is_not_refuted() -> None:
    for mechanism in (hb.RandomizedResponse(COLOURS, 1.0), hb.Rappor(COLOURS, 1.0), hb.LocalHashing(COLOURS, 1.0)):
        result = hb.audit(seeded(mechanism), domain=COLOURS, epsilon=1.0, level=SURE, draws=20_000)
        assert result.holds is None
        assert result.exact is None
        assert result.verdict == "not refuted"
        assert "can only be tested" in result.explain()
    geometric = hb.Geometric(LINE, 0.7)
    result = hb.audit(seeded(geometric), domain=LINE, epsilon=0.7, metric=True, draws=20_000)
    assert result.holds is None
    assert result.empirical.low > 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "metric"),
    [
        (hb.RandomizedResponse(COLOURS, 1.1), False),
        (hb.Matrix(COLOURS, ["x", 2.5], [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]), False),
        (hb.Geometric(LINE, 1.1), True),
        (hb.PlanarGeometric(hb.Grid(3, 2, cell=1.0), 1.1), True),
        (hb.PlanarGeometric(hb.Grid(3, 2, cell=1.0), 1.2, truncated=False), True),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_tenth_too_much_is_refuted(mechanism: hb.Mechanism, metric: bool) -> None:
    result = hb.audit(seeded(mechanism), domain=mechanism.domain, epsilon=1.0, metric=metric, draws=100_000)
    assert result.holds is False
    assert result.empirical.refuted
    assert 1.0 < result.empirical.low <= mechanism.epsilon * 1.001
    assert result.explain().count("Refuted") == 1


def test_rows_of_bits_are_audited_bit_by_bit() -> None:
    mechanism = hb.Rappor(hb.Integers(0, 19), 1.2)
    draw = seeded(mechanism)

    def sampler(values: Outputs) -> Outputs:
        return np.unpackbits(draw(values), axis=1, count=20)

    result = hb.audit(sampler, domain=mechanism.domain, epsilon=1.0, draws=100_000)
    assert result.empirical.refuted
    assert "the bit of" in result.empirical.event


def test_a_sampler_that_returns_the_value_is_refuted() -> None:
    result = hb.audit(lambda values: values, domain=COLOURS, epsilon=5.0, draws=10_000)
    assert result.holds is False
    assert result.empirical.low > 6
    assert not result.empirical.repeated  # it draws nothing: that it repeats itself says nothing
    tuples = hb.audit(lambda values: [("sent", value) for value in values], domain=COLOURS, epsilon=5.0, draws=10_000)
    assert tuples.holds is False
    ragged = hb.audit(
        lambda values: [[len(value)] * len(value) for value in values], domain=COLOURS, epsilon=5.0, draws=10_000
    )
    assert ragged.holds is False


@pytest.mark.parametrize(("scale", "refuted"), [(1.0, False), (0.8, True), (1.2, False)])
def test_laplace_noise_in_floats(scale: float, refuted: bool) -> None:
    """Continuous outputs: no single one says anything, sides of a threshold do."""
    rng = np.random.default_rng(1)

    def sampler(values: Outputs) -> Outputs:
        return values + rng.laplace(0.0, scale / 0.5, values.size)

    result = hb.audit(sampler, domain=LINE, epsilon=0.5, metric=True, draws=100_000)
    assert result.holds is (False if refuted else None)
    assert result.empirical.low == pytest.approx(0.5 / scale, rel=0.06)
    assert "the output is at" in result.empirical.event


def test_randomness_that_repeats_itself_is_refuted() -> None:
    mechanism = hb.RandomizedResponse(COLOURS, 1.0)
    result = hb.audit(lambda values: mechanism.privatize(values, rng=3), domain=COLOURS, epsilon=1.0, draws=2000)
    assert result.empirical.repeated
    assert result.holds is False
    assert "seeded" in result.explain()


# -- mechanisms: draws against the matrix ------------------------------------------------------------------


MECHANISMS = [
    hb.RandomizedResponse(COLOURS, 1.0),
    hb.Rappor(hb.Integers(0, 29), 1.0),
    hb.OptimizedUnary(LINE, 1.0),
    hb.LocalHashing(hb.Integers(0, 29), 1.0),
    hb.SubsetSelection(hb.Integers(0, 29), 1.0),
    hb.Duchi(LINE, 1.0),
    hb.Staircase(LINE, 1.0),
    hb.Staircase(hb.Integers(0, 2_999), 1.0),
    hb.Unary(LINE, 0.6, "1/4"),
    hb.Geometric(LINE, 0.6),
    hb.TruncatedGeometric(LINE, 0.6),
    hb.Laplace(hb.Bins([0.0, 1.0, 3.0, 3.5]), 0.6),
    hb.Exponential(hb.Grid(3, 2), 1.0),
    hb.PlanarGeometric(hb.Grid(3, 3, cells=[0, 1, 5, 8]), 1.0),
    hb.PlanarGeometric(hb.Grid(3, 2, cell=1.0), 1.0, truncated=False),
    hb.Cloaking(LINE, ["a", "a", "b", "b", "b"]),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_mechanisms_hold(mechanism: hb.Mechanism) -> None:
    result = hb.audit(mechanism, draws=10_000, level=SURE)
    assert result.holds is True, result.explain()
    assert result.fit is not None
    assert result.empirical.low <= mechanism.epsilon
    assert result.empirical.low > 0.2 * min(mechanism.epsilon, 8.0) or isinstance(mechanism, hb.Exponential)
    json.loads(result.to_json())


class Redraws(LineNoiseLaw):
    """A planted fault: outputs outside are drawn again instead of being clamped."""

    def draw(self, positions: Any, source: RandomSource) -> Any:
        drawn = positions + self._noise.draw(positions.size, source)
        while (outside := (drawn < 0) | (drawn >= self.values)).any():
            drawn[outside] = positions[outside] + self._noise.draw(int(outside.sum()), source)
        return drawn


@dataclass(frozen=True)
class OffByOneBit(BitFlipLaw):
    """A planted fault: the neighbour's bit is taken for the value's own."""

    def draw(self, positions: Any, source: RandomSource) -> Any:
        return super().draw((positions + 1) % self.values, source)


@dataclass(frozen=True)
class Swapped(ResponseLaw):
    """A planted fault: what should be kept is drawn anew, and the other way round."""

    def draw(self, positions: Any, source: RandomSource) -> Any:
        kept = source.uniforms(positions.size) >= self.keep / (1 << self.width)
        return np.where(kept, positions, source.integers(self.values, positions.size))


def replaced(mechanism: hb.Mechanism, law: Law) -> hb.Mechanism:
    mechanism.__dict__["law"] = law
    return mechanism


def test_draws_that_do_not_follow_the_matrix_are_refuted() -> None:
    """The whole numbers are as they should be; what is drawn is not."""
    geometric = hb.TruncatedGeometric(LINE, 0.6)
    rappor = hb.Rappor(hb.Integers(0, 19), 1.0)
    response = hb.RandomizedResponse(COLOURS, 0.5)
    law, bits, kept = geometric.law, rappor.law, response.law
    assert isinstance(kept, ResponseLaw)
    faults = [
        replaced(hb.TruncatedGeometric(LINE, 0.6), Redraws(law.noise, law.values, 0, clamped=True)),
        replaced(hb.Rappor(hb.Integers(0, 19), 1.0), OffByOneBit(bits.values, bits.width, bits.own, bits.other)),
        replaced(hb.RandomizedResponse(COLOURS, 0.5), Swapped(kept.values, kept.width, kept.keep)),
    ]
    for mechanism in faults:
        result = hb.audit(mechanism, draws=20_000)
        assert result.exact is not None
        assert result.exact.holds
        assert result.fit is not None
        assert result.fit.rejected
        assert result.holds is False
        assert "does not follow its matrix" in result.explain()


def test_p_values_of_counts() -> None:
    expected = np.array([0.5, 0.3, 0.2])
    counts = np.array([520, 290, 190])
    assert chi_square(counts, expected).p_value == pytest.approx(stats.chisquare(counts, expected * 1000).pvalue)
    assert chi_square(np.array([5, 5, 1]), np.array([0.5, 0.5, 0.0])).p_value == 0.0
    assert chi_square(np.array([999, 1]), np.array([0.999, 0.001])).p_value == 1.0  # too rare to be a cell of its own
    assert binomial_p_values(np.array([5]), 10, np.array([0.5]))[0] == 1.0
    assert binomial_p_values(np.array([0]), 10, np.array([0.5]))[0] == pytest.approx(2 / 1024)


def test_a_law_of_its_own_is_tested_all_the_same() -> None:
    class Own(Law):
        def draw(self, positions: Any, source: RandomSource) -> Any:
            return np.where(source.uniforms(positions.size) < 0.5, positions, source.integers(3, positions.size))

    @dataclass(frozen=True)
    class Custom(hb.RandomizedResponse):
        @cached_property
        def law(self) -> Any:
            return Own()

    result = hb.audit(Custom(COLOURS, math.log(4)), draws=10_000, level=SURE)
    assert result.holds is None
    assert result.fit is not None
    assert not result.fit.rejected
    assert "Not proven: the epsilon of this kind of law cannot be proven" in result.explain()


def test_the_distance_of_the_values_counts() -> None:
    """The far pair has the larger ratio, the near one breaks the claim."""
    shares = 0.6 * np.exp([0.0, -1.5, -2.0])
    mechanism = hb.Matrix(hb.Integers(0, 2), ["x", "y"], np.stack([shares, 1 - shares], axis=1))
    result = hb.audit(seeded(mechanism), domain=mechanism.domain, epsilon=1.2, metric=True, draws=50_000)
    assert result.empirical.refuted
    assert (result.empirical.value, result.empirical.other, result.empirical.distance) == (0, 1, 1.0)


# -- the budget ---------------------------------------------------------------------------------------------


def test_plain_epsilon_and_epsilon_per_unit_are_never_added() -> None:
    grid = hb.Grid(4, 1, cell=1.0)
    study = hb.Study(
        grid,
        {
            "a": hb.PlanarGeometric(grid, 0.5),
            "b": hb.RandomizedResponse(grid, 0.25),
            "c": hb.PlanarGeometric(grid, 0.2),
        },
        max_reports_per_user=4,
        max_epsilon_per_user=0.75,
        max_epsilon_per_unit=2.0,
    )
    result = audit_study(study, draws=1000, level=SURE)
    assert result.holds is True
    assert result.budget.plain == 1.0
    assert result.budget.per_unit == 2.0
    assert result.budget.plain_equivalent == 4 * 0.5 * 3.0  # the mix of four reports of a, over the diameter
    assert result.budget.exceeded
    assert "more than the study's limit of 0.75" in result.budget.explain()
    assert "within the study's limit of 2" in result.budget.explain()
    assert result.audits["c"].budget.per_unit == pytest.approx(0.8)
    assert list(audit_study(study, mechanism="b", draws=100).audits) == ["b"]


def test_a_mechanism_that_spends_less_and_less_is_mixed_with_others() -> None:
    claims = [(lambda reports: min(2.0 * reports, 5.0), False), (lambda reports: 1.0 * reports, False)]
    assert budget_from_spending(claims, 6, LINE).plain == 5.0 + 3.0  # three of the first (2, 2, 1), three of the other
    assert budget_from_spending(claims, 2, LINE).plain == 4.0


def test_no_limit_is_no_bound() -> None:
    result = hb.audit(hb.TruncatedGeometric(LINE, 0.5), draws=100, reports_per_user=None)
    assert result.budget.per_unit == math.inf
    assert json.loads(result.to_json())["budget"]["per_unit"] is None
    assert "no limit" in result.explain()


def test_memory_bounds_any_number_of_reports() -> None:
    memory = hb.LongitudinalRappor(LINE, 2.0, 0.5)
    result = hb.audit(memory, draws=100, reports_per_user=None).budget
    assert (result.plain, result.plain_equivalent) == (2.0, 2.0)
    assert result.explain() == "A user who sends any number of reports about one value spends at most epsilon 2."
    assert privacy_budget([memory, hb.LongitudinalRappor(LINE, 1.0, 0.5)], None).plain == 3.0
    assert privacy_budget([memory, hb.Rappor(LINE, 1e-12)], None).plain == math.inf


# -- JSON and the terminal ----------------------------------------------------------------------------------


STUDY = """
version = 1
max_reports_per_user = 3
[domain]
kind = "integers"
low = 0
high = 9
[mechanisms.near]
kind = "truncated-geometric"
epsilon = 0.5
[mechanisms.flat]
kind = "randomized-response"
epsilon = 2.0
[mechanisms.region]
kind = "cloaking"
regions = ["a", "a", "a", "a", "a", "b", "b", "b", "b", "b"]
"""


@pytest.mark.slow
def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    done = run("audit", "study.toml", "--draws", 1000, "--level", SURE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("near", "proven", "no claim", "0.5 per unit", "0.49999999999999956", "no bound"):
        assert words in done.stdout
    done = run("audit", "study.toml", "--mechanism", "near", "--draws", 1000, "--level", SURE, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert list(document) == ["version", "fingerprint", "holds", "mechanisms", "budget"]
    assert document["fingerprint"] == hb.read_study(tmp_path / "study.toml").fingerprint
    near = document["mechanisms"]["near"]
    assert near["claim"] == 0.5
    assert near["exact"]["epsilon"] == {"low": "0.49999999999999955", "high": "0.49999999999999956"}
    ratio = near["exact"]["ratio"]
    expected = hb.audit(hb.TruncatedGeometric(hb.Integers(0, 9), 0.5), draws=100).exact
    assert expected is not None
    assert expected.ratio is not None
    assert (int(ratio["numerator"], 16), int(ratio["denominator"], 16)) == expected.ratio.as_integer_ratio()
    assert document["budget"]["reports_per_user"] == 3
    assert document["budget"]["bounded"] is False
    done = run("audit", "study.toml", "--mechanism", "nothing", cwd=tmp_path)
    assert done.returncode == 2
    assert "mechanism must be 'near', 'flat' or 'region'" in done.stderr


def test_a_refuted_claim_is_exit_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.setattr("hubbub.mechanisms.geometric.EPSILON_SHRINK", 1)
    with pytest.raises(typer.Exit) as exit_:
        command(tmp_path / "study.toml", draws=1000, level=SURE, mechanism="near")
    assert exit_.value.exit_code == 1
    shown = capsys.readouterr().out
    assert "refuted" in shown
    assert "the rounding of floats" in shown
