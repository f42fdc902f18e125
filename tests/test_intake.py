"""Study files and readers."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub.client import SURVEY_DESIGNS, WAYS_TO_REPORT, Client
from hubbub.core.text import kebab
from hubbub.intake.study import parse_study
from hubbub.intake.study_entries import DOMAINS, MECHANISMS
from hubbub.intake.study_files import template
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from strategies import examples

STUDY = """
version = 1
name = "ages"
[domain]
kind = "integers"
low = 0
high = 9
[mechanisms.strong]
kind = "truncated-geometric"
epsilon = 0.5
[mechanisms.bits]
kind = "rappor"
epsilon = 1.0
[mechanisms.hash]
kind = "local-hashing"
epsilon = 1.0
[mechanisms.far]
kind = "geometric"
epsilon = 0.5
"""


@pytest.fixture
def study(tmp_path: Path) -> hb.Study:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return hb.read_study(path)


def same(a: hb.Reports, b: hb.Reports) -> bool:
    """Two sets of reports are the same if they say the same about every distribution."""
    size = len(a.domain)
    points = np.random.default_rng(0).dirichlet(np.ones(size), size=5)
    values = [(hb.log_likelihood(a, p), hb.log_likelihood(b, p)) for p in points]
    return (
        a.users == b.users
        and a.weights.size == b.weights.size
        and all(x == pytest.approx(y, rel=1e-12) for x, y in values)
    )


@pytest.mark.parametrize("kind", sorted(DOMAINS))
def test_every_template_is_a_valid_study(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(template(kind))
    study = hb.read_study(path)
    assert kebab(type(study.domain).__name__) == kind
    # What is commented out must be right too: uncomment the tables at the end.
    lines = template(kind).splitlines()
    entries = ("# [", "# kind", "# epsilon", "# text", '# mechanism = "', "# access", "# time")
    opened = [line[2:] if line.startswith(entries) else line for line in lines]
    path.write_text("\n".join(opened))
    complete = hb.read_study(path)
    assert len(complete.mechanisms) >= len(study.mechanisms)
    assert complete.question
    assert complete.collector is not None
    assert (complete.collector["access"], complete.collector["time"]) == ("open", "day")


def test_every_mechanism_can_stand_in_a_study() -> None:
    grid = {"kind": "grid", "columns": 3, "rows": 2}
    line = {"kind": "integers", "low": 1, "high": 3}
    answers = {"kind": "categories", "labels": ["yes", "no"]}
    extra: dict[str, dict[str, Any]] = {
        "bloom-rappor": {"cohorts": 4, "bits": 8, "hashes": 2, "epsilon": 1.0},
        "longitudinal-hashing": {"epsilon": 1.0, "first": 0.5},
        "longitudinal-rappor": {"epsilon": 1.0, "first": 0.5},
        "longitudinal-response": {"epsilon": 1.0, "first": 0.5},
        "longitudinal-unary": {"epsilon": 1.0, "first": 0.5, "instantaneous_bits": "oue"},
        "cloaking": {"regions": ["a", "a", "b"]},
        "crosswise-model": {"p": 0.25},
        "forced-response": {"p_yes": 0.2, "p_no": 0.1},
        "unrelated-question": {"p": 0.5, "prevalence": 0.2},
        "unary": {"p": 0.7, "q": "1/6"},
        "warner": {"p": 0.7},
        "matrix": {"outputs": ["u", "v"], "probabilities": [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]},
    }
    for kind, mechanism in MECHANISMS.items():
        fields = extra.get(kind, {"epsilon": 1.0})
        domain: dict[str, Any] = grid if kind.startswith("planar") else line
        if kind == "bloom-rappor" or kind in SURVEY_DESIGNS:
            domain = answers
        if kind in WAYS_TO_REPORT:
            domain = {"kind": "product", "attributes": {"age": line, "answer": answers}}
            fields = {"parts": {name: {"kind": "randomized-response", "epsilon": 1.0} for name in ("age", "answer")}}
        built = parse_study({"version": 1, "domain": domain, "mechanisms": {"m": {"kind": kind, **fields}}}, "study")
        assert type(built.mechanisms["m"]) is mechanism
        again = parse_study({"version": 1, "domain": domain, "mechanisms": {"m": {"kind": kind, **fields}}}, "study")
        assert built.fingerprint == again.fingerprint
        assert built.mechanisms["m"] == again.mechanisms["m"]


SPELLINGS: dict[tuple[str, ...], dict[str, Any]] = {
    ("krr", "k-RR", "grr", "GRR", "rr"): {"kind": "randomized-response"},
    ("sue", "SUE"): {"kind": "rappor"},
    ("oue",): {"kind": "optimized-unary"},
    ("olh", "OLH"): {"kind": "local-hashing"},
    ("blh",): {"kind": "local-hashing", "buckets": 2},
}


@pytest.mark.parametrize("names", SPELLINGS, ids=lambda names: names[0])
def test_short_names_of_mechanisms_are_the_same_study(names: tuple[str, ...], tmp_path: Path) -> None:
    domain = {"kind": "categories", "labels": ["a", "b", "c"]}

    def study(fields: dict[str, Any]) -> hb.Study:
        mechanisms = {"m": {**fields, "epsilon": 1.5}}
        return parse_study({"version": 1, "domain": domain, "mechanisms": mechanisms}, "study")

    full = study(SPELLINGS[names])
    for name in names:
        short = study({"kind": name})
        assert short.fingerprint == full.fingerprint
        assert short.mechanisms["m"] == full.mechanisms["m"]
        path = tmp_path / "study.toml"
        path.write_text(
            f'version = 1\n[domain]\nkind = "categories"\nlabels = ["a", "b", "c"]\n'
            f'[mechanisms.m]\nkind = "{name}"\nepsilon = 1.5\n'
        )
        space = hb.read_study(path).mechanisms["m"].output_space
        space.encode([space.parse(Client(path).privatize("b"))])  # the device sends what the collector reads


def test_short_names_have_the_laws_of_the_literature() -> None:
    """Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation" (2017)."""
    three, e = hb.Categories(["a", "b", "c"]), math.exp(1.5)
    root = math.sqrt(e)
    laws = {"krr": (e / (e + 2), 1 / (e + 2)), "sue": (root / (root + 1), 1 / (root + 1)), "oue": (1 / 2, 1 / (e + 1))}
    buckets = {"olh": math.floor(e + 1 + 0.5), "blh": 2}
    laws |= {name: (e / (e + g - 1), 1 / g) for name, g in buckets.items()}
    for name, (own, other) in laws.items():
        fields = {"version": 1, "domain": three.fields() | {"kind": "categories"}}
        built = parse_study({**fields, "mechanisms": {"m": {"kind": name, "epsilon": 1.5}}}, "study").mechanisms["m"]
        assert isinstance(built, FrequencyOracle)
        assert built.support == pytest.approx((own, other), rel=1e-12), name


def test_short_names_in_python_are_explained() -> None:
    with pytest.raises(AttributeError, match="'KRR'; KRR is called RandomizedResponse here"):
        hb.KRR  # noqa: B018  # type: ignore[attr-defined]


def test_a_limit_in_whole_numbers_is_the_same_study() -> None:
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    whole, spelt = (hb.Study(coin.domain, {"coin": coin}, max_epsilon_per_user=limit) for limit in (2, 2.0))
    assert whole.fingerprint == spelt.fingerprint


def test_fingerprint_is_of_the_content_not_of_the_spelling(tmp_path: Path) -> None:
    def of(text: str) -> str:
        path = tmp_path / "s.toml"
        path.write_text(text)
        return hb.read_study(path).fingerprint

    base = of(STUDY)
    assert of("# a comment\n" + STUDY.replace("low = 0\nhigh = 9", "high = 9\nlow = 0")) == base
    assert of(STUDY.replace('"ages"', '"other name"')) == base
    assert of(STUDY.replace("epsilon = 1.0", "epsilon = 1")) == base
    assert of(STUDY.replace("epsilon = 0.5", "epsilon = 0.6", 1)) != base
    assert of(STUDY.replace("high = 9", "high = 10")) != base
    assert of(STUDY.replace("mechanisms.bits", "mechanisms.bites")) != base
    assert len(base) == 64


def test_csv_and_parquet_give_what_python_gives(study: hb.Study, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 10, 200)
    rows: list[tuple[str, str]] = []
    parts = []
    for name, mechanism in study.mechanisms.items():
        outputs = mechanism.privatize(values, rng=rng)
        rows += [(name, mechanism.output_space.write(output)) for output in outputs]
        parts.append(hb.Reports.from_outputs(mechanism, outputs))
    expected = parts[0] + parts[1] + parts[2] + parts[3]
    names, texts = zip(*rows, strict=True)
    (tmp_path / "r.csv").write_text("mechanism,output\n" + "".join(f"{n},{t}\n" for n, t in rows))
    pq.write_table(pa.table({"output": list(texts), "mechanism": list(names)}), tmp_path / "r.parquet")
    assert same(hb.read_reports(tmp_path / "r.csv", study), expected)
    assert same(hb.read_reports(tmp_path / "r.parquet", study), expected)
    assert same(hb.read_reports([tmp_path / "r.csv", str(tmp_path / "r.parquet")], study), expected + expected)


def test_parquet_with_typed_columns(tmp_path: Path) -> None:
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 9), 0.5)
    one = hb.Study(mechanism.domain, {"only": mechanism})
    pq.write_table(pa.table({"output": pa.array([1, 2, 2, 9], pa.int32())}), tmp_path / "r.parquet")
    assert same(hb.read_reports(tmp_path / "r.parquet", one), hb.Reports.from_outputs(mechanism, [1, 2, 2, 9]))
    bits = hb.Rappor(mechanism.domain, 1.0)
    packed = bits.privatize([1, 2, 3], rng=1)
    pq.write_table(pa.table({"output": [row.tobytes() for row in packed]}), tmp_path / "b.parquet")
    two = hb.Study(bits.domain, {"only": bits})
    assert same(hb.read_reports(tmp_path / "b.parquet", two), hb.Reports.from_outputs(bits, packed))


@examples(30)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(["strong", "far"]), st.integers(0, 9)), min_size=1, max_size=40
    )
)
def test_a_users_rows_are_one_report_wherever_they_stand(rows: list[tuple[int, str, int]]) -> None:
    import tempfile

    study = parse_study(
        {
            "version": 1,
            "domain": {"kind": "integers", "low": 0, "high": 9},
            "mechanisms": {
                "strong": {"kind": "truncated-geometric", "epsilon": 0.5},
                "far": {"kind": "geometric", "epsilon": 0.5},
            },
        },
        "study",
    )
    users: dict[int, list[tuple[hb.Mechanism, object]]] = {}
    for user, name, output in rows:
        users.setdefault(user, []).append((study.mechanisms[name], output))
    expected = hb.Reports.from_users(users.values())
    with tempfile.TemporaryDirectory() as folder:
        cut = len(rows) // 2
        files = []
        for number, part in enumerate((rows[:cut], rows[cut:])):
            if part:
                path = Path(folder) / f"{number}.csv"
                path.write_text("user,mechanism,output\n" + "".join(f"u{u},{n},{o}\n" for u, n, o in part))
                files.append(path)
        assert same(hb.read_reports(files, study), expected)


def test_texts_are_not_numbers(tmp_path: Path) -> None:
    """Labels that look like numbers, dates or nothing stay what they are."""
    labels = ["007", "1e3", "NA", "null", "true", "2020-01-01"]
    mechanism = hb.RandomizedResponse(hb.Categories(labels), 1.0)
    path = tmp_path / "r.csv"
    path.write_text("output\n" + "\n".join(labels) + "\n")
    reports = hb.read_reports(path, hb.Study(mechanism.domain, {"m": mechanism}))
    assert same(reports, hb.Reports.from_outputs(mechanism, labels))


@pytest.mark.parametrize("name", ["User", " user", "user_id", "UserID", "Mechanism", "outputs"])
def test_a_column_that_is_nearly_ours_is_refused(tmp_path: Path, name: str) -> None:
    """Ignored, a column `User` would make every row a user of its own."""
    mechanism = hb.RandomizedResponse(hb.Categories(["red", "blue"]), 1.0)
    path = tmp_path / "r.csv"
    path.write_text(f"{name},output\nx,red\nx,blue\n" if name != "outputs" else "outputs\nred\n")
    with pytest.raises(hb.IntakeError, match="nearly"):
        hb.read_reports(path, hb.Study(mechanism.domain, {"only": mechanism}, max_reports_per_user=1))


def test_users_are_the_same_people_in_files_of_different_kinds(tmp_path: Path) -> None:
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 9), 0.5)
    study = hb.Study(mechanism.domain, {"only": mechanism})
    (tmp_path / "a.csv").write_text("user,output\n1,3\n2,4\n")
    pq.write_table(pa.table({"user": [1.0, 2.0], "output": [5, 6]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"user": [1, 2], "output": [7, 8]}), tmp_path / "c.parquet")
    reports = hb.read_reports([tmp_path / name for name in ("a.csv", "b.parquet", "c.parquet")], study)
    expected = hb.Reports.from_users([[(mechanism, o) for o in outputs] for outputs in ([3, 5, 7], [4, 6, 8])])
    assert reports == expected


@pytest.mark.parametrize(
    "users",
    [
        pa.array(["u", ""]).dictionary_encode(),
        pa.array(["u", None]).dictionary_encode(),
        pa.array([1.0, float("nan")]),
        pa.array(["u", ""], pa.string_view()),
        pa.array(["u", ""], pa.large_string()),
    ],
    ids=["dictionary", "null in dictionary", "nan", "view", "large"],
)
def test_a_row_without_a_user_is_refused_in_every_type(tmp_path: Path, users: pa.Array) -> None:
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 9), 0.5)
    try:
        pq.write_table(pa.table({"user": users, "output": [1, 2]}), tmp_path / "r.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow cannot write that type")
    with pytest.raises(hb.IntakeError, match="the row has no user"):
        hb.read_reports(tmp_path / "r.parquet", hb.Study(mechanism.domain, {"only": mechanism}))


def test_numbers_are_not_rows_of_bits(tmp_path: Path) -> None:
    """A reader that took 00000011 for a number would have written 11."""
    mechanism = hb.Rappor(hb.Integers(0, 7), 1.0)
    pq.write_table(pa.table({"output": [11, 0]}), tmp_path / "r.parquet")
    with pytest.raises(hb.IntakeError, match="a number instead of a text or bytes"):
        hb.read_reports(tmp_path / "r.parquet", hb.Study(mechanism.domain, {"only": mechanism}))


def test_hexadecimal_rows(tmp_path: Path) -> None:
    mechanism = hb.Rappor(hb.Integers(0, 9), 1.0)
    (tmp_path / "r.csv").write_text("output\n8040\n0x8040\n1000000001\n")
    reports = hb.read_reports(tmp_path / "r.csv", hb.Study(mechanism.domain, {"only": mechanism}))
    assert reports == hb.Reports.from_outputs(mechanism, np.packbits([[1] + [0] * 8 + [1]] * 3, axis=1))


def test_a_file_is_the_same_by_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 9), 0.5)
    Path("r.csv").write_text("output\n1\n")
    Path("link.csv").symlink_to("r.csv")
    for twin in (tmp_path / "r.csv", Path("link.csv")):
        with pytest.raises(hb.IntakeError, match="named several times"):
            hb.read_reports(["r.csv", twin], hb.Study(mechanism.domain, {"only": mechanism}))


def test_line_breaks_in_other_columns_do_not_matter(tmp_path: Path) -> None:
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 9), 0.5)
    rows = 200_000
    (tmp_path / "r.csv").write_text("output,comment\n" + '3,"two\nlines"\n' * rows)
    with pytest.warns(hb.HubbubWarning, match="column comment is not used"):
        reports = hb.read_reports(tmp_path / "r.csv", hb.Study(mechanism.domain, {"only": mechanism}))
    assert reports.users == rows


@pytest.mark.parametrize("as_path", [False, True])
def test_study_and_source_are_taken_in_either_order_and_the_wrong_one_is_named(
    as_path: bool, study: hb.Study, tmp_path: Path
) -> None:
    source, target = tmp_path / "r.csv", tmp_path / "t.tally.parquet"
    source.write_text("mechanism,output\nstrong,3\nstrong,4\n")
    named = str(tmp_path / "study.toml") if as_path else study
    expected = hb.read_reports(source, named)
    assert hb.collect(named, source, target).reports == expected
    swapped: Any = hb  # arguments that no type checker lets pass
    with pytest.warns(hb.HubbubWarning, match=r"wrong order.*read_reports\(source, study\)") as told:
        assert swapped.read_reports(named, source) == expected
    assert told[0].filename == __file__
    target.unlink()
    with pytest.warns(hb.HubbubWarning, match=r"wrong order.*collect\(study, source, path\)"):
        assert swapped.collect(source, named, target).reports == expected


def test_two_studies_or_none_are_not_put_in_order(study: hb.Study, tmp_path: Path) -> None:
    with pytest.raises(hb.IntakeError, match="not a source"):
        hb.read_reports(study, study)
    with pytest.raises(hb.IntakeError, match="not a study"):
        hb.read_reports("r.csv", "s.csv")
