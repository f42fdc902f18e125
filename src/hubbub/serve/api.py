"""Run the collector of a study until it is stopped."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from hubbub.core.errors import SettingError
from hubbub.intake.collected_table import collected_table
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import Address, parse_address
from hubbub.intake.study import Study
from hubbub.serve.access_tokens import TokenKey
from hubbub.serve.base import STUDIES, ReportStore, StoreUnavailableError
from hubbub.serve.bounded_http import BoundedHttp
from hubbub.serve.group_commit import GroupCommit
from hubbub.serve.live_results import LiveResults
from hubbub.serve.postgresql_store import PostgreSQLStore
from hubbub.serve.results_access import ResultsAccess
from hubbub.serve.results_pages import ResultsPages
from hubbub.serve.service_counters import ServiceCounters
from hubbub.serve.sqlite_store import SQLiteStore
from hubbub.serve.web_app import WebApp
from hubbub.serve.web_pages import page_routes

STORES: dict[str, type[ReportStore]] = {"sqlite": SQLiteStore, "postgresql": PostgreSQLStore}
DEFAULT_TABLE = "reports"
KEEP_ALIVE_SECONDS = 30
RESULTS_SECONDS = 10.0  # between two computations of the results
STOP_SECONDS = 30  # for requests that arrive when the collector is told to stop
BACKLOG = 2048
# Threads hand over Python's lock this often: the thread that commits must not wait long for the event loop.
SWITCH_SECONDS = 0.0005


@dataclass(frozen=True)
class Listening:
    """Where a collector takes reports, and where it puts them."""

    url: str
    table: str  # its address, without a password


def serve(
    study: Study,
    to: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens_key: Path | None = None,
    proxies: Sequence[str] = (),
    client_study: Mapping[str, Any] | None = None,
    results_token: str | None = None,
    results_every: float = RESULTS_SECONDS,
    ready: Callable[[Listening], None] = lambda _: None,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Take reports over HTTP and store them, until the process is told to stop (SIGTERM, or Ctrl+C).

    `client_study` is the study as clients read it (`client_document`): with it, the collector hands out the study and
    asks its question. With `results_token`, whoever has it sees the live report, computed at most every `results_every`
    seconds. Requests that arrived before are answered first. `ready` is called once reports are taken, and `log`
    with a sentence whenever the database fails or recovers.
    """
    address = store_address(to)
    table = collected_table(study)
    tokens = _token_key(study, tokens_key)
    counters = ServiceCounters()
    store = STORES[address.scheme](address, table, study.fingerprint)
    commits = GroupCommit(study, store, counters, log)
    listener = _listener(host, port)
    pages = page_routes(study, client_study)
    with listener, _storing(commits, address), ExitStack() as ending:
        if results_token is not None:
            results = LiveResults(
                study,
                named_table(to),
                counters,
                every=results_every,
                is_shared=address.scheme == "postgresql",
                log=log,
            )
            pages += ResultsPages(study, results, ResultsAccess(results_token)).routes()
            ending.callback(results.stop)
            results.start()
        app = WebApp(study, commits, counters, tokens=tokens, proxies=proxies, pages=pages, log=log)
        rules = study.collector or {}
        config = uvicorn.Config(
            app,
            http=BoundedHttp.limited(rules["max_request_bytes"], counters),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            headers=[("x-content-type-options", "nosniff")],
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
            backlog=BACKLOG,
        )
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # its messages name addresses
        shown = f"[{host}]" if ":" in host else host
        server = uvicorn.Server(config)
        with _quick_switches(), _stopping_by_signals(server):
            ready(Listening(f"http://{shown}:{listener.getsockname()[1]}", address.name))
            server.run(sockets=[listener])


def store_address(to: str) -> Address:
    """Return the address of the table that reports are written to; it is called reports unless the address says."""
    address = parse_address(named_table(to))
    if address.scheme not in STORES or address.relation.query:
        raise SettingError(
            "reports cannot be written there",
            where="--to",
            got=f"a {address.scheme} database" if address.scheme not in STORES else "a query",
            expected="sqlite:///reports.db#reports, or postgresql://user:password@host:port/database#schema.table",
            remedy="name a table of SQLite or PostgreSQL; it is made if there is none",
        )
    if address.relation.parts[-1] == STUDIES:
        raise SettingError(
            "the collector keeps its own notes in a table of this name",
            where="--to",
            got=f"#{STUDIES}",
            expected="another name of a table",
            remedy=f"name the table of reports after the #, such as #{DEFAULT_TABLE}",
        )
    return address


def named_table(to: str) -> str:
    """Return an address with the name of its table."""
    return to if "#" in to else f"{to}#{DEFAULT_TABLE}"


def _token_key(study: Study, path: Path | None) -> TokenKey | None:
    wants_tokens = (study.collector or {}).get("access") == "tokens"
    if wants_tokens and path is not None:
        return TokenKey.read(path, study.fingerprint)
    if wants_tokens or path is not None:
        raise SettingError(
            "the study wants tokens, and their key is missing" if wants_tokens else "the study takes no tokens",
            where="--tokens-key",
            got="nothing" if wants_tokens else "a key",
            expected="the file with the key that tokens were issued with" if wants_tokens else "no key",
            remedy="issue tokens first: hubbub serve STUDY --issue-tokens N --tokens-key FILE"
            if wants_tokens
            else 'leave it out, or write access = "tokens" in the study\'s [collector]',
        )
    return None


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        raise SettingError(
            "the collector cannot listen there",
            where="--host, --port",
            got=f"{host}, {port}: {getattr(error, 'strerror', None) or error}",
            expected="an address of this machine, and a port that nothing else uses",
            remedy="choose another port with --port",
        ) from None


@contextmanager
def _storing(commits: GroupCommit, address: Address) -> Iterator[None]:
    """Open the database, and close it after everything that was submitted is stored."""
    try:
        commits.start()
    except StoreUnavailableError as error:
        raise refusal(
            "no-connection",
            "the database cannot be opened",
            where=address.name,
            got=str(error),
            expected="a database that can be written to",
            remedy="check the address, that the server runs or the folder is writable, and the user's rights",
        ) from None
    try:
        yield
    finally:
        commits.stop()


@contextmanager
def _quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _stopping_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Stop the server by signals also before it listens to them; it raises them again after it has stopped."""

    def stop(*_: object) -> None:
        server.should_exit = True

    try:
        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    except ValueError:  # not the main thread: there are no signals here
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
