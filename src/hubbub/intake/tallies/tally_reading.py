"""The rows of a tally, read back and checked: a tally from elsewhere is not trusted.

Rows are compared with their digests, split into parts of one kind, and added to a counter. Whatever contradicts the
format is a `DamageError`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.arrow import pa, pc
from hubbub.core.defaults import DEFAULT_MEMORY
from hubbub.core.errors import HubbubError, OutputError
from hubbub.intake.counting.counted_reports import MAX_OUTPUTS_PER_USER, Content
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.group_counters import GroupCounters
from hubbub.intake.counting.packed_singles import content_of
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.user_digests import DIGEST_BYTES
from hubbub.intake.group_names import EVERYBODY, Group, group_order
from hubbub.intake.periods import period_of
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.sources.packed_bytes import from_bytes, is_packed, to_bytes, width
from hubbub.intake.tallies.document_shapes import DamageError, refuse_if
from hubbub.intake.tallies.tally import KEY, KINDS, RowsDigest, Tally, explaining_damage, naming_damage, open_parquet
from hubbub.intake.tallies.tally_summary import damaged, read_summary
from hubbub.intake.tallies.tally_writing import texts_of
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.reports import Joint, Reports, Singles
from hubbub.reports.survey_weights import NO_LABEL

BATCH_ROWS = 1 << 20
# Which columns are filled in rows of each kind. Of output and packed, it is up to the mechanism which one is.
FILLED = {"single": ("mechanism",), "joint": ("pattern", "mechanism"), "person": ("packed",)}
EMPTY = {"single": ("pattern",), "joint": (), "person": ("pattern", "mechanism", "output")}
MAX_JOINT_OUTPUTS = 1 << 31  # of all joint patterns, each once: more do not fit in memory


class Section(NamedTuple):
    """Rows of a tally that belong together: all of them, or those of one group."""

    group: Group
    row_groups: range | None  # None: all, of a tally that does not say how many there are
    users: int
    outputs: int


def sections_of(tally: Tally) -> list[Section]:
    """Return the groups of a tally, or the one section that everybody is in."""
    summary = tally.summary
    if not summary.by:
        return [Section(EVERYBODY, None, tally.users, _outputs(tally))]
    ends = np.cumsum([group.row_groups for group in summary.groups]).tolist()
    return [
        Section(group.entries, range(end - group.row_groups, end), group.users, group.outputs)
        for group, end in zip(summary.groups, ends, strict=True)
    ]


def reports_of(tally: Tally, memory: str = DEFAULT_MEMORY) -> Reports:
    """Return all reports of a tally, of all groups together."""
    return grouped_reports(tally, (), memory)[EVERYBODY]


def grouped_reports(
    tally: Tally, by: Sequence[str], memory: str = DEFAULT_MEMORY, last_day: str | None = None
) -> dict[Group, Reports]:
    """Return the reports of each group by some of the columns that a tally is divided by, up to a day."""
    reports: dict[Group, Reports] = {}
    for group, sections in sections_by(tally, by, last_day).items():
        with Scratch(memory) as scratch, _in_memory(tally):
            counter = RowCounter(tally.study, scratch, Rejects(), users=False, survey=tally.summary.survey)
            for section in sections:
                add_section(counter, tally, section)
            reports[group] = Content(counter).reports(str(tally.path))
    weight = math.fsum(own.survey.total for own in reports.values() if own.survey is not None)
    if (
        last_day is None
        and tally.summary.weight is not None
        and not math.isclose(weight, tally.summary.weight, rel_tol=1e-9)
    ):
        raise damaged(
            str(tally.path), f"weights that add up to {weight!r}, {tally.summary.weight!r} in its description"
        )
    return reports


def sections_by(tally: Tally, by: Sequence[str], last_day: str | None = None) -> dict[Group, list[Section]]:
    """Return the sections of each group by some of the columns of a tally; days make weeks and months.

    Those of later days than `last_day` are left out, where one is named.
    """
    divided, sections = tally.summary.by, dict[Group, list[Section]]()
    for section in sections_of(tally):
        entries = dict(zip(divided, section.group, strict=True))
        if last_day is not None and entries["day"] > last_day:
            continue
        group = tuple(entries[column] if column in entries else period_of(entries["day"], column) for column in by)
        sections.setdefault(group, []).append(section)
    return {group: sections[group] for group in sorted(sections, key=group_order)}


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
    """Add what a tally counted, in all groups, and check that this is all that it says it counted."""
    for section in sections_of(tally):
        add_section(counter, tally, section)


def add_groups(groups: GroupCounters, tally: Tally) -> None:
    """Add what a tally counted, each group to its own counter."""
    for section in sections_of(tally):
        add_section(groups.counter(section.group, str(tally.path)), tally, section)


def add_section(counter: RowCounter, tally: Tally, section: Section) -> None:
    """Add what a section of a tally counted, and check that this is all that it should hold."""
    adder, digests = _TallyAdder(counter, section.outputs), 0
    with _in_memory(tally), naming_damage(str(tally.path)):
        for kind, rows in row_parts(tally, section.row_groups):
            if kind == "person":
                digests += rows.num_rows
            else:
                adder.add(kind, rows)
        adder.check_order()
        expected = 0 if tally.summary.key is None else section.users
        refuse_if(digests != expected, f"{digests:,} digests of {section.users:,} users")
    _check_whole(tally, section, adder.users, adder.outputs)


def check_whole(tally: Tally, users: int, outputs: int) -> None:
    """Refuse a tally whose rows do not add up to what it says: users, and their outputs."""
    _check_whole(tally, Section(EVERYBODY, None, tally.users, _outputs(tally)), users, outputs)


def _check_whole(tally: Tally, section: Section, users: int, outputs: int) -> None:
    if (users, outputs) != (section.users, section.outputs):
        raise damaged(
            str(tally.path),
            f"{users:,} users and {outputs:,} outputs in its rows, {section.users:,} and {section.outputs:,} in its "
            "description",
        )


def add_row_groups(counter: RowCounter, tally: Tally, row_groups: range) -> tuple[int, int]:
    """Add some row groups of a tally, one of `parts_of`; return how many users and outputs they hold."""
    adder = _TallyAdder(counter, _outputs(tally))
    with naming_damage(str(tally.path)):
        for kind, rows in row_parts(tally, row_groups):
            if kind != "person":
                adder.add(kind, rows)
    return adder.users, adder.outputs


def _outputs(tally: Tally) -> int:
    """Return how many outputs a tally says it holds."""
    return tally.rows - sum(tally.rejected.values())


def parts_of(tally: Tally) -> list[range]:
    """Return the row groups of a tally in parts that can be read apart: a joint pattern is in one of them."""
    parts: list[range] = []
    with explaining_damage(str(tally.path)), open_parquet(tally.path) as file:
        for section in sections_of(tally):
            own = range(file.num_row_groups) if section.row_groups is None else section.row_groups
            refuse_if(own.stop > file.num_row_groups, "groups without rows")
            apart = own.start
            while apart < own.stop and _only_singles(file, apart):
                parts.append(range(apart, apart + 1))
                apart += 1
            parts += [range(apart, own.stop)] if apart < own.stop else []
    return parts


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


def digests_of(tally: Tally) -> dict[Group, NDArray[np.void]]:
    """Return the digests of the users that a tally remembers, of each group by itself."""
    digests = {}
    for section in sections_of(tally):
        parts = row_parts(tally, section.row_groups)
        joined = b"".join(packed_content(rows, DIGEST_BYTES).tobytes() for kind, rows in parts if kind == "person")
        if len(joined) != DIGEST_BYTES * section.users:
            raise damaged(str(tally.path), f"{len(joined) // DIGEST_BYTES:,} digests of {section.users:,} users")
        digests[section.group] = np.frombuffer(joined, dtype=f"V{DIGEST_BYTES}")
    return digests


def row_parts(tally: Tally, row_groups: range | None = None) -> Iterator[tuple[str, pa.Table]]:
    """Yield rows of one kind, whole patterns at a time, of some row groups (None: all)."""
    with explaining_damage(str(tally.path)), open_parquet(tally.path, read_dictionary=["kind", "mechanism"]) as file:
        order = _RowOrder()
        for rows in _tables(file, tally, row_groups):
            yield from order.split(rows)
        yield from order.rest()
        ends = [file.num_row_groups if own.row_groups is None else own.row_groups.stop for own in sections_of(tally)]
        refuse_if(
            order.reached > 0 and row_groups is not None and row_groups.stop not in ends,
            "joint patterns or digests of users among single outputs",
        )


def _tables(file: Any, tally: Tally, row_groups: range | None) -> Iterator[pa.Table]:
    """Yield the rows of some row groups, the last ones of each group after it was compared with its digest."""
    digests = tally.summary.row_groups
    count = file.num_row_groups
    if digests is not None and len(digests) != count:
        raise _changed(file, tally, f"{count:,} row groups, {len(digests):,} in its description")
    for group in range(count) if row_groups is None else row_groups:
        digest = None if digests is None else RowsDigest(len(file.schema_arrow.names))
        waiting: pa.Table | None = None
        for batch in file.iter_batches(BATCH_ROWS, row_groups=[group]):
            batch.validate(full=True)  # texts are UTF-8, entries of dictionaries are there
            rows = pa.Table.from_batches([batch])
            if digest is not None:
                digest.update(rows)
            if waiting is not None:
                yield waiting
            waiting = rows
        if digests is not None and digest is not None and digest.hexdigest() != digests[group]:
            raise _changed(file, tally, f"rows that changed since they were written (row group {group})")
        if waiting is not None:
            yield waiting


def _changed(file: Any, tally: Tally, got: str) -> Exception:
    """Return the error for rows that are not those of the description: damaged, or of another tally by now."""
    where = str(tally.path)
    text = (file.metadata.metadata or {}).get(KEY)
    if text is not None and read_summary(text, where).row_groups != tally.summary.row_groups:
        return refusal(
            "changed-meanwhile",
            "the tally was replaced while it was read",
            where=where,
            got="the rows of another tally",
            expected="the rows of the tally whose description was read before",
            remedy="read it again",
        )
    return DamageError(got)


class _RowOrder:
    """Checks the order of rows as they are read: single outputs, then patterns from 0, then digests in their order."""

    def __init__(self) -> None:
        self._rest: pa.Table | None = None  # the last pattern, which may go on
        self._patterns = 0  # that were seen as a whole
        self._digest: NDArray[np.uint8] | None = None  # the last one
        self.reached = 0  # the place among KINDS

    def split(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each kind, but for a pattern that may go on."""
        rows = rows if self._rest is None else pa.concat_tables([self._rest, rows])
        self._rest = None
        places = pc.index_in(one_array(rows["kind"].cast(pa.string())), pa.array(KINDS))
        refuse_if(places.null_count, "a row of no known kind")
        kinds = np.asarray(places)
        refuse_if(
            kinds.size > 0 and (kinds[0] < self.reached or (np.diff(kinds) < 0).any()), "rows that are not in order"
        )
        for place, kind in enumerate(KINDS):
            own = rows.slice(int(np.searchsorted(kinds, place)), int(np.count_nonzero(kinds == place)))
            if own.num_rows:
                self.reached = place
                self._check_filled(kind, own)
                yield from self._of_kind(kind, own, last=bool(kinds[-1] == place))

    def rest(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the last pattern."""
        if self._rest is not None:
            yield "joint", self._rest
            self._rest = None

    def _check_filled(self, kind: str, rows: pa.Table) -> None:
        missing = any(rows[name].null_count for name in (*FILLED[kind], "times", "users"))
        refuse_if(missing, f"a row ({kind}) with missing entries")
        extra = any(rows[name].null_count != rows.num_rows for name in EMPTY[kind])
        refuse_if(extra, f"a row ({kind}) with entries that must be empty")

    def _of_kind(self, kind: str, rows: pa.Table, *, last: bool) -> Iterator[tuple[str, pa.Table]]:
        """Yield rows of one kind, checked; the last pattern is kept back if it may go on."""
        if kind == "person":
            self._check_digests(rows)
        if kind != "joint":
            yield kind, rows
            return
        numbers = np.asarray(one_array(rows["pattern"]))
        steps = np.diff(numbers, prepend=self._patterns)
        refuse_if(steps[0] != 0 or steps.min() < 0 or steps.max() > 1, "patterns that are not in order")
        self._patterns = int(numbers[-1])
        first = int(np.searchsorted(numbers, numbers[-1])) if last else rows.num_rows
        refuse_if(rows.num_rows - first > MAX_OUTPUTS_PER_USER, "a pattern of more outputs than a user can send")
        if last:
            self._rest = rows.slice(first)
        if first:
            yield kind, rows.slice(0, first)

    def _check_digests(self, rows: pa.Table) -> None:
        content = packed_content(rows, DIGEST_BYTES)
        counted = [pc.unique(rows[name]).to_pylist() for name in ("users", "times")]
        refuse_if(counted != [[0], [1]], "digests of users with a count")
        known = content if self._digest is None else np.concatenate([self._digest, content])
        refuse_if(not strictly_increasing(known), "digests of users that are not in order, or twice the same")
        self._digest = content[-1:]


def packed_content(rows: pa.Table, size: int) -> NDArray[np.uint8]:
    """Return packed entries, each of `size` bytes, as a matrix."""
    of_size = pc.fill_null(pc.equal(pc.binary_length(rows["packed"]), size), False)
    refuse_if(not pc.all(of_size).as_py(), f"packed entries that are not of {size} bytes")
    return content_of(rows["packed"], np.arange(rows.num_rows))


def strictly_increasing(rows: NDArray[np.uint8]) -> bool:
    """Whether each row of bytes is greater than the one before.

    >>> strictly_increasing(np.array([[1, 2], [1, 3], [2, 0]], dtype=np.uint8))
    True
    >>> strictly_increasing(np.array([[1, 2], [1, 2]], dtype=np.uint8))
    False
    """
    texts = np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").ravel()  # all of one length: NULs at the end count
    return bool((texts[:-1] < texts[1:]).all())


class _TallyAdder:
    """Adds rows of a tally to a counter; each is checked as if it came from a stranger."""

    def __init__(self, counter: RowCounter, claimed: int) -> None:
        self._counter = counter
        self._tags: dict[int, list[Positions]] = {}  # of single outputs, where users have weights
        self._claimed = claimed  # outputs that the tally says it holds
        self._codes: dict[int, list[Codes]] = {}  # single outputs that are not packed, by mechanism
        self._last: dict[int, NDArray[np.uint8]] = {}  # the last packed single output, by mechanism
        self._joint = 0  # outputs of all joint patterns, each pattern once
        self.users = 0
        self.outputs = 0

    def add(self, kind: str, rows: pa.Table) -> None:
        """Add rows of one kind."""
        users, times = np.asarray(one_array(rows["users"])), np.asarray(one_array(rows["times"])).astype(np.int64)
        refuse_if(users.min() < 1 or times.min() < 1, "a pattern that nobody sent")
        large = float(users.astype(np.float64) @ times)  # in floats, which do not overflow
        too_many = large > 2.0 * self._claimed or times.max() > MAX_OUTPUTS_PER_USER
        refuse_if(too_many, f"more outputs in its rows than the {self._claimed:,} in its description")
        self.outputs += int(users @ times)
        if kind == "single":
            self._add_singles(rows, users, times)
        else:
            self._add_joint(rows, users, times)

    def check_order(self) -> None:
        """Refuse single outputs that are not in the order in which they are written. Call it after the last.

        Only all of them together have an order: that of `index_codes` depends on which codes there are.
        """
        for number, codes in self._codes.items():
            _, back = index_codes(np.concatenate(codes))
            if number in self._tags:  # an output has a row for each weight
                pairs = np.column_stack([back, np.concatenate(self._tags[number])])
                refuse_if(bool((np.diff(back) < 0).any()), "single outputs that are not in order")
                refuse_if(len(np.unique(pairs, axis=0)) != len(pairs), "single outputs that are twice the same")
            else:
                refuse_if((back != np.arange(back.size)).any(), "single outputs that are not in order")

    def _sampled(self, rows: pa.Table) -> Positions | None:
        """Return the tags of rows of a survey: how their users were sampled."""
        tags = self._counter.tags
        if tags is None:
            return None
        refuse_if(rows["weight"].null_count > 0, "a row without a weight")
        weights = np.asarray(one_array(rows["weight"]))
        refuse_if(not ((weights > 0.0) & np.isfinite(weights)).all(), "a weight that is not a positive number")
        strata, clusters = (
            [NO_LABEL if label is None else label for label in rows[name].cast(pa.string()).to_pylist()]
            for name in ("stratum", "cluster")
        )
        return tags.number(weights, strata, clusters)

    def _add_singles(self, rows: pa.Table, users: Positions, times: Positions) -> None:
        refuse_if((times != 1).any(), "a single output that was sent several times")
        tags = self._sampled(rows)
        for number, own, codes in self._by_mechanism(rows):
            mechanism = self._counter.encoder.mechanisms[number]
            if tags is not None:
                self._codes.setdefault(number, []).append(codes)
                self._tags.setdefault(number, []).append(tags[own])
                self._counter.add_singles(number, codes, users[own], tags[own])
                continue
            if is_packed(mechanism):
                content = to_bytes(mechanism, codes)
                known = np.concatenate([self._last.get(number, content[:0]), content])
                repeated, self._last[number] = not strictly_increasing(known), content[-1:]
            else:
                repeated = len(index_codes(codes)[0]) != len(codes)
                self._codes.setdefault(number, []).append(codes)
            refuse_if(repeated, "single outputs that are not in order, or twice the same")
            self._counter.add_singles(number, codes, users[own])
        self.users += int(users.sum())

    def _add_joint(self, rows: pa.Table, users: Positions, times: Positions) -> None:
        numbers = np.asarray(one_array(rows["pattern"]))
        starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        pattern = np.repeat(np.arange(starts.size), np.diff(np.append(starts, numbers.size)))
        refuse_if((users != users[starts][pattern]).any(), "a pattern with two counts")
        tags = self._sampled(rows.take(pa.array(starts)))
        lengths = np.add.reduceat(times, starts)
        self._joint += int(lengths.sum())
        too_long = lengths.max() > MAX_OUTPUTS_PER_USER or self._joint > MAX_JOINT_OUTPUTS
        refuse_if(lengths.min() < 2 or too_long, "a joint pattern of one output, or of more than a user can send")
        items: Any = np.empty(numbers.size, dtype=np.int64)
        for number, own, codes in self._by_mechanism(rows):
            mechanism = self._counter.encoder.mechanisms[number]
            distinct, back = index_codes(to_bytes(mechanism, codes) if is_packed(mechanism) else codes)
            entries = np.unique(pattern[own] * len(distinct) + back)
            refuse_if(entries.size != own.size, "a pattern that lists an output twice")
            items[own] = self._counter.add_items(number, codes)
        self._counter.add_patterns(np.repeat(items, times), lengths, users[starts], tags)
        self.users += int(users[starts].sum())

    def _by_mechanism(self, rows: pa.Table) -> Iterator[tuple[int, Positions, Codes]]:
        """Yield each mechanism's number, which rows are its own, and their outputs."""
        encoder = self._counter.encoder
        named = one_array(rows["mechanism"].cast(pa.string())).dictionary_encode()
        labels = named.dictionary.to_pylist()
        numbers = np.array([encoder.numbers.get(label, -1) for label in labels], dtype=np.int64)
        known = [encoder.labels[number] if number >= 0 else None for number in numbers]
        refuse_if(known != labels, "a mechanism that is not in its study, or has another name there")
        which = numbers[np.asarray(named.indices)]
        for number in np.unique(which).tolist():
            own = np.flatnonzero(which == number)
            yield number, own, _codes(rows.take(pa.array(own)), encoder.mechanisms[number])


def _codes(rows: pa.Table, mechanism: Mechanism) -> Codes:
    """Return the outputs of one mechanism, checked."""
    packed = is_packed(mechanism)
    refuse_if(
        rows["output" if packed else "packed"].null_count != rows.num_rows,
        "outputs in the wrong column (packed or as text)",
    )
    space = mechanism.output_space
    try:
        if packed:
            return from_bytes(mechanism, packed_content(rows, width(mechanism)))
        texts = rows["output"].to_pylist()
        codes = space.encode([space.read(text) for text in texts])
        refuse_if(
            len(codes) != len(texts) or texts_of(mechanism, codes) != texts,
            "outputs that are not written as hubbub writes them",
        )
    except OutputError as error:
        raise DamageError(f"{error.what}: {error.got}") from None
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, HubbubError):
            raise
        raise DamageError("missing or unreadable outputs") from None
    return codes
