"""Reports about several attributes, reduced to what they say about some of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import ReportsError, shorten
from hubbub.core.text import listed
from hubbub.domains import Domain, Product
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.reports.blocks import Block, Joint, Singles, common_items
from hubbub.reports.reports import Reports, in_order
from hubbub.reports.validation import no_reports


def about_attributes(reports: Reports, names: Sequence[str], where: str) -> Reports:
    """Return what the reports say about some attributes: users who say nothing about them are left out.

    Outputs of attributes are independent given the value, so what is left has the exact likelihood of a smaller study:
    over a product of these attributes, or over the domain of the only one.
    Reports that are about these attributes alone are returned as they are.

    Raises
    ------
    ReportsError
        If values are not combinations of attributes, some values were left out, or a mechanism does not report one
        attribute apart from the others.
    DomainError
        If a name is no attribute, or there twice.
    """
    return reduced(reports, names, where)[0]


def reduced(reports: Reports, names: Sequence[str], where: str) -> tuple[Reports, Positions]:
    """Return what `about_attributes` does, and where each pattern is in it (-1: users who are left out)."""
    product = product_of(reports, where)
    domain = product.margin(names, where).domain
    if len(names) == len(product.attributes):
        return reports, np.arange(reports.weights.size)
    parts = [_reduced(block, names, domain, where) for block in reports.blocks]
    kept = [block for block, _ in parts if block is not None]
    if not kept:
        got = f"no output for {listed(list(names), word='or')}"
        raise no_reports(where, got)
    merged: dict[object, Block] = {}
    for block in kept:
        merged[block.form] = merged[block.form].merge(block) if block.form in merged else block
    together = Reports(domain, in_order(merged.values()))
    moved = []
    for some, places in parts:
        if some is None:
            moved.append(places)
            continue
        own = together.positions_of(Reports(domain, (some,)))
        moved.append(np.where(places >= 0, own[places], -1))
    positions = np.concatenate(moved)
    if reports.survey is None:
        return together, positions
    rows = np.flatnonzero(positions[reports.survey.patterns] >= 0)
    return Reports(domain, together.blocks, reports.survey.rows(rows).moved(positions)), positions


def product_of(reports: Reports, where: str) -> Product:
    """Return the attributes that reports are about, or say that there are none."""
    product = reports.domain.product
    if product is not None:
        return product
    restricted = reports.domain.unrestricted.product is not None
    raise ReportsError(
        "some combinations were left out" if restricted else "values are not combinations of attributes",
        where=where,
        got=shorten(reports.domain, 100),
        expected="reports about a hubbub.Product",
        remedy="use the reports before restrict(...)"
        if restricted
        else "collect reports about several attributes: see hubbub.Split",
    )


def _reduced(block: Block, names: Sequence[str], domain: Domain, where: str) -> tuple[Block | None, Positions]:
    """Return a block about some attributes, None if nothing is left, and the new place of each pattern (-1: gone)."""
    if isinstance(block, Singles):
        smaller, codes, has = _reduced_codes(block.mechanism, block.codes, names, domain, where)
        places = np.full(len(block.codes), -1, dtype=np.int64)
        if not has.size:
            return None, places
        own = Singles.build(smaller, codes, block.counts[has])
        places[has] = own.find(codes)
        return own, places
    if isinstance(block, Joint):
        return _reduced_joint(block, names, domain, where)
    raise _not_by_attribute(block.mechanisms[0], where)


def _reduced_joint(block: Joint, names: Sequence[str], domain: Domain, where: str) -> tuple[Block | None, Positions]:
    parts, kept, start = [], [], 0
    for mechanism, codes in block.sources:
        smaller, own, has = _reduced_codes(mechanism, codes, names, domain, where)
        parts.append((smaller, own))
        kept.append(start + has)
        start += len(codes)
    sources, positions = common_items(parts)
    item_of = np.full(start, -1, dtype=np.int64)
    item_of[np.concatenate(kept)] = np.concatenate(positions)
    entries = block.repeats.tocoo()
    left = item_of[entries.col] >= 0
    users, who = np.unique(np.repeat(entries.row[left], entries.data[left]), return_inverse=True)
    places = np.full(block.counts.size, -1, dtype=np.int64)
    if not users.size:
        return None, places
    items = np.repeat(item_of[entries.col[left]], entries.data[left])
    own_block, back = Joint.build_with_places(sources, who.ravel(), items, block.counts[users])
    places[users] = back
    return own_block, places


def _reduced_codes(
    mechanism: Mechanism, codes: Codes, names: Sequence[str], domain: Domain, where: str
) -> tuple[Mechanism, Codes, Positions]:
    """Return the mechanism and the outputs of some attributes, and which of the outputs say anything about them."""
    if not isinstance(mechanism, SeveralAttributes):
        raise _not_by_attribute(mechanism, where)
    if domain.product is None:
        alone, present = mechanism.output_space.entries(codes, list(mechanism.parts).index(names[0]))
        return mechanism.about_one(names[0]), alone, np.flatnonzero(present)
    own, has = mechanism.output_space.some(codes, names)
    return mechanism.about(domain.product), own, np.flatnonzero(has)


def _not_by_attribute(mechanism: Mechanism, where: str) -> ReportsError:
    return ReportsError(
        "a mechanism does not report attributes one by one",
        where=where,
        got=f"{type(mechanism).__name__} over all attributes together",
        expected="Split, SampleOne or SampleOneWithFakes, or reports about no other attributes",
        remedy="estimate the joint distribution, and look at estimate.crosstab(...)",
    )
