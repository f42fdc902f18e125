"""The reference says what the program does: commands, study files, outputs, tallies, JSON."""

import importlib
import inspect
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import hubbub as hb
import json_documents
from hubbub.cli.app import app
from hubbub.cli.commands import COMMANDS, module_of
from hubbub.client import COLLECTOR_CHOICES, COLLECTOR_LIMITS, QUESTION_ENTRIES, STUDY_COLUMNS, WAYS_TO_REPORT
from hubbub.core.text import kebab
from hubbub.estimators.api import METHODS
from hubbub.intake.reject_causes import CAUSES
from hubbub.intake.study import LIMITS
from hubbub.intake.study_entries import DOMAINS, MECHANISMS
from terminal import hubbub

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
PAGES = REFERENCE / "commands"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def tables(page: Path) -> dict[str, list[list[str]]]:
    """The rows of all tables of a page, by the anchor of the heading above them; without head lines."""
    found: dict[str, list[list[str]]] = {}
    anchor = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            anchor = line.lstrip("# ").lower().replace(" ", "-")
        elif line.startswith("| "):
            found.setdefault(anchor, []).append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif line.startswith("|---"):
            del found[anchor][-1]
    return found


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# Protocols of other tools


def protocols() -> list[list[str]]:
    return tables(REFERENCE / "mechanisms.md")["protocols-of-other-tools"]


def test_what_other_tools_call_their_protocols_is_named_by_what_it_is_here() -> None:
    assert len(protocols()) > 50
    own = {*METHODS, *hb.__all__}
    assert [(there, name) for _, there, here in protocols() for name in named(here) if name not in own] == []


def test_no_protocol_of_another_tool_is_missing() -> None:
    """The lists are made from their sources by tests/reference/other_tools.py."""
    listed = json.loads((ROOT / "tests" / "reference" / "other_tools.json").read_text())
    for tool, names in listed.items():
        told = {name for row_tool, there, _ in protocols() for name in named(there) if row_tool == tool}
        assert [name for name in names if name not in told] == [], tool
        assert len(names) > 10


# Commands


@pytest.fixture(scope="module")
def reference() -> Any:
    sys.path.insert(0, str(ROOT / "docs" / "_extensions"))
    try:
        return importlib.import_module("command_reference")
    finally:
        sys.path.pop(0)


def test_every_command_has_a_page() -> None:
    index = (PAGES / "index.md").read_text()
    assert sorted(path.stem for path in PAGES.glob("*.md")) == sorted([*COMMANDS, "index", "reading-options"])
    for name in COMMANDS:
        text = (PAGES / f"{name}.md").read_text()
        assert text.startswith(f"# hubbub {name}\n")
        assert re.findall(r":::\{(command[a-z-]*)\} ([\w-]+)\n", text) == [("command", name), ("command-options", name)]
        assert f"\n{name}\n" in index


@pytest.mark.parametrize("name", COMMANDS)
def test_pages_have_the_options_that_help_shows(name: str, reference: Any) -> None:
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "300"}).output
    options = set(re.findall(r"(?m)^  (?:-[a-z], )?(--[a-z-]+)", shown)) - {"--help"}
    page = reference.HelpOf(name).option_list()
    assert set(re.findall(r"(--[a-z-]+)", re.sub(r"(?m)^(?!::::|And the).*", "", page))) == options
    assert page.count("And the [options") == (name in reference.COMMANDS and "--as-of" in options)
    plain = re.sub(r"\s+", "", shown)  # lines are broken at hyphens, too
    for text in re.findall(r"(?m)^(?!:|And|$)(.*?\.)(?: Default: .*| Required\.)?$", page):
        told = text.replace("`--", "--").replace("` ", " ").partition("`")[0].partition("[")[0]
        assert re.sub(r"\s+", "", told) in plain


def test_help_names_how_to_pages_by_their_titles(reference: Any) -> None:
    for title, name in reference.HOW_TO.items():
        assert (ROOT / "docs" / "how-to" / f"{name}.md").read_text().startswith(f"# {title}")


def commands_of(page: Path) -> Iterator[str]:
    """The commands of a page's examples; those of several lines in one."""
    script = "\n".join(blocks(page, "sh"))
    waiting = ""
    for line in script.splitlines():
        waiting += line + "\n"
        if waiting.count("'") % 2 == 0 and waiting.strip():
            yield waiting.strip()
            waiting = ""


def run_examples(page: Path, folder: Path) -> None:
    for command in commands_of(page):
        if command.startswith("hubbub "):
            done = hubbub(*shlex.split(command, comments=True)[1:], cwd=folder)
        else:
            done = subprocess.run(  # noqa: S603
                ["bash", "-euc", command],  # noqa: S607
                cwd=folder, capture_output=True, text=True, check=False,
            )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"


QUICK_EXAMPLES = ("new", "collect", "resolve")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK_EXAMPLES else pytest.mark.slow)
        for name in [*COMMANDS, "reading-options"]
    ],
)
def test_examples_of_commands_run(name: str, tmp_path: Path) -> None:
    run_examples(PAGES / "index.md", tmp_path)
    assert list(commands_of(PAGES / f"{name}.md"))
    run_examples(PAGES / f"{name}.md", tmp_path)


# Study files


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> list[hb.Study]:
    """The examples of the page, read as files."""
    folder = tmp_path_factory.mktemp("studies")
    found = []
    for number, text in enumerate(blocks(REFERENCE / "study-file.md", "toml")):
        path = folder / f"{number}.toml"
        path.write_text(text)
        found.append(hb.read_study(path))
    return found


def test_the_examples_of_study_files_have_every_kind_and_entry(studies: list[hb.Study]) -> None:
    assert {kebab(type(study.domain).__name__) for study in studies} == set(DOMAINS)
    kinds = {kebab(type(mechanism).__name__) for study in studies for mechanism in study.mechanisms.values()}
    assert kinds == set(MECHANISMS)
    documents = [tomllib.loads(text) for text in blocks(REFERENCE / "study-file.md", "toml")]
    assert {"version", "name", "domain", "mechanisms", "columns", "question", "collector", *LIMITS} == {
        key for each in documents for key in each
    }


def test_the_page_of_study_files_has_every_entry() -> None:
    rows = tables(REFERENCE / "study-file.md")
    top = {name for row in rows["entries-at-the-top"] for name in named(row[0])}
    tables_of_studies = {"[domain]", "[mechanisms.NAME]", "[columns]", "[question]", "[collector]"}
    assert top == {"version", "name", *LIMITS, *tables_of_studies}
    assert [named(row[0])[0] for row in rows["question"]] == list(QUESTION_ENTRIES)
    collector = {named(row[0])[0]: row[2] for row in rows["collector"]}
    assert set(collector) == {*COLLECTOR_CHOICES, *COLLECTOR_LIMITS, "origins"}
    assert all(f'`"{choice}"`' in collector[name] for name, choices in COLLECTOR_CHOICES.items() for choice in choices)
    assert all(f"default {default:,}" in collector[name] for name, (_, default, _) in COLLECTOR_LIMITS.items())
    columns = [name for row in rows["columns"] for name in named(row[0])]
    assert sorted(columns) == sorted(STUDY_COLUMNS)
    mechanisms = {named(row[0])[0]: set(named(row[1])) for row in rows["mechanisms"]}
    assert mechanisms == {
        kind: set(list(inspect.signature(builder).parameters)[1:])
        for kind, builder in MECHANISMS.items()
        if kind not in WAYS_TO_REPORT
    }
    ways = {named(row[0])[0]: set(named(row[1])) for row in rows["several-attributes"]}
    assert ways == {kind: {"parts", "epsilon", *own} for kind, own in WAYS_TO_REPORT.items()}
    product = {"product": {"attributes", "order", "impossible"}}
    domains: dict[str, set[str]] = {}
    for row in rows["domains"]:
        domains.setdefault(named(row[0])[0], set()).update(set(named(row[1])) - {"[width, height]"})
    builders: dict[str, list[Any]] = {kind: [builder] for kind, builder in DOMAINS.items()} | {
        "grid": [hb.Grid, hb.Grid.over]
    }
    assert domains == product | {
        kind: {name for each in own for name in inspect.signature(each).parameters} - {"box"}
        for kind, own in builders.items()
        if kind != "product"
    }


# Reports


def test_outputs_are_read_as_the_page_writes_them(studies: list[hb.Study]) -> None:
    by_kind = {
        kebab(type(mechanism).__name__): (study, name)
        for study in studies
        for name, mechanism in list(study.mechanisms.items())[::-1]
    }
    rows = tables(REFERENCE / "report-table.md")["outputs"]
    assert {kind for row in rows for kind in named(row[0])} == set(MECHANISMS)
    for row in rows:
        for kind in named(row[0]):
            study, name = by_kind[kind]
            single = hb.Study(study.domain, {name: study.mechanisms[name]})
            forms = named(row[2])
            read = [hb.read_reports(pd.DataFrame({"output": [text]}), single) for text in forms]
            assert all(each.users == 1 for each in read)
            tops = range(1, len(study.domain) + 1)  # unequal shares: outputs that point at other values differ
            likelihoods = {hb.log_likelihood(each, [top / sum(tops) for top in tops]) for each in read}
            assert len(likelihoods) == 1, (kind, forms)


def test_every_cause_is_in_the_documentation() -> None:
    text = (REFERENCE / "report-table.md").read_text()
    assert [code for code, words in CAUSES.items() if f"| `{code}` | {words} |" not in text] == []
    listed = [named(row[0])[0] for row in tables(REFERENCE / "report-table.md")["all-causes"]]
    assert sorted(listed) == sorted(CAUSES)


# Tallies


def test_the_page_of_tallies_has_every_entry(tmp_path: Path) -> None:
    drinks = hb.Categories(["tea", "coffee"])
    study = hb.Study(drinks, {"answer": hb.RandomizedResponse(drinks, epsilon=1.0)})
    frame = pd.DataFrame({"output": ["tea", "coffee"], "place": ["a", "b"], "weight": [1.0, 2.0]})
    hb.collect(study, frame, tmp_path / "a.tally.parquet", by="place")
    (tmp_path / "rows.csv").write_text("id,output\n1,tea\n2,coffee\n")
    hb.collect(study, tmp_path / "rows.csv", tmp_path / "b.tally.parquet", watermark="id")
    rows = tables(REFERENCE / "tally.md")
    columns = {name for row in rows["rows"] for name in named(row[0])}
    assert set(pq.read_schema(tmp_path / "a.tally.parquet").names) == columns
    known = {name for row in rows["metadata"] for name in named(row[0])} - {"watermark"}
    found = set()
    for name in "ab":
        document = json.loads(pq.read_metadata(tmp_path / f"{name}.tally.parquet").metadata[b"hubbub"])
        found |= set(document)
        words = " ".join(row[1] for row in rows["metadata"])
        nested = [*document["sources"], *document.get("groups", []), document["sources"][0].get("watermark", {})]
        assert {key for each in nested for key in each} - {"watermark"} <= set(named(words))
    assert found == known


# JSON


def documented(anchor: str, rows: Mapping[str, list[list[str]]]) -> dict[str, str]:
    """The type of every entry of a document, with the entries of objects that are described elsewhere."""
    entries: dict[str, str] = {}
    for row in rows[anchor]:
        path, kind = named(row[0])[0], row[1]
        link = re.match(r"\[[^]]+\]\(#([^)]+)\)(.*)", kind)
        if not path.endswith("[]"):
            entries[path] = f"object{link[2]}" if link else kind
        if link:
            entries |= {f"{path}.{name}": own for name, own in documented(link[1], rows).items()}
    return entries


def is_label(value: object) -> bool:
    """Whether a value of one attribute is what JSON holds of it."""
    return isinstance(value, str | int) and not isinstance(value, bool)


IS_OF_TYPE: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "open": lambda value: isinstance(value, dict),
    "value": lambda value: is_label(value) or (isinstance(value, dict) and all(map(is_label, value.values()))),
    "list": lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value),
    "list of text": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "list of integer": lambda value: isinstance(value, list) and all(isinstance(each, int) for each in value),
    "list of number": lambda value: isinstance(value, list) and all(map(IS_OF_TYPE["number"], value)),
    "list of value": lambda value: isinstance(value, list) and all(map(IS_OF_TYPE["value"], value)),
}
NEVER_FILLED = {
    "collect and merge": "dates.sources[]",  # a tally has dates, but no files that were read for it
    "audit": "mechanisms.NAME.pairs.",  # of `hb.audit` alone
}
QUICK_DOCUMENTS = ("privatize", "groups", "resolve", "errors")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=() if command in QUICK_DOCUMENTS else pytest.mark.slow)
        for command in json_documents.RUNS
    ],
)
def test_json_documents_are_what_the_page_says(command: str, tmp_path: Path) -> None:
    json_documents.write_inputs(tmp_path)
    types = documented(command.replace(" ", "-"), tables(REFERENCE / "json.md"))
    is_open = tuple(
        f"{path}{'[]' if kind == 'list of value' else ''}."
        for path, kind in types.items()
        if kind.startswith(("open", "value", "list of value"))
    )
    seen = set()
    for document in json_documents.documents(command, tmp_path):
        assert document["version"] == 1
        for full, value in json_documents.entries(document):
            path = re.sub(r"^mechanisms\.[^.]+", "mechanisms.NAME", full)
            if path.startswith(is_open):
                continue
            assert path in types, f"{path} is not on the page"
            assert any(IS_OF_TYPE[kind](value) for kind in types[path].split(" or ")), (path, types[path], value)
            seen.add(path)
        whole = {path for path in types if not re.search(r"[.\[]", path)}
        assert command == "privatize" or whole <= set(document)
    if command == "groups":  # whatever is in the document of a group is tested there
        types = {path: kind for path, kind in types.items() if re.fullmatch(r"(groups\[\]\.)?\w+", path)}
    missing = {path for path in set(types) - seen if not path.startswith(NEVER_FILLED.get(command, "-"))}
    assert missing == set(), "on the page, but in no document"


def test_a_page_of_json_that_is_wrong_is_noticed() -> None:
    """The reading of tables itself: a link brings its entries along, at the place where it stands."""
    rows = {
        "a": [["`x`", "[b](#b) or null", ""], ["`y`", "list", ""], ["`y[]`", "[b](#b)", ""]],
        "b": [["`z`", "text", ""]],
    }
    assert documented("a", rows) == {"x": "object or null", "x.z": "text", "y": "list", "y[].z": "text"}


def test_commands_that_print_json_are_on_the_page() -> None:
    printing = {name for name in COMMANDS if "as_json" in inspect.signature(command_of(name)).parameters}
    assert {line.split()[0] for lines in json_documents.RUNS.values() for line in lines} == printing


def command_of(name: str) -> Any:
    return importlib.import_module(module_of(name)).command
