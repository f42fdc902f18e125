"""Every command that prints JSON, run on studies so small that each takes a moment, and what it prints."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hubbub as hb
from terminal import hubbub

DRINKS = """version = 1
name = "drinks"
max_epsilon_per_user = 1.5
[domain]
kind = "categories"
labels = ["tea", "coffee", "water"]
[mechanisms.standard]
kind = "randomized-response"
epsilon = 2.0
"""
TWO = """version = 1
max_epsilon_per_unit = 0.5
[domain]
kind = "integers"
low = 1
high = 3
[mechanisms.noise]
kind = "truncated-geometric"
epsilon = 1.0
[mechanisms.parts]
kind = "cloaking"
regions = ["low", "low", "high"]
"""
CITY = """version = 1
[domain]
kind = "grid"
south = 52.48
west = 13.33
north = 52.54
east = 13.45
columns = 2
rows = 2
[mechanisms.noise]
kind = "planar-geometric"
epsilon = 1.0
"""
PAIR = """version = 1
[domain]
kind = "product"
[domain.attributes.sex]
kind = "categories"
labels = ["f", "m"]
[domain.attributes.town]
kind = "categories"
labels = ["a", "b"]
[mechanisms.both]
kind = "split"
epsilon = 2.0
[mechanisms.both.parts.sex]
kind = "randomized-response"
[mechanisms.both.parts.town]
kind = "randomized-response"
[mechanisms.one]
kind = "sample-one"
epsilon = 2.0
[mechanisms.one.parts.sex]
kind = "randomized-response"
[mechanisms.one.parts.town]
kind = "randomized-response"
"""
PEOPLE = """version = 1
[domain]
kind = "product"
[domain.attributes.drink]
kind = "categories"
labels = ["tea", "coffee"]
[domain.attributes.age]
kind = "integers"
low = 1
high = 2
[mechanisms.both]
kind = "split"
[mechanisms.both.parts.drink]
kind = "randomized-response"
epsilon = 2.0
[mechanisms.both.parts.age]
kind = "randomized-response"
epsilon = 2.0
"""
SQUARE = [[[13.33, 52.48], [13.39, 52.48], [13.39, 52.54], [13.33, 52.54], [13.33, 52.48]]]
FAR = [[[14.33, 52.48], [14.39, 52.48], [14.39, 52.54], [14.33, 52.54], [14.33, 52.48]]]


def write_inputs(folder: Path) -> None:
    """Write the studies, reports and regions that `RUNS` name."""
    draw = random.Random(1)  # noqa: S311
    for name, text in {"drinks": DRINKS, "two": TWO, "city": CITY, "pair": PAIR, "people": PEOPLE}.items():
        (folder / f"{name}.toml").write_text(text)
    rows = ["user,output,region,time"]
    weighted = ["user,output,weight"]
    for user in range(300):
        output = draw.choices(["tea", "coffee", "water"], [6, 3, 1] if user % 2 else [4, 5, 1])[0]
        rows.append(f"{user},{output},{'abc'[user % 3]},2026-11-0{1 + user % 4}")
        weighted.append(f"{user},{output},{1 + user % 2}")
    (folder / "reports.csv").write_text("\n".join(rows) + "\n")
    (folder / "weighted.csv").write_text("\n".join(weighted) + "\n")
    (folder / "marked.csv").write_text("time,output\n2026-11-01,tea\n2026-11-02,water\n2026-11-03,tea\n")
    (folder / "people.csv").write_text("output.drink,output.age\n" + "tea,1\ntea,2\ncoffee,2\n" * 20)
    (folder / "alone.csv").write_text("mechanism,output.sex,output.town\n" + "one,f,\none,,a\none,m,\none,,b\n" * 20)
    drawn = [f"{value},parts,{'high' if value == 3 else 'low'}" for value in (1, 2, 3) * 40]
    noisy = draw.choices((1, 2, 3), (73, 17, 10), k=60), draw.choices((1, 2, 3), (10, 17, 73), k=60)
    drawn += [f"{value},noise,{output}" for value, outputs in zip((1, 3), noisy, strict=True) for output in outputs]
    (folder / "drawn.csv").write_text("\n".join(["value,mechanism,output", *drawn]) + "\n")
    answers = draw.choices(["tea", "coffee", "water"], [79, 10.5, 10.5], k=120)
    (folder / "one.csv").write_text("value,output\n" + "".join(f"tea,{answer}\n" for answer in answers))
    (folder / "wrong.csv").write_text("output\ntea\nwater\ntee\n")
    (folder / "plain.csv").write_text("output\n" + "tea\ncoffee\ntea\nwater\n" * 20)
    (folder / "bounds.csv").write_text("value,other,bound\n1,2,0.5\n2,3,1.5\n")
    (folder / "values.csv").write_text("value,note\ntea,a\nwater,b\n")
    (folder / "numbers.csv").write_text("output\n" + "1\n2\n3\n2\n1\n1\n" * 20)
    (folder / "other.csv").write_text("output\n" + "3\n2\n3\n3\n1\n1\n" * 20)
    (folder / "third.csv").write_text("output\n" + "2\n2\n3\n1\n1\n" * 20)
    (folder / "numbers.toml").write_text(TWO.partition("[mechanisms.parts]")[0])
    head, _, parts = TWO.partition("[mechanisms.parts]")
    (folder / "parts.toml").write_text(f"{head.partition('[mechanisms.noise]')[0]}[mechanisms.parts]{parts}")
    (folder / "daily.toml").write_text(DRINKS.replace("randomized-response", "longitudinal-rappor") + "first = 1.0\n")
    (folder / "parts.csv").write_text("output\n" + "low\nhigh\nlow\n" * 20)
    for name in ("cells", "same"):
        (folder / f"{name}.csv").write_text("output\n" + "0\n0\n0\n1\n1\n2\n3\n" * 20)
    for name, other in (("search", None), ("other", "b")):
        search = hb.PrefixSearch("ab", length=2, epsilon=3.0, prefix_lengths=[1, 2], other=other)
        (folder / f"{name}.json").write_text(search.to_json())
    words = search.privatize(["a"] * 60 + ["bb"] * 40, rng=1).tolist()
    (folder / "words.csv").write_text("round,output\n" + "".join(f"{turn},{s}:{b}\n" for turn, s, b in words))
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": ring}}
        for name, ring in (("west", SQUARE), ("far", FAR))
    ]
    (folder / "regions.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))


RUNS: dict[str, list[str]] = {
    "privatize": [
        "privatize drinks.toml values.csv -o private.csv --json",
        "privatize two.toml --export-tables tables.json --json",
    ],
    "export-client": ["export-client two.toml -o study.json --json"],
    "collect and merge": [
        "collect drinks.toml reports.csv --by region -o a.tally.parquet --json",
        "collect drinks.toml weighted.csv -o weighted.tally.parquet --json",
        "collect drinks.toml wrong.csv --allow-rejects 1 -o b.tally.parquet --json",
        "collect drinks.toml wrong.csv --allow-rejects 1 -o b.tally.parquet --json",
        "collect drinks.toml marked.csv --watermark time --lag 1d -o c.tally.parquet --json",
        "merge b.tally.parquet -o d.tally.parquet --json",
    ],
    "estimate": [
        "estimate drinks.toml reports.csv --as-of 2026-11-02 --json",
        "estimate drinks.toml weighted.csv --quick --json",
        "estimate people.toml people.csv --json",
        "estimate city.toml cells.csv --regions regions.geojson --method mle --quick --json",
    ],
    "check": [
        "check drinks.toml reports.csv --json",
        "check parts.toml parts.csv --json",
        "check city.toml cells.csv --regions regions.geojson --json",
    ],
    "groups": ["estimate drinks.toml reports.csv --by region --quick --json"],
    "resolve": ["resolve drinks.toml reports.csv --json", "resolve parts.toml parts.csv --json"],
    "two groups": [
        "compare numbers.toml numbers.csv other.csv --quantile 0.5 --json",
        "compare drinks.toml plain.csv wrong.csv --allow-rejects 1 --json",
        "compare drinks.toml weighted.csv plain.csv --json",
        "compare city.toml cells.csv same.csv --regions regions.geojson --json",
    ],
    "several groups": [
        "compare drinks.toml reports.csv --by region --json",
        "compare numbers.toml numbers.csv other.csv third.csv --against third --json",
    ],
    "trend": ["trend drinks.toml reports.csv --by day --json"],
    "independence": [
        "independence people.toml people.csv --json",
        "independence pair.toml alone.csv --attributes sex,town --json",
    ],
    "discover": ["discover search.json words.csv --json", "discover other.json words.csv --json"],
    "design": [
        "design drinks.toml --epsilon 1 --goal service-loss --json",
        "design drinks.toml --epsilon 1 --compare --method inv-p --runs 20 --json",
        "design numbers.toml --pairs bounds.csv --goal information --json",
    ],
    "plan": [
        "plan drinks.toml --users 1000 --method inv-p --values all --json",
        "plan drinks.toml --target 0.05 --method inv-p --truth uniform --truth zipf --json",
        "plan drinks.toml --difference 10% --json",
        "plan drinks.toml --difference 10% --users 100 --json",
        "plan drinks.toml --kind all --central-epsilon 0.5 --delta 1e-6 --users 1000 --method inv-p --json",
        "plan numbers.toml --users 1000 --method inv-p --distance emd --truth uniform --truth zipf --json",
    ],
    "plan of several attributes": [
        "plan pair.toml --users 1000 --json",
        "plan pair.toml --users 1000 --epsilon 1 --truth zipf --seed 3 --json",
    ],
    "errors": [
        "estimate drinks.toml wrong.csv --json",
        "estimate drinks.toml gone.csv --json",
        "plan drinks.toml --users ten --json",
        "audit drinks.toml --draws 3 --json",
    ],
    "audit": [
        "audit two.toml --draws 2000 --json",
        "audit daily.toml --draws 2000 --json",
        "audit pair.toml --draws 2000 --json",
        "audit two.toml --draws 2000 --prior uniform --json",
        "audit numbers.toml --draws 2000 --prior uniform --json",
    ],
    "audit of outputs": [
        "audit two.toml --outputs drawn.csv --json",
        "audit drinks.toml --outputs one.csv --json",
    ],
}


def documents(command: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Run a command in each of its ways, and yield what it prints."""
    for line in RUNS[command]:
        done = hubbub(*line.split(), cwd=folder)
        document = json.loads(done.stdout)
        assert done.returncode == document.get("error", {"exit_code": 0})["exit_code"], f"{line}\n{done.stderr}"
        assert (command == "errors") == ("error" in document)
        yield document


def entries(document: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each entry of a document with its place: `groups[].users`."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield f"{path}.{name}".removeprefix("."), value
            yield from entries(value, f"{path}.{name}".removeprefix("."))
    elif isinstance(document, list):
        for value in document:
            if isinstance(value, dict):
                yield from entries(value, f"{path}[]")
