"""Which sources and tallies may be added together, so that nobody is counted twice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import IntakeError, SettingError, shorten
from hubbub.core.text import plural
from hubbub.intake.counting.user_digests import DIGEST_BYTES, DigestsByGroup, UserDigests, other_key
from hubbub.intake.group_names import Group
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.file_source import FileSource, file_digest
from hubbub.intake.sources.source_lookup import same_content
from hubbub.intake.study import Study
from hubbub.intake.tallies.overlapping_sources import refuse_overlapping
from hubbub.intake.tallies.tally import Tally
from hubbub.intake.tallies.tally_reading import digests_of
from hubbub.intake.tallies.tally_summary import CountedSource, Summary

USERS_COMPLETE = "pass --users-complete if no user is in both"


def new_sources(
    sources: list[Source], old: Tally | None, equal_files: str | None, *, watermark: str | None = None
) -> tuple[list[Source], tuple[str, ...]]:
    """Return the sources that a tally has not counted yet, and the names of the others.

    A file is the same if it has the same path and the same bytes. The same bytes elsewhere may be a copy, or a second
    batch of people who happened to send the same; where rows say who sent them it is a copy, and otherwise
    `equal_files` must say. With a `watermark`, a source that was counted with it is new as far as it has grown.
    """
    if watermark is not None:
        for source in sources:
            if not source.is_addressed and not isinstance(source, FileSource):
                raise SettingError(
                    "a table in memory has no watermark",
                    where="collect(watermark=)",
                    got=source.name,
                    expected="a file, or a table of a database, which can be found again in the next run",
                    remedy="write the table to a file, or collect it without a watermark",
                )
    refuse_overlapping(sources, () if old is None else old.sources, watermark=watermark is not None)
    if old is None:
        return sources, ()
    new: list[Source] = []
    skipped: list[str] = []
    for source in sources:
        if _is_continued(source, old, watermark):
            new.append(source)
            continue
        if isinstance(source, FileSource) and _is_counted(source, old, equal_files):
            skipped.append(source.name)
            continue
        if source.is_addressed and str(source.identity) in {counted.name for counted in old.sources}:
            raise refusal(
                "counted-twice",
                "this table was counted before",
                where=source.name,
                got="an address that is in the tally already",
                expected="rows that are not in the tally",
                remedy="select the new rows alone with a query: ...#SELECT * FROM reports WHERE id > ...",
            )
        new.append(source)
    return new, tuple(skipped)


def counted_before(source: Source, old: Tally | None) -> CountedSource | None:
    """Return what a tally says about a source: a file at the same path, or a table at the same address."""
    for counted in () if old is None else old.sources:
        if source.is_addressed and str(source.identity) == counted.name:
            return counted
        if isinstance(source, FileSource) and _has_same_path(source, counted):
            return counted
    return None


def _is_continued(source: Source, old: Tally, watermark: str | None) -> bool:
    """Whether a source is read from its watermark on; refuse one that was counted in another way."""
    counted = counted_before(source, old)
    if counted is None:
        if isinstance(source, FileSource):
            _refuse_grown_copy(source, old)
        return False
    before = None if counted.mark is None else counted.mark.column
    if watermark == before:
        return watermark is not None
    if isinstance(source, FileSource) and None in (watermark, before) and counted.digest == source.digest():
        return False  # nothing new in it
    raise refusal(
        "other-mark",
        "the source was counted with another watermark" if before and watermark else "the watermark must stay the same",
        where=source.name,
        got=f"--watermark {watermark}" if watermark else "no watermark",
        expected=f"--watermark {before}, as before" if before else "no watermark, as before",
        remedy=f"pass --watermark {before}, or collect into a new tally"
        if before
        else "collect everything into a new tally, with the watermark from the first run on",
    )


def _refuse_grown_copy(source: FileSource, old: Tally) -> None:
    """Refuse a file that begins with all bytes of a growing one that was counted: the same file at another path."""
    for counted in old.sources:
        size = None if counted.mark is None else counted.mark.size
        if size and size <= source.size() and file_digest(source.path, size) == counted.digest:
            raise refusal(
                "overlapping-sources",
                "the file begins with the content of another one that was counted",
                where=source.name,
                got=f"the {size:,} bytes of {counted.name}, which is in the tally",
                expected="rows that no other source of the tally holds",
                remedy=f"collect it under its old path, {counted.name}; or collect everything into a new tally",
            )


def _is_counted(source: FileSource, old: Tally, equal_files: str | None) -> bool:
    """Whether a tally holds the rows of a file; refuse a file if nobody can say."""
    digest = source.digest()
    twins = [counted for counted in old.sources if counted.digest == digest]
    if any(_has_same_path(source, counted) for counted in twins):
        return True
    if twins:
        if equal_files is None and source.columns.name_of("user") not in source.header():
            raise same_content(
                source, f"{twins[0].name}, {source.name}", f"the bytes of {twins[0].name}, which is in the tally"
            )
        return equal_files != "count"
    if any(_has_same_path(source, counted) for counted in old.sources):
        raise refusal(
            "counted-twice",
            "this file was counted before, with other content",
            where=source.name,
            got="rows that may be in the tally already",
            expected="a new file for new rows",
            remedy="put the new rows in a file of their own, or collect everything again into another tally",
        )
    return False


def _has_same_path(source: FileSource, counted: CountedSource) -> bool:
    """Whether a file has the path of a counted one; old tallies did not record it, and go by its name."""
    return source.name == counted.name if counted.place is None else source.path_digest == counted.place


def load_known_users(old: Tally | None, users: bool, *, key: bytes | None, complete: bool) -> DigestsByGroup | None:
    """Return the known users when rows are added to a tally; refuse rows if nobody can say whether users are known.

    `users` says that the new rows name their users, `complete` that none of them is in the tally.
    """
    if key is not None and not users:
        raise SettingError(
            "users_key needs rows that say who sent them",
            where="users_key",
            got="a key",
            expected="sources with a column user",
            remedy="leave the key out, or add the column",
        )
    if old is None or old.users == 0:
        return None if key is None else DigestsByGroup(key)
    if old.summary.key is not None:
        if key is None:
            got = "the tally keeps digests of its users"
            if not users:
                raise _users_unknown(old, f"{got}, and rows do not say who sent them")
            raise _users_unknown(old, f"{got}, and the key is missing", "pass --users-key FILE")
        if UserDigests.sign(key) != old.summary.key:
            raise other_key(str(old.path), old.summary.key, UserDigests.sign(key))
        return DigestsByGroup(key, digests_of(old))
    if key is not None:
        got = "the tally was made without a key, and does not record its users"
        raise _users_unknown(old, got, f"leave the key out and {USERS_COMPLETE}")
    if (old.summary.named or users) and not complete:
        raise _users_unknown(old, "the tally does not record which users were counted", USERS_COMPLETE)
    return None


def _users_unknown(old: Tally, got: str, way: str = "collect these rows into a tally of their own") -> IntakeError:
    return refusal(
        "users-unknown",
        "a user of the new rows may be in the tally already",
        where=str(old.path),
        got=got,
        expected="all rows of a user in one run: what one user sends is one report",
        remedy=f"collect everything again, or {way}",
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


def other_groups(tally: Tally, by: Sequence[str]) -> IntakeError:
    """Return the error for a tally that is divided by other columns."""
    return refusal(
        "other-groups",
        "the tally is divided into other groups",
        where=str(tally.path),
        got=f"groups by {', '.join(tally.summary.by)}" if tally.summary.by else "no groups",
        expected=f"groups by {', '.join(by)}" if by else "no groups",
        remedy="collect with the same --by, in the same order, into each of the tallies",
    )


def other_survey(tally: Tally, survey: Sequence[str]) -> IntakeError:
    """Return the error for a tally with other columns of a survey: weights on one side only, for example."""
    return refusal(
        "weights-in-some",
        "the tally does not have the same columns of a survey",
        where=str(tally.path),
        got=", ".join(tally.summary.survey) or "no weights",
        expected=", ".join(survey) or "no weights",
        remedy="collect all reports with their weights, or all without",
    )


def check_disjoint(
    tallies: Sequence[Tally], *, complete: bool, equal_files: str | None
) -> dict[Group, NDArray[np.void]] | None:
    """Refuse tallies that cannot be added up; return the digests of each group's users, where all keep them.

    Files with the same bytes are in doubt if they lay in different places and rows do not say who sent them, and so are
    equal tallies of tables in memory: ``equal_files="count"`` says that different people sent the same.
    """
    if equal_files not in (None, "count"):
        raise SettingError(
            "a copy cannot be taken out of a tally",
            where="--equal-files",
            got=shorten(equal_files),
            expected="count, where different people sent the same",
            remedy="where it is a copy, leave its tally out, or collect again without the copy",
        )
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
    for tally in tallies:
        if tally.study.fingerprint != first.study.fingerprint:
            raise other_study(tally, first.study)
        if tally.summary.by != first.summary.by:
            raise other_groups(tally, first.summary.by)
        if tally.summary.survey != first.summary.survey:
            raise other_survey(tally, first.summary.survey)
    for place, tally in enumerate(tallies):
        for twin in tallies[:place]:
            _refuse_shared(twin, tally, equal_files)
    keys = {tally.summary.key for tally in tallies}
    if keys == {None}:
        if len(tallies) > 1 and any(tally.summary.named for tally in tallies) and not complete:
            raise _users_unknown(tallies[-1], "the tallies do not record which users were counted", USERS_COMPLETE)
        return None
    if len(keys) > 1:
        got = "the tallies do not keep their users' digests under one key"
        raise _users_unknown(tallies[-1], got, "collect each again with the same --users-key FILE")
    parts: dict[Group, list[NDArray[np.void]]] = {}
    for tally in tallies:
        for group, digests in digests_of(tally).items():
            parts.setdefault(group, []).append(digests)
    everybody = {group: np.sort(np.concatenate(own).view(f"S{DIGEST_BYTES}")) for group, own in parts.items()}
    twice = sum(int(np.count_nonzero(digests[1:] == digests[:-1])) for digests in everybody.values())
    if twice:
        raise refusal(
            "counted-twice",
            "the same users are in both tallies",
            where=", ".join(str(tally.path) for tally in tallies),
            got=f"{plural(twice, 'user')} counted more than once",
            expected="all rows of a user in one tally",
            remedy="collect the files of both in one run",
        )
    return {group: digests.view(f"V{DIGEST_BYTES}") for group, digests in everybody.items()}


def _refuse_shared(twin: Tally, tally: Tally, equal_files: str | None) -> None:
    """Refuse two tallies that counted the same source, or may have."""
    named = twin.summary.named and tally.summary.named
    shared = [pair for pair in product(twin.sources, tally.sources) if _is_same_source(*pair)]
    certain = [pair for pair in shared if named or pair[0].digest is None or _is_same_path(*pair)]
    if certain:
        code, what, got = "counted-twice", "the same source was counted in both tallies", certain[0][1].name
        expected = "each report once"
        remedy = "leave one of the two out, or collect again without that source in one of them"
    elif equal_files == "count":
        return
    else:
        equal = file_digest(twin.path) == file_digest(tally.path)
        if not shared and not equal:
            return
        code, what, got = "same-content", "two tallies counted exactly the same reports", "the same bytes"
        if not equal:
            what = "two tallies counted sources that are equal"
            got = f"{shared[0][0].name} in one, {shared[0][1].name} in the other"
        expected = "each report once: a copy must not be counted again, and equal reports of different people must be"
        remedy = "leave the copy out; if different people sent the same, say so: --equal-files count"
    raise refusal(code, what, where=f"{twin.path}, {tally.path}", got=got, expected=expected, remedy=remedy)


def _is_same_path(first: CountedSource, second: CountedSource) -> bool:
    return first.place is not None and first.place == second.place


def _is_same_source(first: CountedSource, second: CountedSource) -> bool:
    if (first.mark or second.mark) and _is_same_path(first, second):
        return True  # a file that has grown since
    if first.digest is None or second.digest is None:
        return first.name == second.name and "://" in first.name
    return first.digest == second.digest


def added(summaries: Sequence[Summary]) -> Summary:
    """Return the sum of summaries; users and what they spent are counted as they are written."""
    rejected: Counter[str] = Counter()
    for summary in summaries:
        rejected.update(summary.rejected)
    return replace(
        summaries[-1],
        study=min((summary.study for summary in summaries), key=lambda study: study.name or ""),  # in any order
        users=0,
        rows=sum(summary.rows for summary in summaries),
        rejected=dict(rejected),
        sources=_added_sources(summaries),
        spent={},
        named=any(summary.named for summary in summaries),
    )


def _added_sources(summaries: Sequence[Summary]) -> tuple[CountedSource, ...]:
    """Return the sources of all summaries; one that was continued stands for itself as it was before."""
    continued = {source.place or source.name for source in summaries[-1].sources if source.mark is not None}
    earlier = [source for summary in summaries[:-1] for source in summary.sources]
    kept = [source for source in earlier if source.mark is None or (source.place or source.name) not in continued]
    return (*kept, *summaries[-1].sources)


def rejected_in_groups(parts: Sequence[Mapping[Group, Mapping[str, int]]]) -> dict[Group, dict[str, int]]:
    """Return the rejected rows of each group, by cause, added up."""
    total: dict[Group, Counter[str]] = {}
    for part in parts:
        for group, rejected in part.items():
            total.setdefault(group, Counter()).update(rejected)
    return {group: dict(rejected) for group, rejected in total.items()}
