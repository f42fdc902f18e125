"""All medians and verdicts as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging import Finding
from hubbub.paper.results import ROW_COLUMNS, Results
from hubbub.paper.settings import Setting
from hubbub.paper.work_units import HUBBUB_VERSION

FORMAT_VERSION = 1
Spread = dict[str, float]  # "median", "5%", "95%", "least", "most" and "runs"
HOW_SEEDS_ARE_MADE = (
    "numpy.random.default_rng([seed, crc32(purpose), run]); the purpose is "
    "'inputs, TRUTH, USERS' or 'outputs, SETTING' with the names used in this file, and for one person's reports "
    "'guesses, MECHANISM EPSILON' with the number of reports as the run"
)


def summary(figures: Sequence[Figure], findings: Sequence[Finding], results: Results) -> bytes:
    """Return the document: no dates, no times, so that the same seed and data give the same bytes."""
    place = results.place
    document = {
        "version": FORMAT_VERSION,
        "hubbub": HUBBUB_VERSION,
        "numpy": np.__version__,
        "seed": results.seed,
        "seeds": HOW_SEEDS_ARE_MADE,
        "quick": results.quick,
        "data": {
            "name": place.name,
            "source": place.source,
            "synthetic": place.synthetic,
            "sha256": place.sha256,
            "fingerprint": place.fingerprint,
            "people": place.users,
            "cells": len(place.grid),
            "empty_cells": place.holes,
        },
        "claims": [finding.document() for finding in findings],
        "figures": [_figure(figure, results) for figure in figures],
    }
    return (json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _figure(figure: Figure, results: Results) -> dict[str, Any]:
    document: dict[str, Any] = {name: getattr(figure, name) for name in ("name", "title", "where", "shows")}
    if figure.settings:
        document |= {"runs": figure.runs, "runs_of_mle_and_auto": figure.beyond_runs}
        document["settings"] = [_setting(figure, setting, results) for setting in figure.settings]
    return document


def _setting(figure: Figure, setting: Setting, results: Results) -> dict[str, Any]:
    described = {"name": setting.name, "truth": setting.truth.name, "users": setting.users or results.place.users}
    methods = spreads(figure, setting, results)
    return {**described, "mechanism": setting.mechanism, "epsilon": setting.epsilon, "methods": methods}


def spreads(figure: Figure, setting: Setting, results: Results) -> dict[str, dict[str, Spread | None]]:
    """Return the spread of each column by method; on EM's paths, also that of where each rule stops."""
    methods = {
        method: {name: _spread(results.column(figure, setting, method, name)) for name in ROW_COLUMNS[2:]}
        for method in results.methods(figure, setting)
    }
    if figure.kind == "paths":
        for method, stop in results.path(figure, setting)["stops"].items():
            methods[method] = {name: _spread(np.array(stop[name], dtype=np.float64)) for name in ("tv", "iterations")}
    return methods


def _spread(values: Floats) -> Spread | None:
    """Return the median and the spread over runs; None where nothing was measured."""
    known = values[np.isfinite(values)]
    if known.size == 0:
        return None
    least, low, middle, high, most = np.quantile(known, [0.0, 0.05, 0.5, 0.95, 1.0]).tolist()
    return {"median": middle, "5%": low, "95%": high, "least": least, "most": most, "runs": known.size}
