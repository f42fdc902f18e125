"""The habits of the project: public names, layers, examples that run, documents that agree."""

import ast
import importlib
import operator
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import hubbub as hb
import hubbub.public as public
from benchmark_modules import benchmark
from hubbub import client
from hubbub.cli.commands import COMMANDS
from hubbub.core.defaults import DOMAIN_KINDS
from hubbub.intake import study_entries

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "hubbub"

PUBLIC = """
__version__ Amplification amplify Attacker attacker Audit audit audit_samples SampleAudit
Band band Benchmark benchmark Bins Categories Change Check check Cloaking ClusterError ClusterReports collect
compare compare_groups Comparison CrosswiseModel DistanceError Domain DomainError earth_mover_distance
error_probability Estimate estimate EstimateError Exponential export_tables fit_test FitTest ForcedResponse Geometric
Grid GroupComparison HubbubError HubbubWarning Identification identify ImpossibleReportError IntakeError Integers
export_client Independence independence Discovery discover PrefixSearch
Interval interval kl_divergence Laplace LocalHashing log_likelihood LongitudinalRappor Matrix Mechanism MechanismError
BloomRappor decode_rappor read_rappor TextShares
DBitFlip LongitudinalHashing LongitudinalResponse LongitudinalUnary
merge optimality_gap OptimizedUnary OutputError Part Plan plan PlanarGeometric PlanarLaplace privatize_file Quantile
design Design privic PrivicRun
rake SurveyWeights Product Split SampleOne SampleOneWithFakes plan_attributes AttributesPlan
correlation Moments moments Piecewise SquareWave
Duchi Staircase Unary Mean mean
HadamardResponse ProjectiveResponse CountMeanSketch HadamardCountMeanSketch
register_estimator register_mechanism
quantile RandomizedResponse Rappor read_reports read_study read_tally Regions regions RegionShares RegionsError report
Reports ReportsError Resolution resolve synthesize
scatter_reports SettingError Shift Study StudyError SubsetSelection Tally total_variation Trend trend
TruncatedGeometric unrelated_prevalence UnrelatedPrevalence UnrelatedQuestion Warner worst_case_shift
write_study
""".split()  # noqa: SIM905


def test_public_names_are_these_and_documented() -> None:
    assert sorted(hb.__all__) == sorted(PUBLIC)
    undocumented = [name for name in PUBLIC if name != "__version__" and not getattr(hb, name).__doc__]
    assert undocumented == []


def modules() -> list[str]:
    """Every module of hubbub but those that run on import."""
    names = [module.name for module in pkgutil.walk_packages(hb.__path__, "hubbub.")]
    return [name for name in names if not name.endswith("__main__")]


def test_every_module_is_what_its_package_has_under_that_name() -> None:
    """`import hubbub.intervals.api as m` asks the package: a function of the same name would hide the module."""
    assert [name for name in hb.__all__ if not hasattr(hb, name)] == []  # whatever they load is loaded
    names = modules()
    loaded = {name: importlib.import_module(name) for name in names}
    assert len(names) > 300
    hidden = [name for name in names if operator.attrgetter(name.partition(".")[2])(hb) is not loaded[name]]
    assert hidden == []


SAME_IDEA = {
    "__init__",
    "__main__",
    "api",
    "base",
    "result",
    "validation",
}  # docs/design.md says what each holds


def test_only_the_domains_package_asks_for_the_kind_of_a_domain() -> None:
    """Elsewhere a domain answers for itself (`places`, `grid`, `chart`, ...), so that a new kind works everywhere."""
    from hubbub import domains

    kinds = {name for name in domains.__all__ if isinstance(getattr(domains, name), type)} - {"Domain"}
    asked = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if "domains" not in path.relative_to(SOURCE).parts
        if any(kind in path.read_text(encoding="utf-8") for kind in kinds)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
        if kinds & {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    ]
    assert len(kinds) > 4
    assert asked == []


def test_no_two_modules_and_no_two_classes_share_a_name() -> None:
    """A newcomer finds a concept by its name: a name that occurs twice leads to the wrong place half of the time."""
    paths = sorted(SOURCE.rglob("*.py"))
    stems = Counter(path.stem for path in paths if path.stem not in SAME_IDEA)
    texts = (path.read_text(encoding="utf-8") for path in paths)
    classes = Counter(name for text in texts for name in re.findall(r"^ *class (\w+)[(:\[]", text, flags=re.MULTILINE))
    assert classes["RandomizedResponse"] == 1
    assert [name for name, count in (stems + classes).items() if count > 1] == []


def test_completion_offers_the_public_names_alone() -> None:
    """Also when parts of hubbub were imported by their own names."""
    for name in modules():
        importlib.import_module(name)
    offered = [name for name in dir(hb) if not (name.startswith("__") and name.endswith("__"))]
    assert sorted([*offered, "__version__"]) == sorted(PUBLIC)


def test_imports_only_go_down() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_every_package_has_a_layer() -> None:
    """A new package that no layer names would escape the rule above."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    layered = {name.strip().removeprefix("hubbub.") for layer in contract["layers"] for name in layer.split("|")}
    found = {path.stem for path in SOURCE.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"}
    assert found - {"__init__"} == layered


COMPUTE = [
    "domains",
    "sampling",
    "channels",
    "mechanisms",
    "reports",
    "outputs",
    "likelihood",
    "solvers",
    "estimators",
    "intervals",
    "identifiability",
    "goodness_of_fit",
    "poisoning",
    "resolution",
    "comparison",
    "trust_check.py",
    "cluster",
    "metrics.py",
    "auditing",
    "amplification",
    "planning",
]


def test_compute_never_prints_and_never_reads_files() -> None:
    forbidden = {"print", "open", "read_text", "read_bytes", "write_text", "write_bytes", "input"}
    found = []
    for name in COMPUTE:
        place = SOURCE / name
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not any(f"{call}(" in text for call in forbidden):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                    if called in forbidden:
                        found.append(f"{path.relative_to(ROOT)}:{node.lineno} {called}")
    assert found == []


def blocks(path: Path, language: str) -> str:
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), flags=re.MULTILINE | re.DOTALL))


EXAMPLES = [
    "README.md",
    "docs/explanation/auto.md",
    "docs/how-to/collect-places.md",
    "docs/how-to/keep-groups-apart.md",
    pytest.param("docs/how-to/maps.md", marks=pytest.mark.slow),
    "docs/how-to/merge-tallies.md",
    "docs/how-to/read-postgresql.md",
    "docs/how-to/read-reports.md",
    "docs/how-to/rejected-rows.md",
    "docs/explanation/page.md",
    "docs/reference/exports.md",
    "docs/reference/study-file.md",
    "docs/reference/mechanisms.md",
    "docs/reference/plans.md",
    "docs/how-to/nightly.md",
    "docs/how-to/report.md",
    "docs/reference/tally.md",
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_python_examples_run(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    code = blocks(ROOT / name, "python")
    assert code, "no example found"
    monkeypatch.chdir(tmp_path)
    # The module must be importable by name: dataclasses look their own module up.
    exec(compile(code, name, "exec"), {"__name__": "__main__"})  # noqa: S102


@pytest.mark.parametrize(
    ("name", "command", "picture"),
    [
        ("README.md", "hubbub estimate", "report.html"),
    ],
)
def test_shell_examples_run(name: str, command: str, picture: str, tmp_path: Path) -> None:
    script = blocks(ROOT / name, "sh")
    assert command in script
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / picture).stat().st_size > 1000


def test_the_first_python_example_has_ten_lines() -> None:
    first = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert first is not None
    assert len([line for line in first[1].splitlines() if line.strip()]) <= 10


def test_dependencies_each_have_their_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "docs" / "dependencies.md").read_text()
    names = [re.split(r"[<>=]", entry)[0] for entry in project["dependencies"]]
    assert [name for name in names if f"| {name} |" not in text] == []


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py")))
def test_benchmarks_still_find_what_they_import(name: str) -> None:
    """They run seldom: a function that was renamed would be missed when hours of studies are about to begin."""
    assert benchmark(name).__doc__


def test_what_is_slow_to_load_is_loaded_where_it_is_used() -> None:
    """Every command waits for what its modules import: docs/dependencies.md lists what none of them may."""
    heavy = ["duckdb", "distributed", "flint", "matplotlib", "numba", "ot", "pandas", "pyarrow", "scipy.stats"]
    code = f"import sys, hubbub.cli.app, hubbub.public; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_help_waits_for_no_library() -> None:
    """Modules of commands declare their options; what they work with is imported when they run."""
    slow = ["duckdb", "hubbub.client", "matplotlib", "numpy", "pandas", "pyarrow", "pydantic", "rich", "scipy"]
    code = f"""
import importlib, sys
from hubbub.cli.app import app
from hubbub.cli.commands import COMMANDS
for words in ([], *([name] for name in COMMANDS)):
    try:
        app([*words, "--help"], standalone_mode=False)
    except SystemExit:
        pass
print([name for name in {slow} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.stdout.count("Usage: ") == len(COMMANDS) + 1
    assert DOMAIN_KINDS == client.DOMAINS == tuple(study_entries.DOMAINS)


def test_a_name_loads_what_it_needs_and_is_the_one_of_the_list() -> None:
    code = "import sys, hubbub; hubbub.Integers; print('hubbub.solvers' in sys.modules, 'hubbub.public' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == ["False", "False"]
    assert sorted(hb.__all__) == sorted([*public.__all__, "__version__"])
    assert [name for name in public.__all__ if getattr(hb, name) is not getattr(public, name)] == []


def test_versions_agree() -> None:
    assert f"\nversion: {hb.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert (ROOT / "docs/how-to/cite.md").read_text().count(f"version {hb.__version__}") == 2
    assert f"\n## {hb.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_gate_runs_the_readmes_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert "make test" in (ROOT / "README.md").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
