"""Benchmarks of mechanisms and estimators: paired runs, cells against loops by hand, runs that are kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
from hubbub.benchmarking.contenders import Setup
from hubbub.benchmarking.paired_differences import paired_difference
from hubbub.benchmarking.paired_draws import CandidateDraws, drawn_reports, held_values
from hubbub.estimators import own_estimators
from hubbub.mechanisms import mechanism_kinds
from hubbub.planning.candidates import candidates_from
from hubbub.planning.truths import truths_from
from hubbub.reports import Singles

Floats = NDArray[np.float64]
DIGITS = hb.Integers(0, 4)
KRR = hb.RandomizedResponse(DIGITS, 1.0)
OUE = hb.OptimizedUnary(DIGITS, 1.0)
HASHES = hb.LocalHashing(DIGITS, 1.0)  # drawn one by one: too many outputs to count


@dataclass(frozen=True)
class Sticky(hb.Mechanism):
    """Keeps most values as they are, and sends the others to the next one."""

    domain: hb.Domain
    epsilon: float

    @property
    def outputs(self) -> Any:
        return self.domain.labels

    def matrix(self) -> Floats:
        size = len(self.domain)
        noise = np.exp(-self.epsilon * ((np.arange(size) - np.arange(size)[:, None]) % size))
        return np.asarray(noise / noise.sum(axis=1, keepdims=True))


@pytest.fixture
def own() -> Iterator[None]:
    """A mechanism and estimators of one's own, registered for one test."""
    hb.register_mechanism("sticky", Sticky)
    hb.register_estimator("even", lambda reports: np.full(len(reports.domain), 1.0 / len(reports.domain)))

    def fails(reports: hb.Reports) -> Floats:
        raise RuntimeError("not\ntoday")

    hb.register_estimator("fails", fails)
    yield
    mechanism_kinds._registered.pop("sticky")
    for name in ("even", "fails"):
        own_estimators._FUNCTIONS.pop(name)


def setup_of(mechanism: object, truth: object = "zipf", users: int = 300) -> tuple[Setup, CandidateDraws]:
    (candidate,), (assumed,) = candidates_from([mechanism]), truths_from(truth, DIGITS)
    return Setup(candidate, assumed, users), CandidateDraws(candidate)


def errors(result: hb.Benchmark) -> dict[tuple[str, str, str, int], list[float]]:
    return {(cell.mechanism, cell.method, cell.truth, cell.users): cell.tv.tolist() for cell in result.cells}


# -- one cell ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [KRR, HASHES])
def test_a_cell_is_what_a_loop_by_hand_gives(mechanism: hb.Mechanism) -> None:
    result = hb.benchmark(mechanism, ["inv-p", "inv"], "zipf", users=300, runs=4, rng=5)
    setup, draws = setup_of(mechanism)
    truth = setup.truth.probabilities
    for run in range(4):
        reports = drawn_reports(setup, draws, run, 5)
        assert reports.users == 300
        for cell in result.cells:
            estimated = hb.estimate(reports, cell.method)
            shares = estimated.probabilities
            assert cell.tv[run] == np.abs(shares - truth).sum() / 2
            if estimated.is_distribution:
                assert cell.emd[run] == hb.earth_mover_distance(shares, truth, DIGITS)
            else:
                assert np.isnan(cell.emd[run])  # plain inversion: nothing to be moved
    frame = result.to_frame()
    assert frame["tv_mean"][0] == pytest.approx(result.cells[0].tv.mean())
    assert frame["tv_error"][0] == pytest.approx(result.cells[0].tv.std(ddof=1) / 2)
    assert (frame["seconds"] > 0).all()
    assert result.cells[0].measured("emd") == 4
    assert result.cells[1].measured("emd") < 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mechanism", [KRR, OUE, HASHES, hb.SubsetSelection(DIGITS, 1.0), Sticky(DIGITS, 0.7)])
def test_errors_are_those_of_privatized_values(mechanism: hb.Mechanism) -> None:
    """The mean error agrees with a loop that draws people and lets the mechanism privatize, at 5 standard errors."""
    users, runs = 200, 150
    truth = truths_from("zipf", DIGITS)[0].probabilities
    rng = np.random.default_rng(3)
    by_hand = []
    for _ in range(runs):
        outputs = mechanism.privatize(rng.choice(5, users, p=truth), rng=rng)
        shares = hb.estimate(hb.Reports.from_outputs(mechanism, outputs), "inv-p").probabilities
        by_hand.append(hb.total_variation(shares, truth))
    (cell,) = hb.benchmark(mechanism, "inv-p", "zipf", users=users, runs=runs).cells
    spread = np.sqrt((np.var(by_hand, ddof=1) + cell.tv.var(ddof=1)) / runs)
    assert abs(cell.tv.mean() - np.mean(by_hand)) < 5 * spread
    assert abs(cell.tv.mean() * 1.5 - np.mean(by_hand)) > 5 * spread  # half as much again would be noticed


def test_counts_of_outputs_follow_the_mechanism_given_the_values() -> None:
    """Chi-square of all outputs of many runs against values times matrix, at 0.1%; a transposed matrix is rejected."""
    mechanism = Sticky(DIGITS, 0.7)
    setup, draws = setup_of(mechanism, [0.4, 0.3, 0.15, 0.1, 0.05], users=1_000)
    sent, expected, transposed = np.zeros(5), np.zeros(5), np.zeros(5)
    for run in range(40):
        held = held_values(setup, run, 0)
        reports = drawn_reports(setup, draws, run, 0)
        (block,) = reports.blocks
        assert isinstance(block, Singles)
        sent[block.codes.ravel().astype(int)] += reports.weights
        expected += held @ mechanism.matrix()
        transposed += mechanism.matrix() @ held
    assert stats.chisquare(sent, expected).pvalue > 1e-3
    assert stats.chisquare(sent, transposed * sent.sum() / transposed.sum()).pvalue < 1e-6


# -- pairing -----------------------------------------------------------------------------------------------


def test_all_mechanisms_meet_the_same_people_and_all_methods_the_same_reports() -> None:
    first, second = setup_of(KRR)[0], setup_of(HASHES)[0]
    for run in range(3):
        assert held_values(first, run, 0).tolist() == held_values(second, run, 0).tolist()
    assert held_values(first, 0, 0).tolist() != held_values(first, 1, 0).tolist()
    assert held_values(first, 0, 0).tolist() != held_values(first, 0, 1).tolist()
    result = hb.benchmark(KRR, {"a": "inv-p", "b": ("ibu", {"delta": 0.1}), "c": "inv-p"}, "zipf", users=300, runs=3)
    cells = {cell.method: cell for cell in result.cells}
    assert cells["a"].tv.tolist() == cells["c"].tv.tolist()  # one method by two names sees the same reports
    assert cells["a"].tv.tolist() != cells["b"].tv.tolist()


def test_another_row_changes_no_other() -> None:
    alone = errors(hb.benchmark(KRR, "inv-p", "zipf", users=300, runs=3))
    more = errors(hb.benchmark([HASHES, KRR, OUE], ["ibu", "inv-p"], ["uniform", "zipf"], users=[100, 300], runs=5))
    for place, values in alone.items():
        assert more[place][:3] == values
    assert len(more) == 24
    again = hb.benchmark({"mine": KRR}, {"any": "inv-p"}, {"law": "zipf"}, users=300, runs=3)
    assert list(errors(again).values()) == list(alone.values())  # names are for people


def test_people_of_a_mixture_are_dealt_to_its_mechanisms() -> None:
    result = hb.benchmark([[(KRR, 0.25), (HASHES, 0.75)]], "inv-p", "zipf", users=400, runs=2)
    assert result.cells[0].failures == 0
    (candidate,) = candidates_from([(KRR, 0.25), (HASHES, 0.75)])
    setup = Setup(candidate, truths_from("zipf", DIGITS)[0], 400)
    reports = drawn_reports(setup, CandidateDraws(candidate), 0, 0)
    users = {type(block.mechanisms[0]).__name__: block.weights.sum() for block in reports.blocks}
    assert users == {"RandomizedResponse": 100, "LocalHashing": 300}


def test_paired_intervals_are_student_s() -> None:
    """Against SciPy's paired t-test; unpaired intervals would be several times as wide here."""
    result = hb.benchmark(KRR, {"a": ("ibu", {"delta": 0.1}), "b": ("ibu", {"delta": 0.2})}, "zipf", users=300, runs=12)
    first, second = result.cells
    found = paired_difference(first, second, "tv", 0.9)
    assert found is not None
    told = stats.ttest_rel(second.tv, first.tv).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((told.low, told.high))
    unpaired = stats.ttest_ind(second.tv, first.tv).confidence_interval(0.9)
    assert found.high - found.low < 0.5 * (unpaired.high - unpaired.low)


def test_equal_methods_are_not_told_apart_and_worse_ones_are(own: None) -> None:
    result = hb.benchmark(
        KRR, {"a": "inv-p", "b": "inv-p", "even": "even"}, [[0.9, 0.1, 0, 0, 0]], users=3_000, runs=10
    )
    (ranking,) = result.rankings()
    assert ranking.best is not None
    assert ranking.best.method == "a"
    same, worse = ranking.differences
    assert (same.other.method, same.is_clear, same.low, same.high) == ("b", False, 0.0, 0.0)
    assert (worse.other.method, worse.is_clear) == ("even", True)
    text = result.explain()
    assert "Not told apart from it: randomized-response 1 by b" in text
    assert "1 other has a larger error beyond noise" in text


# -- what is one's own, and what fails ----------------------------------------------------------------------


def test_own_mechanisms_and_estimators_beside_all_of_ours(own: None) -> None:
    result = hb.benchmark("all", ["inv-p", "even"], "zipf", users=200, runs=2, domain=DIGITS, epsilon=1.0)
    names = {cell.mechanism for cell in result.cells}
    assert {"sticky", "randomized-response", "local-hashing", "square-wave"} <= names
    truth = truths_from("zipf", DIGITS)[0].probabilities
    even = [cell for cell in result.cells if cell.method == "even"]
    assert all((cell.tv == pytest.approx(hb.total_variation(np.full(5, 0.2), truth))) for cell in even)
    mine = hb.benchmark(["all", KRR], "inv-p", "zipf", users=200, runs=2, domain=DIGITS, epsilon=2.0)
    assert [cell.epsilon for cell in mine.cells if cell.mechanism == "randomized-response"] == [2.0, 1.0]


def test_what_fails_is_recorded_and_the_rest_goes_on(own: None) -> None:
    blind = hb.Matrix(DIGITS, ["x"], np.ones((5, 1)))
    result = hb.benchmark([KRR, blind], ["fails", "inv-p"], "zipf", users=100, runs=2)
    failed = {(cell.mechanism, cell.method): cell.failure for cell in result.cells}
    assert failed["randomized-response", "fails"] == "RuntimeError: not today"
    assert failed["randomized-response", "inv-p"] == ""
    assert failed["matrix", "inv-p"] != ""  # these reports cannot tell values apart
    frame = result.to_frame()
    assert frame["failures"].tolist() == [2, 0, 2, 2]
    assert frame["tv_mean"].isna().tolist() == [True, False, True, True]
    assert "RuntimeError: not today" in result.explain()
    assert json.loads(result.to_json())["cells"][0]["values"]["tv"] == [None, None]
    assert len(result.runs_frame()) == 8
    assert "3 of 4" not in result.plot().get_title()
    assert "the best 1 of 4" in result.plot().get_title()


class Broken(Sticky):
    """Fails when its probabilities are asked for."""

    def matrix(self) -> Floats:
        raise ValueError("no probabilities\ntoday")


class Refusing(Sticky):
    """Cannot even be built."""

    def __init__(self, domain: hb.Domain, epsilon: float) -> None:
        raise RuntimeError("not like this")


@pytest.mark.parametrize("mechanisms", [["randomized-response", "broken"], "all"])
def test_a_mechanism_that_fails_is_a_row_too(mechanisms: object) -> None:
    hb.register_mechanism("broken", Broken)
    result = hb.benchmark(mechanisms, "inv-p", "zipf", users=100, runs=2, domain=DIGITS, epsilon=1.0)
    (failed,) = [cell for cell in result.cells if cell.mechanism == "broken"]
    assert failed.failures == 2
    assert "ValueError: 'no probabilities\\ntoday'" in failed.failure
    others = [cell for cell in result.cells if cell.mechanism == "randomized-response"]
    assert [cell.failures for cell in others] == [0]


def test_a_class_that_cannot_be_built_is_told() -> None:
    with pytest.raises(hb.MechanismError, match="cannot be built") as caught:
        hb.benchmark([KRR, Refusing], "inv-p", users=100, runs=2, domain=DIGITS, epsilon=1.0)
    assert (caught.value.where, caught.value.got) == ("benchmark(mechanisms)", "RuntimeError: 'not like this'")


def test_classes_of_one_name_are_two_mechanisms() -> None:
    def made(weight: float) -> hb.Mechanism:
        class Local(Sticky):
            def matrix(self) -> Floats:
                return np.asarray(weight * np.eye(5) + (1 - weight) / 5)

        return Local(DIGITS, 1.0)

    first, second = hb.benchmark({"a": made(0.9), "b": made(0.2)}, "inv-p", "zipf", users=300, runs=2).cells
    assert first.tv.mean() < second.tv.mean()


# -- runs that are kept --------------------------------------------------------------------------------------


def test_a_second_call_takes_what_is_there_and_goes_on(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"truths": "zipf", "users": 300, "path": tmp_path / "runs"}
    first = hb.benchmark(KRR, "inv-p", runs=3, **settings)
    kept = sorted(path.name for path in (tmp_path / "runs").glob("*.jsonl"))
    again = hb.benchmark(KRR, "inv-p", runs=3, **settings)
    assert sorted(path.name for path in (tmp_path / "runs").glob("*.jsonl")) == kept
    assert first.to_json() == again.to_json()  # the times, too: nothing was run
    more = hb.benchmark([KRR, OUE], ["inv-p", "ibu"], runs=4, **settings)
    assert more.cells[0].seconds[:3].tolist() == first.cells[0].seconds.tolist()
    assert errors(more) == errors(hb.benchmark([KRR, OUE], ["inv-p", "ibu"], "zipf", users=300, runs=4))


@pytest.mark.slow
def test_an_edited_estimator_is_run_again(tmp_path: Path) -> None:
    results = []
    for share in ("0.25", "0.75"):
        code = tmp_path / "mine.py"
        code.write_text(f"def mine(reports):\n    return [{share}, 1.0 - {share}]\n")
        program = (
            "import hubbub as hb, mine\n"
            "hb.register_estimator('mine', mine.mine)\n"
            "coin = hb.RandomizedResponse(hb.Categories(['a', 'b']), 1.0)\n"
            "hb.benchmark(coin, 'mine', 'zipf', users=100, runs=2, path='runs')\n"
        )
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)  # noqa: S603
        rows = [
            json.loads(line)
            for path in (tmp_path / "runs").glob("*.jsonl")
            for line in path.read_text().split("\n")
            if line
        ]
        results.append(len(rows))
    assert results == [2, 4]


HEAD = """
import dataclasses, functools, numpy as np, hubbub as hb
digits = hb.Integers(0, 4)

@dataclasses.dataclass(frozen=True)
class Base(hb.Mechanism):
    domain: hb.Domain
    epsilon: float

    @property
    def outputs(self):
        return self.domain.labels

    def matrix(self):
        size = len(self.domain)
        return {share} * np.eye(size) + (1 - {share}) / size

class Child(Base):
    pass

class Away(Base):
    def matrix(self):
        return np.full((5, 5), 0.2)

mix, made = {share}, lambda part: lambda reports: (1 - part) * hb.estimate(reports, "inv-p").probabilities + part / 5
krr = hb.RandomizedResponse(digits, 2.0)
"""
ESTIMATORS = {
    "closure": "own = made({share})",
    "global": "def own(reports):\n    return made(mix)(reports)",
    "default": "def own(reports, *, part={share}):\n    return made(part)(reports)",
    "nested": "own = lambda reports: [made(mix)(each) for each in [reports]][0]",
    "partial": "def given(part, reports):\n    return made(part)(reports)\nown = functools.partial(given, {share})",
    "class": "class Made:\n    part = {share}\ndef own(reports):\n    return made(Made.part)(reports)",
    "cached": "part = functools.cache(lambda: {share})\ndef own(reports):\n    return made(part())(reports)",
    "array": "parts = np.full(9, 0.0)\nparts[5] = {share}\ndef own(reports):\n    return made(parts[5])(reports)",
}
MECHANISMS = {
    "base": "own = Child(digits, 1.0)",
    "part": "both = hb.Split(a=Child(digits, 1.0), b=hb.RandomizedResponse(hb.Integers(0, 2), 1.0))\nown = both",
}


def kept_by(program: str, path: Path | None, **names: float) -> list[float]:
    """Run code that has no file, and return the errors of a benchmark of what it calls `own`."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec((HEAD + program).replace("{share}", "SHARE").replace("SHARE", str(names["share"])), space)  # noqa: S102
    own = space["own"]
    own_estimators._FUNCTIONS.clear()
    if not isinstance(own, hb.Mechanism):
        hb.register_estimator("own", own)
    mechanism, method = (own, "inv-p") if isinstance(own, hb.Mechanism) else (space["krr"], "own")
    result = hb.benchmark(mechanism, method, "zipf", users=200, runs=2, path=path)
    return list(result.cells[0].tv)


@pytest.mark.parametrize("name", [*ESTIMATORS, *MECHANISMS])
def test_code_that_changed_is_run_again_and_other_code_is_not(name: str, tmp_path: Path) -> None:
    program, runs = (ESTIMATORS | MECHANISMS)[name], tmp_path / "runs"

    def kept() -> list[str]:
        return sorted(path.name for path in runs.glob("*.jsonl"))

    first = kept_by(program, runs, share=0.25)
    before = kept()
    assert kept_by(f"# another comment\n\n{program}", runs, share=0.25) == first
    assert kept() == before  # nothing was run
    changed = kept_by(program, runs, share=0.75)
    assert changed != first
    assert changed == kept_by(program, None, share=0.75)


def test_modules_of_one_s_own_are_seen_and_installed_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "consts.py").write_text("PART = 0.5\n")
    (tmp_path / "helping.py").write_text("import consts\ndef part():\n    return consts.PART\n")
    programs = {
        "name": "from helping import part\ndef own(reports):\n    return made(part())(reports)",
        "module": "import helping\ndef own(reports):\n    return made(helping.part())(reports)",
        "through": "import helping\ndef own(reports):\n    return made(helping.consts.PART)(reports)",
        "inside": "def own(reports):\n    import helping\n    return made(helping.part())(reports)",
    }
    for name, program in programs.items():
        results = []
        for part in (0.25, 0.75):
            import_again = [sys.modules.pop(each, None) for each in ("consts", "helping")]
            assert len(import_again) == 2
            sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
            (tmp_path / "consts.py").write_text(f"PART = {part}\n")
            results.append(kept_by(program, tmp_path / name, share=0.5))
            sys.dont_write_bytecode = before
        assert results[0] != results[1], name
    for module in ("consts", "helping"):
        sys.modules.pop(module, None)


def test_an_identity_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Sets of texts come in another order in each process, and objects at other places."""
    code = (
        "import numpy as np, hubbub as hb\n"
        "from hubbub.benchmarking.code_identity import identity_of\n"
        "names, sign, last = {'a', 'b', 'c', ('d', 1)}, object(), {}\n"
        "last['me'] = last\n"
        "class Own(hb.RandomizedResponse):\n"
        "    def matrix(self):\n"
        "        return super().matrix() if 'a' in names and sign and last and np.exp and hb else None\n"
        "print(identity_of(Own(hb.Integers(0, 3), 1.0)))\n"
    )
    told = {
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_code_that_cannot_be_told_apart_is_not_kept(tmp_path: Path) -> None:
    lock = threading.Lock()

    def careful(reports: hb.Reports) -> Floats:
        with lock:
            return hb.estimate(reports, "inv-p").probabilities

    hb.register_estimator("careful", careful)
    with pytest.raises(hb.SettingError, match="cannot be kept") as caught:
        hb.benchmark(KRR, "careful", "zipf", users=100, runs=2, path=tmp_path / "runs")
    assert caught.value.got == "the method careful: closure variable lock, a lock"
    assert not (tmp_path / "runs").exists()
    assert hb.benchmark(KRR, "careful", "zipf", users=100, runs=2).cells[0].failures == 0


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    there = tmp_path / "there"

    def needs(reports: hb.Reports) -> Floats:
        there.read_bytes()
        return hb.estimate(reports, "inv-p").probabilities

    hb.register_estimator("needs", needs)
    results = []
    for _ in range(2):
        results.append(hb.benchmark(KRR, "needs", "zipf", users=100, runs=2, path=tmp_path / "runs").cells[0].failures)
        there.touch()
    assert results == [2, 0]


PROGRAM = """
import time, numpy as np, hubbub as hb
def slow(reports):
    time.sleep(0.15)
    return hb.estimate(reports, "inv-p").probabilities
hb.register_estimator("slow", slow)
hb.benchmark(hb.RandomizedResponse(hb.Integers(0, 4), 1.0), "slow", "zipf", users=300, runs={runs}, path="runs")
"""


def test_a_killed_benchmark_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(PROGRAM.format(runs=200))
    process = subprocess.Popen([sys.executable, "killed.py"], cwd=tmp_path)
    limit = time.monotonic() + 60
    while not list((tmp_path / "runs").glob("*.jsonl")) and time.monotonic() < limit:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    lines = [line for path in (tmp_path / "runs").glob("*.jsonl") for line in path.read_text().splitlines()]
    kept = {row["run"]: row for row in map(json.loads, lines)}
    assert 0 < len(kept) < 200
    runs = max(kept) + 3
    (tmp_path / "killed.py").write_text(PROGRAM.format(runs=runs))
    subprocess.run([sys.executable, "killed.py"], cwd=tmp_path, check=True)
    every = [line for path in (tmp_path / "runs").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert sorted(json.loads(line)["run"] for line in every) == list(range(runs))  # each once
    assert all(line in every for line in lines)
    (cell,) = hb.benchmark(KRR, "inv-p", "zipf", users=300, runs=runs).cells
    found = [row["tv"] for row in sorted(map(json.loads, every), key=lambda row: int(row["run"]))]
    assert found == pytest.approx(cell.tv.tolist(), rel=1e-12)  # the shares of one's own are normalised


def test_somebody_who_stops_it_keeps_what_was_finished(tmp_path: Path) -> None:
    steps = hb.benchmark.steps(KRR, "auto", "zipf", users=300, runs=5_000, path=tmp_path / "runs")
    for step in steps:
        if step.done > 0:
            break
    steps.close()
    assert list((tmp_path / "runs").glob("*.jsonl"))


def test_progress_says_what_is_simulated() -> None:
    steps = list(hb.benchmark.steps(KRR, "inv-p", "zipf", users=300, runs=5))
    assert steps[-1].done == steps[-1].total


def test_plots(tmp_path: Path) -> None:
    result = hb.benchmark([KRR, OUE], "inv-p", ["zipf", "uniform"], users=[100, 300], runs=3)
    axes = result.plot(distance="emd")
    assert "earth mover" in axes.get_ylabel()
    assert len(axes.lines) == 4
    assert "earth mover's distance" in result.explain("emd")
