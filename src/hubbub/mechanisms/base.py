"""The mechanism protocol: what hubbub needs to know of an obfuscation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from hubbub.channels import Channel, DenseChannel, SparseChannel, check_entries, prefers_matrix
from hubbub.channels.sparse import MAX_SPARSE_DENSITY
from hubbub.client import MAX_TABLE_CELLS
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_array, as_floats
from hubbub.core.errors import DomainError, HubbubError, MechanismError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.validation import whole
from hubbub.domains import Domain
from hubbub.mechanisms.mean_scores import MAX_SOLVED_ENTRIES, Score, solved_score
from hubbub.mechanisms.output_spaces import LabelOutputs, OutputSpace, value_outputs
from hubbub.sampling import Law, Randomness, RandomSource, choose_rows, source_of
from hubbub.sampling.weight_tables import table_of_floats


class Mechanism(Portable, ABC):
    """A known conditional distribution P(output | value) over a domain.

    To add a mechanism, subclass this one, best as a frozen dataclass, and define `domain`, `epsilon`, `outputs` and
    `matrix`. Everything else follows from these. Override it where a closed form is better:

    * `encoded_channel` where a structure is faster than a dense matrix,
    * `log_columns` where the matrix would be too wide or underflow,
    * `law` where real reports need more exact probabilities than the floats of the matrix,
    * `draw` where simulating by rows of the matrix is too slow,
    * `output_space` where outputs are not a short list of labels,
    * `mean_score` where an unbiased mean has a closed form,
    * `joint_log_columns`, `spent` and `shared_noise` where outputs of one user are not independent given the value.

    Two mechanisms are the same if they compare equal; reports of equal mechanisms are merged.

    Attributes
    ----------
    domain
        The values.
    epsilon
        The privacy guarantee: plain, or per unit of distance if `metric`.
    metric
        Whether epsilon is per unit of distance.
    full_support
        Whether every value can give every output.
    means_only
        Whether outputs tell nothing but the mean of the values.

    Examples
    --------
    People say their own number or the one after it, by a coin:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import hubbub as hb
    >>> @dataclass(frozen=True)
    ... class OrTheNext(hb.Mechanism):
    ...     domain: hb.Integers
    ...     epsilon: float = float("inf")
    ...
    ...     @property
    ...     def outputs(self):
    ...         return np.arange(self.domain.low, self.domain.high + 2)
    ...
    ...     def matrix(self):
    ...         steps = self.outputs - self.domain.labels[:, None]
    ...         return np.where((steps == 0) | (steps == 1), 0.5, 0.0)
    >>> coin = OrTheNext(hb.Integers(1, 3))
    >>> coin.privatize([1, 2, 3], rng=1)
    array([2, 3, 3])
    >>> reports = hb.Reports.from_counts(coin, {1: 40, 2: 60, 3: 40, 4: 20})
    >>> hb.estimate(reports, method="mle").probabilities.round(3)
    array([0.5 , 0.25, 0.25])
    """

    domain: Domain
    epsilon: float
    metric: ClassVar[bool] = False  # is epsilon per unit of distance (True), or plain (False)?
    full_support: ClassVar[bool] = False  # can every value give every output?
    means_only: ClassVar[bool] = False  # do all distributions with one mean give the same outputs?

    @property
    @abstractmethod
    def outputs(self) -> Array | None:
        """All outputs, in the order of `matrix`'s columns; None where they cannot be listed."""

    @abstractmethod
    def matrix(self) -> Floats:
        """Return P(output | value), values by outputs; every row sums to 1.

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each of `outputs`.

        Raises
        ------
        MechanismError
            If the outputs are too many to be listed.
        """

    @cached_property
    def output_space(self) -> OutputSpace:
        """How outputs are checked, encoded and written."""
        labels = self._listed()
        if labels.ndim != 1:
            raise _no_labels(type(self).__name__, labels.tolist())
        return LabelOutputs(labels, type(self).__name__)

    @property
    def answers_in_domain(self) -> bool:
        """Whether the outputs are the values of the domain."""
        if self.outputs is None:
            return False
        outputs, labels = as_array(self.outputs), self.domain.labels
        return outputs.shape == labels.shape and bool((outputs == labels).all())

    @property
    def sends_places(self) -> bool:
        """Whether an output is a place on a grid, so that reports may come as coordinates."""
        return self.domain.grid is not None and self.answers_in_domain

    def codes_at(self, columns: Positions, rows: Positions) -> Codes:
        """Return the encoded outputs that lie in cells of the infinite lattice; -1 where none does.

        Only for mechanisms that send places. Noise that carries an output beyond the grid is the planar mechanisms'
        business: any other answers with a cell of the grid, or it was not the one that answered.

        Parameters
        ----------
        columns, rows
            Where the cells lie; negative, or beyond the last, outside the grid.

        Returns
        -------
        numpy.ndarray
            Encoded outputs, or -1.
        """
        grid = self.domain.grid
        assert grid is not None  # noqa: S101  # see `sends_places`
        inside = (columns >= 0) & (columns < grid.columns) & (rows >= 0) & (rows < grid.rows)
        return grid.find(np.where(inside, rows * grid.columns + columns, -1))

    def privatize(self, values: object, *, rng: Randomness = None) -> Array:
        """Return one output for each value.

        Parameters
        ----------
        values
            Labels of the domain, one for each user.
        rng
            None for real reports, drawn from the exact `law` with the operating system's randomness; a NumPy generator
            or a seed to simulate.

        Returns
        -------
        numpy.ndarray
            One output for each user.

        Raises
        ------
        DomainError
            If a value is not in the domain.
        MechanismError
            If `rng` is not a source of randomness, or the exact probabilities would be too large a table.
        """
        return self.output_space.decode(self.report(self._positions(values, "privatize"), source_of(rng)))

    def report(self, positions: Positions, source: RandomSource) -> Codes:
        """Return one encoded output for each value: by the exact law, or by floats to simulate.

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
        return self.law.draw(positions, source) if source.secure else self.draw(positions, source)

    @cached_property
    def law(self) -> Law:
        """The exact distribution of real reports, in whole numbers: by default, that of the matrix's floats."""
        return table_of_floats(check_table(self, len(self.domain), len(self._listed())).checked_matrix())

    def channel(self, outputs: object) -> Channel:
        """Return the likelihood of outputs, one pattern each, as an operator over the domain.

        Parameters
        ----------
        outputs
            Outputs of this mechanism, as `privatize` returns them.

        Returns
        -------
        Channel
            P(output | value) for these outputs. ``channel.log_dense()`` is the matrix of its logarithms.

        Raises
        ------
        OutputError
            If the mechanism can never send one of them.
        """
        return self.encoded_channel(self.output_space.encode(outputs))

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return the likelihood of encoded outputs as an operator.

        Parameters
        ----------
        codes
            Encoded outputs, as `output_space` makes them.
        among
            The positions of the values to keep; None for all.

        Returns
        -------
        Channel
            P(output | value), values by outputs.
        """
        values = len(self.domain) if among is None else among.size
        # Where log_columns is overridden, the matrix may be too large to build.
        builds_matrix = type(self).log_columns is Mechanism.log_columns
        if builds_matrix and not self.full_support and self.is_large(codes, among):
            matrix = self.checked_matrix()
            observed = sparse.csr_array(matrix[:, codes] if among is None else matrix[np.ix_(among, codes)])
            if observed.nnz <= MAX_SPARSE_DENSITY * values * len(codes):
                return SparseChannel(observed)
        return DenseChannel.from_logs(values, len(codes), lambda part: self.log_columns(codes[part], among))

    def is_large(self, codes: Codes, among: Positions | None) -> bool:
        """Whether the likelihood of these outputs has so many entries that structure pays.

        Parameters
        ----------
        codes
            Encoded outputs.
        among
            The positions of the values to keep; None for all.

        Returns
        -------
        bool
            False where a matrix is as quick.
        """
        return not prefers_matrix((len(self.domain) if among is None else among.size) * len(codes))

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
        matrix = self.checked_matrix()
        with np.errstate(divide="ignore"):
            return np.log(matrix[:, codes] if among is None else matrix[np.ix_(among, codes)])

    def joint_log_columns(self, codes: Codes, repeats: sparse.csr_array, among: Positions | None = None) -> Floats:
        """Return log P(all outputs of a user | value).

        Outputs are independent given the value. A mechanism whose outputs are not overrides this, which makes it one
        that `remembers`.

        Parameters
        ----------
        codes
            Encoded outputs.
        repeats
            Patterns by outputs: how often each of the encoded outputs occurs in a pattern.
        among
            The positions of the values to keep; None for all.

        Returns
        -------
        numpy.ndarray
            Values by patterns.
        """
        return np.asarray(repeats @ self.log_columns(codes, among).T).T

    @property
    def remembers(self) -> bool:
        """Whether a user's outputs depend on each other given the value, so that their likelihoods do not multiply."""
        return type(self).joint_log_columns is not Mechanism.joint_log_columns

    @property
    def shared_noise(self) -> float:
        """The part of an output's noise, as a variance, that all outputs of one user have in common.

        0 where outputs are independent given the value; 1, the most cautious, where they are not.
        """
        return 1.0 if self.remembers else 0.0

    def spent(self, reports: int) -> float:
        """Return the epsilon that a user spends with several outputs of this mechanism: epsilons add up.

        Parameters
        ----------
        reports
            The number of outputs about one value.

        Returns
        -------
        float
            Plain epsilon, or epsilon per unit of distance if `metric`.

        Raises
        ------
        MechanismError
            If the number of outputs is not a whole number from 0.
        """
        where = f"{type(self).__name__}.spent"
        return whole(reports, "reports", where, at_least=0, error=MechanismError) * self.epsilon

    def mean_score(self) -> Score | None:
        """Return a score of encoded outputs whose expectation is the value itself, for values on a line.

        By default the equations of the matrix are solved. Override it where there is a closed form.

        Returns
        -------
        callable or None
            From an array of encoded outputs to one number for each, in the unit of the line; None if the values have no
            place on a line, no score is unbiased for every value, or the matrix is too large to solve.
        """
        places, outputs = self.domain.places, self.outputs
        if places is None or outputs is None or len(places) * len(outputs) > MAX_SOLVED_ENTRIES:
            return None
        if self.output_space.size != len(outputs):
            return None  # other outputs are possible, too
        return solved_score(self.checked_matrix(), places)

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
        rows, row_of = np.unique(positions, return_inverse=True)  # only the rows that are needed
        probabilities = np.exp(self.log_columns(np.arange(len(self._listed())), rows))
        return choose_rows(probabilities, row_of.ravel(), source)

    def checked_matrix(self) -> Floats:
        """Return what `matrix` does, or say where that is not a stochastic matrix over the domain and the outputs.

        Returns
        -------
        numpy.ndarray
            Values by outputs.

        Raises
        ------
        MechanismError
            If the shape does not fit, a row is not a distribution, or `matrix` fails.
        """
        name = type(self).__name__
        with _in_own_words(f"{name}.matrix()"):
            given = self.matrix()
        is_ready = isinstance(given, np.ndarray) and given.dtype == np.float64
        matrix = given if is_ready else as_floats(given)
        if matrix is None:
            what, got, expected = "the matrix is not a table of numbers", shorten(given), "a table of probabilities"
            remedy = "return a NumPy array of floats: values are rows, outputs are columns"
            raise MechanismError(what, where=f"{name}.matrix()", got=got, expected=expected, remedy=remedy)
        shape = (len(self.domain), len(self._listed()))
        if matrix.shape != shape:
            expected = f"{shape[0]} values x {shape[1]} outputs"
            what, remedy = "the matrix has the wrong shape", "return one row for each value, one column for each output"
            got = f"shape {matrix.shape}"
            raise MechanismError(what, where=f"{name}.matrix()", got=got, expected=expected, remedy=remedy)
        check_rows(matrix, f"{name}.matrix()")
        return matrix

    def _positions(self, values: object, method: str) -> Positions:
        """Return the positions of one value for each user."""
        positions = np.atleast_1d(self.domain.index(values))
        if positions.ndim != 1:
            where, got = f"{type(self).__name__}.{method}(values)", f"shape {positions.shape}"
            what, expected, remedy = "values must be a flat list", "one value for each user", "flatten the array"
            raise DomainError(what, where=where, got=got, expected=expected, remedy=remedy)
        return positions

    def _listed(self) -> Array:
        name = type(self).__name__
        with _in_own_words(f"{name}.outputs"):
            outputs = self.outputs
        if outputs is None:
            what, got = "the outputs cannot be listed", "a mechanism with too many outputs"
            expected, remedy = "a finite, short list of outputs", "override output_space, encoded_channel, law and draw"
            raise MechanismError(what, where=name, got=got, expected=expected, remedy=remedy)
        labels = as_array(outputs)
        if labels.ndim == 0:
            raise _no_labels(name, outputs)
        try:
            is_repeated = labels.ndim == 1 and len(set(labels.tolist())) < labels.size
        except TypeError:  # lists and tables cannot be told apart by a look-up
            raise _no_labels(name, outputs) from None
        if is_repeated:
            where, got = f"{name}.outputs", shorten(labels.tolist())
            what, remedy = "an output is listed twice", "merge equal outputs by adding their columns"
            raise MechanismError(what, where=where, got=got, expected="distinct labels", remedy=remedy)
        return labels


@contextmanager
def _in_own_words(where: str) -> Iterator[None]:
    """Name the class in whatever its own code raises."""
    try:
        yield
    except (HubbubError, MemoryError):
        raise
    except Exception as cause:
        raise MechanismError(
            "the class of the mechanism fails",
            where=where,
            got=f"{type(cause).__name__}: {shorten(str(cause), 200)}",
            expected="what the class says of its domain and its fields",
            remedy="correct the fields, or ask whoever wrote the class",
        ) from cause


def _no_labels(name: str, outputs: object) -> MechanismError:
    return MechanismError(
        "the outputs are no list of labels",
        where=f"{name}.outputs",
        got=shorten(outputs),
        expected="texts or numbers, in an array or a list",
        remedy="return one label for each column of the matrix",
    )


class InDomainMechanism(Mechanism):
    """A mechanism that answers with values of the domain, and whose probabilities have a closed form."""

    full_support: ClassVar[bool] = True

    @property
    def outputs(self) -> Array | None:
        """The values of the domain."""
        return self.domain.labels

    @cached_property
    def output_space(self) -> OutputSpace:
        """The values of the domain."""
        return value_outputs(self.domain, type(self).__name__)

    def matrix(self) -> Floats:
        """Return P(z | x).

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        ReportsError
            If the matrix does not fit in memory.
        """
        check_entries(len(self.domain), len(self.domain))
        return np.exp(self.log_columns(np.arange(len(self.domain))))

    @abstractmethod
    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return log P(output | value)."""


def check_rows(matrix: Floats, where: str) -> None:
    """Refuse rows that are not distributions (within 1e-9)."""
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        row, column = np.argwhere(~np.isfinite(matrix) | (matrix < 0))[0]
        where, entry = f"{where}, row {row}, column {column}", float(matrix[row, column])
        what, expected = "an entry is not a probability", "finite and at least 0"
        raise MechanismError(what, where=where, got=entry, expected=expected, remedy="correct the entry")
    with np.errstate(over="ignore"):  # entries far above 1 may add up to infinity
        sums = matrix.sum(axis=1)
    if (np.abs(sums - 1) > 1e-9).any():
        row = int(np.argmax(np.abs(sums - 1)))
        where, got = f"{where}, row {row}", f"sum {sums[row]:.12g}"
        what, expected = "probabilities do not sum to 1", "1 in every row: inputs are rows, outputs are columns"
        remedy = "divide each row by its sum, or transpose the matrix if its columns sum to 1"
        raise MechanismError(what, where=where, got=got, expected=expected, remedy=remedy)


def check_table(mechanism: Mechanism, values: int, outputs: int) -> Mechanism:
    """Refuse a table of exact probabilities that would not fit."""
    if values * outputs > MAX_TABLE_CELLS:
        what, where = "the table of exact probabilities is too large", f"{type(mechanism).__name__}.privatize"
        got, expected = f"{values:,} values x {outputs:,} outputs", f"at most {MAX_TABLE_CELLS:,} probabilities"
        remedy = (
            "use fewer values, or randomized response or geometric noise, which need no table; to simulate, pass rng="
        )
        raise MechanismError(what, where=where, got=got, expected=expected, remedy=remedy)
    return mechanism


def matrix_too_wide(mechanism: str, count: str) -> MechanismError:
    """Return the error for a matrix that is too wide to be written down."""
    return MechanismError(
        "the full matrix is too large",
        where=f"{mechanism}.matrix()",
        got=f"{count} outputs",
        expected="a matrix that is small",
        remedy="use channel(outputs): it holds the observed outputs only",
    )
