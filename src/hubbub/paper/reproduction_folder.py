"""The folder of a reproduction: what it belongs to, and where its files are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hubbub.core.errors import IntakeError
from hubbub.core.files import atomic_write
from hubbub.core.locks import exclusive_lock
from hubbub.core.paths import write_error
from hubbub.paper.places import Place
from hubbub.paper.work_units import HUBBUB_VERSION

MARK_FILE = "reproduce.json"


class ReproductionFolder:
    """Paths of one reproduction."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"  # what is measured, part by part: the same command goes on where it stopped
        self.runs = root / "runs"  # tables of every run
        self.figures = root / "figures"  # pictures
        self.summary = root / "summary.json"  # all verdicts and medians as one document
        self.gallery = root / "index.html"  # the page to open


def write_whole(path: Path, content: bytes) -> None:
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
    _make(root, sweep=False)  # it may be another's
    mark = root / MARK_FILE
    with exclusive_lock(mark, remedy="wait for it to end, or name another folder with -o"):
        identity = {"version": 1, "hubbub": HUBBUB_VERSION, "seed": seed, "quick": quick, "data": place.fingerprint}
        had = _figures_before(root, mark, identity)
        names = sorted({*had, *figures})
        write_whole(mark, _text({**identity, "figures": had}))
        for path in (root, folder.work, folder.runs, folder.figures):
            _make(path, sweep=True)
        yield folder, names
        # Only now: a stopped run may be restarted with fewer figures.
        write_whole(mark, _text({**identity, "figures": names}))


def _make(path: Path, *, sweep: bool) -> None:
    """Create a folder; a sweep removes what a killed process had begun to write: nothing could be written beside it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        for stale in path.glob(".*.part") if sweep else ():
            stale.unlink()
    except OSError as error:
        raise write_error(path, error) from None


def _figures_before(root: Path, mark: Path, identity: dict[str, Any]) -> list[str]:
    """Return the figures that the folder has had; refuse it if it is not of the same reproduction."""
    if not mark.exists():
        lock = f".{MARK_FILE}"
        strangers = sorted(path.name for path in root.iterdir() if not path.name.startswith(lock))
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
            got="; ".join(f"{name} {str(recorded.get(name))[:12]}" for name in differ),
            expected="; ".join(f"{name} {str(identity[name])[:12]}" for name in differ),
            remedy="name another folder with -o, or remove this one",
        )
    return figures


def _text(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()
