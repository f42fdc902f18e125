"""Sums over all values of a window for all of its cells at once, by FFT.

Along one direction, an output at an edge collects the noise "from d on" where an inner one collects "cell d" (d: the
distance of the true value), so that with columns and rows there are four families of outputs, each exact:

    inner cells         a convolution in both directions
    edge rows           a convolution along the columns, a sum over the rows of values
    edge columns        a convolution along the rows, a sum over the columns of values
    corners             plain sums
"""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from hubbub.channels.lattice_window import LatticeWindow, edges_of
from hubbub.channels.rounding import transform_error
from hubbub.core.arrays import Floats
from hubbub.core.threads import processors

Complexes = NDArray[np.complex128]

MIN_PARALLEL_CELLS = 100_000  # above which several threads pay


class WindowSums:
    """The likelihoods of all cells of a window, as spectra: forward and backward for arrays (batch, rows, columns)."""

    def __init__(self, table: Floats, lattice: LatticeWindow) -> None:
        columns, rows = lattice.columns, lattice.rows
        self.shape = rows, columns
        self.bounds = np.full((rows, columns), 2 * float(np.linalg.norm(table[:rows, :columns])))
        self._padded = fft.next_fast_len(2 * rows - 1, real=True), fft.next_fast_len(2 * columns - 1, real=True)
        self._workers = processors() if rows * columns > MIN_PARALLEL_CELLS else 1
        self.transform_rounding = transform_error(self._padded[0] * self._padded[1])
        edge_rows, edge_columns = edges_of(rows, lattice.edges), edges_of(columns, lattice.edges)
        self._edge_rows, self._edge_columns = [row for row, _ in edge_rows], [column for column, _ in edge_columns]
        inner = _mirrored(_mirrored(table[:rows, :columns], self._padded[0], 0), self._padded[1], 1)
        self._inner = fft.rfft2(inner, workers=self._workers).real  # a kernel that is even has a real spectrum
        if lattice.edges:
            # For an edge row: the strip that it is from each row of values, by every column away; likewise for columns.
            self._row_spectra = np.stack([_spectrum(table[strip, :columns], self._padded[1]) for _, strip in edge_rows])
            self._column_spectra = np.stack(
                [_spectrum(table[:rows, strip].T, self._padded[0]) for _, strip in edge_columns]
            )
            corners = [table[np.ix_(down, over)].ravel() for _, down in edge_rows for _, over in edge_columns]
            self._corners = np.stack(corners)
            self.bounds[self._edge_rows] = 2 * float(np.linalg.norm(table[edge_rows[0][1], :columns]))
            self.bounds[:, self._edge_columns] = 2 * float(np.linalg.norm(table[:rows, edge_columns[0][1]]))
            self.bounds[np.ix_(self._edge_rows, self._edge_columns)] = 0.0  # added up one by one anyway
        self._table = table

    def forward(self, theta: Floats) -> Floats:
        """Return for each cell the sum over values of theta times its likelihood."""
        rows, columns = self.shape
        first = fft.rfft(theta, self._padded[1], axis=-1, workers=self._workers)
        seen = self._convolved(first)
        if self._edge_rows:
            from hubbub.channels.compiled_loops import sums_at_edges

            sums = sums_at_edges(_pairs(first), self._row_spectra).view(np.complex128)
            seen[:, self._edge_rows] = fft.irfft(sums, self._padded[1], axis=-1)[..., :columns]
            turned = np.ascontiguousarray(theta.transpose(0, 2, 1))
            side = fft.rfft(turned, self._padded[0], axis=-1, workers=self._workers)
            sums = sums_at_edges(_pairs(side), self._column_spectra).view(np.complex128)
            seen[:, :, self._edge_columns] = fft.irfft(sums, self._padded[0], axis=-1)[..., :rows].transpose(0, 2, 1)
            ends = np.einsum("bx,ex->be", theta.reshape(-1, rows * columns), self._corners)
            seen[:, self._corner_rows, self._corner_columns] = ends
        return seen

    def backward(self, ratio: Floats) -> Floats:
        """Return for each cell as a value the sum over outputs of ratio times its likelihood."""
        rows, columns = self.shape
        if not self._edge_rows:
            return self._convolved(fft.rfft(ratio, self._padded[1], axis=-1, workers=self._workers))
        from hubbub.channels.compiled_loops import spread_from_edges

        inner = ratio.copy()
        inner[:, :, self._edge_columns] = 0.0
        lines = fft.rfft(inner[:, self._edge_rows], self._padded[1], axis=-1)
        inner[:, self._edge_rows] = 0.0
        first = fft.rfft(inner, self._padded[1], axis=-1, workers=self._workers)
        seen = self._convolved(first, (lines, self._row_spectra))
        ends = ratio[:, :, self._edge_columns].transpose(0, 2, 1).copy()
        ends[:, :, self._edge_rows] = 0.0
        side = np.zeros((ratio.shape[0], columns, self._column_spectra.shape[2]))
        spread_from_edges(side, _pairs(fft.rfft(ends, self._padded[0], axis=-1)), self._column_spectra)
        turned = fft.irfft(side.view(np.complex128), self._padded[0], axis=-1, overwrite_x=True, workers=self._workers)[
            ..., :rows
        ]
        seen += turned.transpose(0, 2, 1)
        corners = np.einsum("be,ex->bx", ratio[:, self._corner_rows, self._corner_columns], self._corners)
        seen += corners.reshape(-1, rows, columns)
        return seen

    def backward_lost(self, ratio: Floats) -> float:
        """Return what the transforms of `backward` may lose, at most, in any sum over outputs of one ratio.

        With K the likelihoods between a value and outputs of one family, three transforms lose eta |K| |ratio| each
        (Cauchy and Schwarz), and the one back eta |K * ratio|, which is at most the sum of K times |ratio|.
        """
        rows, columns = self.shape
        edges = np.zeros(self.shape, dtype=np.int64)
        edges[self._edge_rows] += 1
        edges[:, self._edge_columns] += 2
        inner = self._table[:rows, :columns]
        lost = _lost(ratio[edges == 0], 2 * np.linalg.norm(inner), 4 * inner.sum())
        if self._edge_rows:
            # A value sees two edges of each kind, each as a line that is mirrored.
            for own, strip in (
                (edges == 1, self._table[edges_of(rows, True)[0][1], :columns]),
                (edges == 2, self._table[:rows, edges_of(columns, True)[0][1]].T),
            ):
                lost += _lost(ratio[own], 3 * np.linalg.norm(strip, axis=1).max(), 3 * strip.sum(axis=1).max())
        return 1.001 * self.transform_rounding * lost

    @property
    def _corner_rows(self) -> list[int]:
        return [row for row in self._edge_rows for _ in self._edge_columns]

    @property
    def _corner_columns(self) -> list[int]:
        return [column for _ in self._edge_rows for column in self._edge_columns]

    def _convolved(self, first: Complexes, edges: tuple[Complexes, Floats] | None = None) -> Floats:
        """Return the convolution with the inner likelihoods, given the transform along the columns."""
        rows, columns = self.shape
        both = fft.fft(first, self._padded[0], axis=-2, workers=self._workers)
        both *= self._inner
        both = fft.ifft(both, axis=-2, overwrite_x=True, workers=self._workers)[:, :rows]
        if edges is not None:
            from hubbub.channels.compiled_loops import spread_from_edges

            spread_from_edges(_pairs(both), _pairs(edges[0]), edges[1])
        seen: Floats = fft.irfft(both, self._padded[1], axis=-1, overwrite_x=True, workers=self._workers)
        return seen[..., :columns]


def _lost(ratio: Floats, norm: SupportsFloat, mass: SupportsFloat) -> float:
    return float(np.linalg.norm(ratio)) * (3.0 * float(norm) + float(mass))


def displacements(values: Floats, cells: Floats) -> NDArray[np.bool_]:
    """Return which displacements (rows, columns) occur between a value and a cell, by counting them."""
    rows, columns = values.shape
    shape = (2 * rows - 1, 2 * columns - 1)
    counts = fft.irfft2(fft.rfft2(values, shape) * np.conj(fft.rfft2(cells, shape)), shape)
    seen = counts > 0.5
    back_rows, back_columns = -np.arange(rows), -np.arange(columns)  # displacements to the other side
    there = seen[:rows, :columns] | seen[back_rows][:, :columns]
    other: NDArray[np.bool_] = there | seen[:rows][:, back_columns] | seen[back_rows][:, back_columns]
    return other


def _spectrum(table: Floats, length: int) -> Floats:
    """Return the spectra of the even extensions of all rows, every number twice: for pairs of floats."""
    return np.repeat(fft.rfft(_mirrored(table, length, 1), axis=1).real, 2, axis=1)


def _pairs(numbers: Complexes) -> Floats:
    """Return complex numbers as pairs of floats, in the same memory."""
    pairs: Floats = numbers.view(np.float64)
    return pairs


def _mirrored(table: Floats, length: int, axis: int) -> Floats:
    """Return the even extension along one axis, as a circle of `length`: entry d at d and at length - d."""
    size = table.shape[axis]
    circle = np.zeros([length if place == axis else extent for place, extent in enumerate(table.shape)])
    turned = np.moveaxis(circle, axis, 0)
    straight = np.moveaxis(table, axis, 0)
    turned[:size] = straight
    if size > 1:
        turned[length - size + 1 :] = straight[:0:-1]
    return circle
