"""Every file that hubbub writes is whole or not there, and no other code than `hubbub.core` writes one."""

from __future__ import annotations

import ast
import errno
import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.cli.app import main
from hubbub.demo import METHODS, DemoResult, MethodResult, load_city, write_demo
from hubbub.demo.city import EPSILON_PER_KM
from hubbub.intake.privatizing.device_tables import export_tables
from hubbub.mechanisms import PlanarGeometric
from hubbub.reporting import make_page

SOURCE = Path(hb.__file__).parent

GRID = """version = 1
name = "town"
[domain]
kind = "grid"
south = 37.72
west = -122.52
north = 37.79
east = -122.38
columns = 3
rows = 2
[mechanisms.noise]
kind = "planar-geometric"
epsilon = 2.0
"""
LINE = """version = 1
[domain]
kind = "integers"
low = 0
high = 9
[mechanisms.noise]
kind = "truncated-geometric"
epsilon = 1.0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with studies, values and reports, in which commands are run."""
    for name, content in {
        "grid.toml": GRID,
        "line.toml": LINE,
        "map.csv": "output\n" + "".join(f"{cell}\n" for cell in [0, 1, 2, 3, 4, 5, 0, 0, 1, 4]),
        "line.csv": "output,town\n" + "".join(f"{value},{'east' if value % 2 else 'west'}\n" for value in range(10)),
        "more.csv": "output\n" + "3\n" * 5 + "x\n" * 60,
        "values.csv": "value\n" + "".join(f"{value % 10}\n" for value in range(200)),
    }.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let every write beyond so many bytes of a file fail, as on a disk with a quota: the kernel refuses it (EFBIG).

    Modules that are imported meanwhile are not kept compiled: Python would keep what little was written.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    keeps_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = keeps_none


def hubbub(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run a command in this process, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["hubbub", *words])
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def files_in(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder with their content, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- a write that fails in the middle --------------------------------------------------------------------------------

QUICK = ("--method", "inv-p", "--quick")
REPLACED = {
    "estimate, JSON": (("estimate", "line.toml", "line.csv", *QUICK, "-o", "out.json"), "out.json", 100),
    "estimate, CSV": (("estimate", "line.toml", "line.csv", *QUICK, "-o", "out.csv"), "out.csv", 50),
    "estimate, GeoJSON": (("estimate", "grid.toml", "map.csv", *QUICK, "-o", "out.geojson"), "out.geojson", 100),
    "estimate, GeoParquet": (("estimate", "grid.toml", "map.csv", *QUICK, "-o", "out.parquet"), "out.parquet", 100),
    "estimate, PNG": (("estimate", "line.toml", "line.csv", *QUICK, "-o", "out.png"), "out.png", 500),
    "estimate, SVG": (("estimate", "line.toml", "line.csv", *QUICK, "-o", "out.svg"), "out.svg", 500),
    "groups, JSON": (
        ("estimate", "line.toml", "line.csv", *QUICK, "--by", "town", "-o", "out.json"), "out.json", 100,
    ),
    "groups, CSV": (("estimate", "line.toml", "line.csv", *QUICK, "--by", "town", "-o", "out.csv"), "out.csv", 50),
    "rejects": (
        ("estimate", "line.toml", "more.csv", *QUICK, "--allow-rejects", "60", "--rejects", "out.csv"), "out.csv", 500,
    ),
    "report": (("report", "line.toml", "line.csv", *QUICK, "-o", "out.html"), "out.html", 5000),
    "plan, JSON": (("plan", "line.toml", "--users", "100", "--runs", "2", "-o", "out.json"), "out.json", 100),
    "plan, CSV": (("plan", "line.toml", "--users", "100", "--runs", "2", "-o", "out.csv"), "out.csv", 50),
    "plan, PNG": (("plan", "line.toml", "--users", "100", "--runs", "2", "-o", "out.png"), "out.png", 500),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", REPLACED)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, target, size = REPLACED[name]
    assert hubbub(monkeypatch, *words) == 0
    assert (folder / target).stat().st_size > size
    (folder / target).write_bytes(b"old\n")
    before = files_in(folder)
    capsys.readouterr()
    with no_file_beyond(size):
        assert hubbub(monkeypatch, *words) == 1
    told = capsys.readouterr().err
    assert files_in(folder) == before
    assert os.strerror(errno.EFBIG) in told
    assert f"where:    {target}\n" in told
    assert "the old file, if any, is untouched" in told
    assert "Traceback" not in told
    assert hubbub(monkeypatch, *words) == 0
    assert (folder / target).read_bytes() != b"old\n"


NEW = {
    "new": (("new", "integers", "-o", "out.toml"), "out.toml", 100),
    "tables": (("privatize", "grid.toml", "--export-tables", "out.json"), "out.json", 100),
    "privatize, CSV": (("privatize", "line.toml", "values.csv", "--seed", "1", "-o", "out.csv"), "out.csv", 100),
    "privatize, gzip": (
        ("privatize", "line.toml", "values.csv", "--seed", "1", "-o", "out.csv.gz"), "out.csv.gz", 100,
    ),
    "privatize, zstd": (
        ("privatize", "line.toml", "values.csv", "--seed", "1", "-o", "out.csv.zst"), "out.csv.zst", 100,
    ),
    "privatize, JSON lines": (
        ("privatize", "line.toml", "values.csv", "--seed", "1", "-o", "out.jsonl"), "out.jsonl", 100,
    ),
    "privatize, Parquet": (
        ("privatize", "line.toml", "values.csv", "--seed", "1", "-o", "out.parquet"), "out.parquet", 100,
    ),
    "privatize, Arrow": (
        ("privatize", "line.toml", "values.csv", "--seed", "1", "-o", "out.arrow"), "out.arrow", 100,
    ),
    "privatize, Arrow stream": (
        ("privatize", "line.toml", "values.csv", "--seed", "1", "-o", "out.arrows"), "out.arrows", 100,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_a_new_file_is_whole_or_not_there(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, target, size = NEW[name]
    before = files_in(folder)
    with no_file_beyond(size):
        assert hubbub(monkeypatch, *words) == 1
    told = capsys.readouterr().err
    assert files_in(folder) == before
    assert os.strerror(errno.EFBIG) in told
    assert "Traceback" not in told
    assert hubbub(monkeypatch, *words) == 0
    assert (folder / target).stat().st_size > size


@pytest.mark.parametrize("target", ["tally", "rejects"])
def test_a_tally_and_its_rejects_are_whole_or_as_they_were(
    target: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hubbub(monkeypatch, "collect", "line.toml", "line.csv", "-o", "a.tally.parquet") == 0
    (folder / "a.rejects.csv").write_text("old\n")
    before = files_in(folder)
    words = ("collect", "line.toml", "more.csv", "-o", "a.tally.parquet", "--allow-rejects", "99")
    if target == "tally":
        (folder / "more.csv").write_text("output\n" + "3\n" * 5)
        before = files_in(folder)
    with no_file_beyond(1000):
        assert hubbub(monkeypatch, *words) == 1
    assert os.strerror(errno.EFBIG) in capsys.readouterr().err
    assert files_in(folder) == before
    assert hubbub(monkeypatch, *words) == 0
    merged = ("merge", "a.tally.parquet", "-o", "b.tally.parquet")
    before = files_in(folder)
    with no_file_beyond(1000):
        assert hubbub(monkeypatch, *merged) == 1
    assert files_in(folder) == before


def test_the_demo_is_told_when_the_disk_fails(folder: Path) -> None:
    city, mechanism = load_city(), PlanarGeometric(load_city().grid, EPSILON_PER_KM)
    outputs = mechanism.privatize(city.values, rng=1)
    rows = tuple(MethodResult(name, city.shares, 0.0, 0.0, "solved") for name in ("noisy", *METHODS))
    reports = hb.Reports.from_outputs(mechanism, outputs)
    page = make_page(reports, method="inv-p", quick=True)
    write_demo(DemoResult(city, mechanism, outputs, rows, page), folder / "demo")
    assert len(files_in(folder / "demo")) == 5
    before = files_in(folder)
    for size in (20, 1000, 80_000):
        with no_file_beyond(size), pytest.raises(hb.IntakeError) as caught:
            write_demo(DemoResult(city, mechanism, outputs, rows, page), folder / "demo")
        assert caught.value.code == "not-written"
        assert files_in(folder) == before


def test_a_reproduction_is_told_when_the_disk_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.paper import reproduce

    reproduce(folder / "out", ["holes"], quick=True)
    before = files_in(folder)
    for size in (40, 2000, 30_000):
        with no_file_beyond(size), pytest.raises(hb.IntakeError) as caught:
            reproduce(folder / "out", ["holes"], quick=True)
        assert caught.value.code == "not-written"
        assert files_in(folder) == before


def test_files_that_must_be_new_never_replace_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "nowhere.json").symlink_to(folder / "missing.json")
    (folder / "there.json").write_text("mine")
    (folder / "there.json").chmod(0o444)
    for name in ("nowhere.json", "there.json"):
        with pytest.raises(hb.StudyError, match="cannot be written"):
            export_tables("grid.toml", name)
        assert hubbub(monkeypatch, "new", "grid", "-o", name) == 1
        assert "there is a file already" in capsys.readouterr().err
    assert (folder / "there.json").read_text() == "mine"
    assert not (folder / "missing.json").exists()


def test_texts_end_with_a_newline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("categories", "integers", "bins", "grid"):
        assert hubbub(monkeypatch, "new", kind, "-o", f"{kind}.new.toml") == 0
        assert (folder / f"{kind}.new.toml").read_text().endswith("\n")
    digest = export_tables("grid.toml", "tables.json")
    text = (folder / "tables.json").read_text()
    assert text.endswith("}\n")
    assert json.loads(text)["digest"] == digest


# -- nobody else writes ----------------------------------------------------------------------------------------------

WRITING = {  # calls that put bytes at a path, or move them there
    "write_text", "write_bytes", "savefig", "imsave", "to_csv", "to_parquet", "to_feather", "to_pickle", "to_excel",
    "to_hdf", "to_file", "tofile", "savez", "savez_compressed", "savetxt", "dump", "write_table", "write_feather",
    "write_csv", "write_dataset", "ParquetWriter", "CSVWriter", "OSFile", "output_stream", "FileIO", "ZipFile",
    "mkstemp", "NamedTemporaryFile", "TemporaryFile", "copyfile", "copy2", "copytree", "move", "touch", "symlink_to",
    "hardlink_to", "rename", "renames", "link", "symlink", "truncate", "ftruncate",
}  # fmt: skip
OURS = ("core/files.py", "core/locks.py")
ALLOWED = {
    ("cli/failure.py", "open"): "the null device, for output whose reader has left",
    ("rendering/distribution_plot.py", "savefig"): "into memory; the bytes are written by write_file",
    ("rendering/geoparquet.py", "write_table"): "into memory; the bytes are written by write_file",
    ("intake/counting/scratch_folder.py", "mkstemp"): "the lock of a temporary folder, which holds nothing",
    ("intake/counting/scratch_folder.py", "open"): "that lock once more, to see whether its process lives",
    ("intake/tallies/tally_writing.py", "ParquetWriter"): "into KeptOpen(file), a file of atomic_write",
    ("intake/tallies/tally_writing.py", "write_table"): "a method of that writer",
    ("intake/privatizing/reports_writing.py", "ParquetWriter"): "into KeptOpen(file), a file of atomic_write",
    (
        "intake/privatizing/reports_writing.py",
        "write_table",
    ): "a method of that writer, or of an Arrow writer",
    ("intake/privatizing/reports_writing.py", "write_csv"): "into memory",
    ("intake/sources/xlsx_scan.py", "ZipFile"): "to read it",
    ("intake/sources/xlsx_scan.py", "open"): "a part of an archive, to read it",
    ("designing/saved_columns.py", "savez_compressed"): "into memory; the bytes are written by write_file",
    ("designing/predictor_corrector.py", "move"): "a step of a solver, and no file",
    ("planning/study_workers.py", "dump"): "into the pipes between two processes",
    ("cli/plain_console.py", "open"): "the null device in the place of an output that nobody reads any more",
}


def _mode(call: ast.Call) -> str:
    """Return the mode of a call of open, or Path.open: what it says there, "?" where it is not a plain text."""
    names = {word.arg: word.value for word in call.keywords}
    places = call.args[:1] if isinstance(call.func, ast.Attribute) else call.args[1:2]
    given = [*places, *([names["mode"]] if "mode" in names else [])]
    if not given:
        return "r"
    return given[0].value if isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) else "?"


def _writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the calls that may write a file: their lines and names."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
        owner = getattr(getattr(call.func, "value", None), "id", "")
        if name == "open" and owner != "self" and (owner == "os" or _mode(call).strip("bt") != "r"):
            yield call.lineno, name
        elif name == "replace" and (owner == "os" or (len(call.args) == 1 and not call.keywords)):
            yield call.lineno, name  # of a path: that of a text takes two
        elif name in WRITING:
            yield call.lineno, name


def test_only_one_module_writes_files() -> None:
    stray, used = [], set()
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        for line, name in _writes(ast.parse(path.read_text(encoding="utf-8"))):
            if where in OURS:
                continue
            used.add((where, name))
            if (where, name) not in ALLOWED:
                stray.append(f"{where}:{line}: {name}")
    assert stray == [], "write with hubbub.core.files, or say here why not"
    assert used == set(ALLOWED), "the list names what is no longer there"


@pytest.mark.parametrize(
    "code",
    [
        "path.write_text('x')", "path.write_bytes(b'x')", "path.open('w')", "open(path, 'a')", "open(path, mode='xb')",
        "path.open(mode=how)", "figure.savefig(path)", "os.replace(a, b)", "part.replace(real)", "os.open(path, 1)",
        "frame.to_csv(path)", "parquet.ParquetWriter(path, schema)", "json.dump(document, file)", "path.rename(other)",
        "np.savez(path, a)", "shutil.move(a, b)",
    ],
)  # fmt: skip
def test_the_search_for_writes_finds_them(code: str) -> None:
    assert len(list(_writes(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    "code", ["path.open('rb')", "open(path)", "text.replace('a', 'b')", "replace(found, users=3)", "path.read_text()"]
)
def test_the_search_for_writes_finds_nothing_else(code: str) -> None:
    assert list(_writes(ast.parse(code))) == []
