"""Reports about several attributes: every one of them, one at random, or one at random among fakes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.channels import Channel, DenseChannel, prefers_matrix
from hubbub.channels.kronecker import MISSING, KroneckerChannel
from hubbub.channels.mixture import MixtureChannel
from hubbub.client import as_probability, fractions_of_one, metric_epsilon
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_real
from hubbub.core.errors import MechanismError, shorten
from hubbub.core.serialization import ReadOnly
from hubbub.core.text import listed
from hubbub.domains import Domain, Product
from hubbub.mechanisms.attribute_outputs import AttributeOutputs, Sent
from hubbub.mechanisms.base import Mechanism, matrix_too_wide
from hubbub.mechanisms.fake_value_odds import FakeValueOdds, fake_value_odds
from hubbub.mechanisms.parameters import Probability, check_epsilon
from hubbub.sampling import Law, RandomSource
from hubbub.sampling.fraction_table import FractionTable
from hubbub.sampling.weight_tables import TableLaw, table_of_floats

Builder = Callable[..., Mechanism]  # a class of mechanisms, or a function of a domain and an epsilon

ROUNDING = 1e-14  # relative: more than the sums of an epsilon lose
MAX_LISTED_OUTPUTS = 1_000_000  # combinations of outputs that are written down


class SeveralAttributes(Mechanism):
    """A mechanism over a product, made of one mechanism for each attribute."""

    domain: Product
    parts_: tuple[tuple[str, Mechanism], ...]
    sent: ClassVar[Sent] = "some"  # how many attributes a report is about

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
        built = Product({attribute: part.domain for attribute, part in named.items()}) if domain is None else domain
        product = built.product if isinstance(built, Domain) else None
        if product is None:
            raise MechanismError(
                "the domain is not a product",
                where=f"{name}(domain)",
                got=shorten(built),
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

    @classmethod
    def _built(cls, domain: Product, budgets: Mapping[str, float], mechanisms: object) -> dict[str, Mechanism]:
        """Return a mechanism for each attribute, of its plain epsilon."""
        where = f"{cls.__name__}.with_budget(mechanisms)"
        builders: Mapping[str, Any] = (
            mechanisms if isinstance(mechanisms, Mapping) else dict.fromkeys(domain.attributes, mechanisms)
        )
        cls._check_names(domain, builders, where, "a mechanism")
        parts = {}
        for name, own in domain.attributes.items():
            build, plain = builders[name], budgets[name]
            part = build(own, epsilon=plain) if callable(build) else build
            if isinstance(part, Mechanism) and part.metric:
                part = build(own, epsilon=metric_epsilon(plain, own.diameter))
            if not callable(build) or not isinstance(part, Mechanism):
                raise MechanismError(
                    f"{name} has no class of mechanisms",
                    where=where,
                    got=shorten(build),
                    expected="a class such as hubbub.RandomizedResponse, or a function of a domain and an epsilon",
                    remedy="pass the class itself: its epsilon follows from the budget",
                )
            if plain_epsilon(part) > plain * (1.0 + 1e-9):
                raise MechanismError(
                    f"the mechanism of {name} spends more than its budget",
                    where=where,
                    got=f"epsilon {plain_epsilon(part):.6g}",
                    expected=f"at most {plain:.6g}",
                    remedy="build it from the epsilon that is passed",
                )
            parts[name] = part
        return parts

    @classmethod
    def _check_budget(cls, domain: object, epsilon: object) -> tuple[Product, float]:
        product = domain.product if isinstance(domain, Domain) else None
        if product is None:
            raise MechanismError(
                "the domain is not a product",
                where=f"{cls.__name__}.with_budget(domain)",
                got=shorten(domain),
                expected="a Product: the attributes and their domains",
                remedy="build it first, for example hubbub.Product(age=hubbub.Integers(18, 99), sex=...)",
            )
        return product, check_epsilon(epsilon, f"{cls.__name__}.with_budget")

    @staticmethod
    def _check_names(domain: Product, given: object, where: str, what: str) -> None:
        """Refuse what does not name each attribute once."""
        names = listed(list(domain.attributes))
        if not isinstance(given, Mapping) or set(given) != set(domain.attributes):
            raise MechanismError(
                "the names are not those of the attributes",
                where=where,
                got=shorten(list(given) if isinstance(given, Mapping) else given),
                expected=f"{what} for each of {names}",
                remedy="name each attribute once",
            )

    def fields(self) -> dict[str, Any]:
        """Return what a study file says of the mechanism besides its kind and its parts, as plain JSON values."""
        return {}

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
        return AttributeOutputs(self.domain, self.parts_, type(self).__name__, self.sent)

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

    @abstractmethod
    def about(self, domain: Product) -> SeveralAttributes:
        """Return how some of the attributes are reported, where the others are not looked at.

        Parameters
        ----------
        domain
            The product of these attributes alone.

        Returns
        -------
        SeveralAttributes
            The same way to report, over `domain`.
        """

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

    def joint_probabilities(self, tables: Sequence[Floats | None]) -> Floats:
        """Return P(outputs | combination), given P(output | value) of each attribute, None where it is missing.

        Parameters
        ----------
        tables
            For each attribute its values by some of its outputs.

        Returns
        -------
        numpy.ndarray
            All combinations, the impossible ones included, by all combinations of outputs. Up to a factor: how likely
            it is that attributes are missing does not count.
        """
        joint: Floats = np.ones((1, 1))
        for table, side in zip(tables, self.domain.sides, strict=True):
            joint = np.asarray(np.kron(joint, np.ones((side, 1)) if table is None else table), dtype=np.float64)
        return joint

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

    @classmethod
    def with_budget(
        cls,
        domain: Product,
        epsilon: float,
        mechanisms: Builder | Mapping[str, Builder],
        *,
        shares: Mapping[str, Probability] | None = None,
    ) -> Self:
        """Divide a budget among the attributes.

        Parameters
        ----------
        domain
            The attributes.
        epsilon
            The plain epsilon of all attributes together.
        mechanisms
            A class of mechanisms, or one for each attribute; also a function of a domain and an epsilon. Where epsilon
            is per unit of distance, the attribute's part is divided by the diameter of its domain.
        shares
            The part of the budget that each attribute gets; equal by default.

        Returns
        -------
        Split
            Whose epsilon is the budget.

        Raises
        ------
        MechanismError
            If the budget is no epsilon, names are not those of the attributes, or shares do not add up to 1.

        Examples
        --------
        >>> import hubbub as hb
        >>> people = hb.Product(age=hb.Integers(18, 99), sex=hb.Categories(["f", "m"]))
        >>> kinds = {"age": hb.TruncatedGeometric, "sex": hb.RandomizedResponse}
        >>> both = hb.Split.with_budget(people, 2.0, kinds, shares={"age": 0.75, "sex": 0.25})
        >>> both.epsilon, both.parts["sex"].epsilon, round(both.parts["age"].epsilon, 5)
        (2.0, 0.5, 0.01852)
        """
        product, total = cls._check_budget(domain, epsilon)
        where, names = f"{cls.__name__}.with_budget(shares=)", list(product.attributes)
        parts: list[Fraction] | None = [Fraction(1, len(names))] * len(names)
        if shares is not None:
            cls._check_names(product, shares, where, "a share")
            parts = fractions_of_one([shares[name] for name in names])
        if parts is None:
            raise MechanismError(
                "the shares do not add up to 1",
                where=where,
                got=shorten(dict(shares or {})),
                expected="numbers above 0 that add up to 1",
                remedy="divide each by their sum; fractions such as Fraction(1, 3) are exact",
            )
        budgets = {name: float(Fraction(total) * share) for name, share in zip(names, parts, strict=True)}
        return cls(product, **cls._built(product, budgets, mechanisms))

    def about(self, domain: Product) -> Split:
        """Return the same without the other attributes."""
        return Split(domain, **{name: self.parts[name] for name in domain.attributes})

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
            exact = fractions_of_one([probabilities[name] for name in names])
            if exact is None:
                total = math.fsum(float(own) for name in names if (own := as_probability(probabilities[name])))
                raise MechanismError(
                    "the probabilities do not add up to 1",
                    where=where,
                    got=f"{shorten(dict(probabilities))}, a sum of {total:.12g}",
                    expected="numbers above 0 that add up to 1, or texts such as '1/3'",
                    remedy="divide each by their sum; leave an attribute that is never reported out of the product",
                )
            chosen = exact
        object.__setattr__(self, "probabilities_", tuple(chosen))

    @property
    def probabilities(self) -> Mapping[str, float]:
        """How likely each attribute is to be reported."""
        return ReadOnly({name: float(own) for (name, _), own in zip(self.parts_, self.probabilities_, strict=True)})

    @cached_property
    def _choice(self) -> FractionTable:
        """The attribute of a user, with exactly the stated probabilities."""
        return FractionTable(self.probabilities_)

    def fields(self) -> dict[str, Any]:
        """Return the probabilities, where they are not equal."""
        named = {name: str(own) for (name, _), own in zip(self.parts_, self.probabilities_, strict=True)}
        return {"probabilities": named if len(set(self.probabilities_)) > 1 else None}


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
    >>> one.privatize([(34, "f"), (51, "m")], rng=6)["sex"]
    array(['m', None], dtype=object)
    """

    domain: Product
    parts_: tuple[tuple[str, Mechanism], ...]
    probabilities_: tuple[Fraction, ...]
    sent = "one"

    def __init__(
        self,
        domain: Product | Mapping[str, Mechanism] | None = None,
        /,
        *,
        probabilities: Mapping[str, Probability] | None = None,
        **named: Mechanism,
    ) -> None:
        self._set(domain, named)
        self._set_probabilities(probabilities)

    @classmethod
    def with_budget(
        cls,
        domain: Product,
        epsilon: float,
        mechanisms: Builder | Mapping[str, Builder],
        *,
        probabilities: Mapping[str, Probability] | None = None,
    ) -> Self:
        """Give every attribute the whole budget: only one of them is reported.

        Parameters
        ----------
        domain
            The attributes.
        epsilon
            The plain epsilon of a report, whichever attribute it is about.
        mechanisms
            As in `Split.with_budget`.
        probabilities
            How likely each attribute is to be reported; equally by default.

        Returns
        -------
        SampleOne
            Whose epsilon is the budget.

        Raises
        ------
        MechanismError
            If the budget is no epsilon, names are not those of the attributes, or probabilities do not add up to 1.

        Examples
        --------
        >>> import hubbub as hb
        >>> people = hb.Product(age=hb.Integers(18, 99), sex=hb.Categories(["f", "m"]))
        >>> one = hb.SampleOne.with_budget(people, 2.0, hb.RandomizedResponse)
        >>> one.epsilon, one.parts["age"].epsilon, one.parts["sex"].epsilon
        (2.0, 2.0, 2.0)
        """
        product, total = cls._check_budget(domain, epsilon)
        parts = cls._built(product, dict.fromkeys(product.attributes, total), mechanisms)
        return cls(product, probabilities=probabilities, **parts)

    def about(self, domain: Product) -> SampleOne:
        """Return the same among those who report one of these attributes."""
        chances = {name: own for (name, _), own in zip(self.parts_, self.probabilities_, strict=True)}
        kept = {name: chances[name] for name in domain.attributes}
        total = sum(kept.values(), Fraction(0))
        probabilities: Any = {name: own / total for name, own in kept.items()}  # exact
        return SampleOne(domain, probabilities=probabilities, **{name: self.parts[name] for name in domain.attributes})

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
        which = self._choice.draw(places[0].size, source)
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

    @cached_property
    def _all_codes(self) -> Codes | None:
        sizes = self._sides_listed()
        if sizes is None or math.prod(sizes) > MAX_LISTED_OUTPUTS:
            return None
        return np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1)

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

        That bound is the largest epsilon of the attributes' mechanisms.
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


def plain_epsilon(part: Mechanism) -> float:
    """Return the plain epsilon of a mechanism: per unit of distance, times the diameter of its domain."""
    return part.epsilon * part.domain.diameter if part.metric else part.epsilon
