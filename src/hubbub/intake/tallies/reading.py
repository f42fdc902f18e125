"""The rows of a tally, read back and checked: a tally from elsewhere is not to be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Codes, Positions
from hubbub.errors import HubbubError, OutputError
from hubbub.intake.gathering.content import MOST_OUTPUTS, Content
from hubbub.intake.gathering.gather import Gathering
from hubbub.intake.gathering.rejects import Rejects
from hubbub.intake.gathering.scratch import MEMORY, Scratch
from hubbub.intake.gathering.tables import content_of
from hubbub.intake.gathering.users import BYTES
from hubbub.intake.sources.entries import whole
from hubbub.intake.sources.packing import from_bytes, is_packed, width
from hubbub.intake.tallies.summary import damaged
from hubbub.intake.tallies.tally import KINDS, Tally
from hubbub.intake.tallies.writing import texts_of
from hubbub.mechanisms import Mechanism
from hubbub.reports import Joint, Reports, Singles

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1 << 20


def reports_of(tally: Tally, memory: str = MEMORY) -> Reports:
    """Return all reports of a tally."""
    with Scratch(memory) as scratch:
        gathering = Gathering(tally.study, scratch, Rejects(), users=False)
        add_tally(gathering, tally)
        return Content(gathering).reports(str(tally.path))


def add_tally(gathering: Gathering, tally: Tally) -> None:
    """Add what a tally counted to what was gathered, and check that this is all that it says it counted."""
    check_whole(tally, *add_groups(gathering, tally))


def check_whole(tally: Tally, taken: int, sent: int) -> None:
    """Refuse a tally whose rows do not add up to what it says: users, and their outputs."""
    outputs = _outputs(tally)
    if (taken, sent) != (tally.users, outputs):
        raise damaged(
            str(tally.path),
            f"{taken:,} users and {sent:,} outputs in its rows, {tally.users:,} and {outputs:,} in its description",
        )


def add_groups(gathering: Gathering, tally: Tally, groups: range | None = None) -> tuple[int, int]:
    """Add some row groups of a tally to what was gathered (None: all); return how many users and outputs these are."""
    where, outputs = str(tally.path), _outputs(tally)
    taken = sent = 0
    for kind, rows in _parts(tally, groups):
        if kind == "person":
            continue
        users, times = np.asarray(whole(rows["users"])), np.asarray(whole(rows["times"]))
        if rows["users"].null_count or rows["times"].null_count or users.min() < 1 or times.min() < 1:
            raise damaged(where, "a pattern that nobody sent")
        large = float(users.astype(np.float64) @ times)  # in floats, which do not overflow
        if large > 2.0 * outputs or times.max() > MOST_OUTPUTS:
            raise damaged(where, f"more outputs in its rows than the {outputs:,} in its description")
        sent += int(users @ times.astype(np.int64))
        taken += _add_singles(gathering, rows, where) if kind == "single" else _add_joint(gathering, rows, where)
    return taken, sent


def _outputs(tally: Tally) -> int:
    return tally.rows - sum(tally.rejected.values())


def parts_of(tally: Tally) -> list[range]:
    """Return the row groups of a tally in parts that can be read apart: a joint pattern lies in one of them."""
    from pyarrow import parquet

    footer = parquet.read_metadata(tally.path)
    apart = 0
    while apart < footer.num_row_groups and _only_singles(footer.row_group(apart)):
        apart += 1
    rest = [range(apart, footer.num_row_groups)] if apart < footer.num_row_groups else []
    return [*(range(group, group + 1) for group in range(apart)), *rest]


def _only_singles(group: Any) -> bool:
    known = group.column(0).statistics
    return known is not None and known.has_min_max and (known.min, known.max) == ("single", "single")


def add_reports(gathering: Gathering, reports: Reports) -> None:
    """Add reports that are in memory."""
    mechanisms = gathering.encoder.mechanisms
    for block in reports.blocks:
        if isinstance(block, Singles):
            gathering.add_singles(mechanisms.index(block.mechanism), block.codes, block.counts)
        elif isinstance(block, Joint):
            parts = [gathering.add_items(mechanisms.index(mechanism), codes) for mechanism, codes in block.sources]
            entries, items = block.repeats, np.concatenate(parts)
            lengths = np.add.reduceat(entries.data, entries.indptr[:-1])
            gathering.add_patterns(np.repeat(items[entries.indices], entries.data), lengths, block.counts)


def digests_of(tally: Tally) -> NDArray[np.void]:
    """Return the digests of the users that a tally remembers."""
    joined = b"".join(
        _content(rows, BYTES, str(tally.path)).tobytes() for kind, rows in _parts(tally) if kind == "person"
    )
    if len(joined) != BYTES * tally.users:
        raise damaged(str(tally.path), f"{len(joined) // BYTES:,} digests of {tally.users:,} users")
    return np.frombuffer(joined, dtype=f"V{BYTES}")


def _content(rows: pa.Table, size: int, where: str) -> NDArray[np.uint8]:
    """Return packed entries, each of `size` bytes."""
    import pyarrow.compute as pc

    if pc.any(pc.fill_null(pc.not_equal(pc.binary_length(rows["packed"]), size), True)).as_py():
        raise damaged(where, f"packed entries that are not of {size} bytes")
    return content_of(rows["packed"], np.arange(rows.num_rows))


def _parts(tally: Tally, groups: range | None = None) -> Iterator[tuple[str, pa.Table]]:
    """Yield rows of one kind, whole patterns at a time, of some row groups (None: all)."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    where = str(tally.path)
    try:
        with parquet.ParquetFile(tally.path, read_dictionary=["kind", "mechanism"], pre_buffer=False) as file:
            rest: pa.Table | None = None
            for batch in file.iter_batches(BATCH, row_groups=None if groups is None else list(groups)):
                rows = pa.Table.from_batches([batch])
                rows = rows if rest is None else pa.concat_tables([rest, rows])
                rest = None
                kinds = whole(rows["kind"].cast(pa.string()))
                if not pc.all(pc.is_in(kinds, pa.array(KINDS))).as_py():
                    raise damaged(where, "a row of no known kind")
                for kind in KINDS:
                    own = rows.filter(pc.equal(kinds, kind))
                    if kind == "joint" and own.num_rows:
                        _check_order(own["pattern"], where)
                        last = pc.equal(own["pattern"], own["pattern"][own.num_rows - 1])
                        rest, own = own.filter(last), own.filter(pc.invert(last))
                    if own.num_rows:
                        yield kind, own
            if rest is not None and rest.num_rows:
                yield "joint", rest
    except (pa.ArrowException, OSError) as error:
        raise damaged(where, str(error).splitlines()[0]) from None


def _check_order(patterns: pa.ChunkedArray, where: str) -> None:
    """Refuse patterns without a number, and such as stand in two places."""
    numbers = np.asarray(whole(patterns))
    if patterns.null_count or (np.diff(numbers) < 0).any():
        raise damaged(where, "patterns that are not in order")


def _codes(rows: pa.Table, mechanism: Mechanism, where: str) -> Codes:
    """Return the outputs of one mechanism, checked."""
    space = mechanism.output_space
    try:
        if is_packed(mechanism):
            return from_bytes(mechanism, _content(rows, width(mechanism), where))
        texts = rows["output"].to_pylist()
        codes = space.encode([space.read(text) for text in texts])
        if len(codes) != len(texts) or texts_of(mechanism, codes) != texts:
            raise damaged(where, "outputs that are not written as hubbub writes them")
    except OutputError as error:
        raise damaged(where, f"{error.what}: {error.got}") from None
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, HubbubError):
            raise
        raise damaged(where, "outputs that are not there") from None
    return codes


def _by_mechanism(gathering: Gathering, rows: pa.Table, where: str) -> Iterator[tuple[int, Positions, Codes]]:
    import pyarrow as pa

    labels = whole(rows["mechanism"].cast(pa.string())).to_pylist()
    which = np.array([gathering.encoder.numbers.get(label, -1) for label in labels], dtype=np.int64)
    if (which < 0).any():
        raise damaged(where, "a mechanism that its study does not name")
    for number in np.unique(which).tolist():
        own = np.flatnonzero(which == number)
        yield number, own, _codes(rows.take(pa.array(own)), gathering.encoder.mechanisms[number], where)


def _add_singles(gathering: Gathering, rows: pa.Table, where: str) -> int:
    users = np.asarray(whole(rows["users"]))
    if (np.asarray(whole(rows["times"])) != 1).any():
        raise damaged(where, "a single output that was sent several times")
    for number, own, codes in _by_mechanism(gathering, rows, where):
        gathering.add_singles(number, codes, users[own])
    return int(users.sum())


def _add_joint(gathering: Gathering, rows: pa.Table, where: str) -> int:
    numbers, times = np.asarray(whole(rows["pattern"])), np.asarray(whole(rows["times"]))
    users = np.asarray(whole(rows["users"]))
    new = np.append(True, numbers[1:] != numbers[:-1])
    starts = np.flatnonzero(new)
    if (users != users[starts][np.cumsum(new) - 1]).any():
        raise damaged(where, "a pattern with two counts")
    items: Any = np.empty(numbers.size, dtype=np.int64)
    for number, own, codes in _by_mechanism(gathering, rows, where):
        items[own] = gathering.add_items(number, codes)
    lengths = np.add.reduceat(times.astype(np.int64), starts)
    if (lengths < 2).any():
        raise damaged(where, "a joint pattern of one output")
    gathering.add_patterns(np.repeat(items, times), lengths, users[starts])
    return int(users[starts].sum())
