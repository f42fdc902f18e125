"""The example package of examples/own-mechanism, as an installer leaves it: its module, and its metadata.

Run: python tests/own_package.py to write what the examples of its README print today into it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import page_examples

EXAMPLE = Path(__file__).parent.parent / "examples" / "own-mechanism"
README = EXAMPLE / "README.md"
DATA = ("study.toml", "hours.csv")
Groups = Mapping[str, Mapping[str, str]]  # entry points by group and name


def write_metadata(site: Path, name: str, version: str, groups: Groups) -> None:
    """Write what an installer says of a package."""
    metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sections = [
        f"[{group}]\n" + "".join(f"{each} = {place}\n" for each, place in own.items()) for group, own in groups.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(sections))


def install(site: Path) -> Path:
    """Put the package into a folder that is to be on the path."""
    described = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))
    project = described["project"]
    write_metadata(site, project["name"], project["version"], project["entry-points"])
    for module in described["tool"]["setuptools"]["py-modules"]:
        shutil.copy(EXAMPLE / f"{module}.py", site)
    return site


@contextlib.contextmanager
def installed_here() -> Iterator[None]:
    """Work in a folder with the data of the example; this process and those that it starts have the package."""
    with tempfile.TemporaryDirectory() as place:
        site, work = install(Path(place) / "site"), Path(place) / "work"
        work.mkdir()
        for name in DATA:
            shutil.copy(EXAMPLE / name, work)
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), before]))
        sys.path.insert(0, str(site))
        try:
            with contextlib.chdir(work):
                yield
        finally:
            sys.path.remove(str(site))
            os.environ["PYTHONPATH"] = before


if __name__ == "__main__":
    with installed_here():
        README.write_text(page_examples.rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
