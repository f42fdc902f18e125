"""Damaged study files and tables, read under a limit of memory and of time: python tests/fuzzing.py EXAMPLES TARGET...

A target is one of the functions in `TARGETS`. Whatever is not a HubbubError of the library, or a ClientError of the
device's client, ends the process with a traceback; so does an example that takes more than a gigabyte, or a minute of
computing. What came of the examples of each target is counted, and printed as JSON.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import hubbub as hb
from device_tables import STUDIES as TABLED_STUDIES
from device_tables import Exported, exported, mutated_tables, sealed
from hubbub.client import Client, ClientError
from studies import BASES, REFUSED, TAKEN, mutated, study_text

MEMORY = 1 << 30  # bytes beyond what the libraries take
SECONDS = 60  # of computing, for one example
FEW = 500  # values with which the library draws: laws of many take long

seen: Counter[str] = Counter()

# -- damage to bytes -----------------------------------------------------------------------------------------------

PUNCTUATION = [
    b"", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xd9\xa5", b"\r", b"\n", b" ", b"\t",
    b'"', b"'", b'"""', b"#", b"=", b".", b",", b"\\", b"\\u0000", b"\\ud800", b"[", b"]", b"[[", b"{", b"}",
    b"{a=", b'{"a":', b"a.", b'"a b".',
]  # fmt: skip
WORDS = [
    b"9", b"0x", b"f", b"-", b"_", b"e", b"1e999", b"1e-320", b"inf", b"nan", b"NaN", b"true", b"null", b"1979-05-27",
    b"07:32:00", b"99999999999", b"100000000", b"kind", b"version = 1\n", b"[domain]\n", b"[mechanisms.m]\n",
]  # fmt: skip
TOKENS = st.sampled_from(PUNCTUATION + WORDS)
VALUE = re.compile(rb"[0-9][0-9.]*|\"[^\"\n]*\"")  # a number or text of a file
ODD_NUMBERS = st.sampled_from(
    [b"99999999999", b"99999999", b"100000000", b"1e400", b"5e-324", b"9" * 5000, b"9" * 640, b"0x" + b"f" * 5000]
)
CHANGES = ["number", "number", "nest", "insert", "overwrite", "drop", "repeat", "cut", "flip", "join"]
REPEATS = st.sampled_from([1, 1, 1, 2, 7, 30, 1000, 20_000])


@st.composite
def damaged_bytes(draw: st.DrawFn, contents: st.SearchStrategy[bytes], most: int = 4) -> bytes:
    """Draw a file in which pieces are dropped, inserted, overwritten, repeated or moved."""
    content = draw(contents)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, most]))):
        size = len(content)
        start, length = draw(st.integers(0, size)), draw(st.integers(0, min(size, 40)))
        before, piece, after = content[:start], content[start : start + length], content[start + length :]
        change = draw(st.sampled_from(CHANGES))
        values = list(VALUE.finditer(content)) if change in ("number", "nest") else []
        if values:
            value = draw(st.sampled_from(values))
            depth = draw(st.sampled_from([1, 50, 400, 20_000])) if change == "nest" else 0
            inner = value[0] if depth else draw(ODD_NUMBERS)
            content = content[: value.start()] + b"[" * depth + inner + b"]" * depth + content[value.end() :]
        elif change == "insert":
            content = before + draw(TOKENS) * draw(REPEATS) + piece + after
        elif change == "overwrite":
            content = before + draw(TOKENS) * draw(REPEATS) + after
        elif change == "drop":
            content = before + after
        elif change == "repeat":
            content = before + piece * draw(REPEATS) + after
        elif change == "cut":
            content = before
        elif change == "flip":
            flipped = draw(st.integers(0, 255))
            content = before + bytes(byte ^ flipped for byte in piece[:1]) + piece[1:] + after
        else:
            content = before + draw(contents)
    return content


# -- what is read --------------------------------------------------------------------------------------------------


def read_study(content: bytes, value: Any, folder: Path) -> None:
    """Read a study file with the library and with the client, and draw where both are quick."""
    path = folder / f"{sum(seen.values())}.toml"
    path.write_bytes(content)
    try:
        study = hb.read_study(path)
        seen["library takes"] += 1
        for mechanism in study.mechanisms.values():
            if len(study.domain) <= (20 if isinstance(mechanism, hb.PlanarLaplace) else FEW):
                draw(mechanism)
    except hb.HubbubError as error:
        seen["library refuses"] += 1
        check_parts(error)
    try:
        client = Client(path)
        seen["client takes"] += 1
        for name in client._mechanisms:
            if len(client._values.labels) <= 100_000:
                client.privatize(value, name)
    except ClientError as error:
        seen["client refuses"] += 1
        check_parts(error)
    path.unlink()


def draw(mechanism: hb.Mechanism) -> None:
    try:
        mechanism.privatize(mechanism.domain.labels[:1])
        seen["library draws"] += 1
    except hb.HubbubError:
        seen["library draws not"] += 1


def check_parts(error: hb.HubbubError | ClientError) -> None:
    """Make sure that a message says everything, and is one that can be read."""
    parts = (error.what, error.where, error.got, error.expected, error.remedy)
    assert all(isinstance(part, str) and part for part in parts), parts
    assert len(str(error)) < 3000, str(error)[:3000]


def read_tables(whole: Exported, content: bytes, folder: Path) -> None:
    """Load a file of tables, and draw."""
    study, path = (folder / f"{sum(seen.values())}.{ending}" for ending in ("toml", "json"))
    study.write_bytes(whole.study)
    path.write_bytes(content)
    try:
        Client(study, path).privatize(whole.value)
        seen["client takes"] += 1
    except ClientError as error:
        seen["client refuses"] += 1
        check_parts(error)
    study.unlink()
    path.unlink()


# -- runs ----------------------------------------------------------------------------------------------------------

Example = Callable[[st.DataObject, Path], None]


def study_bytes(data: st.DataObject, folder: Path) -> None:
    bases = [study_text(study).encode() for study, _ in BASES.values()]
    listed = [case.content for case in (*TAKEN, *REFUSED) if len(case.content) < 20_000]
    content = data.draw(damaged_bytes(st.sampled_from(bases) | st.sampled_from(listed)))
    read_study(content, data.draw(st.sampled_from([5, "a", "5", 0.5, (37.71, -122.42)])), folder)


def study_entries(data: st.DataObject, folder: Path) -> None:
    case = data.draw(mutated(most=5))
    read_study(case.content, case.value, folder)


def table_bytes(data: st.DataObject, folder: Path) -> None:
    whole = exported(data.draw(st.sampled_from(sorted(TABLED_STUDIES))))
    content = data.draw(damaged_bytes(st.just(json.dumps(whole.tables).encode())))
    try:  # what can still be read gets the digest that it should have
        content = json.dumps(sealed(json.loads(content))).encode()
    except (ValueError, RecursionError):
        seen["no JSON"] += 1
    read_tables(whole, content, folder)


def table_entries(data: st.DataObject, folder: Path) -> None:
    whole, tables = data.draw(mutated_tables(most=5))
    read_tables(whole, json.dumps(tables).encode(), folder)


TARGETS: dict[str, Example] = {each.__name__: each for each in (study_bytes, study_entries, table_bytes, table_entries)}


def stop(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS} s of computing for one example")


@contextmanager
def bounded() -> Iterator[None]:
    """Bound the computing of one example: not its time, which is another one on a machine with other work to do."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def main(count: int, targets: list[str]) -> None:
    import resource  # which Windows lacks; this file is also looked through for examples there

    for name in TABLED_STUDIES:
        exported(name)
    for study, value in list(BASES.values()):  # compiles whatever is compiled, before memory is counted
        with TemporaryDirectory() as folder:
            read_study(study_text(study).encode(), value, Path(folder))
    seen.clear()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGVTALRM, stop)
    found = {}
    for target in targets:
        with TemporaryDirectory() as folder:
            damage(TARGETS[target], count, Path(folder))
        found[target] = dict(seen)
        seen.clear()
    sys.stdout.write(json.dumps(found) + "\n")


def damage(target: Example, count: int, folder: Path) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # a failing example is reported as it is: shrinking takes longer than a look at it
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        with bounded():
            target(data, folder)

    run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
