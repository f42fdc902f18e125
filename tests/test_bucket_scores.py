"""Linear scores of sketches and dBitFlip: against the law of all outputs, where these can be listed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.intervals.bucket_scores import BucketScores, bucket_scores
from hubbub.intervals.set_intervals import NoSetShares, SetShares, set_shares

Floats = NDArray[np.float64]
FIVE = hb.Integers(0, 4)
REFERENCE = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
OTHER = np.array([0.05, 0.0, 0.6, 0.05, 0.3])
SMALL: dict[str, hb.Mechanism] = {
    "bits of sketches": hb.CountMeanSketch(FIVE, 2.0, hashes=4, width=4),
    "signs of sketches": hb.HadamardCountMeanSketch(FIVE, 2.0, hashes=6, width=4),
    "one answer": hb.DBitFlip(FIVE, 2.0, buckets=5, bits=1),
    "some answers": hb.DBitFlip(FIVE, 2.0, buckets=5, bits=3),
    "all answers": hb.DBitFlip(FIVE, 2.0, buckets=5, bits=5),
}
LARGE: dict[str, hb.Mechanism] = {
    "bits of sketches": hb.CountMeanSketch(hb.Integers(0, 11), 3.0),
    "signs of sketches": hb.HadamardCountMeanSketch(hb.Integers(0, 11), 3.0),
    "answers": hb.DBitFlip(hb.Integers(0, 11), 3.0, buckets=12, bits=7),
}
SHARES = np.array([0.3, 0.0, 0.2, 0.0, 0.0, 0.25, 0.0, 0.1, 0.05, 0.0, 0.06, 0.04])
RUNS = 60


def listed(
    mechanism: hb.Mechanism, reference: Floats, among: Floats | None = None
) -> tuple[BucketScores, Floats, Floats]:
    """Return scores, those of all outputs, and the probabilities of all outputs."""
    codes = mechanism.output_space.encode(mechanism.outputs)
    kept = None if among is None else among.astype(np.int64)
    scores = bucket_scores(mechanism, reference, kept)
    assert scores is not None
    return scores, scores.of(codes), np.exp(mechanism.log_columns(codes, kept))


@pytest.mark.parametrize("name", SMALL)
def test_scores_are_unbiased_and_scatter_as_promised(name: str) -> None:
    scores, of_outputs, chances = listed(SMALL[name], REFERENCE)
    for theta in (REFERENCE, OTHER):
        assert of_outputs @ (theta @ chances) == pytest.approx(scores.information @ theta)
    assert REFERENCE @ of_outputs == pytest.approx(1.0)
    squares = (of_outputs * (REFERENCE @ chances)) @ of_outputs.T
    assert squares == pytest.approx(scores.information, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_values_that_are_left_out_of_the_domain_leave_no_trace(name: str) -> None:
    among = np.array([0.0, 2.0, 4.0])
    scores, of_outputs, chances = listed(SMALL[name], np.array([0.5, 0.3, 0.2]), among)
    theta = np.array([0.1, 0.2, 0.7])
    assert of_outputs @ (theta @ chances) == pytest.approx(scores.information @ theta)


@pytest.mark.parametrize("name", SMALL)
def test_tallies_are_sums_over_reports(name: str) -> None:
    mechanism = SMALL[name]
    codes = mechanism.output_space.encode(mechanism.privatize(FIVE.labels[[0, 1, 4, 4, 2]], rng=2))
    counts, scores = np.array([3.0, 1.0, 2.0, 5.0, 1.0]), bucket_scores(mechanism, REFERENCE, None)
    assert scores is not None
    tally, each = scores.tally(codes, counts), scores.of(codes)
    assert scores.total(tally, 12.0) == pytest.approx(each @ counts)
    away = each - (scores.information @ OTHER)[:, None]
    scatter = scores.scatter(tally, 12.0, OTHER)
    assert scatter == pytest.approx((away * counts) @ away.T)
    spare = scores.scatter(tally, 12.0, OTHER, spare=2.0) - scatter
    assert np.linalg.eigvalsh(spare).min() > -1e-9
    assert scores.of(codes[:0]).shape == (5, 0)


def drawn(mechanism: hb.Mechanism, users: int, seed: object) -> hb.Reports:
    rng = np.random.default_rng(seed)  # type: ignore[arg-type]
    values = mechanism.domain.labels[rng.choice(SHARES.size, users, p=SHARES)]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


@pytest.mark.parametrize("name", LARGE)
def test_errors_are_as_large_as_their_deviations(name: str) -> None:
    errors = []
    for run in range(RUNS):
        shares = set_shares(drawn(LARGE[name], 2_000, [run, 9]), np.full(12, 1.0 / 12))
        assert isinstance(shares, SetShares)
        assert shares.centre.sum() == pytest.approx(1.0)
        errors.append((shares.centre - SHARES) / shares.deviations)
    assert 0.9 < np.std(errors) < 1.1
    assert np.abs(np.mean(errors, axis=0)).max() < 3.5 / np.sqrt(RUNS)


def test_several_reports_of_a_user_count_together() -> None:
    mechanism = hb.CountMeanSketch(hb.Integers(0, 11), 3.0)
    rng = np.random.default_rng(5)
    values = mechanism.domain.labels[rng.choice(12, 1_000, p=SHARES)]
    twice = [[(mechanism, mechanism.privatize([value], rng=rng)[0]) for _ in range(2)] for value in values]
    shares = set_shares(hb.Reports.from_users(twice), np.full(12, 1.0 / 12))
    once = set_shares(drawn(mechanism, 1_000, 5), np.full(12, 1.0 / 12))
    assert isinstance(shares, SetShares)
    assert isinstance(once, SetShares)
    assert (shares.deviations < once.deviations).all()
    assert (np.abs(shares.centre - SHARES) < 4.5 * shares.deviations).all()


def test_what_would_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = drawn(LARGE["bits of sketches"], 100, 1)
    monkeypatch.setattr("hubbub.intervals.set_intervals.MAX_JOINT_WORK", 100.0)
    refused = set_shares(reports, np.full(12, 1.0 / 12))
    assert isinstance(refused, NoSetShares)
    assert refused.reason == "100 different reports over 12 values are too many"
    monkeypatch.undo()
    monkeypatch.setattr("hubbub.intervals.bucket_scores.MAX_HASHED_PAIRS", 100.0)
    assert isinstance(set_shares(reports, np.full(12, 1.0 / 12)), NoSetShares)
