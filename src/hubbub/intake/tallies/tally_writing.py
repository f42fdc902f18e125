"""Tallies written: in one order, in row groups of one size, so that equal reports give equal bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.files import atomic_write, keep_open
from hubbub.intake.counting.content import Content, spent_by
from hubbub.intake.counting.packed_singles import binary_array
from hubbub.intake.sources.packed_columns import is_packed, to_bytes
from hubbub.intake.tallies.tally import KEY, schema
from hubbub.intake.tallies.tally_file import digest_of_rows
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.mechanisms import Mechanism
from hubbub.reports import Joint, Singles
from hubbub.reports.validation import no_reports

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP_ROWS = 1 << 20


def write_tally(path: Path, content: Content, summary: Summary, digests: NDArray[np.void] | None = None) -> Summary:
    """Write a tally; return its summary with the users and what they spent."""
    from pyarrow import parquet

    with atomic_write(path) as file:
        packed: Counter[str] = Counter()
        options = {
            "compression": "zstd",
            "use_dictionary": ["kind", "mechanism", "output"],
            "write_page_checksum": True,
        }
        with parquet.ParquetWriter(keep_open(file), schema(), **options) as writer:
            rows = _GroupWriter(writer)
            for table in _tables(content, packed, digests):
                rows.write(table)
            rows.finish()
            blocks = [*content.singles, *([] if content.joint is None else [content.joint])]
            users = sum(block.users for block in blocks) + sum(packed.values())
            if users == 0:
                raise no_reports(str(path), "no row that could be taken")
            summary = replace(
                summary,
                users=users,
                spent=spent_by(content.study, blocks, packed),
                row_groups=tuple(rows.digests),
            )
            text = json.dumps(summary.document(), allow_nan=False, ensure_ascii=True, separators=(",", ":"))
            writer.add_key_value_metadata({KEY: text.encode()})
    return summary


class _GroupWriter:
    """Writes rows in groups of one size, whatever tables they arrive in: equal rows give equal bytes."""

    def __init__(self, writer: Any) -> None:
        self._writer, self._waiting, self._size = writer, [], 0  # type: Any, list[Any], int
        self.digests: list[str] = []  # of the groups that were written

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._size += table.num_rows
        while self._size >= ROW_GROUP_ROWS:
            self._flush(ROW_GROUP_ROWS)

    def finish(self) -> None:
        if self._size:
            self._flush(self._size)

    def _flush(self, size: int) -> None:
        import pyarrow as pa

        together = pa.concat_tables(self._waiting)
        group = together.slice(0, size).unify_dictionaries().combine_chunks()
        self._writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
        self.digests.append(digest_of_rows(group))
        rest = together.slice(size)
        self._waiting, self._size = ([rest], rest.num_rows) if rest.num_rows else ([], 0)


def _tables(content: Content, packed: Counter[str], digests: NDArray[np.void] | None) -> Iterator[pa.Table]:
    """Yield the rows of a tally in order: by mechanism and output, then joint patterns, then digests."""
    names = {mechanism: label for label, mechanism in sorted(content.study.mechanisms.items(), reverse=True)}
    blocks = sorted(content.singles, key=lambda block: names[block.mechanism])
    for block in _merged(blocks):
        yield _single(names[block.mechanism], block.mechanism, block.codes, block.counts)
    for label, mechanism, codes, users in content.packed():
        packed[label] += int(users.sum())
        yield _single(label, mechanism, codes, users)
    if content.joint is not None:
        yield from _joint(content.joint, names)
    if digests is not None and digests.size:
        rows = np.frombuffer(digests.tobytes(), dtype=np.uint8).reshape(digests.size, -1)
        yield _table("person", digests.size, packed=rows, users=np.zeros(digests.size, dtype=np.int64))


def _merged(blocks: list[Singles]) -> list[Singles]:
    """Return one block for each mechanism: two names may stand for the same."""
    merged: dict[Mechanism, Singles] = {}
    for block in blocks:
        merged[block.mechanism] = merged[block.mechanism].merge(block) if block.mechanism in merged else block
    return list(merged.values())


def _single(label: str, mechanism: Mechanism, codes: Codes, users: Positions) -> pa.Table:
    if is_packed(mechanism):
        return _table("single", len(codes), mechanism=label, packed=to_bytes(mechanism, codes), users=users)
    return _table("single", len(codes), mechanism=label, output=texts_of(mechanism, codes), users=users)


def texts_of(mechanism: Mechanism, codes: Codes) -> list[str]:
    """Return outputs as the texts that files hold."""
    space = mechanism.output_space
    return [space.write(output) for output in space.decode(codes)]


def _joint(block: Joint, names: Mapping[Mechanism, str]) -> Iterator[pa.Table]:
    """Yield joint patterns in their order, all outputs of one together."""
    import pyarrow as pa

    texts: list[str | None] = []
    content: list[bytes | None] = []
    labels: list[str] = []
    for mechanism, codes in block.sources:
        labels += [names[mechanism]] * len(codes)
        if is_packed(mechanism):
            texts += [None] * len(codes)
            content += [row.tobytes() for row in to_bytes(mechanism, codes)]
        else:
            texts += texts_of(mechanism, codes)
            content += [None] * len(codes)
    items = pa.table(
        {"mechanism": labels, "output": pa.array(texts, pa.string()), "packed": pa.array(content, pa.binary())}
    )
    step = max(1, ROW_GROUP_ROWS // max(1, round(block.repeats.nnz / block.counts.size)))
    for first in range(0, block.counts.size, step):
        part = block.repeats[first : first + step].tocoo()
        order = np.lexsort((part.col, part.row))
        rows = items.take(pa.array(part.col[order].astype(np.int64)))
        yield _table(
            "joint",
            rows.num_rows,
            pattern=first + part.row[order].astype(np.int64),
            mechanism=rows["mechanism"],
            output=rows["output"],
            packed=rows["packed"],
            times=part.data[order],
            users=block.counts[first + part.row[order]],
        )


def _table(kind: str, count: int, **columns: Any) -> pa.Table:
    """Return rows of one kind, with null in the columns that are not given."""
    import pyarrow as pa

    arrays = []
    for name, type_ in zip(schema().names, schema().types, strict=True):
        entries = columns.get(name)
        if name == "kind":
            entries = pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), [kind])
        elif name == "times" and entries is None:
            entries = np.ones(count, dtype=np.int32)
        if entries is None:
            arrays.append(pa.nulls(count, type_))
        elif isinstance(entries, str):
            arrays.append(pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), [entries]))
        elif name == "packed" and isinstance(entries, np.ndarray):
            arrays.append(binary_array(entries))
        elif isinstance(entries, pa.ChunkedArray | pa.Array):
            arrays.append(entries.cast(type_) if not pa.types.is_dictionary(type_) else entries.dictionary_encode())
        else:
            arrays.append(pa.array(entries, type_))
    table = pa.table(arrays, names=schema().names)
    return table.cast(schema()) if table.schema != schema() else table
