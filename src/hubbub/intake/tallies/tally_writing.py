"""Tallies written: in one order, in row groups of one size, so that equal reports give equal bytes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.arrow import pa, parquet
from hubbub.core.files import KeptOpen, atomic_write
from hubbub.intake.counting.counted_reports import Content, spent_by
from hubbub.intake.counting.packed_singles import binary_array
from hubbub.intake.group_names import Group, group_order
from hubbub.intake.sources.packed_bytes import is_packed, to_bytes
from hubbub.intake.tallies.tally import KEY, digest_of_rows, schema
from hubbub.intake.tallies.tally_summary import CountedGroup, Summary
from hubbub.mechanisms import Mechanism
from hubbub.reports import Joint, Singles, SurveyWeights
from hubbub.reports.privacy_accounting import Spent
from hubbub.reports.survey_weights import NO_LABEL
from hubbub.reports.validation import no_reports

ROW_GROUP_ROWS = 1 << 20


def write_tally(
    path: Path,
    contents: Mapping[Group, Content],
    summary: Summary,
    rejected: Mapping[Group, Mapping[str, int]],
    digests: Mapping[Group, NDArray[np.void]] | None = None,
) -> Summary:
    """Write a tally, one group after the other; return its summary with the users and what they spent.

    `rejected` are the rejected rows of each group, and `digests` those of users, where the tally remembers them.
    """
    spent: Counter[Spent] = Counter()
    groups: list[CountedGroup] = []
    weights: list[float] = []
    row_groups: list[str] = []
    with atomic_write(path) as file:
        options = {
            "compression": "zstd",
            "use_dictionary": ["kind", "mechanism", "output"],
            "write_page_checksum": True,
        }
        with parquet.ParquetWriter(KeptOpen(file), schema(survey=bool(summary.survey)), **options) as writer:
            for group in sorted(contents, key=group_order):
                content, packed, before = contents[group], Counter[str](), len(row_groups)
                for rows in _row_groups(_tables(content, packed, None if digests is None else digests.get(group))):
                    table = rows.unify_dictionaries().combine_chunks()
                    writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
                    row_groups.append(digest_of_rows(table))
                if len(row_groups) > before:  # else all of its rows were rejected
                    weights += [] if content.survey is None else [content.survey.total]
                    own = spent_by(content.study, content.blocks, packed)
                    spent.update(own)
                    users, lines = sum(own.values()), len(row_groups) - before
                    groups.append(CountedGroup(group, users, content.taken, rejected.get(group, {}), lines))
            if not groups:
                raise no_reports(str(path), "no row that could be counted")
            summary = replace(
                summary,
                users=sum(group.users for group in groups),
                spent=dict(spent),
                groups=tuple(groups) if summary.by else (),
                weight=math.fsum(weights) if summary.survey else None,
                row_groups=tuple(row_groups),
            )
            text = json.dumps(summary.document(), allow_nan=False, ensure_ascii=True, separators=(",", ":"))
            writer.add_key_value_metadata({KEY: text.encode()})
    return summary


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    blocks = RowBlocks(ROW_GROUP_ROWS)
    for table in tables:
        yield from blocks.add(table)
    yield from blocks.rest()


class RowBlocks:
    """Cuts rows into blocks of one size, whatever tables they arrive in: equal rows give equal bytes."""

    def __init__(self, size: int) -> None:
        self._size, self._rows = size, 0
        self._waiting: list[pa.Table] = []

    def add(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield the blocks that are full with the rows of one more table."""
        self._waiting.append(table)
        self._rows += table.num_rows
        while self._rows >= self._size:
            yield self._cut(self._size)

    def rest(self) -> Iterator[pa.Table]:
        """Yield the last rows, which fill no block."""
        if self._rows:
            yield self._cut(self._rows)

    def _cut(self, size: int) -> pa.Table:
        together = pa.concat_tables(self._waiting)
        self._rows -= size
        self._waiting = [together.slice(size)] if self._rows else []
        return together.slice(0, size)


def _tables(content: Content, packed: Counter[str], digests: NDArray[np.void] | None) -> Iterator[pa.Table]:
    """Yield the rows of a tally in order: by mechanism and output, then joint patterns, then digests."""
    names = {mechanism: label for label, mechanism in sorted(content.study.mechanisms.items(), reverse=True)}
    blocks = sorted(content.singles, key=lambda block: (is_packed(block.mechanism), names[block.mechanism]))
    survey, is_survey = content.survey, content.survey is not None
    sampled = {} if survey is None else content.sampled_by_block()
    for block in _merged(blocks):
        own = sampled.get(block)
        codes, counts = (block.codes, block.counts) if own is None else (block.codes[own.patterns], own.users)
        yield _table("single", counts, own, **_items(names[block.mechanism], block.mechanism, codes))
    for label, mechanism, codes, users in content.packed():
        packed[label] += int(users.sum())
        yield _table("single", users, **_items(label, mechanism, codes))
    if content.joint is not None:
        yield from _joint(content.joint, names, sampled.get(content.joint))
    if digests is not None and digests.size:
        rows = np.frombuffer(digests.tobytes(), dtype=np.uint8).reshape(digests.size, -1)
        none = np.zeros(digests.size, dtype=np.int64)
        yield _table("person", none, survey=is_survey, packed=binary_array(rows))


def _merged(blocks: list[Singles]) -> list[Singles]:
    """Return one block for each mechanism: two names may stand for the same."""
    merged: dict[Mechanism, Singles] = {}
    for block in blocks:
        merged[block.mechanism] = merged[block.mechanism].merge(block) if block.mechanism in merged else block
    return list(merged.values())


def _items(label: str, mechanism: Mechanism, codes: Codes) -> dict[str, pa.Array]:
    """Return the columns that say which outputs of a mechanism these are."""
    count, packed = len(codes), is_packed(mechanism)
    return {
        "mechanism": _constant(label, count),
        "output": pa.nulls(count, pa.string()) if packed else pa.array(texts_of(mechanism, codes), pa.string()),
        "packed": binary_array(to_bytes(mechanism, codes)) if packed else pa.nulls(count, pa.binary()),
    }


def texts_of(mechanism: Mechanism, codes: Codes) -> list[str]:
    """Return outputs as the texts that files hold."""
    space = mechanism.output_space
    return [space.write(output) for output in space.decode(codes)]


def _joint(block: Joint, names: Mapping[Mechanism, str], sampled: SurveyWeights | None) -> Iterator[pa.Table]:
    """Yield joint patterns in their order, all outputs of one together; with weights, once for each of them."""
    items = pa.concat_tables(
        [pa.table(_items(names[mechanism], mechanism, codes)) for mechanism, codes in block.sources]
    )
    repeats, counts = block.repeats, block.counts
    if sampled is not None:
        repeats, counts = repeats[sampled.patterns], sampled.users
    step = max(1, ROW_GROUP_ROWS // max(1, round(repeats.nnz / counts.size)))
    for first in range(0, counts.size, step):
        part = repeats[first : first + step].tocoo()
        order = np.lexsort((part.col, part.row))
        rows = items.take(pa.array(part.col[order].astype(np.int64)))
        pattern = first + part.row[order].astype(np.int64)
        yield _table(
            "joint",
            counts[pattern],
            None if sampled is None else sampled.rows(pattern),
            pattern=pattern,
            mechanism=rows["mechanism"].cast(pa.string()).dictionary_encode(),
            output=rows["output"],
            packed=rows["packed"],
            times=part.data[order],
        )


def _table(
    kind: str, users: Positions, sampled: SurveyWeights | None = None, *, survey: bool = False, **columns: Any
) -> pa.Table:
    """Return rows of one kind, with null in the columns that are not given."""
    count, fields = users.size, schema(survey=survey or sampled is not None)
    filled = {"kind": _constant(kind, count), "times": np.ones(count, dtype=np.int32), "users": users, **columns}
    if sampled is not None:
        filled["weight"] = sampled.weights
        for name, labels in (("stratum", sampled.strata), ("cluster", sampled.clusters)):
            filled[name] = pa.array(labels.astype(object), pa.string(), mask=labels == NO_LABEL).dictionary_encode()
    return pa.table([filled.get(field.name, pa.nulls(count, field.type)) for field in fields], names=fields.names).cast(
        fields
    )


def _constant(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), [text])
