"""Reports that contradict their study must not end in a beautiful picture: it is said first, wherever people look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub.trust_check import CONTRADICTION
from terminal import hubbub as run

LINE = hb.Integers(0, 11)
MAP = hb.Grid(24, 20, cell=0.5)
STUDY, MAP_STUDY = hb.TruncatedGeometric(LINE, 0.5), hb.PlanarGeometric(MAP, 1.0)


def noisy(mechanism: hb.Mechanism) -> np.ndarray:
    """Return what people send: most of them are near one place of the line, or of the map."""
    rng = np.random.default_rng(3)
    if mechanism.domain is LINE:
        values = rng.binomial(11, 0.3, 5_000)
    else:
        column, row = rng.binomial(23, 0.4, 50_000), rng.binomial(19, 0.5, 50_000)
        values = MAP.labels[row * 24 + column]
    return np.asarray(mechanism.privatize(values, rng=rng))


def without_edges(mechanism: hb.Mechanism) -> np.ndarray:
    """Return what people send but for reports at the ends of the line, or on the edges of the map, taken for errors."""
    outputs = noisy(mechanism)
    if mechanism.domain is LINE:
        return outputs[(outputs > 0) & (outputs < 11)]
    row, column = np.divmod(outputs, 24)
    return outputs[(row > 0) & (row < 19) & (column > 0) & (column < 23)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("study", "sent_by", "sent"),
    [
        pytest.param(STUDY, hb.TruncatedGeometric(LINE, 3.0), noisy, id="line, weaker noise than it says"),
        pytest.param(STUDY, hb.RandomizedResponse(LINE, 3.0), noisy, id="line, another mechanism"),
        pytest.param(STUDY, STUDY, without_edges, id="line, dropped edges"),
        pytest.param(MAP_STUDY, hb.PlanarGeometric(MAP, 2.0), noisy, id="map, half the noise that it says"),
        pytest.param(MAP_STUDY, hb.RandomizedResponse(MAP, 3.0), noisy, id="map, another mechanism"),
        pytest.param(MAP_STUDY, MAP_STUDY, without_edges, id="map, dropped edges"),
    ],
)
def test_reports_that_contradict_the_study_do_not_fit(
    study: hb.Mechanism, sent_by: hb.Mechanism, sent: Callable[[hb.Mechanism], np.ndarray]
) -> None:
    assert hb.fit_test(hb.Reports.from_outputs(study, sent(sent_by))).rejected


@pytest.mark.parametrize("study", [STUDY, MAP_STUDY])
def test_honest_reports_fit(study: hb.Mechanism) -> None:
    assert not hb.fit_test(hb.Reports.from_outputs(study, noisy(study))).rejected


def test_a_check_says_it() -> None:
    sent = noisy(hb.TruncatedGeometric(LINE, 3.0))
    assert hb.check(hb.Reports.from_outputs(STUDY, sent), values=[9]).contradiction == CONTRADICTION


@pytest.mark.slow
def test_honest_reports_are_left_in_peace() -> None:
    assert hb.check(hb.Reports.from_outputs(STUDY, noisy(STUDY)), values=[9]).contradiction == ""


@pytest.mark.slow  # a whole run of the terminal; what it says is tested beside this
def test_the_terminal_says_it_first(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "integers"\nlow = 0\nhigh = 11\n'
        '[mechanisms.noise]\nkind = "truncated-geometric"\nepsilon = 0.5\n'
    )
    outputs = "\n".join(str(output) for output in noisy(hb.TruncatedGeometric(LINE, 3.0)))
    (tmp_path / "reports.csv").write_text(f"output\n{outputs}\n")
    done = run("estimate", "study.toml", "reports.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()).startswith(CONTRADICTION[:60])
    quick = run("estimate", "study.toml", "reports.csv", "--quick", cwd=tmp_path)
    assert "contradict" not in quick.stdout
