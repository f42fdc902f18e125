"""The reports that were counted, in an order that does not depend on arrival: blocks, and packed outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hubbub.core.arrays import Codes, Positions, frozen
from hubbub.intake.counting.item_encoder import Coded, Encoder
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.survey_tags import FIRST_TAG, SurveyTags
from hubbub.intake.reject_causes import refusal
from hubbub.intake.study import Study
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import unique_codes
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.reports import Block, Joint, Reports, Singles, SurveyWeights
from hubbub.reports.blocks import common_items
from hubbub.reports.privacy_accounting import Spent, spent_once
from hubbub.reports.reports import assemble_with_patterns, in_order
from hubbub.reports.validation import no_reports

MAX_OUTPUTS_PER_USER = 1 << 24


class Content:
    """The users' reports: some merged to blocks, the packed ones in a stream that can be read once."""

    def __init__(self, counter: RowCounter) -> None:
        self.study = counter.study
        self._counter = counter
        patterns, packed_items = counter.patterns()
        encoder = counter.encoder
        self.singles: list[Singles] = []
        self.joint: Joint | None = None
        self.survey: SurveyWeights | None = None
        if counter.tags is not None:
            self._take_tagged(list(patterns.patterns()), packed_items, counter.tags)
            return
        sent = np.flatnonzero(patterns.singles[: len(encoder.items)])
        for number, items, codes in encoder.codes_of(sent):
            self.singles.append(Singles.build(encoder.mechanisms[number], codes, patterns.singles[items]))
        self.joint = _joint(encoder, list(patterns.patterns()), packed_items)
        self.taken = sum(block.users for block in self.singles)  # outputs, one by one; packed ones as they are read
        if self.joint is not None:
            self.taken += int(self.joint.repeats.sum(axis=1) @ self.joint.counts)

    def _take_tagged(
        self, patterns: list[tuple[Positions, Positions]], packed_items: list[Coded], tags: SurveyTags
    ) -> None:
        """Take patterns of users whose last item says how they were sampled."""
        encoder = self._counter.encoder
        self.taken = sum(int(counts.sum()) * (rows.shape[1] - 1) for rows, counts in patterns)
        if not patterns:
            return
        counts = np.concatenate([own for _, own in patterns])
        lengths = np.concatenate([np.full(len(rows), rows.shape[1] - 1) for rows, _ in patterns])
        items = np.concatenate([rows[:, :-1].ravel() for rows, _ in patterns])
        sampled = np.concatenate([rows[:, -1] for rows, _ in patterns]) - FIRST_TAG
        users = np.repeat(np.arange(counts.size), lengths)
        common = np.unique(items[items < len(encoder.items)])
        encoded: dict[Mechanism, list[Codes]] = {}
        senders: dict[Mechanism, list[Positions]] = {}
        for number, own, codes in (*encoder.codes_of(common), *packed_items):
            sent = np.flatnonzero(np.isin(items, own))
            order = np.argsort(own)
            encoded.setdefault(encoder.mechanisms[number], []).append(
                codes[order[np.searchsorted(own[order], items[sent])]]
            )
            senders.setdefault(encoder.mechanisms[number], []).append(users[sent])
        reports, places = assemble_with_patterns(
            self.study.domain,
            {mechanism: np.concatenate(parts) for mechanism, parts in encoded.items()},
            {mechanism: np.concatenate(parts) for mechanism, parts in senders.items()},
            counts.size,
        )
        self.survey = SurveyWeights.build(places(), *tags.columns(sampled), counts)
        totals = np.bincount(places(), counts, minlength=reports.weights.size).astype(np.int64)
        first = 0
        for block in reports.blocks:
            assert isinstance(block, Singles | Joint)  # noqa: S101  # what is assembled
            counted = replace(block, counts=frozen(totals[first : first + block.counts.size]))
            first += block.counts.size
            if isinstance(counted, Joint):
                self.joint = counted
            else:
                self.singles.append(counted)

    def sampled_by_block(self) -> dict[Block, SurveyWeights]:
        """Return how the users of each block were sampled; patterns are numbered within the block."""
        assert self.survey is not None  # noqa: S101  # only asked for then
        sampled, first = {}, 0
        for block in in_order(self.blocks):
            size = block.weights.size
            own = np.flatnonzero((self.survey.patterns >= first) & (self.survey.patterns < first + size))
            rows = self.survey.rows(own)
            sampled[block] = replace(rows, patterns=rows.patterns - first)
            first += size
        return sampled

    @property
    def blocks(self) -> list[Block]:
        """The reports that are merged, without the packed ones."""
        return [*self.singles, *([] if self.joint is None else [self.joint])]

    def _check_conserved(self) -> None:
        """Refuse to go on if rows were lost or invented: those taken and those rejected are all that were counted."""
        counter = self._counter
        expected = counter.rows - counter.rejects.rows + counter.tallied
        if self.taken != expected:
            raise refusal(
                "rows-lost",
                "rows were lost on the way",
                where="merging users",
                got=f"{self.taken:,} outputs taken",
                expected=f"{expected:,}: {counter.rows:,} rows counted, {counter.rejects.rows:,} of them rejected",
                remedy="report this as a bug, with the file if you can",
            )

    def packed(self) -> Iterator[tuple[str, Mechanism, Codes, Positions]]:
        """Yield the packed outputs of users who sent one, in order: the mechanism's name, itself, codes, users.

        After the last of them, all outputs must have been taken.
        """
        encoder = self._counter.encoder
        for number, codes, users in self._counter.singles.merged():
            self.taken += int(users.sum())
            yield encoder.labels[number], encoder.mechanisms[number], codes, users
        self._check_conserved()

    def reports(self, where: str) -> Reports:
        """Return all reports in memory; refuse if there are none."""
        reports = self.reports_or_none()
        if reports is None:
            raise no_reports(where)
        return reports

    def reports_or_none(self) -> Reports | None:
        """Return all reports in memory, None if nobody sent any."""
        parts: dict[Mechanism, list[tuple[Codes, Positions]]] = {}
        for _, mechanism, codes, users in self.packed():
            parts.setdefault(mechanism, []).append((codes, users))
        blocks = self.blocks
        for mechanism, pieces in parts.items():
            codes = pieces[0][0] if len(pieces) == 1 else np.concatenate([part for part, _ in pieces])
            counts = np.concatenate([count for _, count in pieces])
            if isinstance(mechanism.output_space, BitRowOutputs):
                blocks.append(Singles(mechanism, frozen(codes), frozen(counts)))  # in order already, and each once
            else:
                blocks.append(Singles.build(mechanism, codes, counts))  # their order differs
        if not blocks:
            return None
        for block in blocks:
            block.check_possible(None)
        return Reports(self.study.domain, in_order(blocks), self.survey)


def _joint(encoder: Encoder, patterns: list[tuple[Positions, Positions]], packed_items: list[Coded]) -> Joint | None:
    """Return the users who sent several outputs."""
    if not patterns:
        return None
    if patterns[-1][0].shape[1] > MAX_OUTPUTS_PER_USER:  # the longest come last
        raise refusal(
            "too-many-reports",
            "a user sent more outputs than hubbub can count",
            where="column user",
            got=f"{patterns[-1][0].shape[1]:,} outputs",
            expected=f"at most {MAX_OUTPUTS_PER_USER:,}",
            remedy="check the column: the same text in all rows is not a user; set max_reports_per_user in the study",
        )
    flat = np.concatenate([rows.ravel() for rows, _ in patterns])
    met = np.zeros(int(flat.max()) + 1, dtype=bool)
    met[flat] = True
    used = np.flatnonzero(met)
    parts = [*encoder.codes_of(used[used < len(encoder.items)]), *packed_items]
    sources, places = common_items([(encoder.mechanisms[number], codes) for number, _, codes in parts])
    positions = np.full(int(used[-1]) + 1, -1, dtype=np.int64)  # of items among all outputs of the joint block
    for (_, items, _), places_of_items in zip(parts, places, strict=True):
        sent = items < positions.size
        positions[items[sent]] = places_of_items[sent]
    # In the numbers that items have here, rows are in another order, and equal ones may meet: packed outputs were
    # numbered one by one.
    moved = [unique_codes(np.sort(positions[rows], axis=1), counts, None) for rows, counts in patterns]
    return Joint.of_patterns(sources, moved)


def spent_by(study: Study, blocks: Sequence[Block], packed: Mapping[str, int]) -> dict[Spent, int]:
    """Return how many users spent how much in total, from blocks and the number of users of each packed mechanism."""
    totals: Counter[Spent] = Counter()
    for label, users in packed.items():
        totals.update(spent_once(study.mechanisms[label], users))
    for block in blocks:
        totals.update(block.spending())
    return dict(totals)
