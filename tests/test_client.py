"""The device's module: without NumPy, from a study file, with the same distribution as the library."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import hubbub as hb
from hubbub import client
from hubbub.client import Client, ClientError
from hubbub.intake.privatizing.device_tables import export_tables
from hubbub.mechanisms.local_hashing import hash_v1

DRAWS = 4_000
ALARM = 1e-6 / 60  # a false alarm once in a million runs of all the tests here

INTEGERS = "[domain]\nkind = 'integers'\nlow = 3\nhigh = 9\n"
BINS = "[domain]\nkind = 'bins'\nedges = [0, 1, 3, 3.5, 7]\n"
EVEN = "[domain]\nkind = 'bins'\nedges = [0.0, 0.5, 1.0, 1.5]\n"
COIN = "[domain]\nkind = 'categories'\nlabels = ['yes', 'no']\n"
WORDS = "[domain]\nkind = 'categories'\nlabels = ['a', 'b', 7]\n"
GRID = "[domain]\nkind = 'grid'\ncolumns = 4\nrows = 3\ncell = [0.5, 0.8]\n"
HOLES = "[domain]\nkind = 'grid'\ncolumns = 4\nrows = 3\ncell = 1.0\ncells = [0, 1, 6, 7, 11]\n"
MAP = "[domain]\nkind = 'grid'\nsouth = 37.7\nwest = -122.5\nnorth = 37.8\neast = -122.4\ncolumns = 5\nrows = 4\n"

KINDS = [
    (INTEGERS, "kind = 'randomized-response'\nepsilon = 1.0"),
    (WORDS, "kind = 'randomized-response'\nepsilon = 0.3"),
    (WORDS, "kind = 'randomized-response'\np = '2/3'"),
    (COIN, "kind = 'warner'\np = 0.3"),
    (COIN, "kind = 'forced-response'\np_yes = '1/6'\np_no = 0.25"),
    (COIN, "kind = 'unrelated-question'\np = 0.7\nprevalence = 0.1"),
    (COIN, "kind = 'crosswise-model'\np = '2/12'"),
    (INTEGERS, "kind = 'geometric'\nepsilon = 0.4"),
    (INTEGERS, "kind = 'truncated-geometric'\nepsilon = 0.4"),
    (INTEGERS, "kind = 'laplace'\nepsilon = 0.6"),
    (EVEN, "kind = 'laplace'\nepsilon = 0.9"),
    (BINS, "kind = 'laplace'\nepsilon = 0.5"),
    (WORDS, "kind = 'exponential'\nepsilon = 1.0"),
    (GRID, "kind = 'exponential'\nepsilon = 1.0"),
    (GRID, "kind = 'planar-geometric'\nepsilon = 1.0"),
    (HOLES, "kind = 'planar-geometric'\nepsilon = 0.8"),
    (GRID, "kind = 'planar-geometric'\nepsilon = 2.0\ntruncated = false"),
    (GRID, "kind = 'planar-laplace'\nepsilon = 1.0"),
    (HOLES, "kind = 'planar-laplace'\nepsilon = 2.0"),
    (WORDS, "kind = 'rappor'\nepsilon = 1.5"),
    (INTEGERS, "kind = 'optimized-unary'\nepsilon = 1.5"),
    (INTEGERS, "kind = 'longitudinal-rappor'\nepsilon = 2.5\nfirst = 1.0"),
    (INTEGERS, "kind = 'longitudinal-unary'\nepsilon = 2.5\nfirst = 1.0"),
    (WORDS, "kind = 'l-oue'\nepsilon = 2.5\nfirst = 1.0"),
    (INTEGERS, "kind = 'longitudinal-response'\nepsilon = 2.5\nfirst = 1.0"),
    (INTEGERS, "kind = 'd-bit-flip'\nepsilon = 2.5\nbuckets = 4\nbits = 2"),
    (WORDS, "kind = 'bloom-rappor'\ncohorts = 2\nbits = 8\nhashes = 2\nf = 0.5\np = 0.25\nq = '3/4'"),
    (WORDS, "kind = 'bloom-rappor'\ncohorts = 2\nbits = 8\nhashes = 2\nepsilon = 3.0\nfirst = 1.5"),
    (INTEGERS, "kind = 'subset-selection'\nepsilon = 1.0"),
    (INTEGERS, "kind = 'subset-selection'\nepsilon = 1.0\nsize = 6"),
    (INTEGERS, "kind = 'square-wave'\nepsilon = 1.0"),
    (BINS, "kind = 'square-wave'\nepsilon = 0.5\nreach = 1"),
    (EVEN, "kind = 'piecewise'\nepsilon = 1.0"),
    (INTEGERS, "kind = 'duchi'\nepsilon = 1.0"),
    (EVEN, "kind = 'staircase'\nepsilon = 2.0"),
    (INTEGERS, "kind = 'staircase'\nepsilon = 1.0\ngamma = '1/2'"),
    (WORDS, "kind = 'unary'\np = 0.6\nq = '1/6'"),
    (INTEGERS, "kind = 'hadamard-response'\nepsilon = 1.0"),
    (GRID, "kind = 'hadamard-response'\nepsilon = 1.0\nblocks = 4"),
    (INTEGERS, "kind = 'projective-response'\nepsilon = 1.0"),
    (GRID, "kind = 'projective-response'\nepsilon = 1.0\nprime = 2"),
    (WORDS, "kind = 'count-mean-sketch'\nepsilon = 1.5\nhashes = 3\nwidth = 4"),
    (INTEGERS, "kind = 'hadamard-count-mean-sketch'\nepsilon = 1.5\nhashes = 3\nwidth = 8"),
    (WORDS, "kind = 'cloaking'\nregions = ['left', 'right', 'left']"),
    (WORDS, "kind = 'matrix'\noutputs = ['x', 'y']\nprobabilities = [[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]]"),
]


def _write(folder: Path, domain: str, mechanism: str) -> Path:
    path = folder / "study.toml"
    path.write_text(f"version = 1\n{domain}[mechanisms.m]\n{mechanism}\n")
    return path


def _client(folder: Path, domain: str, mechanism: str) -> tuple[Client, hb.Mechanism]:
    path = _write(folder, domain, mechanism)
    export_tables(path, folder / "tables.json")
    return Client(path, folder / "tables.json"), hb.read_study(path).mechanisms["m"]


def _raw(mechanism: hb.Mechanism, position: int) -> object:
    """A value as a person has it: a number inside a bin, a label elsewhere."""
    domain = mechanism.domain
    return float(domain.places[position]) if isinstance(domain, hb.Bins) else domain.labels[position]


def _surprise(drawn: Counter[object], expected: dict[object, float]) -> float:
    """The p-value of Pearson's test; outputs that are rare are counted together."""
    assert set(drawn) <= set(expected), "an output that cannot be"
    cells = [(drawn[output], DRAWS * share) for output, share in expected.items() if DRAWS * share >= 5]
    rest = DRAWS - sum(seen for seen, _ in cells), max(1e-9, DRAWS - sum(mean for _, mean in cells))
    cells += [rest] if rest[1] > 0.1 else []
    if len(cells) == 1:
        return 1.0
    return float(chi2.sf(sum((seen - mean) ** 2 / mean for seen, mean in cells), len(cells) - 1))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("domain", "mechanism"), KINDS)
def test_it_draws_what_the_library_describes(domain: str, mechanism: str, tmp_path: Path) -> None:
    device, described = _client(tmp_path, domain, mechanism)
    matrix, space, listed = described.matrix(), described.output_space, described.outputs
    assert listed is not None
    codes = [tuple(np.atleast_1d(code).tolist()) for code in space.encode(listed)]
    for position in {0, len(described.domain) // 2, len(described.domain) - 1}:
        texts = [device.privatize(_raw(described, position)) for _ in range(DRAWS)]
        drawn = [tuple(np.atleast_1d(code).tolist()) for code in space.encode([space.parse(text) for text in texts])]
        expected = dict(zip(codes, matrix[position].tolist(), strict=True))
        possible: dict[object, float] = {code: share for code, share in expected.items() if share > 0}
        for code in set(drawn) - set(codes):  # endless noise: outputs beyond the list
            possible[code] = 0.0
        assert _surprise(Counter(drawn), possible) > ALARM


def test_hashed_values_agree_with_the_library(tmp_path: Path) -> None:
    device, described = _client(tmp_path, INTEGERS, "kind = 'local-hashing'\nepsilon = 1.0")
    assert isinstance(described, hb.LocalHashing)
    assert described.buckets is not None
    kept = 0
    for _ in range(DRAWS):
        seed, bucket = map(int, device.privatize(5).split(":"))
        own = int(hash_v1(np.array([seed], dtype=np.uint64), np.array([2]), described.buckets)[0])
        assert own == client.bucket_of(seed, 2, described.buckets)
        kept += own == bucket
    share = described.support.true
    assert abs(kept - DRAWS * share) < 5.5 * (DRAWS * share * (1 - share)) ** 0.5


def test_a_chi_square_that_can_fail(tmp_path: Path) -> None:
    device, _ = _client(tmp_path, INTEGERS, "kind = 'truncated-geometric'\nepsilon = 0.5")
    other = hb.TruncatedGeometric(hb.Integers(3, 9), 0.3)
    drawn: Counter[object] = Counter(int(device.privatize(3)) for _ in range(DRAWS))
    assert _surprise(drawn, dict(zip(range(3, 10), other.matrix()[0].tolist(), strict=True))) < ALARM


def test_it_needs_no_numpy(tmp_path: Path) -> None:
    study = _write(tmp_path, MAP, "kind = 'planar-geometric'\nepsilon = 0.7")
    blocked = (
        "import sys\n"
        "for name in ('numpy', 'scipy', 'numba', 'pyarrow', 'flint', 'typer', 'rich'): sys.modules[name] = None\n"
        "from hubbub.client import main\n"
        f"code = main([{str(study)!r}, 'm', '37.75', '-122.45'])\n"
        "assert not [name for name in sys.modules if name.startswith('hubbub.') and name != 'hubbub.client']\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["mechanism"] == "m"
    assert 0 <= int(report["output"]) < 20


def test_the_file_alone_is_enough(tmp_path: Path) -> None:
    study = _write(tmp_path, INTEGERS, "kind = 'truncated-geometric'\nepsilon = 0.7")
    copy = tmp_path / "device.py"
    copy.write_bytes(Path(client.__file__).read_bytes())
    command = [sys.executable, "-I", str(copy), str(study), "m", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert 3 <= int(json.loads(done.stdout)["output"]) <= 9


def test_it_imports_the_standard_library_only() -> None:
    tree = ast.parse(Path(client.__file__).read_text(encoding="utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in named} <= set(sys.stdlib_module_names)
    assert not named & {"random", "secrets"}


@pytest.mark.parametrize("domain", [MAP, GRID, HOLES, BINS, INTEGERS, WORDS])
def test_values_are_found_as_the_library_finds_them(domain: str, tmp_path: Path) -> None:
    kind = "exponential" if "grid" in domain else "randomized-response"
    study = hb.read_study(_write(tmp_path, domain, f"kind = '{kind}'\nepsilon = 1.0"))
    values = Client(tmp_path / "study.toml")._values
    assert list(values.labels) == study.domain.labels.tolist()
    for position, label in enumerate(study.domain.labels.tolist()):
        if not isinstance(study.domain, hb.Bins):
            assert values.position(label) == position
            assert values.position(str(label)) == position
    if isinstance(study.domain, hb.Grid):
        assert values.sides == study.domain.sides
        far = np.random.default_rng(1).integers(-9, 12, size=(300, 2))
        assert [values.nearest(*place) for place in far.tolist()] == study.domain.nearest(*far.T).tolist()
    if isinstance(study.domain, hb.Grid) and study.domain.box is not None:
        rng = np.random.default_rng(2)
        for lat, lon in zip(rng.uniform(37.7, 37.8, 200), rng.uniform(-122.5, -122.4, 200), strict=True):
            assert values.labels[values.position((lat, lon))] == study.domain.locate(lat, lon)
        assert values.position((37.8, -122.4)) == 19
    if isinstance(study.domain, hb.Bins):
        numbers = [0.0, 0.99, 1.0, 3.2, 3.5, 7.0]
        assert [values.position(number) for number in numbers] == study.domain.locate(numbers).tolist()


@pytest.mark.parametrize(
    ("domain", "value"),
    [(INTEGERS, 2), (INTEGERS, 4.5), (INTEGERS, "x"), (BINS, 7.1), (BINS, "nan"), (WORDS, "c"), (GRID, 12),
     (GRID, 3.7), (MAP, 3.7), (HOLES, 2),
     (MAP, (37.6, -122.45)), (MAP, (1, 2, 3)), (GRID, (1, 2)), (INTEGERS, None),
     (INTEGERS, float("inf")), (INTEGERS, 10**400), (INTEGERS, True), (INTEGERS, [5])],
)  # fmt: skip
def test_a_value_outside_the_study_is_refused(domain: str, value: object, tmp_path: Path) -> None:
    device = Client(_write(tmp_path, domain, "kind = 'randomized-response'\nepsilon = 1.0"))
    with pytest.raises(ClientError, match=r"(?s)not in the study.*where:.*got:.*expected:.*remedy:"):
        device.privatize(value)


def test_tables_are_checked(tmp_path: Path) -> None:
    study = _write(tmp_path, WORDS, "kind = 'exponential'\nepsilon = 1.0")
    with pytest.raises(ClientError, match="needs a file of tables"):
        Client(study).privatize("a")
    tables = tmp_path / "tables.json"
    digest = export_tables(study, tables)
    assert Client(study, tables, digest=digest).privatize("a") in ("a", "b", "7")
    with pytest.raises(ClientError, match="damaged"):
        Client(study, tables, digest="0" * 64)
    document = json.loads(tables.read_text())
    row = document["tables"]["m"]["rows"][0]
    row[0], row[1] = row[1], row[0]
    tables.write_text(json.dumps(document))
    with pytest.raises(ClientError, match="damaged"):
        Client(study, tables)
    tables.unlink()
    export_tables(study, tables)
    study.write_text(study.read_text() + "# another study\n")
    with pytest.raises(ClientError, match="another study"):
        Client(study, tables)
    with pytest.raises(hb.StudyError, match="cannot be written"):
        export_tables(study, tables)


def test_mistakes_in_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = _write(tmp_path, WORDS, "kind = 'rappor'\nepsilon = 1.0")
    with pytest.raises(ClientError, match="no such mechanism"):
        Client(study).privatize("a", "other")
    assert client.main([str(study), "other", "a"]) == 1
    assert "no such mechanism" in capsys.readouterr().err
    study.write_text(study.read_text().replace("version = 1", "version = 2"))
    with pytest.raises(ClientError, match="unsupported version"):
        Client(study)
    study.write_text(study.read_text().replace("version = 2", "version = 1").replace("rappor", "wrong"))
    with pytest.raises(ClientError, match="no such kind"):
        Client(study).privatize("a")


def test_memory_on_the_device(tmp_path: Path) -> None:
    device, described = _client(tmp_path, INTEGERS, "kind = 'longitudinal-rappor'\nepsilon = 3.0\nfirst = 1.0")
    assert isinstance(described, hb.LongitudinalRappor)
    space, law = described.output_space, described.law
    kept, turned = np.zeros(7), np.zeros(7)
    for _ in range(DRAWS):
        texts = [device.permanent(5)]
        texts.append(device.instantaneous(texts[0]))
        row, report = np.unpackbits(space.encode([space.parse(text) for text in texts]), axis=1)[:, :7]
        kept += row
        turned += row ^ report
    scale = float(1 << law.permanent.width)
    flipped = law.permanent.other / scale
    chances = [flipped] * 2 + [1 - flipped] + [flipped] * 4 + [law.raised / scale] * 7
    for seen, chance in zip([*kept, *turned], chances, strict=True):
        assert abs(seen - DRAWS * chance) < 6 * (DRAWS * chance * (1 - chance)) ** 0.5
    study = _write(tmp_path, INTEGERS, "kind = 'rappor'\nepsilon = 3.0")
    with pytest.raises(ClientError, match="has no permanent response"):
        Client(study).permanent(5)


@pytest.mark.parametrize("kind", ["randomized-response", "rappor", "truncated-geometric", "subset-selection"])
@pytest.mark.parametrize("epsilon", ["-1.0", "0", "1e-13", "501.0", "true", "'1'", "nan", "inf"])
def test_an_epsilon_that_promises_nothing_is_refused(tmp_path: Path, kind: str, epsilon: str) -> None:
    with pytest.raises(ClientError, match="epsilon"):
        Client(_write(tmp_path, INTEGERS, f"kind = '{kind}'\nepsilon = {epsilon}")).privatize(5)
    with pytest.raises(ClientError, match="epsilon"):
        Client(_write(tmp_path, INTEGERS, f"kind = '{kind}'")).privatize(5)


REFUSED = [
    ("[domain]\nkind = 'bins'\nedges = [0.0, 1e5, 2e5]\n", "kind = 'laplace'\nepsilon = 1.0", "20000 for one step"),
    ("[domain]\nkind = 'bins'\nedges = [0.0, 1e-20, 2e-20]\n", "kind = 'laplace'\nepsilon = 1e-11", "1e-30"),
    (
        "[domain]\nkind = 'grid'\ncolumns = 3\nrows = 3\ncell = 1e6\n",
        "kind = 'planar-geometric'\nepsilon = 1.0",
        "20000",
    ),
    (EVEN, "kind = 'truncated-geometric'\nepsilon = 1.0", "a domain of integers"),
    (GRID, "kind = 'truncated-geometric'\nepsilon = 1.0", "a domain of integers"),
    (WORDS, "kind = 'geometric'\nepsilon = 1.0", "a domain of integers"),
    (INTEGERS, "kind = 'planar-geometric'\nepsilon = 1.0", "a domain of grid"),
    (INTEGERS, "kind = 'longitudinal-rappor'\nepsilon = 1.0", "first"),
    (INTEGERS, "kind = 'longitudinal-rappor'\nepsilon = 1.0\nfirst = 1.0", "first below epsilon"),
    (INTEGERS, "kind = 'longitudinal-rappor'\nepsilon = 1.0\nfirst = -1.0", "first"),
    (INTEGERS, "kind = 'longitudinal-rappor'\nepsilon = 1000.0\nfirst = 1.0", "epsilon"),
    (INTEGERS, "kind = 'l-grr'\nepsilon = 1.0\nfirst = 1.0", "first below epsilon"),
    (INTEGERS, "kind = 'l-oue'\nepsilon = 1.0\nfirst = 0.9", "first below 0.7"),
    (INTEGERS, "kind = 'l-osue'\nepsilon = 1.0\nfirst = 0.5\npermanent_bits = 'sue'", "permanent_bits"),
    (INTEGERS, "kind = 'longitudinal-unary'\nepsilon = 1.0\nfirst = 0.5\npermanent_bits = 'due'", "oue, sue"),
    (INTEGERS, "kind = 'loloha'\nepsilon = 1.0\nfirst = 0.5\nbuckets = 1", "from 2 to"),
    (INTEGERS, "kind = 'd-bit-flip'\nepsilon = 1.0\nbuckets = 8", "from 2 to 7"),
    (INTEGERS, "kind = 'd-bit-flip'\nepsilon = 1.0\nbuckets = 4\nbits = 5", "from 1 to 4"),
    (INTEGERS, "kind = 'bloom-rappor'\ncohorts = 2\nbits = 8\nhashes = 2\nepsilon = 1.0", "a domain of categories"),
    (WORDS, "kind = 'bloom-rappor'\ncohorts = 2\nbits = 8\nhashes = 17\nepsilon = 1.0", "from 1 to 16"),
    (WORDS, "kind = 'bloom-rappor'\ncohorts = 2\nbits = 8\nhashes = 2\nf = 1\np = 0.5\nq = 0.75", "f below 1"),
    (WORDS, "kind = 'bloom-rappor'\ncohorts = 2\nbits = 8\nhashes = 2\nepsilon = 1.0\nrest = 'z'", "one of the labels"),
    (WORDS, "kind = 'bloom-rappor'\ncohorts = 2\nbits = 8\nhashes = 2\nepsilon = 1.0\nfirst = 2.0", "first at most"),
    (INTEGERS, "kind = 'geometric'\nepsilon = 1e-9", "1e-07"),
    (GRID, "kind = 'planar-geometric'\nepsilon = 1e-9", "1e-07"),
    (INTEGERS, "kind = 'local-hashing'\nepsilon = 1.0\nbuckets = 1", "from 2 to"),
    (INTEGERS, "kind = 'subset-selection'\nepsilon = 1.0\nsize = 7", "from 1 to 6"),
    (INTEGERS, "kind = 'square-wave'\nepsilon = 1.0\nreach = 8", "from 0 to 7"),
    (INTEGERS, "kind = 'square-wave'\nepsilon = 1.0\nreach = 0.5", "a whole number"),
    (WORDS, "kind = 'square-wave'\nepsilon = 1.0", "a domain of integers or bins"),
    (BINS, "kind = 'piecewise'\nepsilon = 1.0", "bins of one width"),
    (BINS, "kind = 'duchi'\nepsilon = 1.0", "bins of one width"),
    (WORDS, "kind = 'duchi'\nepsilon = 1.0", "a domain of integers or bins"),
    (BINS, "kind = 'staircase'\nepsilon = 1.0", "bins of one width"),
    (INTEGERS, "kind = 'staircase'\nepsilon = 1.0\ngamma = 0", "above 0"),
    (INTEGERS, "kind = 'staircase'\nepsilon = 1.0\ngamma = 1.5", "a probability"),
    (INTEGERS, "kind = 'staircase'\nepsilon = 1e-9", "1e-07"),
    (WORDS, "kind = 'unary'\np = 0.5\nq = 0.5", "0 < q < p < 1"),
    (WORDS, "kind = 'unary'\np = 1\nq = 0.5", "0 < q < p < 1"),
    (WORDS, "kind = 'unary'\np = 0.5", "q"),
    (WORDS, "kind = 'unary'\np = 0.5\nq = 0.1\nepsilon = 1.0", "epsilon"),
    (INTEGERS, "kind = 'hadamard-response'\nepsilon = 1.0\nblocks = 3", "a power of two"),
    (INTEGERS, "kind = 'hadamard-response'\nepsilon = 1.0\nblocks = 16", "from 1 to 13"),
    (INTEGERS, "kind = 'projective-response'\nepsilon = 1.0\nprime = 9", "a prime number"),
    (
        "[domain]\nkind = 'integers'\nlow = 0\nhigh = 50000\n",
        "kind = 'projective-response'\nepsilon = 1.0\nprime = 46349",
        "at most 2147483648 points",
    ),
    (INTEGERS, "kind = 'count-mean-sketch'\nepsilon = 1.0\nhashes = 0", "from 1 to 65536"),
    (INTEGERS, "kind = 'hadamard-count-mean-sketch'\nepsilon = 1.0\nwidth = 12", "a power of two"),
    (WORDS, "kind = 'cloaking'\nregions = ['left']", "one for each of 3 values"),
    (INTEGERS, "epsilon = 1.0", "no 'kind'"),
    ("[domain]\nkind = 'integers'\nlow = 3\n", "kind = 'rappor'\nepsilon = 1.0", "no 'high'"),
    ("[domain]\nkind = 'categories'\nlabels = ['5']\n", "kind = 'rappor'\nepsilon = 1.0", "two values or more"),
    ("[domain]\nkind = 'categories'\nlabels = ['5', '5']\n", "kind = 'rappor'\nepsilon = 1.0", "each once"),
    (HOLES.replace("11]", "12]"), "kind = 'rappor'\nepsilon = 1.0", "cells of the grid"),
    (INTEGERS, "kind = 'rappor'\nepsilon = 1.0\n[question]\ntext = ' '", "a text of 1 to 10000 letters"),
    (INTEGERS, "kind = 'rappor'\nepsilon = 1.0\n[question]\ntext = '?'\nmechanism = 'n'", "one of m"),
    (INTEGERS, "kind = 'rappor'\nepsilon = 1.0\n[question]\ntext = '?'\nanswer = '5'", "text, help, thanks"),
    (INTEGERS, "kind = 'rappor'\nepsilon = 1.0\n[collector]\ntime = 'minute'", "one of day, none, hour"),
    (INTEGERS, "kind = 'rappor'\nepsilon = 1.0\n[collector]\nmax_request_bytes = 10", "from 1000"),
    (INTEGERS, "kind = 'rappor'\nepsilon = 1.0\n[collector]\norigins = ['https://a.org/page']", "a list of sites"),
]


@pytest.mark.parametrize(("domain", "mechanism", "words"), REFUSED)
def test_a_study_that_the_library_refuses_is_refused_on_the_device(
    tmp_path: Path, domain: str, mechanism: str, words: str
) -> None:
    study = _write(tmp_path, domain, mechanism)
    with pytest.raises(hb.HubbubError):
        _ = hb.read_study(study).mechanisms["m"].law
    with pytest.raises(ClientError, match=words):
        Client(study).privatize(0.5 if "bins" in domain else 5)


def test_files_that_are_no_studies_or_tables(tmp_path: Path) -> None:
    study, tables = _write(tmp_path, INTEGERS, "kind = 'rappor'\nepsilon = 1.0"), tmp_path / "tables.json"
    for content in ("", "[]", "{"):
        tables.write_text(content)
        with pytest.raises(ClientError, match="tables"):
            Client(study, tables)
    for content in ("version = 1", "version = 1\n[mechanisms]\n", "version = ", "version = 1\nmechanisms = 3\n"):
        study.write_text(content)
        with pytest.raises(ClientError, match="study"):
            Client(study)


def test_rows_of_bits_are_written_as_the_library_writes_them(tmp_path: Path) -> None:
    # 0x keeps programs from taking 10 for a number.
    device, described = _client(tmp_path, INTEGERS, "kind = 'rappor'\nepsilon = 1.5")
    values, reports = tmp_path / "values.csv", tmp_path / "reports.csv"
    values.write_text("value\n5\n")
    hb.privatize_file(values, hb.read_study(tmp_path / "study.toml"), None, reports)
    ours, theirs = device.privatize(5), reports.read_text().split()[1]
    assert (ours[:2], len(ours)) == (theirs[:2], len(theirs)) == ("0x", 4)
    assert described.output_space.parse(ours) is not None


def test_an_error_does_not_show_the_value(tmp_path: Path) -> None:
    """It may end in a log or a crash report, which no noise protects."""
    for domain, value in ((INTEGERS, 4711), (WORDS, "4711"), (MAP, (47.11, -122.45)), (BINS, 47.11)):
        device = Client(_write(tmp_path, domain, "kind = 'randomized-response'\nepsilon = 1.0"))
        with pytest.raises(ClientError, match="not in the study's domain") as caught:
            device.privatize(value)
        assert "47" not in str(caught.value)


def test_the_package_can_be_copied_without_being_installed(tmp_path: Path) -> None:
    folder = tmp_path / "copied" / "hubbub"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "client.py"):
        (folder / name).write_bytes((Path(client.__file__).parent / name).read_bytes())
    study = _write(tmp_path, INTEGERS, "kind = 'rappor'\nepsilon = 1.0")
    code = f"import sys; sys.path.insert(0, {str(folder.parent)!r}); from hubbub.client import main; sys.exit(main())"
    command = [sys.executable, "-I", "-S", "-c", code, str(study), "m", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["mechanism"] == "m"


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
from hubbub.client import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("domain", ["kind = 'integers'\nlow = 1\nhigh = {}", "kind = 'grid'\ncolumns = {}\nrows = 1"])
@pytest.mark.parametrize(("values", "code"), [(10**8, 0), (10**8 + 1, 1), (99_999_999_999, 1), (10**18, 1)])
def test_many_values_take_little_memory(domain: str, values: int, code: int, tmp_path: Path) -> None:
    """A study of 10^11 values took 24 GB before it was refused."""
    pytest.importorskip("resource")
    content = f"[domain]\n{domain.format(values)}\n"
    study = _write(tmp_path, content, "kind = 'randomized-response'\nepsilon = 1.0")
    command = [sys.executable, "-c", LIMITED, str(study), "m", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == code, done.stderr
    assert ("the study cannot be used" in done.stderr) == bool(code)


@pytest.mark.parametrize("mechanism", ["", "M", 3, ["m"], None])
def test_a_mechanism_is_named_exactly(tmp_path: Path, mechanism: Any) -> None:
    study = tmp_path / "study.toml"
    study.write_text(f"version = 1\n{WORDS}[mechanisms.m]\nkind = 'rappor'\nepsilon = 1.0\n")
    if mechanism is None:
        assert Client(study).privatize("a", mechanism).startswith("0x")
        study.write_text(study.read_text() + "[mechanisms.n]\nkind = 'rappor'\nepsilon = 1.0\n")
    with pytest.raises(ClientError, match="no such mechanism"):
        Client(study).privatize("a", mechanism)


@pytest.mark.parametrize("kept", ["", "0x", "0xff00", "zz", "-f", "0x1", "0xff", "0x01", None, 4711, b"0x80", ["0x80"]])
def test_anything_but_a_permanent_response_is_refused_and_not_repeated(tmp_path: Path, kept: Any) -> None:
    device = Client(_write(tmp_path, INTEGERS, "kind = 'longitudinal-rappor'\nepsilon = 3.0\nfirst = 1.0"))
    with pytest.raises(ClientError, match="not a permanent response") as caught:
        device.instantaneous(kept)
    assert kept in (None, "", "0x") or str(kept) not in str(caught.value)
    assert device.instantaneous("0x80").startswith("0x")
    assert device.instantaneous("80").startswith("0x")


def test_a_value_that_looks_like_an_option_is_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = "[domain]\nkind = 'categories'\nlabels = ['--4711', 'b']\n"
    study = _write(tmp_path, labels, "kind = 'randomized-response'\nepsilon = 1.0")
    for arguments in (["--4711"], ["b", "--4711"], ["-4711x"]):
        with pytest.raises(SystemExit):
            client.main([str(study), "m", *arguments])
    assert "4711" not in capsys.readouterr().err
    assert client.main([str(study), "m", "--", "--4711"]) == 0
