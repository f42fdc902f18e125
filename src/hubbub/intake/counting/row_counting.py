"""From rows to patterns: each row is counted once, as what its user sent, or rejected.

Without a column of users each row is a user, and equal rows are only counted. With one, rows are put aside until all
rows of each user can be merged to one pattern (user_rows.py). Outputs that rarely repeat are put aside packed
(packed_singles.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np

from hubbub.core.arrays import Codes, Positions
from hubbub.intake.counting.attribute_encoder import AttributeEncoder
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.item_encoder import Coded, EncodedRows, Encoder
from hubbub.intake.counting.packed_singles import PackedSingles
from hubbub.intake.counting.pattern_merging import Patterns
from hubbub.intake.counting.place_encoder import PlaceEncoder
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.survey_tags import FIRST_TAG, SurveyTags
from hubbub.intake.counting.user_digests import UserDigests
from hubbub.intake.counting.user_ids import numbered_users, rounded_user, user_ids
from hubbub.intake.counting.user_rows import PLACE_BITS, UserRows
from hubbub.intake.reject_causes import Fault, missing_entry
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.packed_bytes import to_bytes
from hubbub.intake.study import Study
from hubbub.reports.pattern_rows import rows_by_length


class RowCounter:
    """All rows that were counted so far.

    `known_users` are those that a tally remembers, `sources` those that other processes read, `prefix` keeps the
    tables of several counters apart that share one scratch, and `survey` names the columns of a survey that are read.
    """

    def __init__(
        self,
        study: Study,
        scratch: Scratch,
        rejects: Rejects,
        *,
        users: bool,
        known_users: UserDigests | None = None,
        sources: Sequence[Source] = (),
        prefix: str = "",
        survey: Sequence[str] = (),
    ) -> None:
        self.study, self.rejects = study, rejects
        self.tags = SurveyTags(survey) if survey else None
        self.encoder = Encoder(study)
        self.rows = 0
        self.tallied = 0  # outputs of users that were counted before
        self._sources: list[Source] = list(sources)
        self._counts = np.zeros(0, dtype=np.int64)
        self._tallied: list[tuple[Positions, Positions, Positions, Positions | None]] = []
        self._packed_items: list[Coded] = []
        self._packed_count = 0
        self.singles = PackedSingles(self.encoder.mechanisms, scratch, prefix)
        self.users: UserRows | None = None  # where rows do not say who sent them
        if users or survey:  # where rows do not say who sent them, each is a user
            self.users = UserRows(
                study,
                self.encoder,
                scratch,
                rejects,
                self.singles,
                sources=self._sources,
                known_users=known_users,
                prefix=prefix,
                tagged=self.tags is not None,
            )

    @cached_property
    def _places(self) -> PlaceEncoder:
        return PlaceEncoder(self.study, self.encoder)

    @cached_property
    def _attributes(self) -> AttributeEncoder:
        return AttributeEncoder(self.encoder)

    # -- counting ------------------------------------------------------------------------------------

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
        place, mechanisms = source.columns.place, rows.columns.get("mechanism")
        if place is None and source.columns.attribute_roles:
            outputs = {role: column for role, column in rows.columns.items() if role.partition(".")[0] == "output"}
            encoded = self._attributes.encode(outputs, mechanisms)
        elif place is None:
            encoded = self.encoder.encode(rows.columns["output"], mechanisms)
        else:
            encoded = self._places.encode({role: rows.columns[role] for role in place}, mechanisms)
        faults = self._faults(rows, encoded)
        if self.users is None:
            self._take_rows(encoded)
        else:
            faults += self._take_users(rows, encoded, self.users)
        self.rejects.add(source, sorted(faults, key=itemgetter(0)))

    def _faults(self, rows: Rows, encoded: EncodedRows) -> list[tuple[int, Fault]]:
        """Return the places of rows whose mechanism or output is at fault, and why."""
        faults = [(int(rows.place(np.array([row]))[0]), fault) for row, fault in encoded.refused]
        if (encoded.counts[encoded.items < 0] > 0).any():
            items = encoded.by_row()
            bad = np.flatnonzero(items < 0)
            causes = [self.encoder.faults[-1 - item] for item in items[bad].tolist()]
            faults += zip(rows.place(bad).tolist(), causes, strict=True)
        return faults

    def _take_rows(self, encoded: EncodedRows) -> None:
        """Count rows as users of their own."""
        good = encoded.items >= 0
        self._count(encoded.items[good], encoded.counts[good])
        for part in encoded.packed:
            self.singles.put(part.mechanism, to_bytes(self.encoder.mechanisms[part.mechanism], part.codes))

    def _take_users(self, rows: Rows, encoded: EncodedRows, waiting: UserRows) -> list[tuple[int, Fault]]:
        """Put rows aside until all rows of their users are there; return those whose user is at fault."""
        import pyarrow as pa

        is_named = "user" in rows.columns
        users = user_ids(rows.columns["user"]) if is_named else numbered_users(self.rows - rows.parsed, rows.parsed)
        items = encoded.by_row()
        good = items >= 0
        good[[row for row, _ in encoded.refused]] = False
        nobody, missing = missing_entry("user"), np.flatnonzero(good & users.missing)
        faults = [(place, nobody) for place in rows.place(missing).tolist()]
        rounded = np.flatnonzero(good & users.rounded & ~users.missing)
        entries = rows.columns["user"].take(pa.array(rounded)).to_pylist() if is_named else []
        faults += zip(rows.place(rounded).tolist(), map(rounded_user, entries), strict=True)
        good &= ~(users.missing | users.rounded)
        tags = None
        if self.tags is not None:
            tags, untagged = self.tags.encode(rows)
            faults += [(int(rows.place(np.array([row]))[0]), fault) for row, fault in untagged if good[row]]
            good &= tags >= 0
        first = (len(self._sources) - 1) << PLACE_BITS
        places = first + rows.place(np.arange(rows.parsed)) if waiting.with_places else None
        waiting.put(users, good & (encoded.keys >= 0), items, places, tags=tags)
        for part in encoded.packed:
            own = np.zeros(good.size, dtype=bool)
            own[part.places] = True
            order = np.argsort(part.places)
            content = to_bytes(self.encoder.mechanisms[part.mechanism], part.codes[order])
            own_items = np.full(good.size, -1 - part.mechanism)
            waiting.put(users, own & good, own_items, places, content[good[part.places[order]]], tags)
        return faults

    def _count(self, items: Positions, counts: Positions) -> None:
        if items.size and items.max() >= self._counts.size:
            self._counts = np.append(self._counts, np.zeros(2 * int(items.max()) + 16, dtype=np.int64))
        np.add.at(self._counts, items, counts)

    # -- what was counted before, or elsewhere -------------------------------------------------------

    def add_singles(self, mechanism: int, codes: Codes, users: Positions, tags: Positions | None = None) -> None:
        """Add users who sent one output, counted before; `tags` say how they were sampled."""
        if tags is not None:
            self.add_patterns(self.add_items(mechanism, codes), np.ones(len(codes), dtype=np.int64), users, tags)
            return
        self.tallied += int(users.sum())
        if self.encoder.packed[mechanism]:
            self.singles.put(mechanism, to_bytes(self.encoder.mechanisms[mechanism], codes), users)
        else:
            self._count(self.encoder.add(mechanism, codes), users)

    def add_items(self, mechanism: int, codes: Codes) -> Positions:
        """Return items for outputs of joint patterns; packed ones are numbered from -1 downwards."""
        if not self.encoder.packed[mechanism]:
            return self.encoder.add(mechanism, codes)
        numbers = self._packed_count + np.arange(len(codes))
        self._packed_items.append(Coded(mechanism, numbers, codes))
        self._packed_count += len(codes)
        return -1 - numbers

    def add_patterns(
        self, items: Positions, lengths: Positions, users: Positions, tags: Positions | None = None
    ) -> None:
        """Add users who sent several outputs, counted before: items of one pattern after the other."""
        self.tallied += int(lengths @ users)
        self._tallied.append((items, lengths, users, tags))

    # -- what was counted ----------------------------------------------------------------------------

    def patterns(self) -> tuple[Patterns, list[Coded]]:
        """Return all users' patterns, and those of their items that are packed."""
        base = len(self.encoder.items)
        patterns = Patterns(base, tagged=self.tags is not None)
        patterns.singles[: min(base, self._counts.size)] += self._counts[:base]
        packed_items = [Coded(mechanism, base + numbers, codes) for mechanism, numbers, codes in self._packed_items]
        for items, lengths, users, tags in self._tallied:
            for own, rows in rows_by_length(np.where(items < 0, base - 1 - items, items), lengths):
                sampled = [] if tags is None else [FIRST_TAG + tags[own]]
                patterns.add_patterns(np.column_stack([np.sort(rows, axis=1), *sampled]), users[own])
        base += self._packed_count
        patterns.widen(base)
        if self.users is not None:
            self.users.merge_into(patterns, packed_items, base)
        return patterns, packed_items
