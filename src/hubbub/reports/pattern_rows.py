"""Patterns as rows of items: which of them are equal, and the likelihood of their items."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from hubbub.channels import check_entries
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import index_codes


def rows_by_length(items: Positions, lengths: Positions) -> Iterator[tuple[Positions, Positions]]:
    """Yield the patterns of each length, from the shortest: which they are, and their items as rows of a matrix.

    `items` are those of one pattern after the other, and `lengths` says how many belong to each.
    """
    starts = np.cumsum(lengths) - lengths
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        own = np.flatnonzero(lengths == length)
        yield own, items[starts[own][:, None] + np.arange(length)]


def distinct_rows(rows: sparse.csr_array) -> tuple[Positions, Positions]:
    """Return the position of the first of each group of equal rows, in a fixed order, and the group of each row.

    A row is a list of items, with repetitions. Groups are ordered by the number of items, then by the items.
    """
    lengths = np.diff(np.concatenate([[0], np.cumsum(rows.data)])[rows.indptr])
    first, group = [np.empty(0, dtype=np.int64)], np.empty(rows.shape[0], dtype=np.int64)
    groups = 0
    for members, patterns in rows_by_length(np.repeat(rows.indices.astype(np.int64), rows.data), lengths):
        distinct, which = index_codes(patterns)
        head = np.full(len(distinct), -1, dtype=np.int64)
        head[which[::-1]] = members[::-1]
        first.append(head)
        group[members] = groups + which
        groups += len(distinct)
    return np.concatenate(first), group


def log_items(
    sources: tuple[tuple[Mechanism, Codes], ...], repeats: sparse.csr_array, among: Positions | None
) -> tuple[Floats, sparse.csr_array]:
    """Return the log-likelihoods of items (values by items) that add up to those of patterns, and each pattern's items.

    An item is one output. For a mechanism that remembers, all outputs of a user together are one item, because their
    likelihoods do not multiply.
    """
    if not any(mechanism.remembers for mechanism, _ in sources):
        return np.concatenate([mechanism.log_columns(codes, among) for mechanism, codes in sources], axis=1), repeats
    logs, columns, start = [], [], 0
    for mechanism, codes in sources:
        items = sparse.csr_array(repeats[:, start : start + len(codes)])
        start += len(codes)
        if mechanism.remembers:
            log, items = _joint_items(mechanism, codes, items, among)
        else:
            log = mechanism.log_columns(codes, among)
        logs.append(log)
        columns.append(items)
    return np.concatenate(logs, axis=1), sparse.csr_array(sparse.hstack(columns, format="csr"))


def _joint_items(
    mechanism: Mechanism, codes: Codes, repeats: sparse.csr_array, among: Positions | None
) -> tuple[Floats, sparse.csr_array]:
    """Return one item for all outputs of a user from one mechanism; equal ones are merged."""
    users = np.flatnonzero(np.diff(repeats.indptr))
    sent = sparse.csr_array(repeats[users])
    sent.sort_indices()
    first, group = distinct_rows(sent)
    check_entries(len(mechanism.domain) if among is None else among.size, first.size)
    once = np.ones(users.size, dtype=np.int64)
    items = sparse.csr_array((once, (users, group)), shape=(repeats.shape[0], first.size))
    return mechanism.joint_log_columns(codes, sparse.csr_array(sent[first]), among), items
