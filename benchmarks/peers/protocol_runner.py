"""What the runners of protocols share: time clients and aggregators, estimate, and draw reports of two values.

The folder has `values.npy` (a position for each user) and `task.json`. It receives `answer.json`, and `draws.npz` with
reports of the values 0 and 1: as this project's own outputs where they can be written so (`value`, `bits`), otherwise
as a whole number that says what a report tells of the two (`key`).
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

WARMING, TRIED = 200, 2_000  # users by whom everything is compiled, and by whom the time is guessed


@dataclass(frozen=True)
class Task:
    """What is asked of every protocol."""

    size: int  # number of values
    epsilon: float
    first: float  # of one report, of protocols with memory
    runs: int
    limit: float  # seconds of one run, beyond which there are fewer users
    draws: int  # of each of two values
    protocols: list[str]


@dataclass(frozen=True)
class Protocol:
    """A client and its aggregator, ready for one study."""

    client: Callable[[int], Any]
    shares: Callable[[list[Any]], Sequence[float]]
    form: str = "key"
    told: Callable[[Any], Any] = lambda report: report


Build = Callable[[Task], Protocol]


def main(protocols: Mapping[str, Build], seed: Callable[[int], None]) -> None:
    """Run all protocols that are asked for; one that fails says why."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    task = Task(**json.loads((folder / "task.json").read_text()))
    values = np.load(folder / "values.npy").tolist()
    answers, draws = {}, {}
    for name in task.protocols:
        print(f"{name} ...", file=sys.stderr, flush=True)
        seed(len(answers))
        try:
            answers[name] = measured(protocols[name], task, values)
            form, told = drawn(protocols[name](task), task.draws)
            answers[name]["form"], draws[name] = form, told
        except Exception as error:  # what a tool cannot do is an answer
            traceback.print_exc()
            answers[name] = {"failed": f"{type(error).__name__}: {error}"}
    (folder / "answer.json").write_text(json.dumps(answers))
    np.savez(folder / "draws.npz", **draws)


def measured(build: Build, task: Task, values: list[int]) -> dict[str, Any]:
    """Return seconds for each user, and the estimates of all runs."""
    study(build(task), values[:WARMING])
    client, aggregate, _ = study(build(task), values[:TRIED])
    users = min(len(values), max(TRIED, int(task.limit / (client + aggregate))))
    clients, aggregators, estimates = [], [], []
    for _ in range(task.runs):
        client, aggregate, shares = study(build(task), values[:users])
        clients.append(client)
        aggregators.append(aggregate)
        estimates.append([float(share) for share in shares])
    return {
        "users": users,
        "client": float(np.median(clients)),
        "aggregate": float(np.median(aggregators)),
        "estimates": estimates,
    }


def study(protocol: Protocol, values: list[int]) -> tuple[float, float, Sequence[float]]:
    """Return the seconds of the clients and of the aggregator, for each user, and the estimate."""
    start = time.perf_counter()
    reports = [protocol.client(value) for value in values]
    sent = time.perf_counter()
    shares = protocol.shares(reports)
    done = time.perf_counter()
    return (sent - start) / len(values), (done - sent) / len(values), shares


def drawn(protocol: Protocol, draws: int) -> tuple[str, Any]:
    """Return reports of the values 0 and 1, in turn."""
    told = [protocol.told(protocol.client(number % 2)) for number in range(2 * draws)]
    return protocol.form, np.asarray(told, dtype=np.uint8 if protocol.form == "bits" else np.int64)
