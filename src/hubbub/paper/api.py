"""Every experiment of the paper, measured, checked, drawn and set side by side with what was published."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.core.arrays import as_integer
from hubbub.core.errors import SettingError
from hubbub.core.progress import Progress, finish
from hubbub.paper.figure_specs import Figure, read_figures
from hubbub.paper.judging import Finding, check_claims
from hubbub.paper.places import PAPER_ZONE, Place, Zone, read_counts, read_points, synthetic_place
from hubbub.paper.reproduction_folder import ReproductionFolder, opened
from hubbub.paper.results import Results
from hubbub.paper.results_json import summary
from hubbub.paper.run_tables import tables
from hubbub.paper.runner import PROCESSES, Kept, working
from hubbub.paper.work_parts import all_parts

SEED = 1


@dataclass(frozen=True)
class Reproduction:
    """What was found, and where it lies."""

    folder: ReproductionFolder
    place: Place
    figures: tuple[Figure, ...]
    findings: tuple[Finding, ...]


def reproduce(
    folder: str | Path,
    figures: Sequence[str] = (),
    *,
    quick: bool = False,
    data: str | Path | None = None,
    counts: str | Path | None = None,
    zone: Zone = PAPER_ZONE,
    seed: int = SEED,
    processes: int = PROCESSES,
) -> Reproduction:
    """Run the paper's experiments, and write tables, pictures and a gallery of its claims into a folder.

    `figures` names some of them (none: all). People are where `data` (check-ins or points) or `counts` (x,y,count) say,
    or in a synthetic city. Stopped and called again with the same arguments, it goes on where it was. The same seed
    and data give the same files.
    """
    run = reproducing(folder, figures, quick=quick, data=data, counts=counts, zone=zone, seed=seed, processes=processes)
    return finish(run)


def reproducing(
    folder: str | Path,
    figures: Sequence[str] = (),
    *,
    quick: bool = False,
    data: str | Path | None = None,
    counts: str | Path | None = None,
    zone: Zone = PAPER_ZONE,
    seed: int = SEED,
    processes: int = PROCESSES,
) -> Generator[Progress, None, Reproduction]:
    """Do what `reproduce` does, yielding progress on the way."""
    asked = read_figures(figures, quick=quick)
    for name, number, least in (("seed", seed, 0), ("processes", processes, 1)):
        if as_integer(number, SettingError, where=f"reproduce({name}=)", expected="a whole number") < least:
            raise SettingError(
                f"{name} is too small",
                where=f"reproduce({name}=)",
                got=number,
                expected=f"{least} or more",
                remedy=f"leave {name} out",
            )
    place = yield from _placed(data, counts, zone)
    yield Progress(0, 0, place.source)  # before a quarter of an hour is spent on the wrong people
    with opened(Path(folder), place, seed, [figure.name for figure in asked], quick=quick) as (paths, names):
        shown = read_figures(names, quick=quick)
        kept = Kept(paths.work, seed, place)
        documents = yield from working(all_parts(shown), place, seed, kept, processes)
        results = Results(place, seed, quick, documents)
        findings = check_claims(shown, results)
        yield from _writing(paths, shown, findings, results)
    return Reproduction(paths, place, shown, findings)


def _placed(data: str | Path | None, counts: str | Path | None, zone: Zone) -> Generator[Progress, None, Place]:
    if data is not None and counts is not None:
        raise SettingError(
            "there are two sources of people",
            where="reproduce(data=, counts=)",
            got=f"{Path(data).name} and {Path(counts).name}",
            expected="one of them, or none for the synthetic city",
            remedy="leave one out",
        )
    if data is None and zone != PAPER_ZONE:
        raise SettingError(
            "a zone of the map needs points on it",
            where="reproduce(zone=)",
            got=f"{zone}, and {'a table of counts' if counts is not None else 'the synthetic city'}",
            expected="a zone together with data=, check-ins or points with latitudes and longitudes",
            remedy="leave zone out, or give the points with data= (--data)",
        )
    if data is not None:
        return (yield from read_points(Path(data), zone))
    if counts is not None:
        return read_counts(Path(counts))
    return synthetic_place()


def _writing(
    paths: ReproductionFolder, figures: Sequence[Figure], findings: Sequence[Finding], results: Results
) -> Generator[Progress, None, None]:
    from hubbub.paper.drawing import draw, save  # Matplotlib takes a second to load
    from hubbub.paper.gallery import gallery_html

    for done, figure in enumerate(figures):
        yield Progress(done, len(figures) + 1, f"drawing {figure.name}")
        for name, content in tables(figure, results).items():
            paths.write(paths.runs / name, content)
        save(draw(figure, results), paths.figures, figure.name)
    yield Progress(len(figures), len(figures) + 1, "writing the gallery")
    paths.write(paths.summary, summary(figures, findings, results))
    paths.write(paths.gallery, gallery_html(figures, findings, results).encode())
    yield Progress(len(figures) + 1, len(figures) + 1, "done")
