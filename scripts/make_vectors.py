"""Write clients/vectors: which output hubbub.client makes of a value and random bytes, for clients in other languages.

Run from the repository's root: python scripts/make_vectors.py

Random bytes alone would never reach most of what a client does: a word is redrawn once in 2^64 times. So the words of a
trial run are watched: with which numbers are they compared? Later runs are given such numbers themselves, their
neighbours, and numbers that agree with them in the first bytes, among random words. Of many such runs, those are
kept that do something new: a comparison that ends otherwise, or is decided by another byte.

All bytes follow from the names of the studies, so the same program writes the same files.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from hubbub import client
from hubbub.client import Client, ClientError
from hubbub.intake.privatizing.client_document import export_client
from hubbub.intake.privatizing.device_tables import export_tables

TARGET = Path("clients/vectors")
MAX_CASE_BYTES = 1500  # of randomness
STUDY_BYTES = 18_000  # of randomness, in all cases of a study
STUDY_CASES = 120
TRIALS = 1500


# -- words that are watched --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """A random word compared with a border: where, what came out, and how many bytes it took (0: it is the border)."""

    site: str
    size: int  # bytes of the word
    border: int
    below: bool
    decided_by: int

    @property
    def decision(self) -> str:
        """What decided, in words."""
        return "border" if self.decided_by == 0 else "first byte" if self.decided_by == 1 else "further bytes"


class WatchedWord(int):
    """A random word that notes what it is compared with."""

    size: int
    seen: list[Comparison]

    def __lt__(self, border: Any) -> bool:
        self._note(border)
        return bool(int(self) < border)

    def __ge__(self, border: Any) -> bool:
        self._note(border)
        return bool(int(self) >= border)

    def _note(self, border: int | Fraction) -> None:
        whole = int(border)
        frame = sys._getframe(2)  # bisect has no frame of its own
        different = (int(self) ^ whole).bit_length()
        decided_by = 0 if different == 0 else max(1, self.size - (different - 1) // 8)
        site = frame.f_code.co_qualname
        self.seen.append(Comparison(site, self.size, whole, int(self) < whole, decided_by))


@dataclass
class Watch:
    """All that one run of the client does with random bytes."""

    bytes_of: Callable[[int], bytes]
    seen: list[Comparison] = field(default_factory=list)
    used: bytearray = field(default_factory=bytearray)
    blocks: int = 0  # of the farthest noise

    def random_bits(self, count: int) -> int:
        """Stand for the client's function of the same name."""
        content = self.bytes_of(count // 8)
        self.used += content
        word = WatchedWord(int.from_bytes(content, "little"))
        word.size, word.seen = count // 8, self.seen
        return word

    def labels(self) -> list[str]:
        """Return what happened in words: which branches were taken."""
        found = {comparison.decision for comparison in self.seen}
        if any(each.site == "random_below" and not each.below for each in self.seen):
            found.add("word redrawn")
        if any(each.site == "random_event" and not each.below for each in self.seen):
            found.add("displacement rejected")
        if self.blocks:
            found.add("noise beyond the first block" if self.blocks == 1 else "noise beyond the second block")
        return sorted(found)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Let the client draw from a watch instead of the operating system."""
    draw = client.Noise.draw

    def drawn(noise: client.Noise, most: int | None = None) -> int:
        steps = draw(noise, most)
        watch.blocks = max(watch.blocks, (abs(steps) - 1) // len(noise.steps) if steps else 0)
        return steps

    with mock.patch.object(client, "random_bits", watch.random_bits), mock.patch.object(client.Noise, "draw", drawn):
        yield


class ByteStream:
    """Bytes that follow from a name."""

    def __init__(self, name: str) -> None:
        self._name, self._left, self._blocks = name, b"", 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        while len(self._left) < count:
            self._left += hashlib.sha256(f"{self._name}, block {self._blocks}".encode()).digest()
            self._blocks += 1
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def below(self, bound: int) -> int:
        """Return a number below a bound."""
        return int.from_bytes(self.take(8), "little") % bound


class ChosenWords:
    """Words for one run: random ones, and with some probability borders, their neighbours and extremes."""

    def __init__(self, stream: ByteStream, borders: dict[int, list[int]], chosen: int) -> None:
        self._stream, self._borders, self._chosen = stream, borders, chosen

    def __call__(self, count: int) -> bytes:
        """Return the next word."""
        top, content = (1 << (8 * count)) - 1, self._stream.take(count)
        choice = self._stream.below(16)
        if choice >= self._chosen:
            return content
        borders = self._borders.get(count, [])
        extreme = choice < 3 or not borders
        base = (0, top, top - 1)[self._stream.below(3)] if extreme else borders[self._stream.below(len(borders))]
        change = self._stream.below(6)
        if change == 1:
            base -= 1
        elif change == 2:  # the same first bytes, and any further ones
            cut = 8 * (count - 1 - self._stream.below(count - 1))
            base = (base >> cut << cut) | (int.from_bytes(content, "little") & ((1 << cut) - 1))
        return min(max(base, 0), top).to_bytes(count, "little")


# -- cases ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VectorStudy:
    """A study, and the values that its cases have."""

    domain: str
    mechanism: str
    values: tuple[Any, ...]
    calls: tuple[str, ...] = ("privatize",)
    cases: int = STUDY_CASES

    @property
    def is_row(self) -> bool:
        """Whether permanent responses are rows of bits, and any such row may be one."""
        return "longitudinal-rappor" in self.mechanism or "longitudinal-unary" in self.mechanism

    @property
    def toml(self) -> str:
        """The study file."""
        return f"version = 1\nname = 'vectors'\n[domain]\n{self.domain}\n[mechanisms.m]\n{self.mechanism}\n"


def run(device: Client, call: str, value: Any, earlier: Sequence[str] = ()) -> dict[str, str]:
    """Return what a call gives, or what its error says."""
    try:
        return {"output": getattr(device, call)(value, **({"earlier": earlier} if earlier else {}))}
    except ClientError as error:
        return {"error": error.what}


def cases_of(name: str, study: VectorStudy, device: Client) -> list[dict[str, Any]]:
    """Return cases that reach as much as possible, in the order in which they were found."""
    borders: dict[int, set[int]] = {}
    covered: set[Any] = set()
    kept: list[dict[str, Any]] = []
    spare: list[dict[str, Any]] = []
    for trial in range(TRIALS):
        stream = ByteStream(f"{name}, trial {trial}")
        value = study.values[trial % len(study.values)]
        call = study.calls[stream.below(len(study.calls))]
        earlier: list[str] = []
        if call == "instantaneous" and study.is_row:
            value = any_row(len(device._values.labels), stream)
        elif call != "privatize" and not study.is_row:  # perhaps after other values of the same person
            for _ in range(stream.below(3)):
                earlier.append(permanent_from(stream, device, study, earlier))
            if call == "instantaneous":
                value, earlier = permanent_from(stream, device, study, earlier), []
        watch = Watch(ChosenWords(stream, {size: sorted(own) for size, own in borders.items()}, (0, 5, 10)[trial % 3]))
        with watched(watch):
            result = run(device, call, value, earlier)
        for each in watch.seen:
            borders.setdefault(each.size, set()).add(each.border)
        if len(watch.used) > MAX_CASE_BYTES:
            continue
        reached: set[Any] = {(each.site, each.border, each.below, each.decision) for each in watch.seen}
        reached |= {(each.site, each.below, each.decided_by) for each in watch.seen}
        reached |= {
            ("value", str(value) if call != "instantaneous" else "", call, len(earlier)),
            ("blocks", watch.blocks),
            str(result)[:40],
        }
        case = {
            **({} if call == "privatize" else {"call": call}),
            "value": value,
            **({"earlier": earlier} if earlier else {}),
            "bytes": watch.used.hex(),
            **result,
            "reaches": watch.labels(),
        }
        (kept if reached - covered else spare).append(case)
        covered |= reached
    chosen: list[dict[str, Any]] = []
    total = 0
    for case in [*kept, *spare]:
        total += len(case["bytes"]) // 2
        if len(chosen) == study.cases or total > STUDY_BYTES:
            break
        chosen.append(case)
    return chosen


def permanent_from(stream: ByteStream, device: Client, study: VectorStudy, earlier: Sequence[str]) -> str:
    """Return a permanent response to one of a study's values, drawn from a stream."""
    with watched(Watch(stream.take)):
        return device.permanent(study.values[stream.below(len(study.values))], earlier=earlier)


def any_row(bits: int, stream: ByteStream) -> str:
    """Return any permanent response: bits, then zeros up to whole bytes."""
    size = -(-bits // 8)
    row = int.from_bytes(stream.take(size), "big") >> (-bits % 8) << (-bits % 8)
    return "0x" + row.to_bytes(size, "big").hex()


def vectors(name: str, study: VectorStudy) -> dict[str, Any]:
    """Return a study, its JSON form, and its cases."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "study.toml")
        path.write_text(study.toml)
        export_client(path, Path(folder, "study.json"))
        export_tables(path, Path(folder, "tables.json"))
        document = json.loads(Path(folder, "study.json").read_bytes())
        cases = cases_of(name, study, Client(path, Path(folder, "tables.json")))
    return {"name": name, "toml": study.toml, "document": document, "cases": cases}


# -- studies ----------------------------------------------------------------------------------------------------------

COIN = "kind = 'categories'\nlabels = ['yes', 'no']"
WORDS = "kind = 'categories'\nlabels = ['a', 'b', 7]"
INTEGERS = "kind = 'integers'\nlow = 3\nhigh = 9"
FAR = "kind = 'integers'\nlow = 9007199254740983\nhigh = 9007199254740992"
BINS = "kind = 'bins'\nedges = [0, 1, 3, 3.5, 7]"
EVEN = "kind = 'bins'\nedges = [0.0, 0.5, 1.0, 1.5]"
GRID = "kind = 'grid'\ncolumns = 4\nrows = 3\ncell = [0.5, 0.8]"
HOLES = "kind = 'grid'\ncolumns = 4\nrows = 3\ncell = 1.0\ncells = [0, 1, 6, 7, 11]"
MAP = "kind = 'grid'\nsouth = 37.7\nwest = -122.5\nnorth = 37.8\neast = -122.4\ncolumns = 5\nrows = 4"
PEOPLE = """kind = 'product'
order = ['age', '10', 'place']
impossible = [{age = [0, 1], '10' = 'm'}]
[domain.attributes.'10']
kind = 'categories'
labels = ['f', 'm', 7]
[domain.attributes.age]
kind = 'bins'
edges = [0, 20, 40, 60]
[domain.attributes.place]
kind = 'grid'
columns = 3
rows = 2
cells = [0, 1, 5]"""
PAIR = """kind = 'product'
[domain.attributes.sex]
kind = 'categories'
labels = ['f', 'm']
[domain.attributes.age]
kind = 'integers'
low = 3
high = 5"""
PEOPLE_VALUES = ([34.5, "f", 5], [59, "m", 0], {"place": "1", "age": "60", "10": 7}, [0, 7.0, 1])
PLAIN_PARTS = """[mechanisms.m.parts.age]
kind = 'oue'
epsilon = 1.0
[mechanisms.m.parts.'10']
kind = 'randomized-response'
p = 0.5
[mechanisms.m.parts.place]
kind = 'olh'
epsilon = 0.5"""
SHARED_PARTS = """[mechanisms.m.parts.age]
kind = 'laplace'
share = 0.5
[mechanisms.m.parts.'10']
kind = 'krr'
share = '1/4'
[mechanisms.m.parts.place]
kind = 'planar-geometric'
share = 0.25"""
TABLED_PARTS = """[mechanisms.m.parts.age]
kind = 'exponential'
epsilon = 0.05
[mechanisms.m.parts.'10']
kind = 'matrix'
outputs = ['x', 'y']
probabilities = [[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]]
[mechanisms.m.parts.place]
kind = 'planar-laplace'
epsilon = 5.0"""
ALL_CALLS = ("privatize", "permanent", "instantaneous")
WHOLE, LINE = (3, "9", 5.0, "6.0"), (0.2, 1.5, "0.5")


def mechanism(kind: str, **fields: object) -> str:
    """Return the lines of a mechanism."""
    return "\n".join([f"kind = '{kind}'", *(f"{name} = {value}" for name, value in fields.items())])


STUDIES: dict[str, dict[str, VectorStudy]] = {
    "randomized-response": {
        "words": VectorStudy(WORDS, mechanism("randomized-response", epsilon=0.3), ("a", "b", 7, "7.0")),
        "integers": VectorStudy(INTEGERS, mechanism("krr", epsilon=1), WHOLE),
        "256 values": VectorStudy(
            "kind = 'integers'\nlow = 0\nhigh = 255", mechanism("krr", epsilon=4.0), (0, 128, 255)
        ),
        "large epsilon": VectorStudy(COIN, mechanism("krr", epsilon=500), ("yes", "no")),
        "by p": VectorStudy(WORDS, mechanism("randomized-response", p="'2/3'"), ("a", "b", 7)),
        "by a decimal": VectorStudy(INTEGERS, mechanism("randomized-response", p=0.7531), WHOLE),
        "combinations": VectorStudy(PEOPLE, mechanism("krr", epsilon=2.0), PEOPLE_VALUES),
        "all combinations": VectorStudy(PAIR, mechanism("krr", epsilon=2.0), (["f", 3], {"age": "5", "sex": "m"})),
    },
    "warner": {"coin": VectorStudy(COIN, mechanism("warner", p=0.3), ("yes", "no"))},
    "forced-response": {
        "coin": VectorStudy(COIN, mechanism("forced-response", p_yes="'1/6'", p_no=0.25), ("yes", "no")),
    },
    "unrelated-question": {
        "coin": VectorStudy(COIN, mechanism("unrelated-question", p=0.7, prevalence=0.1), ("yes", "no")),
        "never": VectorStudy(COIN, mechanism("unrelated-question", p=0.7, prevalence=0), ("yes", "no"), cases=40),
    },
    "crosswise-model": {"coin": VectorStudy(COIN, mechanism("crosswise-model", p="'2/12'"), ("yes", "no"))},
    "geometric": {
        "integers": VectorStudy(INTEGERS, mechanism("geometric", epsilon=0.4), WHOLE),
        "small epsilon": VectorStudy(INTEGERS, mechanism("geometric", epsilon=1e-4), WHOLE),
        "large epsilon": VectorStudy(INTEGERS, mechanism("geometric", epsilon=70), WHOLE),
        "large numbers": VectorStudy(
            FAR, mechanism("geometric", epsilon=0.5), (9007199254740991, "9007199254740992", "9007199254740983")
        ),
    },
    "truncated-geometric": {
        "integers": VectorStudy(INTEGERS, mechanism("truncated-geometric", epsilon=0.4), WHOLE),
        "small epsilon": VectorStudy(INTEGERS, mechanism("truncated-geometric", epsilon=1e-3), WHOLE),
        "a block of values": VectorStudy(
            "kind = 'integers'\nlow = 1\nhigh = 150", mechanism("truncated-geometric", epsilon=0.4), (1, 75, 150)
        ),
        "many values": VectorStudy(
            "kind = 'integers'\nlow = -9000\nhigh = 9000", mechanism("truncated-geometric", epsilon=1e-4), (-9000, 0)
        ),
    },
    "laplace": {
        "integers": VectorStudy(INTEGERS, mechanism("laplace", epsilon=0.6), WHOLE),
        "even bins": VectorStudy(EVEN, mechanism("laplace", epsilon=0.9), LINE),
        "uneven bins": VectorStudy(BINS, mechanism("laplace", epsilon=0.5), (*LINE, 7)),
    },
    "planar-geometric": {
        "grid": VectorStudy(GRID, mechanism("planar-geometric", epsilon=1.0), (0, 5, 11)),
        "endless": VectorStudy(GRID, mechanism("planar-geometric", epsilon=2.0, truncated="false"), (0, "5", 11)),
        "missing cells": VectorStudy(HOLES, mechanism("planar-geometric", epsilon=0.8), (0, 6, 11)),
        "map": VectorStudy(MAP, mechanism("planar-geometric", epsilon=0.7), ([37.75, -122.45], ["37.8", "-122.4"])),
        "small epsilon": VectorStudy(
            GRID, mechanism("planar-geometric", epsilon=0.001, truncated="false"), (0, 5, 11), cases=60
        ),
        "large epsilon": VectorStudy(GRID, mechanism("planar-geometric", epsilon=90.0), (0, 5, 11), cases=60),
    },
    "planar-laplace": {
        "grid": VectorStudy(GRID, mechanism("planar-laplace", epsilon=1.0), (0, 5, 11)),
        "missing cells": VectorStudy(HOLES, mechanism("planar-laplace", epsilon=40.0), (0, 6, 11)),
    },
    "exponential": {
        "words": VectorStudy(WORDS, mechanism("exponential", epsilon=1.0), ("a", "b", 7)),
        "map": VectorStudy(MAP, mechanism("exponential", epsilon=1.0), ([37.75, -122.45], 19, [37.7, -122.5])),
    },
    "matrix": {
        "words": VectorStudy(
            WORDS,
            mechanism("matrix", outputs="['x', 'y']", probabilities="[[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]]"),
            ("a", "b", 7),
        ),
        "floats": VectorStudy(
            COIN, mechanism("matrix", outputs="[1, 2.5]", probabilities="[[0.0, 1.0], [0.9, 0.1]]"), ("yes", "no")
        ),
    },
    "rappor": {
        "words": VectorStudy(WORDS, mechanism("rappor", epsilon=1.5), ("a", "b", 7)),
        "nine values": VectorStudy(
            "kind = 'integers'\nlow = 1\nhigh = 9", mechanism("sue", epsilon=0.5), (1, 8, 9), cases=40
        ),
    },
    "optimized-unary": {"integers": VectorStudy(INTEGERS, mechanism("oue", epsilon=1.5), WHOLE, cases=80)},
    "longitudinal-rappor": {
        "words": VectorStudy(
            WORDS,
            mechanism("longitudinal-rappor", epsilon=2.5, first=1.0),
            ("a", "b", 7),
            ("privatize", "permanent", "instantaneous"),
        ),
        "sixteen values": VectorStudy(
            "kind = 'integers'\nlow = 0\nhigh = 15",
            mechanism("longitudinal-rappor", epsilon=2.5, first=1.0),
            (0, 7, 8, 15),
            ("permanent", "instantaneous"),
            cases=30,
        ),
    },
    "longitudinal-unary": {
        "words": VectorStudy(WORDS, mechanism("longitudinal-unary", epsilon=2.5, first=1.0), ("a", "b", 7), ALL_CALLS),
        "optimized twice": VectorStudy(
            "kind = 'integers'\nlow = 0\nhigh = 8",
            mechanism(
                "longitudinal-unary",
                epsilon=3.0,
                first=1.0,
                permanent_bits="'oue'",
                instantaneous_bits="'oue'",
            ),
            (0, 7, 8),
            ("permanent", "instantaneous"),
            cases=40,
        ),
    },
    "longitudinal-response": {
        "words": VectorStudy(WORDS, mechanism("l-grr", epsilon=2.0, first=0.5), ("a", "b", 7), ALL_CALLS),
        "256 values": VectorStudy(
            "kind = 'integers'\nlow = 0\nhigh = 255",
            mechanism("longitudinal-response", epsilon=6.0, first=4.0),
            (0, 128, 255),
            ALL_CALLS,
            cases=60,
        ),
    },
    "longitudinal-hashing": {
        "integers": VectorStudy(INTEGERS, mechanism("loloha", epsilon=3.0, first=1.5), WHOLE, ALL_CALLS),
        "two buckets": VectorStudy(BINS, mechanism("biloloha", epsilon=1.0, first=0.3), LINE, ALL_CALLS, cases=80),
    },
    "d-bit-flip": {
        "some buckets": VectorStudy(
            "kind = 'integers'\nlow = 0\nhigh = 22",
            mechanism("d-bit-flip", epsilon=2.0, buckets=9, bits=4),
            (0, 2, 7, 14, 22),
            ALL_CALLS,
        ),
        "all values": VectorStudy(WORDS, mechanism("d-bit-flip", epsilon=1.0), ("a", "b", 7), ALL_CALLS, cases=80),
        "one bit": VectorStudy(
            INTEGERS, mechanism("d-bit-flip", epsilon=1.0, buckets=3, bits=1), WHOLE, ALL_CALLS, cases=60
        ),
    },
    "bloom-rappor": {
        "words": VectorStudy(
            WORDS,
            mechanism("bloom-rappor", cohorts=9, bits=16, hashes=2, f="'1/2'", p=0.5, q=0.75),
            ("a", "b", 7),
            ALL_CALLS,
        ),
        "any text": VectorStudy(
            WORDS,
            mechanism("bloom-rappor", cohorts=1000, bits=21, hashes=3, epsilon=3.0, first=1.0, rest="'b'"),
            ("a", "b", 7, "another text", "\u00e9\u20ac\U0001f600", "x" * 60, "0"),
            ALL_CALLS,
            cases=120,
        ),
        "nothing permanent": VectorStudy(
            WORDS,
            mechanism("bloom-rappor", cohorts=4, bits=8, hashes=2, f=0, p=0.25, q="'2/3'"),
            ("a", "b", 7),
            ALL_CALLS,
            cases=40,
        ),
        "one report": VectorStudy(
            WORDS,
            mechanism("bloom-rappor", cohorts=1, bits=8, hashes=16, epsilon=2.0),
            ("a", "b", 7),
            ALL_CALLS,
            cases=60,
        ),
    },
    "subset-selection": {
        "integers": VectorStudy(INTEGERS, mechanism("subset-selection", epsilon=1.0), WHOLE),
        "all but one": VectorStudy(INTEGERS, mechanism("subset-selection", epsilon=1.0, size=6), WHOLE, cases=80),
        "one": VectorStudy(WORDS, mechanism("subset-selection", epsilon=3.0, size=1), ("a", "b", 7), cases=80),
    },
    "square-wave": {
        "integers": VectorStudy(INTEGERS, mechanism("square-wave", epsilon=1.0), WHOLE),
        "bins": VectorStudy(BINS, mechanism("sw", epsilon=0.5, reach=3), (*LINE, 7), cases=80),
        "large numbers": VectorStudy(
            FAR, mechanism("square-wave", epsilon=0.5), (9007199254740991, "9007199254740992"), cases=60
        ),
    },
    "piecewise": {
        "integers": VectorStudy(INTEGERS, mechanism("piecewise", epsilon=2.0), WHOLE),
        "bins": VectorStudy(EVEN, mechanism("pm", epsilon=1.0, reach=0), LINE, cases=60),
    },
    "duchi": {
        "integers": VectorStudy(INTEGERS, mechanism("duchi", epsilon=1.0), WHOLE, cases=80),
        "bins": VectorStudy(EVEN, mechanism("duchi", epsilon=3.0), LINE, cases=60),
    },
    "staircase": {
        "integers": VectorStudy(INTEGERS, mechanism("staircase", epsilon=1.0), WHOLE),
        "bins": VectorStudy(EVEN, mechanism("staircase", epsilon=4.0, gamma="'1/3'"), LINE, cases=80),
        "small epsilon": VectorStudy(INTEGERS, mechanism("staircase", epsilon=1e-3, gamma=1), WHOLE, cases=60),
        "large numbers": VectorStudy(
            FAR, mechanism("staircase", epsilon=0.5), (9007199254740991, "9007199254740992"), cases=60
        ),
    },
    "unary": {
        "words": VectorStudy(WORDS, mechanism("unary", p="'3/4'", q=0.1), ("a", "b", 7)),
        "integers": VectorStudy(INTEGERS, mechanism("unary", p=0.5, q="'1/6'"), WHOLE, cases=80),
    },
    "hadamard-response": {
        "integers": VectorStudy(INTEGERS, mechanism("hadamard-response", epsilon=1.0), WHOLE),
        "four blocks": VectorStudy(
            "kind = 'integers'\nlow = 0\nhigh = 22", mechanism("hr", epsilon=0.5, blocks=4), (0, 3, 7, 21, 22), cases=80
        ),
        "blocks of one": VectorStudy(WORDS, mechanism("hadamard-response", epsilon=6.0), ("a", "b", 7), cases=60),
    },
    "projective-response": {
        "integers": VectorStudy(INTEGERS, mechanism("projective-response", epsilon=1.0), WHOLE),
        "five coordinates": VectorStudy(
            "kind = 'integers'\nlow = 0\nhigh = 99",
            mechanism("pgr", epsilon=0.5, prime=3),
            (0, 1, 4, 39, 57, 99),
            cases=100,
        ),
        "a large prime": VectorStudy(
            "kind = 'integers'\nlow = 0\nhigh = 299", mechanism("pgr", epsilon=4.6), (0, 1, 102, 299), cases=60
        ),
        "sets of one": VectorStudy(WORDS, mechanism("projective-response", epsilon=5.0), ("a", "b", 7), cases=60),
    },
    "count-mean-sketch": {
        "integers": VectorStudy(
            INTEGERS, mechanism("count-mean-sketch", epsilon=1.0, hashes=5, width=7), WHOLE, cases=100
        ),
        "words": VectorStudy(WORDS, mechanism("cms", epsilon=3.0, hashes=1000, width=17), ("a", "b", 7), cases=60),
    },
    "hadamard-count-mean-sketch": {
        "integers": VectorStudy(
            INTEGERS, mechanism("hadamard-count-mean-sketch", epsilon=1.0, hashes=5, width=8), WHOLE, cases=100
        ),
        "defaults": VectorStudy(WORDS, mechanism("hcms", epsilon=3.0), ("a", "b", 7), cases=80),
    },
    "local-hashing": {
        "integers": VectorStudy(INTEGERS, mechanism("local-hashing", epsilon=1.0), WHOLE),
        "two buckets": VectorStudy(BINS, mechanism("blh", epsilon=0.5), LINE, cases=60),
        "2^31 buckets": VectorStudy(WORDS, mechanism("local-hashing", epsilon=30), ("a", 7), cases=60),
    },
    "cloaking": {
        "words": VectorStudy(WORDS, mechanism("cloaking", regions="['left', 'right', 'left']"), ("a", "b", 7), cases=3),
    },
    "split": {
        "people": VectorStudy(PEOPLE, f"{mechanism('split', epsilon=2.0)}\n{SHARED_PARTS}", PEOPLE_VALUES),
        "tables": VectorStudy(PEOPLE, f"{mechanism('split')}\n{TABLED_PARTS}", PEOPLE_VALUES),
    },
    "sample-one": {
        "people": VectorStudy(
            PEOPLE,
            f"{mechanism('sample-one')}\nprobabilities = {{age = '1/3', '10' = 0.5, place = '1/6'}}\n{PLAIN_PARTS}",
            PEOPLE_VALUES,
        ),
        "equal": VectorStudy(PEOPLE, f"{mechanism('sample-one')}\n{PLAIN_PARTS}", PEOPLE_VALUES, cases=60),
    },
    "sample-one-with-fakes": {
        "people": VectorStudy(
            PEOPLE,
            f"{mechanism('sample-one-with-fakes')}\nfakes = {{'10' = [0.5, 0.0, 0.5], age = [0.2, 0.3, 0.5]}}\n"
            f"{PLAIN_PARTS}",
            PEOPLE_VALUES,
        ),
    },
}

# Values in all forms, also wrong ones. Cloaking draws nothing: each value has a region that names its place.
ANY_VALUES: tuple[Any, ...] = (
    *(0, 1, 2, 3, 5, 7, 9, 10, -1, 11, 12, 19, 3.0, 5.0, 7.0, 3.5, 0.5, -0.0, 1e16, 1e-300, 1e300, 2**53 - 1),
    *("0", "3", "5", "7", "9", "+5", "-5", "005", "5.0", "7.0", "+7.0", "5.00", "5.", ".5", "5e0", "5E0", "0x5", "5_0"),
    *("", " 5", "5 ", "5\n", "٥", "５", "nan", "inf", "-inf", "Infinity", "1e999", "3.2", "3.5", "7.0000000001", "-0"),
    *("6.999999999999999999999", "9007199254740993", "99999999999999999999", "-9007199254740992.0", "1" * 400),
    *("a", "b", "A", "c", "a ", "yes", "true", "null", "None", "é", "e\u0301", "\U0001f600", "toString", "__proto__"),
    *(None, True, False, [], {}, [5], ["a"], [[5]], {"a": 1}, [37.75, -122.45], ["37.75", "-122.45"]),
    *([37.7, -122.5], [37.8, -122.4], ["37.8", "-122.4"], [37.80000001, -122.45], [37.75], [37.75, -122.45, 0]),
    *([None, -122.45], [37.75, True], {"lat": 37.75, "lon": -122.45}, [37.724999999999994, -122.48]),
)
PEOPLE_ANY: tuple[Any, ...] = (
    *PEOPLE_VALUES,
    *([34.5, "f"], [34.5, "f", 5, 1], [], {}, "34.5", None, 5, {"age": 34.5, "10": "f"}, [34.5, "x", 5]),
    *([34.5, "f", 2], [61, "f", 5], [10, "m", 5], {"age": 30, "10": "m", "place": 0}, [40, "m", 0], [40, "7.0", "5"]),
    *({"age": 34.5, "10": "f", "place": 5, "more": 1}, {"age": 34.5, "10": "f", "Place": 5}, [[34.5], "f", 5]),
)
DOMAINS = {
    "words": (WORDS, 3, ANY_VALUES),
    "odd words": (
        "kind = 'categories'\nlabels = ['é', '5', '😀', 9223372036854775809, -3, 'a\\nb', '7.0']",
        7,
        ANY_VALUES,
    ),
    "integers": (INTEGERS, 7, ANY_VALUES),
    "large integers": (FAR, 10, (*ANY_VALUES, "9007199254740984", "9007199254740992.0", "+9007199254740992")),
    "bins": (BINS, 4, ANY_VALUES),
    "grid": (GRID, 12, ANY_VALUES),
    "missing cells": (HOLES, 5, ANY_VALUES),
    "map": (MAP, 20, ANY_VALUES),
    "people": (PEOPLE, 21, PEOPLE_ANY),
}


def value_vectors() -> list[dict[str, Any]]:
    """Return values of every domain with the region of each, or the error that refuses it."""
    found = []
    for name, (domain, size, values) in DOMAINS.items():
        regions = json.dumps([f"value {place}" for place in range(size)])
        study = VectorStudy(domain, mechanism("cloaking", regions=regions), values)
        document = vectors(name, VectorStudy(domain, study.mechanism, values[:1], cases=0))
        with TemporaryDirectory() as folder:
            path = Path(folder, "study.toml")
            path.write_text(study.toml)
            device = Client(path)
            cases = [{"value": value, "bytes": "", **run(device, "privatize", value)} for value in values]
        found.append({**document, "cases": cases})
    return found


ODD_RESPONSES: dict[str, tuple[str, tuple[Any, ...]]] = {  # by the kind: a study, and texts that it did not write
    "bloom-rappor": (
        "words",
        (
            *("", "0", "0:0x0001", "0:0x0001:0x0000", "0:0x0001:0x0007", "9:0x0001:0x0003", "-1:0x0001:0x0003"),
            *("0:0x0001:0x0003:0", "0:0x01:0x0003", "0:0x000001:0x0003", "x:0x0001:0x0003", "0:0xzz01:0x0003"),
            *("0:0x0001:0x0003\n", None, 4711, ["0:0x0001:0x0003"]),
        ),
    ),
    "longitudinal-rappor": (
        "sixteen values",
        ("", "0x", "0xff", "0x0000ff", "zz", "0xzzzz", "-fff", "0X0001", None, 4711, ["0xffff"], "0xFFFF\n"),
    ),
    "longitudinal-unary": ("words", ("", "0xff", "0xf0", "0xzz", None, 224)),
    "longitudinal-response": ("words", ("", "3", "-1", "1.0", " 1", "1\n", "\u0661", "a", None, 1, "9" * 21)),
    "longitudinal-hashing": (
        "two buckets",
        ("", "1:0", "1:2:0", "1:0:2", "18446744073709551616:0:0", "1:0:0:0", "x:0:0", "1::0", "1:0:0\n", None, 7),
    ),
    "d-bit-flip": (
        "some buckets",
        (
            *("", "0xf0008000", "0xf0008000:", "0xf0008000:9", "0xf0008000:-2", "0xf0008000:4", "0xf0008000:0:0"),
            *("0xe0008000:0", "0xf8008000:0", "0xf0000800:0", "0xf0400000:0", "0xf0008001:0", "0x0xf0008000:0"),
            *("0xf000800000:0", "0xf0008000:-1\n", "0xf00080zz:0", None, 4711, ["0xf0008000:0"]),
        ),
    ),
}


def permanent_vectors(kind: str) -> dict[str, Any]:
    """Return responses that are no permanent ones: they are refused."""
    name, odd = ODD_RESPONSES[kind]
    written = vectors("odd responses", STUDIES[kind][name])
    with TemporaryDirectory() as folder:
        path = Path(folder, "study.toml")
        path.write_text(written["toml"])
        device = Client(path)
        refused = [
            {"call": "instantaneous", "value": value, "bytes": "", **run(device, "instantaneous", value)}
            for value in odd
        ]
    return {**written, "cases": refused}


def written(kind: str, studies: list[dict[str, Any]]) -> str:
    """Return the text of a file: one line for each case."""
    parts = []
    for study in studies:
        lines = ",\n".join(f"    {json.dumps(case)}" for case in study["cases"])
        head = ",\n".join(f"   {json.dumps(name)}: {json.dumps(study[name])}" for name in ("name", "toml", "document"))
        parts.append(f'  {{\n{head},\n   "cases": [\n{lines}\n   ]\n  }}')
    return f'{{\n "version": 1,\n "kind": {json.dumps(kind)},\n "studies": [\n' + ",\n".join(parts) + "\n ]\n}\n"


def main() -> None:
    """Write all files, and say how large they are."""
    TARGET.mkdir(parents=True, exist_ok=True)
    files = {kind: [vectors(name, study) for name, study in own.items()] for kind, own in STUDIES.items()}
    for kind in ODD_RESPONSES:
        files[kind].append(permanent_vectors(kind))
    files["values"] = value_vectors()
    for kind, studies in files.items():
        text = written(kind, studies)
        (TARGET / f"{kind}.json").write_text(text)
        print(f"{kind:24} {sum(len(study['cases']) for study in studies):5} cases {len(text):8} bytes")
    print(sum(len(study["cases"]) for studies in files.values() for study in studies), "cases")


if __name__ == "__main__":
    main()
