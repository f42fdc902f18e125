"""Measure one part: draw inputs and outputs, estimate, compare with the truth. Every number is decided by the seed."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import HubbubError, restated
from hubbub.domains import Domain
from hubbub.estimators import estimate
from hubbub.estimators.em import MAX_UPDATES
from hubbub.likelihood import MIN_PLAIN_PROBABILITY, Likelihood
from hubbub.mechanisms import Mechanism
from hubbub.metrics import earth_mover_distance, total_variation
from hubbub.paper.guess_simulation import simulate_guesses
from hubbub.paper.places import Place
from hubbub.paper.results import Row
from hubbub.paper.settings import Setting, generator
from hubbub.paper.work_units import WorkUnit
from hubbub.reports import Reports
from hubbub.solvers import invert
from hubbub.solvers.em_batch import EmBatch, em_batch
from hubbub.solvers.repairs import normalised, projected

Document = dict[str, Any]

INVERSIONS = {"inv-n": normalised, "inv-p": projected}


def measure(part: WorkUnit, place: Place, seed: int) -> Document:
    """Return what a part measures, as plain lists and numbers."""
    try:
        return TASKS[part.task](part, place, seed)
    except HubbubError as error:
        raise restated(error, type(error), where=f"{part.name}; {error.where}") from None


# -- one run -----------------------------------------------------------------------------------------------


def inputs_of(setting: Setting, place: Place, seed: int, run: int) -> Positions:
    """Return the true value of every user, by position: the same in all settings that share a truth."""
    purpose = f"inputs, {setting.truth.name}, {setting.users}"
    return setting.truth.inputs(place, setting.users, generator(seed, purpose, run))


def outputs_of(setting: Setting, mechanism: Mechanism, inputs: Positions, seed: int, run: int) -> Positions:
    """Return how many users of a plain setting sent each of the mechanism's outputs."""
    rng = generator(seed, f"outputs, {setting.name}", run)
    codes = mechanism.output_space.encode(mechanism.privatize(mechanism.domain.labels[inputs], rng=rng))
    listed: Any = mechanism.outputs  # every mechanism of the paper can list them
    if codes.ndim == 1:
        return np.bincount(codes, minlength=len(listed))
    encoded = mechanism.output_space.encode(listed)  # packed bits: compared by their bytes
    kinds = np.ascontiguousarray(encoded).view(f"V{encoded.shape[1]}").ravel()
    sent, counts = np.unique(np.ascontiguousarray(codes).view(f"V{codes.shape[1]}").ravel(), return_counts=True)
    order = np.argsort(kinds)
    counts_by_output = np.zeros(len(kinds), dtype=np.int64)
    counts_by_output[order[np.searchsorted(kinds, sent, sorter=order)]] = counts
    return counts_by_output


def reports_of(setting: Setting, place: Place, inputs: Positions, seed: int, run: int) -> Reports:
    """Return the reports of one run, with any mix of groups and mechanisms."""
    groups = setting.built(place)
    if setting.plain:
        return Reports.from_counts(groups[0][0], outputs_of(setting, groups[0][0], inputs, seed, run))
    rng = generator(seed, f"outputs, {setting.name}", run)
    shuffled = rng.permutation(inputs)  # who belongs to which group has nothing to do with the value
    ends = np.cumsum([round(group.share * len(inputs)) for group in setting.groups])
    group_reports = []
    for mechanisms, members in zip(groups, np.split(shuffled, ends[:-1]), strict=True):
        sent = [mechanism.privatize(mechanism.domain.labels[members], rng=rng).tolist() for mechanism in mechanisms]
        users = ([*zip(mechanisms, outputs, strict=True)] for outputs in zip(*sent, strict=True))
        group_reports.append(Reports.from_users(users))
    return reduce(operator.add, group_reports)


def truth_of(inputs: Positions, domain: Domain) -> Floats:
    """Return the frequencies of the drawn inputs: what the paper calls the true distribution."""
    shares: Floats = np.bincount(inputs, minlength=len(domain)) / len(inputs)
    return shares


# -- tasks -------------------------------------------------------------------------------------------------


def _runs(part: WorkUnit, place: Place, seed: int) -> Document:
    """Measure a block of runs: the paper's methods, with EM on all of them at once, or the costly methods."""
    setting = _setting(part)
    domain = setting.truth.domain(place)
    methods = setting.methods if part.task == "runs" else setting.beyond
    numbers = range(part.first, part.first + part.count)
    if setting.truth.kind == "place":  # everybody, in every run: once in memory
        drawn = [inputs_of(setting, place, seed, part.first)] * part.count
    else:
        drawn = [inputs_of(setting, place, seed, run) for run in numbers]
    truths = [truth_of(inputs, domain) for inputs in drawn]
    if setting.plain and part.task == "runs":
        answers = _together(setting, place, drawn, seed, part.first)
    else:
        answers = []
        for run, inputs in zip(numbers, drawn, strict=True):
            reports = reports_of(setting, place, inputs, seed, run)
            answers.append({method: _by_estimate(reports, method) for method in methods})
    rows = [
        _row(run, method, answer[method], truth, domain, setting)
        for run, truth, answer in zip(numbers, truths, answers, strict=True)
        for method in methods
    ]
    shapes = {}
    if part.first == 0:
        shapes = {"truth": truths[0].tolist()} | {name: answer.theta.tolist() for name, answer in answers[0].items()}
    return {"rows": rows, "shapes": shapes}


def em_iterates(channel: Channel, weights: Floats, stops: Sequence[int]) -> Iterator[Floats]:
    """Yield the iterates of EM (runs by values) after each of the increasing numbers of updates, all of them made."""
    shares = weights / weights.sum(axis=1, keepdims=True)
    theta, updates = np.full((len(weights), channel.values), 1.0 / channel.values), 0
    for stop in stops:
        while updates < stop:
            ratio = shares / np.maximum(channel.forward(theta), MIN_PLAIN_PROBABILITY)
            theta = theta * channel.backward(ratio)
            theta /= theta.sum(axis=1, keepdims=True)
            updates += 1
        yield theta


def _path(part: WorkUnit, place: Place, seed: int) -> Document:
    """Follow EM through its updates, and say where each delta would have stopped it."""
    setting = _setting(part)
    (mechanism,) = setting.built(place)[0]
    drawn = [inputs_of(setting, place, seed, run) for run in range(part.count)]
    truths = np.stack([truth_of(inputs, mechanism.domain) for inputs in drawn])
    counts = [outputs_of(setting, mechanism, inputs, seed, run) for run, inputs in enumerate(drawn)]
    weights = np.stack(counts).astype(np.float64)
    channel = mechanism.channel(mechanism.outputs)
    updates = json.loads(part.options)["updates"]
    stops = np.unique(np.geomspace(1, updates, 120).round().astype(np.int64)).tolist()
    errors = [_errors(thetas, truths) for thetas in em_iterates(channel, weights, stops)]
    rules = {}
    for method in setting.methods:
        batch = _em(channel, weights, method)
        rules[method] = {"iterations": batch.iterations.tolist(), "tv": _errors(batch.thetas, truths).tolist()}
    return {"updates": stops, "tv": np.stack(errors, axis=1).tolist(), "stops": rules}


def _errors(thetas: Floats, truths: Floats) -> Floats:
    """Return the total variation of each row from its truth."""
    errors: Floats = np.abs(thetas - truths).sum(axis=1) / 2
    return errors


def _guesses(part: WorkUnit, place: Place, seed: int) -> Document:  # noqa: ARG001  # all tasks are called alike
    return simulate_guesses(json.loads(part.options), seed)


TASKS: Mapping[str, Callable[[WorkUnit, Place, int], Document]] = {
    "runs": _runs,
    "beyond": _runs,
    "path": _path,
    "guesses": _guesses,
}


# -- answers -----------------------------------------------------------------------------------------------


class _Answer(NamedTuple):
    """A method's distribution, and how it was reached."""

    theta: Floats
    users: int
    iterations: int | None = None
    gap: float | None = None


def _together(
    setting: Setting, place: Place, drawn: list[Positions], seed: int, first: int
) -> list[dict[str, _Answer]]:
    """Return the answers of all methods on runs of one mechanism: EM on all runs in one product after the other."""
    (mechanism,) = setting.built(place)[0]
    channel = mechanism.channel(mechanism.outputs)
    counts = [outputs_of(setting, mechanism, inputs, seed, run) for run, inputs in enumerate(drawn, first)]
    weights = np.stack(counts).astype(np.float64)
    users = [int(own.sum()) for own in counts]
    answers: list[dict[str, _Answer]] = [{} for _ in drawn]
    for method in setting.methods:
        if method.startswith("em "):
            batch = _em(channel, weights, method)
            for run, answer in enumerate(answers):
                gap = Likelihood(channel, weights[run], users[run]).at(batch.thetas[run]).gap
                answer[method] = _Answer(batch.thetas[run], users[run], int(batch.iterations[run]), float(gap))
    inverting = [method for method in setting.methods if method in INVERSIONS]
    for answer, own, total in zip(answers, counts, users, strict=True):
        if "noisy" in setting.methods:
            answer["noisy"] = _Answer(own / total, total)
        if inverting:
            solution = invert(Reports.from_counts(mechanism, own))  # once for both
            answer |= {method: _Answer(INVERSIONS[method](solution), total) for method in inverting}
    return answers


def _by_estimate(reports: Reports, method: str) -> _Answer:
    answer = estimate(reports, "ibu", delta=_delta(method)) if method.startswith("em ") else estimate(reports, method)
    return _Answer(answer.probabilities, reports.users, answer.iterations, answer.gap)


def _em(channel: Channel, weights: Floats, method: str) -> EmBatch:
    """Return EM's answers on several runs, each from the uniform distribution to where its delta stops it."""
    uniform = np.full(channel.values, 1.0 / channel.values)
    return em_batch(channel, weights, uniform, delta=_delta(method), max_iter=MAX_UPDATES)


def _row(run: int, method: str, answer: _Answer, truth: Floats, domain: Domain, setting: Setting) -> Row:
    return {
        "run": run,
        "method": method,
        "tv": total_variation(answer.theta, truth),
        "emd": earth_mover_distance(answer.theta, truth, domain) if "emd" in setting.distances else None,
        "iterations": answer.iterations,
        "gap": answer.gap if answer.gap is not None and np.isfinite(answer.gap) else None,
        "zero_values": int((answer.theta == 0.0).sum()),
        "empty_values": int((answer.theta < 0.5 / answer.users).sum()),  # less than half a user
    }


def _delta(method: str) -> float:
    return float(method.removeprefix("em "))


def _setting(part: WorkUnit) -> Setting:
    assert part.setting is not None  # noqa: S101  # these tasks have one
    return part.setting
