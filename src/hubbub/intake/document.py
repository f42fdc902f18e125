"""An estimate as one JSON document, together with the study and the reports behind it."""

from __future__ import annotations

import math
from typing import Any

from hubbub.estimation import Estimate
from hubbub.estimation.estimate import finite
from hubbub.intake.study import Study
from hubbub.reports import Reports


def estimate_document(study: Study, reports: Reports, found: Estimate) -> dict[str, Any]:
    """Return the document that ``hubbub estimate --json`` prints.

    What is not computed (whether the maximum is unique, intervals) is null, never left out.
    """
    own = found.document()
    return {
        "version": own["version"],
        "fingerprint": study.fingerprint,
        "method": own["method"],
        "status": own["status"],
        "converged": own["converged"],
        "unique": None,
        "users": own["users"],
        "rejected": 0,  # reading stops at the first row that is not a report
        "log_likelihood": own["log_likelihood"],
        "gap": own["gap"],
        "iterations": own["iterations"],
        "settings": own["settings"],
        "epsilon_per_user": epsilon_document(reports),
        "interval": None,
        "estimate": [{**entry, "low": None, "high": None} for entry in own["estimate"]],
    }


def epsilon_document(reports: Reports) -> dict[str, Any]:
    """Return the largest epsilon that a user spent; plain and per unit of distance are never added together."""
    plain, metric = reports.epsilon_per_user()
    domain = reports.domain
    unbounded = math.inf in (plain, metric)
    return {
        "ldp": finite(plain),
        "per_unit": finite(metric),
        "unit": domain.unit,
        "plain_equivalent": finite(metric * domain.diameter),
        "note": "some outputs tell values apart with certainty: no epsilon bounds them" if unbounded else None,
    }
