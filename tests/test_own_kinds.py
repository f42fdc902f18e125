"""Mechanisms and estimators of one's own: registered, installed, or named by a study; code runs only where allowed."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import hubbub as hb
import own_package
import page_examples
from hubbub.cli.app import main
from hubbub.client import Client, ClientError
from hubbub.likelihood import ReportsInParts
from hubbub.mechanisms import mechanism_kinds
from hubbub.mechanisms.mechanism_kinds import kind_of

Floats = NDArray[np.float64]
Run = Callable[..., tuple[int, str, str]]


@dataclass(frozen=True)
class Lazy(hb.Mechanism):
    """Randomized response by another name."""

    domain: hb.Domain
    epsilon: float
    marks: tuple[str, ...] = ()

    @property
    def outputs(self) -> Any:
        return self.domain.labels

    def matrix(self) -> Floats:
        weights: Floats = np.where(np.eye(len(self.domain)), np.exp(self.epsilon), 1.0)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def command(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hubbub", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return command


STUDY = """version = 1
[domain]
kind = "categories"
labels = ["tea", "coffee", "water"]
[mechanisms.answer]
kind = "KIND"
epsilon = 2.0
"""

PLANTED = '''
"""A module that somebody else's study names: importing it leaves a trace."""

from pathlib import Path

Path(TRACE).touch()

from dataclasses import dataclass

import numpy as np

import hubbub as hb


@dataclass(frozen=True)
class Planted(hb.Mechanism):
    domain: hb.Domain
    epsilon: float

    @property
    def outputs(self):
        return self.domain.labels

    def matrix(self):
        weights = np.where(np.eye(len(self.domain)), np.exp(self.epsilon * (1 - 1e-12)), 1.0)
        return weights / weights.sum(axis=1, keepdims=True)


class Elsewhere:
    Inner = Planted
'''


class Plant:
    """A module beside a study that names it, importable, and the trace that its import leaves."""

    def __init__(self, folder: Path) -> None:
        self.trace = folder / "it-ran"
        site = folder / "site"
        site.mkdir()
        (site / "planted_waves.py").write_text(PLANTED.replace("TRACE", repr(str(self.trace))))
        self.site = site
        self.study = folder / "study.toml"
        self.write()

    def write(self, kind: str = "planted_waves:Planted") -> None:
        self.study.write_text(STUDY.replace("KIND", kind))

    def forget(self) -> None:
        """Be another process: nothing is imported, nothing is allowed."""
        sys.modules.pop("planted_waves", None)
        mechanism_kinds._known_places.clear()
        self.trace.unlink(missing_ok=True)


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    made = Plant(tmp_path)
    monkeypatch.syspath_prepend(made.site)
    yield made
    sys.modules.pop("planted_waves", None)


# -- code that a study names --------------------------------------------------------------------------------------

NOT_ALLOWED = "the study names code, which is not run unless you allow it"


def test_a_study_that_names_code_runs_none(plant: Plant) -> None:
    with pytest.raises(hb.StudyError, match=NOT_ALLOWED) as caught:
        hb.read_study(plant.study)
    assert caught.value.where == f"{plant.study}, line 6, [mechanisms.answer], kind"
    assert "--allow-code" in caught.value.remedy
    assert "allow_code=True" in caught.value.remedy
    assert caught.value.code == "code-not-allowed"
    assert not plant.trace.exists()
    study = hb.read_study(plant.study, allow_code=True)
    assert plant.trace.exists()
    assert type(study.mechanisms["answer"]).__name__ == "Planted"
    assert hb.read_study(plant.study) == study  # what was allowed is known from then on
    assert json.loads(study.canonical)["mechanisms"]["answer"] == {"kind": "planted_waves:Planted", "epsilon": 2.0}


def test_parts_of_several_attributes_run_nothing_either(plant: Plant) -> None:
    plant.study.write_text("""version = 1
[domain]
kind = "product"
[domain.attributes.x]
kind = "categories"
labels = ["a", "b"]
[domain.attributes.y]
kind = "integers"
low = 0
high = 3
[mechanisms.both]
kind = "split"
epsilon = 2.0
[mechanisms.both.parts.x]
kind = "planted_waves:Planted"
[mechanisms.both.parts.y]
kind = "truncated-geometric"
""")
    with pytest.raises(hb.StudyError, match=NOT_ALLOWED) as caught:
        hb.read_study(plant.study)
    assert caught.value.where.endswith("[mechanisms.both.parts.x], kind")
    assert not plant.trace.exists()
    study = hb.read_study(plant.study, allow_code=True)
    own = study.mechanisms["both"]
    assert isinstance(own, hb.Split)
    assert own.parts["x"].epsilon == 1.0  # half of the budget
    again = pickle.loads(pickle.dumps(study))  # noqa: S301
    assert again.fingerprint == study.fingerprint


COMMANDS: dict[str, list[str]] = {  # the gate takes every third
    "collect": ["collect", "study.toml", "r.csv", "-o", "t.tally.parquet"],
    "estimate --by": ["estimate", "study.toml", "r.csv", "--by", "group"],
    "check": ["check", "study.toml", "r.csv"],
    "estimate": ["estimate", "study.toml", "r.csv"],
    "report": ["report", "study.toml", "r.csv", "-o", "p.html"],
    "resolve": ["resolve", "study.toml", "r.csv"],
    "export-client": ["export-client", "study.toml", "-o", "c.json"],
    "trend": ["trend", "study.toml", "r.csv", "--by", "time"],
    "synthesize": ["synthesize", "study.toml", "r.csv", "-n", "3", "-o", "s.csv"],
    "serve": ["serve", "study.toml", "--to", "sqlite:///r.db#reports"],
    "privatize": ["privatize", "study.toml", "v.csv", "-o", "out.csv"],
    "plan": ["plan", "study.toml", "--users", "10", "--runs", "2", "--method", "inv-p"],
    "compare": ["compare", "study.toml", "r.csv", "r2.csv"],
    "audit": ["audit", "study.toml", "--draws", "100"],
    "independence": ["independence", "study.toml", "r.csv"],
    "privatize --export-tables": ["privatize", "study.toml", "--export-tables", "t.json"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_runs_code_unless_it_is_told_to(name: str, plant: Plant, run: Run) -> None:
    for file in ("r.csv", "r2.csv"):
        Path(file).write_text("output,group,time\ntea,a,2026-11-01\ntea,b,2026-11-02\ncoffee,a,2026-11-03\n")
    Path("v.csv").write_text("value\ntea\n")
    code, _, told = run(*COMMANDS[name])
    assert code == 1
    assert NOT_ALLOWED in told
    assert not plant.trace.exists()
    assert not Path("t.tally.parquet").exists()


TOLD = ("collect", "audit", "plan", "export-client", "compare", "privatize --export-tables")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TOLD)
def test_commands_run_code_if_they_are_told_to(name: str, plant: Plant, run: Run) -> None:
    for file in ("r.csv", "r2.csv"):
        Path(file).write_text("output\n" + "tea\ncoffee\n" * (20 if file == "r.csv" else 30))
    code, _, told = run(*COMMANDS[name], "--allow-code")
    assert (code, NOT_ALLOWED in told) == (0, False), told
    assert plant.trace.exists()


def test_a_tally_runs_no_code_either(plant: Plant, run: Run) -> None:
    Path("r.csv").write_text("output\ntea\ntea\ncoffee\n")
    assert run(*COMMANDS["collect"], "--allow-code")[0] == 0
    path = Path("t.tally.parquet")
    plant.forget()
    with pytest.raises(hb.StudyError, match=NOT_ALLOWED) as caught:
        hb.read_tally(path)
    assert "read_tally(path, allow_code=True)" in caught.value.remedy
    for words in (
        ["estimate", path],
        ["check", path],
        ["merge", path, "-o", "m.tally.parquet"],
        ["report", path, "-o", "p.html"],
    ):
        code, _, told = run(*words)
        assert (code, NOT_ALLOWED in told) == (1, True)
    with pytest.raises(hb.StudyError, match=NOT_ALLOWED):
        hb.merge([path], "m.tally.parquet")
    assert not plant.trace.exists()
    code, shown, _ = run("estimate", path, "--allow-code", "--quick", "--json")
    assert code == 0
    assert json.loads(shown)["users"] == 3
    plant.forget()
    assert hb.merge([path], "m.tally.parquet", allow_code=True).users == 3
    plant.forget()
    tally = hb.read_tally(path, allow_code=True)
    assert tally.reports.users == 3
    assert tally.study.fingerprint == hb.read_study(plant.study).fingerprint


def test_a_device_never_imports_what_a_study_names(plant: Plant, tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="no such kind") as caught:
        Client(plant.study)
    assert "Client(study, tables)" in caught.value.remedy
    assert not plant.trace.exists()
    tables, document = tmp_path / "tables.json", tmp_path / "client.json"
    for export, path in ((hb.export_tables, tables), (hb.export_client, document)):
        with pytest.raises(hb.StudyError, match=NOT_ALLOWED):
            export(plant.study, path)
        assert not path.exists()
    assert not plant.trace.exists()
    digest = hb.export_tables(plant.study, tables, allow_code=True)
    hb.export_client(plant.study, document, allow_code=True)
    plant.forget()
    client = Client(plant.study, tables, digest=digest)
    drawn = [client.privatize("coffee") for _ in range(300)]
    assert not plant.trace.exists()
    assert set(drawn) <= {"tea", "coffee", "water"}
    # e^2 / (2 + e^2) = 0.787 of 300: below 190 with probability 1e-9.
    assert drawn.count("coffee") > 190
    law = json.loads(document.read_text())["mechanisms"]["answer"]
    assert law["kind"] == "matrix"  # a table, which clients in other languages draw from already
    shares = np.array([[int(weight, 16) / 2.0 ** law["width"] for weight in row] for row in law["rows"]])
    np.testing.assert_allclose(shares, Lazy(hb.Categories(["tea", "coffee", "water"]), 2.0).matrix(), atol=1e-12)


def test_a_device_refuses_tables_of_another_study(plant: Plant, tmp_path: Path) -> None:
    hb.export_tables(plant.study, tmp_path / "tables.json", allow_code=True)
    plant.study.write_text(plant.study.read_text().replace("2.0", "3.0"))
    with pytest.raises(ClientError, match="another study"):
        Client(plant.study, tmp_path / "tables.json")


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("planted_waves:Missing", "cannot be loaded"),
        ("no_such_module:Planted", "cannot be loaded"),
        ("planted_waves:Path", "not a class of mechanisms"),
        ("hubbub.mechanisms:Rappor", "has a kind, and so two spellings"),
        ("hubbub:Mechanism", "not a class of mechanisms"),
        ("planted_waves:", "not the place of a class"),
        ("../planted_waves:Planted", "not the place of a class"),
    ],
)
def test_places_that_are_no_mechanisms(kind: str, what: str, plant: Plant) -> None:
    plant.write(kind)
    with pytest.raises(hb.StudyError, match=what):
        hb.read_study(plant.study, allow_code=True)


def test_two_spellings_of_a_place_are_one_mechanism(plant: Plant) -> None:
    first = hb.read_study(plant.study, allow_code=True)
    plant.write("planted_waves:Elsewhere.Inner")
    assert hb.read_study(plant.study, allow_code=True).fingerprint == first.fingerprint


def test_a_study_in_another_process_has_the_same_fingerprint_and_reads_its_tally(plant: Plant, tmp_path: Path) -> None:
    study = hb.read_study(plant.study, allow_code=True)
    hb.collect(study, pd.DataFrame({"output": ["tea", "tea"]}), tmp_path / "t.tally.parquet")
    (tmp_path / "study.pickle").write_bytes(pickle.dumps(study))
    code = (
        "import pickle, sys, hubbub as hb; sys.path.insert(0, sys.argv[1]); "
        "study = pickle.load(open(sys.argv[2], 'rb')); print(study.fingerprint, hb.read_tally(sys.argv[3]).users)"
    )
    words = [
        sys.executable,
        "-c",
        code,
        str(plant.site),
        str(tmp_path / "study.pickle"),
        str(tmp_path / "t.tally.parquet"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == [study.fingerprint, "2"]


# -- registered mechanisms ----------------------------------------------------------------------------------------


def written(tmp_path: Path, kind: str, more: str = "") -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("KIND", kind) + more)
    return path


def test_a_registered_kind_is_a_kind_like_any_other(tmp_path: Path) -> None:
    path = written(tmp_path, "lazy-answer", 'marks = ["a", "b"]\n')
    with pytest.raises(hb.StudyError, match="no such kind"):
        hb.read_study(path)
    hb.register_mechanism("lazy-answer", Lazy)
    hb.register_mechanism("lazy-answer", Lazy)  # a cell that is run again
    study = hb.read_study(path)
    domain = study.domain
    own = {"kind": "lazy-answer", "epsilon": 2.0, "marks": ["a", "b"]}
    assert json.loads(study.canonical)["mechanisms"]["answer"] == own
    made = hb.Study(domain, {"answer": Lazy(domain, 2, ("a", "b"))})  # 2 and 2.0 are one epsilon
    assert made.fingerprint == study.fingerprint
    plan = hb.plan(["lazy-answer", "k-RR"], domain=domain, epsilon=1.0, users=500, method="inv-p", runs=20)
    first, second = (answer.tv for answer in plan.settings)
    assert first.median == pytest.approx(second.median, abs=0.05)


def test_tallies_of_a_registered_kind_are_read_where_it_is_known(tmp_path: Path) -> None:
    hb.register_mechanism("lazy-answer", Lazy)
    study = hb.read_study(written(tmp_path, "lazy-answer"))
    path = tmp_path / "t.tally.parquet"
    hb.collect(study, pd.DataFrame({"output": ["tea", "water", "tea"]}), path)
    assert hb.read_tally(path).study.fingerprint == study.fingerprint
    mechanism_kinds._registered.clear()
    with pytest.raises(hb.IntakeError, match="kind of mechanism that is not known here") as caught:
        hb.read_tally(path)
    assert "register_mechanism" in caught.value.remedy


def test_a_mechanism_without_a_kind_is_known_by_its_place() -> None:
    assert kind_of(Lazy) == f"{__name__}:Lazy"
    assert kind_of(hb.Rappor) == "rappor"

    class Rappor(Lazy):
        """The name of one of hubbub's."""

    assert kind_of(Rappor).endswith("<locals>.Rappor")


def test_a_mechanism_that_nobody_could_load_again_is_not_written(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Local(Lazy):
        pass

    domain = hb.Categories(["tea", "coffee"])
    study = hb.Study(domain, {"answer": Local(domain, 1.0)})
    rows = pd.DataFrame({"output": ["tea", "tea"]})
    with pytest.raises(hb.StudyError, match="cannot be written to a tally") as caught:
        hb.collect(study, rows, tmp_path / "t.tally.parquet")
    assert "register_mechanism" in caught.value.remedy
    hb.register_mechanism("local-answer", Local)
    again = hb.Study(domain, {"answer": Local(domain, 1.0)})
    assert hb.collect(again, rows, tmp_path / "t.tally.parquet").users == 2


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("rappor", "of hubbub's own"),
        ("k-rr", "of hubbub's own"),
        ("oue", "of hubbub's own"),
        ("Lazy", "lower-case words"),
        ("a:b", "lower-case words"),
        ("", "lower-case words"),
        (3, "lower-case words"),
    ],
)
def test_kinds_that_cannot_be_registered(kind: Any, what: str) -> None:
    with pytest.raises(hb.MechanismError, match=what):
        hb.register_mechanism(kind, Lazy)


def test_a_kind_has_one_class_and_a_class_one_kind() -> None:
    hb.register_mechanism("lazy-answer", Lazy)

    class Other(Lazy):
        pass

    with pytest.raises(hb.MechanismError, match="a kind 'lazy-answer' already"):
        hb.register_mechanism("lazy-answer", Other)
    with pytest.raises(hb.MechanismError, match="has a kind already"):
        hb.register_mechanism("idle-answer", Lazy)
    wrong: Any = Lazy(hb.Categories(["a", "b"]), 1.0)
    with pytest.raises(hb.MechanismError, match="not a class of mechanisms"):
        hb.register_mechanism("idle-answer", wrong)
    with pytest.raises(hb.MechanismError, match="lacks matrix, outputs"):
        hb.register_mechanism("idle-answer", hb.Mechanism)  # type: ignore[type-abstract]


@dataclass(frozen=True)
class Picky(Lazy):
    """Raises what is not a mistake that hubbub knows."""

    def __post_init__(self) -> None:
        if self.epsilon > 1.0:
            raise RuntimeError("epsilon is too large for my taste")


@dataclass(frozen=True)
class Careless(Lazy):
    """Makes up a domain, and a field that no file can hold."""

    extra: object = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", hb.Integers(0, 2))


def test_what_a_class_raises_is_about_the_study(tmp_path: Path) -> None:
    hb.register_mechanism("picky", Picky)
    hb.register_mechanism("careless", Careless)
    with pytest.raises(hb.StudyError, match="refuses these fields") as caught:
        hb.read_study(written(tmp_path, "picky"))
    assert caught.value.got == "RuntimeError: epsilon is too large for my taste"
    assert caught.value.where.endswith("line 5, [mechanisms.answer]")
    with pytest.raises(hb.StudyError, match="another domain"):
        hb.read_study(written(tmp_path, "careless"))
    with pytest.raises(hb.StudyError, match="unknown entry"):
        hb.read_study(written(tmp_path, "picky", "marck = 1\n"))
    hb.register_mechanism("lazy-answer", Lazy)
    domain = hb.Categories(["a", "b"])
    odd: Any = (Lazy,)
    with pytest.raises(hb.StudyError, match="cannot be written to a study"):
        _ = hb.Study(domain, {"answer": Lazy(domain, 1.0, odd)}).fingerprint
    with pytest.raises(hb.StudyError, match="cannot be written to a study"):
        _ = hb.Study(domain, {"answer": Lazy(domain, math.inf)}).fingerprint


BAD_EPSILONS = ["'x'", "[1.0]", "{a = 1}", "2026-11-01", "true", "-1.0", "0.0", "inf", "nan", "1e9"]


@pytest.mark.parametrize("epsilon", BAD_EPSILONS)
def test_an_epsilon_that_is_none_is_refused_where_it_is_read(epsilon: str, tmp_path: Path) -> None:
    hb.register_mechanism("lazy-answer", Lazy)
    path = written(tmp_path, "lazy-answer")
    path.write_text(path.read_text().replace("2.0", epsilon))
    with pytest.raises(hb.StudyError, match="epsilon") as caught:
        hb.read_study(path)
    assert caught.value.where.endswith("line 7, [mechanisms.answer]: Lazy(epsilon=)")
    assert all((caught.value.got, caught.value.expected, caught.value.remedy))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("words", [("audit", "study.toml"), ("plan", "study.toml", "--users", "10")])
def test_commands_tell_of_an_epsilon_that_is_none(words: tuple[str, ...], run: Run) -> None:
    path = Path("study.toml")
    path.write_text(path.read_text().replace("epsilon = 2.0", 'epsilon = "x"'))
    code, _, told = run(*words)
    assert code == 1
    assert "ClockWindow(epsilon=)" in told
    assert "Traceback" not in told


class Odd(Lazy):
    """What its `marks` name goes wrong."""

    @property
    def outputs(self) -> Any:
        odd: dict[str, Any] = {"text": "tea", "number": 3, "lists": [["a"], ["b", "c"], 1], "rows": [[1], [2], [3]]}
        if self.marks[0] == "outputs":
            raise KeyError("cups, of which there are none")
        return odd.get(self.marks[0], self.domain.labels)

    def matrix(self) -> Any:
        odd: dict[str, Any] = {"prose": "one third each", "ragged": [[1.0], [0.5, 0.5]], "nothing": None}
        if self.marks[0] == "matrix":
            raise ZeroDivisionError("division by zero")
        return odd.get(self.marks[0], super().matrix())


ODDITIES = {
    "matrix": ("matrix()", "ZeroDivisionError: 'division by zero'"),
    "prose": ("matrix()", "'one third each'"),
    "ragged": ("matrix()", "[[1.0], [0.5, 0.5]]"),
    "nothing": ("matrix()", "shape ()"),
    "text": ("outputs", "'tea'"),
    "number": ("outputs", "3"),
    "lists": ("outputs", "[['a'], ['b', 'c'], 1]"),
    "rows": ("outputs", "[[1], [2], [3]]"),
}


@pytest.mark.parametrize("name", ODDITIES)
def test_what_a_class_gives_is_told_with_its_name(name: str, tmp_path: Path) -> None:
    hb.register_mechanism("odd", Odd)
    place, got = ODDITIES[name]
    with pytest.raises(hb.StudyError) as told:
        hb.read_study(written(tmp_path, "odd", f'marks = ["{name}"]\n'))
    assert told.value.where.endswith(f"line 5, [mechanisms.answer]: Odd.{place}")
    built = Odd(hb.Categories(["tea", "coffee", "water"]), 2.0, (name,))
    with pytest.raises(hb.MechanismError) as caught:
        _ = (built.checked_matrix(), built.output_space)
    for error in (told.value, caught.value):
        assert error.got == got
        assert all((error.what, error.expected, error.remedy))
    assert caught.value.where == f"Odd.{place}"


def test_outputs_that_fail_are_told_with_the_name_of_the_class(tmp_path: Path) -> None:
    hb.register_mechanism("odd", Odd)
    with pytest.raises(hb.StudyError, match="refuses these fields") as told:
        hb.read_study(written(tmp_path, "odd", 'marks = ["outputs"]\n'))
    assert told.value.where.endswith("line 5, [mechanisms.answer]")
    assert told.value.got == "KeyError: 'cups, of which there are none'"
    assert "Odd" in told.value.expected
    with pytest.raises(hb.MechanismError, match="the class of the mechanism fails") as caught:
        Odd(hb.Categories(["a", "b"]), 2.0, ("outputs",)).checked_matrix()
    assert caught.value.where == "Odd.outputs"


def test_large_tables_are_not_built_where_a_study_is_read(tmp_path: Path) -> None:
    class Slow(Lazy):
        def matrix(self) -> Floats:
            raise AssertionError("asked for")

    hb.register_mechanism("slow", Slow)
    path = written(tmp_path, "slow")
    path.write_text(path.read_text().replace('"tea", "coffee", "water"', ", ".join(f'"{each}"' for each in range(400))))
    assert hb.read_study(path).mechanisms["answer"].epsilon == 2.0
    with pytest.raises(hb.MechanismError, match="the class of the mechanism fails"):
        hb.audit(hb.read_study(path).mechanisms["answer"], draws=100)


def test_a_law_of_its_own_is_no_table_for_devices(tmp_path: Path) -> None:
    class Drawing(Lazy):
        @property
        def law(self) -> Any:
            return hb.RandomizedResponse(self.domain, self.epsilon).law

    hb.register_mechanism("drawing", Drawing)
    with pytest.raises(hb.MechanismError, match="devices cannot draw from this mechanism"):
        hb.export_tables(written(tmp_path, "drawing"), tmp_path / "t.json")


# -- registered estimators ----------------------------------------------------------------------------------------

COLOURS = hb.Categories(["red", "green", "blue"])
REPORTS = hb.Reports.from_counts(hb.RandomizedResponse(COLOURS, 1.0), [60, 25, 15])


def towards(reports: hb.Reports, *, target: float = 0.5, rng: object = None) -> Floats:
    """Halfway from the nearest distribution to equal shares."""
    shares = hb.estimate(reports, "inv-p").probabilities
    return (1 - target) * shares + target / len(shares)


def test_a_registered_estimator_is_a_method_like_any_other() -> None:
    hb.register_estimator("towards-equal", towards)
    estimate = hb.estimate(REPORTS, "towards-equal", target=0.25, rng=3)
    np.testing.assert_allclose(estimate.probabilities, towards(REPORTS, target=0.25), atol=1e-15)
    assert estimate.method == "towards-equal"
    assert estimate.log_likelihood == hb.log_likelihood(REPORTS, estimate.probabilities)
    assert estimate.gap == hb.optimality_gap(REPORTS, estimate.probabilities)
    assert estimate.status.startswith("as the estimator returned it; gap ")
    assert estimate.settings["target"] == 0.25
    assert json.loads(estimate.to_json())["settings"] == {"solver": "own estimator", "rng": 3, "target": 0.25}
    interval = hb.interval(REPORTS, "red", estimate=estimate)
    assert interval.low <= interval.estimate == estimate.probabilities[0] <= interval.high
    shift = hb.worst_case_shift(REPORTS, 0.02, estimate=estimate)
    assert shift.method == "towards-equal"
    plan = hb.plan(hb.RandomizedResponse(COLOURS, 1.0), users=300, method="towards-equal", runs=20)
    assert 0.0 < plan.settings[0].tv.median < 0.3


def test_fakes_are_estimated_with_the_same_keywords() -> None:
    """With all weight on equal shares nothing can move the estimate; with the default it does."""
    hb.register_estimator("towards-equal", towards)
    fixed, free = (hb.estimate(REPORTS, "towards-equal", target=target) for target in (1.0, 0.5))
    assert float(hb.worst_case_shift(REPORTS, 0.02, estimate=fixed)) == pytest.approx(0.0, abs=1e-12)
    assert float(hb.worst_case_shift(REPORTS, 0.02, estimate=free)) > 0.005


def test_an_estimator_may_return_an_estimate() -> None:
    hb.register_estimator("best", lambda reports: hb.estimate(reports, "mle"))
    estimate, best = hb.estimate(REPORTS, "best"), hb.estimate(REPORTS, "mle")
    np.testing.assert_allclose(estimate.probabilities, best.probabilities, atol=1e-15)
    assert estimate.status.startswith(best.status)
    assert (estimate.converged, estimate.iterations) == (best.converged, best.iterations)


RESULTS: dict[str, object] = {
    "negative": [1.2, -0.2, 0.0],
    "counts": [60, 25, 15],
    "too short": [0.5, 0.5],
    "not a number": [math.nan, 0.5, 0.5],
    "words": "red",
    "nothing": None,
    "an inversion": hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(COLOURS, 1.0), [9, 1, 0]), "inv"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_that_are_no_distributions_are_refused(name: str) -> None:
    hb.register_estimator("careless", lambda reports: RESULTS[name])
    with pytest.raises(hb.EstimateError) as caught:
        hb.estimate(REPORTS, "careless")
    assert caught.value.where.startswith("estimate(method='careless'), what the estimator returned")
    assert all((caught.value.what, caught.value.got, caught.value.expected, caught.value.remedy))


@pytest.mark.parametrize("name", ["mle", "auto", "inv", "norm-sub", "Mine", "", 3, "a b"])
def test_names_of_estimators_that_cannot_be_registered(name: Any) -> None:
    with pytest.raises(hb.SettingError, match=r"of hubbub's own|lower-case words"):
        hb.register_estimator(name, towards)


@pytest.mark.parametrize(
    "function",
    [lambda: None, lambda reports, other: None, lambda *, reports: None, lambda reports, *, method: None, "mle", max],
)
def test_functions_that_are_no_estimators(function: Any) -> None:
    with pytest.raises(hb.SettingError, match="not an estimator"):
        hb.register_estimator("mine", function)


def test_a_name_has_one_estimator() -> None:
    hb.register_estimator("mine", towards)
    hb.register_estimator("mine", towards)
    with pytest.raises(hb.SettingError, match="an estimator 'mine' already"):
        hb.register_estimator("mine", lambda reports: None)
    with pytest.raises(hb.SettingError, match=r"does not use tol") as caught:
        hb.estimate(REPORTS, "mine", tol=1e-3)
    assert caught.value.where == "estimate(method='mine', tol=)"
    with pytest.raises(hb.SettingError, match="does not use width"):
        hb.estimate(REPORTS, "mine", width=3)
    with pytest.raises(hb.SettingError, match="one process"):
        hb.estimate(ReportsInParts([REPORTS, REPORTS]), "mine")
    with pytest.raises(hb.SettingError, match="method must be") as caught:
        hb.estimate(REPORTS, "myne")
    assert "'mine'" in caught.value.expected


# -- installed packages -------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example package, installed, in a folder with its data."""
    monkeypatch.syspath_prepend(own_package.install(tmp_path / "site"))
    for name in own_package.DATA:
        (tmp_path / name).write_bytes((own_package.EXAMPLE / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("clock_reports", None)


@pytest.mark.usefixtures("package")
def test_the_example_package_works_from_end_to_end(run: Run) -> None:
    code, shown, told = run("audit", "study.toml", "--draws", "500", "--json")
    assert (code, json.loads(shown)["mechanisms"]["clock"]["verdict"]) == (0, "proven"), told
    code, shown, _ = run("plan", "study.toml", "--users", "500", "--method", "round-the-clock", "--runs", "5", "--json")
    assert code == 0
    words = ["privatize", "study.toml", "hours.csv", "--mechanism", "clock", "--seed", "7", "-o", "reports.csv"]
    assert run(*words)[0] == 0
    assert run("collect", "study.toml", "reports.csv", "-o", "hours.tally.parquet")[0] == 0
    words = ["estimate", "hours.tally.parquet", "--method", "round-the-clock", "--quick", "--json"]
    code, shown, _ = run(*words)
    document = json.loads(shown)
    assert (code, document["method"], document["users"]) == (0, "round-the-clock", 3000)
    truth = pd.read_csv("hours.csv")["value"].value_counts(normalize=True).reindex(range(24), fill_value=0.0)
    shares = [entry["probability"] for entry in document["estimate"]]
    assert hb.total_variation(shares, truth.to_numpy()) < 0.12
    study = hb.read_study("study.toml")
    assert document["fingerprint"] == study.fingerprint
    assert json.loads(study.canonical)["mechanisms"]["clock"]["kind"] == "clock-window"
    plan = hb.plan("clock-window", domain=study.domain, epsilon=2.0, users=300, method="ibu", runs=10)
    assert plan.settings[0].tv.median < 0.5
    code, _, told = run("estimate", "hours.tally.parquet", "--method", "round-the-clok")
    assert code == 2
    assert "'round-the-clock'" in told


@pytest.mark.usefixtures("package")
def test_a_class_has_the_kind_under_which_its_package_offers_it() -> None:
    import clock_reports

    assert kind_of(clock_reports.ClockWindow) == "clock-window"  # also where nothing was read before
    Path("study.toml").write_text(Path("study.toml").read_text().replace("clock-window", "clock_reports:ClockWindow"))
    with pytest.raises(hb.StudyError, match="two spellings") as caught:
        hb.read_study("study.toml", allow_code=True)
    assert caught.value.expected == "kind = 'clock-window'"


@pytest.mark.slow
def test_the_readme_of_the_example_shows_what_its_commands_print() -> None:
    with own_package.installed_here():
        text = own_package.README.read_text(encoding="utf-8")
        for example, printed in page_examples.ran(text):
            assert text[example.start : example.end] == printed


def test_names_of_hubbub_are_never_shadowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {"hubbub.mechanisms": {"rappor": "evil:Rappor"}, "hubbub.estimators": {"mle": "evil:mle"}}
    own_package.write_metadata(tmp_path / "site", "evil", "1.0", groups)
    (tmp_path / "site" / "evil.py").write_text("raise SystemExit('it ran')\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert type(hb.read_study(written(tmp_path, "rappor")).mechanisms["answer"]) is hb.Rappor
    assert hb.estimate(REPORTS, "mle").status.startswith("solved")
    with pytest.raises(hb.StudyError, match="the name 'rappor' is taken") as caught:
        hb.read_study(written(tmp_path, "lazy-answer"))
    assert "evil 1.0" in caught.value.got
    assert "hubbub itself" in caught.value.got
    with pytest.raises(hb.EstimateError, match="the name 'mle' is taken"):
        hb.estimate(REPORTS, "mine")


def test_two_packages_cannot_have_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        own_package.write_metadata(tmp_path / "site", name, "1.0", {"hubbub.estimators": {"mine": f"{name}:mine"}})
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(hb.EstimateError, match="the name 'mine' is taken") as caught:
        hb.estimate(REPORTS, "mine")
    assert "one 1.0" in caught.value.got
    assert "two 1.0" in caught.value.got


def test_a_broken_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {"hubbub.mechanisms": {"wave": "broken:Wave"}, "hubbub.estimators": {"mine": "math:pi"}}
    own_package.write_metadata(tmp_path / "site", "broken", "1.0", groups)
    (tmp_path / "site" / "broken.py").write_text("raise ImportError('no such library')\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(hb.StudyError, match="the package of 'wave' cannot be loaded") as caught:
        hb.read_study(written(tmp_path, "wave"))
    assert caught.value.got == "ImportError: no such library"
    with pytest.raises(hb.EstimateError, match="not an estimator"):
        hb.estimate(REPORTS, "mine")


def test_starting_up_looks_at_no_package(tmp_path: Path) -> None:
    """Entry points are looked up for unknown names alone: metadata of all packages take long to read."""
    code = (
        "import importlib.metadata as metadata, sys\n"
        "metadata.entry_points = lambda **_: sys.exit('looked')\n"
        "import hubbub as hb\n"
        "coin = hb.RandomizedResponse(hb.Categories(['a', 'b']), 1.0)\n"
        "print(hb.Study(coin.domain, {'coin': coin}).fingerprint)\n"
        "print(hb.estimate(hb.Reports.from_counts(coin, [3, 2]), 'mle').converged)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["True"]), done.stderr
