"""Every attribute is reported, each by a mechanism of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from hubbub.channels import Channel
from hubbub.channels.kronecker import KroneckerChannel
from hubbub.client import divided_budget, fractions_of_one
from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import Product
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.parameters import Probability
from hubbub.mechanisms.several_attributes import Builder, SeveralAttributes, plain_epsilon, rounded_up
from hubbub.sampling import RandomSource


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
            Whose epsilon is the budget, or less by rounding; never more.

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
        budgets = dict(zip(names, divided_budget(total, parts), strict=True))
        return cls(product, **cls._built(product, budgets, mechanisms))

    def about(self, domain: Product) -> Split:
        """Return the same without the other attributes."""
        return Split(domain, **{name: self.parts[name] for name in domain.attributes})

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the parts
        """The sum over the attributes, not rounded below what they spend."""
        spent = [plain_epsilon(part) for _, part in self.parts_]
        return math.inf if math.inf in spent else rounded_up(sum(map(Fraction, spent), Fraction(0)))

    def _box_channel(self, codes: Codes) -> Channel:
        return KroneckerChannel(*self._factors(codes))

    def draw_rows(self, places: Sequence[Positions], source: RandomSource) -> Codes:
        """Draw every attribute."""
        drawn = [part.report(own, source) for (_, part), own in zip(self.parts_, places, strict=True)]
        return self.output_space.joined(drawn, np.ones((places[0].size, len(places)), dtype=bool))
