"""Studies: the domain and the named mechanisms, checked entry by entry.

A study is the only thing that client, collector and analyst must share. Its fingerprint, the SHA-256 of its
canonical form, travels with every result: two studies have the same fingerprint exactly if they describe the
same domain and the same mechanisms under the same names.

The parser is ours rather than a library's (msgspec, pydantic, cattrs) because constructors of domains and mechanisms
do the checking (study_entries.py), and every message names the table and entry, from which study_files.py finds the
line.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hubbub.client import (
    EPSILON_LIMITS,
    FORMAT_VERSION,
    MAX_STUDY_BYTES,
    MECHANISM_NAME,
    STUDY_COLUMNS,
    ClientError,
    check_collector,
    check_question,
)
from hubbub.core.arrays import as_real
from hubbub.core.errors import IntakeError, StudyError, restated, shorten
from hubbub.core.serialization import Portable, ReadOnly
from hubbub.domains import Domain
from hubbub.intake.attribute_roles import PLACE_ROLES, roles_of_domain
from hubbub.intake.study_entries import build_domain, build_mechanism, check_known, described_fields, table_of
from hubbub.intake.study_text import study_toml
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.mechanism_kinds import know
from hubbub.reports.validation import check_mechanism

LIMITS = ("max_reports_per_user", *EPSILON_LIMITS)


@dataclass(frozen=True)
class Study(Portable):
    """All that client, collector and analyst share: a domain and named mechanisms over it.

    `read_study` reads one from a file.

    Parameters
    ----------
    domain : Domain
        The true values.
    mechanisms : mapping from str to Mechanism
        The mechanisms over that domain, by the names that reports give them.
    name : str, default ""
        A title for people; it is no part of the fingerprint.
    max_reports_per_user : int, optional
        A user with more outputs than this is rejected.
    max_epsilon_per_user, max_epsilon_per_unit : float, optional
        Limits on what a user spends in total, plain and per unit of distance; spending more gives a warning.
    columns : mapping from str to str, optional
        What the columns of reports are called, by what they hold: ``output``, ``user``, ``mechanism``, ``weight``,
        ``stratum``, ``cluster``, ``group``, ``time``, ``watermark``; ``lat`` and ``lon``, or ``x`` and ``y``; of a
        product ``output.NAME`` for each attribute. No part of the fingerprint: it does not change what reports mean.
    question : mapping from str to str, optional
        What a page asks: ``text``, ``help``, ``thanks``, and the ``mechanism`` that it uses. No part of the
        fingerprint.
    collector : mapping, optional
        What `hubbub serve` accepts and keeps: ``access``, ``time``, ``origins``, ``max_requests_per_minute``,
        ``max_request_bytes``; those that are left out have their defaults. No part of the fingerprint.

    Raises
    ------
    StudyError
        If there is no mechanism, one is over another domain, a limit is not a positive number, `columns` contradict
        each other or the domain, or `question` or `collector` have entries that cannot be.

    Examples
    --------
    >>> import hubbub as hb
    >>> values = hb.Categories(["yes", "no"])
    >>> study = hb.Study(values, {"answer": hb.RandomizedResponse(values, epsilon=1.0)}, name="a survey")
    >>> list(study.mechanisms), study.fingerprint[:8]
    (['answer'], '39d1f729')
    """

    domain: Domain
    mechanisms: Mapping[str, Mechanism]
    name: str = ""
    max_reports_per_user: int | None = None
    max_epsilon_per_user: float | None = None
    max_epsilon_per_unit: float | None = None
    columns: Mapping[str, str] = field(default_factory=dict, compare=False)
    question: Mapping[str, str] | None = field(default=None, compare=False)
    collector: Mapping[str, Any] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanisms", ReadOnly(self.mechanisms))
        object.__setattr__(self, "columns", ReadOnly(_columns(self.columns, self.domain, "Study(columns=)")))
        if not self.mechanisms:
            raise StudyError(
                "the study names no mechanism",
                where="Study(mechanisms=)",
                got="nothing",
                expected="{name: mechanism}",
                remedy="name at least one",
            )
        for name in LIMITS:
            object.__setattr__(self, name, _limit(getattr(self, name), name, f"Study({name}=)"))
        for label, mechanism in self.mechanisms.items():
            check_mechanism(mechanism, f"Study(mechanisms=), {label}", StudyError)
            know(mechanism)
            if mechanism.domain != self.domain:
                raise StudyError(
                    "a mechanism's domain differs from the study's",
                    where=f"Study(mechanisms=), {label}",
                    got=shorten(mechanism.domain, 100),
                    expected=shorten(self.domain, 100),
                    remedy="build all mechanisms of a study over its domain",
                )
        if self.question is not None:
            question = _question(self.question, self.mechanisms, "Study(question=)")
            object.__setattr__(self, "question", ReadOnly(question))
        if self.collector is not None:
            object.__setattr__(self, "collector", ReadOnly(_collector(self.collector, "Study(collector=)")))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the study in another process, where its own tallies name classes that it has brought along."""
        super().__setstate__(state)
        for mechanism in self.mechanisms.values():
            know(mechanism)

    @cached_property
    def canonical(self) -> str:
        """The study in one fixed spelling: JSON with sorted keys, without its name and comments."""
        return json.dumps(self._entries(as_written=False), sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    def written_entries(self) -> dict[str, Any]:
        """Return what another process reads the same study from: the canonical form, but for two things of matrices.

        A matrix has the rows that give the same bytes again once they are divided by their sums, and its origin.
        """
        return self._entries(as_written=True)

    def _entries(self, *, as_written: bool) -> dict[str, Any]:
        entries = {
            "version": FORMAT_VERSION,
            "domain": described_fields(self.domain),
            "mechanisms": {
                name: described_fields(mechanism, as_written=as_written) for name, mechanism in self.mechanisms.items()
            },
            "max_reports_per_user": self.max_reports_per_user,
        }
        limits = {limit: getattr(self, limit) for limit in EPSILON_LIMITS}
        return entries | {limit: value for limit, value in limits.items() if value is not None}

    def to_toml(self) -> str:
        """Return the text of a study file that describes this study, with all digits.

        `read_study` reads the same study from it: mechanisms whose fields are equal, tables of probabilities byte for
        byte, and the same fingerprint.

        Returns
        -------
        str
            TOML. `write_study` writes it.

        Raises
        ------
        StudyError
            If no study file can hold the study: a mechanism has a field that TOML cannot hold, or the file would be
            larger than 32 MiB, about 1.4 million probabilities.

        Examples
        --------
        >>> import hubbub as hb
        >>> values = hb.Categories(["yes", "no"])
        >>> table = hb.Matrix(values, ["a", "b"], [[0.75, 0.25], [0.5, 0.5]], origin="drawn by hand")
        >>> print(hb.Study(values, {"own": table}, name="a survey").to_toml())
        version = 1
        name = "a survey"
        <BLANKLINE>
        [domain]
        kind = "categories"
        labels = ["yes", "no"]
        <BLANKLINE>
        [mechanisms.own]
        kind = "matrix"
        outputs = ["a", "b"]
        probabilities = [
            [0.75, 0.25],
            [0.5, 0.5],
        ]
        origin = "drawn by hand"
        <BLANKLINE>
        """
        entries = self.written_entries()
        more = {"columns": dict(self.columns), "question": self.question, "collector": self.collector}
        document = {"version": entries.pop("version"), "name": self.name, **entries, **more}
        text = study_toml(document)
        size = len(text.encode(errors="replace"))
        if size > MAX_STUDY_BYTES:
            raise StudyError(
                "the study is too large for a study file",
                where="Study.to_toml",
                got=f"{size:,} bytes",
                expected=f"at most {MAX_STUDY_BYTES:,}",
                remedy="use a matrix of fewer values or outputs",
            )
        return text

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the canonical form, in hexadecimal."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()


def parse_study(document: Mapping[str, Any], where: str, *, allow_code: bool = False) -> Study:
    """Check a study's content and build what it describes; `allow_code` imports classes of mechanisms that it names."""
    check_known(
        document, {"version", "name", *LIMITS, "domain", "mechanisms", "columns", "question", "collector"}, where
    )
    if document.get("version") != FORMAT_VERSION or isinstance(document.get("version"), bool):
        raise StudyError(
            "unsupported version of the study",
            where=f"{where}, version",
            got=shorten(document["version"]) if "version" in document else "no version",
            expected=f"version = {FORMAT_VERSION}",
            remedy=f"write version = {FORMAT_VERSION} at the top, or use a newer hubbub",
        )
    name = document.get("name", "")
    if not isinstance(name, str):
        raise StudyError(
            "name must be a string",
            where=f"{where}, name",
            got=shorten(name),
            expected='name = "..."',
            remedy="put it in quotes",
        )
    limits = {limit: _limit(document.get(limit), limit, f"{where}, {limit}") for limit in LIMITS}
    domain = build_domain(table_of(document, "domain", where), f"{where}, [domain]")
    columns = table_of(document, "columns", where) if "columns" in document else {}
    _columns(columns, domain, f"{where}, [columns]")
    tables = table_of(document, "mechanisms", where)
    if not tables:
        raise StudyError(
            "the study names no mechanism",
            where=f"{where}, [mechanisms]",
            got="nothing",
            expected="at least one table [mechanisms.NAME]",
            remedy="add one, with its kind and epsilon",
        )
    built = {}
    for label, fields in tables.items():
        place = f"{where}, [mechanisms.{label[:64]}]"
        if not MECHANISM_NAME.fullmatch(label):
            raise StudyError(
                "a mechanism's name has characters that are not allowed",
                where=place,
                got=shorten(label),
                expected="up to 64 letters, digits, - and _, a letter or digit first",
                remedy="rename it; reports refer to the mechanism by this name",
            )
        if not isinstance(fields, Mapping):
            raise StudyError(
                "a mechanism needs a table of its own",
                where=f"{where}, [mechanisms]",
                got=f"{label} = {shorten(fields)}",
                expected="a heading [mechanisms.NAME] for each mechanism",
                remedy="choose a name, and write the mechanism's kind and epsilon under that heading",
            )
        built[label] = build_mechanism(fields, place, domain, allow_code=allow_code)
    question, collector = document.get("question"), document.get("collector")
    if "question" in document:
        question = _question(question, built, f"{where}, [question]")
    if "collector" in document:
        collector = _collector(collector, f"{where}, [collector]")
    return Study(domain, built, name, **limits, columns=columns, question=question, collector=collector)


def _limit(limit: object, name: str, where: str) -> Any:
    """Return a limit on what one user sends (a whole number) or spends (a float), None for no limit."""
    is_count = name not in EPSILON_LIMITS
    if limit is None or (is_count and isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1):
        return limit
    if not is_count and 0 < as_real(limit) < math.inf:
        return as_real(limit)
    raise StudyError(
        f"{name} must be a positive {'integer' if is_count else 'number'}",
        where=where,
        got=shorten(limit),
        expected="a whole number, 1 or more" if is_count else "a positive number",
        remedy="leave it out for no limit",
    )


def _question(entries: object, mechanisms: Mapping[str, Mechanism], where: str) -> dict[str, str]:
    """Return what a page asks, checked as devices check it."""
    try:
        return check_question(dict(entries) if isinstance(entries, Mapping) else entries, dict(mechanisms), where)
    except ClientError as error:
        what = "the table [question] cannot be used"
        raise restated(error, StudyError, what=what, remedy="correct the entry") from None


def _collector(entries: object, where: str) -> dict[str, Any]:
    """Return what a collector accepts and keeps, checked as devices check it and completed by the defaults."""
    try:
        return check_collector(dict(entries) if isinstance(entries, Mapping) else entries, where)
    except ClientError as error:
        what = "the table [collector] cannot be used"
        raise restated(error, StudyError, what=what, remedy="correct the entry") from None


def _columns(columns: object, domain: Domain, where: str) -> Mapping[str, str]:
    """Return the names of columns by what they hold; refuse those that contradict each other or the domain."""
    if not isinstance(columns, Mapping):
        raise StudyError(
            "columns must say what columns are called",
            where=where,
            got=shorten(columns),
            expected='names by what the columns hold, such as user = "device_id"',
            remedy="leave them out if the columns are called so themselves",
        )
    check_known(columns, {*STUDY_COLUMNS, *roles_of_domain(domain)}, where)
    holds: dict[str, str] = {}
    for role, name in columns.items():
        if not isinstance(name, str) or not name:
            raise StudyError(
                "a column's name must be a text",
                where=f"{where}, {role}",
                got=shorten(name),
                expected=f'{role} = "the name of a column"',
                remedy=f"leave it out if the column is called {role}",
            )
        # A stratum may be the group, too, and the time the watermark.
        other = role if role in ("group", "watermark") else holds.setdefault(name, role)
        if other != role:
            raise StudyError(
                "one column cannot have two meanings",
                where=f"{where}, {role}",
                got=f"{shorten(name)} for {other} and {role}",
                expected="a separate column for each",
                remedy="name another column",
            )
    _check_places(columns, domain, where)
    return columns


def _check_places(columns: Mapping[str, str], domain: Domain, where: str) -> None:
    """Refuse columns of places that are not complete, are named beside outputs, or that the domain does not have."""
    pairs = [pair for pair in PLACE_ROLES if set(pair) & set(columns)]
    for pair in pairs:
        missing = [role for role in pair if role not in columns]
        others = ("output", *(role for other in pairs if other != pair for role in other))
        twice = [role for role in others if role in columns]
        if missing or twice:
            raise StudyError(
                f"a place needs {pair[0]} and {pair[1]}" if missing else "rows give their output twice",
                where=f"{where}, {pair[0] if pair[0] in columns else pair[1]}",
                got=f"no {missing[0]}" if missing else f"{twice[0]} beside {pair[0]} and {pair[1]}",
                expected="a column output, or lat and lon, or x and y",
                remedy=f"add {missing[0]}" if missing else "keep one of them",
            )
        if domain.grid is None or (pair[0] == "lat" and not domain.is_on_map):
            raise StudyError(
                "the study has no map" if pair[0] == "lat" else "the study has no grid",
                where=f"{where}, {pair[0]}",
                got=shorten(domain, 100),
                expected="a grid with south, west, north and east" if pair[0] == "lat" else "a grid",
                remedy="leave both out, or describe the grid that the places lie on in [domain]",
            )


def check_study(study: object, where: str) -> Study:
    """Return the study that a caller passed; refuse anything else."""
    if isinstance(study, Study):
        return study
    raise IntakeError(
        "the second argument is not a study" if "source, study" in where else "the argument is not a study",
        where=where,
        got=shorten(study),
        expected="a Study, or the path of a study file (.toml)",
        remedy="read it with hubbub.read_study('study.toml')",
    )
