"""One thread that checks and stores the reports of all waiting requests, in one transaction after the other.

While a transaction is being made durable, requests gather for the next. So the time that a disk takes is shared by all
of them, and an answer is given only when its reports are on the disk.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple

from hubbub.core.errors import HubbubError, IntakeError
from hubbub.core.text import plural
from hubbub.intake.study import Study
from hubbub.serve.base import Columns, ReportStore, StoreUnavailableError
from hubbub.serve.report_check import ReportCheck
from hubbub.serve.report_requests import ReportBatch
from hubbub.serve.request_errors import RETRY_SECONDS, ReportFault, RequestRefusedError, refused, reports_refused
from hubbub.serve.service_counters import ServiceCounters

MAX_GROUP_REPORTS = 50_000  # stored in one transaction: others wait no longer than these take
MAX_CHECKED_REPORTS = 1_000  # checked at once
PROBE_SECONDS = 1.0  # between two looks at a database that failed
TIMES: dict[str, Callable[[datetime], str]] = {
    "day": lambda now: now.strftime("%Y-%m-%d"),
    "hour": lambda now: now.strftime("%Y-%m-%dT%H:00Z"),
}


class Receipt(NamedTuple):
    """How many reports of a request were stored, and how many had been stored before."""

    accepted: int
    repeated: int


Outcome = Receipt | RequestRefusedError


@dataclass
class Submission:
    """The reports of one request, which wait for their transaction."""

    batch: ReportBatch
    users: list[str] | None  # what is stored of the owners of tokens
    answer: asyncio.Future[Receipt] = field(repr=False)


class BatchPart(NamedTuple):
    """Some consecutive reports of the request at a place in its group."""

    place: int
    batch: ReportBatch
    start: int
    end: int


class GroupCommit:
    """Stores reports; `submit` is called by the event loop, and everything else happens in a thread."""

    def __init__(
        self, study: Study, store: ReportStore, counters: ServiceCounters, log: Callable[[str], None] = lambda _: None
    ) -> None:
        self._store, self._counters, self._log = store, counters, log
        self._check = ReportCheck(study)
        self._most = study.max_reports_per_user
        self._time = TIMES.get((study.collector or {}).get("time", "none"))
        self._waiting: deque[Submission] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._failed_at: float | None = None  # when the database refused; None while it takes reports
        self._ready: list[BaseException | None] = []
        self._thread = threading.Thread(target=self._run, name="hubbub-commit", daemon=True)

    @property
    def healthy(self) -> bool:
        """Whether the database took what it was given last."""
        return self._failed_at is None and self._thread.is_alive()

    def start(self) -> None:
        """Open the database and start the thread; what is wrong with the database is raised here."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._ready)
        if self._ready[0] is not None:
            raise self._ready[0]

    def stop(self) -> None:
        """Store what was submitted, close the database, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    async def submit(self, batch: ReportBatch, users: list[str] | None) -> Receipt:
        """Return when reports are durable; raise what is wrong with them, or with the database."""
        if not self.healthy:
            raise storage_refusal()
        submission = Submission(batch, users, asyncio.get_running_loop().create_future())
        with self._changed:
            if self._stopping:
                raise stopping_refusal()
            self._waiting.append(submission)
            self._changed.notify()
        return await submission.answer

    # -- the thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        opened: BaseException | None = None
        try:
            self._store.open()
            self._check.warm_up()
        except BaseException as error:
            opened = error
        with self._changed:
            self._ready.append(opened)
            self._changed.notify_all()
        if opened is not None:
            return
        while (group := self._next_group()) is not None:
            if group:
                self._deliver(group, self._outcomes(group))
            elif not self.healthy:
                self._probe()
        self._store.close()

    def _next_group(self) -> list[Submission] | None:
        """Wait for requests and return those that are waiting; None at the end, and nothing if it is time to probe."""
        with self._changed:
            timeout = None if self.healthy else PROBE_SECONDS
            self._changed.wait_for(lambda: self._waiting or self._stopping, timeout)
            if self._stopping and not self._waiting:
                return None
            group: list[Submission] = []
            reports = 0
            while self._waiting and (not group or reports + len(self._waiting[0].batch) <= MAX_GROUP_REPORTS):
                group.append(self._waiting.popleft())
                reports += len(group[-1].batch)
            return group

    def _outcomes(self, group: Sequence[Submission]) -> list[Outcome]:
        """Check and store a group; each request is refused or stored as a whole."""
        start = time.perf_counter()
        try:
            outcomes = self._checked(group)
            fit = [place for place, outcome in enumerate(outcomes) if outcome is None]
            if fit:
                with self._store.transaction():
                    decided, stored = self._store_group([group[place] for place in fit])
                for place, decision in zip(fit, decided, strict=True):
                    outcomes[place] = decision
                self._recovered()
                self._counters.commit_seconds.add(time.perf_counter() - start)
                self._counters.commit_reports.add(stored)
        except (StoreUnavailableError, IntakeError) as error:
            self._failed(str(error) if isinstance(error, StoreUnavailableError) else error.what)
            return [storage_refusal() for _ in group]
        except Exception as error:  # a mistake of ours: told without what was sent
            self._store.close()
            self._log(f"a group of {plural(len(group), 'request')} failed: {type(error).__name__}")
            return [our_mistake() for _ in group]
        settled = [outcome for outcome in outcomes if outcome is not None]
        self._counters.accepted += sum(outcome.accepted for outcome in settled if isinstance(outcome, Receipt))
        self._counters.repeated += sum(outcome.repeated for outcome in settled if isinstance(outcome, Receipt))
        return settled

    def _checked(self, group: Sequence[Submission]) -> list[Outcome | None]:
        """Return the refusal of each request with a report that the study does not allow; None for the others.

        To say what is wrong with a report takes a hundred times as long as to see that nothing is. So reports are
        checked a thousand at a time, and a request is refused for the first thousand in which one is at fault.
        """
        outcomes: list[Outcome | None] = [None] * len(group)
        waiting = deque(
            BatchPart(place, each.batch, start, min(start + MAX_CHECKED_REPORTS, len(each.batch)))
            for place, each in enumerate(group)
            for start in range(0, len(each.batch), MAX_CHECKED_REPORTS)
        )
        while waiting:
            pieces = _next_pieces(waiting, outcomes)
            mechanisms = [name for piece in pieces for name in piece.batch.mechanisms[piece.start : piece.end]]
            outputs: dict[str, list[str | None]] = {
                role: [output for piece in pieces for output in piece.batch.outputs[role][piece.start : piece.end]]
                for role in group[0].batch.outputs
            }
            faults = self._check.faults(mechanisms, outputs) if pieces else []
            first = 0
            for piece in pieces if faults else ():
                last = first + piece.end - piece.start
                own = [ReportFault(piece.start + row - first, error) for row, error in faults if first <= row < last]
                if own:
                    outcomes[piece.place] = reports_refused(own)
                first = last
        return outcomes

    def _store_group(self, group: Sequence[Submission]) -> tuple[list[Outcome], int]:
        """Insert the reports of requests; return what becomes of each request, and how many reports were new."""
        keys = [key for each in group for key in each.batch.keys]
        day = [] if self._time is None else [self._time(datetime.now(UTC))]
        may_be_new = len(set(keys)) == len(keys) and not self._sent(group) and self._has_room(group)
        if may_be_new and self._store.insert_new(self._store.rows(_columns(group, day))):
            return [Receipt(len(each.batch), 0) for each in group], len(keys)
        outcomes, rows = self._decided(group, self._store.existing(keys), self._sent(group), day)
        if rows:
            self._store.insert(self._store.rows(list(zip(*rows, strict=True))))
        return outcomes, len(rows)

    def _sent(self, group: Sequence[Submission]) -> Counter[str]:
        """Return how many reports the users of a group have stored, where the study limits them."""
        if self._most is None or group[0].users is None:
            return Counter()
        return Counter(self._store.reports_of(sorted({user for each in group for user in each.users or ()})))

    def _decided(
        self, group: Sequence[Submission], known: dict[str, tuple[object, ...]], sent: Counter[str], day: list[str]
    ) -> tuple[list[Outcome], list[tuple[str | None, ...]]]:
        """Return what becomes of each request, and the rows to insert, given what is stored already."""
        outcomes: list[Outcome] = []
        rows: list[tuple[str | None, ...]] = []
        for each in group:
            added, faults = _new_reports(each, known, sent, self._most)
            if faults:
                outcomes.append(reports_refused(faults))
                continue
            outcomes.append(Receipt(len(added), len(each.batch) - len(added)))
            for place, content in added:
                key, user = each.batch.keys[place], [] if each.users is None else [each.users[place]]
                known[key] = content
                sent.update(user)
                rows.append((key, *content, *user, *day))
        return outcomes, rows

    def _has_room(self, group: Sequence[Submission]) -> bool:
        """Whether users without any report so far may send those of a group."""
        if self._most is None or group[0].users is None:
            return True
        return max(Counter(user for each in group for user in each.users or ()).values()) <= self._most

    def _deliver(self, group: Sequence[Submission], outcomes: Sequence[Outcome]) -> None:
        """Hand the outcomes to the event loop, all at once."""

        def settle() -> None:
            for each, outcome in zip(group, outcomes, strict=True):
                if each.answer.cancelled():  # the client has left; its reports are stored all the same
                    continue
                if isinstance(outcome, Receipt):
                    each.answer.set_result(outcome)
                else:
                    each.answer.set_exception(outcome)

        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            group[0].answer.get_loop().call_soon_threadsafe(settle)

    def _failed(self, why: str) -> None:
        if self._failed_at is None:
            self._log(f"the database does not take reports: {why}")
        self._failed_at = time.monotonic()
        self._counters.storage_failures += 1

    def _recovered(self) -> None:
        if self._failed_at is not None:
            self._log("the database takes reports again")
        self._failed_at = None

    def _probe(self) -> None:
        """Look whether a database that failed takes reports again."""
        try:
            self._store.probe()
        except (StoreUnavailableError, HubbubError) as error:
            self._failed(str(error))
        else:
            self._recovered()


def _next_pieces(waiting: deque[BatchPart], outcomes: Sequence[Outcome | None]) -> list[BatchPart]:
    """Return the pieces that are checked together, without those of requests that were refused."""
    pieces: list[BatchPart] = []
    reports = 0
    while waiting and (not pieces or reports + waiting[0].end - waiting[0].start <= MAX_CHECKED_REPORTS):
        piece = waiting.popleft()
        if outcomes[piece.place] is None:
            pieces.append(piece)
            reports += piece.end - piece.start
    return pieces


def _columns(group: Sequence[Submission], day: list[str]) -> Columns:
    """Return the columns of all reports of a group."""
    parts: list[list[Sequence[str | None]]] = []  # of each request
    for each in group:
        users = [] if each.users is None else [each.users]
        days = [[text] * len(each.batch) for text in day]
        parts.append([each.batch.keys, each.batch.mechanisms, *each.batch.outputs.values(), *users, *days])
    return [list(chain.from_iterable(column)) for column in zip(*parts, strict=True)]


def _new_reports(
    submission: Submission, known: dict[str, tuple[object, ...]], sent: Counter[str], most: int | None
) -> tuple[list[tuple[int, tuple[str | None, ...]]], list[ReportFault]]:
    """Return the places and contents of a request's reports that are not stored yet, and what is wrong with others."""
    batch, users = submission.batch, submission.users
    contents = list(zip(batch.mechanisms, *batch.outputs.values(), strict=True))
    added: list[tuple[int, tuple[str | None, ...]]] = []
    faults: list[ReportFault] = []
    own: dict[str, tuple[str | None, ...]] = {}
    of_user: Counter[str] = Counter()
    for place, (key, content) in enumerate(zip(batch.keys, contents, strict=True)):
        before = known.get(key) or own.get(key)
        if before is None:
            added.append((place, content))
            own[key] = content
            if users is not None:
                of_user[users[place]] += 1
                if most is not None and sent[users[place]] + of_user[users[place]] > most:
                    faults.append(ReportFault(place, _too_many_reports(most)))
        elif before != content:
            faults.append(ReportFault(place, _reused_key()))
    return added, faults


def _too_many_reports(most: int) -> HubbubError:
    return IntakeError(
        "this person has sent all the reports that the study allows",
        where="user",
        got="one more",
        expected=f"at most {plural(most, 'report')} from each person",
        remedy="send no more: every report tells a little more about a person",
        code="too-many-reports",
    )


def _reused_key() -> HubbubError:
    return IntakeError(
        "another report was stored under the same key",
        where="key",
        got="a key with another mechanism or output",
        expected="a new key for each report, and the same report where a key is sent again",
        remedy="draw 128 random bits once for each report, and keep them for when it is sent again",
        code="key-reused",
    )


def storage_refusal() -> RequestRefusedError:
    """Return the answer while the database does not take reports."""
    return refused(
        "storage",
        "the database does not take reports at present",
        where="POST /reports",
        got="a database that is gone, locked, or full",
        expected="a database that takes reports; nothing of this request counts as stored",
        remedy="send the same reports again, with the same keys",
        retry_after=RETRY_SECONDS,
    )


def stopping_refusal() -> RequestRefusedError:
    """Return the answer while the collector is being stopped."""
    return refused(
        "stopping",
        "the collector is being stopped",
        where="POST /reports",
        got="a request after it began to stop",
        expected="a collector that runs",
        remedy="send the same reports again, with the same keys",
        retry_after=RETRY_SECONDS,
    )


def our_mistake() -> RequestRefusedError:
    """Return the answer where the collector itself failed."""
    return refused(
        "our-mistake",
        "the collector failed",
        where="POST /reports",
        got="a mistake of the program",
        expected="an answer; nothing of this request counts as stored",
        remedy="send the same reports again, with the same keys; if it happens again, tell whoever runs the collector",
    )
