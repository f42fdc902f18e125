"""Several attributes at the terminal: two of them crossed, and each by itself with its intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, printable

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.attribute_shares import AttributeShares
    from hubbub.domains import Domain, Product
    from hubbub.estimators import Estimate

Crosstab = Annotated[
    str | None,
    typer.Option(metavar="ROWS,COLUMNS", help="Several attributes: the two to print together, such as age,sex."),
]
MAX_TITLE_LETTERS = 24  # of a value in front of a row
COLUMN_LETTERS = 9  # of a number and the line beside it
MIN_COLUMNS = 2
ALL = "all"


def crossed(text: str | None, domain: Domain) -> tuple[str, str] | None:
    """Return the attributes that `--crosstab` names; by default both of two, the one with more values down the side."""
    product = domain.product
    if product is None:
        if text is not None:
            raise typer.BadParameter("the study has one attribute: there is nothing to cross", param_hint="--crosstab")
        return None
    if text is None:
        first, *others = sorted(product.attributes, key=lambda name: -len(product.attributes[name]))
        return (first, others[0]) if len(others) == 1 else None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2:
        raise typer.BadParameter(f"{text!r} must be two attributes with a comma between them", param_hint="--crosstab")
    product.margin(names, "--crosstab")
    return names[0], names[1]


def print_attributes(estimated: Estimate, shares: AttributeShares, pair: tuple[str, str] | None) -> None:
    """Print two attributes crossed, then each attribute with its intervals."""
    console, product = out(), estimated.domain.product
    assert product is not None  # noqa: S101  # there are attributes
    if pair is not None:
        console.print(_crosstab(estimated, product, *pair, console.width))
    for name in product.attributes:
        console.print(_marginal(shares, name))
    for note in shares.notes:
        console.print(note, soft_wrap=True)
    if pair is None:
        two = ",".join(list(product.attributes)[:2])
        console.print(f"--crosstab {two} prints two attributes together; write all combinations with -o estimate.csv")


def _crosstab(estimated: Estimate, product: Product, rows: str, columns: str, width: int) -> Table:
    """Return the joint shares of two attributes, as many columns as fit; the last row and column are everybody."""
    from rich.table import Table

    from hubbub.domains.table_groups import crossed_shares, table_groups

    totals = {name: product.margin([name]).sums(estimated.probabilities) for name in (rows, columns)}
    down = table_groups(product.attributes[rows], totals[rows])
    side = min(MAX_TITLE_LETTERS, max(len(printable(title)) for title in (rows, ALL, *(own.title for own in down))))
    fitting = max(MIN_COLUMNS, (width - side - 4) // COLUMN_LETTERS - 1)
    across = table_groups(product.attributes[columns], totals[columns], fitting)
    joint = crossed_shares(product, estimated.probabilities, (rows, down), (columns, across)).joint
    table = Table(title=f"{printable(rows)} by {printable(columns)}: shares of everybody")
    table.add_column(printable(rows), max_width=MAX_TITLE_LETTERS, overflow="fold")
    for title in (*(own.title for own in across), ALL):
        table.add_column(printable(title), justify="right", overflow="fold", min_width=6)
    for own, numbers in zip(down, joint, strict=True):
        table.add_row(printable(own.title), *_numbers([*numbers, numbers.sum()]))
    table.add_section()
    table.add_row(ALL, *_numbers([*joint.sum(axis=0), joint.sum()]))
    return table


def _marginal(shares: AttributeShares, name: str) -> Table:
    """Return the shares of one attribute, with intervals if there are any."""
    import numpy as np
    from rich.table import Table

    own = shares.marginals[name]
    is_known = not np.isnan(own.low).any()
    table = Table()
    table.add_column(printable(name), overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    if is_known:
        table.add_column(f"{100 * shares.level:g}% interval", justify="right", no_wrap=True)
    for group, share, low, high in zip(shares.groups[name], *own, strict=True):
        interval = [f"{low:.4f} to {high:.4f}"] if is_known else []
        table.add_row(printable(group.title), f"{share:.4f}", *interval)
    return table


def _numbers(shares: Sequence[float]) -> list[str]:
    return [f"{share:.4f}" for share in shares]
