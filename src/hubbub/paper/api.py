"""`reproduce`: run every experiment of the paper and compare the results with what was published."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.core import validation
from hubbub.core.errors import SettingError
from hubbub.core.progress import Progress, stepwise
from hubbub.paper.figure_specs import Figure, read_figures
from hubbub.paper.judging import Finding, judge_claims
from hubbub.paper.places import PAPER_ZONE, Place, Zone, read_counts, read_points, synthetic_place
from hubbub.paper.reproduction_folder import ReproductionFolder, open_folder, write_whole
from hubbub.paper.results import Results
from hubbub.paper.results_json import summary
from hubbub.paper.run_tables import tables
from hubbub.paper.runner import PROCESSES, KeptParts, measure_all
from hubbub.paper.work_units import all_parts

DEFAULT_SEED = 1


@dataclass(frozen=True)
class Reproduction:
    """A finished reproduction: its folder, its data, and the finding about each claim."""

    folder: ReproductionFolder
    place: Place
    figures: tuple[Figure, ...]
    findings: tuple[Finding, ...]


@stepwise
def reproduce(
    folder: str | Path,
    figures: Sequence[str] = (),
    *,
    quick: bool = False,
    data: str | Path | None = None,
    counts: str | Path | None = None,
    zone: Zone = PAPER_ZONE,
    seed: int = DEFAULT_SEED,
    processes: int = PROCESSES,
) -> Generator[Progress, None, Reproduction]:
    """Run the paper's experiments; write tables, pictures and a gallery of its claims into a folder.

    Stopped and called again with the same arguments, it continues where it was. The same seed and data give the same
    files.

    Parameters
    ----------
    folder : str or Path
        Where everything is written; created if needed.
    figures : sequence of str
        The figures to reproduce, by name; all of them if empty.
    quick : bool
        Fewer runs and settings: a first look in a minute.
    data, counts : str or Path, optional
        Where people are: check-ins or points (`data`), or a table x,y,count (`counts`). Without either, people live in
        the synthetic city that ships with hubbub.
    zone : Zone
        The box on the map that points are counted in; only together with `data`.
    seed : int
        Decides every random number.
    processes : int
        How many processes measure at once.

    Returns
    -------
    Reproduction
        The folder, the data and the finding about each claim.
    """
    requested = read_figures(figures, quick=quick)
    validation.whole(seed, "seed", "reproduce", at_least=0, default=str(DEFAULT_SEED))
    validation.whole(processes, "processes", "reproduce", default=str(PROCESSES))
    place = yield from _read_place(data, counts, zone)
    yield Progress(0, 0, place.source)  # before a quarter of an hour is spent on the wrong people
    with open_folder(Path(folder), place, seed, [figure.name for figure in requested], quick=quick) as (paths, names):
        shown = read_figures(names, quick=quick)
        kept = KeptParts(paths.work, seed, place)
        documents = yield from measure_all(all_parts(shown), place, seed, kept, processes)
        results = Results(place, seed, quick, documents)
        findings = judge_claims(shown, results)
        yield from _write_results(paths, shown, findings, results)
    return Reproduction(paths, place, shown, findings)


def _read_place(data: str | Path | None, counts: str | Path | None, zone: Zone) -> Generator[Progress, None, Place]:
    if data is not None and counts is not None:
        raise SettingError(
            "data and counts cannot be used together",
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


def _write_results(
    paths: ReproductionFolder, figures: Sequence[Figure], findings: Sequence[Finding], results: Results
) -> Generator[Progress, None, None]:
    from hubbub.paper.drawing import draw, save  # Matplotlib takes a second to load
    from hubbub.paper.gallery import gallery_html

    for done, figure in enumerate(figures):
        yield Progress(done, len(figures) + 1, f"drawing {figure.name}")
        for name, content in tables(figure, results).items():
            write_whole(paths.runs / name, content)
        save(draw(figure, results), paths.figures, figure.name)
    yield Progress(len(figures), len(figures) + 1, "writing the gallery")
    write_whole(paths.summary, summary(figures, findings, results))
    write_whole(paths.gallery, gallery_html(figures, findings, results).encode())
    yield Progress(len(figures) + 1, len(figures) + 1, "done")
