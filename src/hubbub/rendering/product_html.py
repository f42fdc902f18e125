"""Several attributes in a notebook: two of them crossed, or each by itself."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Product
from hubbub.domains.table_groups import attribute_groups, crossed_shares
from hubbub.rendering.facts import Fact, facts_html, table_html
from hubbub.rendering.palette import BLUE


def crosstab_html(facts: Sequence[Fact], product: Product, shares: Floats) -> str:
    """Return the facts, and a table of two attributes, or one of each of more; every text is escaped."""
    groups = attribute_groups(product, shares)
    if len(groups) > 2:
        tables = []
        for name, own in groups.items():
            margin = product.margin([name]).sums(shares)
            rows = [[group.title, f"{margin[group.positions].sum():.4f}"] for group in own]
            tables.append(table_html([name, "probability"], rows))
        return facts_html(facts) + "".join(tables)
    (rows_name, down), (columns_name, along) = groups.items()
    joint, possible = crossed_shares(product, shares, (rows_name, down), (columns_name, along))
    top = max(float(joint.max()), 1e-300)
    head = "".join(_head(group.title) for group in along)
    body = "".join(
        f"<tr>{_head(group.title)}{''.join(map(_cell, row, row / top, can))}<td>{row.sum():.4f}</td></tr>"
        for group, row, can in zip(down, joint, possible, strict=True)
    )
    sums = "".join(f"<td>{total:.4f}</td>" for total in joint.sum(axis=0))
    corner = f"{html.escape(rows_name)} by {html.escape(columns_name)}"
    return (
        f"{facts_html(facts)}<table><tr><th style='text-align:left'>{corner}</th>{head}<th>all</th></tr>"
        f"{body}<tr>{_head('all')}{sums}<td>{joint.sum():.4f}</td></tr></table>"
    )


def _head(title: str) -> str:
    return f"<th style='text-align:left'>{html.escape(title)}</th>"


def _cell(share: float, part: float, possible: bool) -> str:
    """Return a cell with a bar below its number: notebooks are light or dark, and a bar can be read on both."""
    if not possible:
        return "<td>–</td>"
    width = round(100.0 * float(np.clip(part, 0.0, 1.0)))
    return f"<td>{share:.4f}<div style='width:{width}%;height:0.3em;background:{BLUE}'></div></td>"
