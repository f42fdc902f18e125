"""Reports about several attributes: every one of them, one at random, or one at random among fakes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.channels import Channel, DenseChannel, prefers_matrix
from hubbub.channels.kronecker import MISSING, KroneckerChannel
from hubbub.channels.mixture import MixtureChannel
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_real
from hubbub.core.errors import MechanismError, shorten
from hubbub.core.serialization import ReadOnly
from hubbub.core.text import listed
from hubbub.domains import Product
from hubbub.mechanisms.attribute_outputs import AttributeOutputs
from hubbub.mechanisms.base import Mechanism, matrix_too_wide
from hubbub.sampling import Law, RandomSource
from hubbub.sampling.weight_tables import table_of_floats

MAX_LISTED_OUTPUTS = 1_000_000  # combinations of outputs that are written down


class SeveralAttributes(Mechanism):
    """A mechanism over a product, made of one mechanism for each attribute."""

    domain: Product
    parts_: tuple[tuple[str, Mechanism], ...]

    def _set(self, domain: object, named: Mapping[str, Any]) -> None:
        """Check the attributes' mechanisms, and build the product of their domains unless there is one."""
        name = type(self).__name__
        if isinstance(domain, Mapping):
            named, domain = {**domain, **named}, None
        for attribute, part in named.items():
            if not isinstance(part, Mechanism) or isinstance(part, SeveralAttributes) or part.remembers:
                raise MechanismError(
                    f"{attribute} has no mechanism of its own",
                    where=f"{name}({attribute}=)",
                    got=shorten(part),
                    expected="a mechanism over one attribute, whose outputs do not depend on earlier ones",
                    remedy="pass one, such as hubbub.RandomizedResponse(hubbub.Categories(['f', 'm']), epsilon=1.0)",
                )
        product = Product({attribute: part.domain for attribute, part in named.items()}) if domain is None else domain
        if not isinstance(product, Product):
            raise MechanismError(
                "the domain is not a product",
                where=f"{name}(domain)",
                got=shorten(product),
                expected="a Product, or nothing: it follows from the mechanisms of the attributes",
                remedy="leave it out",
            )
        self._check_attributes(product, named, name)
        object.__setattr__(self, "domain", product)
        object.__setattr__(self, "parts_", tuple((attribute, named[attribute]) for attribute in product.attributes))

    @staticmethod
    def _check_attributes(product: Product, named: Mapping[str, Mechanism], name: str) -> None:
        missing = [attribute for attribute in product.attributes if attribute not in named]
        spare = [attribute for attribute in named if attribute not in product.attributes]
        if missing or spare:
            raise MechanismError(
                f"{missing[0]} has no mechanism" if missing else f"{spare[0]} is no attribute of the domain",
                where=f"{name}({missing[0] if missing else spare[0]}=)",
                got=f"mechanisms for {listed(list(named))}",
                expected=f"one for each of {listed(list(product.attributes))}",
                remedy="add one" if missing else "leave it out, or add the attribute to the domain",
            )
        for attribute, part in named.items():
            if part.domain != product.attributes[attribute]:
                raise MechanismError(
                    f"the mechanism of {attribute} is over another domain",
                    where=f"{name}({attribute}=)",
                    got=shorten(part.domain, 100),
                    expected=shorten(product.attributes[attribute], 100),
                    remedy="build it over the attribute's own domain",
                )

    @property
    def parts(self) -> Mapping[str, Mechanism]:
        """The mechanism of each attribute."""
        return ReadOnly(dict(self.parts_))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={part!r}' for name, part in self.parts_)})"

    @property
    def full_support(self) -> bool:  # type: ignore[override]  # as the attributes' mechanisms
        """Whether every value of every attribute can give every output."""
        return all(part.full_support for _, part in self.parts_)

    @property
    def answers_in_domain(self) -> bool:
        """No: outputs may lack attributes."""
        return False

    @cached_property
    def output_space(self) -> AttributeOutputs:
        """One entry for each attribute, or for some of them."""
        return AttributeOutputs(self.domain, self.parts_, type(self).__name__)

    @cached_property
    def _all_codes(self) -> Codes | None:
        """The codes of all outputs, in order; None where they are too many."""
        return None

    @property
    def outputs(self) -> Array | None:
        """All outputs, in the order of `matrix`'s columns; None where they are too many to be listed."""
        return None if self._all_codes is None else self.output_space.decode(self._all_codes)

    def matrix(self) -> Floats:
        """Return P(output | value), values by outputs.

        Returns
        -------
        numpy.ndarray
            A row for each combination, a column for each of `outputs`.

        Raises
        ------
        MechanismError
            If there are too many outputs.
        """
        if self._all_codes is None:
            raise matrix_too_wide(type(self).__name__, f"more than {MAX_LISTED_OUTPUTS:,}")
        return np.exp(self.log_columns(self._all_codes))

    def _sides_listed(self) -> list[int] | None:
        """Return how many outputs each attribute has; None where one has too many to be listed."""
        sizes = [part.output_space.size for _, part in self.parts_]
        known = [size for size in sizes if size is not None]
        return known if len(known) == len(sizes) else None

    # -- likelihoods ---------------------------------------------------------------------------------

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return the likelihood of encoded outputs as an operator, by the axes of the product.

        Parameters
        ----------
        codes
            Encoded outputs.
        among
            The positions of the values to keep; None for all.

        Returns
        -------
        Channel
            P(output | value), values by outputs.
        """
        whole = self._box_channel(codes)
        cells = self.domain.cells
        kept = cells if among is None else (among if cells is None else cells[among])
        if prefers_matrix(whole.values * whole.patterns):
            logs = whole.log_columns
            values = whole.values if kept is None else kept.size
            everything = np.arange(whole.patterns)
            return DenseChannel.from_logs(
                values,
                whole.patterns,
                lambda part: logs(everything[part]) if kept is None else logs(everything[part])[kept],
                terms=len(self.parts_),
            )
        return whole if kept is None else whole.part(kept)

    @abstractmethod
    def _box_channel(self, codes: Codes) -> Channel:
        """Return the likelihood over all combinations, the impossible ones included."""

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return log P(output | value) for encoded outputs.

        Parameters
        ----------
        codes
            Encoded outputs.
        among
            The positions of the values to keep; None for all.

        Returns
        -------
        numpy.ndarray
            Values by outputs.
        """
        return self.encoded_channel(codes, among).log_dense()

    def _factors(self, codes: Codes) -> tuple[list[Channel], Positions]:
        """Return the likelihoods of each attribute's distinct outputs, and the place of each row's among them."""
        factors, picks = [], []
        for place, (_, part) in enumerate(self.parts_):
            distinct, own = self.output_space.distinct(codes, place)
            factors.append(part.encoded_channel(distinct))
            picks.append(own)
        return factors, np.stack(picks, axis=1)

    # -- draws ---------------------------------------------------------------------------------------

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Return one encoded output for each value, drawn by floats: for simulations.

        Parameters
        ----------
        positions
            The positions of the values, one for each user.
        source
            Where randomness comes from.

        Returns
        -------
        numpy.ndarray
            Encoded outputs.
        """
        return self.law.draw(positions, source)

    @cached_property
    def law(self) -> Law:
        """Every attribute by its own law; by floats where the source is not secure."""
        return AttributesLaw(self)

    @abstractmethod
    def draw_rows(self, places: Sequence[Positions], source: RandomSource) -> Codes:
        """Return encoded outputs, given the positions of each user's values on each attribute."""


@dataclass(frozen=True)
class AttributesLaw(Law):
    """The law of a mechanism over several attributes, made of theirs."""

    mechanism: SeveralAttributes

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Draw for each attribute."""
        return self.mechanism.draw_rows(self.mechanism.domain.coordinates_of(positions), source)


@dataclass(frozen=True, repr=False)
class Split(SeveralAttributes):
    """Every attribute is reported, each by a mechanism of its own: the epsilons add up.

    Outputs are independent given the value, and an attribute may be missing from a report: then the others count.

    Guarantee: the sum of the attributes' epsilons, plain. A mechanism whose epsilon is per unit of distance counts
    with its epsilon times the diameter of its domain.

    Parameters
    ----------
    domain
        The product, where some combinations are impossible or names are no Python identifiers (then a dictionary of
        mechanisms will do); otherwise it follows from the mechanisms.
    **named
        The mechanism of each attribute.

    Raises
    ------
    MechanismError
        If an attribute has no mechanism, or one over another domain.

    Examples
    --------
    >>> import hubbub as hb
    >>> age = hb.TruncatedGeometric(hb.Integers(18, 99), epsilon=0.5)
    >>> sex = hb.RandomizedResponse(hb.Categories(["f", "m"]), epsilon=1.0)
    >>> both = hb.Split(age=age, sex=sex)
    >>> both.privatize([(34, "f"), (51, "m")], rng=1)["sex"]
    array(['f', 'm'], dtype=object)
    """

    domain: Product
    parts_: tuple[tuple[str, Mechanism], ...]

    def __init__(self, domain: Product | Mapping[str, Mechanism] | None = None, /, **named: Mechanism) -> None:
        self._set(domain, named)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the parts
        """The sum over the attributes."""
        return math.fsum(plain_epsilon(part) for _, part in self.parts_)

    @cached_property
    def _all_codes(self) -> Codes | None:
        sizes = self._sides_listed()
        if sizes is None or math.prod(sizes) > MAX_LISTED_OUTPUTS:
            return None
        return np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1)

    def _box_channel(self, codes: Codes) -> Channel:
        return KroneckerChannel(*self._factors(codes))

    def draw_rows(self, places: Sequence[Positions], source: RandomSource) -> Codes:
        """Draw every attribute."""
        drawn = [part.report(own, source) for (_, part), own in zip(self.parts_, places, strict=True)]
        return self.output_space.joined(drawn, np.ones((places[0].size, len(places)), dtype=bool))


class OneAtRandom(SeveralAttributes):
    """One attribute is chosen at random, without looking at the values."""

    probabilities_: tuple[Fraction, ...]

    def _set_probabilities(self, probabilities: object) -> None:
        names, where = list(self.domain.attributes), f"{type(self).__name__}(probabilities=)"
        if probabilities is None:
            chosen = [Fraction(1, len(names))] * len(names)
        else:
            if not isinstance(probabilities, Mapping) or set(probabilities) != set(names):
                raise MechanismError(
                    "the probabilities do not name the attributes",
                    where=where,
                    got=shorten(probabilities),
                    expected=f"a probability for each of {listed(names)}",
                    remedy="leave it out to choose every attribute equally often",
                )
            given = [probabilities[name] for name in names]
            if not all(0.0 < float(as_real(each)) < 1.0 for each in given):
                raise MechanismError(
                    "a probability is not between 0 and 1",
                    where=where,
                    got=shorten(dict(probabilities)),
                    expected="numbers between 0 and 1 that add up to 1",
                    remedy="leave an attribute that is never reported out of the product",
                )
            chosen = [Fraction(each) if not isinstance(each, float) else Fraction(str(each)) for each in given]
            if abs(sum(chosen, Fraction(0)) - 1) > Fraction(1, 10**9):
                raise MechanismError(
                    "the probabilities do not add up to 1",
                    where=where,
                    got=f"a sum of {float(sum(chosen)):.12g}",
                    expected="1",
                    remedy="divide each by their sum; fractions such as Fraction(1, 3) are exact",
                )
            chosen = [each / sum(chosen) for each in chosen]
        object.__setattr__(self, "probabilities_", tuple(chosen))

    @property
    def probabilities(self) -> Mapping[str, float]:
        """How likely each attribute is to be reported."""
        return ReadOnly({name: float(own) for (name, _), own in zip(self.parts_, self.probabilities_, strict=True)})

    def _choose(self, count: int, source: RandomSource) -> Positions:
        """Return the attribute of each user, with exactly the stated probabilities."""
        whole = math.lcm(*(own.denominator for own in self.probabilities_))
        ends = np.cumsum([int(own * whole) for own in self.probabilities_])
        return np.searchsorted(ends, source.integers(whole, count), side="right")


@dataclass(frozen=True, repr=False)
class SampleOne(OneAtRandom):
    """One attribute, chosen at random, is reported with the whole budget; which one it is, is told.

    Guarantee: the largest epsilon of the attributes' mechanisms, plain.

    Parameters
    ----------
    domain
        As in `Split`.
    probabilities
        How likely each attribute is to be reported; equally by default.
    **named
        The mechanism of each attribute.

    Raises
    ------
    MechanismError
        If an attribute has no mechanism, or one over another domain, or the probabilities do not add up to 1.

    Examples
    --------
    >>> import hubbub as hb
    >>> age = hb.TruncatedGeometric(hb.Integers(18, 99), epsilon=0.5)
    >>> sex = hb.RandomizedResponse(hb.Categories(["f", "m"]), epsilon=1.0)
    >>> one = hb.SampleOne(age=age, sex=sex)
    >>> one.privatize([(34, "f"), (51, "m")], rng=1)["sex"]
    array(['f', None], dtype=object)
    """

    domain: Product
    parts_: tuple[tuple[str, Mechanism], ...]
    probabilities_: tuple[Fraction, ...]

    def __init__(
        self,
        domain: Product | Mapping[str, Mechanism] | None = None,
        /,
        *,
        probabilities: Mapping[str, float] | None = None,
        **named: Mechanism,
    ) -> None:
        self._set(domain, named)
        self._set_probabilities(probabilities)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the parts
        """The largest of the attributes'."""
        return max(plain_epsilon(part) for _, part in self.parts_)

    @cached_property
    def _all_codes(self) -> Codes | None:
        sizes = self._sides_listed()
        if sizes is None or sum(sizes) > MAX_LISTED_OUTPUTS:
            return None
        codes = np.tile(self.output_space.nothing, (sum(sizes), 1))
        for place, (size, end) in enumerate(zip(sizes, np.cumsum(sizes), strict=True)):
            codes[end - size : end, place] = np.arange(size)
        return codes

    def _box_channel(self, codes: Codes) -> Channel:
        factors, picks = self._factors(codes)
        which = np.argmax(picks != MISSING, axis=1)
        return KroneckerChannel(factors, picks, np.log([float(own) for own in self.probabilities_])[which])

    def draw_rows(self, places: Sequence[Positions], source: RandomSource) -> Codes:
        """Draw the attribute that is chosen."""
        which = self._choose(places[0].size, source)
        present = which[:, None] == np.arange(len(places))
        drawn = [
            part.report(own[has], source) for (_, part), own, has in zip(self.parts_, places, present.T, strict=True)
        ]
        return self.output_space.joined(drawn, present)


@dataclass(frozen=True, repr=False)
class SampleOneWithFakes(OneAtRandom):
    """One attribute, chosen at random, is reported truthfully, with noise; for the others, a fake value is (RS+FD).

    Which one is true is not told. A fake value is drawn from a distribution that everybody knows, uniform or one's own
    (RS+RFD), and passed through the attribute's mechanism like a true one::

        P(z | x) = sum over a of  p_a  P_a(z_a | x_a)  product over b other than a of  Q_b(z_b)

    where Q_b is the distribution of outputs for fakes.

    Guarantee: `epsilon`, exactly, for any two combinations of values. The literature states the smaller
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
    fakes_: tuple[tuple[float, ...], ...]

    def __init__(
        self,
        domain: Product | Mapping[str, Mechanism] | None = None,
        /,
        *,
        probabilities: Mapping[str, float] | None = None,
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
        kept = []
        for name, domain in self.domain.attributes.items():
            prior = np.asarray(given.get(name, np.full(len(domain), 1.0 / len(domain))), dtype=np.float64)
            if prior.shape != (len(domain),) or not (prior >= 0).all() or abs(prior.sum() - 1.0) > 1e-9:
                raise MechanismError(
                    "the distribution of fake values does not fit",
                    where=f"{where}, {name}",
                    got=f"{prior.size} numbers with a sum of {prior.sum():.6g}",
                    expected=f"{len(domain)} probabilities that add up to 1",
                    remedy="give one probability for each value, in the domain's order",
                )
            kept.append(tuple((prior / prior.sum()).tolist()))
        object.__setattr__(self, "fakes_", tuple(kept))

    @property
    def fakes(self) -> Mapping[str, Floats]:
        """The distribution of fake values of each attribute."""
        return ReadOnly({name: np.array(own) for (name, _), own in zip(self.parts_, self.fakes_, strict=True)})

    @cached_property
    def _all_codes(self) -> Codes | None:
        sizes = self._sides_listed()
        if sizes is None or math.prod(sizes) > MAX_LISTED_OUTPUTS:
            return None
        return np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1)

    def _box_channel(self, codes: Codes) -> Channel:
        factors, picks = self._factors(codes)
        if (picks == MISSING).any():
            place = int(np.argmax((picks == MISSING).any(axis=1)))
            raise MechanismError(
                "a report lacks an attribute",
                where=type(self).__name__,
                got=self.output_space.write(self.output_space.decode(codes[[place]])[0]),
                expected="an output for every attribute, fake or not",
                remedy="use SampleOne where the other attributes are not sent",
            )
        faked = []  # log Q_b of each row
        for factor, own, prior in zip(factors, picks.T, self.fakes_, strict=True):
            faked.append((np.log(factor.forward(np.array(prior))) + factor.log_scale)[own])
        total = np.sum(faked, axis=0)
        terms = []
        for place, (own, chance) in enumerate(zip(picks.T, self.probabilities_, strict=True)):
            alone = np.full_like(picks, MISSING)
            alone[:, place] = own
            terms.append(KroneckerChannel(factors, alone, total - faked[place] + math.log(chance)))
        return MixtureChannel(terms)

    @cached_property
    def _ratios(self) -> list[tuple[Floats, Floats]]:
        """For each attribute and each of its outputs, the largest and the least P(z | x) / Q(z) over the values."""
        bounds = []
        for (_, part), prior in zip(self.parts_, self.fakes_, strict=True):
            matrix = part.checked_matrix()
            odds = matrix / (np.array(prior) @ matrix)
            bounds.append((odds.max(axis=0), odds.min(axis=0)))
        return bounds

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the parts
        """The largest log-ratio over all pairs of combinations."""
        chances = [float(own) for own in self.probabilities_]
        ratio = 1.0
        for _ in range(200):  # Dinkelbach: the best outputs for a ratio give a larger one, until they do not
            best = [int(np.argmax(high - ratio * low)) for high, low in self._ratios]
            pairs = list(zip(chances, self._ratios, best, strict=True))
            above = math.fsum(chance * high[at] for chance, (high, _), at in pairs)
            below = math.fsum(chance * low[at] for chance, (_, low), at in pairs)
            if below == 0.0:
                return math.inf
            if above / below <= ratio * (1.0 + 1e-15):
                break
            ratio = above / below
        return math.log(ratio)

    @cached_property
    def epsilon_of_one(self) -> float:
        """The largest log-ratio over pairs of combinations that differ in one attribute."""
        chances = [float(own) for own in self.probabilities_]
        least = [chance * float(low.min()) for chance, (_, low) in zip(chances, self._ratios, strict=True)]
        largest = 1.0
        for place, (chance, (high, low)) in enumerate(zip(chances, self._ratios, strict=True)):
            others = math.fsum(least) - least[place]
            with np.errstate(divide="ignore"):
                largest = max(largest, float(((chance * high + others) / (chance * low + others)).max()))
        return math.log(largest)

    def draw_rows(self, places: Sequence[Positions], source: RandomSource) -> Codes:
        """Draw fake values for all attributes but the one that is chosen, then the output of each."""
        which = self._choose(places[0].size, source)
        drawn = []
        for place, ((_, part), own, law) in enumerate(zip(self.parts_, places, self._fake_laws, strict=True)):
            values = own.copy()
            fake = which != place
            values[fake] = law.draw(np.zeros(int(fake.sum()), dtype=np.int64), source)
            drawn.append(part.report(values, source))
        return self.output_space.joined(drawn, np.ones((places[0].size, len(places)), dtype=bool))

    @cached_property
    def _fake_laws(self) -> list[Law]:
        """The exact law of the fake values of each attribute: that of the floats."""
        return [table_of_floats(np.array([prior])) for prior in self.fakes_]


def plain_epsilon(part: Mechanism) -> float:
    """Return the plain epsilon of a mechanism: per unit of distance, times the diameter of its domain."""
    return part.epsilon * part.domain.diameter if part.metric else part.epsilon
