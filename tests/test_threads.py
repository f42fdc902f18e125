"""Batches that are read ahead arrive in order, stop where they fail, and are closed in the thread that began them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from hubbub.core.threads import read_ahead


def numbers(count: int, ran_in: set[int], fail_at: int = -1) -> Iterator[int]:
    """Yield numbers, and note in which threads that was done."""
    try:
        for number in range(count):
            ran_in.add(threading.get_ident())
            if number == fail_at:
                raise LookupError("the file ends here")
            yield number
    finally:
        ran_in.add(threading.get_ident())


def test_batches_arrive_in_order_from_one_other_thread() -> None:
    ran_in: set[int] = set()
    assert list(read_ahead(numbers(50, ran_in))) == list(range(50))
    assert len(ran_in) == 1
    assert threading.get_ident() not in ran_in
    assert list(read_ahead(iter(()))) == []


def test_an_error_comes_after_the_batches_before_it() -> None:
    arrived: list[int] = []
    with pytest.raises(LookupError, match="ends here"):
        arrived.extend(read_ahead(numbers(50, set(), fail_at=7)))
    assert arrived == list(range(7))


def test_whoever_stops_early_closes_the_source_in_its_own_thread() -> None:
    ran_in: set[int] = set()
    source = numbers(1_000_000, ran_in)
    batches = read_ahead(source)
    assert next(batches) == 0
    batches.close()  # type: ignore[attr-defined]
    assert len(ran_in) == 1
    assert next(source, None) is None


def test_batches_that_are_left_when_python_ends_are_no_error() -> None:
    program = "from hubbub.core.threads import read_ahead; left = read_ahead(iter(range(9))); print(next(left))"
    ended = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=60)  # noqa: S603
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0\n", "")
