"""What benchmarks/accuracy.py has measured: its file, the summary of it, and docs/reference/accuracy-cases.md."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_rivals import COMPARED, NEAR, NEAR_SHARE, PUBLISHED, near_share, rivals_section
from cases import HALVES, Case, cases
from em_path import DELTAS, END, MOST_STEPS, SPACING
from measure import RESULTS, row, save

Row = dict[str, Any]
Key = tuple[str, int]

KEPT = RESULTS / "accuracy.jsonl"
ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "accuracy-cases.md"
RIVAL_CODE = ("rivals.py", "unfolding.py")
MEASURED = ("domains", "estimators", "solvers")  # the packages whose code decides what `auto` and `ems` do
FLOOR = 1e-4  # an error below counts as this: some estimates are exact, and have no ratio
# Truths that an estimate can hit, and so gain at will.
EXACT = ("uniform", "few even words", "one point", "one word", "even of 2 values", "short even", "1 of 1000 words")
MORE_DRAWS = 6  # times, of cases with few users
GAIN = 0.25  # by which auto must be better than each of the following
BEATEN = (*(f"em {delta:g}" for delta in DELTAS), "ems")
MEAN, WORST, MEAN_MOVED = 0.70, 1.25, 1.0  # asked of the ratios of auto to the oracle
SMALL_WORST = 1.3
CITIES, CITY_MEAN, CITY_WORST = ("city", "San Francisco", "river town", "harbour town"), 0.98, 1.05
SPARSE, SPARSE_INVERTED, SPARSE_BEST = "00 words", 0.90, 1.05
THREE = ("inv-p", "norm-cut", "empirical Bayes")
COLUMNS = ("noisy", "inv-p", "em 0.1", "mle", "oracle", "ems", "auto")
HEAD = """# Accuracy, case by case

Measured by `python benchmarks/accuracy.py` and written here by it. The oracle is the iterate of EM, after at least one
update of the uniform start, that is closest to the truth, which nobody can know. Its path ends where the total
log-likelihood changes by less than {end:g}, or after {most:,} steps; on grids the earth mover's distance is computed at
every iterate whose number is about {spacing} times that of the one before. Numbers are total variations to the truth,
geometric means over {seeds} draws of each case ({more} with 500 users or fewer); an error below {floor:g} counts as
{floor:g}; the ratio is that of `auto` to the oracle. Constants were tuned on the tune half, not on the other. A dash:
not defined there.
With two to ten values the path of EM passes close to almost any truth, so that its ratio says little there:
`benchmarks/few_values.py` compares such cases with the exact maximum.
"""


def fingerprint() -> str:
    """Return a short name of the code that is measured."""
    code = hashlib.sha256()
    for package in MEASURED:
        modules = sorted((ROOT / "src" / "hubbub" / package).rglob("*.py"))
        assert modules, package  # noqa: S101  # a package that is gone must not pass for one that did not change
        for path in modules:
            code.update(path.read_bytes())
    return code.hexdigest()[:8]


def rivals_fingerprint() -> str:
    """Return a short name of the code of the rivals."""
    code = b"".join((Path(__file__).parent / name).read_bytes() for name in RIVAL_CODE)
    return hashlib.sha256(code).hexdigest()[:8]


def plain_seeds(rows: Iterable[Key]) -> int:
    """Return how often cases with many users were drawn."""
    small = {case.name for case in cases(with_data=True) if case.small_sample}
    return 1 + max((seed for name, seed in rows if name not in small), default=0)


def key_of(row: Row) -> Key:
    """Return the case and the seed."""
    return row["case"], row["seed"]


def read() -> dict[Key, Row]:
    """Return the rows in the file, later ones in place of earlier ones."""
    if not KEPT.exists():
        return {}
    rows = map(json.loads, KEPT.read_text(encoding="utf-8").splitlines())
    return {key_of(row): row for row in rows}


def append(row: Row) -> None:
    """Add a row to the file."""
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def rewrite(rows: dict[Key, Row]) -> None:
    """Write the file anew, one row for each case and seed, in the order of the cases."""
    order = {case.name: place for place, case in enumerate(cases(with_data=True))}
    kept = sorted(
        (row for row in rows.values() if row["case"] in order), key=lambda row: (order[row["case"]], row["seed"])
    )
    fresh = KEPT.with_suffix(".new")
    fresh.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    fresh.replace(KEPT)


class Table:
    """The errors of one distance: of each method in each case, as logarithms of geometric means over the seeds."""

    def __init__(self, rows: Iterable[Row], distance: str) -> None:
        logs: dict[str, dict[str, list[float]]] = {}
        self._asked: dict[str, dict[str, int]] = {}
        for drawn in rows:
            asked = self._asked.setdefault(drawn["case"], {})
            for method, error in drawn[distance].items():
                asked[method] = asked.get(method, 0) + 1
                if error is not None:
                    logs.setdefault(drawn["case"], {}).setdefault(method, []).append(float(np.log(max(FLOOR, error))))
        self._draws = {case: {method: np.array(own) for method, own in found.items()} for case, found in logs.items()}
        self._means = {
            case: {method: float(np.mean(own)) for method, own in found.items()} for case, found in logs.items()
        }

    def draws(self, case: Case) -> list[float]:
        """Return the errors of `auto` in each draw."""
        return [float(error) for error in np.exp(self._draws[case.name]["auto"])]

    def worst_draw(self, some: list[Case]) -> str:
        """Return the largest ratio of `auto` to the oracle in one draw, and where."""
        names = {case.name for case in some}
        drawn = {name: logs["auto"] - logs["oracle"] for name, logs in self._draws.items() if name in names}
        name = max(drawn, key=lambda one: float(drawn[one].max()))
        return f"{np.exp(drawn[name].max()):.2f} ({name})"

    def far_draws(self, some: list[Case]) -> list[tuple[float, str]]:
        """Return the draws in which `auto` is more than WORST times as far as the oracle, with their cases."""
        found = [
            (float(ratio), case.name)
            for case in some
            for ratio in np.exp(self._draws[case.name]["auto"] - self._draws[case.name]["oracle"])
        ]
        return sorted((one for one in found if one[0] > WORST), reverse=True)

    def complete(self, case: Case, method: str) -> bool:
        """Whether a method was measured in every draw of a case in which `auto` was, even if it was not defined."""
        return self._asked.get(case.name, {}).get(method, 0) == self._asked.get(case.name, {}).get("auto", -1)

    def error(self, case: Case, method: str) -> float | None:
        """Return the geometric mean of the errors over the seeds."""
        found = self._means.get(case.name, {}).get(method)
        return None if found is None else float(np.exp(found))

    def mean_error(self, case: Case, method: str) -> float | None:
        """Return the arithmetic mean of the errors over the seeds, which one lucky draw moves less."""
        found = self._draws.get(case.name, {}).get(method)
        return None if found is None else float(np.exp(found).mean())

    def ratios(self, some: list[Case], method: str) -> dict[Case, float]:
        """Return the ratios to the oracle in the cases in which the method is defined."""
        found = {}
        for case in some:
            own, best = self.error(case, method), self.error(case, "oracle")
            if own is not None and best is not None:
                found[case] = own / best
        return found


def mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def against(table: Table, some: list[Case], rival: str) -> tuple[float, float, int] | None:
    """Return the mean ratios of auto and of a rival over the cases that have both, and how many these are."""
    theirs, ours = table.ratios(some, rival), table.ratios(some, "auto")
    both = [case for case in theirs if case in ours]
    if not both:
        return None
    return mean(ours[case] for case in both), mean(theirs[case] for case in both), len(both)


def judged(half: str, some: list[Case], variation: Table, moved: Table) -> list[Row]:
    """Return the rows of one half: what was asked for, and what was reached."""
    title = f"{half} half" + (" (rules were tuned on it)" if half == "tune" else "")
    with_paths = [case for case in some if not case.few_values]
    return [
        *against_oracle(title, with_paths, variation),
        *against_rivals(title, some, variation),
        *kinds(title, with_paths, variation),
        *moved_mass(title, with_paths, moved),
    ]


def against_oracle(title: str, some: list[Case], variation: Table) -> list[Row]:
    """Return how far `auto` is from the truth, relative to the best iterate of EM and to EM with simple rules."""
    ratios = variation.ratios(some, "auto")
    worst = max(ratios, key=lambda case: ratios[case])
    plain = [ratio for case, ratio in ratios.items() if case.truth not in EXACT]
    rows = [
        row(
            title,
            f"TV(auto) / TV(oracle), geometric mean of {len(ratios)} cases",
            f"{mean(ratios.values()):.3f}",
            f"at most {MEAN}",
            holds=mean(ratios.values()) <= MEAN,
        ),
        row(
            title,
            "TV(auto) / TV(oracle), worst case",
            f"{ratios[worst]:.3f} ({worst.name})",
            f"at most {WORST}",
            holds=ratios[worst] <= WORST,
        ),
        row(
            title,
            "TV(auto) / TV(oracle), worst single draw",
            variation.worst_draw(some),
            "shown: a case is the mean of its draws",
            holds=True,
        ),
        row(
            title,
            f"the same mean without the truths that can be hit exactly, {len(plain)} cases",
            f"{mean(plain):.3f}",
            f"at most {MEAN}",
            holds=mean(plain) <= MEAN,
        ),
    ]
    for rule in BEATEN:
        if (found := against(variation, some, rule)) is not None:
            ours, theirs, count = found
            rows.append(
                row(
                    title,
                    f"auto is better than {rule}, in TV over {count} cases",
                    f"{1 - ours / theirs:.0%} ({ours:.3f} against {theirs:.3f})",
                    f"at least {GAIN:.0%}",
                    holds=ours <= (1 - GAIN) * theirs,
                )
            )
    return rows


def against_rivals(title: str, some: list[Case], variation: Table) -> list[Row]:
    """Return in how many cases `auto` is first or nearly; and with few values, how it compares with `mle`."""
    rows = []
    for methods, what in ((PUBLISHED, "methods of other papers"), (COMPARED, "all methods")):
        near, count = near_share(some, variation, methods)
        if count:
            rows.append(
                row(
                    title,
                    f"auto is first or within {NEAR - 1:.0%} of the first of {len(methods) + 1} {what}, {count} cases",
                    f"{near:.0%}",
                    f"at least {NEAR_SHARE:.0%}" if methods == PUBLISHED else "shown",
                    holds=near >= NEAR_SHARE or methods != PUBLISHED,
                )
            )
    few = [case for case in some if case.few_values and case.truth not in EXACT]
    if (found := against(variation, few, "mle")) is not None:
        ours, theirs, count = found
        rows.append(
            row(
                title,
                f"TV(auto) / TV(mle), geometric mean of {count} uneven cases of two to ten values",
                f"{ours / theirs:.3f}",
                "shown: benchmarks/few_values.py has all of them",
                holds=True,
            )
        )
    return rows


def moved_mass(title: str, some: list[Case], moved: Table) -> list[Row]:
    """Return the ratios of earth mover's distances, where values have distances."""
    ratios, rows = moved.ratios(some, "auto"), []
    for what, chosen in (
        ("", list(ratios.values())),
        (" without the truths that can be hit exactly", [ratios[case] for case in ratios if case.truth not in EXACT]),
    ):
        if chosen:
            label = f"EMD(auto) / EMD(oracle), geometric mean of {len(chosen)} cases{what}"
            total = mean(chosen)
            rows.append(row(title, label, f"{total:.3f}", f"at most {MEAN_MOVED:.2f}", holds=total <= MEAN_MOVED))
    return rows


def kinds(title: str, some: list[Case], variation: Table) -> list[Row]:
    """Return the rows of kinds of cases that have aims of their own: small samples, maps, sparse words."""
    rows = []
    for what, chosen, most_mean, most in (
        ("uneven cases of 500 users or fewer", [case for case in some if case.small_sample], None, SMALL_WORST),
        ("maps of cities", [case for case in some if case.truth in CITIES], CITY_MEAN, CITY_WORST),
    ):
        ratios = variation.ratios([case for case in chosen if case.truth not in EXACT], "auto")
        if not ratios:
            continue
        worst = max(ratios, key=lambda case: ratios[case])
        total, count = mean(ratios.values()), f"{len(ratios)} {what}"
        asked = f"at most {most_mean}" if most_mean else "shown"
        label = f"TV(auto) / TV(oracle), geometric mean of {count}"
        rows.append(row(title, label, f"{total:.3f}", asked, holds=most_mean is None or total <= most_mean))
        label, shown = f"TV(auto) / TV(oracle), worst of {count}", f"{ratios[worst]:.3f} ({worst.name})"
        rows.append(row(title, label, shown, f"at most {most}", holds=ratios[worst] <= most))
    sparse = [case for case in some if SPARSE in case.truth and case.truth not in EXACT]
    for what, methods, most in (
        ("inv-p", ("inv-p",), SPARSE_INVERTED),
        (f"best of {', '.join(THREE)}", THREE, SPARSE_BEST),
    ):
        errors = []
        for case in sparse:
            own = variation.mean_error(case, "auto")
            others = [error for method in methods if (error := variation.mean_error(case, method)) is not None]
            if own is not None and others:
                errors.append(own / min(others))
        if errors:
            label = f"TV(auto) / TV({what}), geometric mean of {len(errors)} cases of sparse words"
            total = mean(errors)
            rows.append(row(title, label, f"{total:.3f}", f"at most {most}", holds=total <= most))
    return rows


def tell(half: str, some: list[Case], variation: Table, moved: Table) -> None:
    """Print how each method does against the oracle, and auto for each truth."""
    print(
        f"\n{half} half, {len(some)} cases; ratios to the oracle, geometric means, errors below {FLOOR:g} as {FLOOR:g}"
    )
    for rival in COMPARED:
        if (found := against(variation, some, rival)) is not None:
            ours, theirs, count = found
            print(f"  {rival:<15} {theirs:8.3f}   auto {ours:7.3f}, {1 - ours / theirs:+5.0%}, in {count} cases")
    print(f"  {'truth':<24} {'cases':>5} {'mean TV':>8} {'worst TV':>8} {'mean EMD':>8} {'worst EMD':>9}")
    for truth, own in by_truth(some):
        print(f"  {truth:<24} {len(own):>5} " + " ".join(f"{cell:>8}" for cell in of_truth(own, variation, moved)))


def by_truth(some: list[Case]) -> list[tuple[str, list[Case]]]:
    """Return the cases of each truth."""
    truths = dict.fromkeys(case.truth for case in some)
    return [(truth, [case for case in some if case.truth == truth]) for truth in truths]


def of_truth(own: list[Case], variation: Table, moved: Table) -> list[str]:
    """Return the mean and the worst ratio of auto, for both distances."""
    cells = []
    for table in (variation, moved):
        ratios = table.ratios(own, "auto").values()
        cells += [f"{mean(ratios):.3f}", f"{max(ratios):.3f}"] if ratios else ["–", "–"]
    return cells


def summary(rows: dict[Key, Row]) -> None:
    """Print what was found, keep what is asked for, and write the page of all cases."""
    names = {name for name, _ in rows}
    known = [case for case in cases(with_data=True) if case.name in names]
    variation, moved = Table(rows.values(), "tv"), Table(rows.values(), "emd")
    halves = [(half, [case for case in known if case.half == half]) for half in reversed(HALVES)]
    for half, some in halves:
        if some:
            tell(half, some, variation, moved)
    print()
    save("accuracy", [found for half, some in halves if some for found in judged(half, some, variation, moved)])
    older = sum(row["fingerprint"] != fingerprint() for row in rows.values())
    if older:
        print(f"{older} of {len(rows)} rows are from older code of the estimates")
    PAGE.write_text(page(known, variation, moved, plain_seeds(rows), older), encoding="utf-8")


def page(known: list[Case], variation: Table, moved: Table, seeds: int, older: int) -> str:
    """Return the page of all cases."""
    lines = [HEAD.format(seeds=seeds, more=seeds * MORE_DRAWS, floor=FLOOR, end=END, most=MOST_STEPS, spacing=SPACING)]
    if older:
        lines.append(f"{older} draws were measured with older code of the estimates.\n")
    for half in reversed(HALVES):
        some = [case for case in known if case.half == half]
        lines += [f"## Truths, {half} half\n", "Ratios of `auto` to the oracle.\n"]
        lines += ["| truth | cases | TV, mean | TV, worst | EMD, mean | EMD, worst |", "|---|--:|--:|--:|--:|--:|"]
        for truth, own in by_truth(some):
            lines.append(f"| {truth} | {len(own)} | " + " | ".join(of_truth(own, variation, moved)) + " |")
        lines.append("")
    lines += rivals_section(known, variation)
    judged_draws = [case for case in known if not case.few_values]
    far = variation.far_draws(judged_draws)
    drawn = sum(len(variation.draws(case)) for case in judged_draws)
    lines += [
        "## Worst draws\n",
        f"In {len(far)} of {drawn} draws `auto` is more than {WORST} times as far as the oracle:\n",
    ]
    lines += [f"- {ratio:.2f} times: {name}" for ratio, name in far] + [""]
    lines += ["## Cases\n", "| case | half | " + " | ".join(COLUMNS) + " | ratio |", "|---|---|" + "--:|" * 8]
    for case in known:
        cells = [written(variation.error(case, method)) for method in COLUMNS]
        ratio = variation.ratios([case], "auto")[case]
        lines.append(f"| {case.name} | {case.half} | " + " | ".join(cells) + f" | {ratio:.3f} |")
    return "\n".join(lines) + "\n"


def written(error: float | None) -> str:
    """Return an error as people read it."""
    return "–" if error is None else f"{error:.4f}"
