"""How many requests came from an address within this minute, in memory that never grows and holds no address.

Addresses are hashed with a key that dies with the process, and only counted: each raises one counter in each of two
rows, and the smaller of the two is its count. Other addresses may raise it, too, but only both at once would matter,
and nobody can choose addresses that do.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections.abc import Callable
from hashlib import blake2b

import numpy as np

COUNTERS = 1 << 16  # of each row
WINDOW_SECONDS = 60


class RateLimit:
    """At most so many requests per minute from one address."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = per_minute, clock
        self._key = secrets.token_bytes(32)
        self._counts = np.zeros((2, COUNTERS), dtype=np.int64)
        self._end = clock() + WINDOW_SECONDS

    def wait(self, address: str) -> int:
        """Count a request; return 0, or in how many seconds the address may try again."""
        now = self._clock()
        if now >= self._end:
            self._counts[:] = 0
            self._end = now + WINDOW_SECONDS
        digest = blake2b(_network(address), key=self._key, digest_size=8).digest()
        first = int.from_bytes(digest[:4], "little") % COUNTERS
        second = int.from_bytes(digest[4:], "little") % COUNTERS
        self._counts[0, first] += 1
        self._counts[1, second] += 1
        if min(self._counts[0, first], self._counts[1, second]) <= self._most:
            return 0
        return max(1, round(self._end - now))


def _network(address: str) -> bytes:
    """Return what counts as one address: of IPv6 the network, since its owner has all addresses in it."""
    if ":" not in address:
        return address.encode()
    try:
        whole = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    return whole.ipv4_mapped.packed if whole.ipv4_mapped else whole.packed[:8]
