"""Families of candidates for several attributes: models with fewer parameters than there are combinations.

A table of a thousand combinations has a thousand shares, and reports with noise on every attribute say little about
each. They say much more about single attributes, and something about pairs. So there are candidates in which attributes
are independent, in which only pairs of them interact, and in which people belong to a few groups; and candidates that
are drawn to independence, but go as far towards the joint shares as held-out reports warrant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.text import listed, plural
from hubbub.domains.product_shape import ProductShape
from hubbub.estimators.auto.candidate_fits import (
    AutoCandidate,
    CandidateFamily,
    PenalisedFamily,
    StoppedEM,
    UniformFamily,
    WeightedPatterns,
)
from hubbub.likelihood import Likelihood
from hubbub.solvers import likeliest_point
from hubbub.solvers.em_batch import em_batch
from hubbub.solvers.em_path import em_path, spaced_stops
from hubbub.solvers.latent_classes import LatentClasses
from hubbub.solvers.log_linear_model import LogLinearModel
from hubbub.solvers.penalties import DeviationsFromTrend, Penalty, Quadratic

STOPPING_DELTA, MAX_STOPPED_UPDATES = 0.1, 3_000  # nats, as in `ibu`
MAXIMUM_TOL = 1e-6  # nats for each user
MAX_VALUES_OF_MAXIMA = MAX_VALUES_OF_ALL_LENGTHS = 400  # with more, where each takes long, EM alone, and one length
MODEL_UPDATES, PRIOR_UPDATES = 1_000, 300  # of EM, to where a model fits best, and with a prior around it
PRIOR_USERS = (64.0, 16.0, 4.0, 1.0, 0.25)  # of a prior around a model, for each combination
WIDTHS = (1.0, 2.0, 4.0)  # of smoothing along attributes, in spacings...
MIN_SIDE_PER_WIDTH = 6.0  # ...where the longest attribute has so many values for each spacing
CLASSES = (2, 3, 4)
CLASS_STARTS, CLASS_STOPS = 4, (10, 30, 100, 300, 1_000)
MAX_CLASS_ENTRIES = 4_000_000  # weightings by starts by classes by combinations
LOG_DEVIATIONS = (0.1, 0.3, 1.0)  # of log theta from a model
SMOOTH_DEVIATIONS = (0.3, 1.0, 3.0)
LENGTHS = (0.5, 0.2)  # of smooth curves along an attribute, relative to its extent
LIKENESS = 0.5  # correlation of the curves of different categories
MAX_FREE_DIRECTIONS = 0.8  # of all, for a model to have fewer parameters worth speaking of
RELATIVE_JITTER = 1e-6  # independent variance of each value, relative to the variance of a Gaussian field
INDEPENDENT = "the attributes as independent"
PAIRWISE = "pairs of attributes, no three-way interaction"
DELTA_RULE = AutoCandidate(
    "EM stopped by the delta rule", "EM stopped when the log-likelihood rose by less than 0.1", "more updates"
)


@dataclass(frozen=True, eq=False)
class LogLinearEM(CandidateFamily):
    """EM within a log-linear model, perhaps on a smoothed domain, stopped early or late."""

    title: str
    model: LogLinearModel
    stops: tuple[int, ...]
    width: float = 0.0

    @property
    def name(self) -> str:
        """The model, smoothed or not."""
        return f"{self.title}, smoothed over {_width_text(self.model.shape, self.width)}" if self.width else self.title

    @property
    def count(self) -> int:
        """One for each stop."""
        return len(self.stops)

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield the iterates at the stops."""
        channel, _ = patterns.smoothed_channel(self.width)
        path = em_path(channel, patterns.weightings, self.stops, m_step=self.model.m_step)
        for updates, phi in path:
            theta = patterns.shape.smoothed(phi, self.width) if self.width else phi.copy()
            description = f"{self.name} ({plural(updates, 'update')} of EM)"
            yield AutoCandidate(self.name, description, "more updates", updates), theta


@dataclass(frozen=True, eq=False)
class DirichletAroundModel(CandidateFamily):
    """The likeliest shares where as many more users as `users` for each combination are spread as in a fitted model."""

    title: str
    model: LogLinearModel
    users: tuple[float, ...] = PRIOR_USERS

    @property
    def name(self) -> str:
        """What the shares are drawn to."""
        return f"joint shares drawn to {self.title}"

    @property
    def count(self) -> int:
        """One for each number of users."""
        return len(self.users)

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield the modes, each from the one before."""
        theta = centre = fitted_model(self.model, patterns)
        totals, stops = patterns.weightings.sum(axis=1, keepdims=True), spaced_stops(PRIOR_UPDATES)
        for users in self.users:
            prior = users * self.model.shape.values / (totals + users * self.model.shape.values)

            def m_step(_: Floats, shares: Floats, prior: Floats = prior) -> Floats:
                return np.asarray(prior * centre + (1.0 - prior) * shares)

            for _, moved in em_path(patterns.channel, patterns.weightings, stops, start=theta, m_step=m_step):
                theta = moved
            description = f"{self.name} (as if by {users:g} more users for each combination)"
            yield AutoCandidate(self.name, description, "fewer such users"), theta.copy()


@dataclass(frozen=True, eq=False)
class LatentClassFamily(CandidateFamily):
    """A few groups, within which attributes are independent."""

    model: LatentClasses
    stops: tuple[int, ...] = CLASS_STOPS

    @property
    def name(self) -> str:
        """How many groups."""
        return f"{self.model.classes} groups of people, in each of which the attributes are independent"

    @property
    def count(self) -> int:
        """One for each stop."""
        return len(self.stops)

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield the iterates at the stops, of the best start."""
        # The same starts for all reports: nothing that is held out can have led there.
        starts = self.model.starts(CLASS_STARTS, np.random.default_rng(self.model.classes))
        for updates, theta in self.model.path(patterns.channel, patterns.weightings, starts, self.stops):
            description = f"{self.name} ({plural(updates, 'update')} of EM)"
            yield AutoCandidate(self.name, description, "more updates", updates), theta.copy()


class DeltaRuleFamily(CandidateFamily):
    """EM stopped by the paper's rule: the answer that needs no held-out reports, for where these tell little."""

    name, count = DELTA_RULE.family, 1

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield it."""
        uniform = np.full(patterns.channel.values, 1.0 / patterns.channel.values)
        yield (
            DELTA_RULE,
            em_batch(
                patterns.channel, patterns.weightings, uniform, delta=STOPPING_DELTA, max_iter=MAX_STOPPED_UPDATES
            ).thetas,
        )


class LikelihoodMaximum(CandidateFamily):
    """The joint shares of the largest likelihood, without any model."""

    name, count = "maximum likelihood", 1

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield it."""
        likelihoods = [Likelihood(patterns.channel, weights, int(weights.sum())) for weights in patterns.weightings]
        thetas = np.stack([likeliest_point(likelihood, MAXIMUM_TOL).theta for likelihood in likelihoods])
        yield AutoCandidate(self.name, self.name, "nothing"), thetas


def fitted_model(model: LogLinearModel, patterns: WeightedPatterns) -> Floats:
    """Return where the likelihood of each weighting is largest within a model."""
    known, stops = patterns.models, spaced_stops(MODEL_UPDATES)
    if model.margins not in known:
        for _, theta in em_path(patterns.channel, patterns.weightings, stops, m_step=model.m_step):
            known[model.margins] = theta
    return known[model.margins]


def attribute_families(
    shape: ProductShape, *, uses_newton: bool, max_updates: int, told: LogLinearModel | None
) -> list[CandidateFamily]:
    """Return all families; `told` is the model of what the reports tell, where that is not everything."""
    stops = spaced_stops(max_updates)
    places = range(len(shape.sides))
    independent = LogLinearModel(shape, tuple((place,) for place in places))
    models = {INDEPENDENT: independent}
    if told is not None and told.margins != independent.margins:
        models["the pairs of attributes that the reports tell"] = told
    elif told is None and len(shape.sides) > 2:
        models[PAIRWISE] = LogLinearModel(shape, tuple(combinations(places, 2)))
    widths = _widths(shape)
    families: list[CandidateFamily] = [UniformFamily(), DeltaRuleFamily()]
    for title, model in models.items():
        families += [LogLinearEM(title, model, stops, width) for width in (0.0, *widths)]
    if told is not None:
        return families
    families.append(StoppedEM(0.0, stops))
    families += [StoppedEM(width, stops, _width_text(shape, width)) for width in widths]
    families += [DirichletAroundModel(INDEPENDENT, independent), *_latent_classes(shape)]
    if not uses_newton:
        return families
    if shape.values <= MAX_VALUES_OF_MAXIMA:
        families.append(LikelihoodMaximum())
    return [*families, *_penalised(shape, independent)]


def _latent_classes(shape: ProductShape) -> list[CandidateFamily]:
    models = [LatentClasses(shape, classes) for classes in CLASSES]
    most = MAX_FREE_DIRECTIONS * (shape.values - 1)
    return [
        LatentClassFamily(model)
        for model in models
        if model.parameters < most and 6 * CLASS_STARTS * model.classes * shape.values <= MAX_CLASS_ENTRIES
    ]


def _penalised(shape: ProductShape, independent: LogLinearModel) -> list[CandidateFamily]:
    """Return Gaussian deviations of log theta: of each combination around independence, and smooth ones."""
    families: list[CandidateFamily] = []
    free = _terms(shape, independent.margins)
    if free.shape[1] <= MAX_FREE_DIRECTIONS * shape.values:
        around: list[tuple[str, Penalty]] = [
            (f"deviation {deviation:g}", DeviationsFromTrend(free, deviation)) for deviation in LOG_DEVIATIONS
        ]
        families.append(PenalisedFamily(f"{INDEPENDENT} but for deviations", "larger deviations", around))
    if shape.lines:
        name = f"smooth along {listed([shape.names[place] for place in shape.lines])}"
        trends = _trends(shape)
        for relative in LENGTHS if shape.values <= MAX_VALUES_OF_ALL_LENGTHS else LENGTHS[:1]:
            fields = Quadratic.field(_covariance(shape, relative), trends, SMOOTH_DEVIATIONS)
            smooth: list[tuple[str, Penalty]] = [
                (f"length {relative:.0%}, deviation {deviation:g}", field)
                for deviation, field in zip(SMOOTH_DEVIATIONS, fields, strict=True)
            ]
            families.append(PenalisedFamily(name, "larger deviations", smooth, starts_smooth=True))
    return families


def _widths(shape: ProductShape) -> tuple[float, ...]:
    longest = max((shape.axes[place].extent for place in shape.lines), default=0.0)
    return tuple(width for width in WIDTHS if longest >= MIN_SIDE_PER_WIDTH * width)


def _width_text(shape: ProductShape, width: float) -> str:
    return f"{plural(int(width), 'value')} of {listed([shape.names[place] for place in shape.lines])}"


def _terms(shape: ProductShape, margins: Sequence[Sequence[int]]) -> Floats:
    """Return an orthonormal basis of the logarithms of a log-linear model (values by parameters)."""
    columns = []
    for margin in margins:
        sides = [shape.sides[place] for place in margin]
        cells = np.ravel_multi_index([shape.coordinates[place] for place in margin], sides)
        columns.append(np.eye(int(np.prod(sides)))[cells])
    return _orthonormal(np.concatenate(columns, axis=1))


def _trends(shape: ProductShape) -> Floats:
    """Return an orthonormal basis of what smooth curves may do freely.

    Parabolas along attributes with neighbours, products of their slopes, and any shares of other attributes.
    """
    columns, slopes = [np.ones((shape.values, 1))], []
    for place, axis in enumerate(shape.axes):
        own = shape.coordinates[place]
        if place not in shape.lines:
            columns.append(np.eye(axis.values)[own])
            continue
        columns.append(axis.trends(2)[own])
        slopes.append(axis.trends(1)[own])
    for first, second in combinations(slopes, 2):
        columns.append(np.einsum("xi,xj->xij", first, second).reshape(shape.values, -1))
    return _orthonormal(np.concatenate(columns, axis=1))


def _orthonormal(columns: Floats) -> Floats:
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(basis[:, sizes > 1e-9 * sizes[0]])


def _covariance(shape: ProductShape, relative: float) -> Floats:
    """Return the product of the attributes' covariances: Matern 3/2 along lines and maps, half alike otherwise."""
    covariance = np.ones((shape.values, shape.values))
    for place, axis in enumerate(shape.axes):
        if place in shape.lines:
            scaled = np.sqrt(3.0) * axis.distances / (relative * max(axis.extent, 1.0))
            own = (1.0 + scaled) * np.exp(-scaled)
        else:
            own = LIKENESS + (1.0 - LIKENESS) * np.eye(axis.values)
        covariance *= own[np.ix_(shape.coordinates[place], shape.coordinates[place])]
    return covariance + RELATIVE_JITTER * np.eye(shape.values)
