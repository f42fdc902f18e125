"""Several attributes of each user: values are combinations, one value of each attribute."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.client import MECHANISM_NAME, RESERVED_NAMES
from hubbub.core.arrays import Array, Floats, Positions, as_array, frozen, plain
from hubbub.core.errors import DomainError, HubbubError, shorten
from hubbub.core.serialization import ReadOnly
from hubbub.core.text import kebab, listed, nearest_name, plural, renaming
from hubbub.domains.base import Domain, check_size

Rule = tuple[tuple[str, tuple[Hashable, ...]], ...]  # attributes, and the values of each that cannot meet


class Margin(NamedTuple):
    """Some attributes of a product alone: their domain, and the position in it of each value of the product."""

    domain: Domain
    places: Positions

    def sums(self, shares: Floats) -> Floats:
        """Return the shares of the values of `domain`, given those of the product's values."""
        return np.asarray(np.bincount(self.places, weights=shares, minlength=len(self.domain)), dtype=np.float64)


@dataclass(frozen=True)
class Product(Domain):
    """Combinations of several attributes, one value of each.

    Values are tuples in the order of the attributes; the last attribute varies fastest. The distance of two values is
    the number of attributes in which they differ. Two products are equal if they have the same attributes in the same
    order, and the same combinations are possible, however that was said.

    Parameters
    ----------
    attributes
        The attributes by name, where a name is no Python identifier; otherwise write them as keywords.
    impossible
        Combinations that nobody can have: a list of dictionaries from attributes to a value or a list of values, such
        as ``[{"sex": "m", "pregnant": "yes"}]``; or an array of bools with an axis for each attribute, True where a
        combination is impossible.
    **named
        The attributes: a domain for each name.

    Raises
    ------
    DomainError
        If there are fewer than two attributes, one is not a domain, or `impossible` does not fit them.

    Examples
    --------
    >>> import hubbub as hb
    >>> people = hb.Product(age=hb.Integers(18, 99), sex=hb.Categories(["f", "m"]))
    >>> len(people), people.sides
    (164, (82, 2))
    >>> people.index([(18, "m"), (99, "f")])
    array([  1, 162])
    >>> people.title(1)
    'age 18, sex m'
    """

    attributes_: tuple[tuple[str, Domain], ...]
    impossible_: tuple[Rule, ...]

    def __init__(
        self,
        attributes: Mapping[str, Domain] | None = None,
        /,
        *,
        impossible: object = (),
        **named: Domain,
    ) -> None:
        check_named_once(_mapping(attributes), named, "Product(attributes)", DomainError)
        both = {**_mapping(attributes), **named}
        object.__setattr__(self, "attributes_", _checked(both))
        check_size(int(np.prod([float(len(domain)) for domain in both.values()])), "Product(...)")
        mask = self._impossible_mask(impossible)
        object.__setattr__(self, "impossible_", () if mask is None else self._rules_of_mask(mask))

    # -- attributes ----------------------------------------------------------------------------------

    @cached_property
    def attributes(self) -> Mapping[str, Domain]:
        """The domain of each attribute, by its name."""
        return ReadOnly(dict(self.attributes_))

    @property
    def product(self) -> Product:
        """The product itself."""
        return self

    @property
    def sides(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(len(domain) for _, domain in self.attributes_)

    @cached_property
    def cells(self) -> Positions | None:
        """Where the possible combinations are among all of them; None where all are possible."""
        if not self.impossible_:
            return None
        return frozen(np.flatnonzero(~self._mask_of_rules(self.impossible_).ravel()))

    def _mask_of_rules(self, rules: Iterable[Rule]) -> NDArray[np.bool_]:
        """Return which combinations are impossible, with an axis for each attribute."""
        mask = np.zeros(self.sides, dtype=bool)
        for rule in rules:
            chosen = dict(rule)
            places = [
                self.attributes[name].index(list(chosen[name])) if name in chosen else np.arange(side)
                for name, side in zip(self.attributes, self.sides, strict=True)
            ]
            mask[np.ix_(*places)] = True
        return mask

    @cached_property
    def _value_of_cell(self) -> Positions | None:
        """The position of each combination's value, -1 for those that are impossible, and at the end for none."""
        if self.cells is None:
            return None
        value_of = np.full(int(np.prod(self.sides)) + 1, -1, dtype=np.int64)
        value_of[self.cells] = np.arange(self.cells.size)
        return value_of

    def coordinates_of(self, positions: Positions) -> tuple[Positions, ...]:
        """Return the positions of values on each attribute.

        Parameters
        ----------
        positions
            Positions of values.

        Returns
        -------
        tuple of numpy.ndarray
            One array for each attribute.
        """
        return np.unravel_index(positions if self.cells is None else self.cells[positions], self.sides)

    def margin(self, names: Sequence[str], where: str = "margin(names)") -> Margin:
        """Return the domain of some attributes alone, and where each value lies in it.

        Parameters
        ----------
        names
            Attributes; the first varies slowest.
        where
            What the names are, for messages.

        Returns
        -------
        Margin
            With `domain`: that of the attribute, or a Product of several, without combinations that are impossible
            whatever the other attributes are; and `places`: a position in it for each value.

        Raises
        ------
        DomainError
            If a name is no attribute, or there twice.
        """
        for name in names:
            self._check_attribute(name, where)
        if not names or len(set(names)) < len(names):
            raise DomainError(
                "an attribute is named twice" if names else "no attribute is named",
                where=where,
                got=listed([str(name) for name in names]) if names else "nothing",
                expected=f"different attributes, of {listed(list(self.attributes))}",
                remedy="name each once",
            )
        sides = [len(self.attributes[name]) for name in names]
        own = dict(zip(self.attributes, self.coordinates_of(np.arange(len(self))), strict=True))
        cells = np.ravel_multi_index([own[name] for name in names], sides)
        if len(names) == 1:
            return Margin(self.attributes[names[0]], cells)
        impossible = np.bincount(cells, minlength=int(np.prod(sides))) == 0
        domain = Product({name: self.attributes[name] for name in names}, impossible=impossible.reshape(sides))
        return Margin(domain, cells if domain._value_of_cell is None else domain._value_of_cell[cells])

    def having(self, chosen: Mapping[str, object], where: str = "having(chosen)") -> NDArray[np.bool_]:
        """Return which values have the chosen values of some attributes.

        Parameters
        ----------
        chosen
            Attributes, and a value or a list of values of each, such as ``{"sex": "f", "age": [18, 19]}``.
        where
            What they are, for messages.

        Returns
        -------
        numpy.ndarray
            A bool for each value.

        Raises
        ------
        DomainError
            If a name is no attribute, or a value not one of its.
        """
        own = dict(zip(self.attributes, self.coordinates_of(np.arange(len(self))), strict=True))
        inside = np.ones(len(self), dtype=bool)
        for name, values in self._rule(chosen, where):
            inside &= np.isin(own[name], self.attributes[name].index(list(values)))
        return inside

    def _check_attribute(self, name: object, where: str) -> None:
        if not isinstance(name, str) or name not in self.attributes:
            several = isinstance(name, list | tuple | set | np.ndarray)
            otherwise = "name each attribute by itself, not in a list" if several else "name one of the attributes"
            remedy = nearest_name(name, self.attributes, otherwise)
            expected = listed(list(self.attributes))
            raise DomainError("no such attribute", where=where, got=shorten(name), expected=expected, remedy=remedy)

    def __len__(self) -> int:
        return int(np.prod(self.sides)) if self.cells is None else self.cells.size

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={domain!r}" for name, domain in self.attributes_)
        return f"Product({inner}{', impossible=...' if self.impossible_ else ''})"

    # -- values --------------------------------------------------------------------------------------

    @cached_property
    def labels(self) -> Array:
        """The values: a structured array with a field for each attribute."""
        kinds = [(name, domain.labels.dtype) for name, domain in self.attributes_]
        labels = np.empty(len(self), dtype=kinds)
        for (name, domain), places in zip(self.attributes_, self.coordinates_of(np.arange(len(self))), strict=True):
            labels[name] = domain.labels[places]
        return frozen(labels)

    def columns(self, values: object, where: str = "values") -> dict[str, object]:
        """Return the column of each attribute, of values in any form.

        Parameters
        ----------
        values
            A table with a column for each attribute (a data frame, a structured array, or a dictionary of lists), or
            tuples in the order of the attributes.
        where
            What the values are, for messages.

        Returns
        -------
        dict
            Columns by the names of the attributes.

        Raises
        ------
        DomainError
            If a column is missing or superfluous, or a tuple has another length.
        """
        names = list(self.attributes)
        present = _names_of(values)
        if present is not None:
            self._check_names(present, where)
            return {name: values[name] for name in names}  # type: ignore[index]
        if isinstance(values, Iterable) and not isinstance(values, str | bytes):
            rows: list[Any] = list(values)
            if rows and not isinstance(rows[0], tuple | list | np.ndarray | np.void):
                rows = [tuple(rows)]
            rows = [row.tolist() if isinstance(row, np.ndarray | np.void) else row for row in rows]
            for place, row in enumerate(rows):
                if not isinstance(row, tuple | list) or len(row) != len(names):
                    raise self._not_a_tuple(row, f"{where}, position {place}")
            return {name: [plain(row[place]) for row in rows] for place, name in enumerate(names)}
        raise self._not_a_tuple(values, where)

    def _value_columns(self, values: object) -> dict[str, Array]:
        """Return the columns of values, checked to be of equal length."""
        columns = {name: np.atleast_1d(as_array(column)) for name, column in self.columns(values).items()}
        if len({column.shape for column in columns.values()}) > 1 or any(own.ndim > 1 for own in columns.values()):
            sizes = [f"{name} {' x '.join(f'{n:,}' for n in column.shape)}" for name, column in columns.items()]
            raise DomainError(
                "the columns of the attributes do not have one value in each row",
                where="values",
                got=f"entries: {listed(sizes)}",
                expected="as many in every column",
                remedy="fill the columns up, or leave out people without a value of every attribute",
            )
        return columns

    def _not_a_tuple(self, got: object, where: str) -> DomainError:
        names = ", ".join(self.attributes)
        return DomainError(
            "a value does not have one entry for each attribute",
            where=where,
            got=shorten(got),
            expected=f"({names}), or a table with these columns",
            remedy="write each value as a tuple, in the order of the attributes",
        )

    def _check_names(self, present: Sequence[str], where: str) -> None:
        missing = [name for name in self.attributes if name not in present]
        spare = [name for name in present if name not in self.attributes]
        if not missing and not spare:
            return
        names = listed(list(self.attributes))
        if missing:
            remedy = renaming(map(str, spare), missing, f"add a column {missing[0]}")
        else:
            remedy = f"keep the attributes alone, as in table[{list(self.attributes)!r}]"
        raise DomainError(
            f"there is no column {missing[0]}" if missing else f"{spare[0]} is no attribute",
            where=where,
            got=f"the columns {listed([str(name) for name in present])}",
            expected=f"the columns {names}",
            remedy=remedy,
        )

    def label_array(self, values: object) -> Array:
        """Return combinations as a structured array, with a field for each attribute.

        Parameters
        ----------
        values
            As in `columns`.

        Returns
        -------
        numpy.ndarray
            One entry for each value.
        """
        columns = self._value_columns(values)
        labels = np.empty(len(next(iter(columns.values()))), dtype=[(name, object) for name in columns])
        for name, column in columns.items():
            labels[name] = column
        return labels

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain.

        Parameters
        ----------
        values
            As in `columns`.

        Returns
        -------
        numpy.ndarray
            One position for each value.
        """
        return self._at_columns(self._value_columns(values))

    def _at_columns(self, columns: Mapping[str, Array]) -> Positions:
        return self.at_coordinates([own.find(columns[name]) for name, own in self.attributes_])

    def at_coordinates(self, places: Sequence[Positions]) -> Positions:
        """Return the positions of values from those on each attribute, -1 for combinations that are impossible.

        Parameters
        ----------
        places
            One array for each attribute, as `coordinates_of` returns them; -1 for what is not in the domain.

        Returns
        -------
        numpy.ndarray
            One position for each value.
        """
        inside = np.all([own >= 0 for own in places], axis=0)
        cells = np.ravel_multi_index([np.where(inside, own, 0) for own in places], self.sides)
        cells = np.where(inside, cells, -1)
        return cells if self._value_of_cell is None else self._value_of_cell[cells]

    def index(self, values: object) -> Positions:
        """Return the positions of values.

        Parameters
        ----------
        values
            As in `columns`; a single tuple is one value.

        Returns
        -------
        numpy.ndarray
            One position for each value.

        Raises
        ------
        DomainError
            If a value is not in the domain; the message names the attribute.
        """
        single = isinstance(values, tuple) and bool(values) and not isinstance(values[0], tuple | list | np.ndarray)
        columns = self._value_columns(values)
        for name, domain in self.attributes_:
            try:
                domain.index(columns[name])
            except DomainError as error:
                where = error.where.replace("values", f"values, attribute {name}", 1)
                raise DomainError(
                    error.what, where=where, got=error.got, expected=error.expected, remedy=error.remedy
                ) from None
        positions = self._at_columns(columns)
        if (positions < 0).any():
            place = int(np.argmax(positions < 0))
            got = tuple(plain(columns[name][place]) for name in self.attributes)
            raise DomainError(
                "a value is a combination that the domain calls impossible",
                where=f"values, position {place}",
                got=shorten(got),
                expected="a combination that no rule of `impossible` bars",
                remedy="correct the value, or leave the rule out of the domain",
            )
        return positions[0] if single else positions

    def title(self, position: int) -> str:
        """Return a value as tables and charts show it: the name and the value of each attribute."""
        places = self.coordinates_of(np.array([position]))
        parts = zip(self.attributes_, places, strict=True)
        return ", ".join(f"{name} {domain.title(int(own[0]))}" for (name, domain), own in parts)

    # -- distances -----------------------------------------------------------------------------------

    @property
    def unit(self) -> None:
        """Combinations have no unit."""
        return

    @property
    def diameter(self) -> float:
        """The number of attributes."""
        return float(len(self.attributes_))

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return the number of attributes in which values differ."""
        here, there = self.coordinates_of(rows), self.coordinates_of(columns)
        apart = [own[:, None] != other[None, :] for own, other in zip(here, there, strict=True)]
        return np.asarray(np.sum(apart, axis=0, dtype=np.float64))

    @property
    def least_distance(self) -> float:
        """1: different values differ in at least one attribute."""
        return 1.0

    # -- study files ---------------------------------------------------------------------------------

    def fields(self) -> dict[str, Any]:
        """Return the attributes, their order and the rules, as study files hold them.

        The rules are the same for the same possible combinations, however these were said.

        Returns
        -------
        dict
            What the study's table of the domain holds.
        """
        attributes = {name: {"kind": kebab(type(own).__name__), **own.fields()} for name, own in self.attributes_}
        rules = [{name: list(values) for name, values in rule} for rule in self.impossible_]
        return {"attributes": attributes, "order": list(attributes), "impossible": rules or None}

    def _impossible_mask(self, impossible: object) -> NDArray[np.bool_] | None:
        """Return which combinations are impossible; None where all are possible."""
        where = "Product(impossible=)"
        if isinstance(impossible, np.ndarray):
            if impossible.dtype != bool or impossible.shape != self.sides:
                raise DomainError(
                    "the mask of impossible combinations does not fit the attributes",
                    where=where,
                    got=f"an array of {impossible.dtype} with shape {impossible.shape}",
                    expected=f"bools with shape {self.sides}: an axis for each attribute, in order",
                    remedy="build it with np.zeros(product.sides, dtype=bool)",
                )
            mask = impossible
        elif isinstance(impossible, Mapping | str) or not isinstance(impossible, Iterable):
            raise DomainError(
                "impossible combinations must be a list",
                where=where,
                got=shorten(impossible),
                expected='a list such as [{"sex": "m", "pregnant": "yes"}]',
                remedy="wrap the rule in a list",
            )
        else:
            rules = [self._rule(rule, f"{where}, rule {place}") for place, rule in enumerate(impossible)]
            if not rules:
                return None
            mask = self._mask_of_rules(rules)
        left = int(mask.size - np.count_nonzero(mask))
        if left < 2:
            raise DomainError(
                "the rules leave nothing to estimate",
                where=where,
                got=f"{plural(left, 'combination')} that {'is' if left == 1 else 'are'} possible",
                expected="two possible combinations or more",
                remedy="a rule bars combinations that have all of its values: name more attributes, or fewer values",
            )
        return mask if left < mask.size else None

    def _rules_of_mask(self, mask: NDArray[np.bool_]) -> tuple[Rule, ...]:
        """Return a rule for each line of impossible combinations, over the attributes that matter.

        The rules follow from the mask alone, so that equal sets of combinations have equal rules.
        """
        axes = [axis for axis in range(mask.ndim) if (mask != mask.take([0], axis=axis)).any()]
        reduced = mask[tuple(slice(None) if axis in axes else 0 for axis in range(mask.ndim))]
        along = int(np.argmax(reduced.shape))  # one rule bars several values of this attribute
        lines = np.moveaxis(reduced, along, -1)
        rules = []
        for at in np.argwhere(lines.any(axis=-1)):
            chosen: list[Positions] = [np.array([place]) for place in at]
            chosen.insert(along, np.flatnonzero(lines[tuple(at)]))
            named = zip(axes, chosen, strict=True)
            rules.append(tuple(self._labels_of(axis, own) for axis, own in named if own.size < self.sides[axis]))
        return tuple(rules)

    def _labels_of(self, place: int, positions: Positions) -> tuple[str, tuple[Hashable, ...]]:
        name, domain = self.attributes_[place]
        return name, tuple(plain(label) for label in domain.labels[positions])

    def _rule(self, rule: object, where: str) -> Rule:
        if not isinstance(rule, Mapping) or not rule:
            raise DomainError(
                "attributes and their values are not named",
                where=where,
                got=shorten(rule),
                expected='a dictionary such as {"sex": "m", "pregnant": "yes"}',
                remedy="write a dictionary from attributes to a value or a list of values",
            )
        kept = []
        for name, values in rule.items():
            self._check_attribute(name, where)
            chosen = list(values) if isinstance(values, list | tuple | np.ndarray) else [values]
            if not chosen or any(isinstance(value, list | tuple | Mapping) for value in chosen):
                raise DomainError(
                    "an attribute has no value" if not chosen else "a list holds lists",
                    where=f"{where}, attribute {name}",
                    got=shorten(values),
                    expected="a value, or a list of values",
                    remedy="leave the attribute out for any value of it",
                )
            try:
                self.attributes[name].index(chosen)
            except DomainError as error:
                place = f"{where}, attribute {name}"
                raise DomainError(
                    error.what, where=place, got=error.got, expected=error.expected, remedy=error.remedy
                ) from None
            kept.append((name, tuple(plain(value) for value in chosen)))
        return tuple(kept)

    def describe(self) -> str:
        """Return one line for messages."""
        names = listed([f"{name} ({plural(len(domain), 'value')})" for name, domain in self.attributes_])
        return f"a combination of {names}"


def check_named_once(
    first: Mapping[str, object], second: Mapping[str, object], where: str, error: type[HubbubError]
) -> None:
    """Refuse attributes that are there in a dictionary and as keywords: one of the two would be lost."""
    twice = [name for name in first if name in second]
    if twice:
        raise error(
            f"{twice[0]} is there twice",
            where=where,
            got=f"{listed(twice)} in a dictionary and as {'keywords' if len(twice) > 1 else 'a keyword'}",
            expected="each attribute once",
            remedy="leave one of the two out",
        )


def _mapping(attributes: object) -> dict[str, Domain]:
    if attributes is None or isinstance(attributes, Mapping):
        return dict(attributes or {})
    raise DomainError(
        "attributes must have names",
        where="Product(attributes)",
        got=shorten(attributes),
        expected="keywords such as age=hb.Integers(18, 99), or a dictionary from names to domains",
        remedy="name each domain",
    )


def _checked(attributes: Mapping[str, Domain]) -> tuple[tuple[str, Domain], ...]:
    where = "Product(...)"
    if len(attributes) < 2:
        raise DomainError(
            "a product needs at least two attributes",
            where=where,
            got=listed(list(attributes)) if attributes else "nothing",
            expected="two or more, such as age=hb.Integers(18, 99), sex=hb.Categories(['f', 'm'])",
            remedy="use the domain itself where there is one attribute",
        )
    for name, domain in attributes.items():
        if not isinstance(name, str) or not MECHANISM_NAME.fullmatch(name):
            expected = "up to 64 letters, digits, - and _, a letter or digit first"
            remedy = "rename it: columns of reports are called output.NAME"
            what = "the name of an attribute has characters that are not allowed"
            raise DomainError(what, where=where, got=shorten(name), expected=expected, remedy=remedy)
        if name in RESERVED_NAMES:
            what = f"an attribute cannot be called {name}"
            expected = "a name other than " + listed(RESERVED_NAMES, word="or")
            remedy = "rename it: the name has another meaning, in tables or as a keyword"
            raise DomainError(what, where=where, got=shorten(name), expected=expected, remedy=remedy)
        if not isinstance(domain, Domain) or isinstance(domain, Product):
            expected, remedy = "Categories, Integers, Bins or Grid", "give each attribute a domain of its own"
            what = f"{name} is a product itself" if isinstance(domain, Product) else f"{name} is not a domain"
            raise DomainError(what, where=where, got=shorten(domain), expected=expected, remedy=remedy)
    return tuple(attributes.items())


def _names_of(values: object) -> list[str] | None:
    """Return the names of a table's columns; None where values are not a table."""
    if isinstance(values, np.ndarray):
        return None if values.dtype.names is None else list(values.dtype.names)
    if isinstance(values, Mapping):
        return [str(name) for name in values]
    columns = getattr(values, "columns", None)
    return None if columns is None or callable(columns) else [str(name) for name in columns]
