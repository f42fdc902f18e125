"""Clients in every language make the same outputs of the same bytes: Python here, JavaScript in Node and Chromium.

The vectors are cases that hubbub.client itself made (scripts/make_vectors.py): what is tested here against the Python
client is that they still hold. That the laws are right is tested by chi-square in tests/test_client.py.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubbub import client
from hubbub.client import Client
from hubbub.intake.privatizing.client_document import export_client
from hubbub.intake.privatizing.device_tables import export_tables
from node import CLIENTS, SCRIPT, run_node

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

ROOT = Path(__file__).parent.parent
VECTORS = CLIENTS / "vectors"
NAMES = sorted(path.stem for path in VECTORS.glob("*.json"))
MAX_BYTES = 3_000_000  # of all files


@cache
def vectors(kind: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((VECTORS / f"{kind}.json").read_bytes())
    return content


@pytest.fixture(scope="module")
def maker() -> Iterator[Any]:
    """The program that writes the vectors."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        yield __import__("make_vectors")
    finally:
        sys.path.remove(str(ROOT / "scripts"))


class GivenBytes:
    """The bytes of a case, one after the other."""

    def __init__(self, digits: str) -> None:
        self._left = bytes.fromhex(digits)

    def __call__(self, count: int) -> bytes:
        taken, self._left = self._left[:count], self._left[count:]
        assert len(taken) == count, "more bytes are asked for than the case has"
        return taken


# -- Python -----------------------------------------------------------------------------------------------------------


def check(study: dict[str, Any], maker: Any, folder: Path) -> Counter[tuple[str, bool, str]]:
    """Make sure that a study is written as it is stored, and its outputs; return how comparisons of words came out."""
    folder.mkdir(parents=True)
    path, tables = folder / "study.toml", folder / "tables.json"
    path.write_text(study["toml"])
    export_client(path, folder / "study.json")
    assert json.loads((folder / "study.json").read_bytes()) == study["document"]
    export_tables(path, tables)
    device = Client(path, tables)
    comparisons: Counter[tuple[str, bool, str]] = Counter()
    for case in study["cases"]:
        watch = maker.Watch(GivenBytes(case["bytes"]))
        with maker.watched(watch):
            result = maker.run(device, case.get("call", "privatize"), case["value"], case.get("earlier", ()))
        assert result == {name: case[name] for name in result}, case
        assert watch.used.hex() == case["bytes"]
        assert case.get("reaches", []) == watch.labels()
        comparisons.update((each.site.partition(".<")[0], each.below, each.decision) for each in watch.seen)
    return comparisons


def test_python_makes_the_stored_outputs_and_reaches_every_branch(maker: Any, tmp_path: Path) -> None:
    comparisons: Counter[tuple[str, bool, str]] = Counter()
    for kind in NAMES:
        for number, study in enumerate(vectors(kind)["studies"]):
            comparisons += check(study, maker, tmp_path / kind / str(number))
    sites = {
        *("Noise.draw", "draw_bits", "draw_response", "draw_subset", "flip_bits", "random_below", "random_event"),
        *("_draw_from_quarter", "_draw_from_rows", "draw_answers"),
    }
    assert {site for site, _, _ in comparisons} == sites
    outcomes = {(below, decision) for below in (True, False) for decision in ("first byte", "further bytes", "border")}
    expected = {(site, *outcome) for site in sites for outcome in outcomes - {(True, "border")}}
    expected -= {("random_below", False, "first byte")}  # words that are redrawn begin with ones
    assert {found for found in expected if comparisons[found] < 5} == set()
    reached = Counter(
        label
        for kind in NAMES
        for study in vectors(kind)["studies"]
        for case in study["cases"]
        for label in case.get("reaches", [])
    )
    for label in (
        "word redrawn",
        "displacement rejected",
        "noise beyond the first block",
        "noise beyond the second block",
    ):
        assert reached[label] > 50, label


def test_vectors_have_every_kind_both_ends_and_thousands_of_cases() -> None:
    assert set(NAMES) == {*client.MECHANISMS, "values"}
    studies = [study for kind in NAMES for study in vectors(kind)["studies"]]
    assert {study["document"]["domain"]["kind"] for study in studies} == set(client.DOMAINS)
    used = {
        law["kind"]
        for study in studies
        for top in study["document"]["mechanisms"].values()
        for law in (top, *top.get("parts", {}).values())
    }
    assert used == set(client.MECHANISMS)
    assert sum(len(study["cases"]) for study in studies) > 5_000
    assert sum((VECTORS / f"{kind}.json").stat().st_size for kind in NAMES) < MAX_BYTES
    for kind, ends in {
        "truncated-geometric": ("3", "9"),
        "laplace": ("0", "3"),
        "planar-geometric": ("0", "11"),
        "planar-laplace": ("0", "11"),
    }.items():
        outputs = Counter(case.get("output") for study in vectors(kind)["studies"] for case in study["cases"])
        assert all(outputs[end] > 10 for end in ends), kind
    errors = {case["error"] for case in vectors("values")["studies"][-1]["cases"] if "error" in case}
    assert len(errors) == 3


def test_the_same_program_writes_the_same_file(maker: Any) -> None:
    """And another one does not: a case that is changed is found."""
    made = [maker.vectors(name, study) for name, study in maker.STUDIES["warner"].items()]
    assert maker.written("warner", made) == (VECTORS / "warner.json").read_text()


# -- JavaScript -------------------------------------------------------------------------------------------------------


def test_node_makes_the_stored_outputs_and_reaches_every_branch(tmp_path: Path) -> None:
    """V8 counts how often each block of the client ran: those that never ran refuse, or are no part of the sampler."""
    run_node(SCRIPT / "test" / "vectors.test.js", NODE_V8_COVERAGE=str(tmp_path))
    text = (SCRIPT / "hubbub-client.js").read_text()
    start, end = text.index("// --- random draws"), text.index("// --- memory")
    blocks, unused = 0, []
    for path in tmp_path.glob("*.json"):
        for script in json.loads(path.read_bytes())["result"]:
            if not script["url"].endswith("/hubbub-client.js"):
                continue
            for function in script["functions"]:
                inside = [part for part in function["ranges"] if start <= part["startOffset"] < end]
                blocks += len(inside)
                unused += [
                    (function["functionName"], text[part["startOffset"] : part["endOffset"]])
                    for part in inside
                    if part["count"] == 0
                ]
    assert blocks > 150
    system = {"newBytes", "systemBytes"}  # replaced by the bytes of the cases
    rest = [block for name, block in unused if name not in system and "throw " not in block]
    assert rest == ["this.#chances.clear();"]


def test_node_refuses_and_keeps_what_it_should() -> None:
    run_node(SCRIPT / "test" / "client.test.js")


def test_vectors_find_planted_faults() -> None:
    run_node(SCRIPT / "test" / "planted-faults.test.js")


def test_chromium_makes_the_stored_outputs(chromium: Browser) -> None:
    page = chromium.new_page()
    asked = []

    def answer(route: Route) -> None:
        path = CLIENTS / route.request.url.removeprefix("https://clients.test/")
        asked.append(path.name)
        kind = {".js": "text/javascript", ".json": "application/json"}.get(path.suffix, "text/html")
        route.fulfill(body=path.read_text() if path.is_file() else "", content_type=kind)

    page.route("**/*", answer)
    page.goto("https://clients.test/")
    found: dict[str, Any] = page.evaluate(
        """async (names) => {
          const module = await import("https://clients.test/javascript/hubbub-client.js");
          const { runVectors } = await import("https://clients.test/javascript/test/run-vectors.js");
          const total = { cases: 0, failures: [] };
          for (const name of names) {
            const file = await (await fetch(`https://clients.test/vectors/${name}.json`)).json();
            const { cases, failures } = await runVectors(file, module);
            total.cases += cases;
            total.failures.push(...failures);
          }
          const { studies } = await (await fetch("https://clients.test/vectors/warner.json")).json();
          const client = await module.Client.from(studies[0].document);
          total.drawn = Array.from({ length: 64 }, () => client.privatize("yes"));
          total.kept = client.remember(localStorage);
          return total;
        }""",
        NAMES,
    )
    page.close()
    assert found["failures"] == []
    assert found["cases"] == sum(len(study["cases"]) for kind in NAMES for study in vectors(kind)["studies"])
    assert set(found["drawn"]) == {"yes", "no"}  # wrong once in 2^32 runs: one of them has probability 0.7
    assert asked.count("hubbub-client.js") == 1


PAGE = """
import {{ readFileSync }} from "node:fs";
const [sent, items] = [[], new Map()];
globalThis.fetch = async (address, options) => {{
  if (options) sent.push(options.body);
  return {{ text: async () => readFileSync(address, "utf8") }};
}};
globalThis.localStorage = {{
  getItem: (key) => items.get(key) ?? null,
  setItem: (key, text) => items.set(key, text),
}};
{example}
console.log(JSON.stringify({{ sent, items: [...items.keys()], kept, weekly }}));
"""


def test_what_the_documentation_shows_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "privatize-in-a-browser.md").read_text()
    study = re.findall(r"<<'END'\n(.*?)^END$", text, re.DOTALL | re.MULTILINE)[0]
    (tmp_path / "study.toml").write_text(study)
    digest = export_client(tmp_path / "study.toml", tmp_path / "study.json")
    assert text.count(digest) == 2, "the page pins another digest than its command prints"
    (tmp_path / "hubbub-client.js").write_bytes((SCRIPT / "hubbub-client.js").read_bytes())
    example = "".join(re.findall(r"^```js\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    example = example.replace('"study.json"', json.dumps(str(tmp_path / "study.json")))
    (tmp_path / "page.mjs").write_text(PAGE.format(example=example))
    found = json.loads(run_node(tmp_path / "page.mjs"))
    body = json.loads(found["sent"][0])
    assert list(body) == ["fingerprint", "reports"]
    assert [list(report) for report in body["reports"]] == [["mechanism", "output", "key"]]
    assert "bus" not in found["sent"][0]
    assert found["items"] == [f"hubbub:{body['fingerprint']}:weekly"]
    assert found["items"][0] in found["kept"]


# -- the package ------------------------------------------------------------------------------------------------------


def test_the_package_of_the_javascript_client() -> None:
    package = json.loads((SCRIPT / "package.json").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{package["version"]}"' in project
    assert f'license = "{package["license"]}"' in project
    assert "dependencies" not in package
    assert "devDependencies" not in package
    assert all((SCRIPT / name).is_file() for name in package["files"])
    assert (SCRIPT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    text = (SCRIPT / "hubbub-client.js").read_text()
    code = text[text.index("// --- limits") :]
    assert not re.search(r"^import |import\(|require\(|Math\.random|eval\(|fetch\(|XMLHttp|Beacon", code, re.MULTILINE)


def test_the_package_is_small(tmp_path: Path) -> None:
    import tarfile

    names = ["package.json", "README.md", "LICENSE", *json.loads((SCRIPT / "package.json").read_text())["files"]]
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as packed:
        for name in names:
            packed.add(SCRIPT / name, f"package/{name}")
    assert (tmp_path / "package.tgz").stat().st_size < 30_000
