"""Likelihoods that depend on the displacement alone, on a grid or a line: convolutions, by FFT.

Outputs at the border of a grid are different: they collect all draws beyond it (`fft_sums`).

An FFT's error is relative to the largest sums. Patterns of very different likelihoods are therefore convolved apart
(`shift_invariant_channel`), and probabilities that are too small beside the largest are added up again one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from hubbub.channels.base import MAX_MATRIX_ENTRIES, Channel, LogColumns, prefers_matrix
from hubbub.channels.composite import ConcatenatedChannel, reindexed
from hubbub.channels.dense import DenseChannel
from hubbub.channels.lattice_window import LatticeWindow, block_of, strips
from hubbub.channels.rounding import UNDERFLOW_NATS, RoundingBound, entry_error, gamma
from hubbub.core.arrays import Floats, Positions, frozen

if TYPE_CHECKING:
    from hubbub.channels.fft_sums import WindowSums  # loads the FFT, which takes its time

MIN_FFT_SHARE = 1e-8  # of the largest possible sum: above it, at least seven digits of an FFT are right
PRECONDITIONED_MASS = 0.6  # share of the noise that the preconditioner covers
MAX_NEAR_PAIRS = 5e6  # of values near each other, in the preconditioner
MAX_LOG_RANGE = math.log(1e4)  # of likelihoods that are convolved together
DENSE_ENTRIES_PER_CELL = 160.0  # that a matrix multiplies in the time a convolution needs for one cell of the window
MAX_WINDOW_CELLS = 50_000_000  # of one convolution
MAX_PLAIN_PRODUCTS = 4e9  # added one by one for a certificate: takes some seconds


class ConvolutionChannel(Channel):
    """A channel by displacement on a lattice, times a factor for each value and each pattern."""

    max_written_entries = 4_000_000  # a convolution is quicker beyond

    def __init__(self, lattice: LatticeWindow, log_scale: Floats, log_columns: LogColumns) -> None:
        self.values, self.patterns = lattice.values.size, lattice.patterns
        self.log_scale = frozen(log_scale)
        self.lattice = lattice
        self._log_columns = log_columns
        # Rows, then columns, as cells are numbered; relative to the largest, which may be below the smallest float.
        offset = float(lattice.log_table.max())
        self._table = np.exp(lattice.log_table.T - offset)
        self._row = None if lattice.log_rows is None else np.exp(lattice.log_rows)
        self._scale = np.exp(log_scale - offset)

    @cached_property
    def _kernel(self) -> WindowSums:
        from hubbub.channels.fft_sums import WindowSums

        return WindowSums(self._table, self.lattice)

    @cached_property
    def _bounds(self) -> Floats:
        """The largest sum that a theta of norm 1 can give each pattern: what an FFT's error is relative to."""
        bounds: Floats = np.asarray(self._kernel.bounds.ravel()[self.lattice.cells], dtype=np.float64)
        if self.lattice.owners is None:
            return bounds
        collected: Floats = _totals(bounds[None, :], self.lattice.owners, self.patterns)[0]
        return collected

    @cached_property
    def _squared(self) -> WindowSums:
        from hubbub.channels.fft_sums import WindowSums

        # A pattern that collects several cells would need the square of their sum: its cells' squares will do.
        return WindowSums(self._table**2, self.lattice)

    @cached_property
    def _strips(self) -> tuple[Positions, Positions]:
        edges = self.lattice.edges
        return strips(self.lattice.columns, edges=edges), strips(self.lattice.rows, edges=edges)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        lattice = self.lattice
        own_row, own_column = np.divmod(lattice.values[positions], lattice.columns)
        row, column = np.divmod(lattice.cells, lattice.columns)
        across, along = self._strips
        chosen: Floats = self._table[
            along[own_row[:, None], row[None, :]], across[own_column[:, None], column[None, :]]
        ]
        if lattice.owners is not None:
            chosen = _totals(chosen, lattice.owners, self.patterns)
        if self._row is not None:
            chosen = chosen * self._row[positions, None]
        return chosen / self._scale

    def part(self, positions: Positions) -> Channel:
        """Return the same convolution for fewer values; a matrix where that is quicker."""
        if positions.size * self.patterns <= self.max_written_entries:
            return super().part(positions)
        rows = None if self.lattice.log_rows is None else self.lattice.log_rows[positions]
        few = replace(self.lattice, values=self.lattice.values[positions], log_rows=rows)
        part = ConvolutionChannel(few, self.log_scale, lambda patterns: self.log_columns(patterns)[positions])
        part.__dict__["_kernel"] = self._kernel  # spectra depend on the window alone
        part.__dict__["_squared"] = self._squared
        return part

    def near_products(self, weights: Floats) -> sparse.csc_array | None:
        """Return the products of rows, each cut off where most of the noise has fallen: still a Gram matrix."""
        from hubbub.channels.compiled_loops import products_on_grid

        lattice = self.lattice
        down, over = self._reach
        pairs = self.values**2 * (4.0 * down + 1.0) * (4.0 * over + 1.0) / (lattice.rows * lattice.columns)
        if pairs > MAX_NEAR_PAIRS or lattice.owners is not None:
            return None
        window = np.zeros(lattice.rows * lattice.columns)
        window[lattice.cells] = weights / self._scale**2
        order = np.argsort(lattice.values)
        first, second, products = products_on_grid(
            lattice.values[order], window.reshape(lattice.rows, lattice.columns), self._table, down, over
        )
        if self._row is not None:
            factors = self._row[order]
            products *= factors[first] * factors[second]
        first, second = order[first], order[second]
        upper = sparse.csc_array((products, (first, second)), shape=(self.values, self.values))
        return sparse.csc_array(upper + upper.T - sparse.diags_array(upper.diagonal()))

    @cached_property
    def _reach(self) -> tuple[int, int]:
        """How many rows and columns away most of the noise has fallen."""
        inner = self._table[: self.lattice.rows, : self.lattice.columns]
        sums = (np.cumsum(inner.sum(axis=1)), np.cumsum(inner.sum(axis=0)))
        down, over = (int(np.searchsorted(each, PRECONDITIONED_MASS * each[-1])) for each in sums)
        return down, over

    @property
    def local(self) -> bool:
        """Neighbouring values are alike."""
        return True

    def local_maxima(self, scores: Floats) -> Positions:
        """Return the values whose score none of the eight cells around exceeds."""
        from scipy.ndimage import maximum_filter

        lattice = self.lattice
        window = np.full(lattice.rows * lattice.columns, -np.inf)
        window[lattice.values] = scores
        around = maximum_filter(window.reshape(lattice.rows, lattice.columns), size=3, mode="constant", cval=-np.inf)
        return np.flatnonzero(scores >= around.ravel()[lattice.values])

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g from the mechanism, also where exp has flushed it to 0."""
        return self._log_columns(patterns)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        lattice = self.lattice
        batch = np.atleast_2d(theta.reshape(-1, self.values))
        if self._row is not None:
            batch = batch * self._row
        window = np.zeros((batch.shape[0], lattice.rows * lattice.columns))
        window[:, lattice.values] = batch
        seen = self._kernel.forward(window.reshape(-1, lattice.rows, lattice.columns))
        fitted = seen.reshape(batch.shape[0], -1)[:, lattice.cells]
        if lattice.owners is not None:
            fitted = _totals(fitted, lattice.owners, self.patterns)
        for each, sums in zip(batch, fitted, strict=True):
            if each.min() >= 0.0:
                small = np.flatnonzero(sums < MIN_FFT_SHARE * float(np.linalg.norm(each)) * self._bounds)
                if small.size:
                    sums[small] = self._one_by_one(each, small)
        return np.reshape(fitted / self._scale, (*theta.shape[:-1], self.patterns))

    def _one_by_one(self, theta: Floats, patterns: Positions) -> Floats:
        from hubbub.channels.compiled_loops import sums_on_grid

        lattice = self.lattice
        which = patterns if lattice.owners is None else np.flatnonzero(np.isin(lattice.owners, patterns))
        held = np.flatnonzero(theta)
        work = which.size * held.size
        sums = sums_on_grid(work, lattice.cells[which], lattice.values[held], theta[held], self._table, *self._strips)
        if lattice.owners is None:
            return np.asarray(sums)
        return np.asarray(np.bincount(lattice.owners[which], weights=sums, minlength=self.patterns)[patterns])

    def accurate_forward(self, theta: Floats) -> tuple[Floats, RoundingBound] | None:
        """Return theta @ stored by plain sums, where these are not too many: an FFT loses digits of small ones."""
        if float(np.count_nonzero(theta)) * self.lattice.cells.size > MAX_PLAIN_PRODUCTS:
            return None
        each = theta if self._row is None else theta * self._row
        sums = self._one_by_one(each, np.arange(self.patterns)) / self._scale
        return sums, RoundingBound(self._plain_rounding(theta))

    def _plain_rounding(self, theta: Floats) -> float:
        """Return the bound for sums one by one: over values, then over the cells that a pattern collects."""
        most = 1 if self.lattice.owners is None else int(np.bincount(self.lattice.owners).max(initial=1))
        return gamma(np.count_nonzero(theta) + most + 8)

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:
        """Return the bound for plain sums, and that of the FFT for patterns that were not added up one by one.

        With K the likelihoods of a pattern, three of the transforms (of K, of theta, and the product of both) lose
        eta |K| |theta|, by Cauchy and Schwarz, and the one back eta |K * theta|, which is at most |K| times the
        sum of theta. Sums over lines at the edges add gamma |K| |theta|.
        """
        each = theta if self._row is None else theta * self._row
        relative = self._plain_rounding(theta)
        length, mass = float(np.linalg.norm(each)), float(each.sum())
        eta, lines = self._kernel.transform_rounding, gamma(max(self.lattice.rows, self.lattice.columns) + 8)
        absolute = self._bounds * (eta * (3.0 * length + mass) + lines * length) * 1.001 / self._scale
        # The same condition as in `forward`.
        small = fitted * self._scale < MIN_FFT_SHARE * length * self._bounds
        return RoundingBound(relative, np.where(small, 0.0, absolute))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the bound of the FFT."""
        batch = ratio / self._scale
        window = np.zeros(self.lattice.rows * self.lattice.columns)
        window[self.lattice.cells] = batch if self.lattice.owners is None else batch[self.lattice.owners]
        largest = 1.0 if self._row is None else float(self._row.max())
        lost = self._kernel.backward_lost(window.reshape(self.lattice.rows, self.lattice.columns))
        return RoundingBound(gamma(16), lost * largest)

    @property
    def entry_rounding(self) -> float:
        """From how far likelihoods fade within the window."""
        table = self.lattice.log_table
        fading = float(table.max() - table.min(initial=np.inf, where=np.isfinite(table)))
        rows = 0.0 if self.lattice.log_rows is None else float(np.ptp(self.lattice.log_rows))
        most = 1 if self.lattice.owners is None else int(np.bincount(self.lattice.owners).max(initial=1))
        magnitude = float(np.abs(self.log_scale).max(initial=0.0)) + min(fading + rows, UNDERFLOW_NATS)
        return entry_error(magnitude) + gamma(most)

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        batch = np.atleast_2d(ratio.reshape(-1, self.patterns)) / self._scale
        gathered = self._spread(batch, self._kernel)
        if self._row is not None:
            gathered = gathered * self._row
        return np.reshape(gathered, (*ratio.shape[:-1], self.values))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights; a lower bound where patterns collect several cells."""
        gathered = self._spread(weights[None, :] / self._scale**2, self._squared)[0]
        return gathered if self._row is None else np.asarray(gathered * self._row**2)

    def _spread(self, batch: Floats, kernel: WindowSums) -> Floats:
        lattice = self.lattice
        window = np.zeros((batch.shape[0], lattice.rows * lattice.columns))
        window[:, lattice.cells] = batch if lattice.owners is None else batch[:, lattice.owners]
        seen = kernel.backward(window.reshape(-1, lattice.rows, lattice.columns)).reshape(batch.shape[0], -1)
        gathered: Floats = seen[:, lattice.values]
        if batch.min() >= 0.0:
            np.maximum(gathered, 0.0, out=gathered)  # below 0 is rounding
        return gathered


def shift_invariant_channel(
    values: int,
    log_tops: Floats,
    window_cells: Callable[[Positions], float],
    lattice: Callable[[Positions], LatticeWindow],
    log_columns: LogColumns,
) -> Channel:
    """Return the channel of patterns whose largest log-likelihoods are `log_tops`: convolutions where these pay.

    An FFT's error is the same for all cells, hence fatal for patterns that are unlikely wherever they come from: far
    outside a grid, or far from the values kept. Patterns within a factor of 10,000 of each other are convolved
    together, without the likelihoods of displacements that do not occur; where they are few, they are a matrix.
    """
    level = np.floor((log_tops.max() - log_tops) / MAX_LOG_RANGE)
    groups = [np.flatnonzero(level == each) for each in np.unique(level)]
    parts: list[Channel] = []
    for group in groups:

        def own_columns(some: Positions | slice, group: Positions = group) -> Floats:
            return log_columns(group[some])

        entries, cells = float(values) * group.size, window_cells(group)
        if prefers_matrix(entries, min(DENSE_ENTRIES_PER_CELL * cells, MAX_MATRIX_ENTRIES)) or cells > MAX_WINDOW_CELLS:
            parts.append(DenseChannel.from_logs(values, group.size, own_columns))
        else:
            window = lattice(group)
            if window.log_table.max() > log_tops[group].max() + MAX_LOG_RANGE:
                window = trimmed(window)
            parts.append(ConvolutionChannel(window, log_tops[group], own_columns))
    back = np.empty(log_tops.size, dtype=np.int64)
    back[np.concatenate(groups)] = np.arange(log_tops.size)
    return reindexed(parts[0] if len(parts) == 1 else ConcatenatedChannel(parts), back)


def trimmed(lattice: LatticeWindow) -> LatticeWindow:
    """Return the lattice with likelihoods for those displacements alone that occur between a value and a pattern."""
    from hubbub.channels.fft_sums import displacements

    columns, rows = lattice.columns, lattice.rows
    log_table = np.full_like(lattice.log_table, -np.inf)
    values = np.zeros((rows, columns))
    values.flat[lattice.values] = 1.0
    row, column = np.divmod(lattice.cells, columns)
    for at_row in (False, True) if lattice.edges else (False,):
        for at_column in (False, True) if lattice.edges else (False,):
            own = np.ones(row.size, dtype=bool)
            if lattice.edges:
                own = (((row == 0) | (row == rows - 1)) == at_row) & (
                    ((column == 0) | (column == columns - 1)) == at_column
                )
            cells = np.zeros((rows, columns))
            cells.flat[lattice.cells[own]] = 1.0
            block = np.ix_(block_of(columns, at_column), block_of(rows, at_row))
            seen = displacements(values, cells).T
            log_table[block] = np.where(seen, lattice.log_table[block], -np.inf)
    return replace(lattice, log_table=log_table)


def _totals(parts: Floats, owners: Positions, count: int) -> Floats:
    """Return the sums over the parts that belong together, for each row."""
    totals = np.empty((parts.shape[0], count))
    for row, weights in enumerate(parts):
        totals[row] = np.bincount(owners, weights=weights, minlength=count)
    return totals
