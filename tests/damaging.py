"""Small tallies, and what becomes of them when they are damaged or forged."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hubbub as hb
from hubbub.client import digest_of
from hubbub.intake.counting.counted_reports import Content
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.tallies.tally import digest_of_rows
from hubbub.intake.tallies.tally_reading import add_tally, digests_of, parts_of

NAMES = ("singles", "joint", "packed")
REPORTS = {
    "singles": "output\n" + "".join(f"{value}\n" for value in (0, 1, 1, 2, 3, 3, 3, 5, 9)),
    "joint": "user,output\na,0\na,1\nb,1\nb,1\nc,2\nd,3\nd,3\nd,0\ne,0\ne,1\nf,5\n",
    "packed": "user,mechanism,output\n"
    "ann,bits,110\nbob,bits,110\ncyd,bits,001\ndan,hash,17:1\neve,bits,100\neve,hash,99:0\n",
}


def small_tally(name: str, folder: Path) -> Path:
    """Collect a tally of some kilobytes: single outputs, joint patterns, or packed ones with users' digests."""
    numbers, drinks = hb.Integers(0, 5), hb.Categories(["tea", "coffee", "milk"])
    source = folder / f"{name}.csv"
    source.write_text(REPORTS[name])
    target = folder / f"{name}.tally.parquet"
    if name != "packed":
        noise = hb.Study(numbers, {"noise": hb.TruncatedGeometric(numbers, 0.5)}, name="singles")
        return hb.collect(noise, source, target, allow_rejects=1).path
    (folder / "key").write_text("a key that nobody can guess\n")
    mechanisms = {"bits": hb.Rappor(drinks, 1.0), "hash": hb.LocalHashing(drinks, 1.0)}
    study = hb.Study(drinks, mechanisms, name="packed", max_reports_per_user=3)
    return hb.collect(study, source, target, users_key=folder / "key").path


@contextmanager
def answering() -> Iterator[Callable[[Path], tuple[object, ...]]]:
    """Yield what reads all that a tally says; the database beside it, which takes long to open, is opened once."""
    numbers = itertools.count()

    def answer(path: Path) -> tuple[object, ...]:
        tally = hb.read_tally(path)
        summary = tally.summary
        gathering = RowCounter(tally.study, scratch, Rejects(), users=False, prefix=f"t{next(numbers)}_")
        add_tally(gathering, tally)
        reports = Content(gathering).reports(str(path))
        users = b"" if summary.key is None else b"".join(digests.tobytes() for digests in digests_of(tally).values())
        told = (summary.users, summary.rows, summary.rejected, summary.sources, summary.spent, summary.named)
        parts_of(tally)  # as a cluster would read it
        return tally.study.canonical, tally.study.name, *told, summary.key, users, reports

    with Scratch() as scratch:
        yield answer


def parts_of_tally(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Return the rows of a tally, and its description."""
    return pq.read_table(path).replace_schema_metadata(), json.loads(pq.read_metadata(path).metadata[b"hubbub"])


def seal(document: Any, rows: pa.Table) -> Any:
    """Return a description with the digests that it must have, as somebody who knows the format would make them."""
    if not isinstance(document, dict):
        return document
    try:
        sealed = {**document, "row_groups": [digest_of_rows(rows)]}
        return {**sealed, "digest": digest_of(sealed)}
    except (TypeError, ValueError, RecursionError, AttributeError, pa.ArrowException):
        return document  # columns or entries of which there is no digest


def write_forged(path: Path, rows: pa.Table, document: Any, **options: Any) -> Path:
    """Write a tally with any rows and description."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    pq.write_table(rows.replace_schema_metadata({b"hubbub": text}), path, **options)
    return path
