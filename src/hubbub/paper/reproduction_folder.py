"""The folder of a reproduction: what it belongs to, and where its files are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.core.errors import IntakeError
from hubbub.core.files import atomic_write
from hubbub.core.locks import exclusive_lock
from hubbub.core.paths import write_error
from hubbub.paper.places import Place
from hubbub.paper.work_parts import HUBBUB_VERSION

MARK_FILE = "reproduce.json"


@dataclass(frozen=True)
class ReproductionFolder:
    """Paths of one reproduction."""

    root: Path

    @property
    def work(self) -> Path:
        """What is measured, part by part: it makes the same command go on where it stopped."""
        return self.root / "work"

    @property
    def runs(self) -> Path:
        """Tables of every run."""
        return self.root / "runs"

    @property
    def figures(self) -> Path:
        """Pictures."""
        return self.root / "figures"

    @property
    def summary(self) -> Path:
        """All verdicts and medians as one document."""
        return self.root / "summary.json"

    @property
    def gallery(self) -> Path:
        """The page to open."""
        return self.root / "index.html"

    def write(self, path: Path, content: bytes) -> None:
        """Write a file of the reproduction: whole, or not at all."""
        with atomic_write(path) as file:
            file.write(content)


@contextmanager
def open_folder(
    root: Path, place: Place, seed: int, figures: Sequence[str], *, quick: bool
) -> Iterator[tuple[ReproductionFolder, list[str]]]:
    """Open the folder for this reproduction alone; return it with the figures it has had and those asked for now.

    Refuse the folder of another reproduction (other data, another seed, quick or not) and one with foreign files.
    """
    folder = ReproductionFolder(root)
    _make(root)
    mark = root / MARK_FILE
    with exclusive_lock(mark, remedy="wait for it to end, or name another folder with -o"):
        identity = {"version": 1, "hubbub": HUBBUB_VERSION, "seed": seed, "quick": quick, "data": place.fingerprint}
        had = _figures_before(root, mark, identity)
        names = sorted({*had, *figures})
        folder.write(mark, _text({**identity, "figures": had}))
        for path in (folder.work, folder.runs, folder.figures):
            _make(path)
        _sweep(folder)
        yield folder, names
        folder.write(
            mark, _text({**identity, "figures": names})
        )  # only now: a stopped run may be restarted with fewer figures


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from None


def _sweep(folder: ReproductionFolder) -> None:
    """Remove what a killed process had begun to write: nothing could be written beside it."""
    for path in (folder.root, folder.work, folder.runs, folder.figures):
        try:
            for stale in path.glob(".*.part"):
                stale.unlink()
        except OSError as error:
            raise write_error(path, error) from None


def _figures_before(root: Path, mark: Path, identity: dict[str, Any]) -> list[str]:
    """Return the figures that the folder has had; refuse it if it is not of the same reproduction."""
    if not mark.exists():
        strangers = sorted(
            path.name for path in root.iterdir() if not path.name.startswith(f".{MARK_FILE}")
        )  # our lock
        if strangers:
            raise IntakeError(
                "the folder holds files that no reproduction wrote",
                where=str(root),
                got=", ".join(strangers[:5]),
                expected="a new folder, or one of an earlier reproduction",
                remedy="name another folder with -o",
            )
        return []
    try:
        recorded = json.loads(mark.read_text(encoding="utf-8"))
        figures = list(recorded.pop("figures"))
    except (ValueError, KeyError, AttributeError, TypeError, OSError):  # damaged: of no reproduction that we know
        recorded, figures = {}, []
    differ = [name for name in identity if recorded.get(name) != identity[name]]
    if differ:
        raise IntakeError(
            "the folder holds another reproduction",
            where=str(mark),
            got="; ".join(f"{name} {_short(recorded.get(name))}" for name in differ),
            expected="; ".join(f"{name} {_short(identity[name])}" for name in differ),
            remedy="name another folder with -o, or remove this one",
        )
    return figures


def _short(value: object) -> str:
    return str(value)[:12]


def _text(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()
