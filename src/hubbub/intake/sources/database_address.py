"""Addresses of tables in databases, such as ``sqlite:///file.db#table``, and how to show them without a password.

The text before the first # is the database, the text after it a table or a query. Libraries that parse database URLs
are not used: they percent-decode the part after the # (a query may contain ``LIKE '%20'``), and show a malformed
address with its password.
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
SHOWN_PARAMETERS = {"host", "hostaddr", "port", "dbname", "user", "service", "options", "sslmode"}
SECRET_PARAMETER = re.compile(r"pass|pwd|secret|token", re.IGNORECASE)
QUERY = re.compile(r"\s*(?:select|with)(?=[\s(*'\"/]|$)", re.IGNORECASE)
NAME_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
HOST = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\[\]:,@]*)(?::[0-9]{0,5})?")
ALIAS = "hubbub_source"  # what our statements call the table or query
CONNECT_SECONDS = 5  # the driver's own default is minutes


@dataclass(frozen=True)
class Relation:
    """A table by the parts of its name, or a query."""

    parts: tuple[str, ...]
    query: str

    @property
    def sql(self) -> str:
        """The statement that selects all its rows."""
        return self.query or f"SELECT * FROM {'.'.join(quoted_name(part) for part in self.parts)}"  # noqa: S608  # quoted

    def within(self, width: int, select: str, before: str = "") -> str:
        """Return a statement over its rows, where `column(n)` is the n-th of `width` columns.

        Columns go by their place: names may repeat or differ only in case, and SQLite reads an unknown quoted name as
        a text. The query has lines of its own, so that a comment at its end does not swallow what follows.
        """
        columns = f"({', '.join(f'c{place}' for place in range(width))})" if width else ""
        return f"WITH {ALIAS}{columns} AS (\n{self.sql}\n) {before}SELECT {select} FROM {ALIAS}"  # noqa: S608


def column(place: int) -> str:
    """Return the name of a column in `Relation.within`."""
    return f"{ALIAS}.c{place}"


def quoted_name(name: str) -> str:
    """Return a name as an SQL identifier, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Address:
    """Where a database is, and which of its rows are read."""

    scheme: str
    target: str = field(repr=False)  # a path, or the URI with its password
    relation: Relation
    name: str  # without its password
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def identity(self) -> str:
        """The name, with the full path of a file."""
        if self.scheme == "postgresql":
            return self.name
        statement = self.relation.sql
        if not self.relation.query:
            statement = statement.casefold()  # T and t are the same table
        return f"{self.scheme}:///{Path(self.target).resolve()}#{statement}"

    @property
    def database(self) -> str:
        """Where the database is, whoever logs in and whatever is read."""
        if self.scheme != "postgresql":
            return f"{self.scheme}:///{Path(self.target).resolve()}"
        return re.sub(r"://[^/@#]*@", "://", self.name.partition("#")[0])

    def scrub(self, text: str) -> str:
        """Return a driver's message without passwords and without our own alias."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text.replace(ALIAS, "source")


def is_address(text: str) -> bool:
    """Return whether a text is an address rather than a path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://|(?:sqlite|duckdb|postgres|postgresql):", text) is not None


def parse_address(text: str) -> Address:
    """Return the address that a text spells."""
    base, sharp, fragment = text.partition("#")
    written, separator, rest = base.partition("://")
    opening = written.partition(":")[0].lower()
    scheme = SCHEMES.get(opening)
    if scheme is None or not separator:
        what = "not the address of a database" if scheme is None else "the kind of database must be followed by ://"
        shown = f"{text.partition(':')[0]}:…" if "@" in text else text  # what follows may contain a password
        raise _malformed(what, shown, opening)
    if scheme == "postgresql":
        target, shown, secrets = _parse_server(rest, fragment)
    else:
        target, shown, secrets = _parse_file(scheme, rest), base, ()
    if not sharp or not fragment.strip():
        raise _malformed("the address names no table", shown, "nothing after #" if sharp else "no #")
    return Address(scheme, target, _parse_relation(fragment, shown), f"{shown}#{fragment}", secrets)


def _parse_file(scheme: str, rest: str) -> str:
    where = f"{scheme}://{rest}"
    if not rest.startswith("/"):
        raise _malformed(
            "a path must follow three slashes, and an absolute path four", where, f"{scheme}://{rest[:1]}…"
        )
    if rest[1:] in ("", "/", ":memory:") or "\0" in rest:
        raise _malformed("the address names no file", where, shorten(rest[1:]))
    return rest[1:]


def _parse_server(rest: str, fragment: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the URI for the driver, the text that may be shown, and the secrets that must not be.

    A password with an unencoded / ? or # may end up in any part, so a malformed address is not shown at all.
    """
    hidden = "postgresql://… (not shown: it may hold a password)"
    match = re.fullmatch(r"([^/?]*)(/[^/?@]*)?(?:\?(.*))?", rest, re.DOTALL)
    if match is None:
        raise _unparsable(hidden)
    login, at, hosts = match[1].rpartition("@")
    user, colon, password = login.partition(":")
    database, pairs = match[2] or "", [pair.partition("=") for pair in (match[3] or "").split("&") if pair]
    is_malformed = not all(HOST.fullmatch(host) for host in hosts.split(",")) or not all(pair[1] for pair in pairs)
    if is_malformed or (not at and "@" in fragment and not QUERY.match(fragment)):
        raise _unparsable(hidden)
    if re.search(r"%(?![0-9A-Fa-f]{2})|%00|\0", rest):
        raise _malformed("a % must be followed by two hexadecimal digits", hidden, "a stray %, or a NUL byte")
    secret_values = [value for key, _, value in pairs if SECRET_PARAMETER.search(key)]
    secrets = {form for secret in (password, *secret_values) for form in (secret, unquote(secret)) if form}
    visible = [f"{key}={value}" for key, _, value in pairs if key in SHOWN_PARAMETERS]
    shown = f"postgresql://{user}{at}{hosts}{database}{'?' * bool(visible)}{'&'.join(visible)}"
    if "connect_timeout" not in {key for key, _, _ in pairs}:
        pairs.append(("connect_timeout", "=", str(CONNECT_SECONDS)))
    # Encoded again: an @ or : in the password must not be read as the beginning of the host.
    encoded = quote(unquote_to_bytes(user), safe="") + colon + quote(unquote_to_bytes(password), safe="")
    settings = "&".join(key + equals + value for key, equals, value in pairs)
    target = f"postgresql://{encoded}{at}{hosts}{database or '/'}?{settings}"
    return target, shown, tuple(sorted(secrets, key=len, reverse=True))


def _parse_relation(fragment: str, where: str) -> Relation:
    if "\0" in fragment:
        raise _malformed("the name of the table contains a NUL byte", where, shorten(fragment))
    if QUERY.match(fragment):
        return Relation((), fragment.strip().rstrip("; \t\r\n"))
    parts, place, name = [], 0, fragment.strip()
    while match := NAME_PART.match(name, place):
        parts.append(match[1].replace('""', '"') if match[1] else match[2])
        place = match.end() + 1
        if name[match.end() : place] != ".":
            break
    if place != len(name) + 1 or len(parts) > 3:
        raise _malformed("the name of the table is malformed", where, shorten(fragment))
    return Relation(tuple(parts), "")


def _unparsable(where: str) -> IntakeError:
    return refusal(
        "bad-address",
        "the address of the database is malformed",
        where=where,
        got="a part that is not a host, port, database or parameter",
        expected="postgresql://user:password@host:port/database#schema.table",
        remedy="in a password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25",
    )


def _malformed(what: str, where: str, got: str) -> IntakeError:
    return refusal(
        "bad-address",
        what,
        where=where,
        got=got,
        expected=FORMS,
        remedy='correct the address; put a name that contains a dot in quotes ("my.table"); a query after the # begins '
        "with SELECT or WITH",
    )
