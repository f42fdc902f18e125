"""Outputs of a client, tested against a mechanism's law and its claim."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.auditing.distinguishing_events import event_families
from hubbub.auditing.empirical_bounds import (
    EmpiricalBound,
    EventCounts,
    audited_positions,
    bound_from_draws,
    choose_event,
    in_halves,
)
from hubbub.auditing.law_tests import law_tests
from hubbub.auditing.pooled_events import PooledEvent, pooled_event
from hubbub.auditing.sample_result import SampleAudit
from hubbub.core.arrays import Array, Codes, Positions, as_array
from hubbub.core.errors import OutputError, ReportsError
from hubbub.core.progress import Progress
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.attribute_outputs import AttributeOutputs
from hubbub.mechanisms.output_spaces import OutputSpace

MIN_SAMPLES = 100  # fewer show nothing
MIN_COMPARED_OUTPUTS = 20  # of a value that the bound may compare with others
MAX_COMPARED_VALUES = 8
SPLIT_SEED = 27  # of the halves that choose and count: the same outputs give the same answer


class Samples(NamedTuple):
    """Values and the outputs that a client drew for them, encoded; those that cannot be are left out and counted."""

    positions: Positions
    codes: Codes
    impossible: int = 0
    first_impossible: str = ""


def audit_encoded(mechanism: Mechanism, samples: Samples, level: float) -> Generator[Progress, None, SampleAudit]:
    """Test the law, bound epsilon, and compare with the claim."""
    yield Progress(0, 2, "testing outputs against the law")
    positions, codes = samples.positions, samples.codes
    tests = law_tests(mechanism, positions, codes)
    yield Progress(1, 2, "bounding epsilon")
    return SampleAudit(
        name=type(mechanism).__name__,
        claim=mechanism.spent(1),
        metric=mechanism.metric,
        unit=mechanism.domain.unit if mechanism.metric else None,
        outputs=len(codes) + samples.impossible,
        values=np.unique(positions).size,
        level=level,
        impossible=samples.impossible,
        first_impossible=samples.first_impossible,
        tests=tuple(tests),
        bound=_bound(mechanism, positions, codes, (1 + level) / 2),
        domain=mechanism.domain,
    )


def _bound(mechanism: Mechanism, positions: Positions, codes: Codes, level: float) -> EmpiricalBound | None:
    """Bound epsilon from below: a random half of the outputs chooses an event, the other half counts it.

    The event is about two values, or about all of them at once.
    """
    chooses = _random_half(positions)
    pooled = pooled_event(mechanism, positions)
    rate = 0.0 if pooled is None else pooled.counts(positions[chooses], codes[chooses]).bound(level)
    values = _compared_values(mechanism, positions)
    if values.size > 1:
        domain, metric, claim = mechanism.domain, mechanism.metric, mechanism.spent(1)
        outputs = as_array(mechanism.output_space.decode(codes))
        halves = [[outputs[half & (positions == value)] for value in values.tolist()] for half in (chooses, ~chooses)]
        drawn = in_halves(values, *halves)
        families = event_families(mechanism, domain, values, drawn.choosing)
        if pooled is None or choose_event(drawn, families, domain, metric=metric, level=level).rate > rate:
            return bound_from_draws(drawn, families, domain, claim, metric=metric, level=level, refutation_level=level)
    counts = None if pooled is None else pooled.counts(positions[~chooses], codes[~chooses])
    if pooled is None or counts is None or counts.counted == 0:
        return None
    return _pooled_bound(mechanism, pooled, counts, level)


def _random_half(positions: Positions) -> NDArray[np.bool_]:
    """Return half of the outputs of each value, at random."""
    order = np.random.default_rng(SPLIT_SEED).permutation(positions.size)
    order = order[np.argsort(positions[order], kind="stable")]
    chooses = np.zeros(positions.size, dtype=bool)
    chooses[order[::2]] = True
    return chooses


def _pooled_bound(mechanism: Mechanism, pooled: PooledEvent, counts: EventCounts, level: float) -> EmpiricalBound:
    low = counts.bound(level)
    return EmpiricalBound(
        low=low,
        level=level,
        draws=2 * counts.counted,
        counted=counts.counted,
        counted_other=counts.counted_other,
        values=(),
        value=None,
        other=None,
        distance=pooled.distance if mechanism.metric else None,
        event=pooled.text,
        happened=counts.happened,
        happened_other=counts.happened_other,
        refuted=low > mechanism.spent(1),
        repeated=False,
    )


def _compared_values(mechanism: Mechanism, positions: Positions) -> Positions:
    """Return the values that are compared: the ends, the middle and neighbours of these, then the most frequent."""
    outputs = np.bincount(positions, minlength=len(mechanism.domain))
    enough = np.flatnonzero(outputs >= max(MIN_COMPARED_OUTPUTS, outputs.max(initial=0) // 8))
    preferred = np.isin(enough, audited_positions(mechanism.domain))
    order = np.lexsort((enough, -outputs[enough], ~preferred))
    return np.sort(enough[order[:MAX_COMPARED_VALUES]])


def encode_samples(mechanism: Mechanism, inputs: object, outputs: object) -> Samples:
    """Return the positions of inputs and the codes of outputs; those that cannot be encoded are counted."""
    where = "audit_samples(inputs, outputs)"
    positions = np.atleast_1d(mechanism.domain.index(inputs))
    codes, readable, first = _encoded(mechanism.output_space, outputs)
    if readable.size != positions.size:
        raise ReportsError(
            "there must be one output for each input",
            where=where,
            got=f"{positions.size:,} inputs, {readable.size:,} outputs",
            expected="as many of one as of the other",
            remedy="pass the value that each output was drawn for, in the same order",
        )
    check_enough(positions.size, where)
    return Samples(positions[readable], codes, int((~readable).sum()), first)


def check_enough(outputs: int, where: str) -> None:
    """Refuse so few outputs that nothing could be found in them."""
    if outputs < MIN_SAMPLES:
        raise ReportsError(
            "there are too few outputs to audit",
            where=where,
            got=f"{outputs:,} outputs",
            expected=f"at least {MIN_SAMPLES}; some thousands for each value find faults of a few percent",
            remedy="let the client draw more outputs",
        )


def _encoded(space: OutputSpace, outputs: object) -> tuple[Codes, Array, str]:
    """Return the codes of the outputs that can be encoded, which these are, and what is wrong with the first other."""
    if isinstance(space, AttributeOutputs):  # which says itself which entry of which attribute is at fault
        codes = space.encode(_parsed(space, outputs))
        return codes, np.ones(len(codes), dtype=bool), ""
    entries = as_array(outputs)
    try:
        codes = space.encode(_parsed(space, entries))
        return codes, np.ones(len(codes), dtype=bool), ""
    except OutputError as error:
        problem = error
    readable, kept, first = np.zeros(len(entries), dtype=bool), [], ""
    for place, entry in enumerate(entries if entries.ndim > 1 or entries.dtype.names else entries.tolist()):
        try:
            own = entry[None] if isinstance(entry, np.ndarray) else _parsed(space, [entry])
            kept.append(space.encode(own if not isinstance(entry, np.void) else np.array([entry])))
            readable[place] = True
        except OutputError as error:
            first = first or f"position {place:,}: {error.what}, got {error.got}, expected {error.expected}"
    if not kept:
        raise problem  # of none can be read, the call is at fault more likely than the client
    return np.concatenate(kept), readable, first


def _parsed(space: OutputSpace, outputs: object) -> object:
    """Return outputs with texts read as files hold them; anything else as it is."""
    entries = outputs.tolist() if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "UO" else outputs
    if not isinstance(entries, list) or not any(isinstance(entry, str) for entry in entries):
        return outputs
    read = [space.read(entry) if isinstance(entry, str) else entry for entry in entries]
    rows = [entry for entry in read if isinstance(entry, np.ndarray)]
    return np.stack(rows) if len(rows) == len(read) else read
