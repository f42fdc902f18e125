"""Reports about several attributes, made of one mechanism for each."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hubbub.channels import Channel, DenseChannel, prefers_matrix
from hubbub.client import metric_epsilon
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.core.errors import MechanismError, shorten
from hubbub.core.serialization import ReadOnly
from hubbub.core.text import listed
from hubbub.domains import Domain, Product
from hubbub.domains.product import check_named_once
from hubbub.mechanisms.attribute_outputs import AttributeOutputs, Sent
from hubbub.mechanisms.base import Mechanism, matrix_too_wide
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.mechanisms.parameters import check_epsilon
from hubbub.sampling import Law, RandomSource

Builder = Callable[..., Mechanism]  # a class of mechanisms, or a function of a domain and an epsilon
MAX_LISTED_OUTPUTS = 1_000_000  # combinations of outputs that are written down
MAX_ROUNDING = 1e-9  # of epsilon, relatively, in what a function of an epsilon builds


class SeveralAttributes(Mechanism):
    """A mechanism over a product, made of one mechanism for each attribute."""

    domain: Product
    parts_: tuple[tuple[str, Mechanism], ...]
    sent: ClassVar[Sent] = "some"  # how many attributes a report is about

    def _set(self, domain: object, named: Mapping[str, Any]) -> None:
        """Check the attributes' mechanisms, and build the product of their domains unless there is one."""
        name = type(self).__name__
        if isinstance(domain, Mapping):
            check_named_once(domain, named, f"{name}(mechanisms)", MechanismError)
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
            part = _part_of(build, own, plain)
            if isinstance(part, Mechanism) and plain < plain_epsilon(part) <= plain * (1.0 + MAX_ROUNDING):
                part = _part_of(build, own, plain * (1.0 - MAX_ROUNDING))
            if not callable(build) or not isinstance(part, Mechanism):
                raise MechanismError(
                    f"{name} has no class of mechanisms",
                    where=where,
                    got=shorten(build),
                    expected="a class such as hubbub.RandomizedResponse, or a function of a domain and an epsilon",
                    remedy="pass the class itself: its epsilon follows from the budget",
                )
            if plain_epsilon(part) > plain:
                raise MechanismError(
                    f"the mechanism of {name} spends more than its budget",
                    where=where,
                    got=f"epsilon {plain_epsilon(part)}",
                    expected=f"at most {plain}",
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
        listed = self._listed_parts
        if listed is None or self._count_outputs([len(own) for own in listed]) > MAX_LISTED_OUTPUTS:
            return None
        return self._combined(listed)

    @cached_property
    def _listed_parts(self) -> list[Codes] | None:
        """The codes of all outputs of each attribute, in order; None where one has too many to be listed."""
        listed = [_listed(part) for _, part in self.parts_]
        known = [codes for codes in listed if codes is not None]
        return known if len(known) == len(listed) else None

    def _count_outputs(self, sizes: Sequence[int]) -> int:
        """Return how many outputs there are, given how many each attribute has: all combinations."""
        return math.prod(sizes)

    def _combined(self, listed: Sequence[Codes]) -> Codes:
        """Return the codes of all outputs, given those of each attribute."""
        sizes = [len(own) for own in listed]
        places = np.unravel_index(np.arange(math.prod(sizes)), sizes)
        columns = [own[place] for own, place in zip(listed, places, strict=True)]
        return self.output_space.joined(columns, np.ones((math.prod(sizes), len(sizes)), dtype=bool))

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
        if self._all_codes is not None:
            return np.exp(self.log_columns(self._all_codes))
        if self._listed_parts is not None:
            count = self._count_outputs([len(own) for own in self._listed_parts])
            raise matrix_too_wide(type(self).__name__, f"{count:,}")
        name, part = next((name, part) for name, part in self.parts_ if _listed(part) is None)
        raise matrix_too_wide(type(self).__name__, f"{type(part).__name__} for {name}, with too many")

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

    def about_one(self, name: str) -> Mechanism:
        """Return how one attribute is reported, where the others are not looked at.

        Parameters
        ----------
        name
            The attribute.

        Returns
        -------
        Mechanism
            Over the attribute's own domain.
        """
        return self.parts[name]

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
        return matrix_if_small(self._box_channel(codes), self.places_among(among), terms=len(self.parts_))

    def places_among(self, among: Positions | None) -> Positions | None:
        """Return the places of some values among all combinations, the impossible ones included; None for all of these.

        Parameters
        ----------
        among
            The positions of the values; None for all values.

        Returns
        -------
        numpy.ndarray or None
            One place for each value.
        """
        cells = self.domain.cells
        return cells if among is None else (among if cells is None else cells[among])

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


def _part_of(build: Any, domain: Domain, plain: float) -> Any:
    """Return what builds a mechanism of a plain epsilon has built; itself if it builds none."""
    part = build(domain, epsilon=plain) if callable(build) else build
    is_metric = isinstance(part, Mechanism) and part.metric
    return build(domain, epsilon=metric_epsilon(plain, domain.diameter)) if is_metric and callable(build) else part


def _listed(part: Mechanism) -> Codes | None:
    """Return the codes of all outputs of a mechanism; None where it lists none, or leaves some out.

    Noise that may carry an output anywhere beyond the domain lists those near it.
    """
    space = part.output_space
    if space.size is not None:
        return np.arange(space.size)
    outputs = part.outputs if isinstance(space, BitRowOutputs) else None
    return None if outputs is None else space.encode(outputs)


def plain_epsilon(part: Mechanism) -> float:
    """Return the plain epsilon of a mechanism: per unit of distance, times the diameter of its domain."""
    if not part.metric or part.epsilon == math.inf:
        return part.epsilon
    return rounded_up(Fraction(part.epsilon) * Fraction(part.domain.diameter))


def rounded_up(spent: Fraction) -> float:
    """Return the smallest float that is at least an epsilon: rounded to the nearest, less might be claimed than spent.

    >>> rounded_up(Fraction(1, 10)), float(Fraction(1, 10))
    (0.1, 0.1)
    >>> rounded_up(Fraction(1, 3)), float(Fraction(1, 3))
    (0.33333333333333337, 0.3333333333333333)
    """
    nearest = float(spent)
    return nearest if nearest >= spent else math.nextafter(nearest, math.inf)


def matrix_if_small(whole: Channel, kept: Positions | None, *, terms: int) -> Channel:
    """Return a channel over the values at positions `kept` (None: all), as a matrix where that is as quick.

    Its logarithms are sums of so many `terms`.
    """
    if not prefers_matrix(whole.values * whole.patterns):
        return whole if kept is None else whole.part(kept)
    logs, everything = whole.log_columns, np.arange(whole.patterns)
    return DenseChannel.from_logs(
        whole.values if kept is None else kept.size,
        whole.patterns,
        lambda part: logs(everything[part]) if kept is None else logs(everything[part])[kept],
        terms=terms,
    )
