"""Real reports take their randomness from the operating system alone: by reading the code, and by running it."""

from __future__ import annotations

import ast
import os
import random
import secrets
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from counting import forked
from hubbub import client
from hubbub.client import Client
from hubbub.intake.privatizing.device_tables import export_tables
from hubbub.sampling import SeededSource, SystemSource

SOURCE = Path(hb.__file__).parent
SIMULATION = {"simulation_draws.py"}  # what rng= leads to
FORBIDDEN = {"random", "secrets", "default_rng", "SeededSource", "RandomState", "mt19937", "SystemRandom"}


# -- by reading -------------------------------------------------------------------------------------------


def secure_modules() -> list[Path]:
    """Return the modules that real reports run through."""
    sampling = [path for path in (SOURCE / "sampling").glob("*.py") if path.name not in {*SIMULATION, "__init__.py"}]
    return [SOURCE / "client.py", *sampling, *(SOURCE / "mechanisms").glob("*.py")]


def seeded_names(code: str) -> Iterator[str]:
    """Return all that is imported or used under a name of a generator that can be seeded."""
    for node in ast.walk(ast.parse(code)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Name):
            names = [node.id]
        yield from (name for name in names if name in FORBIDDEN)


@pytest.mark.parametrize("path", secure_modules(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_seeded_generator_on_the_way_of_real_reports(path: Path) -> None:
    assert list(seeded_names(path.read_text())) == []


@pytest.mark.parametrize(
    "code",
    [
        "import random",
        "from random import choice",
        "import numpy.random as r",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.rand()",
        "from numpy import random",
        "from hubbub.sampling.simulation_draws import SeededSource",
        "import secrets",
    ],
)
def test_the_reading_finds_generators(code: str) -> None:
    assert list(seeded_names(code))


def test_only_two_places_ask_the_operating_system() -> None:
    asking = [
        path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py")) if "urandom(" in path.read_text()
    ]
    assert asking == ["client.py", "sampling/random_source.py"]


# -- by running -------------------------------------------------------------------------------------------

LINE = hb.Integers(0, 9)
UNEVEN = hb.Bins([0.0, 0.5, 2.0, 2.25, 6.0])
MAP = hb.Grid(4, 3, cell=(1.0, 0.75))
COAST = hb.Grid(4, 3, cell=1.0, cells=[0, 1, 5, 6, 11])

MECHANISMS: list[hb.Mechanism] = [
    hb.RandomizedResponse(LINE, 1.0),
    hb.Geometric(LINE, 0.5),
    hb.TruncatedGeometric(LINE, 0.4),
    hb.Laplace(LINE, 0.6),
    hb.Laplace(UNEVEN, 0.8),
    hb.Exponential(UNEVEN, 1.0),
    hb.Exponential(MAP, 1.0),
    hb.PlanarGeometric(MAP, 1.0),
    hb.PlanarGeometric(COAST, 1.0),
    hb.PlanarGeometric(MAP, 1.0, truncated=False),
    hb.PlanarLaplace(MAP, 1.0),
    hb.Rappor(LINE, 2.0),
    hb.LongitudinalRappor(LINE, 2.0, 1.0),
    hb.OptimizedUnary(LINE, 1.0),
    hb.LongitudinalUnary(LINE, 2.0, 1.0),
    hb.LongitudinalUnary(LINE, 2.0, 1.0, "oue", "oue"),
    hb.LongitudinalResponse(LINE, 2.0, 1.0),
    hb.LongitudinalHashing(LINE, 2.0, 1.0),
    hb.DBitFlip(LINE, 2.0, 5, 2),
    hb.LocalHashing(LINE, 1.0),
    hb.SubsetSelection(LINE, 1.0),
    hb.SquareWave(LINE, 1.0),
    hb.Piecewise(LINE, 1.0),
    hb.Duchi(LINE, 1.0),
    hb.Staircase(LINE, 1.0),
    hb.Unary(LINE, 0.6, 0.2),
    hb.HadamardResponse(LINE, 1.0),
    hb.ProjectiveResponse(LINE, 1.0),
    hb.CountMeanSketch(LINE, 1.0, hashes=3, width=4),
    hb.HadamardCountMeanSketch(LINE, 1.0, hashes=3, width=4),
    hb.Matrix(LINE, ["a", "b"], np.linspace([0.2, 0.8], [0.7, 0.3], 10)),
]
STUDY = """
version = 1
[domain]
kind = 'grid'
columns = 4
rows = 3
[mechanisms]
a = {kind = 'randomized-response', epsilon = 1.0}
b = {kind = 'rappor', epsilon = 1.0}
c = {kind = 'optimized-unary', epsilon = 1.0}
d = {kind = 'local-hashing', epsilon = 1.0}
e = {kind = 'subset-selection', epsilon = 1.0}
f = {kind = 'planar-geometric', epsilon = 1.0}
g = {kind = 'planar-laplace', epsilon = 1.0}
h = {kind = 'exponential', epsilon = 1.0}
i = {kind = 'longitudinal-rappor', epsilon = 2.0, first = 1.0}
j = {kind = 'longitudinal-unary', epsilon = 2.0, first = 1.0}
k = {kind = 'longitudinal-response', epsilon = 2.0, first = 1.0}
l = {kind = 'longitudinal-hashing', epsilon = 2.0, first = 1.0}
m = {kind = 'd-bit-flip', epsilon = 2.0, bits = 3}
"""


def explode(*_: object, **__: object) -> None:
    raise AssertionError("a generator that can be seeded was used for a real report")


@pytest.fixture
def no_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every function and class of `random`, `secrets` and `numpy.random` fail when it is called."""
    for module in (random, secrets, np.random):
        for name, entry in list(vars(module).items()):
            if name.startswith("_") or not callable(entry) or isinstance(entry, types.ModuleType):
                continue
            # Classes stay classes where others ask what something is an instance of.
            if isinstance(entry, type):
                continue
            monkeypatch.setattr(module, name, explode)
    for name in ("words", "__init__"):
        monkeypatch.setattr(SeededSource, name, explode)


def stream(start: int) -> Callable[[int], bytes]:
    """Return something to put in the place of os.urandom that repeats itself: a counter, scrambled."""
    state = [start]

    def drawn(count: int) -> bytes:
        state[0] += 1
        return b"".join(
            client._mix(state[0] * 1_000_003 + place).to_bytes(8, "little") for place in range(-(-count // 8))
        )[:count]

    return drawn


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.usefixtures("no_generators")
def test_all_randomness_comes_from_the_operating_system(
    mechanism: hb.Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes of the system give the same outputs, others give others: nothing else takes part."""
    values = np.resize(mechanism.domain.labels, 100)
    outputs = []
    for start in (1, 1, 2):
        monkeypatch.setattr(os, "urandom", stream(start))
        outputs.append(mechanism.privatize(values))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert (outputs[0] != outputs[2]).any()
    with pytest.raises(AssertionError):
        mechanism.privatize(values, rng=0)


def test_all_randomness_of_the_client_comes_from_the_operating_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_generators: None
) -> None:
    study, tables = tmp_path / "study.toml", tmp_path / "tables.json"
    study.write_text(STUDY)
    export_tables(study, tables)
    device = Client(study, tables)
    for name in "abcdefghi":
        outputs = []
        for start in (1, 1, 2):
            monkeypatch.setattr(os, "urandom", stream(start))
            outputs.append([device.privatize(5, name) for _ in range(30)])
        assert outputs[0] == outputs[1]
        assert outputs[0] != outputs[2]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_hundred_forks_share_no_words() -> None:
    mechanism = hb.LocalHashing(LINE, 1.0)
    source = SystemSource()
    mechanism.privatize(LINE.labels)  # everything that may be kept is there before the forks
    source.words(10)
    client.random_bits(64)

    def draw() -> bytes:
        words = source.words(16).tobytes()
        seeds = mechanism.privatize(np.zeros(8, dtype=np.int64))["seed"].tobytes()
        return words + seeds + client.random_bits(64).to_bytes(8, "little")

    found = [*forked(draw, 100), draw()]
    words = [word for child in found for word in np.frombuffer(child, dtype=np.uint64).tolist()]
    assert len(words) == 101 * 25
    assert len(set(words)) == len(words)
