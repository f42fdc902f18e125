"""Install and import hubbub under every version of Python that pyproject.toml claims and this machine has.

Each version gets an environment of its own in a temporary folder, with what running needs and nothing else. There the
package is imported, every module of it, and a small study goes all the way: privatize, estimate, interval. Versions
that are claimed and not found here are listed at the end; a version that fails makes the script fail.

    python scripts/check_pythons.py            # or: make matrix
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "Programming Language :: Python :: 3."
STUDY = """
import importlib, pkgutil
import hubbub as hb
for module in pkgutil.walk_packages(hb.__path__, "hubbub."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
question = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
reports = hb.Reports.from_outputs(question, question.privatize(["yes"] * 700 + ["no"] * 300, rng=1))
estimate = hb.estimate(reports, method="mle")
interval = hb.interval(reports, "yes")
assert interval.low <= estimate.probabilities[0] <= interval.high, (interval, estimate.probabilities)
print(f"estimate {estimate.probabilities[0]:.3f}, interval {interval.low:.3f} to {interval.high:.3f}")
"""


def claimed_versions() -> list[str]:
    """Return the versions in the classifiers, such as 3.11."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [f"3.{name.removeprefix(PREFIX)}" for name in project["classifiers"] if name.startswith(PREFIX)]


def find_interpreter(version: str) -> str | None:
    """Return an interpreter of a version: the running one, one on the path, or one that pyenv keeps."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = [path for path in [shutil.which(f"python{version}")] if path is not None]
    for candidate in [*on_path, *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")), reverse=True)]:
        told = subprocess.run(  # noqa: S603
            [candidate, "-c", "import sys; print(*sys.version_info[:2], sep='.')"],
            capture_output=True,
            text=True,
            check=False,
        )
        if told.stdout.strip() == version:  # pyenv's own commands on the path may stand for no version at all
            return candidate
    return None


def check(interpreter: str) -> str:
    """Install hubbub in a new environment and run a small study there; return what it says."""
    with tempfile.TemporaryDirectory(prefix="hubbub-python-") as folder:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)  # noqa: S603
        python = Path(folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        options = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *options, f"{ROOT}[cluster]"], check=True)  # noqa: S603
        done = subprocess.run(  # noqa: S603
            [python, "-W", "error::SyntaxWarning", "-c", STUDY], cwd=folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


def main() -> int:
    """Check every claimed version that is here."""
    missing, failed = [], []
    for version in claimed_versions():
        interpreter = find_interpreter(version)
        if interpreter is None:
            missing.append(version)
            continue
        try:
            print(f"Python {version}: {check(interpreter)}", flush=True)
        except subprocess.CalledProcessError as error:
            failed.append(version)
            print(f"Python {version}: failed\n{error.stderr or ''}", flush=True)
    if missing:
        print(f"not checked, since no interpreter was found: {', '.join(missing)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
