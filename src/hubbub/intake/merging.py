"""Tallies of one study, added up."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hubbub.core.errors import warn_of
from hubbub.core.locks import exclusive_lock
from hubbub.core.progress import Progress, finish
from hubbub.intake.counting.content import Content
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.scratch import MEMORY, Scratch
from hubbub.intake.reading_notes import limit_notes, overlap_notes
from hubbub.intake.tallies.admission import added, check_apart
from hubbub.intake.tallies.tally import WAIT_OR_MERGE, Tally, check_target, read_tally
from hubbub.intake.tallies.tally_reading import add_tally
from hubbub.intake.tallies.tally_writing import write_tally
from hubbub.reports.validation import no_reports


def merge(
    tallies: str | Path | Iterable[str | Path],
    path: str | Path,
    *,
    memory: str = MEMORY,
    users_complete: bool = False,
    equal_files: str | None = None,
) -> Tally:
    """Add tallies of one study up into a tally at `path`.

    Tallies in which the same file was counted are refused, and so are tallies that may hold the same users, unless
    `users_complete` says that they do not, or all keep digests of their users under one key and share none. Tallies of
    files with the same bytes, at different places and without users, are refused, too, unless ``equal_files="count"``
    says that different people sent the same.
    """
    run = merging(tallies, path, memory=memory, users_complete=users_complete, equal_files=equal_files)
    tally = finish(run)
    warn_of(tally.summary.notes)
    return tally


def merging(
    tallies: str | Path | Iterable[str | Path],
    path: str | Path,
    *,
    memory: str = MEMORY,
    users_complete: bool = False,
    equal_files: str | None = None,
) -> Generator[Progress, None, Tally]:
    """Do what `merge` does, yielding progress."""
    target = check_target(path)
    names = [tallies] if isinstance(tallies, str | Path) else list(tallies)
    if not names:
        raise no_reports("merge(tallies)", "no tallies")
    with exclusive_lock(target, WAIT_OR_MERGE):  # before anything is read: the target may be one of them
        found = [read_tally(name) for name in names]
        digests = check_apart(found, complete=users_complete, equal_files=equal_files)
        with Scratch(memory) as scratch:
            gathering = RowCounter(found[0].study, scratch, Rejects(), users=False)
            for place, tally in enumerate(found):
                yield Progress(place, len(found), f"reading {tally.path}")
                add_tally(gathering, tally)
            content = Content(gathering)
            yield Progress(0, 0, "writing")
            written = write_tally(target, content, added([tally.summary for tally in found]), digests)
    return Tally(target, replace(written, notes=_notes(found)))


def _notes(tallies: Sequence[Tally]) -> tuple[str, ...]:
    """Return what cannot be checked: tables and queries of one database in several tallies may share rows."""
    notes: dict[str, None] = {}
    for place, tally in enumerate(tallies):
        before = [counted.name for earlier in tallies[:place] for counted in earlier.sources]
        names = [counted.name for counted in tally.sources]
        users = tally.summary.named
        notes.update(dict.fromkeys(overlap_notes(names, before, users=users)))
    return (*notes, *limit_notes(tallies[0].study, users=all(tally.summary.named for tally in tallies)))
