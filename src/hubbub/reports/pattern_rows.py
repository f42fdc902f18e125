"""Patterns as rows of items: which of them are equal, and what their items say together of the values."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hubbub.channels import check_entries
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import index_codes


def distinct_rows(rows: sparse.csr_array) -> tuple[Positions, Positions]:
    """Return the first of each kind of equal rows, in a fixed order, and the kind of each row.

    Rows are taken as lists of items, repeated ones several times: in the order of their lengths, then of their items.
    """
    items = np.repeat(rows.indices.astype(np.int64), rows.data)
    ends = np.concatenate([[0], np.cumsum(rows.data)])[rows.indptr]
    lengths = np.diff(ends)
    first, back = [np.empty(0, dtype=np.int64)], np.empty(rows.shape[0], dtype=np.int64)
    kinds = 0
    for length in np.flatnonzero(np.bincount(lengths)).tolist():  # rows of one length are compared as blocks of numbers
        members = np.flatnonzero(lengths == length)
        distinct, which = index_codes(items[ends[members][:, None] + np.arange(length)])
        head = np.full(len(distinct), -1, dtype=np.int64)
        head[which[::-1]] = members[::-1]
        first.append(head)
        back[members] = kinds + which
        kinds += len(distinct)
    return np.concatenate(first), back


def log_items(
    sources: tuple[tuple[Mechanism, Codes], ...], repeats: sparse.csr_array, among: Positions | None
) -> tuple[Floats, sparse.csr_array]:
    """Return the log-likelihoods of items (values by items) that add up to a pattern's own, and each pattern's items.

    An item is one output; but all that a user sent of a mechanism that remembers is one item, because the likelihoods
    of its outputs do not multiply.
    """
    if not any(mechanism.remembers for mechanism, _ in sources):
        return np.concatenate([mechanism.log_columns(codes, among) for mechanism, codes in sources], axis=1), repeats
    logs, columns, start = [], [], 0
    for mechanism, codes in sources:
        own = sparse.csr_array(repeats[:, start : start + len(codes)])
        start += len(codes)
        log, items = _together(mechanism, codes, own, among) if mechanism.remembers else (None, own)
        logs.append(mechanism.log_columns(codes, among) if log is None else log)
        columns.append(items)
    return np.concatenate(logs, axis=1), sparse.csr_array(sparse.hstack(columns, format="csr"))


def _together(
    mechanism: Mechanism, codes: Codes, repeats: sparse.csr_array, among: Positions | None
) -> tuple[Floats, sparse.csr_array]:
    """Return one item for all that a user sent of one mechanism, equal ones once; none for users who sent nothing."""
    users = np.flatnonzero(np.diff(repeats.indptr))
    sent = sparse.csr_array(repeats[users])
    sent.sort_indices()
    first, kinds = distinct_rows(sent)
    check_entries(len(mechanism.domain) if among is None else among.size, first.size)
    once = np.ones(users.size, dtype=np.int64)
    items = sparse.csr_array((once, (users, kinds)), shape=(repeats.shape[0], first.size))
    return mechanism.joint_log_columns(codes, sparse.csr_array(sent[first]), among), items
