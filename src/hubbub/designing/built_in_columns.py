"""Built-in mechanisms under a policy: what designs start from, and what they are measured against."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import HubbubError
from hubbub.designing.privacy_policy import METRIC, PAIRS, PrivacyPolicy
from hubbub.domains import Domain
from hubbub.intake.study_entries import MECHANISMS
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.outputs.output_enumeration import can_list, enumerate_outputs
from hubbub.planning.every_kind import missing_arguments

MAX_LISTED_ENTRIES = 400_000  # of the probabilities of a built-in mechanism that is compared by formula


def built_in_mechanisms(policy: PrivacyPolicy) -> dict[str, Mechanism]:
    """Return the built-in mechanisms over the policy's domain with the largest epsilon that it allows, by kind.

    Where epsilon is per unit of distance, a plain mechanism gets what two values at the least distance may have; under
    a plain policy, one whose epsilon is per unit gets the plain one over the diameter.
    """
    domain = policy.domain
    built: dict[str, Mechanism] = {}
    for name, kind in MECHANISMS.items():
        if missing_arguments(kind) or kind.means_only or issubclass(kind, Longitudinal):
            continue
        epsilon = _epsilon_for(policy, domain, per_unit=kind.metric)
        try:
            built[name] = kind(domain, epsilon=epsilon)  # type: ignore[call-arg]  # every such kind takes an epsilon
        except HubbubError:
            continue  # this domain, or this epsilon, is none of that kind's
    return built


def listed_columns(mechanism: Mechanism) -> Floats | None:
    """Return the columns of a mechanism whose outputs are few enough to list, in rows; None otherwise."""
    if not can_list(mechanism, MAX_LISTED_ENTRIES):
        return None
    outputs = enumerate_outputs(mechanism, 1e12, None, MAX_LISTED_ENTRIES)
    if outputs is None:
        return None
    columns = outputs.probabilities.T
    return np.asarray(columns[columns.max(axis=1) > 0])


def in_cone(policy: PrivacyPolicy, columns: Floats) -> Floats:
    """Return the largest columns of the cone that are nowhere above the given ones; none for those that reach 0."""
    positive = columns[(columns > 0).all(axis=1)]
    logs = np.log(positive)
    lowered = np.stack([(row[None, :] + policy.bounds).min(axis=1) for row in logs]) if len(logs) else logs
    return np.asarray(np.exp(lowered))


def _epsilon_for(policy: PrivacyPolicy, domain: Domain, *, per_unit: bool) -> float:
    if policy.kind == METRIC:
        return policy.epsilon if per_unit else policy.epsilon * domain.least_distance
    if not per_unit:
        return least_bound(policy)
    if policy.kind == PAIRS:
        apart = ~np.eye(len(domain), dtype=bool)
        return float((policy.bounds[apart] / domain.distances()[apart]).min())
    return policy.epsilon / domain.diameter


def least_bound(policy: PrivacyPolicy) -> float:
    """Return the plain epsilon that a mechanism may have under a policy: that of its closest pair."""
    return float(policy.bounds[~np.eye(len(policy.domain), dtype=bool)].min())
