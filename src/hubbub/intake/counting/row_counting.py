"""From rows to patterns: each row is counted once, as what its user sent, or rejected.

Without a column of users each row is a user, and equal rows are only counted. With one, rows are put aside as
(user, item) pairs, sorted by user (on disk where memory is short), and each user's items become one pattern. Outputs
that rarely repeat are put aside packed, and sorted, so that what is written does not depend on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.threads import processors
from hubbub.intake.counting.item_encoder import EncodedRows, Encoder
from hubbub.intake.counting.pattern_merging import Patterns
from hubbub.intake.counting.prefetch import read_ahead
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.scratch import Scratch
from hubbub.intake.counting.scratch_tables import between_users, byte_table, content_of, new_users
from hubbub.intake.counting.user_digests import UserDigests
from hubbub.intake.counting.user_faults import counted_before, impossible, too_many
from hubbub.intake.counting.user_ids import UserIds, people_of, refuse_rounded_user
from hubbub.intake.reject_causes import Fault, missing_entry
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.sources.packed_columns import from_bytes, to_bytes
from hubbub.intake.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = 50_000_000  # entries of a table of what is possible, looked at together
SOURCES = 40  # bits of a place that are the place within its source; the others are the source's number
NUMBERS, NAMES, PACKED = "numbers", "names", "packed"


class RowCounter:
    """All that was read so far."""

    def __init__(
        self,
        study: Study,
        scratch: Scratch,
        rejects: Rejects,
        *,
        users: bool,
        visitors: UserDigests | None = None,
        sources: Sequence[Source] = (),
        prefix: str = "",
    ) -> None:
        self.study, self.rejects = study, rejects
        self._prefix = prefix  # of the tables that rows are put aside in
        self.encoder = Encoder(study)
        self.rows = 0
        self.tallied = 0  # outputs of users that were counted before
        self.users = users
        self._scratch = scratch
        self._visitors = visitors
        self._sources: list[Source] = list(sources)
        self._counts = np.zeros(0, dtype=np.int64)
        self._some_packed = bool(self.encoder.packed.any())
        self._tallied: list[tuple[Positions, Positions, Positions]] = []
        self._loose: list[tuple[int, Positions, Codes]] = []
        self._loose_items = 0
        self._open = all(mechanism.full_support for mechanism in self.encoder.mechanisms)  # can all be sent together?
        self._placed = users and (study.max_reports_per_user is not None or visitors is not None or not self._open)

    def take(self, source: Source, rows: Rows) -> None:
        """Count some rows, or reject them."""
        if not self._sources or self._sources[-1] is not source:
            self._sources.append(source)
        check_counted(source, rows)
        self.rows += rows.counted
        if rows.faults:
            self.rejects.add(source, rows.faults)
        if rows.parsed == 0:
            return
        encoded = self.encoder.encode(rows.columns["output"], rows.columns.get("mechanism"))
        if self.users:
            self._take_users(source, rows, encoded)
        else:
            self._take_rows(source, rows, encoded)

    def _take_rows(self, source: Source, rows: Rows, encoded: EncodedRows) -> None:
        good = encoded.items >= 0
        self._count(encoded.items[good], encoded.counts[good])
        for part in encoded.packed:
            self._put_packed(part.mechanism, part.codes, np.ones(len(part.codes), dtype=np.int64))
        faults = [(int(rows.place(np.array([row]))[0]), fault) for row, fault in encoded.refused]
        if (encoded.counts[~good] > 0).any():
            faults += self._faults(rows, encoded)
        self.rejects.add(source, sorted(faults, key=lambda fault: fault[0]))

    def _faults(self, rows: Rows, encoded: EncodedRows) -> list[tuple[int, Fault]]:
        """Return the rows whose mechanism or output is at fault."""
        items = encoded.by_row()
        bad = np.flatnonzero(items < 0)
        places = rows.place(bad).tolist()
        return [
            (place, self.encoder.faults[-1 - item]) for place, item in zip(places, items[bad].tolist(), strict=True)
        ]

    def add_singles(self, mechanism: int, codes: Codes, users: Positions) -> None:
        """Add users who sent one output, counted before."""
        self.tallied += int(users.sum())
        if self.encoder.packed[mechanism]:
            self._put_packed(mechanism, codes, users)
        else:
            self._count(self.encoder.add(mechanism, codes), users)

    def add_items(self, mechanism: int, codes: Codes) -> Positions:
        """Return items for outputs that stand in joint patterns; packed ones are numbered from -1 downwards."""
        if not self.encoder.packed[mechanism]:
            return self.encoder.add(mechanism, codes)
        numbers = self._loose_items + np.arange(len(codes))
        self._loose.append((mechanism, numbers, codes))
        self._loose_items += len(codes)
        return -1 - numbers

    def add_patterns(self, items: Positions, lengths: Positions, users: Positions) -> None:
        """Add users who sent several outputs, counted before: items of one pattern after the other."""
        self.tallied += int(lengths @ users)
        self._tallied.append((items, lengths, users))

    def _count(self, items: Positions, counts: Positions) -> None:
        if items.size and items.max() >= self._counts.size:
            self._counts = np.append(self._counts, np.zeros(2 * int(items.max()) + 16, dtype=np.int64))
        np.add.at(self._counts, items, counts)

    def _put_packed(self, mechanism: int, codes: Codes, counts: Positions) -> None:
        if len(codes):
            content = to_bytes(self.encoder.mechanisms[mechanism], codes)
            columns: dict[str, NDArray[Any]] = {
                "mechanism": np.full(len(codes), mechanism, dtype=np.int16),
                "users": counts,
            }
            self._scratch.insert(self._prefix + PACKED, byte_table(columns, content))

    def _take_users(self, source: Source, rows: Rows, encoded: EncodedRows) -> None:
        import pyarrow as pa

        people = people_of(rows.columns["user"])
        items = encoded.by_row()
        faults = [(int(rows.place(np.array([row]))[0]), fault) for row, fault in encoded.refused]
        if (items < 0).any():
            faults += self._faults(rows, encoded)
        good = items >= 0
        for row, _ in encoded.refused:
            good[row] = False
        nobody = good & people.missing
        if nobody.any():
            faults += [(place, missing_entry("user")) for place in rows.place(np.flatnonzero(nobody)).tolist()]
            good &= ~nobody
        rounded = good & people.rounded
        if rounded.any():
            which = np.flatnonzero(rounded)
            entries = rows.columns["user"].take(pa.array(which)).to_pylist()
            for place, entry in zip(rows.place(which).tolist(), entries, strict=True):
                faults.append((place, refuse_rounded_user(entry)))
            good &= ~rounded
        self.rejects.add(source, sorted(faults, key=lambda fault: fault[0]))
        number = (len(self._sources) - 1) << SOURCES
        places = number + rows.place(np.arange(rows.parsed)) if self._placed else None
        if not self._some_packed:
            self._put(people, good, items, places, None)
            return
        self._put(people, good & (encoded.keys >= 0), items, places, None)
        for part in encoded.packed:
            own = np.zeros(good.size, dtype=bool)
            own[part.rows] = True
            order = np.argsort(part.rows)
            content = to_bytes(self.encoder.mechanisms[part.mechanism], part.codes[order])
            self._put(
                people, own & good, np.full(good.size, -1 - part.mechanism), places, content[good[part.rows[order]]]
            )

    def _put(
        self,
        people: UserIds,
        which: NDArray[np.bool_],
        items: Positions,
        places: Positions | None,
        content: NDArray[np.uint8] | None,
    ) -> None:
        """Put the rows in `which` aside, under the number or the name of their user."""
        import pyarrow as pa

        for table, own in ((NUMBERS, which & people.numbered), (NAMES, which & ~people.numbered)):
            count = int(np.count_nonzero(own))
            if not count:
                continue
            everything = count == own.size
            users = (
                pa.array(people.numbers if everything else people.numbers[own])
                if table == NUMBERS or people.names is None
                else people.names.filter(pa.array(own))
            )
            columns: dict[str, NDArray[Any]] = {"item": (items if everything else items[own]).astype(np.int32)}
            if places is not None:
                columns["place"] = places if everything else places[own]
            rows = byte_table(columns, None if content is None else content[own[which]])
            if self._some_packed and content is None:
                rows = rows.append_column("code", pa.nulls(count, pa.binary()))
            self._scratch.insert(self._prefix + table, rows.append_column("user", users))

    def aside(self, table: str, condition: str) -> pa.Table | None:
        """Return some of the rows that were put aside."""
        return self._scratch.select(self._prefix + table, condition)

    def put_aside(self, table: str, rows: pa.Table) -> None:
        """Take rows that another process put aside."""
        self.rows += rows.num_rows
        self._scratch.insert(self._prefix + table, rows)

    # -- what was gathered ---------------------------------------------------------------------------

    def patterns(self) -> tuple[Patterns, list[tuple[int, Positions, Codes]]]:
        """Return all users' patterns, and the items of those among them that are packed: mechanism, numbers, codes."""
        base = len(self.encoder.items)
        found = Patterns(base)
        found.singles[: min(base, self._counts.size)] += self._counts[:base]
        loose = [(mechanism, base + numbers, codes) for mechanism, numbers, codes in self._loose]
        for items, lengths, users in self._tallied:
            numbered = np.where(items < 0, base - 1 - items, items)
            starts = np.cumsum(lengths) - lengths
            for length in np.unique(lengths).tolist():
                own = np.flatnonzero(lengths == length)
                rows = np.sort(numbered[starts[own][:, None] + np.arange(length)], axis=1)
                found.add_patterns(rows, users[own])
        base += self._loose_items
        found.widen(base)
        for table in (NUMBERS, NAMES):
            if table == NUMBERS and not self._some_packed:
                self._add_numbers(found, base)
            else:
                for batch in self._by_user(table):
                    base = self._add_users(found, batch, base, loose)
            self._scratch.drop(self._prefix + table)
        return found, loose

    @cached_property
    def _able(self) -> NDArray[np.bool_]:
        """Which values can have produced each item; all of them what is packed (the last row)."""
        able = np.ones((len(self.encoder.items) + 1, len(self.study.domain)), dtype=bool)
        for number, own, codes in self.encoder.codes_of(np.arange(len(able) - 1)):
            mechanism = self.encoder.mechanisms[number]
            if not mechanism.full_support:
                able[own] = (mechanism.log_columns(codes) > -np.inf).T
        return able

    def _add_numbers(self, found: Patterns, base: int) -> None:
        """Add users that are numbers, sorted together with their items as one number, by several threads at once."""
        columns = ["user", "item", *(["place"] if self._placed else [])]
        bits = max(1, (base - 1).bit_length())
        for rows in self._scratch.parts(self._prefix + NUMBERS, columns):
            users, items = np.asarray(one_array(rows["user"])), np.asarray(one_array(rows["item"]))
            wide = (int(users.max()) - int(users.min())) >> (62 - bits) > 0
            if wide or self._placed:
                self._add_users(found, rows.take(np.lexsort((items, users))), base, [])
                continue
            keys = users - users.min()
            keys <<= bits
            keys |= items
            keys.sort()
            with ThreadPoolExecutor(processors()) as pool:
                list(pool.map(partial(found.add_keys, bits), between_users(keys, bits, processors())))

    def _by_user(self, table: str) -> Iterator[pa.Table]:
        """Yield the rows of whole users, one user after the other."""
        import pyarrow as pa

        columns = ["user", "item", *(["code"] if self._some_packed else []), *(["place"] if self._placed else [])]
        order = "user, item, code" if self._some_packed else "user, item"
        rest: pa.Table | None = None
        for rows in read_ahead(self._scratch.sorted(self._prefix + table, ", ".join(columns), order)):
            rows = rows if rest is None else pa.concat_tables([rest, rows])
            new = new_users(rows["user"])
            last = int(new[-1])  # the last user may go on in the next batch
            rest = rows.slice(last)
            if last:
                yield rows.slice(0, last)
        if rest is not None:
            yield rest

    def _add_users(self, found: Patterns, rows: pa.Table, base: int, loose: list[tuple[int, Positions, Codes]]) -> int:
        starts = new_users(rows["user"])
        lengths = np.diff(np.append(starts, rows.num_rows))
        items = np.asarray(one_array(rows["item"]))
        refused = self._refused(rows, items, starts, lengths)
        if refused.any():
            kept = np.repeat(~refused, lengths)
            rows, items, lengths = rows.filter(kept), items[kept], lengths[~refused]
        items = items.astype(np.int64, copy=False)
        if self._some_packed:
            items, lengths, base = self._unpack(found, rows, items, lengths, base, loose)
        found.add(items, lengths)
        return base

    def _refused(self, rows: pa.Table, items: Positions, starts: Positions, lengths: Positions) -> NDArray[np.bool_]:
        """Reject the rows of users who sent too much, or what no value gives, or were counted before."""
        refused = np.zeros(lengths.size, dtype=bool)
        limit = self.study.max_reports_per_user
        if limit is not None:
            for which in np.flatnonzero(lengths > limit).tolist():
                user = rows["user"][int(starts[which])].as_py()
                self._reject(rows, int(starts[which]), int(lengths[which]), too_many(user, int(lengths[which]), limit))
                refused[which] = True
        if not self._open:
            for which in np.flatnonzero(~self._possible(items, starts) & ~refused).tolist():
                fault = impossible(rows["user"][int(starts[which])].as_py(), int(lengths[which]))
                self._reject(rows, int(starts[which]), int(lengths[which]), fault)
                refused[which] = True
        if self._visitors is not None:
            users = rows["user"].take(starts)
            for which in np.flatnonzero(self._visitors.seen(users, ~refused)).tolist():
                fault = counted_before(users[which].as_py())
                self._reject(rows, int(starts[which]), int(lengths[which]), fault)
                refused[which] = True
        return refused

    def _possible(self, items: Positions, starts: Positions) -> NDArray[np.bool_]:
        """Return for which users some value can have produced all that they sent."""
        able = self._able
        found = np.empty(starts.size, dtype=bool)
        ends, step = np.append(starts, items.size), max(1, TABLE // able.shape[1])
        first = 0
        while first < starts.size:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + step, side="right")) - 1)
            some = able[np.maximum(items[ends[first] : ends[last]], -1)]
            found[first:last] = np.logical_and.reduceat(some, starts[first:last] - starts[first]).any(axis=1)
            first = last
        return found

    def _reject(self, rows: pa.Table, start: int, count: int, fault: Fault) -> None:
        for place in sorted(rows["place"].slice(start, count).to_pylist()):
            self.rejects.add(self._sources[place >> SOURCES], [(place & ((1 << SOURCES) - 1), fault)])

    def _unpack(
        self,
        found: Patterns,
        rows: pa.Table,
        items: Positions,
        lengths: Positions,
        base: int,
        loose: list[tuple[int, Positions, Codes]],
    ) -> tuple[Positions, Positions, int]:
        """Put users with one packed output aside; number the packed outputs of the others."""
        alone = np.repeat(lengths == 1, lengths)
        for number in np.unique(items[items < 0]).tolist():
            mechanism = self.encoder.mechanisms[-1 - number]
            for own, single in (
                (np.flatnonzero((items == number) & alone), True),
                (np.flatnonzero((items == number) & ~alone), False),
            ):
                if own.size == 0:
                    continue
                content = content_of(rows["code"], own)
                if single:
                    columns: dict[str, NDArray[Any]] = {
                        "mechanism": np.full(own.size, -1 - number, dtype=np.int16),
                        "users": np.ones(own.size, dtype=np.int64),
                    }
                    self._scratch.insert(self._prefix + PACKED, byte_table(columns, content))
                else:
                    numbers = base + np.arange(own.size)
                    loose.append((-1 - number, numbers, from_bytes(mechanism, content)))
                    items[own] = numbers
                    base += own.size
        found.widen(base)
        kept = items >= 0
        return items[kept], lengths[(lengths > 1) | kept[np.cumsum(lengths) - lengths]], base

    def packed(self) -> Iterator[tuple[int, Codes, Positions]]:
        """Yield packed outputs in order, each once with its count: mechanism, codes, users."""
        rest: tuple[int, NDArray[np.uint8], Positions] | None = None
        for batch in self._scratch.sorted(self._prefix + PACKED, "mechanism, code, users", "mechanism, code"):
            which, counts = np.asarray(batch["mechanism"]), np.asarray(batch["users"])
            for number in np.unique(which).tolist():
                own = np.flatnonzero(which == number)
                content, users = content_of(batch["code"], own), counts[own]
                if rest is not None and rest[0] == number:
                    content, users = np.concatenate([rest[1], content]), np.concatenate([rest[2], users])
                elif rest is not None:
                    yield self._codes(rest)
                new = np.append(True, (content[1:] != content[:-1]).any(axis=1))
                content, users = content[new], np.add.reduceat(users, np.flatnonzero(new))
                if len(content) > 1:
                    yield self._codes((number, content[:-1], users[:-1]))
                rest = number, content[-1:], users[-1:]
        if rest is not None:
            yield self._codes(rest)

    def _codes(self, part: tuple[int, NDArray[np.uint8], Positions]) -> tuple[int, Codes, Positions]:
        number, content, users = part
        return number, from_bytes(self.encoder.mechanisms[number], content), users
