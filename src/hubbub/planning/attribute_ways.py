"""The ways to report several attributes that a plan compares: those that were passed, or all three at one epsilon."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import as_real
from hubbub.core.errors import SettingError, shorten
from hubbub.core.text import kebab
from hubbub.domains import Domain, Product
from hubbub.intake.study import Study
from hubbub.mechanisms import Mechanism, OptimizedUnary, RandomizedResponse, SampleOne, SampleOneWithFakes, Split
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.planning.attribute_errors import variance_of_oracle

WHERE = "plan_attributes"


def named_ways(ways: object, epsilon: object) -> dict[str, SeveralAttributes]:
    """Return the ways that were passed, checked and by name; for a product and an epsilon, the three there are."""
    if isinstance(ways, Study):
        ways = dict(ways.mechanisms)
    if isinstance(ways, Domain):
        if ways.product is None:
            raise _refused("the domain is not a product", shorten(ways), "pass hubbub.Product(age=..., sex=...)")
        budget = as_real(epsilon)
        if not 0.0 < budget < np.inf:
            raise validation.wrong(epsilon, "epsilon", WHERE, "a positive number", remedy="pass the budget of a user")
        return ways_at(ways.product, budget)
    if epsilon is not None:
        raise _refused("mechanisms bring their own epsilon", "epsilon= besides mechanisms", "leave epsilon out")
    if isinstance(ways, Mechanism):
        ways = [ways]
    if isinstance(ways, Mapping):
        named = {str(name): way for name, way in ways.items()}
    elif isinstance(ways, list | tuple):
        named = {}
        for way in ways:
            name, number = kebab(type(way).__name__), 2
            while name in named:
                name, number = f"{kebab(type(way).__name__)} {number}", number + 1
            named[name] = way
    else:
        raise _refused("these are not ways to report", shorten(ways), "pass mechanisms such as hubbub.Split(...)")
    if not named:
        raise _refused("there is nothing to compare", "no mechanism", "pass at least one")
    checked: dict[str, SeveralAttributes] = {}
    for name, way in named.items():
        if not isinstance(way, SeveralAttributes):
            raise _refused(
                f"{name} is no way to report several attributes",
                shorten(way),
                "leave it out, or report each attribute by a mechanism of its own, as hubbub.Split does",
            )
        checked[name] = way
    first = next(iter(checked.values())).domain
    for name, mechanism in checked.items():
        if mechanism.domain != first:
            raise _refused(
                f"{name} is over another domain", shorten(mechanism.domain, 100), "build all over one product"
            )
    return checked


def _refused(what: str, got: str, remedy: str) -> SettingError:
    expected = (
        "a Product with epsilon=, or Split, SampleOne and SampleOneWithFakes over one Product: one of these, "
        "a list, {name: way}, or a study"
    )
    return SettingError(what, where=f"{WHERE}(ways)", got=got, expected=expected, remedy=remedy)


def ways_at(product: Product, epsilon: float) -> dict[str, SeveralAttributes]:
    """Return the three ways to report, so that any two combinations are protected by epsilon."""
    one = {name: better_oracle(domain, epsilon) for name, domain in product.attributes.items()}
    return {
        "split": Split.with_budget(product, epsilon, better_oracle),
        "sample-one": SampleOne(product, **one),  # type: ignore[arg-type]  # names are attributes
        "sample-one-with-fakes": _among_fakes(product, epsilon),
    }


def better_oracle(domain: Domain, epsilon: float) -> FrequencyOracle:
    """Return k-RR or optimized unary encoding, whichever has the smaller variance."""
    kinds: list[FrequencyOracle] = [
        RandomizedResponse(domain, epsilon=epsilon),
        OptimizedUnary(domain, epsilon=epsilon),
    ]
    return min(kinds, key=lambda kind: variance_of_oracle(kind.support, len(domain)))


def _among_fakes(product: Product, epsilon: float) -> SampleOneWithFakes:
    """Return k-RR among fakes whose epsilon between any two combinations is the one asked for."""

    def built(inner: float) -> SampleOneWithFakes:
        parts = {name: RandomizedResponse(domain, epsilon=inner) for name, domain in product.attributes.items()}
        return SampleOneWithFakes(product, **parts)  # type: ignore[arg-type]  # names are attributes

    low, high = epsilon, 2.0 * epsilon
    while built(high).epsilon < epsilon:
        low, high = high, 2.0 * high
    for _ in range(60):  # epsilon grows with that of the parts
        middle = 0.5 * (low + high)
        if built(middle).epsilon <= epsilon:
            low = middle
        else:
            high = middle
    return built(low)
