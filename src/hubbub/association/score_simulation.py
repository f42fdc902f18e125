"""Scores of reports at a distribution with independent attributes: those observed, and those of simulated reports.

The score at theta is the sum over users of g_xi / f_i - 1, divided by the root of their number; J is the information
per user. Reports are drawn output by output where all outputs can be listed. Elsewhere scores are drawn from their
normal limit, and so are those of users with survey weights, with the covariance of the sample. If users come from
another distribution, scores lie about sqrt(n) J (other - theta).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.intervals.deviance_cutoff import information_per_user, score_covariance
from hubbub.likelihood import Point
from hubbub.outputs.sent_outputs import enumerate_sent
from hubbub.reports import Reports, Singles

MAX_DRAWN_COUNTS = 20_000_000  # draws x outputs: with more, the normal limit is drawn


class OutputTable(NamedTuple):
    """What some users can send: the probabilities of all outputs (values by outputs), and how many users they are."""

    probabilities: Floats
    users: int


class ScoreSimulation:
    """Scores at one distribution, as chance makes them."""

    def __init__(self, point: Point, reports: Reports, draws: int, rng: np.random.Generator) -> None:
        self.point, self._rng = point, rng
        self.users = point.likelihood.total
        tables = None if reports.survey is not None else output_tables(reports)
        self._ratios: list[tuple[OutputTable, Floats]] = []
        if tables is None:
            self.information = information_per_user(point, rng)
        else:
            self._ratios = [(table, _relative(table.probabilities, point.theta)) for table in tables]
            informations = [table.users * (ratio @ table.probabilities.T) for table, ratio in self._ratios]
            self.information = np.sum(informations, axis=0) / self.users
        outputs = sum(table.probabilities.shape[1] for table, _ in self._ratios)
        self.is_exact = tables is not None and outputs * draws <= MAX_DRAWN_COUNTS
        self.what = "simulated studies" if self.is_exact else "simulated scores, in the limit of many users"
        if reports.survey is not None:
            self.what = "draws of the score as the sample scatters, by its weights, strata and clusters"

    @property
    def observed(self) -> Floats:
        """The score of the reports."""
        return math.sqrt(self.users) * (self.point.gradient - 1.0)

    def scores(self, theta: Floats, draws: int) -> Floats:
        """Return the scores of simulated studies whose users come from a distribution: draws by values."""
        root = math.sqrt(self.users)
        if not self.is_exact:
            middle = root * (self.information @ (theta - self.point.theta))
            normal = self._rng.standard_normal((draws, theta.size))
            return np.asarray(middle + normal @ self._covariance_root.T)
        scores = np.zeros((draws, theta.size))
        for table, ratio in self._ratios:
            fitted = np.maximum(theta @ table.probabilities, 0.0)
            counts = self._rng.multinomial(table.users, fitted / fitted.sum(), size=draws)
            scores += (counts @ ratio.T - table.users) / root
        return scores

    @cached_property
    def _covariance_root(self) -> Floats:
        weighted = self.point.likelihood.survey is not None
        eigenvalues, eigenvectors = np.linalg.eigh(score_covariance(self.point) if weighted else self.information)
        return np.asarray(eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)))


def _relative(probabilities: Floats, theta: Floats) -> Floats:
    """Return g / f; 0 for outputs that the distribution cannot give."""
    fitted = theta @ probabilities
    return np.divide(probabilities, fitted, out=np.zeros_like(probabilities), where=fitted > 0.0)


def output_tables(reports: Reports) -> list[OutputTable] | None:
    """Return what users can send, those of each mechanism and with each set of attributes apart; None if too much."""
    tables = []
    for block in reports.blocks:
        sent = (
            enumerate_sent(block.mechanism, block.codes, block.users, reports.domain.among)
            if isinstance(block, Singles)
            else None
        )
        if sent is None:
            return None
        tables += [OutputTable(own.outputs.probabilities, int(block.weights[own.rows].sum())) for own in sent]
    return tables
