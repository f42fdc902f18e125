"""Mechanisms given by a table: regions of a map, or any stochastic matrix."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from hubbub.channels import Channel, SparseChannel
from hubbub.client import MAX_PROVENANCE_LETTERS, is_provenance
from hubbub.core import validation
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_array, as_floats, frozen, plain, read_alike
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import Domain
from hubbub.mechanisms.base import Mechanism, check_rows
from hubbub.mechanisms.claimed_ratios import claimed_epsilon
from hubbub.mechanisms.parameters import DOMAIN_REMEDY, check_domain
from hubbub.sampling import FixedLaw, RandomSource


@dataclass(frozen=True)
class Cloaking(Mechanism):
    """Report the region of the value, without any randomness.

    P(region | x) is 1 for the region of x and 0 for all others.

    Guarantee: none in terms of epsilon (it is infinite). A report gives the region away with certainty, and says
    nothing about which of the region's values it is.

    Parameters
    ----------
    domain
        The values: any domain.
    regions
        The region of each value, as a mapping from values to regions or as a list in the order of the domain's labels.
        Regions are texts or whole numbers.

    Raises
    ------
    MechanismError
        If a value has no region, or a label is not a text or whole number.

    Examples
    --------
    >>> import hubbub as hb
    >>> half = hb.Cloaking(hb.Integers(0, 3), ["low", "low", "high", "high"])
    >>> half.privatize([0, 3])
    array(['low', 'high'], dtype=object)
    """

    domain: Domain
    regions: tuple[Hashable, ...]

    def __init__(self, domain: Domain, regions: Mapping[Hashable, Hashable] | Sequence[Hashable]) -> None:
        check_domain(domain, Domain, "Cloaking", DOMAIN_REMEDY)
        listed = _listed_regions(domain, regions)
        where = "Cloaking(regions=)"
        for region in listed:
            if isinstance(region, bool) or not isinstance(region, str | int) or region == "":
                what, remedy = "a region's label is neither a string nor a whole number", "name the regions"
                expected = "texts that are not empty, or whole numbers"
                raise MechanismError(what, where=where, got=shorten(region), expected=expected, remedy=remedy)
        distinct = list(dict.fromkeys(listed))
        alike = read_alike(distinct)
        if alike is not None:
            what = "two regions look the same when written down"
            got = f"{distinct[alike[0]]!r} and {distinct[alike[1]]!r}"
            expected, remedy = "labels that differ when written down", "use texts, or numbers, for all regions"
            raise MechanismError(what, where=where, got=got, expected=expected, remedy=remedy)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "regions", tuple(listed))

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # a fixed fact here, a parameter elsewhere
        """Infinite."""
        return math.inf

    @property
    def outputs(self) -> Array:
        """The regions, in order of first appearance."""
        distinct = list(dict.fromkeys(self.regions))
        array = np.empty(len(distinct), dtype=object)
        array[:] = distinct
        return array

    def __repr__(self) -> str:
        return f"Cloaking({self.domain!r}, {len(self.outputs)} regions)"

    @cached_property
    def _places(self) -> Positions:
        lookup = {region: place for place, region in enumerate(dict.fromkeys(self.regions))}
        return np.array([lookup[region] for region in self.regions])

    def matrix(self) -> Floats:
        """Return a table with a 1 for the region of each value."""
        table: Floats = (self._places[:, None] == np.arange(len(self.outputs))).astype(np.float64)
        return table

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return a sparse matrix where a full one would be large: each value has one region."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        places = self._places if among is None else self._places[among]
        regions = sparse.csr_array(
            (np.ones(places.size), (np.arange(places.size), places)), shape=(places.size, len(self.outputs))
        )
        return SparseChannel(sparse.csr_array(regions[:, codes]))

    @cached_property
    def law(self) -> FixedLaw:
        """The region of each value."""
        return FixedLaw(self._places)

    def draw(self, positions: Positions, source: RandomSource) -> Codes:  # noqa: ARG002
        """Look the region up; no randomness is used."""
        return self._places[positions]


def _listed_regions(domain: Domain, regions: object) -> list[Hashable]:
    """Return the region of each value, in the order of the domain."""

    def wrong(what: str, got: str) -> MechanismError:
        expected = f"a region for each of the {len(domain)} values"
        remedy = "map each value to its region, or list the regions in the order of domain.labels"
        return MechanismError(what, where="Cloaking(regions=)", got=got, expected=expected, remedy=remedy)

    if isinstance(regions, Mapping):
        # Of a domain of millions only as many labels are looked at as it takes to find one without a region.
        labels = domain.labels[: len(regions) + 1].tolist()
        missing = [label for label in labels if label not in regions]
        if missing:
            raise wrong("every value needs a region", f"no region for {shorten(missing)}")
        if len(regions) != len(domain):
            known = set(labels)
            extra = [value for value in regions if value not in known]
            raise wrong("a region is given for something that is not a value", f"a region for {shorten(extra)}")
        return [regions[label] for label in labels]
    if isinstance(regions, str | bytes) or not isinstance(regions, Iterable):
        raise wrong("regions must be a list or a mapping", shorten(regions))
    listed: list[Hashable] = [plain(region) for region in regions]
    if len(listed) != len(domain):
        raise wrong("every value needs a region", f"{len(listed)} regions")
    return listed


@dataclass(frozen=True, eq=False)
class Matrix(Mechanism):
    """Any stochastic matrix: inputs are rows, `outputs` label the columns.

    Rows must sum to 1 within 1e-9, and are then divided by their sum.

    Guarantee: `epsilon` is the largest log-ratio within a column, rounded up in its last digits; infinite if only some
    values can give an output. With ``metric=True`` it is the largest log-ratio of two values per unit of their
    distance: the probabilities of an output under two values at distance d differ by a factor of at most
    exp(epsilon d). Computing that takes values^2 x outputs operations, on a line values x outputs.

    Parameters
    ----------
    domain
        The values: any domain.
    outputs
        The labels of the columns: texts or numbers that differ when written down.
    probabilities
        P(output | value), a row for each value and a column for each output.
    metric
        Whether epsilon is per unit of the domain's distance.
    origin
        Where the table is from, in a line for people; empty if nothing is said. Study files hold it, audits and pages
        show it. It changes neither probabilities nor promises, so that matrices that differ in it alone are equal,
        their reports merge, and studies with them have one fingerprint.

    Raises
    ------
    MechanismError
        If the shape does not fit, a row is not a distribution, two outputs read alike, `metric` is neither True nor
        False, or `origin` is not one line of text.

    Examples
    --------
    >>> import hubbub as hb
    >>> rows = [[2/3, 1/3], [1/2, 1/2], [1/3, 2/3]]
    >>> table = hb.Matrix(hb.Integers(1, 3), ["low", "high"], rows)
    >>> round(table.epsilon, 6), table.privatize([1, 3], rng=5).tolist()
    (0.693147, ['high', 'high'])

    Neighbours differ by a factor of at most 3/2, and log(3/2) is the epsilon per unit:

    >>> near = hb.Matrix(hb.Integers(1, 3), ["low", "high"], rows, metric=True, origin="by hand")
    >>> round(near.epsilon, 6), near
    (0.405465, Matrix(domain=Integers(low=1, high=3), metric=True, origin='by hand'))
    """

    domain: Domain
    labels: Array = field(repr=False)
    probabilities: Floats = field(repr=False)
    metric: bool = False  # type: ignore[misc]  # a fixed fact elsewhere, chosen here
    origin: str = ""
    _given: Floats | None = field(default=None, init=False, repr=False)  # where it is needed: see `rows_to_write`

    def __init__(
        self,
        domain: Domain,
        outputs: Sequence[Hashable] | Array,
        probabilities: ArrayLike,
        *,
        metric: bool = False,
        origin: str = "",
    ) -> None:
        check_domain(domain, Domain, "Matrix", DOMAIN_REMEDY)
        labels = _output_labels(outputs)
        where = "Matrix(probabilities=)"
        matrix = as_floats(probabilities)
        if matrix is None:
            got, expected = shorten(probabilities), "rows of numbers, all of one length"
            what, remedy = "not a matrix of numbers", "give one row for each value of the domain"
            raise MechanismError(what, where=where, got=got, expected=expected, remedy=remedy)
        if matrix.shape != (len(domain), labels.size):
            got, expected = f"shape {matrix.shape}", f"{len(domain)} values x {labels.size} outputs"
            remedy = "inputs are rows and outputs are columns: transpose it if they are the other way round"
            what = "the matrix has the wrong shape"
            raise MechanismError(what, where=where, got=got, expected=expected, remedy=remedy)
        check_rows(matrix, where)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "labels", frozen(labels.copy()))
        given = np.ascontiguousarray(matrix)  # in rows, as files have it: sums do not depend on the layout
        matrix = _divided(given)
        object.__setattr__(self, "probabilities", frozen(matrix))
        object.__setattr__(self, "metric", validation.boolean(metric, "metric", "Matrix", error=MechanismError))
        object.__setattr__(self, "origin", _checked_origin(origin))
        if not (_divided(matrix) == matrix).all():
            object.__setattr__(self, "_given", frozen(given))

    @property
    def outputs(self) -> Array:
        """The labels of the columns."""
        return self.labels

    @property
    def rows_to_write(self) -> Floats:
        """Rows from which another process builds the same matrix, byte for byte: what study files hold.

        Divided by its rounded sum, a row may have a sum that is not 1, and would be another row if it were divided once
        more. Then these are the rows that were given; otherwise the probabilities themselves.
        """
        return self.probabilities if self._given is None else self._given

    def __repr__(self) -> str:
        metric = ", metric=True" if self.metric else ""
        origin = f", origin={self.origin!r}" if self.origin else ""
        return f"Matrix(domain={self.domain!r}{metric}{origin})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matrix) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        labels = self.labels.tolist()
        types = tuple(type(label) for label in labels)
        return self.domain, tuple(labels), types, self.probabilities.tobytes(), self.metric

    def defining_state(self) -> dict[str, Any]:
        """Return what matrices that differ differ in; `metric` where it is True, so that keys of others stay."""
        state = {"domain": self.domain, "labels": self.labels, "probabilities": self.probabilities}
        return {**state, "metric": True} if self.metric else state

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the matrix
        """The largest log-ratio, per unit of distance if `metric`, rounded up: a claim that real reports keep."""
        return claimed_epsilon(self.probabilities, self.domain, metric=self.metric)

    def matrix(self) -> Floats:
        """Return the probabilities."""
        return self.probabilities


def _divided(rows: Floats) -> Floats:
    """Return rows divided by their sums; -0.0 becomes 0.0, so that equal entries have equal bytes."""
    divided: Floats = rows / rows.sum(axis=1, keepdims=True) + 0.0
    return divided


def _checked_origin(origin: object) -> str:
    if isinstance(origin, str) and is_provenance(origin):
        return origin
    expected = f"one line of text, at most {MAX_PROVENANCE_LETTERS:,} characters"
    remedy = "leave it out, or say in a few words where the table is from"
    raise validation.wrong(origin, "origin", "Matrix", expected, remedy=remedy, error=MechanismError)


def _output_labels(outputs: object) -> Array:
    where = "Matrix(outputs=)"
    if isinstance(outputs, str | bytes | Mapping) or not isinstance(outputs, Iterable):
        what, expected = "outputs must be a list of labels", "one label for each column"
        remedy = "wrap the labels in a list"
        raise MechanismError(what, where=where, got=shorten(outputs), expected=expected, remedy=remedy)
    listed = [plain(label) for label in outputs]
    for position, label in enumerate(listed):
        if isinstance(label, bool) or not isinstance(label, str | int | float) or label != label or label == "":
            where = f"{where}, position {position}"
            what, expected = (
                "an output's label is neither a string nor a number",
                "texts that are not empty, or numbers",
            )
            raise MechanismError(what, where=where, got=shorten(label), expected=expected, remedy="name the outputs")
    alike = read_alike(listed) or _equal(listed)
    if alike is not None:
        where, got = f"{where}, position {alike[1]}", f"{listed[alike[0]]!r} and {listed[alike[1]]!r}"
        expected, remedy = "labels that differ when written down", "merge equal outputs by adding their columns"
        raise MechanismError("an output is listed twice", where=where, got=got, expected=expected, remedy=remedy)
    return outputs if isinstance(outputs, np.ndarray) else as_array(listed)


def _equal(labels: Sequence[Hashable]) -> tuple[int, int] | None:
    """Return the positions of two labels that are equal (1 and 1.0), None where there are none."""
    first: dict[Hashable, int] = {}
    for position, label in enumerate(labels):
        if first.setdefault(label, position) != position:
            return first[label], position
    return None
