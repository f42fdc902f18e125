"""Rows that name their users: put aside as (user, item) pairs, sorted by user, and merged to one pattern per user.

Users are whole numbers or names, each in a table of their own. Sorting happens on disk where memory is short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.core.threads import processors, read_ahead
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.item_encoder import Coded, Encoder
from hubbub.intake.counting.packed_singles import PackedSingles, byte_table, content_of
from hubbub.intake.counting.pattern_merging import Patterns
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.survey_tags import FIRST_TAG, two_tags
from hubbub.intake.counting.user_digests import UserDigests
from hubbub.intake.counting.user_ids import UserIds, counted_before, impossible, too_many
from hubbub.intake.reject_causes import Fault
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.sources.packed_bytes import from_bytes
from hubbub.intake.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TABLE_ENTRIES = 50_000_000  # of the table of which value can give which item, looked at together
PLACE_BITS = 40  # of a place, for the place within its source; the others are the source's number
NUMBERS, NAMES = "numbers", "names"  # the tables


class UserRows:
    """Rows that wait for the other rows of their users."""

    def __init__(
        self,
        study: Study,
        encoder: Encoder,
        scratch: Scratch,
        rejects: Rejects,
        singles: PackedSingles,
        *,
        sources: Sequence[Source],
        known_users: UserDigests | None,
        prefix: str,
        tagged: bool = False,
    ) -> None:
        self._study, self._encoder, self._scratch, self._rejects = study, encoder, scratch, rejects
        self._singles, self._sources, self._known_users, self._prefix = singles, sources, known_users, prefix
        self._some_packed = bool(encoder.packed.any())
        self._all_possible = all(mechanism.full_support for mechanism in encoder.mechanisms)
        # Places are kept where a user may be rejected as a whole.
        may_reject = study.max_reports_per_user is not None or known_users is not None or not self._all_possible
        self.with_places = may_reject or tagged
        self._tagged = tagged
        kept = {"user": True, "item": True, "code": self._some_packed, "place": self.with_places, "tag": tagged}
        self._columns = [name for name, is_kept in kept.items() if is_kept]

    def put(
        self,
        users: UserIds,
        which: NDArray[np.bool_],
        items: Positions,
        places: Positions | None,
        content: NDArray[np.uint8] | None = None,
        tags: Positions | None = None,
    ) -> None:
        """Put the rows in `which` aside, under the number or the name of their user.

        `content` are packed outputs, and `tags` how the users were sampled.
        """
        import pyarrow as pa

        for table, own in ((NUMBERS, which & users.numbered), (NAMES, which & ~users.numbered)):
            count = int(np.count_nonzero(own))
            if not count:
                continue
            everything = count == own.size
            ids = (
                pa.array(users.numbers if everything else users.numbers[own])
                if table == NUMBERS or users.names is None
                else users.names.filter(pa.array(own))
            )
            columns: dict[str, NDArray[Any]] = {"item": (items if everything else items[own]).astype(np.int32)}
            if places is not None:
                columns["place"] = places if everything else places[own]
            if tags is not None:
                columns["tag"] = tags if everything else tags[own]
            rows = byte_table(columns, None if content is None else content[own[which]])
            if self._some_packed and content is None:
                rows = rows.append_column("code", pa.nulls(count, pa.binary()))
            self.insert(table, rows.append_column("user", ids))

    def insert(self, table: str, rows: pa.Table) -> None:
        """Put rows aside as they are."""
        self._scratch.insert(self._prefix + table, rows)

    def select(self, table: str, condition: str) -> pa.Table | None:
        """Return the rows that meet a condition; None where there is no such table."""
        return self._scratch.select(self._prefix + table, condition)

    def tables(self) -> tuple[str, str]:
        """Return the tables in which rows wait: of users who are numbers, and of those who are names."""
        return self._prefix + NUMBERS, self._prefix + NAMES

    def merge_into(self, patterns: Patterns, packed_items: list[Coded], base: int) -> None:
        """Add all users to `patterns`; packed outputs among theirs are numbered from `base`, in `packed_items`."""
        if not self._some_packed:
            self._add_numbers(patterns, base)
            self._scratch.drop(self._prefix + NUMBERS)
        for table in (NUMBERS, NAMES):
            for batch in self._sorted(table):
                base = self._add(patterns, batch, base, packed_items)
            self._scratch.drop(self._prefix + table)

    def _add_numbers(self, patterns: Patterns, base: int) -> None:
        """Add users that are numbers, sorted together with their items as one number, by several threads at once."""
        bits = max(1, (base - 1).bit_length())
        for rows in self._scratch.parts(self._prefix + NUMBERS, self._columns):
            users, items = np.asarray(one_array(rows["user"])), np.asarray(one_array(rows["item"]))
            too_wide = (int(users.max()) - int(users.min())) >> (62 - bits) > 0
            if too_wide or self.with_places:
                self._add(patterns, rows.take(np.lexsort((items, users))), base, [])
                continue
            keys = users - users.min()
            keys <<= bits
            keys |= items
            keys.sort()
            with ThreadPoolExecutor(processors()) as pool:
                list(pool.map(partial(patterns.add_keys, bits), _between_users(keys, bits, processors())))

    def _sorted(self, table: str) -> Iterator[pa.Table]:
        """Yield the rows of whole users, one user after the other."""
        import pyarrow as pa

        order = "user, item, code" if self._some_packed else "user, item"
        rest: pa.Table | None = None
        for rows in read_ahead(self._scratch.sorted(self._prefix + table, ", ".join(self._columns), order)):
            rows = rows if rest is None else pa.concat_tables([rest, rows])
            last = int(_user_starts(rows["user"])[-1])  # the last user may go on in the next batch
            rest = rows.slice(last)
            if last:
                yield rows.slice(0, last)
        if rest is not None:
            yield rest

    def _add(self, patterns: Patterns, rows: pa.Table, base: int, packed_items: list[Coded]) -> int:
        """Add the users of sorted rows; return the number of the next packed item."""
        starts = _user_starts(rows["user"])
        lengths = np.diff(np.append(starts, rows.num_rows))
        items = np.asarray(one_array(rows["item"]))
        refused = self._refused(rows, items, starts, lengths)
        if refused.any():
            kept = np.repeat(~refused, lengths)
            rows, items, lengths = rows.filter(kept), items[kept], lengths[~refused]
        items = items.astype(np.int64, copy=False)
        first_rows = np.cumsum(lengths) - lengths
        tags = np.asarray(one_array(rows["tag"]))[first_rows] if self._tagged else None
        if self._some_packed:
            items, lengths, base = self._unpack(rows, items, lengths, base, packed_items)
            patterns.widen(base)
        if tags is not None:
            items, lengths = np.insert(items, np.cumsum(lengths), FIRST_TAG + tags), lengths + 1
        patterns.add(items, lengths)
        return base

    def _refused(self, rows: pa.Table, items: Positions, starts: Positions, lengths: Positions) -> NDArray[np.bool_]:
        """Reject users who sent too much, or what no value gives, or were counted before; return which they are."""
        refused = np.zeros(lengths.size, dtype=bool)

        def reject(which: int, fault: Fault) -> None:
            for place in sorted(rows["place"].slice(int(starts[which]), int(lengths[which])).to_pylist()):
                self._rejects.add(self._sources[place >> PLACE_BITS], [(place & ((1 << PLACE_BITS) - 1), fault)])
            refused[which] = True

        def user(which: int) -> object:
            return rows["user"][int(starts[which])].as_py()

        limit = self._study.max_reports_per_user
        if limit is not None:
            for which in np.flatnonzero(lengths > limit).tolist():
                reject(which, too_many(user(which), int(lengths[which]), limit))
        if not self._all_possible:
            for which in np.flatnonzero(~self._possible(items, starts) & ~refused).tolist():
                reject(which, impossible(user(which), int(lengths[which])))
        if self._tagged:
            tags = np.asarray(one_array(rows["tag"]))
            differ = np.add.reduceat((tags != np.repeat(tags[starts], lengths)).astype(np.int64), starts) > 0
            for which in np.flatnonzero(differ & ~refused).tolist():
                reject(which, two_tags(user(which), int(lengths[which])))
        if self._known_users is not None:
            known = self._known_users.seen(rows["user"].take(starts), ~refused)
            for which in np.flatnonzero(known).tolist():
                reject(which, counted_before(user(which)))
        return refused

    def _possible(self, items: Positions, starts: Positions) -> NDArray[np.bool_]:
        """Return for which users some value can have produced all that they sent."""
        possible = np.empty(starts.size, dtype=bool)
        ends, step = np.append(starts, items.size), max(1, MAX_TABLE_ENTRIES // self._values_of_items.shape[1])
        first = 0
        while first < starts.size:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + step, side="right")) - 1)
            values = self._values_of_items[np.maximum(items[ends[first] : ends[last]], -1)]
            possible[first:last] = np.logical_and.reduceat(values, starts[first:last] - starts[first]).any(axis=1)
            first = last
        return possible

    @cached_property
    def _values_of_items(self) -> NDArray[np.bool_]:
        """Which values can have produced each item; all of them a packed one (the last row)."""
        able = np.ones((len(self._encoder.items) + 1, len(self._study.domain)), dtype=bool)
        for number, own, codes in self._encoder.codes_of(np.arange(len(able) - 1)):
            mechanism = self._encoder.mechanisms[number]
            if not mechanism.full_support:
                able[own] = (mechanism.log_columns(codes) > -np.inf).T
        return able

    def _unpack(
        self, rows: pa.Table, items: Positions, lengths: Positions, base: int, packed_items: list[Coded]
    ) -> tuple[Positions, Positions, int]:
        """Put users with one packed output aside; number the packed outputs of the others from `base`."""
        alone = np.repeat((lengths == 1) & (not self._tagged), lengths)
        for item in np.unique(items[items < 0]).tolist():
            mechanism = -1 - item
            own = np.flatnonzero((items == item) & alone)
            if own.size:
                self._singles.put(mechanism, content_of(rows["code"], own))
            own = np.flatnonzero((items == item) & ~alone)
            if own.size:
                numbers = base + np.arange(own.size)
                codes = from_bytes(self._encoder.mechanisms[mechanism], content_of(rows["code"], own))
                packed_items.append(Coded(mechanism, numbers, codes))
                items[own] = numbers
                base += own.size
        kept = items >= 0
        return items[kept], lengths[(lengths > 1) | self._tagged | kept[np.cumsum(lengths) - lengths]], base


def _user_starts(users: pa.ChunkedArray) -> Positions:
    """Return the rows at which another user begins."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = one_array(users)
    if pa.types.is_integer(array.type):
        numbers = np.asarray(array)
        changes = numbers[1:] != numbers[:-1]
    else:
        changes = np.asarray(pc.not_equal(array.slice(1), array.slice(0, len(array) - 1)))
    return np.flatnonzero(np.append(True, changes))


def _between_users(keys: Positions, bits: int, count: int) -> list[Positions]:
    """Return about equal parts of sorted rows (user and item as one number), cut where another user begins."""
    middle = [int(keys[keys.size * place // count]) >> bits << bits for place in range(1, count)]
    return np.split(keys, np.searchsorted(keys, middle))
