"""The same protocols here, in multi-freq-ldpy and in pure-LDP: time, error and epsilon, on the same people.

The other tools are installed in an environment of their own each, with the versions below, made once under `--folder`.
Each tool runs in a process of its own with one thread. Times are of a user's report and its share of the estimate:
there the client's and the aggregator's own functions, here reports by the exact law with the operating system's
randomness, read and inverted. A protocol that would take longer than `--limit` seconds there has fewer users, for the
errors on both sides; its time is for each user, too. What hubbub lacks, or a tool cannot install, is skipped.

Run: python benchmarks/protocols.py [--folder DIR] [--users N] [--runs N] [--only WORDS]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.auditing.empirical_bounds import EventCounts
from measure import ONE_THREAD, apart, row, save_merged
from peers import Peer, find_package, last_line
from protocol_pairs import MULTI, PAIRS, PURE, Pair, errors, here

RUNNERS = Path(__file__).parent / "peers"
PINNED = {
    MULTI: ("multi-freq-ldpy==0.2.5", "numpy==2.4.6", "scipy==1.17.1", "numba==0.68.1", "xxhash==3.8.2"),
    # It does not name scikit-learn and statsmodels, which it imports; its sketches need a NumPy before 2.
    PURE: ("pure-ldp==1.2.0", "numpy==1.26.4", "scipy==1.11.4", "xxhash==3.8.2", "bitarray==3.12.3", "bitstring==5.0.0",
           "scikit-learn==1.4.2", "statsmodels==0.14.2", "pandas<2.3"),
}  # fmt: skip
RUNNER_OF = {MULTI: "run_protocols_multi_freq_ldpy.py", PURE: "run_protocols_pure_ldp.py"}
VALUES, EPSILON, FIRST = 100, 2.0, 1.0
FASTER = 20.0  # times as fast as the other tool
LEVEL = 0.99  # of measured epsilons
STARTING = 60.0
ERRORS = 3.0  # standard errors that are allowed for


def people(users: int) -> NDArray[np.int64]:
    """Return the values of people who follow Zipf's law."""
    shares = 1.0 / np.arange(1.0, VALUES + 1.0)
    return np.random.default_rng(29).choice(VALUES, users, p=shares / shares.sum())


def there(peer: Peer, pairs: Sequence[Pair], folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return what a tool does with all of its protocols: times, estimates, and reports of two values."""
    task = {
        "size": VALUES,
        "epsilon": EPSILON,
        "first": FIRST,
        "runs": options.runs,
        "limit": options.limit,
        "draws": options.draws,
        "protocols": [pair.protocol for pair in pairs],
    }
    (folder / "task.json").write_text(json.dumps(task))
    patience = STARTING + 10 * len(pairs) * (options.runs + 1) * options.limit
    done = subprocess.run(  # noqa: S603
        [*peer.command, str(RUNNERS / peer.runner), str(folder)], check=False, timeout=patience,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{peer.name} ended with {done.returncode}: {last_line(done.stdout)}")
    answers: dict[str, Any] = json.loads((folder / "answer.json").read_text())
    with np.load(folder / "draws.npz") as draws:
        for name in draws.files:
            answers[name]["draws"] = draws[name]
    return answers


def compared(pair: Pair, theirs: dict[str, Any], folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of one protocol."""
    title = f"{pair.name} = {pair.needs}"
    try:
        ours = apart(here, pair.name, str(folder), VALUES, EPSILON, FIRST, options.runs, theirs["users"])
    except hb.HubbubError as error:
        return [row(title, "what happens here", f"{error.what}: {error.got}", "an estimate", holds=False)]
    positions = np.load(folder / "values.npy")[: theirs["users"]]
    theirs |= errors(np.array(theirs["estimates"]), positions, VALUES)
    slow, quick = (each["client"] + each["aggregate"] for each in (theirs, ours))
    squares = {name: np.array(each["squares"]) for name, each in (("theirs", theirs), ("ours", ours))}
    ratio, noise = ratio_of_means(squares["ours"], squares["theirs"])
    claim = FIRST if pair.has_memory else EPSILON
    bound, verdict = measured_epsilon(pair, theirs)
    verdict += ", more than it claims" if bound > claim else ""
    proof = "nothing proven" if ours["proven"] is None else f"{ours['proven']:.6g} proven"
    users = f"{theirs['users']:,} users, {options.runs} runs"
    first = row(
        title,
        "microseconds a user, client and aggregator: there / here",
        f"{1e6 * theirs['client']:.2f} + {1e6 * theirs['aggregate']:.2f} / "
        f"{1e6 * ours['client']:.2f} + {1e6 * ours['aggregate']:.2f} = {slow / quick:.0f}",
        f">= {FASTER:g} times",
        holds=slow >= FASTER * quick,
    )
    figures = {
        "tool": pair.tool,
        "protocol": pair.protocol,
        "here": f"`{pair.needs}`",
        "faster": f"{int(slow / quick)}"
        if slow >= quick
        else f"{slow / quick:.2f}",  # never rounded up to what is asked
        "error": f"{ratio:.2f} ± {noise:.2f}",
        "there": f"at least {bound:.2f}{verdict}",
        "proven": proof.removesuffix(" proven"),
    }
    return [
        first | {"figures": figures},
        row(
            title,
            f"mean squared error by {pair.method}, here over there: {users}",
            f"{squares['ours'].mean():.3g} / {squares['theirs'].mean():.3g} = {ratio:.2f} ± {noise:.2f}",
            f"<= 1, within {ERRORS:g} standard errors",
            holds=ratio - ERRORS * noise <= 1.0,
        ),
        row(
            title,
            f"epsilon of one report, claimed {claim:g}: here / there, from {2 * options.draws:,} reports",
            f"{proof} / at least {bound:.3f}{verdict}",
            "here proven, and no more than claimed",
            holds=ours["proven"] is not None and ours["proven"] <= claim * (1 + 1e-12),
        ),
    ]


def ratio_of_means(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ratio of two means, and its standard error."""
    ratio = float(ours.mean() / theirs.mean())
    relative = [float(each.std(ddof=1) / each.mean() / math.sqrt(each.size)) for each in (ours, theirs)]
    return ratio, ratio * math.hypot(*relative)


def measured_epsilon(pair: Pair, theirs: dict[str, Any]) -> tuple[float, str]:
    """Return a lower bound on epsilon from another tool's reports, and what our law says of them.

    Where reports can be written as outputs of our mechanism, `audit_samples` compares them with its law and claim. An
    `L_GRR` keeps less than it may, so that its law is another one.
    """
    drawn, form = theirs["draws"], theirs["form"]
    if form == "key":
        return bound_of_keys(drawn[::2], drawn[1::2]), ""
    mechanism = pair.build(hb, hb.Integers(0, VALUES - 1), EPSILON, FIRST)
    result = hb.audit_samples(mechanism, np.arange(drawn.shape[0]) % 2, drawn, level=LEVEL)
    bound = 0.0 if result.bound is None else result.bound.low
    return bound, {"no fault found": "; our law", "refuted": "; not our law"}.get(result.verdict, "")


def bound_of_keys(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return a lower bound on epsilon from what reports of two values tell: half of them choose an event, half count.

    Events are those keys whose ratio is above a threshold.
    """
    best = 0.0
    for own, other in ((first, second), (second, first)):
        keys = np.union1d(own, other)
        halves = (own[::2], other[::2], own[1::2], other[1::2])
        sizes = [half.size for half in halves]
        counts = [np.bincount(np.searchsorted(keys, half), minlength=keys.size) for half in halves]
        order = np.argsort(-(counts[0] + 0.5) / (counts[1] + 0.5), kind="stable")
        chosen, chosen_other, counted, counted_other = (np.cumsum(count[order]).tolist() for count in counts)
        tried = [
            EventCounts(happened, sizes[0], happened_other, sizes[1], 1.0).bound(LEVEL)
            for happened, happened_other in zip(chosen, chosen_other, strict=True)
        ]
        place = int(np.argmax(tried))
        event = EventCounts(counted[place], sizes[2], counted_other[place], sizes[3], 1.0)
        best = max(best, event.bound((1 + LEVEL) / 2))  # two directions share the error probability
    return best


def main() -> None:
    """Run each tool, compare, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the environments of other tools are kept")
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of one run there")
    parser.add_argument("--draws", type=int, default=40_000, help="reports of each of two values")
    parser.add_argument("--only", default="", help="protocols whose name begins so, such as 'pure-LDP HR'")
    options = parser.parse_args()
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    chosen = [pair for pair in PAIRS if pair.name.startswith(options.only)]
    for pair in chosen:
        if not hasattr(hb, pair.needs):
            print(f"skipped: {pair.name}, because there is no hubbub.{pair.needs}")
    chosen = [pair for pair in chosen if hasattr(hb, pair.needs)]
    with tempfile.TemporaryDirectory() as name:
        environments = options.folder or Path(name) / "environments"
        for tool in dict.fromkeys(pair.tool for pair in chosen):
            pairs = [pair for pair in chosen if pair.tool == tool]
            peer = find_package(environments, tool.lower(), RUNNER_OF[tool], PINNED[tool])
            if peer.missing:
                print(f"skipped: {tool}, not available: {peer.missing}")
                continue
            folder = Path(name) / tool
            folder.mkdir()
            np.save(folder / "values.npy", people(options.users))
            answers = there(peer, pairs, folder, options)
            for pair in pairs:
                theirs = answers[pair.protocol]
                if "failed" in theirs:
                    print(f"skipped: {pair.name} failed there: {theirs['failed']}")
                    continue
                save_merged("protocols", compared(pair, theirs, folder, options))


if __name__ == "__main__":
    main()
