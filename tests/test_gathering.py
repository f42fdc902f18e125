"""From rows to reports: users on disk and in memory, groups, what users spent."""

from __future__ import annotations

import csv
import json
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub.intake.counting import counted_reports, external_sort
from hubbub.intake.counting import pattern_merging as patterns
from hubbub.intake.counting.external_sort import check_memory
from hubbub.intake.counting.pattern_merging import Patterns
from hubbub.intake.counting.user_ids import user_ids
from hubbub.intake.privacy_loss_summary import epsilon_document, spending_lines, totals
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.reports.privacy_accounting import Spent
from strategies import examples
from terminal import hubbub

LINE = hb.Integers(0, 9)
STUDY = hb.Study(
    LINE,
    {
        "far": hb.Geometric(LINE, 0.5),
        "near": hb.TruncatedGeometric(LINE, 1.0),
        "bits": hb.Rappor(LINE, 2.0),
        "hash": hb.LocalHashing(LINE, 1.0),
    },
)
PLAIN = hb.Study(LINE, {"far": hb.Geometric(LINE, 0.5), "near": hb.TruncatedGeometric(LINE, 1.0)})


def simulate(study: hb.Study, rows: int, people: list[object], seed: int) -> tuple[pd.DataFrame, hb.Reports]:
    """Return rows of users who sent several outputs each, and the reports they are, made another way."""
    rng = np.random.default_rng(seed)
    table: list[tuple[object, str, str]] = []
    users: dict[int, list[tuple[hb.Mechanism, object]]] = {}
    for label, mechanism in study.mechanisms.items():
        outputs = mechanism.privatize(rng.integers(0, 10, rows), rng=rng)
        for place, output in zip(rng.integers(0, len(people), rows).tolist(), outputs, strict=True):
            table.append((people[place], label, mechanism.output_space.write(output)))
            users.setdefault(place, []).append((mechanism, output))
    order = rng.permutation(len(table))
    frame = pd.DataFrame([table[place] for place in order], columns=["user", "mechanism", "output"])
    return frame, hb.Reports.from_users(list(users.values()))


PEOPLE: dict[str, list[object]] = {
    "numbers": list(range(-40, 40)),
    "wide numbers": [2**62 - 7 * k if k % 2 else -(2**62) + 5 * k for k in range(80)],
    "names": [f"person {k}" for k in range(80)],
    "numbers and names": [str(k) if k % 3 else f"n{k}" for k in range(80)],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("people", PEOPLE.values(), ids=PEOPLE)
@pytest.mark.parametrize("study", [PLAIN, STUDY], ids=["merging", "packed too"])
@pytest.mark.parametrize("on_disk", [False, True], ids=["in memory", "in the database"])
def test_users_give_what_python_gives(
    study: hb.Study, people: list[object], on_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether rows stay in memory or go to the database, and in however many parts they are sorted."""
    if on_disk:
        monkeypatch.setattr(external_sort, "MEMORY_PARTS", 10**6)  # 200 bytes: 8 rows at a time
    frame, expected = simulate(study, 150, people, seed=len(people))
    assert hb.read_reports(frame, study, memory="200MB") == expected


def test_users_above_the_limit_are_rejected_on_disk_and_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"user": [1, 2, 1, 1, 3, "x", "x", "x"], "output": [str(k) for k in range(8)]})
    study = hb.Study(LINE, {"near": hb.TruncatedGeometric(LINE, 1.0)}, max_reports_per_user=2)
    for part in (8, 10**6):
        monkeypatch.setattr(external_sort, "MEMORY_PARTS", part)
        reports = hb.read_reports(frame, study, allow_rejects=6, memory="200MB")
        assert reports.users == 2
        with pytest.raises(hb.IntakeError, match="a user sent more"):
            hb.read_reports(frame, study, allow_rejects=0, memory="200MB")


@examples(60)
@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=60),
    st.sampled_from([6, 10**5, 2**40]),
)
def test_patterns_are_counted(users: list[list[int]], base: int) -> None:
    """Rows that are one number, and rows that are too long for one, merge alike; in one go or in several."""
    found = Patterns(6)
    found._base = base  # how large items could be says how rows are compared
    found.singles = np.zeros(min(base, 6), dtype=np.int64)
    items = [item for user in users for item in sorted(user)]
    cut = len(users) // 2
    for part in (users[:cut], users[cut:]):
        if part:
            flat = np.array([item for user in part for item in sorted(user)])
            if base > 6:
                part, flat = _without_singles(part)
            if len(part):
                found.add(flat, np.array([len(user) for user in part]))
                list(found.patterns())
    expected = Counter(tuple(sorted(user)) for user in users if len(user) > 1)
    rows = {
        tuple(row): int(count)
        for some, counts in found.patterns()
        for row, count in zip(some.tolist(), counts, strict=True)
    }
    assert rows == expected
    assert len(items) == sum(map(len, users))


def _without_singles(users: list[list[int]]) -> tuple[list[list[int]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    several = [user for user in users if len(user) > 1]
    return several, np.array([item for user in several for item in sorted(user)], dtype=np.int64)


def test_many_patterns_are_merged_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_WAITING_PATTERNS", 3)
    found = Patterns(4)
    for _ in range(5):
        found.add(np.array([0, 1, 0, 1, 2, 3]), np.array([2, 2, 2]))
    ((rows, counts),) = found.patterns()
    assert (rows.tolist(), counts.tolist()) == ([[0, 1], [2, 3]], [10, 5])


def test_rows_of_numbers_are_indexed_alike_whatever_their_size() -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 3, (500, 3))
    small, back = index_codes(rows)
    assert (small[back] == rows).all()
    assert len(small) == len({tuple(row) for row in rows.tolist()})
    assert (np.diff(small @ [9, 3, 1]) > 0).all()
    large, back = index_codes(rows + 2**40)
    assert (large[back] == rows + 2**40).all()
    assert len(large) == len(small)


@pytest.mark.parametrize(
    ("column", "same"),
    [
        (pa.array(["7", "7.0", "07", "+7", " 7", "7", "7.00"]), {(1, 0), (5, 0), (5, 1)}),
        (pa.array([7.0, 7.5, 7.0, 8.0]), {(2, 0)}),
        (pa.array([b"\x07", b"\x08", b"\x07"]), {(2, 0)}),
        (pa.array([True, False, True]), {(2, 0)}),
        (pa.array([2**63, 2**63 + 1, 2**63], pa.uint64()), {(2, 0)}),
        (pa.array(["-7", "-0", "0", "-7"]), {(3, 0)}),
        (pa.array(["a", "a", "b"]).dictionary_encode(), {(1, 0)}),
    ],
)
def test_who_is_who(column: pa.Array, same: set[tuple[int, int]]) -> None:
    """Rows of the same user, and no others, are found to be so."""
    people = user_ids(pa.chunked_array([column]))
    names = [
        int(people.numbers[row]) if people.numbered[row] else people.names[row].as_py()  # type: ignore[index]
        for row in range(len(column))
    ]
    pairs = {(a, b) for a in range(len(names)) for b in range(a) if names[a] == names[b]}
    assert pairs == same
    assert not people.missing.any()


@pytest.mark.parametrize(("text", "size"), [("4GB", 4 * 10**9), ("800MiB", 800 * 2**20), (" 1.5 gb", 15 * 10**8)])
def test_sizes_of_memory(text: str, size: int) -> None:
    assert check_memory(text) == size


@pytest.mark.parametrize("text", ["4", "lots", "1MB", "-4GB", "", 4])
def test_what_is_no_size_of_memory_is_refused(text: object) -> None:
    with pytest.raises(hb.SettingError, match="memory must be a size"):
        hb.read_reports(pd.DataFrame({"mechanism": ["far"], "output": [1]}), PLAIN, memory=text)  # type: ignore[arg-type]


# -- what users spent ------------------------------------------------------------------------------------


def test_totals_of_epsilon_are_those_of_users() -> None:
    """Quantiles are of users, plain and per unit apart, and the smallest totals that reach the share."""
    frame, reports = simulate(STUDY, 60, list(range(70)), seed=1)
    found = hb.read_reports(frame, STUDY)
    assert found == reports
    sums: dict[object, list[float]] = {}
    for user, label in zip(frame["user"], frame["mechanism"], strict=True):
        mechanism = STUDY.mechanisms[label]
        sums.setdefault(user, [0.0, 0.0])[mechanism.metric] += mechanism.epsilon
    from hubbub.intake.counting.counted_reports import spent_by

    spent = spent_by(STUDY, found.blocks, {})
    assert sum(spent.values()) == len(sums)
    for kind, total in enumerate(totals(spent, STUDY)):
        own = np.sort([user[kind] for user in sums.values()])
        assert total.largest == pytest.approx(own[-1])
        for share, value in total.quantiles.items():
            assert value == pytest.approx(np.quantile(own, share, method="inverted_cdf"))
    document = epsilon_document(spent, STUDY, users_named=True)
    assert (document["ldp"], document["per_unit"]) == pytest.approx(reports.epsilon_per_user())


def test_a_limit_is_warned_of_and_unbounded_is_said() -> None:
    study = hb.Study(LINE, {"near": hb.TruncatedGeometric(LINE, 1.0)}, max_epsilon_per_unit=1.5)
    spent = {Spent(0.0, 1.0): 7, Spent(0.0, 2.0): 2, Spent(0.0, 3.0): 1}
    lines = spending_lines(spent, study, users_named=True)
    assert lines[1] == "warning: 3 users spent more than the study's limit of 1.5 per unit"
    assert epsilon_document(spent, study, users_named=True)["users_above_limit"] == 3
    assert epsilon_document(spent, PLAIN, users_named=True)["users_above_limit"] is None
    open_ended = {Spent(np.inf, 0.0): 1}
    assert "unbounded" in spending_lines(open_ended, PLAIN, users_named=True)[0]
    assert epsilon_document(open_ended, PLAIN, users_named=True)["ldp"] is None


# -- groups ----------------------------------------------------------------------------------------------


def run(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return hubbub(*words, cwd=folder)


@pytest.fixture
def regions(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "integers"\nlow = 0\nhigh = 4\n'
        '[mechanisms.only]\nkind = "truncated-geometric"\nepsilon = 1.0\n'
    )
    rows = [(f"u{k % 40}", k % 5, "north" if k % 3 else "south") for k in range(120)]
    with (tmp_path / "reports.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("user", "output", "region"), *rows, ("v", 1, ""), ("w", 9, "north")])
    return tmp_path


def test_groups_are_estimated_apart(regions: Path) -> None:
    words = ["estimate", "study.toml", "reports.csv", "--by", "region", "--method", "mle", "--quick"]
    refused = run(regions, *words, "--json")
    assert refused.returncode == 1
    assert "no-group" in refused.stderr
    assert "out-of-domain" in refused.stderr
    done = run(regions, *words, "--json", "--allow-rejects", "2", "--rejects", "r.csv")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["by"] == "region"
    study = hb.read_study(regions / "study.toml")
    frame = pd.read_csv(regions / "reports.csv", dtype=str).iloc[:-2]
    assert [one["group"] for one in document["groups"]] == ["north", "south"]
    for one in document["groups"]:
        own = frame[frame["region"] == one["group"]].drop(columns="region")
        alone = hb.estimate(hb.read_reports(own, study), method="mle")
        assert one["users"] == alone.users
        assert [entry["probability"] for entry in one["estimate"]] == pytest.approx(list(alone.probabilities))
        assert one["rejected"] == (one["group"] == "north")
    assert (regions / "r.csv").read_text().count("\n") == 3


@pytest.mark.slow
def test_groups_as_a_table_and_on_the_screen(regions: Path) -> None:
    words = ["estimate", "study.toml", "reports.csv", "--by", "region", "--method", "mle", "--quick"]
    assert run(regions, *words, "--allow-rejects", "2%", "-o", "groups.csv").returncode == 0
    with (regions / "groups.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert Counter(line["group"] for line in lines) == {"north": 5, "south": 5}
    shown = run(regions, *words, "--allow-rejects", "2")
    assert "region north" in shown.stdout
    assert run(regions, *words, "--allow-rejects", "2", "-o", "groups.png").returncode == 2
    missing = run(regions, "estimate", "study.toml", "reports.csv", "--by", "country")
    assert missing.returncode == 1
    assert "no-column" in missing.stderr


# -- tallies at the terminal -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_tally_is_estimated_and_checked_alone(regions: Path) -> None:
    collected = run(regions, "collect", "study.toml", "reports.csv", "-o", "t.tally.parquet", "--allow-rejects", "1%")
    assert collected.returncode == 0, collected.stderr
    assert "41 users from 121 rows, 1 row rejected" in collected.stdout
    assert "out-of-domain" in collected.stdout
    assert (regions / "t.rejects.csv").exists()
    again = run(regions, "collect", "study.toml", "reports.csv", "-o", "t.tally.parquet", "--json")
    assert json.loads(again.stdout)["skipped"] == ["reports.csv"]
    words = ["--method", "mle", "--quick", "--json"]
    from_tally = json.loads(run(regions, "estimate", "t.tally.parquet", *words).stdout)
    direct = json.loads(run(regions, "estimate", "study.toml", "reports.csv", "--allow-rejects", "1", *words).stdout)
    assert {from_tally.pop("dates")["last"], direct.pop("dates")["last"]} == {None}  # nothing says it
    assert (from_tally.pop("notes"), direct.pop("notes")) == ([], ["reports.csv: column region is not used"])
    assert from_tally == direct
    assert from_tally["rejected"] == 1
    assert run(regions, "check", "t.tally.parquet", "--json").returncode == 0
    both = run(regions, "estimate", "t.tally.parquet", "reports.csv")
    assert both.returncode == 2
    assert "a tally cannot be combined with other inputs" in both.stderr


def test_one_name_for_everybody_is_no_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tally could not be read back; and nobody sends so much."""
    monkeypatch.setattr(counted_reports, "MAX_OUTPUTS_PER_USER", 50)
    frame = pd.DataFrame({"user": ["all"] * 60, "mechanism": "near", "output": "3"})
    with pytest.raises(hb.IntakeError, match="more outputs than hubbub can count"):
        hb.read_reports(frame, PLAIN)
