"""Make the tables of docs/choose/index.md: plans that are kept in docs/choose/plans.json, and the explorer's studies.

Run from the repository's root: python scripts/make_choice_tables.py [--plan]

With --plan the plans are made anew (some minutes of one core; the seed is fixed). Without, the tables are written from
what is kept and from docs/_static/explorer, which scripts/make_explorer_tables.py wrote before.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hubbub as hb
from hubbub.intake.study_entries import MECHANISMS

sys.path.insert(0, str(Path(__file__).parent))  # imported by a test, too
import make_explorer_tables as explorer

ROOT = Path(__file__).parent.parent
PAGE, PLANS = ROOT / "docs" / "choose" / "index.md", ROOT / "docs" / "choose" / "plans.json"
EPSILONS = [0.5, 1.0, 2.0, 4.0]
KINDS = {
    "randomized-response": "randomized response",
    "rappor": "RAPPOR",
    "optimized-unary": "OUE",
    "local-hashing": "OLH",
}
SIZES = (2, 8, 32, 100)
TARGET, DIFFERENCE = 0.05, 0.05
NEARLY = 1.1  # as few users as the fewest
USERS = 10_000  # of the tables that compare methods


# -- plans -------------------------------------------------------------------------------------------------


def users_needed(size: int, kind: str, epsilon: float) -> float | None:
    """Return the users for a total variation of 0.05 in half of all studies, by inversion; None: too many to plan."""
    domain = hb.Categories([str(number) for number in range(size)])
    plan = hb.plan(kind, domain=domain, epsilon=epsilon, target=TARGET, truth="zipf", method="inv-p")
    return plan.needed[0].value


def users_per_group(epsilon: float) -> float | None:
    """Return the users per group that show a difference of 5 points with probability 0.8, of shares near one half."""
    domain = hb.Categories(["no", "yes"])
    plan = hb.plan("randomized-response", domain=domain, epsilon=epsilon, difference=DIFFERENCE, truth="uniform")
    return plan.needed[0].value


def plans() -> dict[str, Any]:
    """Make all plans, and show how far it is."""
    made: dict[str, Any] = {"needed": {}, "groups": {}}
    for size in SIZES:
        for kind in KINDS:
            for epsilon in EPSILONS:
                name = f"{size} {kind} {epsilon:g}"
                made["needed"][name] = users_needed(size, kind, epsilon)
                print(name, made["needed"][name], flush=True)
    for epsilon in EPSILONS:
        made["groups"][f"{epsilon:g}"] = users_per_group(epsilon)
    return made


# -- tables ------------------------------------------------------------------------------------------------


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column holds words and whose others hold numbers."""
    rule = ["---", *("--:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def count(users: float | None) -> str:
    """Return a number of users to two digits."""
    if users is None:
        return "–"
    digits = max(0, math.ceil(math.log10(users)) - 2)
    return f"{round(users, -digits):,.0f}"


def of_hundred(error: float) -> str:
    """Return how many of 100 people are at a wrong value."""
    return f"{100 * error:.2g}" if error < 0.1 else f"{100 * error:.0f}"


def setting_title(question: explorer.Question, offer: explorer.Offer, epsilon: float) -> str:
    """Return a setting in a few words."""
    unit = f" per {question.domain.unit}" if MECHANISMS[offer.kind].metric else ""
    return f"{question.title}: {KINDS.get(offer.kind, offer.title)}, epsilon {epsilon:g}{unit}"


def mechanisms_table(kept: dict[str, Any]) -> str:
    """Return the users needed by number of values, epsilon and kind; the fewest are bold."""
    rows = []
    for size in SIZES:
        for epsilon in EPSILONS:
            needed = [kept["needed"][f"{size} {kind} {epsilon:g}"] for kind in KINDS]
            fewest = min(number for number in needed if number is not None)
            bold = ["**" if each is not None and each <= NEARLY * fewest else "" for each in needed]
            cells = [f"{mark}{count(each)}{mark}" for mark, each in zip(bold, needed, strict=True)]
            rows.append([f"{size} categories, epsilon {epsilon:g}", *cells])
    return markdown(["categories and epsilon", *KINDS.values()], rows)


def groups_table(kept: dict[str, Any]) -> str:
    """Return the users per group by epsilon."""
    return markdown(["epsilon", "users per group"], [[name, count(users)] for name, users in kept["groups"].items()])


def users_table() -> str:
    """Return the errors of `auto` by question, epsilon and users, with the first mechanism of each question."""
    rows = []
    for question in explorer.QUESTIONS:
        table = explorer.read_table(question.key, explorer.TARGET)
        offer = question.offers[0]
        for epsilon in offer.epsilons:
            found = [table["settings"][f"{offer.kind} {epsilon:g} {users}"]["auto"][0][0] for users in table["users"]]
            rows.append([setting_title(question, offer, epsilon), *map(of_hundred, found)])
    made = markdown(["setting", *(f"{users:,} users" for users in explorer.USERS)], rows)
    runs = "; ".join(
        f"{question.title[0].lower()}{question.title[1:]} {question.runs}" for question in explorer.QUESTIONS
    )
    return f"{made}\n\nEach number is the mean of a few simulated studies: {runs}."


def methods_table() -> str:
    """Return the errors of methods, noisy counts and equal shares for each question and mechanism."""
    rows = []
    for question in explorer.QUESTIONS:
        table = explorer.read_table(question.key, explorer.TARGET)
        for offer in (offer for offer in question.offers if offer.kind != "rappor"):
            epsilon = offer.epsilons[2]
            found = table["settings"][f"{offer.kind} {epsilon:g} {USERS}"]
            errors = [found[name][0][0] for name in ("auto", "inv-p", "reports")]
            title = setting_title(question, offer, epsilon)
            rows.append([title, *map(of_hundred, [*errors, table["nothing"][0]])])
    return markdown(["setting", "`auto`", "`inv-p`", "noisy counts", "equal shares"], rows)


def with_tables(page: str) -> str:
    """Return the page with every table made anew: each stands between `% table NAME` and `% end`."""
    kept = json.loads(PLANS.read_text(encoding="utf-8"))
    tables: dict[str, Callable[[], str]] = {
        "mechanisms": lambda: mechanisms_table(kept),
        "groups": lambda: groups_table(kept),
        "users": users_table,
        "methods": methods_table,
    }
    for name, table in tables.items():
        begin, end = f"% table {name}\n", "% end"
        made = f"{begin}\n{table()}\n{end}"
        page = re.sub(f"{re.escape(begin)}.*?{end}", lambda _, made=made: made, page, flags=re.DOTALL)  # type: ignore[misc]
    return page


def main() -> None:
    """Plan, if that is asked for, and write the tables into the page."""
    if "--plan" in sys.argv[1:]:
        PLANS.write_text(json.dumps(plans(), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
