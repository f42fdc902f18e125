"""Accuracy: the errors of all methods, against the best iterate on the path of EM.

Run: python benchmarks/accuracy.py [--counts FILE] [--seeds 5] [--half report] [--only TEXT] [--jobs 2] [--fresh]

Every case (benchmarks/cases.py) is drawn with several seeds, and six times as many where users are 500 or fewer: their
accidents are larger, and they cost little. What was measured is kept in results/accuracy.jsonl, and
the next run goes on where the last one ended; where the code of the estimates has changed since, `auto` and `ems` are
measured again, and where that of the rivals has changed (benchmarks/rivals.py), these are. `--seeds 0` measures nothing
and prints what there is. The oracle is the iterate of EM, from the uniform start, that is closest to the truth: the
best that a rule for stopping could do, if it knew the truth. The start itself does not count.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from accuracy_summary import (
    KEPT,
    MORE_DRAWS,
    Key,
    Row,
    append,
    fingerprint,
    key_of,
    plain_seeds,
    read,
    rewrite,
    rivals_fingerprint,
    summary,
)
from cases import HALVES, Case, cases, drawn
from em_path import DELTAS, earth_mover_distances, em_path, total_variations
from hubbub.reports import Singles
from measure import side_by_side
from rivals import RIVALS

Floats = NDArray[np.float64]
Errors = dict[str, float | None]

SEEDS = 5


@dataclass(frozen=True)
class Task:
    """One case to be drawn with one seed, and what an older run found there."""

    case: Case
    seed: int
    counts: Path | None
    fingerprint: str
    rivals: str
    old: Row | None


def digits(number: float) -> float:
    """Return six significant digits."""
    return float(f"{number:.6g}")


def noisy_shares(reports: hb.Reports) -> Floats | None:
    """Return the shares of the outputs, where these are values and each user sent one."""
    shares = np.zeros(len(reports.domain))
    for block in reports.blocks:
        if not isinstance(block, Singles) or not block.mechanism.answers_in_domain:
            return None
        places = reports.domain.find(block.mechanism.output_space.decode(block.codes))
        np.add.at(shares, places[places >= 0], block.weights[places >= 0])
    shares /= shares.sum()
    return shares


def inverted(reports: hb.Reports, method: str) -> Floats | None:
    """Return what inversion finds, where there is an inverse."""
    try:
        return hb.estimate(reports, method).probabilities
    except hb.HubbubError:
        return None


def smoothed(reports: hb.Reports) -> Floats | None:
    """Return what EM with smoothing finds, where values have neighbours."""
    try:
        return hb.estimate(reports, "ems").probabilities
    except hb.HubbubError:
        if isinstance(reports.domain, hb.Categories):
            return None
        raise


def errors_of(found: dict[str, Floats | None], truth: Floats, domain: hb.Domain) -> tuple[Errors, Errors]:
    """Return the total variations and the earth mover's distances to the truth."""
    variations: Errors = {}
    distances: Errors = {}
    apart = not isinstance(domain, hb.Categories)
    for name, shares in found.items():
        variations[name] = None if shares is None else digits(hb.total_variation(shares, truth))
        known = shares is not None and apart
        distances[name] = digits(hb.earth_mover_distance(shares, truth, domain)) if known else None
    return variations, distances


def on_the_path(reports: hb.Reports, truth: Floats) -> Row:
    """Return the errors of EM stopped by the paper's rule, and the least on the way."""
    path = em_path(reports)
    stops = {f"em {delta:g}": path.stop(delta) for delta in DELTAS}
    along = dict(enumerate(total_variations(path, truth).tolist()))
    del along[0]  # the start is not an answer
    return {
        "tv": at_stops(stops, along),
        "emd": at_stops(stops, earth_mover_distances(path, truth, reports.domain)),
        "steps": {**stops, "oracle": min(along, key=lambda step: along[step]), "path": path.steps},
    }


def at_stops(stops: dict[str, int], errors: dict[int, float] | None) -> Errors:
    """Return the errors of some iterates, and the least of all."""
    if errors is None:
        return dict.fromkeys([*stops, "oracle"])
    least = min(error for step, error in errors.items() if step > 0)
    return {**{name: digits(errors[step]) for name, step in stops.items()}, "oracle": digits(least)}


def lasting(reports: hb.Reports, truth: Floats) -> Row:
    """Return what does not depend on the code of the estimates that choose for themselves."""
    path = on_the_path(reports, truth)
    found = {
        "noisy": noisy_shares(reports),
        "inv-n": inverted(reports, "inv-n"),
        "inv-p": inverted(reports, "inv-p"),
        "mle": hb.estimate(reports, "mle").probabilities,
    }
    variations, distances = errors_of(found, truth, reports.domain)
    return {"tv": path["tv"] | variations, "emd": path["emd"] | distances, "steps": path["steps"]}


def content(reports: hb.Reports, truth: Floats) -> str:
    """Return a short name of what was drawn, by which an old row is known to speak of the same reports."""
    return hashlib.sha256(truth.round(12).tobytes() + reports.weights.tobytes()).hexdigest()[:8]


def rivals(reports: hb.Reports, truth: Floats) -> Row:
    """Return the errors of other people's methods."""
    shares = {name: rival(reports) for name, rival in RIVALS.items()}
    variations, distances = errors_of(shares, truth, reports.domain)
    return {"tv": variations, "emd": distances}


def choosing(reports: hb.Reports, truth: Floats) -> Row:
    """Return the errors of the estimates that choose for themselves, and what `auto` took and said."""
    start = time.perf_counter()
    auto = hb.estimate(reports, "auto")
    spent = time.perf_counter() - start
    shares = {"ems": smoothed(reports), "auto": auto.probabilities}
    variations, distances = errors_of(shares, truth, reports.domain)
    return {"tv": variations, "emd": distances, "seconds": float(f"{spent:.3g}"), "status": auto.status}


def measured(task: Task) -> Row:
    """Return the row of one case and seed: what an older one still says of these reports, and what has changed."""
    _, truth, reports = drawn(task.case, task.seed, task.counts)
    drawing = content(reports, truth)
    old = task.old if task.old is not None and task.old["drawing"] == drawing else None
    parts = [lasting(reports, truth) if old is None else old]
    if old is None or old.get("rivals") != task.rivals:
        parts.append(rivals(reports, truth))
    if old is None or old["fingerprint"] != task.fingerprint:
        parts.append(choosing(reports, truth))
    row: Row = {"tv": {}, "emd": {}}
    for part in parts:
        row = {**row, **part, "tv": row["tv"] | part["tv"], "emd": row["emd"] | part["emd"]}
    named = {"case": task.case.name, "seed": task.seed, "fingerprint": task.fingerprint, "rivals": task.rivals}
    return {**named, "drawing": drawing, **{name: row[name] for name in ("tv", "emd", "steps", "seconds", "status")}}


def tasks(asked: argparse.Namespace, rows: dict[Key, Row]) -> Iterator[Task]:
    """Give what has not been measured, or not with the code as it is now."""
    current, current_rivals = fingerprint(), rivals_fingerprint()
    for case in cases(with_data=asked.counts is not None):
        if asked.half not in (case.half, "both") or asked.only not in case.name:
            continue
        for seed in range(asked.seeds * (MORE_DRAWS if case.small_sample else 1)):
            old = rows.get((case.name, seed))
            if asked.fresh:
                yield Task(case, seed, asked.counts, current, current_rivals, None)
            elif old is None or (old["fingerprint"], old.get("rivals")) != (current, current_rivals):
                yield Task(case, seed, asked.counts, current, current_rivals, old)


def arguments() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=Path, help="the paper's counts of San Francisco: columns x, y, count")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how often each case is drawn; 0 only prints")
    parser.add_argument("--half", choices=[*HALVES, "both"], default="both")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--fresh", action="store_true", help="measure anew what was measured before")
    return parser.parse_args()


def main() -> None:
    """Measure what is missing, then print and keep what the file says."""
    asked = arguments()
    rows = read()
    waiting = list(tasks(asked, rows))
    if waiting:
        for row in side_by_side(measured, waiting, asked.jobs, "cases and seeds"):
            append(row)
            rows[key_of(row)] = row
        rewrite(rows)
    if not rows:
        print(f"nothing has been measured yet: {KEPT.name} is empty")
        return
    counts = ["--counts", "FILE"] if any(name.startswith("San Francisco") for name, _ in rows) else []
    sys.argv[1:] = [*counts, "--seeds", str(plain_seeds(rows))]  # what is kept is about the whole file
    summary(rows)


if __name__ == "__main__":
    main()
