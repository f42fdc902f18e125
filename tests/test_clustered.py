"""Reading on a cluster of real processes: the same tallies, the same rejected rows, whoever is lost on the way."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import hubbub as hb
from clusters import PATIENCE, Cluster
from hubbub.cluster import connect
from hubbub.core.progress import finish
from hubbub.intake import cluster_reading as clustered
from hubbub.intake.study_input import read_input
from hubbub.intake.tallies import tally_writing as writing
from hubbub.intake.tallies.tally_reading import parts_of
from terminal import hubbub

Client = Any  # distributed comes with few types

STUDY = """\
version = 1
max_reports_per_user = 12
[domain]
kind = "integers"
low = 0
high = 9
[mechanisms.noise]
kind = "geometric"
epsilon = 0.4
[mechanisms.bits]
kind = "rappor"
epsilon = 2.0
[mechanisms.hash]
kind = "local-hashing"
epsilon = 1.0
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[Client]:
    with connect(cluster.address, timeout=PATIENCE) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of 300 users, numbers and names, over four files; the same rows without users; files with bad rows."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "study.toml").write_text(STUDY)
    study = hb.read_study(folder / "study.toml")
    rng = np.random.default_rng(7)
    rows = []
    for name, mechanism in study.mechanisms.items():
        outputs = mechanism.privatize(rng.binomial(9, 0.3, 400), rng=rng)
        for user, output in zip(rng.integers(0, 300, 400).tolist(), outputs, strict=True):
            rows.append((str(user) if user % 3 else f"n{user}", name, mechanism.output_space.write(output)))
    rng.shuffle(rows)
    for number in range(4):
        users, names, texts = zip(*rows[number::4], strict=True)
        table = pa.table({"user": users, "mechanism": names, "output": texts})
        parquet.write_table(table, folder / f"users-{number}.parquet", row_group_size=100)
        write(folder / f"rows-{number}.csv", ["mechanism", "output"], zip(names, texts, strict=True))
    bad = [*rows[:20], ("ann", "noise", "1e3"), ("bob", "nosie", "3"), ("", "noise", "3")]
    write(folder / "bad-0.csv", ["user", "mechanism", "output"], bad)
    write(folder / "bad-1.csv", ["user", "mechanism", "output"], [("eve", "noise", str(k)) for k in range(13)])
    return folder


def write(path: Path, header: list[str], rows: Any) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:rows do not say who sent them")
@pytest.mark.parametrize("files", ["users-*.parquet", "rows-*.csv"])
def test_a_tally_is_the_same_to_the_last_byte(client: Client, folder: Path, tmp_path: Path, files: str) -> None:
    study = hb.read_study(folder / "study.toml")
    here = hb.collect(study, str(folder / files), tmp_path / "here.tally.parquet")
    there = hb.collect(study, str(folder / files), tmp_path / "there.tally.parquet", cluster=client)
    assert here.path.read_bytes() == there.path.read_bytes()
    assert there.reports == hb.read_reports(str(folder / files), study)


@pytest.mark.slow
def test_large_files_are_read_in_parts(
    client: Client, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clustered, "PART_BYTES", 1)
    study = hb.read_study(folder / "study.toml")
    source = str(folder / "users-*.parquet")
    scattered = hb.scatter_reports(source, study, client)
    assert scattered.merged() == hb.read_reports(source, study)
    here = hb.collect(study, source, tmp_path / "here.tally.parquet")
    there = hb.collect(study, source, tmp_path / "there.tally.parquet", cluster=client)
    assert here.path.read_bytes() == there.path.read_bytes()


def test_rejected_rows_are_the_same(client: Client, folder: Path, tmp_path: Path) -> None:
    study = hb.read_study(folder / "study.toml")
    listed = []
    for name, where in (("here", None), ("there", client)):
        hb.collect(
            study,
            str(folder / "bad-*.csv"),
            tmp_path / f"{name}.tally.parquet",
            allow_rejects="90%",
            rejects=tmp_path / f"{name}.csv",
            cluster=where,
        )
        with (tmp_path / f"{name}.csv").open() as file:
            listed.append(sorted(csv.reader(file)))
    assert listed[0] == listed[1]
    assert len(listed[0]) == 1 + 3 + 13  # a header, three bad rows, and all rows of a user above the limit
    assert (tmp_path / "here.tally.parquet").read_bytes() == (tmp_path / "there.tally.parquet").read_bytes()
    with pytest.raises(hb.IntakeError) as caught:
        hb.scatter_reports(str(folder / "bad-*.csv"), study, client)
    assert caught.value.code == "rejected-rows"


def test_estimates_where_reports_stay_are_those_of_one_machine(client: Client, folder: Path) -> None:
    study = hb.read_study(folder / "study.toml")
    source = str(folder / "users-*.parquet")
    there = hb.estimate(hb.scatter_reports(source, study, client), "mle", tol=1e-8)
    here = hb.estimate(hb.read_reports(source, study), "mle", tol=1e-8, solver="accelerated em")
    np.testing.assert_allclose(there.probabilities, here.probabilities, rtol=0, atol=1e-10)
    assert there.gap <= 1e-8
    assert there.users == here.users


@pytest.mark.slow
def test_a_worker_killed_while_rows_are_read_is_survived(folder: Path, tmp_path: Path) -> None:
    study = hb.read_study(folder / "study.toml")
    here = hb.collect(study, str(folder / "users-*.parquet"), tmp_path / "here.tally.parquet")
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster") as mortal, connect(mortal.address, timeout=PATIENCE) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        killed = False

        def kill_once(stage: object) -> None:
            nonlocal killed
            if not killed and "buckets" in str(stage):  # parts were read, and lie on both workers
                mortal.kill(next(iter(client.scheduler_info()["workers"])), client)
                killed = True

        run = hb.collect.steps(study, str(folder / "users-*.parquet"), tmp_path / "there.tally.parquet", cluster=client)
        finish(run, kill_once)
        assert killed, mortal.log()
        assert len(client.scheduler_info()["workers"]) == 1
    assert here.path.read_bytes() == (tmp_path / "there.tally.parquet").read_bytes()


@pytest.mark.slow
def test_the_terminal_and_a_cluster(cluster: Cluster, client: Client, folder: Path, tmp_path: Path) -> None:
    words = ["estimate", "study.toml", "users-0.parquet", "users-1.parquet", "--method", "mle", "--quick", "--json"]
    found = [hubbub(*words, *more, cwd=folder) for more in ([], ["--cluster", cluster.address])]
    here, there = (json.loads(one.stdout) for one in found)
    assert here["users"] == there["users"]
    assert here["epsilon_per_user"] == there["epsilon_per_user"]
    shares = [[entry["probability"] for entry in one["estimate"]] for one in (here, there)]
    np.testing.assert_allclose(shares[0], shares[1], rtol=0, atol=1e-6)
    target = tmp_path / "x.tally.parquet"
    done = hubbub("collect", "study.toml", "rows-0.csv", "-o", target, "--cluster", cluster.address, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "300 users from 300 rows, 0 rows rejected" in done.stdout


def test_a_tally_is_estimated_where_it_is_read(
    client: Client, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP_ROWS", 10)  # rows of a row group: patterns go on from one to the next
    monkeypatch.setattr(clustered, "MAX_MERGED_PATTERNS", 0)
    study = hb.read_study(folder / "study.toml")
    tally = hb.collect(study, str(folder / "users-*.parquet"), tmp_path / "t.tally.parquet")
    assert len(parts_of(tally)) > 1
    given = read_input(tally.path, [], cluster=client)
    assert isinstance(given.reports, hb.ClusterReports)
    assert given.reports.parts == len(parts_of(tally))
    assert given.reports.merged() == tally.reports
    rows = parquet.read_table(tally.path).slice(0, 150)
    parquet.write_table(rows.replace_schema_metadata(parquet.read_metadata(tally.path).metadata), tmp_path / "cut")
    (tmp_path / "cut").rename(tmp_path / "cut.tally.parquet")
    with pytest.raises(hb.IntakeError) as caught:
        read_input(tmp_path / "cut.tally.parquet", [], cluster=client)
    assert caught.value.code == "damaged-tally"


def test_a_table_in_memory_cannot_be_read_by_workers(client: Client, folder: Path) -> None:
    study = hb.read_study(folder / "study.toml")
    table = pa.table({"mechanism": ["noise"], "output": ["1"]})
    with pytest.raises(hb.IntakeError) as caught:
        hb.scatter_reports(table, study, client)
    assert caught.value.code == "not-a-source"


def test_workers_read_columns_under_other_names(client: Client, tmp_path: Path) -> None:
    digits = hb.Integers(0, 9)
    study = hb.Study(digits, {"light": hb.TruncatedGeometric(digits, 0.5)})
    for place in range(2):
        (tmp_path / f"{place}.csv").write_text(f"who,what,town\na,3,x\nb{place},4,x\n")
    with pytest.warns(hb.HubbubWarning, match="column town is not used"):
        there = hb.scatter_reports(str(tmp_path / "*.csv"), study, client, user_column="who", output_column="what")
    assert there.users == 3
    with pytest.raises(hb.IntakeError, match="there is no column whom"):
        hb.scatter_reports(str(tmp_path / "*.csv"), study, client, user_column="whom", output_column="what")
