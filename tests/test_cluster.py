"""Estimation on a cluster of real processes: the same answers, also after losses, and little data that travels."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from clusters import PATIENCE, Cluster, received_everywhere
from hubbub.cluster import ClusterReports, can_merge, connect, merge
from hubbub.core.progress import finish
from hubbub.estimators import estimate
from hubbub.solvers import SolverProgress, loop
from parts import HASHING, KINDS, RAPPOR, VALUES, crooked, part

Client = Any  # distributed comes with few types


def joined(cluster: Cluster, workers: int) -> Client:
    client: Client = connect(cluster.address, timeout=PATIENCE)
    client.wait_for_workers(workers, timeout=PATIENCE)
    return client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A cluster of two workers that all live to the end."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster, joined(cluster, 2) as client:
        yield client


def loaded(client: Client, kind: str, parts: int = 5, **keywords: Any) -> ClusterReports:
    return ClusterReports.from_tasks(client, partial(part, kind), range(parts), **keywords)


def together(kind: str, parts: int = 5) -> hb.Reports:
    return reduce(add, [part(kind, number) for number in range(parts)])


# -- the same answers ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_estimates_equal_those_of_one_machine(client: Client, kind: str) -> None:
    scattered, one = loaded(client, kind), together(kind)
    assert repr(scattered) == "ClusterReports(750 users, 5 parts)"
    keywords: dict[str, dict[str, Any]] = {
        "ibu": {"max_iter": 12, "delta": 1e-9},
        "mle": {"max_iter": 5, "tol": 1e-4, "solver": "accelerated em"},
    }
    # An extrapolation over 2,000 steps, as sums of bits ask for, makes rounding 4 million times larger.
    close = 1e-8 if kind == "sums" else 1e-10
    for method, own in keywords.items():
        there, here = hb.estimate(scattered, method, **own), hb.estimate(one, method, **own)
        np.testing.assert_allclose(there.probabilities, here.probabilities, rtol=0, atol=close)
        assert there.log_likelihood == pytest.approx(here.log_likelihood, rel=1e-12)
        assert there.gap == pytest.approx(here.gap, rel=1e-5, abs=1e-12)
        assert (there.status, there.iterations, there.users) == (here.status, here.iterations, here.users)
        assert dict(there.settings) == {**here.settings, "parts": 5}


def test_value_and_certificate_equal_those_of_one_machine(client: Client) -> None:
    scattered, one = loaded(client, "mixed"), together("mixed")
    theta = np.random.default_rng(0).dirichlet(np.ones(len(VALUES)))
    assert hb.log_likelihood(scattered, theta) == pytest.approx(hb.log_likelihood(one, theta), rel=1e-13)
    assert hb.optimality_gap(scattered, theta) == pytest.approx(hb.optimality_gap(one, theta), rel=1e-12)


def test_smoothing_works_on_a_cluster(client: Client) -> None:
    there = hb.estimate(loaded(client, "unary"), "ems", max_iter=10, delta=1e-9)
    here = hb.estimate(together("unary"), "ems", max_iter=10, delta=1e-9)
    np.testing.assert_allclose(there.probabilities, here.probabilities, rtol=0, atol=1e-12)


def test_the_certified_maximum(client: Client) -> None:
    """A certificate made on the cluster holds on one machine."""
    answer = hb.estimate(loaded(client, "matrix", 2), "mle", tol=1e-7)
    assert answer.status.startswith("solved; gap")
    assert hb.optimality_gap(together("matrix", 2), answer.probabilities) <= 1e-7


def test_progress_is_yielded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "PROGRESS_SECONDS", 0.0)
    run = estimate.steps(loaded(client, "unary", 2), "ibu", max_iter=3, delta=1e-9)
    assert [step.iteration for step in run if isinstance(step, SolverProgress)] == [1, 2, 3]


def test_parts_may_come_from_any_tasks(client: Client) -> None:
    futures = [client.submit(part, "matrix", number, pure=False) for number in range(3)]
    scattered = ClusterReports(client, futures)
    del futures  # their reports stay with the parts
    assert (scattered.users, scattered.domain, scattered.approximate) == (450, VALUES, False)
    assert scattered.merged() == together("matrix", 3)
    assert loaded(client, "sums", 2).approximate


# -- what stays, what travels ----------------------------------------------------------------------------


def kept(part: Any) -> bool:
    return "likelihood" in vars(part)


def tasks_of(dask_scheduler: Any) -> int:
    return len(dask_scheduler.tasks)


def test_parts_stay_with_their_channels_and_nothing_else_does(client: Client) -> None:
    before = client.run_on_scheduler(tasks_of)
    scattered = loaded(client, "rappor", 6)
    places = client.who_has(scattered._held)
    assert len({place for (place,) in places.values()}) == 2, "both workers hold parts, each part has one place"
    hb.estimate(scattered, "mle", max_iter=5, tol=1e-14)
    assert client.who_has(scattered._held) == places
    for held in scattered._held:
        assert client.submit(kept, held, workers=places[held.key], pure=False).result()
    until = time.monotonic() + PATIENCE
    while client.run_on_scheduler(tasks_of) > before + 6 and time.monotonic() < until:
        time.sleep(0.05)
    assert client.run_on_scheduler(tasks_of) <= before + 6


def bytes_per_evaluation(client: Client, users: int) -> tuple[float, int]:
    """Return what travels for one evaluation, and the bytes of all parts' patterns."""
    kinds = partial(part, "rappor", users=users)
    scattered = ClusterReports.from_tasks(client, kinds, range(4))
    theta, times = np.full(len(VALUES), 1 / len(VALUES)), 8
    scattered.evaluate(theta)
    before = received_everywhere(client)
    received_everywhere(client)
    asking = received_everywhere(client)
    for _ in range(times):
        scattered.evaluate(theta)
    travelled = received_everywhere(client) - asking - (asking - before) / 2
    return travelled / times, 4 * users * (len(VALUES) // 8 + 8)


def test_what_travels_does_not_depend_on_the_number_of_reports(client: Client) -> None:
    (few, small), (many, large) = (bytes_per_evaluation(client, users) for users in (1_000, 20_000))
    assert large == 20 * small
    assert many < 1.25 * few, (few, many)
    assert many < large / 20, "one part is a quarter of that"


# -- losses ----------------------------------------------------------------------------------------------


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, workers=2) as cluster:
        yield cluster


def test_a_lost_worker_changes_nothing_and_a_lost_scheduler_is_an_error(
    mortal: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "PROGRESS_SECONDS", 0.0)
    client = joined(mortal, 2)
    try:
        scattered = loaded(client, "hashing", 6)
        whole = hb.estimate(scattered, "mle", max_iter=4, tol=1e-14)
        run = estimate.steps(scattered, "mle", max_iter=4, tol=1e-14)
        next(run)
        next(run)
        home = client.who_has(scattered._held[:1])[scattered._held[0].key][0]
        mortal.kill(home, client)
        answer = finish(run)
        assert answer.probabilities.tolist() == whole.probabilities.tolist(), "to the last bit"
        assert (answer.log_likelihood, answer.gap) == (whole.log_likelihood, whole.gap)
        left = {place for places in client.who_has(scattered._held).values() for place in places}
        assert len(left) == 1
        assert home not in left
        one = hb.estimate(together("hashing", 6), "mle", max_iter=4, tol=1e-14, solver="accelerated em")
        np.testing.assert_allclose(answer.probabilities, one.probabilities, rtol=0, atol=1e-10)
        mortal.scheduler.kill()
        with pytest.raises(hb.ClusterError, match="connection to the scheduler is lost"):
            hb.estimate(scattered, "ibu")
    finally:
        client.close(timeout=1)
    with pytest.raises(hb.ClusterError, match="connection to the scheduler is lost"):
        hb.log_likelihood(scattered, np.full(len(VALUES), 1 / len(VALUES)))
    with pytest.raises(hb.ClusterError, match="the client has no connection"):
        loaded(client, "unary")


@pytest.mark.slow
def test_without_any_worker_there_is_an_error_and_with_a_new_one_it_goes_on(mortal: Cluster) -> None:
    theta = np.full(len(VALUES), 1 / len(VALUES))
    with joined(mortal, 2) as client:
        scattered = loaded(client, "unary", 3, patience=1.0)
        value = scattered.evaluate(theta).log_likelihood
        sent = client.scatter([part("unary", 0)], direct=False)
        without_source = ClusterReports(client, sent, patience=PATIENCE)
        for address in list(client.nthreads()):
            mortal.kill(address, client)
        started = time.monotonic()
        with pytest.raises(hb.ClusterError, match="all workers are gone") as caught:
            hb.estimate(scattered, "ibu")
        assert 1.0 <= time.monotonic() - started < 20.0
        assert caught.value.got == "no worker for 1 seconds"
        mortal.add()
        client.wait_for_workers(1, timeout=PATIENCE)
        assert scattered.evaluate(theta).log_likelihood == value
        with pytest.raises(hb.ClusterError, match="cannot be computed again"):
            hb.estimate(without_source, "ibu")


# -- what goes wrong -------------------------------------------------------------------------------------


def text(number: Any) -> Any:
    return str(number)


def broken(number: int) -> hb.Reports:
    raise OSError(f"no file for part {number}")


def test_an_error_in_a_load_is_shown_with_its_cause(client: Client) -> None:
    with pytest.raises(hb.ClusterError, match="a task failed on the cluster") as caught:
        ClusterReports.from_tasks(client, broken, range(2))
    assert isinstance(caught.value.__cause__, OSError)
    assert "no file for part" in caught.value.got
    with pytest.raises(hb.ReportsError, match="a part must be reports") as wrong:
        ClusterReports.from_tasks(client, text, [7])
    assert (wrong.value.where, wrong.value.got) == ("text(7)", "'7'")
    with pytest.raises(hb.ReportsError, match="there are no parts"):
        ClusterReports.from_tasks(client, text, [])
    with pytest.raises(hb.ClusterError, match="a part is not on the cluster"):
        ClusterReports(client, [together("unary", 1)])  # type: ignore[list-item]


def of_any_domain(size: int) -> hb.Reports:
    return hb.Reports.from_counts(hb.RandomizedResponse(hb.Integers(1, size), 1.0), [1] * size)


def test_domains_must_agree(client: Client) -> None:
    with pytest.raises(hb.ReportsError, match="different domains") as caught:
        ClusterReports.from_tasks(client, of_any_domain, [3, 3, 4])
    assert caught.value.where == "ClusterReports(parts), part 2"


def test_what_needs_the_reports_says_so(client: Client) -> None:
    with pytest.raises(hb.SettingError, match="'auto' needs the reports in one process"):
        hb.estimate(loaded(client, "unary", 1))


def test_versions_must_agree(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    again: Client = connect(client)
    assert again is client
    answer = client.get_versions(packages=["hubbub"])
    worker = max(answer["workers"])
    answer["workers"][worker]["packages"]["hubbub"] = None
    monkeypatch.setattr(client, "get_versions", lambda packages: answer)
    with pytest.raises(hb.ClusterError, match="versions differ") as caught:
        connect(client)
    assert caught.value.where == f"the worker at {worker}"
    assert caught.value.got.endswith(", hubbub not installed")
    assert caught.value.expected.endswith(f", hubbub {hb.__version__}, as here")


def test_a_cluster_without_workers(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path, workers=0) as cluster,
        pytest.raises(hb.ClusterError, match="the cluster has no workers") as caught,
    ):
        connect(cluster.address, timeout=0.3)
    assert caught.value.got == "none within 0.3 seconds"


def test_a_program_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(hb.ClusterError, match="is not a Dask scheduler") as caught:
            connect(f"127.0.0.1:{port}", timeout=0.2)
        assert caught.value.got == "no greeting within 0.2 seconds"


def test_another_program_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        said = pool.submit(lambda: server.accept()[0])
        pool.submit(lambda: said.result().sendall(b"SSH-2.0-other"))
        with pytest.raises(hb.ClusterError, match="is not a Dask scheduler") as caught:
            connect("tcp://{}:{}".format(*server.getsockname()), timeout=5)
        said.result().close()
        assert caught.value.got == "a greeting that begins with b'SSH-2.0-'"


# -- merging ---------------------------------------------------------------------------------------------


def test_reports_are_merged_on_the_cluster(client: Client) -> None:
    futures = [client.submit(part, "matrix", number, pure=False) for number in range(20)]
    assert merge(client, futures) == together("matrix", 20)


def test_which_reports_merge() -> None:
    line = hb.TruncatedGeometric(VALUES, 0.5)
    assert can_merge([line])
    assert can_merge([line, crooked()], 3)
    assert not can_merge([line, crooked()], 10)
    assert can_merge([hb.Geometric(VALUES, 0.5)])
    assert can_merge([hb.PlanarGeometric(hb.Grid(9, 9), 0.5, truncated=False)])
    assert not can_merge([hb.Geometric(VALUES, 0.5)], 2)
    assert not can_merge([line, RAPPOR])
    assert not can_merge([HASHING])
    assert can_merge([hb.Rappor(hb.Integers(0, 9), 1.0)])
    assert not can_merge([hb.RandomizedResponse(hb.Integers(1, 2_000_000), 1.0)])


# -- the page --------------------------------------------------------------------------------------------


def test_the_examples_of_the_page_run(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parent.parent / "docs" / "how-to" / "cluster.md").read_text()
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    assert "tcp://10.0.0.1:8786" in code
    monkeypatch.chdir(tmp_path)
    page = compile(code.replace("tcp://10.0.0.1:8786", client.scheduler.address), "cluster.md", "exec")
    exec(page, {"__name__": "__main__"})  # noqa: S102
