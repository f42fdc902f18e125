"""Build hubbub's wheel and source distribution, and check them as strangers will use them.

1. Both are built from a copy of the tree, and the wheel again from the source distribution: the two wheels hold the
   same bytes.
2. `twine check --strict`: the metadata are valid, and the README renders as the long description.
3. The wheel is pure Python (py3-none-any), and every file of the package is in it. The source distribution has the
   tests, the documentation and the files that a packager looks for.
4. The wheel is installed in a new environment with what it requires, and nothing else. In an empty folder, far from the
   sources, `hubbub --version`, the README's first example, `hubbub new` and `hubbub demo` run there. The package of
   examples/own-mechanism is installed beside it, and `hubbub audit` finds its mechanism. With the extra
   `serve`, a collector of the new study takes a report there, gives it back to `hubbub collect`, and stops.

The tools (build, twine, setuptools) get an environment of their own; where they cannot be installed, those of the
running interpreter serve. With --other-machines, pip must also find wheels of all requirements for Linux on x86_64 and
aarch64 with each claimed version of Python.

    python scripts/check_package.py [FOLDER] [--other-machines]      # or: make package, which leaves the files in dist
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("build", "twine", "setuptools>=77", "wheel")
LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "site", "shared", "*-output", "hubbub-demo", "hubbub-paper"
)
IN_SOURCES = (
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "clients/javascript/hubbub-client.js",
    "docs/index.md",
    "examples/own-mechanism/pyproject.toml",
    "tests/conftest.py",
)
MACHINES = ("x86_64", "aarch64")
PIP = ("-m", "pip", "--disable-pip-version-check")
# Starts the program that is named, sends it a report, and stops it.
COLLECTOR_EXAMPLE = """
import json, signal, subprocess, sys, urllib.request
words = [sys.argv[1], "serve", "study.toml", "--to", "sqlite:///reports.db", "--port", "0"]
with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as collector:
    try:
        told = collector.stderr.readline()
        address = next((word.rstrip(",") for word in told.split() if word.startswith("http")), None)
        if address is None:
            sys.exit(told + collector.stderr.read())
        body = json.dumps({"output": "30", "key": "a-report-of-this-check"}).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            print(answer.read().decode())
        collector.send_signal(signal.SIGINT)
        sys.exit(collector.wait(60))
    finally:
        collector.kill()
"""


class PackageError(Exception):
    """What is wrong with the package."""


def run(*command: str | Path, folder: Path, show: bool = False) -> str:
    """Run a command without any hint to the sources, and return what it printed."""
    hints = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hints} | {"MPLBACKEND": "Agg"}
    done = subprocess.run(  # noqa: S603
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise PackageError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    if show:
        print(done.stdout, end="", flush=True)
    return done.stdout


def environment_python(folder: Path) -> Path:
    """Return the interpreter of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def program_of(python: Path) -> Path:
    """Return the program hubbub beside an interpreter."""
    return python.with_name("hubbub.exe" if os.name == "nt" else "hubbub")


def new_environment(folder: Path) -> Path:
    """Make an environment and return its interpreter."""
    run(sys.executable, "-m", "venv", folder, folder=folder.parent)
    return environment_python(folder)


def find_tools(folder: Path) -> Path:
    """Return an interpreter that has the tools."""
    python = new_environment(folder / "tools")
    try:
        run(python, *PIP, "install", "--quiet", *TOOLS, folder=folder)
    except PackageError as error:
        print(f"the tools of {sys.executable} are used, since they cannot be installed:\n{error}", file=sys.stderr)
        return Path(sys.executable)
    return python


def build_all(python: Path, folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the source distribution, the former built from the latter."""
    tree, sources, dist, direct = (folder / name for name in ("tree", "sources", "dist", "direct"))
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    build = (python, "-m", "build", "--no-isolation")
    run(*build, "--sdist", "--outdir", dist, tree, folder=folder)
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(sources, filter="data")
    (unpacked,) = sources.iterdir()
    run(*build, "--wheel", "--outdir", dist, unpacked, folder=folder)
    run(*build, "--wheel", "--outdir", direct, tree, folder=folder)
    (wheel,), (other,) = dist.glob("*.whl"), direct.glob("*.whl")
    if contents(wheel) != contents(other):
        raise PackageError("the wheel from the source distribution differs from the wheel from the tree")
    return wheel, archive


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def check_contents(wheel: Path, archive: Path) -> str:
    """Check what is in both; return the number of files."""
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise PackageError(f"{wheel.name} is not a wheel for every machine")
    packed = contents(wheel)
    package = [path for path in (ROOT / "src" / "hubbub").rglob("*") if path.is_file()]
    wanted = [path.relative_to(ROOT / "src").as_posix() for path in package if "__pycache__" not in path.parts]
    if missing := sorted(set(wanted) - set(packed)):
        raise PackageError(f"not in the wheel, see package-data in pyproject.toml: {', '.join(missing)}")
    if foreign := sorted(name for name in packed if not name.startswith(("hubbub/", "hubbub-"))):
        raise PackageError(f"in the wheel, but no part of hubbub: {', '.join(foreign)}")
    with tarfile.open(archive) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    if missing := [name for name in IN_SOURCES if name not in names]:
        raise PackageError(f"not in the source distribution, see MANIFEST.in: {', '.join(missing)}")
    return f"{len(packed)} files in the wheel, {len(names)} in the source distribution"


def first_example() -> str:
    """Return the README's first example in Python."""
    found = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    if found is None:
        raise PackageError("the README has no example in Python")
    return found[1]


def check_installed(wheel: Path, folder: Path) -> None:
    """Install the wheel alone in a new environment, and run it in an empty folder."""
    python = new_environment(folder / "alone")
    run(python, *PIP, "install", "--quiet", wheel, folder=folder)
    run(python, *PIP, "check", folder=folder)
    empty = folder / "empty"
    empty.mkdir()
    program = program_of(python)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if (told := run(program, "--version", folder=empty).strip()) != f"hubbub {version}":
        raise PackageError(f"`hubbub --version` says {told!r}, pyproject.toml {version!r}")
    place = run(python, "-c", "import hubbub; print(hubbub.__file__)", folder=empty).strip()
    if not Path(place).is_relative_to(folder / "alone"):
        raise PackageError(f"hubbub was imported from {place}")
    run(python, "-c", first_example(), folder=empty, show=True)
    run(program, "new", "integers", "-o", "study.toml", folder=empty)
    run(program, "demo", "-o", "demo", folder=empty)
    if missing := [name for name in ("study.toml", "demo/report.html", "demo/city.png") if not (empty / name).exists()]:
        raise PackageError(f"the installed program did not write {', '.join(missing)}")


def check_own_mechanism(folder: Path) -> None:
    """Install the example package in that environment, and audit its mechanism."""
    python, project = environment_python(folder / "alone"), folder / "own-mechanism"
    shutil.copytree(ROOT / "examples" / "own-mechanism", project, ignore=LEFT_OUT)
    run(python, *PIP, "install", "--quiet", "--no-deps", project, folder=folder)
    run(program_of(python), "audit", project / "study.toml", "--draws", "200", folder=folder / "empty")


def check_collector(wheel: Path, folder: Path) -> None:
    """Add what the collector needs to that environment, and let the installed program take a report."""
    python, empty = environment_python(folder / "alone"), folder / "empty"
    run(python, *PIP, "install", "--quiet", f"{wheel}[serve]", folder=folder)
    study = empty / "study.toml"
    study.write_text(study.read_text(encoding="utf-8") + "\n[collector]\n", encoding="utf-8")
    run(python, "-c", COLLECTOR_EXAMPLE, program_of(python), folder=empty, show=True)
    run(
        program_of(python),
        "collect",
        "study.toml",
        "sqlite:///reports.db#reports",
        "-o",
        "a.tally.parquet",
        folder=empty,
    )


def check_machines(python: Path, wheel: Path, folder: Path) -> None:
    """Let pip look for wheels of all requirements for other machines."""
    prefix = "Programming Language :: Python :: 3."
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [name.removeprefix(prefix) for name in project["classifiers"] if name.startswith(prefix)]
    for machine in MACHINES:
        names = [f"manylinux_2_{glibc}_{machine}" for glibc in range(28, 16, -1)] + [f"manylinux2014_{machine}"]
        platforms = [word for name in names for word in ("--platform", name)]
        for minor in versions:
            options = [
                "--dry-run",
                "--quiet",
                "--ignore-installed",
                "--only-binary=:all:",
                "--target",
                str(folder / "none"),
            ]
            wanted = ["--python-version", f"3.{minor}", "--implementation", "cp", *platforms]
            run(python, *PIP, "install", *options, *wanted, wheel, folder=folder)
            print(f"wheels of all requirements: Linux {machine}, Python 3.{minor}", flush=True)


def main() -> int:
    """Build, check, and leave what passed in the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("dist"), help="where the checked files are left")
    parser.add_argument("--other-machines", action="store_true", help="look for wheels of all requirements, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hubbub-package-") as name:
        work = Path(name).resolve()
        try:
            python = find_tools(work)
            wheel, archive = build_all(python, work)
            print(
                f"built: {wheel.name}, {archive.name}; the wheel from the source distribution is the same", flush=True
            )
            run(python, "-m", "twine", "check", "--strict", wheel, archive, folder=work)
            print("twine: passed", flush=True)
            print(check_contents(wheel, archive), flush=True)
            if options.other_machines:
                check_machines(python, wheel, work)
            check_installed(wheel, work)
            print("installed alone: version, first example, new and demo ran", flush=True)
            check_own_mechanism(work)
            print("installed beside it: a package with a mechanism of its own, which was audited", flush=True)
            check_collector(wheel, work)
            print("installed with the extra serve: a report was taken, and counted", flush=True)
        except PackageError as error:
            print(error, file=sys.stderr)
            return 1
        options.folder.mkdir(parents=True, exist_ok=True)
        for path in (wheel, archive):
            print(f"checked: {shutil.copy(path, options.folder)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
