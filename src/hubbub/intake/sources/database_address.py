"""Addresses of tables in databases: ``sqlite:///file.db#table``, and how to show one without its password.

The text before the first # says where the database is, the text after it is a table or a query, taken as written
(nothing in it is percent-decoded: a query may hold ``LIKE '%20'``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, unquote_to_bytes

from hubbub.core.errors import IntakeError, shorten
from hubbub.intake.reject_causes import refusal

FORMS = (
    "sqlite:///file.db#table, sqlite:////absolute/file.db#table, duckdb:///file.duckdb#table or "
    "postgresql://user:password@host:port/database#schema.table"
)
SCHEMES = {"sqlite": "sqlite", "duckdb": "duckdb", "postgresql": "postgresql", "postgres": "postgresql"}
SHOWN = {"host", "hostaddr", "port", "dbname", "user", "service", "options", "sslmode"}  # parameters, of all there are
SECRET = re.compile(r"pass|pwd|secret|token", re.IGNORECASE)
QUERY = re.compile(r"\s*(?:select|with)(?=[\s(*'\"/]|$)", re.IGNORECASE)
PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
HOSTS = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\[\]:,@]*)(?::[0-9]{0,5})?")
ALIAS = "hubbub_source"


@dataclass(frozen=True)
class Relation:
    """Rows of a database: a table by the parts of its name, or a query."""

    parts: tuple[str, ...]
    query: str

    @property
    def sql(self) -> str:
        """The statement that gives all its rows."""
        return self.query or f"SELECT * FROM {'.'.join(quoted(part) for part in self.parts)}"  # noqa: S608  # quoted

    def within(self, width: int, select: str, before: str = "") -> str:
        """Return a statement over its rows, where `column(n)` is the n-th of `width` columns.

        Columns go by their place: names may occur twice, or differ in capitals alone, and SQLite takes a quoted name
        that is not there for a text. The query stands on lines of its own, where its last comment ends.
        """
        columns = f"({', '.join(f'c{place}' for place in range(width))})" if width else ""
        return f"WITH {ALIAS}{columns} AS (\n{self.sql}\n) {before}SELECT {select} FROM {ALIAS}"  # noqa: S608


def column(place: int) -> str:
    """Return how `Relation.within` calls a column."""
    return f"{ALIAS}.c{place}"


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Address:
    """Where a database is and which rows of it are meant."""

    scheme: str
    target: str = field(repr=False)  # a path, or the whole URI with its password
    relation: Relation
    name: str  # as it may be shown
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def identity(self) -> str:
        """The name, with a file's path in full."""
        if self.scheme == "postgresql":
            return self.name
        relation = self.relation.sql if self.relation.query else self.relation.sql.casefold()  # T and t are one table
        return f"{self.scheme}:///{Path(self.target).resolve()}#{relation}"

    def scrub(self, text: str) -> str:
        """Return a driver's message without passwords, and without names that only hubbub uses."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text.replace(ALIAS, "source")


def is_address(text: str) -> bool:
    """Return whether a text is meant as an address, not as a path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://|(?:sqlite|duckdb|postgres|postgresql):", text) is not None


def parse_address(text: str) -> Address:
    """Return the parts of an address."""
    base, sharp, fragment = text.partition("#")
    written, separator, rest = base.partition("://")
    opening = written.partition(":")[0].lower()
    scheme = SCHEMES.get(opening)
    if scheme is None or not separator:
        what = "not the address of a database" if scheme is None else "the kind of a database is followed by ://"
        raise _bad(what, _opening(text), opening)
    if scheme == "postgresql":
        target, shown, secrets = _server(rest, fragment)
    else:
        target, shown, secrets = _file(scheme, rest), base, ()
    if not sharp or not fragment.strip():
        raise _bad("the address names no table", shown, "nothing after #" if sharp else "no #")
    return Address(scheme, target, _relation(fragment, shown), f"{shown}#{fragment}", secrets)


def _file(scheme: str, rest: str) -> str:
    where = f"{scheme}://{rest}"
    if not rest.startswith("/"):
        raise _bad("the path follows three slashes, an absolute one four", where, f"{scheme}://{rest[:1]}…")
    if rest[1:] in ("", "/", ":memory:") or "\0" in rest:
        raise _bad("the address names no file", where, shorten(rest[1:]))
    return rest[1:]


def _server(rest: str, fragment: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the URI for the driver, how it is shown, and what must never be.

    A password with an unencoded / ? or # ends up anywhere, so an address that looks odd is not shown at all.
    """
    hidden = "postgresql://… (not shown: it may hold a password)"
    match = re.fullmatch(r"([^/?]*)(/[^/?@]*)?(?:\?(.*))?", rest, re.DOTALL)
    if match is None:
        raise _unclear(hidden)
    people, at, hosts = match[1].rpartition("@")
    user, colon, password = people.partition(":")
    database, pairs = match[2] or "", [pair.partition("=") for pair in (match[3] or "").split("&") if pair]
    odd = not all(HOSTS.fullmatch(host) for host in hosts.split(",")) or not all(pair[1] for pair in pairs)
    if odd or (not at and "@" in fragment and not QUERY.match(fragment)):
        raise _unclear(hidden)
    if re.search(r"%(?![0-9A-Fa-f]{2})|%00|\0", rest):
        raise _bad("a % is not followed by two hexadecimal digits", hidden, "a stray %, or a NUL")
    hiding = [value for key, _, value in pairs if SECRET.search(key)]
    secrets = {form for secret in (password, *hiding) for form in (secret, unquote(secret)) if form}
    visible = [f"{key}={value}" for key, _, value in pairs if key in SHOWN]
    shown = f"postgresql://{user}{at}{hosts}{database}{'?' * bool(visible)}{'&'.join(visible)}"
    if "connect_timeout" not in {key for key, _, _ in pairs}:
        pairs.append(("connect_timeout", "=", "5"))  # seconds; the driver's own is minutes
    # Encoded anew: an @ or a : of the password must not be read as the beginning of the host.
    login = quote(unquote_to_bytes(user), safe="") + colon + quote(unquote_to_bytes(password), safe="")
    settings = "&".join(key + equals + value for key, equals, value in pairs)
    target = f"postgresql://{login}{at}{hosts}{database or '/'}?{settings}"
    return target, shown, tuple(sorted(secrets, key=len, reverse=True))


def _relation(fragment: str, where: str) -> Relation:
    if "\0" in fragment:
        raise _bad("the name of the table holds a NUL", where, shorten(fragment))
    if QUERY.match(fragment):
        return Relation((), fragment.strip().rstrip("; \t\r\n"))
    parts, place, name = [], 0, fragment.strip()
    while match := PART.match(name, place):
        parts.append(match[1].replace('""', '"') if match[1] else match[2])
        place = match.end() + 1
        if name[match.end() : place] != ".":
            break
    if place != len(name) + 1 or len(parts) > 3:
        raise _bad("the name of the table cannot be made out", where, shorten(fragment))
    return Relation(tuple(parts), "")


def _opening(text: str) -> str:
    """Return the scheme alone: what follows an unknown one may hold a password."""
    scheme = text.partition(":")[0]
    return text if "@" not in text else f"{scheme}:…"


def _unclear(where: str) -> IntakeError:
    return refusal(
        "bad-address",
        "the address of the database cannot be taken apart",
        where=where,
        got="something that is no host, port, database or parameter",
        expected="postgresql://user:password@host:port/database#schema.table",
        remedy="in a password write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25",
    )


def _bad(what: str, where: str, got: str) -> IntakeError:
    return refusal(
        "bad-address",
        what,
        where=where,
        got=got,
        expected=FORMS,
        remedy='correct the address; a name with a dot stands in quotes ("my.table"); instead of a table a query may '
        "follow the #, beginning with SELECT or WITH",
    )
