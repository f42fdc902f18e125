"""The collector under load: durable reports a second, how long answers take, and memory.

Rows tell the load average of the machine before the collector was started: what others did takes its share.

Run: python benchmarks/serve.py [--reports 1000000] [--seconds 20] [--only SQLite]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop

from hubbub.serve.sqlite_store import CACHE_KIB
from measure import row, save_merged

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from collectors import (  # type: ignore[import-not-found]
    STUDY,
    Load,
    RunningCollector,
    encoded_request,
    report,
    run_load,
)
from servers import Installed, packaged_programs  # type: ignore[import-not-found]

CONNECTIONS, BATCH, BATCH_CONNECTIONS = 64, 5_000, 8
PREPARED_BATCHES = (40, 200)  # requests are made before the clock runs; the longer the table, the larger its index


@contextmanager
def databases(folder: Path, only: str | None) -> Iterator[dict[str, str]]:
    """Give the addresses of databases by their names, and stop the server at the end."""
    found = {"SQLite": f"sqlite:///{folder}/reports.db"}
    server = None
    if only != "SQLite":
        server = Installed(packaged_programs())
        found["PostgreSQL"] = f"{server.get_uri('postgres')}#reports"
    try:
        yield {name: address for name, address in found.items() if only in (None, name)}
    finally:
        if server is not None:
            server.cleanup()


def singles(fingerprint: str, count: int) -> list[tuple[list[str], bytes]]:
    """Return requests of one report each."""
    return [encoded_request(fingerprint, [report(str(place % 8))]) for place in range(count)]


def batches(fingerprint: str) -> Iterator[tuple[list[str], bytes]]:
    """Yield requests of many reports each, for ever."""
    while True:
        yield encoded_request(fingerprint, [report(str(place % 8)) for place in range(BATCH)])


def quantile(load: Load, share: float) -> float:
    """Return how many milliseconds a share of the answers took at most."""
    times = sorted(load.latencies)
    return 1000 * float(times[min(len(times) - 1, int(share * len(times)))])


def cpu_seconds(collector: RunningCollector) -> float:
    """Return the processor time that a collector has taken."""
    fields = Path(f"/proc/{collector.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name: str, address: str, study: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of one database."""
    rows, busy = [], f"others' load {os.getloadavg()[0]:.1f}"
    collector = RunningCollector(study, address)
    fingerprint = collector.study.fingerprint
    run_load(collector.port, singles(fingerprint, 500), CONNECTIONS, run=uvloop.run)
    rate = 500
    for _ in range(2):  # a short run says how many requests the long one needs
        used, requests = cpu_seconds(collector), singles(fingerprint, max(500, rate))
        load = run_load(collector.port, requests, CONNECTIONS, run=uvloop.run)
        rate = int(options.seconds * len(load.latencies) / load.seconds)
    per_second, late = len(load.latencies) / load.seconds, quantile(load, 0.99)
    used = (cpu_seconds(collector) - used) / len(load.latencies)
    fine = set(load.statuses) == {200}
    what = f"single reports, {CONNECTIONS} connections, {len(load.latencies):,} requests; {busy}"
    reached = f"{per_second:,.0f} a second; {1e6 * used:,.0f} µs of the collector's processor time each"
    rows.append(row(f"{name}, one by one", what, reached, "2,000 a second", holds=fine and per_second >= 2000))
    reached = f"half within {quantile(load, 0.5):.1f} ms, 99% within {late:.1f} ms"
    rows.append(
        row(f"{name}, one by one", f"time to a durable answer; {busy}", reached, "99% in 100 ms", holds=late < 100)
    )
    for count in PREPARED_BATCHES:
        prepared = list(islice(batches(fingerprint), count))
        used = cpu_seconds(collector)
        load = run_load(collector.port, prepared, BATCH_CONNECTIONS, run=uvloop.run)
        per_second = BATCH * len(load.latencies) / load.seconds
        used = (cpu_seconds(collector) - used) / (BATCH * len(load.latencies))
        what = f"{len(prepared)} requests of {BATCH:,} reports, {BATCH_CONNECTIONS} connections; {busy}"
        reached = f"{per_second:,.0f} reports a second; {1e6 * used:.1f} µs of processor time each"
        holds = set(load.statuses) == {200} and per_second >= 100_000
        title = f"{name}, {BATCH * count:,} in batches"
        rows.append(row(title, what, reached, "100,000 a second", holds=holds))
    memory, sent = {}, 0
    for total in (options.reports // 10, options.reports // 2, options.reports):
        some = islice(batches(fingerprint), max(1, (total - sent) // BATCH))
        run_load(collector.port, some, BATCH_CONNECTIONS, run=uvloop.run)
        memory[total], sent = collector.memory_mib(), total
    what = "memory after " + ", ".join(f"{total:,}" for total in memory) + " more reports"
    reached = ", ".join(f"{each:.0f}" for each in memory.values()) + " MiB"
    most = CACHE_KIB // 1024
    holds = memory[options.reports] < memory[options.reports // 10] + most
    rows.append(row(f"{name}, memory", what, reached, f"at most {most} MiB more: SQLite's cache", holds=holds))
    collector.stop()
    return rows


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=1_000_000, help="over which memory is watched")
    parser.add_argument("--seconds", type=float, default=20.0, help="of single reports")
    parser.add_argument("--only", choices=["SQLite", "PostgreSQL"])
    parser.add_argument("--folder", type=Path, help="where the SQLite file is written: the disk to be measured")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY)
        with databases(Path(folder), options.only) as addresses:
            for name, address in addresses.items():
                rows += measure(name, address, study, options)
    save_merged("serve", rows)


if __name__ == "__main__":
    main()
