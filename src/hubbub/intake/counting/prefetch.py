"""Reading ahead: the next batch is read while this one is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")


def read_ahead(batches: Iterator[T], most: int = 2) -> Iterator[T]:
    """Yield what `batches` yields, made in a thread of its own, at most so many ahead."""
    queue: Queue[tuple[T | None, BaseException | None]] = Queue(most)
    given_up = Event()

    def put(item: T | None, error: BaseException | None) -> bool:
        while not given_up.is_set():
            try:
                queue.put((item, error), timeout=0.1)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for batch in batches:
                if not put(batch, None):
                    break
        except BaseException as error:
            put(None, error)
        else:
            put(None, None)
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            item, error = queue.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        given_up.set()
        thread.join()
