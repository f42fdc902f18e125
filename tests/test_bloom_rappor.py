"""RAPPOR with Bloom filters: hash, law, privacy and joint likelihood by definition; devices; what is decoded."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.channels import structured_only
from hubbub.client import Client, ClientError, bloom_bits
from hubbub.mechanisms.mapped_rappor import MappedRappor
from hubbub.mechanisms.text_filters import any_differences, differences
from hubbub.text_decoding.lasso import lasso

TEXTS = hb.Categories(["red", "green", "blue", "white"])
MD5_OF_ABC = "73cc56a47878a94768ff994830c83313"  # printf '\0\0\0\1abc' | md5sum
DEMO: dict[str, Any] = {"f": "1/2", "p": "1/2", "q": "3/4"}


def filter_of(text: str, cohort: int, bits: int, hashes: int) -> set[int]:
    """Return the bits of a filter, by definition."""
    digest = hashlib.md5(bytes([0, 0, cohort // 256, cohort % 256]) + text.encode()).digest()  # noqa: S324
    return {digest[hash_] % bits for hash_ in range(hashes)}


def chance(held: set[int], row: tuple[int, ...], zero: Fraction, one: Fraction) -> Fraction:
    return math.prod(
        (
            own if sent else 1 - own
            for sent, own in zip(row, (one if bit in held else zero for bit in range(len(row))), strict=True)
        ),
        start=Fraction(1),
    )


def rows_of_bits(mechanism: hb.BloomRappor) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the place of each listed output, its cohort and its bits."""
    outputs = mechanism.outputs
    assert outputs is not None
    for place, (cohort, packed) in enumerate(outputs):
        yield place, int(cohort), tuple(np.unpackbits(packed, count=mechanism.bits).tolist())


def test_the_hash_is_the_md5_of_the_cohort_and_the_text() -> None:
    for text, cohort in product(["", "red", "é€😀", "x" * 200], [0, 1, 255, 256, 65_535]):
        assert set(bloom_bits(text, cohort, 16, 2)) == filter_of(text, cohort, 16, 2)
    assert bytes(bloom_bits("abc", 1, 256, 16)).hex() == MD5_OF_ABC


@pytest.mark.parametrize("rest", [None, "blue"])
def test_the_matrix_is_the_definition(rest: str | None) -> None:
    """Over all permanent rows, and for the rest over all positions of hashes."""
    mechanism = hb.BloomRappor(TEXTS, 2, 5, 2, f="1/3", p="1/5", q="7/8", rest=rest)
    f, p, q = Fraction(1, 3), Fraction(1, 5), Fraction(7, 8)
    one = (1 - f / 2) * q + f / 2 * p
    zero = (1 - f / 2) * p + f / 2 * q
    matrix = mechanism.matrix()
    for place, cohort, row in rows_of_bits(mechanism):
        for value, text in enumerate(TEXTS.labels.tolist()):
            sets = [filter_of(text, cohort, 5, 2)]
            if text == rest:
                sets = [set(drawn) for drawn in product(range(5), repeat=2)]
            exact = sum((chance(held, row, zero, one) for held in sets), Fraction(0)) / len(sets) / 2
            assert matrix[value, place] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("rest", [None, "blue"])
def test_several_reports_by_hand(rest: str | None) -> None:
    """Reports of a user from one cohort share permanent bits; those of another cohort have their own."""
    mechanism = hb.BloomRappor(TEXTS, 2, 4, 2, f="1/3", p="1/5", q="7/8", rest=rest)
    f, p, q = mechanism.probabilities
    sent = [(0, (1, 0, 0, 1)), (0, (1, 1, 0, 1)), (1, (0, 0, 1, 1)), (0, (1, 0, 0, 1))]
    outputs = [(cohort, np.packbits(row)) for cohort, row in sent]
    reports = hb.Reports.from_users([[(mechanism, output) for output in outputs]])
    (block,) = reports.blocks
    logs = block.channel(None).log_dense()[:, 0]
    for value, text in enumerate(TEXTS.labels.tolist()):
        total = Fraction(1, 4)
        for cohort in (0, 1):
            own = [row for home, row in sent if home == cohort]
            sets = [filter_of(text, cohort, 4, 2)]
            if text == rest:
                sets = [set(drawn) for drawn in product(range(4), repeat=2)]
            total *= sum(
                (
                    chance(held, kept, f / 2, 1 - f / 2)
                    * math.prod(chance({bit for bit, one in enumerate(kept) if one}, row, p, q) for row in own)
                    for held in sets
                    for kept in product((0, 1), repeat=4)
                ),
                Fraction(0),
            ) / len(sets)
        assert logs[value] == pytest.approx(math.log(total), rel=1e-12)


def test_reports_that_repeat_the_permanent_response_cannot_differ() -> None:
    mechanism = hb.BloomRappor(TEXTS, 1, 8, 2, epsilon=2.0)
    with pytest.raises(hb.ImpossibleReportError):
        hb.Reports.from_users([[(mechanism, "0:0x01"), (mechanism, "0:0x03")]])
    twice = hb.Reports.from_users([[(mechanism, "0:0x01"), (mechanism, "0:0x01")]])
    once = hb.Reports.from_outputs(mechanism, ["0:0x01"])
    first, second = (reports.blocks[0].channel(None).log_dense() for reports in (twice, once))
    np.testing.assert_allclose(first, second, rtol=1e-12)


def drawn(seed: int) -> hb.BloomRappor:
    """Return any small mechanism."""
    rng = np.random.default_rng([seed, 7])
    texts = hb.Categories([f"{seed} {place}" for place in range(int(rng.integers(2, 6)))])
    p = Fraction(int(rng.integers(1, 50)), 100)
    q = p + Fraction(int(rng.integers(1, 50)), 100)
    f, rest = Fraction(int(rng.integers(1, 90)), 97), [None, f"{seed} 0"][int(rng.integers(2))]
    sizes = int(rng.integers(1, 4)), int(rng.integers(6, 20)), int(rng.integers(1, 4))
    return hb.BloomRappor(texts, *sizes, f=f, p=p, q=q, rest=rest)


def test_what_reports_spend_is_the_largest_ratio_and_at_most_m_times_first() -> None:
    for seed in range(200):
        mechanism = drawn(seed)
        f, p, q = mechanism.probabilities
        pairs = {
            (len(one - other), len(other - one))
            for cohort in range(mechanism.cohorts)
            for one, other in product(
                [filter_of(text, cohort, mechanism.bits, mechanism.hashes) for text in mechanism.domain.labels],
                repeat=2,
            )
        }
        if mechanism.rest is not None:  # any two texts
            counts = range(1, mechanism.hashes + 1)
            pairs = {(one, other) for one, other in product(counts, counts) if one + other <= mechanism.bits}
        for reports in (1, 2, 3, 10, 1000):
            ratios = []
            for own, other in ((q, p), (1 - p, 1 - q)):  # all ones, all zeros
                right, wrong = own**reports, other**reports
                ratios.append(((1 - f / 2) * right + f / 2 * wrong) / (f / 2 * right + (1 - f / 2) * wrong))
            largest = max(one * math.log(ratios[0]) + other * math.log(ratios[1]) for one, other in pairs)
            assert mechanism.spent(reports) == pytest.approx(largest, rel=1e-9)
            assert mechanism.spent(reports) >= largest * (1 - 1e-12)
            assert mechanism.spent(reports) <= reports * mechanism.first * (1 + 1e-12)
        assert mechanism.epsilon <= 2 * mechanism.hashes * math.log((1 - f / 2) / (f / 2)) * (1 + 1e-12)


def test_an_audit_compares_texts_that_nobody_listed() -> None:
    """The rest stands for many texts: two of them differ as much as any two, whichever are on the list."""
    sizes: dict[str, Any] = {"cohorts": 3, "bits": 5, "hashes": 2, **DEMO}
    rest = hb.audit(hb.BloomRappor(hb.Categories(["a", "b", "cc", "d"]), rest="cc", **sizes), draws=100)
    many = hb.audit(hb.BloomRappor(hb.Categories([f"page{place}" for place in range(60)]), **sizes), draws=100)
    assert rest.exact is not None
    assert many.exact is not None
    assert rest.exact.high == many.exact.high
    assert rest.one_report is not None
    assert many.one_report is not None
    assert rest.one_report.high == many.one_report.high
    assert "two texts that 'cc' stands for" in str(rest)
    assert "Loose" not in str(rest)


@pytest.mark.parametrize("hashes", [1, 2])
@pytest.mark.parametrize("spends", [{"epsilon": 80}, {"epsilon": 80, "first": 76}, {"epsilon": 300, "first": 150}])
def test_almost_no_noise_leaves_finite_likelihoods(hashes: int, spends: dict[str, float]) -> None:
    mechanism = hb.BloomRappor(TEXTS, 4, 8, hashes, **spends)  # type: ignore[arg-type]
    values = np.repeat(TEXTS.labels, 50)
    kept = mechanism.permanent(values, rng=1)
    once, again = (mechanism.instantaneous(kept, rng=seed) for seed in (2, 3))
    single = hb.Reports.from_outputs(mechanism, once)
    twice = hb.Reports.from_users(
        [[(mechanism, one), (mechanism, other)] for one, other in zip(once, again, strict=True)]
    )
    for reports in (single, twice):
        estimate = hb.estimate(reports, "mle")
        np.testing.assert_allclose(estimate.probabilities, 0.25, atol=0.05)  # some texts share filters in a cohort
        assert estimate.converged
        assert hb.identify(reports).unique


def test_audits_prove_both_epsilons() -> None:
    for seed in range(8):
        mechanism = drawn(seed)
        audit = hb.audit(mechanism, draws=100)
        assert audit.exact is not None
        assert audit.holds, mechanism
        if mechanism.rest is None:  # otherwise the claim is about texts that are not in the domain
            assert float(audit.exact.high) == pytest.approx(mechanism.epsilon, rel=1e-12)


def test_given_epsilons_are_those_of_the_worst_texts() -> None:
    mechanism = hb.BloomRappor(TEXTS, 4, 16, 2, epsilon=4.0, first=1.0, rest="white")
    assert mechanism.spent(1) == 1.0
    assert mechanism._told(1) == pytest.approx(1.0, rel=1e-12)
    assert mechanism._told(10**7) == pytest.approx(4.0, rel=1e-12)
    f, p, q = mechanism.probabilities
    assert p + q == 1
    assert 4 * math.log((2 - f) / f) == pytest.approx(4.0)
    once = hb.BloomRappor(TEXTS, 4, 16, 2, epsilon=4.0)
    assert [once.probabilities[1], once.probabilities[2]] == [0, 1]


def test_the_difference_of_filters_is_found_among_many() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        rows = rng.random((2, 30, 9)) < 0.2
        packed = np.packbits(rows, axis=-1)
        pairs = {(int((a & ~b).sum()), int((b & ~a).sum())) for group in rows for a in group for b in group}
        found = differences(packed, 9, 9)
        assert found <= pairs | {(b, a) for a, b in pairs}
        assert all(any(c >= a and d >= b for c, d in found) for a, b in pairs)
    assert any_differences(3, 2) == {(1, 2), (2, 1)}
    assert any_differences(16, 2) == {(2, 2)}


def test_the_channel_of_many_reports_counts_bits() -> None:
    texts = hb.Categories([f"w{place}" for place in range(70)])
    mechanism = hb.BloomRappor(texts, 5, 70, 3, **DEMO, rest="w9")
    codes = mechanism.output_space.encode(mechanism.privatize(texts.labels, rng=1))
    with structured_only():
        channel = mechanism.encoded_channel(codes)
    np.testing.assert_allclose(channel.log_dense(), mechanism.log_columns(codes), rtol=1e-12, atol=1e-12)


# -- devices ----------------------------------------------------------------------------------------------

STUDY = """version = 1
[domain]
kind = 'categories'
labels = ['red', 'green', 'blue', 'white']
[mechanisms.m]
kind = 'bloom-rappor'
cohorts = 3
bits = 11
hashes = 2
"""


def device(tmp_path: Path, more: str) -> tuple[Client, hb.BloomRappor]:
    path = tmp_path / "study.toml"
    path.write_text(STUDY + more)
    mechanism = hb.read_study(path).mechanisms["m"]
    assert isinstance(mechanism, hb.BloomRappor)
    return Client(path), mechanism


@pytest.mark.parametrize(
    "more", ["f = '1/2'\np = 0.25\nq = 0.75", "epsilon = 4.0\nfirst = 2.0", "f = 0\np = 0.25\nq = 0.75"]
)
def test_devices_draw_what_the_library_does(tmp_path: Path, more: str) -> None:
    client, mechanism = device(tmp_path, more)
    values = np.tile(mechanism.domain.labels, 250)
    texts = [client.instantaneous(client.permanent(value)) for value in values]
    assert hb.audit_samples(mechanism, values, texts).verdict == "no fault found"
    faulty = hb.BloomRappor(TEXTS, 3, 11, 2, f=0.1, p=0.1, q=0.9)
    assert hb.audit_samples(faulty, values, texts).verdict != "no fault found"


def test_devices_send_any_text_where_the_study_says_so(tmp_path: Path) -> None:
    client, mechanism = device(tmp_path, "f = 0.01\np = 0\nq = 1\nrest = 'white'")
    sent = mechanism.output_space.encode([client.privatize("another text") for _ in range(300)])
    cohorts, rows = mechanism.bits_of(sent)
    for cohort in range(3):
        own = [bit in filter_of("another text", cohort, 11, 2) for bit in range(11)]
        assert (rows[cohorts == cohort] == own).mean() > 0.97
    strict, _ = device(tmp_path, "f = 0.01\np = 0\nq = 1")
    with pytest.raises(ClientError, match="not in the study's domain"):
        strict.privatize("another text")


def test_the_cohort_stays_and_filters_that_are_alike_share_a_response(tmp_path: Path) -> None:
    client, mechanism = device(tmp_path, "f = 0.5\np = 0.25\nq = 0.75\nrest = 'white'")
    kept: list[str] = []
    for text in ["red", "green", "blue", "red", "new", "new"]:
        kept.append(client.permanent(text, earlier=kept))
    assert len({text.split(":")[0] for text in kept}) == 1
    assert kept[0] == kept[3]
    assert kept[4] == kept[5]
    assert mechanism.output_space.encode([client.instantaneous(text) for text in kept]).shape == (6, 6)


# -- decoding ---------------------------------------------------------------------------------------------


def collected(listed: int, users: int = 30_000, seed: int = 3) -> tuple[hb.Reports, np.ndarray, float]:
    """Return reports about twelve texts, of which the first ones are listed; with the true shares."""
    rng = np.random.default_rng(seed)
    texts = [f"text {place}" for place in range(12)]
    shares = 1.0 / np.arange(1, 13)
    shares /= shares.sum()
    sizes: dict[str, Any] = {"cohorts": 32, "bits": 16, "hashes": 2, "f": 0.25, "p": 0.25, "q": 0.75}
    values = np.array(texts)[rng.choice(12, users, p=shares)]
    sent = hb.BloomRappor(hb.Categories(texts), **sizes).privatize(values, rng=rng)
    mechanism = hb.BloomRappor(hb.Categories(texts[:listed]), **sizes)
    return hb.Reports.from_outputs(mechanism, sent), shares[:listed], float(shares[listed:].sum())


def sums_of(reports: hb.Reports) -> hb.Reports:
    """Return the same reports as sums of bits."""
    (mechanism,) = reports.mechanisms
    (block,) = reports.blocks
    assert isinstance(mechanism, hb.BloomRappor)
    cohorts, rows = mechanism.bits_of(block.codes)  # type: ignore[attr-defined]
    ones = np.zeros((mechanism.cohorts, mechanism.bits), dtype=np.int64)
    np.add.at(ones, cohorts, rows * block.weights[:, None].astype(np.int64))
    users = np.bincount(cohorts, weights=block.weights, minlength=mechanism.cohorts).astype(np.int64)
    return hb.Reports.from_bit_counts(mechanism, ones, users)


@pytest.mark.parametrize(("cohorts", "bits"), [(1, 9), (8, 16), (500, 20)])
def test_sums_of_bits_are_those_of_all_outputs(cohorts: int, bits: int) -> None:
    """Also where nobody is in most cohorts, and where several users sent the same."""
    mechanism = hb.BloomRappor(hb.Categories(["a", "b", "c"]), cohorts, bits, 2, f=0.25, p=0.25, q=0.75)
    outputs = mechanism.privatize(["a", "b", "c"] * 40, rng=4)
    outputs = np.concatenate([outputs, outputs[:20]])
    ones, users = mechanism.bit_counts(outputs)
    rows = np.unpackbits(outputs["bits"], axis=1, count=bits)
    for cohort in range(cohorts):
        own = outputs["cohort"] == cohort
        assert users[cohort] == own.sum()
        assert ones[cohort].tolist() == rows[own].sum(axis=0).tolist()
    assert ones.shape == (cohorts, bits)
    assert {ones.dtype, users.dtype} == {np.dtype(np.int64)}
    ones, users = mechanism.bit_counts(outputs[:0])
    assert not ones.any()
    assert not users.any()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kept", ["reports", "sums"])
@pytest.mark.parametrize("method", ["mle", "lasso"])
def test_shares_and_the_rest_are_decoded(kept: str, method: str) -> None:
    for listed in (12, 8):
        reports, shares, rest = collected(listed)
        decoded = hb.decode_rappor(reports if kept == "reports" else sums_of(reports), method=method)
        assert np.abs(decoded.shares - shares).max() < 0.03
        assert abs(decoded.rest - rest) < 0.08
        assert decoded.detected[:4].all()
        assert decoded.users == 30_000
        assert (decoded.low <= decoded.shares).all()
        assert (decoded.shares <= decoded.high).all()
        if method == "mle":
            assert decoded.rest_low <= rest <= decoded.rest_high
            assert ((decoded.low <= shares) & (shares <= decoded.high)).mean() > 0.8
        assert f"{decoded.rest:.1%}" in str(decoded)
        assert decoded.to_frame()["share"].is_monotonic_decreasing


def test_a_list_that_lacks_the_most_frequent_text_is_refuted() -> None:
    reports, _, _ = collected(12)
    assert hb.decode_rappor(reports).list_explains
    (mechanism,) = reports.mechanisms
    assert isinstance(mechanism, hb.BloomRappor)
    shorter = hb.BloomRappor(
        hb.Categories([f"text {place}" for place in range(1, 12)]), 32, 16, 2, f=0.25, p=0.25, q=0.75
    )
    (block,) = reports.blocks
    outputs = np.repeat(mechanism.output_space.decode(block.codes), block.counts)  # type: ignore[attr-defined]
    decoded = hb.decode_rappor(hb.Reports.from_outputs(shorter, outputs))
    assert decoded.fit.rejected
    assert not decoded.list_explains
    assert "does not explain" in decoded.explain()


def test_a_rest_that_is_surely_there_refutes_the_list_where_the_fit_does_not() -> None:
    """Many rare texts leave bits that look random: no single count stands out, and yet they are 25% together."""
    texts = [f"text {place}" for place in range(52)]
    listed = 1 / np.arange(1.0, 13.0)
    shares = np.concatenate([0.75 * listed / listed.sum(), np.full(40, 0.25 / 40)])
    rng = np.random.default_rng(1)
    full, short = (hb.BloomRappor(hb.Categories(texts[:size]), 32, 16, 2, **DEMO) for size in (52, 12))
    sent = full.privatize(np.array(texts)[rng.choice(52, 30_000, p=shares)], rng=rng)
    decoded = hb.decode_rappor(hb.Reports.from_outputs(short, sent))
    assert not decoded.fit.rejected
    assert decoded.rest_low > 0
    assert not decoded.list_explains
    assert "no evidence" not in decoded.explain()
    assert "does not explain" in decoded.explain()


def test_the_covariance_of_bits_is_that_of_the_law() -> None:
    """The tables of the fit test, by enumeration of reports: for candidates and the rest."""
    from hubbub.goodness_of_fit.filter_moments import FilterMoments, filter_tables

    mechanism = hb.BloomRappor(TEXTS, 2, 5, 2, **DEMO, rest="blue")
    theta = np.array([0.4, 0.1, 0.3, 0.2])
    mixed = theta @ mechanism.matrix()
    for cohort, table in enumerate(filter_tables(mechanism, np.zeros((2, 5)), [100, 100], None)):
        listed = [(place, row) for place, home, row in rows_of_bits(mechanism) if home == cohort]
        rows = np.array([row for _, row in listed])
        weights = mixed[[place for place, _ in listed]] * 2
        mean = weights @ rows
        np.testing.assert_allclose(theta @ table.probabilities, mean, rtol=1e-12)
        second = rows.T @ (rows * weights[:, None])
        assert isinstance(table, FilterMoments)
        np.testing.assert_allclose(table._covariance(theta), second - np.outer(mean, mean), atol=1e-12)


def test_lasso_meets_its_conditions() -> None:
    """Of the last lambda: the slope is lambda where a coefficient is positive, at most that elsewhere."""
    rng = np.random.default_rng(4)
    design = (rng.random((300, 40)) < 0.1).astype(np.float64)
    response = design[:, :5] @ np.array([0.4, 0.2, 0.1, 0.1, 0.05]) + 0.01 * rng.standard_normal(300) + 3.0
    found = lasso(design, response)
    centred, target = design - design.mean(axis=0), response - response.mean()
    slope = centred.T @ (target - centred @ found) / 300
    penalty = 1e-4 * (centred.T @ target / 300).max()
    assert (found[:5] > 0.02).all()
    np.testing.assert_allclose(slope[found > 0], penalty, atol=1e-5)
    assert (slope <= penalty + 1e-5).all()


# -- google/rappor's files --------------------------------------------------------------------------------


def written(folder: Path, *, hashed: bool = True) -> tuple[list[Path], hb.Reports]:
    """Write parameters, reports, sums and a map as google/rappor does, and return the reports, too."""
    reports, _, _ = collected(8, users=2_000)
    (mechanism,) = reports.mechanisms
    (block,) = reports.blocks
    assert isinstance(mechanism, hb.BloomRappor)
    (folder / "params.csv").write_text("k,h,m,p,q,f\n16,2,32,0.25,0.75,0.25\n")
    cohorts, rows = mechanism.bits_of(np.repeat(block.codes, block.counts, axis=0))  # type: ignore[attr-defined]
    lines = [
        f"{user},{cohort},{'0' * 16},{'0' * 16},{''.join(str(int(bit)) for bit in row[::-1])}"
        for user, (cohort, row) in enumerate(zip(cohorts, rows, strict=True))
    ]
    (folder / "reports.csv").write_text("client,cohort,bloom,prr,irr\n" + "\n".join(lines) + "\n")
    totals = [[int((cohorts == cohort).sum()), *rows[cohorts == cohort].sum(axis=0)] for cohort in range(32)]
    (folder / "counts.csv").write_text("".join(",".join(map(str, line)) + "\n" for line in totals))
    shift = 0 if hashed else 1
    cells = [
        [
            text,
            *(cohort * 16 + (bit + shift) % 16 + 1 for cohort in range(32) for bit in bloom_bits(text, cohort, 16, 2)),
        ]
        for text in mechanism.domain.labels.tolist()
    ]
    (folder / "map.csv").write_text("".join(",".join(map(str, line)) + "\n" for line in cells))
    return [folder / name for name in ("params.csv", "reports.csv", "map.csv", "counts.csv")], reports


def test_files_of_google_rappor_are_read(tmp_path: Path) -> None:
    (params, reports, names, counts), collected_reports = written(tmp_path)
    read = hb.read_rappor(params, reports, names)
    assert read.mechanisms == collected_reports.mechanisms
    np.testing.assert_array_equal(read.blocks[0].codes, collected_reports.blocks[0].codes)  # type: ignore[attr-defined]
    sums = hb.read_rappor(params, counts, names)
    assert sums.users == 2_000
    assert sums.approximate
    np.testing.assert_array_equal(sums.blocks[0].ones, sums_of(read).blocks[0].ones)  # type: ignore[attr-defined]


@pytest.mark.parametrize("given", [None, 5, b"params.csv", "a\0b.csv", ""])
@pytest.mark.parametrize("name", ["params", "reports", "map"])
def test_what_is_no_path_is_refused(given: Any, name: str, tmp_path: Path) -> None:
    (params, reports, names, _), _ = written(tmp_path)
    paths = {"params": params, "reports": reports, "map": names, name: given}
    with pytest.raises(hb.IntakeError, match="not the path of a file") as refused:
        hb.read_rappor(**paths)
    assert refused.value.where == f"read_rappor({name}=)"


@pytest.mark.parametrize("header", ["cohort,cohort,irr", "cohort,irr,irr", "cohort,irr,rappor"])
def test_a_column_that_is_there_twice_is_refused(header: str, tmp_path: Path) -> None:
    (params, reports, names, _), _ = written(tmp_path)
    reports.write_text(f"{header}\n0,1,{'0' * 16}\n")
    with pytest.raises(hb.IntakeError) as refused:
        hb.read_rappor(params, reports, names)
    assert refused.value.where == f"{reports}, line 1"
    assert refused.value.expected in ("one column cohort", "one column irr")
    assert "rename" in refused.value.remedy


def test_a_map_of_another_hash_is_taken_as_it_is(tmp_path: Path) -> None:
    (params, reports, names, counts), _ = written(tmp_path, hashed=False)
    read = hb.read_rappor(params, reports, names)
    (mechanism,) = read.mechanisms
    assert isinstance(mechanism, MappedRappor)
    plain = hb.BloomRappor(mechanism.domain, 32, 16, 2, f=0.25, p=0.25, q=0.75)
    bits = np.unpackbits(plain.filters, axis=2)
    np.testing.assert_array_equal(np.unpackbits(mechanism.filters, axis=2), np.roll(bits, 1, axis=2))
    assert hb.decode_rappor(read).users == hb.decode_rappor(hb.read_rappor(params, counts, names)).users == 2_000
