"""Values of any domain as columns of a table, in JSON and in sentences: combinations by their attributes."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub.core.arrays import Array
from hubbub.domains.base import Domain
from hubbub.domains.product import Product


def as_product(domain: Domain) -> Product | None:
    """Return the domain if its values are combinations of attributes; None otherwise."""
    return domain if isinstance(domain, Product) else None


def label_columns(domain: Domain) -> dict[str, Array]:
    """Return the labels as columns: `value`, or one for each attribute."""
    if isinstance(domain, Product):
        return {name: domain.labels[name] for name in domain.attributes}
    return {"value": domain.labels}


def json_labels(domain: Domain) -> list[object]:
    """Return the labels as JSON holds them: combinations as objects."""
    labels = domain.labels.tolist()
    if isinstance(domain, Product):
        return [dict(zip(domain.attributes, label, strict=True)) for label in labels]
    return list(labels)


def given_text(given: Mapping[str, object]) -> str:
    """Return chosen values of attributes in words, such as "sex f, age 18 or 19"."""
    parts = []
    for name, values in given.items():
        several = values if isinstance(values, list | tuple) else [values]
        parts.append(f"{name} {' or '.join(map(str, several))}")
    return ", ".join(parts)
