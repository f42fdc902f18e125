"""What goes out: metadata, recipe, citation, forms for issues, and the package itself as a stranger installs it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA_NAMES = {
    "POT": "pot",
    "duckdb": "python-duckdb",
    "matplotlib": "matplotlib-base",
}  # where conda packages are called otherwise


def requirement(entry: str) -> tuple[str, str]:
    """Return the name and the versions of a requirement."""
    name, versions = re.fullmatch(r"([A-Za-z0-9_.-]+)\s*(\S*)", entry).groups()  # type: ignore[union-attr]
    return str(name), str(versions)


def recipe() -> dict[str, Any]:
    """Return the conda recipe, with what its templates stand for."""
    text = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    version = re.search(r'^\{% set version = "(.*)" %\}$', text, flags=re.MULTILINE)
    assert version is not None
    text = text.replace(version[0], "").replace("{{ version }}", version[1]).replace("{{ PYTHON }}", "python")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def test_the_conda_recipe_asks_for_what_the_project_asks_for() -> None:
    wanted = dict(map(requirement, PROJECT["dependencies"]))
    wanted = {CONDA_NAMES.get(name, name): versions for name, versions in wanted.items()}
    document = recipe()
    assert dict(map(requirement, document["requirements"]["run"])) == wanted | {"python": PROJECT["requires-python"]}
    assert document["requirements"]["run_constrained"] == [
        " ".join(requirement(entry)) for entry in PROJECT["optional-dependencies"]["cluster"]
    ]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert set(map(requirement, build)) <= set(map(requirement, document["requirements"]["host"]))
    assert document["package"]["version"] == PROJECT["version"]
    assert document["about"]["license"] == PROJECT["license"]
    assert document["build"]["entry_points"] == [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert [name for name in document["about"]["license_file"] if not (ROOT / name).exists()] == []


def test_metadata_are_complete() -> None:
    for field in ("authors", "classifiers", "description", "keywords", "license", "readme", "requires-python"):
        assert PROJECT[field], field
    classifiers = PROJECT["classifiers"]
    least = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])
    assert least is not None
    versions = [int(name.rpartition(".")[2]) for name in classifiers if re.search(r"Python :: 3\.\d+$", name)]
    assert versions == list(range(int(least[1]), max(versions) + 1))
    for topic in ("Operating System", "Topic", "Intended Audience", "Development Status"):
        assert any(name.startswith(f"{topic} ::") for name in classifiers), topic
    assert classifiers == sorted(classifiers)
    assert PROJECT["optional-dependencies"]["all"] == ["hubbub[cluster]", "hubbub[serve]"]


def test_the_citation_is_valid() -> None:
    """What version 1.2.0 of the format asks for, and authors and titles as they are elsewhere."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] in ("software", "dataset")
    assert citation["license"] == PROJECT["license"]
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["authors"] == PROJECT["authors"]
    assert "preferred-citation" not in citation  # it would be cited instead of the software, not together with it
    (paper,) = citation["references"]
    assert {"type", "title", "authors"} <= set(paper)
    assert [author["family-names"] for author in paper["authors"]] == ["ElSalamouny", "Palamidessi"]
    assert all(identifier["type"] in ("doi", "url", "swh", "other") for identifier in paper["identifiers"])
    assert paper["title"] in re.sub(r"\s+", " ", (ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_forms_for_issues_are_valid(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["type"] in ("input", "textarea", "dropdown", "checkboxes") for field in fields)
    assert all(field["attributes"]["label"] for field in fields)
    names = [field["id"] for field in fields]
    assert len(set(names)) == len(names) > 1
    assert any(field.get("validations", {}).get("required") for field in fields)


@pytest.mark.slow
def test_the_package_is_built_and_works_alone(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, ROOT / "scripts" / "check_package.py", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gz", ".whl"]
