"""The JavaScript client: outputs a second in Node, beside the Python client, and the size of its package.

Both draw from the operating system's randomness, one output at a time, from the same study.

Run: python benchmarks/javascript.py [--seconds S]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hubbub as hb
from hubbub.client import Client
from measure import row, save

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "clients" / "javascript"
STUDIES: dict[str, tuple[str, Any, dict[str, str]]] = {  # the domain, a value, and mechanisms
    "a hundred values": (
        "kind = 'integers'\nlow = 0\nhigh = 99",
        50,
        {
            "k-RR": "kind = 'krr'\nepsilon = 1.0",
            "geometric": "kind = 'geometric'\nepsilon = 0.1",
            "truncated-geometric": "kind = 'truncated-geometric'\nepsilon = 0.1",
            "local-hashing": "kind = 'olh'\nepsilon = 1.0",
            "subset-selection": "kind = 'subset-selection'\nepsilon = 1.0",
        },
    ),
    "a thousand values": (
        "kind = 'integers'\nlow = 0\nhigh = 999",
        500,
        {
            "RAPPOR": "kind = 'rappor'\nepsilon = 2.0",
            "longitudinal-RAPPOR": "kind = 'longitudinal-rappor'\nepsilon = 2.0\nfirst = 1.0",
        },
    ),
    "a map of 24 x 16 cells": (
        "kind = 'grid'\nsouth = 37.7228\nwest = -122.5153\nnorth = 37.7946\neast = -122.3789\ncolumns = 24\nrows = 16",
        [37.75, -122.45],
        {"planar-geometric": "kind = 'planar-geometric'\nepsilon = 0.7"},
    ),
}
ASKED = {"k-RR": 100_000, "geometric": 100_000, "RAPPOR": 2_000}  # outputs a second
MAX_PACKED_BYTES = 30_000


def python_rate(client: Client, value: Any, name: str, seconds: float) -> float:
    """Return how many outputs a second the Python client draws."""
    client.privatize(value, name)
    start, outputs = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < seconds:
        client.privatize(value, name)
        outputs += 1
    return outputs / passed


def packed_bytes(folder: Path) -> int:
    """Return the size of the package as registries hold it."""
    files = json.loads((PACKAGE / "package.json").read_text())["files"]
    with tarfile.open(folder / "package.tgz", "w:gz") as packed:
        for name in ("package.json", "README.md", "LICENSE", *files):
            packed.add(PACKAGE / name, f"package/{name}")
    return (folder / "package.tgz").stat().st_size


def measured(folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Draw with both clients, and return the rows."""
    arguments, rates = [], {}
    for number, (domain, value, mechanisms) in enumerate(STUDIES.values()):
        study, exported = folder / f"{number}.toml", folder / f"{number}.json"
        tables = "\n".join(f"[mechanisms.{name}]\n{lines}" for name, lines in mechanisms.items())
        study.write_text(f"version = 1\n[domain]\n{domain}\n{tables}\n")
        hb.export_client(study, exported)
        arguments += [str(exported), json.dumps(value)]
        client = Client(study)
        rates |= {name: python_rate(client, value, name, seconds) for name in mechanisms}
    node = shutil.which("node")
    if node is None:
        raise SystemExit("this benchmark needs Node 20 or newer")
    command = [node, str(HERE / "javascript.mjs"), str(PACKAGE / "hubbub-client.js"), str(seconds), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    rows = []
    for name, rate in json.loads(done.stdout).items():
        over = next(title for title, (_, _, mechanisms) in STUDIES.items() if name in mechanisms)
        least = ASKED.get(name)
        rows.append(
            row(
                f"{name}, {over}, Node {version}",
                "outputs a second; times as many as in Python",
                f"{rate:,.0f}; {rate / rates[name]:.1f}",
                "" if least is None else f"at least {least:,}",
                holds=least is None or rate >= least,
            )
        )
    size = packed_bytes(folder)
    rows.append(row("the package", "bytes, packed", f"{size:,}", "below 30,000", holds=size < MAX_PACKED_BYTES))
    return rows


def main() -> None:
    """Measure, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=2.0, help="of drawing, for each mechanism and client")
    with TemporaryDirectory() as folder:
        save("javascript", measured(Path(folder), parser.parse_args().seconds))


if __name__ == "__main__":
    main()
