"""Values of any domain as columns of a table, in JSON and in sentences: combinations by their attributes."""

from __future__ import annotations

from collections.abc import Container, Mapping

from hubbub.core.arrays import Array, plain
from hubbub.domains.base import Domain


def label_columns(domain: Domain, others: Container[str]) -> dict[str, Array]:
    """Return the labels as columns of a table that has `others`, too: `value`, or one for each attribute."""
    labels = domain.labels
    if labels.dtype.names is None:
        return {"value": labels}
    return {attribute_column(name, others): labels[name] for name in labels.dtype.names}


def attribute_column(name: str, others: Container[str]) -> str:
    """Return what the column of an attribute is called in a table that has `others`, too: no column is lost.

    >>> attribute_column("age", ["share"]), attribute_column("share", ["share"])
    ('age', 'value.share')
    """
    return f"value.{name}" if name in others else name  # no attribute has a dot in its name


def json_labels(domain: Domain) -> list[object]:
    """Return the labels as JSON holds them: combinations as objects."""
    names, labels = domain.labels.dtype.names, domain.labels.tolist()
    return list(labels) if names is None else [dict(zip(names, label, strict=True)) for label in labels]


def json_value(value: object, domain: Domain) -> object:
    """Return a value, or a name that stands for several, as JSON holds it."""
    plain_value, names = plain(value), domain.labels.dtype.names
    if names is None or not isinstance(plain_value, tuple):
        return plain_value
    return dict(zip(names, plain_value, strict=True))


def given_text(given: Mapping[str, object]) -> str:
    """Return chosen values of attributes in words, such as "sex f, age 18 or 19"."""
    parts = []
    for name, values in given.items():
        several = values if isinstance(values, list | tuple) else [values]
        parts.append(f"{name} {' or '.join(map(str, several))}")
    return ", ".join(parts)
