"""One attribute, chosen at random, is reported among fake values of the others (RS+FD, RS+RFD)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from hubbub.channels import Channel
from hubbub.channels.kronecker import MISSING, KroneckerChannel
from hubbub.channels.mixture import MixtureChannel
from hubbub.core.arrays import Codes, Floats, Positions, as_real
from hubbub.core.errors import MechanismError, shorten
from hubbub.core.serialization import ReadOnly
from hubbub.core.text import listed
from hubbub.domains import Product
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.fake_value_odds import FakeValueOdds, fake_value_odds
from hubbub.mechanisms.one_at_random import OneAtRandom
from hubbub.mechanisms.parameters import Probability
from hubbub.mechanisms.several_attributes import Builder, plain_epsilon
from hubbub.mechanisms.true_or_fake import TrueOrFake
from hubbub.sampling import RandomSource
from hubbub.sampling.weight_tables import TableLaw, table_of_floats

ROUNDING = 1e-14  # relative: more than the sums of an epsilon lose


@dataclass(frozen=True, repr=False)
class SampleOneWithFakes(OneAtRandom):
    """One attribute, chosen at random, is reported truthfully, with noise; for the others, a fake value is (RS+FD).

    Which one is true is not told. A fake value is drawn from a distribution that everybody knows, uniform or one's own
    (RS+RFD), and passed through the attribute's mechanism like a true one::

        P(z | x) = sum over a of  p_a  P_a(z_a | x_a)  product over b other than a of  Q_b(z_b)

    where Q_b is the distribution of outputs for fakes.

    Guarantee: `epsilon`, exactly, for any two combinations of values, those included that the domain calls impossible:
    between possible ones it is a bound, and `hubbub.audit` tells the exact number. The literature states the smaller
    log(1 + (e^epsilon - 1) / d): that holds where combinations differ in one of d attributes, all with randomized
    response and equally many values; `epsilon_of_one` is exact there for any attributes.

    Parameters
    ----------
    domain
        As in `Split`.
    probabilities
        How likely each attribute is to be the true one; equally by default.
    fakes
        For some attributes, the distribution of fake values: one probability for each value. Uniform by default.
    **named
        The mechanism of each attribute.

    Raises
    ------
    MechanismError
        If an attribute has no mechanism, or one over another domain; if probabilities do not add up to 1.

    Examples
    --------
    >>> import hubbub as hb
    >>> sex, town = hb.Categories(["f", "m"]), hb.Categories(["a", "b", "c"])
    >>> parts = {"sex": hb.RandomizedResponse(sex, epsilon=1.0), "town": hb.RandomizedResponse(town, epsilon=1.0)}
    >>> one = hb.SampleOneWithFakes(parts)
    >>> round(one.epsilon, 3), round(one.epsilon_of_one, 3)
    (1.0, 0.658)
    """

    domain: Product
    parts_: tuple[tuple[str, Mechanism], ...]
    probabilities_: tuple[Fraction, ...]
    fakes_: tuple[tuple[float, ...] | None, ...]  # None stands for equally many of each value
    sent = "all"

    def __init__(
        self,
        domain: Product | Mapping[str, Mechanism] | None = None,
        /,
        *,
        probabilities: Mapping[str, Probability] | None = None,
        fakes: Mapping[str, Sequence[float]] | None = None,
        **named: Mechanism,
    ) -> None:
        self._set(domain, named)
        self._set_probabilities(probabilities)
        self._set_fakes(fakes)

    def _set_fakes(self, fakes: object) -> None:
        where = f"{type(self).__name__}(fakes=)"
        given = {} if fakes is None else fakes
        if not isinstance(given, Mapping) or not set(given) <= set(self.domain.attributes):
            raise MechanismError(
                "the fakes do not name the attributes",
                where=where,
                got=shorten(fakes),
                expected=f"distributions for some of {listed(list(self.domain.attributes))}",
                remedy="leave it out for uniform fakes",
            )
        kept: list[tuple[float, ...] | None] = []
        for name, domain in self.domain.attributes.items():
            if name not in given:
                kept.append(None)
                continue
            entries = given[name]
            prior = np.array([as_real(share) for share in entries] if isinstance(entries, Iterable) else [])
            if prior.size != len(domain) or not (prior >= 0).all() or not abs(math.fsum(prior) - 1.0) <= 1e-9:
                counted = f"{prior.size} numbers with a sum of {prior.sum():.6g}"
                raise MechanismError(
                    "the distribution of fake values does not fit",
                    where=f"{where}, {name}",
                    got=counted if np.isfinite(prior).all() and prior.size else shorten(entries),
                    expected=f"{len(domain)} probabilities that add up to 1",
                    remedy="give one probability for each value, in the domain's order",
                )
            kept.append(tuple(prior.tolist()) if np.ptp(prior) > 0.0 else None)
        object.__setattr__(self, "fakes_", tuple(kept))

    def about(self, domain: Product) -> SampleOneWithFakes:
        """Return the same with the probabilities as they are: all are fake where another attribute is the true one."""
        places = {name: place for place, (name, _) in enumerate(self.parts_)}
        kept = [places[name] for name in domain.attributes]
        named: dict[str, Any] = {name: self.parts[name] for name in domain.attributes}
        smaller = SampleOneWithFakes(domain, **named)
        object.__setattr__(smaller, "probabilities_", tuple(self.probabilities_[place] for place in kept))
        object.__setattr__(smaller, "fakes_", tuple(self.fakes_[place] for place in kept))
        return smaller

    def about_one(self, name: str) -> TrueOrFake:
        """Return the mechanism of an attribute, which gets a fake value where another attribute is the true one."""
        place = [own for own, _ in self.parts_].index(name)
        return TrueOrFake(self.parts[name], self.probabilities_[place], tuple(self.fakes[name].tolist()))

    @property
    def all_fake(self) -> float:
        """How likely none of the attributes is the true one: 0, unless others were left out."""
        return float(1 - sum(self.probabilities_, Fraction(0)))

    @cached_property
    def fakes(self) -> Mapping[str, Floats]:
        """The distribution of fake values of each attribute."""
        priors = {}
        for (name, part), own in zip(self.parts_, self.fakes_, strict=True):
            count = len(part.domain)
            priors[name] = np.full(count, 1.0 / count) if own is None else np.array(own)
        return ReadOnly(priors)

    def fields(self) -> dict[str, Any]:
        """Return the probabilities, and the distributions of fake values that are not uniform."""
        named = {name: list(own) for (name, _), own in zip(self.parts_, self.fakes_, strict=True) if own is not None}
        return super().fields() | {"fakes": named or None}

    @classmethod
    def with_budget(
        cls,
        domain: Product,
        epsilon: float,
        mechanisms: Builder | Mapping[str, Builder],
        *,
        probabilities: Mapping[str, Probability] | None = None,
        fakes: Mapping[str, Sequence[float]] | None = None,
    ) -> Self:
        """Give every attribute the whole budget: only one of them is reported truthfully.

        Parameters
        ----------
        domain
            The attributes.
        epsilon
            The plain epsilon for any two combinations. It is not the smaller one of the literature, which holds where
            combinations differ in one attribute: `epsilon_of_one`.
        mechanisms
            As in `Split.with_budget`.
        probabilities
            How likely each attribute is to be the true one; equally by default.
        fakes
            The distribution of fake values of some attributes; uniform by default.

        Returns
        -------
        SampleOneWithFakes
            Whose epsilon is at most the budget.

        Raises
        ------
        MechanismError
            If the budget is no epsilon, names are not those of the attributes, or probabilities do not add up to 1.

        Examples
        --------
        >>> import hubbub as hb
        >>> people = hb.Product(age=hb.Integers(18, 99), sex=hb.Categories(["f", "m"]))
        >>> one = hb.SampleOneWithFakes.with_budget(people, 2.0, hb.RandomizedResponse)
        >>> round(one.epsilon, 3), round(one.epsilon_of_one, 3)
        (2.0, 1.805)
        """
        product, total = cls._check_budget(domain, epsilon)
        parts = cls._built(product, dict.fromkeys(product.attributes, total), mechanisms)
        return cls(product, probabilities=probabilities, fakes=fakes, **parts)

    def _box_channel(self, codes: Codes) -> Channel:
        factors, picks = self._factors(codes)
        faked = []  # log Q_b of each row, -inf for outputs that no fake value gives
        for factor, own, prior in zip(factors, picks.T, self.fakes.values(), strict=True):
            with np.errstate(divide="ignore"):
                faked.append((np.log(factor.forward(prior)) + factor.log_scale)[own])
        terms = []
        for place, (own, chance) in enumerate(zip(picks.T, self.probabilities_, strict=True)):
            alone = np.full_like(picks, MISSING)
            alone[:, place] = own
            others = np.sum([each for other, each in enumerate(faked) if other != place], axis=0)
            terms.append(KroneckerChannel(factors, alone, others + math.log(chance)))
        if self.all_fake > 0.0:
            nothing = np.full_like(picks, MISSING)
            terms.append(KroneckerChannel(factors, nothing, np.sum(faked, axis=0) + math.log(self.all_fake)))
        return MixtureChannel(terms)

    def joint_probabilities(self, tables: Sequence[Floats | None]) -> Floats:
        """Return the mixture of all attributes that may be the true one."""
        given = [table for table in tables if table is not None]
        faked = [np.tile(prior @ own, (len(own), 1)) for own, prior in zip(given, self.fakes.values(), strict=True)]
        joint = self.all_fake * super().joint_probabilities(faked)
        for place, chance in enumerate(self.probabilities_):
            mixed = [
                own if place == other else fake for other, (own, fake) in enumerate(zip(given, faked, strict=True))
            ]
            joint += float(chance) * super().joint_probabilities(mixed)
        return joint

    @cached_property
    def _odds(self) -> list[FakeValueOdds] | None:
        """For each attribute, how much more likely outputs are for true values; None where one has too many outputs."""
        odds = [fake_value_odds(part, self.fakes[name]) for name, part in self.parts_]
        known = [own for own in odds if own is not None]
        return known if len(known) == len(odds) else None

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the parts
        """The largest log-ratio over all pairs of combinations; where outputs cannot be listed, a bound of it.

        That bound is the largest epsilon of the attributes' mechanisms. Impossible combinations count, too.
        """
        if self._odds is None:
            return max(plain_epsilon(part) for _, part in self.parts_)
        chances = [float(own) for own in self.probabilities_]
        ratio = 1.0
        for _ in range(200):  # Dinkelbach: the best outputs for a ratio give a larger one, until they do not
            best = [int(np.argmax(own.largest - ratio * own.least)) for own in self._odds]
            pairs = list(zip(chances, self._odds, best, strict=True))
            above = math.fsum(chance * own.largest[at] for chance, own, at in pairs) + self.all_fake
            below = math.fsum(chance * own.least[at] for chance, own, at in pairs) + self.all_fake
            if below == 0.0:
                return math.inf
            if above / below <= ratio * (1.0 + 1e-15):
                break
            ratio = above / below
        largest = max(plain_epsilon(part) for _, part in self.parts_)
        found = math.log(max(ratio, *(own.unfaked for own in self._odds)))
        return min(largest, found * (1.0 + ROUNDING))  # a mixture never gives away more than its parts

    @cached_property
    def epsilon_of_one(self) -> float:
        """The largest log-ratio over pairs that differ in one attribute; or a bound, as in `epsilon`."""
        if self._odds is None:
            return max(plain_epsilon(part) for _, part in self.parts_)
        chances = [float(own) for own in self.probabilities_]
        least = [chance * float(own.least.min()) for chance, own in zip(chances, self._odds, strict=True)]
        ratio = 1.0
        for place, (chance, own) in enumerate(zip(chances, self._odds, strict=True)):
            others = math.fsum(each for other, each in enumerate(least) if other != place) + self.all_fake
            with np.errstate(divide="ignore"):
                ratios = (chance * own.largest + others) / (chance * own.least + others)
            ratio = max(ratio, own.unfaked, float(ratios.max()))
        return math.log(ratio)

    def draw_rows(self, places: Sequence[Positions], source: RandomSource) -> Codes:
        """Draw fake values for all attributes but the one that is chosen, then the output of each."""
        which = self._choice.draw(places[0].size, source)
        drawn = []
        for place, ((_, part), own, law) in enumerate(zip(self.parts_, places, self._fake_laws, strict=True)):
            values = own.copy()
            fake = which != place
            count = int(fake.sum())
            values[fake] = (
                source.integers(len(part.domain), count)
                if law is None
                else law.draw(np.zeros(count, dtype=np.int64), source)
            )
            drawn.append(part.report(values, source))
        return self.output_space.joined(drawn, np.ones((places[0].size, len(places)), dtype=bool))

    @cached_property
    def fake_weights(self) -> list[Sequence[int]]:
        """Whole numbers that the exact probabilities of the fake values of each attribute are proportional to."""
        pairs = zip(self._fake_laws, self.domain.sides, strict=True)
        return [[1] * side if law is None else law.row(0) for law, side in pairs]

    @cached_property
    def _fake_laws(self) -> list[TableLaw | None]:
        """The exact law of the fake values of each attribute: that of the floats, None where it is uniform."""
        return [None if prior is None else table_of_floats(np.array([prior])) for prior in self.fakes_]
