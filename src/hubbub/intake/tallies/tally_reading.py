"""The rows of a tally, read back and checked: a tally from elsewhere is not trusted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import HubbubError, OutputError
from hubbub.intake.counting.content import MAX_OUTPUTS_PER_USER, Content
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.scratch import DEFAULT_MEMORY, Scratch
from hubbub.intake.counting.user_digests import DIGEST_BYTES
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.sources.packed_columns import from_bytes, is_packed, to_bytes, width
from hubbub.intake.tallies.tally import Tally
from hubbub.intake.tallies.tally_file import explaining_damage, open_parquet
from hubbub.intake.tallies.tally_rows import packed_content, row_parts, strictly_increasing
from hubbub.intake.tallies.tally_summary import damaged
from hubbub.intake.tallies.tally_writing import texts_of
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.reports import Joint, Reports, Singles

if TYPE_CHECKING:
    import pyarrow as pa

MAX_JOINT_OUTPUTS = 1 << 31  # of all joint patterns, each once: more do not fit in memory


def reports_of(tally: Tally, memory: str = DEFAULT_MEMORY) -> Reports:
    """Return all reports of a tally."""
    with Scratch(memory) as scratch, _in_memory(tally):
        counter = RowCounter(tally.study, scratch, Rejects(), users=False)
        add_tally(counter, tally)
        return Content(counter).reports(str(tally.path))


@contextmanager
def _in_memory(tally: Tally) -> Iterator[None]:
    """Say so where the patterns of a tally do not fit in memory."""
    try:
        yield
    except MemoryError as error:
        raise refusal(
            "out-of-space",
            "the reports of the tally do not fit in memory",
            where=str(tally.path),
            got=str(error) or "no memory left",
            expected=f"memory for the patterns of {tally.users:,} users",
            remedy="read it on a machine with more memory, or on several (--cluster)",
        ) from None


def add_tally(counter: RowCounter, tally: Tally) -> None:
    """Add what a tally counted, and check that this is all that it says it counted."""
    with _in_memory(tally):
        check_whole(tally, *add_groups(counter, tally))


def check_whole(tally: Tally, users: int, outputs: int) -> None:
    """Refuse a tally whose rows do not add up to what it says: users, and their outputs."""
    expected = _outputs(tally)
    if (users, outputs) != (tally.users, expected):
        raise damaged(
            str(tally.path),
            f"{users:,} users and {outputs:,} outputs in its rows, {tally.users:,} and {expected:,} in its description",
        )


def add_groups(counter: RowCounter, tally: Tally, groups: range | None = None) -> tuple[int, int]:
    """Add some row groups of a tally (None: all); return how many users and outputs they hold."""
    where = str(tally.path)
    adding, digests = _TallyAdder(counter, where, _outputs(tally)), 0
    for kind, rows in row_parts(tally, groups):
        if kind == "person":
            digests += rows.num_rows
        else:
            adding.add(kind, rows)
    if groups is None:
        adding.check_order()
        if digests != (0 if tally.summary.key is None else tally.users):
            raise damaged(where, f"{digests:,} digests of {tally.users:,} users")
    return adding.users, adding.outputs


def _outputs(tally: Tally) -> int:
    """Return how many outputs a tally says it holds."""
    return tally.rows - sum(tally.rejected.values())


def parts_of(tally: Tally) -> list[range]:
    """Return the row groups of a tally in parts that can be read apart: a joint pattern is in one of them."""
    with explaining_damage(str(tally.path)), open_parquet(tally.path) as file:
        count, apart = file.num_row_groups, 0
        while apart < count and _only_singles(file, apart):
            apart += 1
        rest = [range(apart, count)] if apart < count else []
        return [*(range(group, group + 1) for group in range(apart)), *rest]


def _only_singles(file: Any, group: int) -> bool:
    """Whether a row group holds patterns of one output each. Not by its statistics: damaged ones end the process."""
    kinds = file.read_row_group(group, columns=["kind"])["kind"]
    return all(kind == "single" for kind in kinds.unique().to_pylist())


def add_reports(counter: RowCounter, reports: Reports) -> None:
    """Add reports that are in memory."""
    mechanisms = counter.encoder.mechanisms
    for block in reports.blocks:
        if isinstance(block, Singles):
            counter.add_singles(mechanisms.index(block.mechanism), block.codes, block.counts)
        elif isinstance(block, Joint):
            parts = [counter.add_items(mechanisms.index(mechanism), codes) for mechanism, codes in block.sources]
            entries, items = block.repeats, np.concatenate(parts)
            lengths = np.add.reduceat(entries.data, entries.indptr[:-1])
            counter.add_patterns(np.repeat(items[entries.indices], entries.data), lengths, block.counts)


def digests_of(tally: Tally) -> NDArray[np.void]:
    """Return the digests of the users that a tally remembers."""
    where = str(tally.path)
    joined = b"".join(
        packed_content(rows, DIGEST_BYTES, where).tobytes() for kind, rows in row_parts(tally) if kind == "person"
    )
    if len(joined) != DIGEST_BYTES * tally.users:
        raise damaged(where, f"{len(joined) // DIGEST_BYTES:,} digests of {tally.users:,} users")
    return np.frombuffer(joined, dtype=f"V{DIGEST_BYTES}")


class _TallyAdder:
    """Adds rows of a tally to a counter; each is checked as if it came from a stranger."""

    def __init__(self, counter: RowCounter, where: str, claimed: int) -> None:
        self._counter, self._where = counter, where
        self._claimed = claimed  # outputs that the tally says it holds
        self._codes: dict[int, list[Codes]] = {}  # single outputs that are not packed, by mechanism
        self._last: dict[int, NDArray[np.uint8]] = {}  # the last packed single output, by mechanism
        self._joint = 0  # outputs of all joint patterns, each pattern once
        self.users = 0
        self.outputs = 0

    def add(self, kind: str, rows: pa.Table) -> None:
        """Add rows of one kind."""
        users, times = np.asarray(one_array(rows["users"])), np.asarray(one_array(rows["times"])).astype(np.int64)
        if users.min() < 1 or times.min() < 1:
            raise damaged(self._where, "a pattern that nobody sent")
        large = float(users.astype(np.float64) @ times)  # in floats, which do not overflow
        if large > 2.0 * self._claimed or times.max() > MAX_OUTPUTS_PER_USER:
            raise damaged(self._where, f"more outputs in its rows than the {self._claimed:,} in its description")
        self.outputs += int(users @ times)
        if kind == "single":
            self._add_singles(rows, users, times)
        else:
            self._add_joint(rows, users, times)

    def check_order(self) -> None:
        """Refuse single outputs that are not in the order in which they are written. Call it after the last."""
        for codes in self._codes.values():
            _, back = index_codes(np.concatenate(codes))
            if (back != np.arange(back.size)).any():
                raise damaged(self._where, "single outputs that are not in order")

    def _add_singles(self, rows: pa.Table, users: Positions, times: Positions) -> None:
        if (times != 1).any():
            raise damaged(self._where, "a single output that was sent several times")
        for number, own, codes in self._by_mechanism(rows):
            mechanism = self._counter.encoder.mechanisms[number]
            if is_packed(mechanism):
                content = to_bytes(mechanism, codes)
                known = np.concatenate([self._last.get(number, content[:0]), content])
                repeated, self._last[number] = not strictly_increasing(known), content[-1:]
            else:
                repeated = len(index_codes(codes)[0]) != len(codes)
                self._codes.setdefault(number, []).append(codes)
            if repeated:
                raise damaged(self._where, "single outputs that are not in order, or twice the same")
            self._counter.add_singles(number, codes, users[own])
        self.users += int(users.sum())

    def _add_joint(self, rows: pa.Table, users: Positions, times: Positions) -> None:
        numbers = np.asarray(one_array(rows["pattern"]))
        starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        pattern = np.repeat(np.arange(starts.size), np.diff(np.append(starts, numbers.size)))
        if (users != users[starts][pattern]).any():
            raise damaged(self._where, "a pattern with two counts")
        lengths = np.add.reduceat(times, starts)
        self._joint += int(lengths.sum())
        if lengths.min() < 2 or lengths.max() > MAX_OUTPUTS_PER_USER or self._joint > MAX_JOINT_OUTPUTS:
            raise damaged(self._where, "a joint pattern of one output, or of more than a user can send")
        items: Any = np.empty(numbers.size, dtype=np.int64)
        for number, own, codes in self._by_mechanism(rows):
            mechanism = self._counter.encoder.mechanisms[number]
            distinct, back = index_codes(to_bytes(mechanism, codes) if is_packed(mechanism) else codes)
            if np.unique(pattern[own] * len(distinct) + back).size != own.size:
                raise damaged(self._where, "a pattern that lists an output twice")
            items[own] = self._counter.add_items(number, codes)
        self._counter.add_patterns(np.repeat(items, times), lengths, users[starts])
        self.users += int(users[starts].sum())

    def _by_mechanism(self, rows: pa.Table) -> Iterator[tuple[int, Positions, Codes]]:
        """Yield each mechanism's number, which rows are its own, and their outputs."""
        import pyarrow as pa

        encoder = self._counter.encoder
        named = one_array(rows["mechanism"].cast(pa.string())).dictionary_encode()
        labels = named.dictionary.to_pylist()
        numbers = np.array([encoder.numbers.get(label, -1) for label in labels], dtype=np.int64)
        if any(number < 0 or encoder.labels[number] != label for number, label in zip(numbers, labels, strict=True)):
            raise damaged(self._where, "a mechanism that its study does not name, or names otherwise")
        which = numbers[np.asarray(named.indices)]
        for number in np.unique(which).tolist():
            own = np.flatnonzero(which == number)
            yield number, own, _codes(rows.take(pa.array(own)), encoder.mechanisms[number], self._where)


def _codes(rows: pa.Table, mechanism: Mechanism, where: str) -> Codes:
    """Return the outputs of one mechanism, checked."""
    packed = is_packed(mechanism)
    if rows["output" if packed else "packed"].null_count != rows.num_rows:
        raise damaged(where, "outputs that are packed and written out")
    space = mechanism.output_space
    try:
        if packed:
            return from_bytes(mechanism, packed_content(rows, width(mechanism), where))
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
