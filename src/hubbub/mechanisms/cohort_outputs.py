"""Outputs of people in cohorts: the number of the cohort, and a packed row of bits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.client import as_whole
from hubbub.core.arrays import Array, Codes
from hubbub.core.errors import OutputError, shorten
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.sampling.bloom_filter_laws import COHORT_BYTES, cohort_bytes, cohorts_of

PAIR = re.compile("([0-9]{1,10}):((?:0x)?[0-9a-fA-F]+)")


class CohortOutputs(OutputSpace):
    """A cohort, and a row of bits: four bytes and then eight bits to a byte."""

    def __init__(self, cohorts: int, bits: int, mechanism: str) -> None:
        self._cohorts, self._bits, self._mechanism = cohorts, bits, mechanism
        self._rows = BitRowOutputs(bits, mechanism)
        self.dtype = np.dtype([("cohort", np.uint32), ("bits", np.uint8, (self._rows.width,))])

    @property
    def _form(self) -> str:
        return f"a cohort from 0 to {self._cohorts - 1} and {self._bits} bits, as in 0:0x{'00' * self._rows.width}"

    def encode(self, outputs: object) -> NDArray[np.uint8]:
        """Check cohorts and bits."""
        if isinstance(outputs, np.ndarray) and outputs.dtype.names == ("cohort", "bits"):
            table = np.atleast_1d(outputs)
            cohorts, rows = table["cohort"], self._rows.encode(table["bits"])
        else:
            pairs = self._pairs(outputs)
            cohorts = np.array([cohort for cohort, _ in pairs], dtype=np.int64)
            rows = np.concatenate(
                [np.empty((0, self._rows.width), dtype=np.uint8), *(self._rows.encode(row) for _, row in pairs)]
            )
        beyond = (cohorts < 0) | (cohorts >= self._cohorts)
        if beyond.any():
            place = int(np.argmax(beyond))
            raise OutputError(
                "no such cohort",
                where=f"{self._mechanism}, outputs, position {place}",
                got=f"cohort {int(cohorts[place])}",
                expected=f"from 0 to {self._cohorts - 1}",
                remedy="check the number of cohorts of the study; the first one is 0",
                code="no-such-cohort",
            )
        return np.concatenate([cohort_bytes(np.asarray(cohorts, dtype=np.int64)), rows], axis=1)

    def _pairs(self, outputs: object) -> list[tuple[int, object]]:
        """Return cohorts and rows of bits from a list of texts or pairs; one of them alone is a list, too."""
        single = isinstance(outputs, str | np.void) or (isinstance(outputs, tuple) and len(outputs) == 2)
        listed = [outputs] if single else list(outputs) if isinstance(outputs, Iterable) else [outputs]
        return [self._pair(entry, place) for place, entry in enumerate(listed)]

    def _pair(self, entry: object, place: int) -> tuple[int, object]:
        pair: Any = (
            self.parse(entry) if isinstance(entry, str) else entry.item() if isinstance(entry, np.void) else entry
        )
        cohort = as_whole(pair[0]) if isinstance(pair, tuple | list) and len(pair) == 2 else None
        if cohort is None:
            raise OutputError(
                "not a cohort with its bits",
                where=f"{self._mechanism}, outputs, position {place}",
                got=shorten(entry),
                expected=self._form,
                remedy="send the cohort with every report; pairs (cohort, bits) and texts cohort:bits are accepted",
                code="not-a-cohort",
            )
        row = pair[1]
        return cohort, [row] if isinstance(row, str | bytes) else np.asarray(row)[None]

    @property
    def code_type(self) -> np.dtype[Any]:
        """Bytes."""
        return np.dtype(np.uint8)

    @property
    def code_width(self) -> int:
        """The number of bytes."""
        return COHORT_BYTES + self._rows.width

    def decode(self, codes: Codes) -> Array:
        """Return a structured array with fields cohort and bits."""
        outputs = np.empty(len(codes), dtype=self.dtype)
        outputs["cohort"], outputs["bits"] = cohorts_of(codes), codes[:, COHORT_BYTES:]
        return outputs

    def parse(self, text: str) -> object:
        """Return cohort and packed row from ``cohort:bits``, the bits as 0s and 1s or in hexadecimal digits."""
        match = PAIR.fullmatch(text)
        if not match:
            raise OutputError(
                "not a cohort with its bits",
                where=self._mechanism,
                got=shorten(text),
                expected=self._form,
                remedy="write the cohort, a colon, and the bits",
                code="not-a-cohort",
            )
        return int(match[1]), self._rows.parse(match[2])

    def write(self, output: object) -> str:
        """Return ``cohort:0x...``."""
        pair: Any = output.item() if isinstance(output, np.void) else output
        cohort, row = pair
        return f"{int(cohort)}:0x{np.asarray(row, dtype=np.uint8).tobytes().hex()}"
