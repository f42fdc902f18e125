"""What a newcomer gets from other tools: which install and run as they come, and how close their estimates come.

Each tool is installed by pip in an environment of its own, made once under `--folder`, and estimates from the same
reports of k-ary randomized response. One that fails is tried again with what it lacks. Errors are total variation
distances to the truth; hubbub's own estimates from the same reports are the first rows.

Run: python benchmarks/first_use.py [--folder DIR] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from measure import row, save

RUNNER = Path(__file__).parent / "peers" / "first_use.py"
# What pip is asked for, then what has to be added for the job to run where the tool does not ask for it itself.
TOOLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "multi_freq_ldpy": (("multi-freq-ldpy==0.2.5",), ("scipy", "xxhash<4")),
    "pure_ldp": (("pure-ldp==1.2.0",), ("scikit-learn", "scipy", "statsmodels", "matplotlib", "seaborn", "xxhash<4")),
    "pyunfold": (("pyunfold==0.5.0",), ()),
    "opendp": (("opendp==0.16.0",), ()),
    "qif": (("qif==1.6.0",), ()),
}
VALUES, EPSILON, USERS = 20, 1.0, 20_000
INSTALLING = 900  # seconds


def quiet(*command: str | Path) -> tuple[bool, str]:
    """Run a command; return whether it worked, and what it said: its output, or the last line of its complaint."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=INSTALLING)  # noqa: S603
    lines = [text.strip() for text in (done.stderr or done.stdout).splitlines() if text.strip()]
    return done.returncode == 0, done.stdout if done.returncode == 0 else (lines or ["no reason given"])[-1]


def environment(home: Path, requirements: tuple[str, ...]) -> tuple[Path, str]:
    """Return an interpreter with the requirements, made if it is not there, and what went wrong."""
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = home / ".installed"
    if done.exists():
        return python, ""
    for command in (
        (sys.executable, "-m", "venv", home),
        (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements),
    ):
        worked, told = quiet(*command)
        if not worked:
            return python, told
    done.touch()
    return python, ""


def tried(tool: str, requirements: tuple[str, ...], home: Path, problem: Path) -> tuple[dict[str, Any], str]:
    """Return the estimates of a tool, and what went wrong."""
    python, wrong = environment(home, requirements)
    if wrong:
        return {}, f"not installed: {wrong}"
    worked, told = quiet(python, RUNNER, tool, problem)
    return (json.loads(told.splitlines()[-1]), "") if worked else ({}, told)


def error_of(shares: list[float] | None, truth: np.ndarray[Any, Any]) -> str:
    """Return the distance to the truth as text."""
    if shares is None:
        return "no estimate"
    note = "" if min(shares) >= 0 else f", with {sum(share < 0 for share in shares)} negative shares"
    return f"{float(np.abs(np.array(shares) - truth).sum()) / 2:.3f}{note}"


def main() -> None:
    """Run all tools on the same reports."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", type=Path, default=cache / "hubbub-first-use", help="where environments are made")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    domain = hb.Integers(0, VALUES - 1)
    mechanism = hb.RandomizedResponse(domain, EPSILON)
    truth = np.bincount(rng.binomial(VALUES - 1, 0.3, 10**6), minlength=VALUES) / 10**6
    outputs = np.asarray(mechanism.privatize(rng.choice(VALUES, USERS, p=truth), rng=rng)).astype(int)
    reports = hb.Reports.from_outputs(mechanism, outputs)
    what = f"k-RR, {VALUES} values, epsilon {EPSILON:g}, {USERS:,} users: "
    rows = []
    for method in ("auto", "mle", "ibu", "inv-n", "inv-p"):
        shares = hb.estimate(reports, method=method).probabilities.tolist()
        rows.append(row("hubbub", what + method, error_of(shares, truth), "shown", holds=True))
    with tempfile.TemporaryDirectory() as name:
        problem = Path(name) / "problem.json"
        problem.write_text(json.dumps({"outputs": outputs.tolist(), "values": VALUES, "epsilon": EPSILON}))
        for tool, (plain, lacking) in TOOLS.items():
            found, wrong = tried(tool, plain, options.folder / tool, problem)
            rows.append(row(plain[0], "as pip installs it", wrong or "runs", "shown", holds=True))
            if wrong and lacking and not wrong.startswith("not installed"):
                found, wrong = tried(tool, (*plain, *lacking), options.folder / f"{tool}-mended", problem)
                rows.append(row(plain[0], f"with {', '.join(lacking)}", wrong or "runs", "shown", holds=True))
            for method, shares in found.items():
                rows.append(row(plain[0], what + method, error_of(shares, truth), "shown", holds=True))
    save("first_use", rows)


if __name__ == "__main__":
    main()
