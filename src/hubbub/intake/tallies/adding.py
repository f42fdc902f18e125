"""What may be added to what, so that nobody is counted twice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import IntakeError, SettingError
from hubbub.intake.causes import refusal
from hubbub.intake.gathering.users import Visitors, other_key
from hubbub.intake.sources.files import File
from hubbub.intake.sources.rows import Source
from hubbub.intake.sources.text import file_digest
from hubbub.intake.study import Study
from hubbub.intake.tallies.reading import digests_of
from hubbub.intake.tallies.summary import Summary
from hubbub.intake.tallies.tally import Tally

COMPLETE = "give --users-complete if no user is in both"


def new_sources(sources: list[Source], old: Tally | None) -> tuple[list[Source], tuple[str, ...]]:
    """Return the sources that a tally has not counted yet, and the names of the others."""
    if old is None:
        return sources, ()
    counted = {one.digest for one in old.sources if one.digest is not None}
    named = {one.name for one in old.sources}
    new: list[Source] = []
    skipped: list[Source] = []
    for source in sources:
        digest = source.digest()
        if digest is not None and digest in counted:
            skipped.append(source)
            continue
        if isinstance(source, File) and source.name in named:
            raise refusal(
                "counted-twice",
                "a file of this name was counted with other content",
                where=source.name,
                got="rows that may be in the tally already",
                expected="a new file for new rows",
                remedy="put the new rows in a file of their own, or collect everything anew into another tally",
            )
        if source.addressed and str(source.identity) in named:
            raise refusal(
                "counted-twice",
                "this table was counted before",
                where=source.name,
                got="an address that is in the tally already",
                expected="rows that are not in the tally",
                remedy="select the new rows alone with a query: ...#SELECT * FROM reports WHERE id > ...",
            )
        new.append(source)
    return new, tuple(source.name for source in skipped)


def admit(old: Tally | None, users: bool, *, key: bytes | None, complete: bool) -> Visitors | None:
    """Return whom to look out for when rows are added to a tally; refuse where nobody could tell.

    `users` says that the new rows name their users, `complete` that none of them is in the tally.
    """
    if key is not None and not users:
        raise SettingError(
            "a key means nothing here: rows do not say who sent them",
            where="users_key",
            got="a key",
            expected="sources with a column user",
            remedy="leave the key out, or add the column",
        )
    if old is None or old.users == 0:
        return None if key is None else Visitors(key)
    if old.summary.key is not None:
        if key is None:
            if not users:
                raise _unknown(old, "rows that do not say who sent them, and a tally that keeps digests of its users")
            raise _unknown(old, "the tally keeps digests of its users, and the key is missing", "give --users-key FILE")
        if Visitors.sign(key) != old.summary.key:
            raise other_key(str(old.path), old.summary.key, Visitors.sign(key))
        return Visitors(key, digests_of(old))
    if key is not None:
        got = "the tally was made without a key, and does not know its users"
        raise _unknown(old, got, f"leave the key out and {COMPLETE}")
    if (old.summary.named or users) and not complete:
        raise _unknown(old, "the tally does not remember its users", COMPLETE)
    return None


def _unknown(old: Tally, got: str, way: str = "collect these rows into a tally of their own") -> IntakeError:
    return refusal(
        "users-unknown",
        "a user of the new rows may be in the tally already",
        where=str(old.path),
        got=got,
        expected="all rows of a user in one run: what one user sends is one report",
        remedy=f"collect everything anew, or {way}",
    )


def other_study(old: Tally, study: Study) -> IntakeError:
    """Return the error for a tally of another study."""
    return refusal(
        "other-study",
        "the tally is of another study",
        where=str(old.path),
        got=f"fingerprint {old.study.fingerprint[:16]}...",
        expected=f"fingerprint {study.fingerprint[:16]}..., as this study",
        remedy="collect into another tally; reports of two studies do not add up",
    )


def check_apart(tallies: Sequence[Tally], *, complete: bool) -> NDArray[np.void] | None:
    """Refuse tallies that cannot be added up; return the digests of all users, where all keep them."""
    first = tallies[0]
    paths = Counter(os.path.realpath(tally.path) for tally in tallies)
    if max(paths.values()) > 1:
        raise refusal(
            "named-twice",
            "a tally is named several times",
            where=", ".join(str(tally.path) for tally in tallies if paths[os.path.realpath(tally.path)] > 1),
            got=f"{max(paths.values())} times",
            expected="each tally once: its users would count again",
            remedy="name it once",
        )
    seen: dict[str, Tally] = {}
    for tally in tallies:
        twin = seen.setdefault(file_digest(tally.path), tally)
        if twin is not tally:
            raise refusal(
                "counted-twice",
                "two tallies are the same",
                where=f"{twin.path}, {tally.path}",
                got="exactly the same bytes",
                expected="each report once",
                remedy="leave the copy out",
            )
        if tally.study.fingerprint != first.study.fingerprint:
            raise other_study(tally, first.study)
        for one in tally.sources:
            mark = one.digest or f"name {one.name}"
            twin = seen.setdefault(mark, tally)
            if twin is not tally and (one.digest is not None or "://" in one.name):
                raise refusal(
                    "counted-twice",
                    "the same source was counted in both tallies",
                    where=f"{twin.path}, {tally.path}",
                    got=one.name,
                    expected="each report once",
                    remedy="leave one of the two out, or collect again without that source in one of them",
                )
    keys = {tally.summary.key for tally in tallies}
    if keys == {None}:
        if len(tallies) > 1 and any(tally.summary.named for tally in tallies) and not complete:
            raise _unknown(tallies[-1], "the tallies do not remember their users", COMPLETE)
        return None
    if len(keys) > 1:
        got = "the tallies do not keep their users' digests under one key"
        raise _unknown(tallies[-1], got, "collect each anew with the same --users-key FILE")
    digests = np.concatenate([digests_of(tally) for tally in tallies])
    order = np.sort(digests.view("S16"))
    twice = int(np.count_nonzero(order[1:] == order[:-1]))
    if twice:
        raise refusal(
            "counted-twice",
            "the same users are in both tallies",
            where=", ".join(str(tally.path) for tally in tallies),
            got=f"{twice:,} user{'s' * (twice != 1)} counted more than once",
            expected="all rows of a user in one tally",
            remedy="collect the files of both in one run",
        )
    return digests[np.argsort(digests.view("S16"), kind="stable")]


def added(summaries: Sequence[Summary]) -> Summary:
    """Return what tallies say together; users and what they spent are counted as they are written."""
    rejected: Counter[str] = Counter()
    for summary in summaries:
        rejected.update(summary.rejected)
    return replace(
        summaries[-1],
        study=min((summary.study for summary in summaries), key=lambda study: study.name or ""),  # in any order
        users=0,
        rows=sum(summary.rows for summary in summaries),
        rejected=dict(rejected),
        sources=tuple(one for summary in summaries for one in summary.sources),
        spent={},
        named=any(summary.named for summary in summaries),
    )
