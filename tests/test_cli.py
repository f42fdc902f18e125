"""The terminal, run as people run it: in a process of its own."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub.cli.commands import COMMANDS
from hubbub.demo import METHODS, load_city
from terminal import hubbub as run


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("demo")
    return folder / "out", run("demo", "-o", folder / "out", cwd=folder)


def test_demo_shows_and_writes(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = demo
    assert done.returncode == 0, done.stderr
    for word in ("true", "noisy", *METHODS, "total variation", "earth mover"):
        assert word in done.stdout
    city = load_city()
    with (folder / "estimates.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [int(line["cell"]) for line in lines] == city.grid.labels.tolist()
    assert np.allclose([float(line["true"]) for line in lines], city.shares)
    for method in ("noisy", *METHODS):
        shares = np.array([float(line[method]) for line in lines])
        assert shares.sum() == pytest.approx(1)
        distance = hb.total_variation(city.shares, shares)
        assert f"{distance:.4f}" in done.stdout  # the table shows what the file holds
    assert (folder / "city.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert "demo city" in page
    assert len(page) < 2_000_000
    assert "report.html in a browser" in done.stdout


def test_demo_leaves_a_study_that_can_be_estimated(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = demo
    done = run("estimate", "study.toml", "reports.csv", "--method", "ibu", "--json", "--quick", cwd=folder)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    with (folder / "estimates.csv").open() as file:
        written = [float(line["ibu"]) for line in csv.DictReader(file)]
    assert np.allclose([entry["probability"] for entry in document["estimate"]], written, atol=1e-12)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    assert run("new", "integers", "-o", "study.toml", cwd=tmp_path).returncode == 0
    (tmp_path / "reports.csv").write_text("output\n" + "\n".join(["30"] * 40 + ["45"] * 30 + ["99"] * 5) + "\n")
    return tmp_path


KEYS = [
    "version", "fingerprint", "method", "status", "converged", "unique", "users", "effective_users", "rejected",
    "log_likelihood", "gap", "iterations", "settings", "notes", "dates", "epsilon_per_user", "fit", "interval",
    "worst_case_shift", "suggestion", "regions", "region_rest", "region_level",
    "region_notes", "marginals", "estimate",
]  # fmt: skip


def test_json_is_one_document_with_the_contracts_keys(small: Path) -> None:
    done = run("estimate", "study.toml", "reports.csv", "--quick", "--json", cwd=small)
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert list(document) == KEYS
    assert document["users"] == 75
    assert document["fingerprint"] == hb.read_study(small / "study.toml").fingerprint
    assert document["epsilon_per_user"]["per_unit"] == 0.2
    assert document["epsilon_per_user"]["ldp"] == 0.0
    assert document["epsilon_per_user"]["plain_equivalent"] == pytest.approx(0.2 * 81)
    assert [entry["value"] for entry in document["estimate"]] == list(range(18, 100))
    assert sum(entry["probability"] for entry in document["estimate"]) == pytest.approx(1)


def test_json_has_an_interval_for_each_value(tmp_path: Path) -> None:
    small = tmp_path
    (small / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "integers"\nlow = 1\nhigh = 6\n'
        '[mechanisms.m]\nkind = "truncated-geometric"\nepsilon = 0.8\n'
    )
    (small / "reports.csv").write_text("output\n" + "\n".join(["1"] * 40 + ["3"] * 30 + ["4"] * 9 + ["6"] * 5) + "\n")
    document = json.loads(
        run("estimate", "study.toml", "reports.csv", "--method", "mle", "--level", "0.9", "--json", cwd=small).stdout
    )
    reports = hb.read_reports(small / "reports.csv", hb.read_study(small / "study.toml"))
    band = hb.band(reports, 0.9)
    assert [entry["low"] for entry in document["estimate"]] == pytest.approx(band.low)
    assert [entry["high"] for entry in document["estimate"]] == pytest.approx(band.high)
    assert document["interval"] == {
        "level": 0.9,
        "method": "profile",
        "simultaneous": False,
        "fakes": 0.0,
        "values": 6,
    }
    assert document["unique"] is True
    shift = hb.worst_case_shift(reports, 0.01, estimate=hb.estimate(reports, "mle"))
    assert document["worst_case_shift"]["shift"] == pytest.approx(float(shift))
    assert document["worst_case_shift"]["method"] == "mle"
    words = ("estimate", "study.toml", "reports.csv", "--method", "mle", "--level", "0.9", "-o", "e.csv")
    assert run(*words, cwd=small).returncode == 0
    with (small / "e.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [float(line["low"]) for line in lines] == pytest.approx(band.low)
    assert [float(line["high"]) for line in lines] == pytest.approx(band.high)


@pytest.mark.slow
def test_quick_leaves_out_what_takes_time(small: Path) -> None:
    document = json.loads(run("estimate", "study.toml", "reports.csv", "--quick", "--json", cwd=small).stdout)
    assert document["unique"] is document["interval"] is document["worst_case_shift"] is None
    assert {entry["low"] for entry in document["estimate"]} == {None}
    shown = run("estimate", "study.toml", "reports.csv", "--quick", cwd=small).stdout
    assert "interval" not in shown


def test_check_answers_in_plain_words(tmp_path: Path) -> None:
    assert run("new", "categories", "-o", "study.toml", cwd=tmp_path).returncode == 0
    labels = hb.read_study(tmp_path / "study.toml").domain.labels.tolist()
    (tmp_path / "reports.csv").write_text("output\n" + "\n".join([labels[0]] * 40 + [labels[1]] * 35) + "\n")
    done = run("check", "study.toml", "reports.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for question in ("one answer?", "does it fit?", "fake users?", "how precise?"):
        assert question in done.stdout
    assert "passes" not in done.stdout


@pytest.mark.slow
def test_intervals_that_hold_against_fakes(small: Path) -> None:
    done = run("check", "study.toml", "reports.csv", "--fakes", "2%", cwd=small)
    assert "Intervals hold if up to 2% of the users are fake, whatever they sent." in done.stdout
    plain, robust = (
        json.loads(run("estimate", "study.toml", "reports.csv", "--fakes", share, "--json", cwd=small).stdout)
        for share in ("0", "0.02")
    )
    assert (plain["interval"]["fakes"], robust["interval"]["fakes"]) == (0.0, 0.02)
    for before, after in zip(plain["estimate"], robust["estimate"], strict=True):
        assert after["low"] <= before["low"]
        assert after["high"] >= before["high"]


@pytest.mark.slow
def test_check_as_one_document(small: Path) -> None:
    document = json.loads(run("check", "study.toml", "reports.csv", "--share", "0.05", "--json", cwd=small).stdout)
    with pytest.warns(hb.HubbubWarning, match="cannot be checked") as told:
        reports = hb.read_reports(small / "reports.csv", hb.read_study(small / "study.toml"))
    assert document["notes"] == [str(warning.message) for warning in told]
    identified, fit = hb.identify(reports), hb.fit_test(reports)
    assert document["identify"]["unique"] is identified.unique
    assert document["identify"]["dimension"] == identified.dimension
    assert document["fit"]["p_value"] == fit.p_value
    assert document["fit"]["rejected"] is fit.rejected
    assert document["worst_case_shift"]["share"] == 0.05
    assert [entry["highest"] for entry in document["values"]] == pytest.approx(identified.upper)
    assert sum(entry["low"] is not None for entry in document["values"]) == 5
    assert len(document["verdicts"]) == 4


def test_json_has_null_where_a_number_is_not_finite(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "integers"\nlow = 1\nhigh = 3\n'
        '[mechanisms.m]\nkind = "cloaking"\nregions = ["a", "b", "c"]\n'
    )
    (tmp_path / "reports.csv").write_text("output\na\nb\nb\n")
    document = json.loads(run("estimate", "study.toml", "reports.csv", "--json", cwd=tmp_path).stdout)
    assert document["epsilon_per_user"]["ldp"] is None
    assert "certainty" in document["epsilon_per_user"]["note"]


@pytest.mark.parametrize("ending", ["json", "csv", "png", "svg"])
def test_output_files(small: Path, ending: str) -> None:
    done = run("estimate", "study.toml", "reports.csv", "--method", "mle", "--quick", "-o", f"e.{ending}", cwd=small)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    content = (small / f"e.{ending}").read_bytes()
    if ending == "json":
        assert list(json.loads(content)) == KEYS
    elif ending == "csv":
        assert content.decode().splitlines()[0] == "value,probability"
        assert len(content.decode().splitlines()) == 83
    else:
        assert len(content) > 1000


def test_the_table_says_what_was_found(small: Path) -> None:
    done = run("estimate", "study.toml", "reports.csv", "--method", "mle", "--quick", cwd=small)
    assert "solved; gap" in done.stdout
    assert "most probable values" in done.stdout
    assert "75" in done.stdout


@pytest.mark.slow
def test_settings_reach_the_method(small: Path) -> None:
    document = json.loads(
        run(
            "estimate",
            "study.toml",
            "reports.csv",
            "--method",
            "ibu",
            "--delta",
            "0.001",
            "--quick",
            "--json",
            cwd=small,
        ).stdout
    )
    assert document["settings"]["delta"] == 0.001
    limited = json.loads(
        run(
            "estimate",
            "study.toml",
            "reports.csv",
            "--method",
            "mle",
            "--max-iter",
            "1",
            "--quick",
            "--json",
            cwd=small,
        ).stdout
    )
    assert limited["converged"] is False


def test_report_writes_a_page_and_says_what_is_on_it(small: Path) -> None:
    words = ("--method", "mle", "--quick", "--title", "Ages <b>", "-o", "page.html")
    done = run("report", "study.toml", "reports.csv", *words, cwd=small)
    assert done.returncode == 0, done.stderr
    assert "The median of 75 users is 30" in done.stdout.replace("\n", " ")
    assert "Is there one answer? Not checked" in done.stdout
    assert "epsilon per unit spent by a row: median 0.2" in done.stdout
    assert "rows do not say who sent them: each row is counted as one person" in done.stdout
    notes, written = done.stderr.splitlines()
    assert "max_reports_per_user = 1 cannot be checked" in notes
    assert written == "written: page.html"
    page = (small / "page.html").read_text(encoding="utf-8")
    assert "Ages &lt;b&gt;" in page
    assert "Ages <b>" not in page


def test_report_does_not_let_a_label_command_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "categories"\nlabels = ["\\u001b]0;owned\\u0007\\u001b[2J", "no"]\n'
        '[mechanisms.m]\nkind = "randomized-response"\nepsilon = 1.0\n'
    )
    (tmp_path / "reports.jsonl").write_text(
        '{"output": "\\u001b]0;owned\\u0007\\u001b[2J"}\n' * 9 + '{"output": "no"}\n'
    )
    done = run("report", "study.toml", "reports.jsonl", "--method", "mle", "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\\x1b]0;owned" in done.stdout  # told, not obeyed
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("estimate", "missing.toml", "reports.csv"), 1, "no such study file"),
        (("estimate", "study.toml", "missing.csv"), 1, "no such file of reports"),
        (("estimate", "study.toml", "reports.csv", "--method", "magic"), 2, "method must be"),
        (("estimate", "study.toml", "reports.csv", "--method", "mle", "--delta", "1"), 2, "does not use delta"),
        (("estimate", "study.toml", "reports.csv", "-o", "e.xyz"), 2, "must end in"),
        (("estimate", "study.toml", "reports.csv", "-o", "nowhere/e.csv"), 1, "cannot be written"),
        (("estimate", "study.toml"), 2, "SOURCE"),
        (("estimate", "study.toml", "reports.csv", "--tol", "abc"), 2, "--tol"),
        (("estimate", "study.toml", "reports.csv", "--level", "95"), 2, "divide percentages by 100"),
        (("check", "study.toml", "reports.csv", "--level", "0"), 2, "level must be a probability between 0 and 1"),
        (("check", "study.toml", "reports.csv", "--share", "1"), 2, "share must be"),
        (("check", "study.toml", "reports.csv", "--fakes", "60%"), 2, "fakes must be"),
        (("estimate", "study.toml", "reports.csv", "--fakes", "few"), 2, "fakes must be"),
        (("estimate", "study.toml", "reports.csv", "--fakes", "1%", "--quick"), 2, "--quick computes no intervals"),
        (("check", "study.toml", "missing.csv"), 1, "no such file of reports"),
        (("report", "study.toml", "reports.csv", "-o", "page.pdf"), 2, "must end in .html"),
        (("report", "study.toml", "reports.csv", "-o", "nowhere/page.html"), 1, "cannot be written"),
        (("report", "study.toml", "reports.csv", "--method", "magic"), 2, "method must be"),
        (("report", "study.toml", "reports.csv", "--level", "95"), 2, "divide percentages by 100"),
        (("report", "study.toml"), 2, "SOURCE"),
        (("report", "study.toml", "page.html", "-o", "page.html"), 2, "would be written over"),
        (("new", "circles"), 2, "circles"),
        (("new", "grid", "-o", "study.toml"), 1, "there is a file already"),
        (("frobnicate",), 2, "frobnicate"),
    ],
)
def test_mistakes_exit_with_a_message_and_no_traceback(
    small: Path, arguments: tuple[str, ...], code: int, word: str
) -> None:
    done = run(*arguments, cwd=small)
    assert done.returncode == code
    assert done.stdout == ""
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_help_lists_the_commands_that_exist() -> None:
    done = run("--help", cwd=Path.cwd())
    assert done.returncode == 0
    names = ("demo", "new", "collect", "merge", "estimate", "check", "resolve", "audit", "plan", "privatize", "report")
    for name in names:
        assert f" {name} " in done.stdout
    assert " reproduce " in done.stdout
    assert run("--version", cwd=Path.cwd()).stdout == f"hubbub {hb.__version__}\n"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_shows_no_types(command: str) -> None:
    """Options show what stands for their value (FILE, N, NAME), and flags nothing: they take no value."""
    done = run(*filter(None, [command]), "--help", cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    for sign in ("<", "{", "list[", "bool"):
        assert sign not in done.stdout


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("new", "KIND"),
        ("privatize", "STUDY [VALUES]"),
        ("collect", "STUDY SOURCE..."),
        ("merge", "TALLY..."),
        ("estimate", "STUDY|TALLY [SOURCE]..."),
        ("plan", "STUDY"),
        ("reproduce", "[FIGURE]..."),
    ],
)
def test_usage_lines_read_as_the_documentation_does(command: str, usage: str) -> None:
    done = run(command, "--help", cwd=Path.cwd())
    assert f"Usage: hubbub {command} [OPTIONS] {usage}\n" in done.stdout


def test_demo_overwrites_nothing_but_its_own(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("mine")
    done = run("demo", "-o", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert "not its own" in done.stderr
    assert (tmp_path / "study.toml").read_text() == "mine"
    (tmp_path / "file").write_text("")
    assert run("demo", "-o", "file", cwd=tmp_path).returncode == 1


@pytest.mark.slow
def test_labels_are_shown_as_they_are(tmp_path: Path) -> None:
    labels = ["[bold]x[/bold]", ":smile:", "$5 to $10", "<script>", "back\\slash", "tab\there", "$x^$", "日本"]
    listed = ", ".join(json.dumps(label) for label in labels)
    (tmp_path / "study.toml").write_text(
        f'version = 1\n[domain]\nkind = "categories"\nlabels = [{listed}]\n'
        '[mechanisms.m]\nkind = "randomized-response"\nepsilon = 3.0\n'
    )
    with (tmp_path / "reports.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["output"], *([label] for label in labels)])
    done = run("estimate", "study.toml", "reports.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for label in labels:
        assert label.replace("\t", "\\t") in done.stdout
    drawn = run("estimate", "study.toml", "reports.csv", "-o", "out[v2].svg", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert "written: out[v2].svg" in drawn.stderr


def test_a_reader_that_leaves_early_is_no_error(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = demo
    asked = "estimate study.toml reports.csv --method ibu --quick"
    command = f"set -o pipefail; {sys.executable} -m hubbub.cli {asked} | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert done.returncode == 0
    assert done.stderr.strip() == ""
