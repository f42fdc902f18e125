"""Measure all parts in several processes; finished parts are kept on disk and never measured again."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

from hubbub.core.child_environment import no_imports_from_current_folder
from hubbub.core.errors import EstimateError
from hubbub.core.progress import Progress
from hubbub.core.threads import use_one_thread_from_now_on
from hubbub.paper.experiment_runs import Document, measure
from hubbub.paper.places import Place
from hubbub.paper.reproduction_folder import write_whole
from hubbub.paper.work_units import WorkUnit

PROCESSES = 2


class KeptParts:
    """Documents of parts that are done, one file each. One process at a time writes to the folder."""

    def __init__(self, folder: Path, seed: int, place: Place) -> None:
        self._folder, self._seed, self._fingerprint = folder, seed, place.fingerprint

    def get(self, part: WorkUnit) -> Document | None:
        """Return what was measured before, if it was."""
        document = None
        with suppress(FileNotFoundError, ValueError):  # what somebody cut short is measured again
            document = json.loads(self._path(part).read_text(encoding="utf-8"))
        return document if isinstance(document, dict) and document else None

    def put(self, part: WorkUnit, document: Document) -> None:
        """Keep a document: whole, or not at all."""
        write_whole(self._path(part), json.dumps(document, allow_nan=False, separators=(",", ":")).encode())

    def _path(self, part: WorkUnit) -> Path:
        return self._folder / f"{part.key(self._seed, self._fingerprint)}.json"


def measure_all(
    parts: Sequence[WorkUnit], place: Place, seed: int, kept: KeptParts, processes: int = PROCESSES
) -> Generator[Progress, None, dict[WorkUnit, Document]]:
    """Measure what is not there yet, yielding progress; return all documents, those of earlier times too."""
    documents = {part: document for part in parts if (document := kept.get(part)) is not None}
    left = [part for part in parts if part not in documents]
    if not left:
        return documents
    total, done = _tenths(left), 0
    before = f"; {len(documents):,} parts are there already" if documents else ""
    yield Progress(0, total, f"measuring {len(left):,} parts{before}")
    context = multiprocessing.get_context("spawn")  # forks of a process with threads may hang
    with no_imports_from_current_folder():  # locks of the pool start a process, too
        pool = ProcessPoolExecutor(min(processes, len(left)), context, initializer=_begin, initargs=(place, seed))
    try:
        with no_imports_from_current_folder():  # all processes of the pool begin with what is submitted
            under_way: dict[Future[Document], WorkUnit] = {pool.submit(_measure, part): part for part in left}
        while under_way:
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                part = under_way.pop(future)
                documents[part] = future.result()
                kept.put(part, documents[part])
                done += _tenths([part])
                yield Progress(done, total, f"measured {part.name}; {len(under_way):,} parts left")
    except BrokenProcessPool:
        raise EstimateError(
            "a measuring process was killed",
            where="hubbub reproduce",
            got=f"{sum(part in documents for part in left):,} of {len(left):,} parts were done",
            expected="processes that run to their end",
            remedy="run the same command again: it continues where it stopped; if memory ran out, with --processes 1. "
            "Scripts call reproduce() under: if __name__ == '__main__'",
        ) from None
    except MemoryError as error:
        raise EstimateError(
            "not enough memory for this many people or cells",
            where="hubbub reproduce",
            got=f"{place.users:,} people in {len(place.grid):,} cells: {error}",
            expected="room for every person's value and for a matrix of all cells by all cells, in each process",
            remedy="give fewer people or cells, or use --processes 1; what was measured is kept",
        ) from None
    finally:
        begun = list((getattr(pool, "_processes", None) or {}).values())  # a pool that is shut down has none
        pool.shutdown(wait=False, cancel_futures=True)
        for process in begun:  # a part may take seconds: nobody waits for it
            process.terminate()
    return documents


def _tenths(parts: Sequence[WorkUnit]) -> int:
    """Return the rough time that parts take, in tenths of a second."""
    return sum(max(1, round(10 * part.cost)) for part in parts)


# -- in the other processes --------------------------------------------------------------------------------

_shared: dict[str, Any] = {}


def _begin(place: Place, seed: int) -> None:
    """Prepare a process: one thread, no answer to Ctrl-C (that is for the parent), and an end when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_one_thread_from_now_on()
    _shared.update(place=place, seed=seed)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _measure(part: WorkUnit) -> Document:
    return measure(part, _shared["place"], _shared["seed"])
