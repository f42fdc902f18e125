"""The JSON form of a study for clients in other languages."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.cli.app import main
from hubbub.client import exp_minus
from studies import BASES, study_text


def exported(folder: Path, text: str) -> dict[str, Any]:
    study, path = folder / "study.toml", folder / "study.json"
    study.write_text(text)
    path.unlink(missing_ok=True)
    digest = hb.export_client(study, path)
    document: dict[str, Any] = json.loads(path.read_text())
    assert document["digest"] == digest
    return document


def parts(part: Any) -> Iterator[Any]:
    yield part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for each in inner:
        yield from parts(each)


@pytest.mark.parametrize("name", BASES)
def test_every_language_has_the_same_digest(name: str, tmp_path: Path) -> None:
    """Languages spell floats differently, and sort names differently: there are no floats, and names are ASCII."""
    document = exported(tmp_path, study_text(BASES[name][0]))
    assert list(document) == ["version", "study", "fingerprint", "name", "domain", "mechanisms", "digest"]
    for part in parts(document):
        assert part is None or isinstance(part, str | bool | dict | list) or (type(part) is int and abs(part) <= 2**53)
        assert not isinstance(part, dict) or all(key.isascii() for key in part)
    study = tmp_path / "study.toml"
    assert document["fingerprint"] == hb.read_study(study).fingerprint
    assert document["study"] == hashlib.sha256(study.read_bytes()).hexdigest()
    content = {key: part for key, part in document.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert document["digest"] == hashlib.sha256(text.encode()).hexdigest()


def test_the_question_is_part_of_it(tmp_path: Path) -> None:
    question = "[question]\ntext = 'Té?'\nhelp = 'Or none.'\n"
    document = exported(tmp_path, f"{COIN}kind = 'krr'\nepsilon = 1.0\n{question}")
    names = ["version", "study", "fingerprint", "name", "domain", "question", "mechanisms", "digest"]
    assert list(document) == names
    assert document["question"] == {"text": "Té?", "help": "Or none."}
    without = exported(tmp_path, f"{COIN}kind = 'krr'\nepsilon = 1.0\n")
    assert without["fingerprint"] == document["fingerprint"]
    assert without["digest"] != document["digest"]


COIN = "version = 1\n[domain]\nkind = 'categories'\nlabels = ['yes', 'no']\n[mechanisms.m]\n"
LINE = "version = 1\n[domain]\nkind = 'integers'\nlow = 0\nhigh = 9\n[mechanisms.m]\n"


def test_numbers_are_those_of_the_definition(tmp_path: Path) -> None:
    """Against exponentials in exact bounds: what is exported keeps its epsilon, with less than 2^-180 to spare."""
    law = exported(tmp_path, f"{COIN}kind = 'krr'\nepsilon = 1.5\n")["mechanisms"]["m"]
    keep, whole = int(law["keep"], 16), 1 << law["width"]
    ratio = Fraction(whole + keep, whole - keep)  # the truth against the other value, of two
    low, high, steps = exp_minus(Fraction(1.5))
    assert Fraction(1 << (256 + steps), high) * (1 - Fraction(1, 2**180)) < ratio <= Fraction(1 << (256 + steps), low)
    noise = exported(tmp_path, f"{LINE}kind = 'geometric'\nepsilon = 0.5\n")["mechanisms"]["m"]["noise"]
    decay = Fraction(int(noise["ratio"], 16), 1 << noise["width"])
    assert math.isclose(decay, math.exp(-0.5), rel_tol=1e-14)
    assert decay > Fraction(math.exp(-0.5)) * (1 - Fraction(1, 2**50))
    assert math.isclose(int(noise["side"], 16) / (1 << noise["width"]), 1 / (1 + math.exp(0.5)), rel_tol=1e-14)
    assert noise["steps"] == 120


def test_labels_that_are_large_numbers(tmp_path: Path) -> None:
    text = COIN.replace("'yes', 'no'", "9007199254740993, 'x', -5") + "kind = 'krr'\nepsilon = 1\n"
    domain = exported(tmp_path, text)["domain"]
    assert domain == {"kind": "categories", "labels": ["9007199254740993", "x", "-5"], "numbers": [0, 2]}


@pytest.mark.parametrize(
    ("text", "epsilon", "promise"),
    [
        (f"{COIN}kind = 'krr'\nepsilon = 1.0", "1.0", "any two values by at most a factor of about 2.7 (epsilon 1)."),
        (f"{COIN}kind = 'krr'\nepsilon = 30", "30.0", "more than a billion"),
        (f"{LINE}kind = 'geometric'\nepsilon = 3", "3.0", "two values 1 unit apart by at most a factor of about 20"),
        (
            f"{COIN}kind = 'longitudinal-rappor'\nepsilon = 2\nfirst = 1",
            "2.0",
            "about 2.7 (epsilon 1), and all reports about one value together about 7.4 (epsilon 2).",
        ),
        (f"{COIN}kind = 'cloaking'\nregions = ['a', 'b']", None, "no bound"),
        (f"{COIN}kind = 'warner'\np = 0.75", repr(hb.Warner(hb.Categories(["a", "b"]), p=0.75).epsilon), "about 3 "),
    ],
)
def test_what_a_mechanism_promises(text: str, epsilon: str | None, promise: str, tmp_path: Path) -> None:
    law = exported(tmp_path, text + "\n")["mechanisms"]["m"]
    assert law["epsilon"] == epsilon
    assert promise in law["promise"]


def test_nothing_is_overwritten_and_mistakes_are_told(tmp_path: Path) -> None:
    study, path = tmp_path / "study.toml", tmp_path / "study.json"
    study.write_text(f"{COIN}kind = 'krr'\nepsilon = 1.0\n")
    hb.export_client(study, path)
    before = path.read_bytes()
    with pytest.raises(hb.StudyError, match="the study for clients cannot be written"):
        hb.export_client(study, path)
    assert path.read_bytes() == before
    study.write_text(f"{LINE}kind = 'geometric'\nepsilon = 1e-9\n")
    with pytest.raises(hb.MechanismError):  # such noise would take forever to draw
        hb.export_client(study, tmp_path / "other.json")
    study.write_text(f"{COIN}kind = 'krr'\n")
    with pytest.raises(hb.StudyError, match="either epsilon or p"):
        hb.export_client(study, tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()


def test_the_command_prints_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(f"{COIN}kind = 'krr'\nepsilon = 1.0\n")

    def told(*words: str) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["hubbub", "export-client", "study.toml", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *capfd.readouterr()

    code, out, _ = told("-o", "a.json")
    digest = json.loads(Path("a.json").read_text())["digest"]
    assert (code, out) == (0, f"a.json: digest {digest}\n")
    assert json.loads(told("-o", "b.json", "--json")[1]) == {"version": 1, "output": "b.json", "digest": digest}
    code, out, err = told("-o", "study.toml")
    assert (code, out) == (2, "")
    assert "written over" in err
