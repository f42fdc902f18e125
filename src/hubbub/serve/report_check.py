"""Outputs checked by the study, those of many requests at once, by the code that counts rows of files and databases.

What is accepted here is accepted when the table is counted, and for the same reason anything else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import numpy as np

from hubbub.core.errors import HubbubError, IntakeError, restated
from hubbub.intake.counting.attribute_encoder import AttributeEncoder
from hubbub.intake.counting.item_encoder import EncodedRows, Encoder
from hubbub.intake.reject_causes import Fault
from hubbub.intake.sources.packed_bytes import is_packed
from hubbub.intake.study import Study

MAX_REMEMBERED_ROWS = 100_000  # whose entries are remembered, before all are forgotten: memory stays the same for ever


class ReportCheck:
    """Says which reports a study does not allow."""

    def __init__(self, study: Study) -> None:
        self._study = study
        # Outputs of the others rarely repeat: rows of bits, seeds with buckets.
        self._repeating = {name for name, mechanism in study.mechanisms.items() if not is_packed(mechanism)}
        self._forget()

    def _forget(self) -> None:
        self._encoder = Encoder(self._study)
        self._attributes = AttributeEncoder(self._encoder)
        self._good: set[tuple[str, str | None]] = set()
        self._rows = 0

    def warm_up(self) -> None:
        """Load what checking needs, so that the first report does not wait for it."""
        self._encoded_faults([self._encoder.labels[0]], {"output": [""]})
        self._forget()

    def faults(
        self, mechanisms: Sequence[str], outputs: Mapping[str, Sequence[str | None]]
    ) -> list[tuple[int, HubbubError]]:
        """Return the places of reports that are at fault, in order, and why; `outputs` are by role."""
        single = outputs.get("output") if len(outputs) == 1 else None
        if single is None or not self._repeating.issuperset(mechanisms):
            return self._encoded_faults(mechanisms, outputs)
        # Arrow takes half a millisecond for any number of rows; these were mostly met before.
        pairs = list(zip(mechanisms, single, strict=True))
        if self._good.issuperset(pairs):
            return []
        faults = self._encoded_faults(mechanisms, outputs)
        bad = {place for place, _ in faults}
        self._good.update(pair for place, pair in enumerate(pairs) if place not in bad)
        return faults

    def _encoded_faults(
        self, mechanisms: Sequence[str], outputs: Mapping[str, Sequence[str | None]]
    ) -> list[tuple[int, HubbubError]]:
        import pyarrow as pa

        if self._rows > MAX_REMEMBERED_ROWS:
            self._forget()
        self._rows += len(mechanisms)
        columns = {role: pa.chunked_array([pa.array(column, pa.string())]) for role, column in outputs.items()}
        names = pa.chunked_array([pa.array(mechanisms, pa.string())])
        if list(columns) == ["output"]:
            encoded = self._encoder.encode(columns["output"], names)
        else:
            encoded = self._attributes.encode(columns, names)
        return sorted(((place, _told(fault)) for place, fault in self._refused(encoded)), key=itemgetter(0))

    def _refused(self, encoded: EncodedRows) -> list[tuple[int, Fault]]:
        refused = list(encoded.refused)
        if (encoded.counts[encoded.items < 0] > 0).any():
            items = encoded.by_row()
            bad = np.flatnonzero(items < 0)
            refused += [(int(row), self._encoder.faults[-1 - int(items[row])]) for row in bad]
        return refused


def _told(fault: Fault) -> HubbubError:
    """Return a fault's message with the member of the report that it is about."""
    parts = [part for part in (fault.column, fault.error.where) if part]
    return restated(fault.error, IntakeError, where=", ".join(parts))
