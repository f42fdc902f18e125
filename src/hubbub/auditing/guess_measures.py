r"""How well an attacker guesses one person's value from the person's reports, for an attacker who knows a prior.

With prior pi and outputs z of a person with value x, the attacker guesses best what is likeliest, or what is nearest on
average (Smith 2009; Shokri and others 2011)::

    prior vulnerability     max_x pi_x               prior distance     min_g sum_x pi_x d(x, g)
    posterior vulnerability sum_z max_x pi_x P(z|x)  posterior distance sum_z min_g sum_x pi_x P(z|x) d(x, g)

Several reports are one output: the list of all of them, in any order. Where outputs stand for sets of values, P(z|x) is
L_z e^epsilon for the values of the set and L_z for all others, and the likeliest value is the first one of the set in
the order of the prior, or the first of all. Which one is the set's first follows from a formula.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from hubbub.core.arrays import Codes, Floats
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress
from hubbub.core.threads import threads_for
from hubbub.domains import Domain
from hubbub.mechanisms import (
    Geometric,
    LocalHashing,
    LongitudinalHashing,
    LongitudinalResponse,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    TruncatedGeometric,
)
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.mechanisms.longitudinal_unary import LongitudinalBits
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.sampling import source_of

FORMULA, ENUMERATED, SIMULATED = "formula", "enumerated", "simulated"
MAX_LISTED_ENTRIES = 20_000_000  # values times lists of outputs
MAX_LISTS = 200_000
MAX_UNLISTED = 1e-9  # probability of outputs that are not listed
MAX_DISTANCE_PRODUCTS = 40_000_000_000  # values times values times lists or draws: some seconds
MAX_DISTANCE_VALUES = 5_000  # whose distances are all kept
MAX_DRAWS, MIN_DRAWS = 50_000, 2_000
MAX_SIMULATED_ENTRIES = 100_000_000  # values times draws times reports
CHUNK_ENTRIES = 2_000_000


@dataclass(frozen=True)
class GuessMeasures:
    """How well a guess does on average: a number and its interval for each measure, and how they were found."""

    vulnerability: tuple[float, float, float]  # and its interval: the same number three times where it is exact
    distance: tuple[float, float, float] | None  # None: not computed
    method: str
    draws: int | None = None


def prior_distance(domain: Domain, prior: Floats) -> float | None:
    """Return the expected distance of the best guess without any report; None if there are too many values."""
    if domain.is_equidistant:
        return domain.diameter * (1.0 - float(prior.max()))
    return None if len(domain) > MAX_DISTANCE_VALUES else float((_distances(domain) @ prior).min())


def measure_guesses(
    mechanism: Mechanism, prior: Floats, reports: int, level: float, rng: np.random.Generator
) -> Generator[Progress, None, GuessMeasures]:
    """Return how well the best guess does after some reports: by a formula, by all outputs, or by draws."""
    if isinstance(mechanism, Geometric):  # outputs from an end on say the same about all values
        mechanism = TruncatedGeometric(mechanism.domain, mechanism.epsilon)
    domain = mechanism.domain
    closed = None if reports > 1 else _of_sets(mechanism, prior)
    if closed is not None and domain.is_equidistant:
        return GuessMeasures((closed,) * 3, (domain.diameter * (1.0 - closed),) * 3, FORMULA)
    yield Progress(0, 0, "guessing from every output")
    columns = _listed_columns(mechanism, reports)
    if columns is not None:
        joint = prior[:, None] * columns
        best = min(1.0, float(joint.max(axis=0).sum()))
        return GuessMeasures((best,) * 3, _exact_distance(domain, joint, best), ENUMERATED)
    found = yield from _simulated(mechanism, prior, reports, level, rng)
    if closed is None:
        return found
    return GuessMeasures((closed,) * 3, found.distance, found.method, found.draws)


def _exact_distance(domain: Domain, joint: Floats, best: float) -> tuple[float, float, float] | None:
    if domain.is_equidistant:
        return (domain.diameter * (1.0 - best),) * 3
    values, lists = joint.shape
    if values > MAX_DISTANCE_VALUES or values**2 * lists > MAX_DISTANCE_PRODUCTS:
        return None
    with threads_for(values * lists):
        return (float((_distances(domain) @ joint).min(axis=0).sum()),) * 3


def _distances(domain: Domain) -> Floats:
    places = np.arange(len(domain))
    return domain.distances_between(places, places)


# -- formulas ----------------------------------------------------------------------------------------------


def _of_sets(mechanism: Mechanism, prior: Floats) -> float | None:
    """Return the posterior vulnerability after one report that stands for a set of values; None for other reports."""
    values = len(mechanism.domain)
    if isinstance(mechanism, LocalHashing | LongitudinalHashing):  # the hash is taken to be random
        buckets = int(mechanism.buckets or 2)
        ratio = mechanism.first if isinstance(mechanism, LongitudinalHashing) else mechanism.log_ratio
        return _of_first_members(prior, ratio, _independent(values, 1.0 / buckets), buckets)
    if isinstance(mechanism, RandomizedResponse):
        log_ratio = mechanism.first if isinstance(mechanism, LongitudinalResponse) else mechanism.log_ratio
        return _of_first_members(prior, log_ratio, np.full(values, 1.0 / values), values)
    if isinstance(mechanism, UnaryEncoding | LongitudinalBits):
        bits = mechanism.log_bits
        ratio = bits.own_one - bits.other_one - bits.own_zero + bits.other_zero
        members = _independent(values, math.exp(bits.other_one))
        # L_z sums to the factor of a row without the value's own bit
        return _of_total(prior, ratio, members, math.exp(bits.own_zero - bits.other_zero))
    if isinstance(mechanism, SubsetSelection):
        chosen = int(mechanism.size or 1)
        rest = values - np.arange(values, dtype=np.float64)  # of which the set has its members if none came before
        stays = np.maximum(0.0, 1.0 - chosen / rest)
        members = np.minimum(1.0, chosen / rest) * np.concatenate([[1.0], np.cumprod(stays)[:-1]])
        return _of_first_members(prior, mechanism.epsilon, members, values / chosen)
    return None


def _independent(values: int, chance: float) -> Floats:
    """Return how likely each value is the first of a set that has every value by itself with some chance."""
    return np.asarray(chance * (1.0 - chance) ** np.arange(values, dtype=np.float64), dtype=np.float64)


def _of_first_members(prior: Floats, log_ratio: float, members: Floats, outputs: float) -> float:
    """Return the vulnerability if a set holds any value for one in `outputs` of them."""
    return _of_total(prior, log_ratio, members, outputs / (math.exp(log_ratio) + outputs - 1.0))


def _of_total(prior: Floats, log_ratio: float, members: Floats, total: float) -> float:
    """Return the vulnerability, from how likely each value of the sorted prior is the first of a set."""
    ordered = np.sort(prior)[::-1]
    likeliest = np.maximum(math.exp(log_ratio) * ordered, ordered[0])
    empty = max(0.0, 1.0 - float(members.sum()))
    return min(1.0, total * (float(members @ likeliest) + empty * float(ordered[0])))


# -- all outputs -------------------------------------------------------------------------------------------


def _listed_columns(mechanism: Mechanism, reports: int) -> Floats | None:
    """Return P(list of outputs | value), whatever the order of its outputs; None where lists are too many."""
    outputs = None if isinstance(mechanism, SeveralAttributes) else mechanism.outputs
    if outputs is None or len(outputs) > MAX_LISTS:
        return None
    lists = math.comb(len(outputs) + reports - 1, reports)
    if lists > MAX_LISTS or len(mechanism.domain) * lists > MAX_LISTED_ENTRIES:
        return None
    codes = mechanism.output_space.encode(outputs)
    columns = np.exp(mechanism.log_columns(codes))
    if np.abs(columns.sum(axis=1) - 1.0).max() > MAX_UNLISTED:
        return None
    if reports == 1:
        return columns
    chosen = np.array(list(combinations_with_replacement(range(len(codes)), reports)))
    if isinstance(mechanism, Longitudinal):
        marks = mechanism.device_marks(codes)[chosen]
        chosen = chosen[(marks == marks[:, :1]).all(axis=1)]
    rows = np.repeat(np.arange(len(chosen)), reports)
    counts = sparse.csr_array(
        (np.ones(chosen.size, dtype=np.int64), (rows, chosen.ravel())), shape=(len(chosen), len(codes))
    )
    counts.sum_duplicates()
    repeated = sparse.csr_array((gammaln(counts.data + 1.0), counts.indices, counts.indptr), shape=counts.shape)
    orders = gammaln(reports + 1.0) - np.asarray(repeated.sum(axis=1)).ravel()
    together = np.exp(mechanism.joint_log_columns(codes, counts) + orders)
    return together if np.abs(together.sum(axis=1) - 1.0).max() <= MAX_UNLISTED else None


# -- draws -------------------------------------------------------------------------------------------------


def _simulated(
    mechanism: Mechanism, prior: Floats, reports: int, level: float, rng: np.random.Generator
) -> Generator[Progress, None, GuessMeasures]:
    """Return averages over people who are drawn, with what the attacker knows of each: no guess is drawn."""
    values, domain = len(mechanism.domain), mechanism.domain
    if reports > 1 and mechanism.remembers and not isinstance(mechanism, Longitudinal):
        raise MechanismError(
            "the reports of a user are not independent given the value",
            where="attacker(reports_per_user=)",
            got=type(mechanism).__name__,
            expected="a mechanism without memory, or one of hubbub's own with memory",
            remedy="leave reports_per_user out",
        )
    draws = min(MAX_DRAWS, MAX_SIMULATED_ENTRIES // (values * reports))
    if draws < MIN_DRAWS:
        raise MechanismError(
            "guesses cannot be simulated for so many values and reports",
            where="attacker(mechanism)",
            got=f"{values:,} values, {reports:,} reports",
            expected=f"at most {MAX_SIMULATED_ENTRIES // MIN_DRAWS:,} values times reports",
            remedy="pass fewer reports, or a coarser domain; error_probability bounds how often a guess is wrong",
        )
    of_distance = 0 if domain.is_equidistant or values > MAX_DISTANCE_VALUES else MAX_DISTANCE_PRODUCTS // values**2
    distances = _distances(domain) if of_distance >= MIN_DRAWS or of_distance >= draws else None
    best, missed = [], []
    chunk = max(1, CHUNK_ENTRIES // (values * reports))
    for first in range(0, draws, chunk):
        yield Progress(first, draws, "guessing from draws")
        people = min(chunk, draws - first)
        posterior = _posterior(mechanism, prior, reports, people, rng)
        best.append(posterior.max(axis=0))
        if distances is not None and first < of_distance:
            with threads_for(values * people):
                missed.append((distances @ posterior).min(axis=0))
    each = np.concatenate(best)
    vulnerability = _average(each, 1.0, level, float(prior.max()), 1.0)
    if domain.is_equidistant:
        middle, low, high = (domain.diameter * (1.0 - vulnerability[place]) for place in (0, 2, 1))
        return GuessMeasures(vulnerability, (middle, low, high), SIMULATED, draws)
    limit = prior_distance(domain, prior)
    if not missed or limit is None:
        return GuessMeasures(vulnerability, None, SIMULATED, draws)
    distance = _average(np.concatenate(missed), domain.diameter, level, 0.0, limit)
    return GuessMeasures(vulnerability, distance, SIMULATED, draws)


def _posterior(mechanism: Mechanism, prior: Floats, reports: int, people: int, rng: np.random.Generator) -> Floats:
    """Return what an attacker believes about each of some people, values by people."""
    held, words = rng.choice(prior.size, size=people, p=prior), source_of(rng)
    sent: list[Codes]
    if isinstance(mechanism, Longitudinal) and reports > 1:  # all reports of a person share one memory
        kept = mechanism.draw_permanent(held, words)
        sent = [mechanism.draw_instantaneous(kept, words) for _ in range(reports)]
    else:
        sent = [mechanism.report(held, words) for _ in range(reports)]
    distinct, which = index_codes(np.concatenate(sent))  # equal outputs of a person are one output, twice
    who = np.tile(np.arange(people), reports)
    shape = people, len(distinct)
    counts = sparse.csr_array((np.ones(who.size, dtype=np.int64), (who, which)), shape=shape)
    with np.errstate(divide="ignore"):
        logs = mechanism.joint_log_columns(distinct, counts) + np.log(prior)[:, None]
    shares = np.exp(logs - logs.max(axis=0))
    return np.asarray(shares / shares.sum(axis=0))


def _average(each: Floats, largest: float, level: float, low: float, high: float) -> tuple[float, float, float]:
    """Return the mean and its interval, within known limits.

    By the empirical Bernstein bound (Audibert, Munos, Szepesvári 2009) for numbers from 0 to `largest`::

        |mean - truth| <= sqrt(2 variance log(3 / (1 - level)) / n) + 3 largest log(3 / (1 - level)) / n.
    """
    mean, margin = float(each.mean()), math.log(3.0 / (1.0 - level))
    reach = math.sqrt(2.0 * float(each.var()) * margin / each.size) + 3.0 * largest * margin / each.size
    return min(max(mean, low), high), max(low, mean - reach), min(high, mean + reach)
