"""One attribute, chosen at random, is reported; which one it is, is told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from hubbub.channels import Channel
from hubbub.channels.kronecker import MISSING, KroneckerChannel
from hubbub.client import as_probability, fractions_of_one
from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import MechanismError, shorten
from hubbub.core.serialization import ReadOnly
from hubbub.core.text import listed
from hubbub.domains import Product
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.parameters import Probability
from hubbub.mechanisms.several_attributes import Builder, SeveralAttributes, plain_epsilon
from hubbub.sampling import RandomSource
from hubbub.sampling.fraction_table import FractionTable


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

    def _count_outputs(self, sizes: Sequence[int]) -> int:
        """Return the sum: an output is one of some attribute."""
        return sum(sizes)

    def _combined(self, listed: Sequence[Codes]) -> Codes:
        """Return the outputs of each attribute, one attribute after the other."""
        owner = np.repeat(np.arange(len(listed)), [len(own) for own in listed])
        return self.output_space.joined(listed, owner[:, None] == np.arange(len(listed)))

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
