"""What was gathered, put in an order that does not depend on arrival: blocks of reports, and packed outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hubbub.core.arrays import Codes, Positions, frozen
from hubbub.intake.counting.pattern_merging import merged_rows
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.reject_causes import refusal
from hubbub.intake.study import Study
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.reports import Block, Joint, Reports, Singles
from hubbub.reports.blocks import ordered
from hubbub.reports.from_users import no_reports
from hubbub.reports.privacy_spent import Spent, spent_once
from hubbub.reports.reports import in_order

MOST_OUTPUTS = 1 << 24  # of one user


class Content:
    """The users' reports: some merged to blocks, the packed ones in a stream that can be read once."""

    def __init__(self, gathering: RowCounter) -> None:
        self.study = gathering.study
        self._gathering = gathering
        found, loose = gathering.patterns()
        encoder = gathering.encoder
        self.singles: list[Singles] = []
        sent = np.flatnonzero(found.singles[: len(encoder.items)])
        for number, own, codes in encoder.codes_of(sent):
            self.singles.append(Singles.build(encoder.mechanisms[number], codes, found.singles[sent[own]]))
        self.joint = _joint(gathering, list(found.patterns()), loose)
        self._taken = sum(block.users for block in self.singles)  # outputs, one by one
        if self.joint is not None:
            self._taken += int(self.joint.repeats.sum(axis=1) @ self.joint.counts)

    def check_conserved(self) -> None:
        """Refuse to go on if rows were lost or invented: those taken and those rejected are all that were counted.

        To be called once the packed outputs were read.
        """
        gathering = self._gathering
        expected = gathering.rows - gathering.rejects.rows + gathering.tallied
        if self._taken != expected:
            raise refusal(
                "rows-lost",
                "rows were lost on the way",
                where="merging users",
                got=f"{self._taken:,} outputs taken",
                expected=f"{expected:,}: {gathering.rows:,} rows counted, {gathering.rejects.rows:,} of them rejected",
                remedy="report this as a bug, with the file if you can",
            )

    def packed(self) -> Iterator[tuple[str, Mechanism, Codes, Positions]]:
        """Yield the packed outputs of users who sent one, in order: the mechanism's name, itself, codes, users."""
        encoder = self._gathering.encoder
        for number, codes, users in self._gathering.packed():
            self._taken += int(users.sum())
            yield encoder.labels[number], encoder.mechanisms[number], codes, users

    def reports(self, where: str) -> Reports:
        """Return all as reports in memory; refuse where there are none."""
        found = self.reports_or_none()
        if found is None:
            raise no_reports(where)
        return found

    def reports_or_none(self) -> Reports | None:
        """Return all as reports in memory, None where nobody sent any."""
        parts: dict[Mechanism, list[tuple[Codes, Positions]]] = {}
        for _, mechanism, codes, users in self.packed():
            parts.setdefault(mechanism, []).append((codes, users))
        blocks: list[Block] = [*self.singles, *([] if self.joint is None else [self.joint])]
        for mechanism, pieces in parts.items():
            codes = pieces[0][0] if len(pieces) == 1 else np.concatenate([part for part, _ in pieces])
            counts = np.concatenate([count for _, count in pieces])
            if isinstance(mechanism.output_space, BitRowOutputs):
                blocks.append(Singles(mechanism, frozen(codes), frozen(counts)))  # in order already, and each once
            else:
                blocks.append(Singles.build(mechanism, codes, counts))  # of which the order is another one
        if not blocks:
            return None
        # Two names of one mechanism are one mechanism.
        found = [Reports(self.study.domain, in_order([block])) for block in blocks]
        whole = sum(found[1:], found[0])
        for block in whole.blocks:
            block.check_possible(None)
        return whole


def _joint(
    gathering: RowCounter, patterns: list[tuple[Positions, Positions]], loose: list[tuple[int, Positions, Codes]]
) -> Joint | None:
    """Return the users who sent several outputs."""
    if not patterns:
        return None
    if patterns[-1][0].shape[1] > MOST_OUTPUTS:  # the longest come last
        raise refusal(
            "too-many-reports",
            "a user sent more than anybody does",
            where="column user",
            got=f"{patterns[-1][0].shape[1]:,} outputs",
            expected=f"at most {MOST_OUTPUTS:,}",
            remedy="check the column: the same text in all rows is no user; set max_reports_per_user in the study",
        )
    encoder = gathering.encoder
    flat = np.concatenate([rows.ravel() for rows, _ in patterns])
    met = np.zeros(int(flat.max()) + 1, dtype=bool)
    met[flat] = True
    used = np.flatnonzero(met)
    known = used[used < len(encoder.items)]
    parts: dict[Mechanism, list[tuple[Positions, Codes]]] = {}
    for number, own, codes in encoder.codes_of(known):
        parts.setdefault(encoder.mechanisms[number], []).append((known[own], codes))
    for number, numbers, codes in loose:
        parts.setdefault(encoder.mechanisms[number], []).append((numbers, codes))
    places = np.full(int(used[-1]) + 1, -1, dtype=np.int64)
    sources: list[tuple[Mechanism, Codes]] = []
    offset = 0
    for mechanism in ordered(parts):
        distinct, back = index_codes(np.concatenate([codes for _, codes in parts[mechanism]]))
        numbers = np.concatenate([numbers for numbers, _ in parts[mechanism]])
        places[numbers[numbers < places.size]] = offset + back[numbers < places.size]
        sources.append((mechanism, frozen(distinct)))
        offset += len(distinct)
    # In the numbers that items have here, rows are in another order, and equal ones may meet: packed outputs were
    # numbered one by one.
    moved = [merged_rows(np.sort(places[rows], axis=1), counts) for rows, counts in patterns]
    return Joint.of_patterns(tuple(sources), moved)


def spent_by(study: Study, blocks: Sequence[Block], packed: Mapping[str, int]) -> dict[Spent, int]:
    """Return how many users spent how much in all, from blocks and the number of users of each packed mechanism."""
    totals: Counter[Spent] = Counter()
    for label, users in packed.items():
        totals.update(spent_once(study.mechanisms[label], users))
    for block in blocks:
        totals.update(block.spending())
    return dict(totals)
