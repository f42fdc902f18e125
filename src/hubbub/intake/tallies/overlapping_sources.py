"""Tables and queries of one database that may hold the same rows.

A growing source is counted row by row, again and again: a second query of the same table would count its rows twice,
each night anew. So it is refused, unless the two are known to read different tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.database import DatabaseSource
from hubbub.intake.sources.database_address import Address, is_address, parse_address
from hubbub.intake.tallies.tally_summary import CountedSource

REMEDY = (
    "collect all rows through one of them; or, if the queries exclude each other's rows, collect each into a tally of "
    "its own and merge the tallies"
)


def refuse_overlapping(sources: Sequence[Source], counted: Iterable[CountedSource], *, watermark: bool) -> None:
    """Refuse databases' sources that may hold the rows of others, in this run or before, if one of the two grows."""
    addresses = [source.address for source in sources if isinstance(source, DatabaseSource)]
    before = [
        (entry, parse_address(entry.name)) for entry in counted if entry.digest is None and is_address(entry.name)
    ]
    for place, address in enumerate(addresses):
        for other in addresses[:place]:
            if watermark and (shared := shared_rows(other, address)):
                raise _overlapping(other.name, address.name, shared)
        for entry, other in before:
            if entry.name == address.identity or not (watermark or entry.mark):
                continue
            if shared := shared_rows(other, address):
                raise _overlapping(f"{entry.name}, which is in the tally,", address.name, shared)


def shared_rows(first: Address, second: Address) -> str:
    """Return why two addresses may hold the same rows; "" if they do not.

    >>> shared_rows(parse_address("sqlite:///a.db#t"), parse_address("sqlite:///a.db#SELECT * FROM T WHERE x > 1"))
    'both read the table t'
    >>> shared_rows(parse_address("sqlite:///a.db#t"), parse_address("sqlite:///a.db#u"))
    ''
    """
    if first.database != second.database:
        return ""
    tables = _tables(first), _tables(second)
    if tables[0] is None or tables[1] is None:
        return "which tables a query reads cannot be told"
    shared = [one for one in tables[0] for other in tables[1] if _is_same(one, other)]
    return f"both read the table {'.'.join(shared[0])}" if shared else ""


def _tables(address: Address) -> list[tuple[str, ...]] | None:
    """Return the tables that an address reads, by the parts of their names; None if that cannot be told."""
    if address.relation.parts:
        return [tuple(part.casefold() for part in address.relation.parts)]
    import duckdb

    try:  # its SQL is close enough to that of the others: what it cannot parse is taken to read everything
        names = duckdb.get_table_names(address.relation.query, qualified=True)
    except duckdb.Error:
        return None
    parts = [parse_address(f"duckdb:///-#{name}").relation.parts for name in sorted(names)]
    return [tuple(part.casefold() for part in own) for own in parts]


def _is_same(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether two names may mean one table: one of them may leave the schema out."""
    size = min(len(first), len(second))
    return first[-size:] == second[-size:]


def _overlapping(first: str, second: str, why: str) -> IntakeError:
    return refusal(
        "overlapping-sources",
        "two sources may hold the same rows",
        where=second,
        got=f"{first} and {second}: {why}",
        expected="rows that no other source of the tally holds",
        remedy=REMEDY,
    )
