"""Reports that contradict their study must not end in a beautiful picture: it is said first, wherever people look."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub.trust_check import CONTRADICTION
from terminal import hubbub as run

LINE = hb.Integers(0, 29)
USERS = 20_000


def noisy(mechanism: hb.Mechanism) -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.asarray(mechanism.privatize(rng.binomial(29, 0.3, USERS), rng=rng))


def dropped_edges() -> hb.Reports:
    """Somebody took reports at both ends of the line for errors."""
    study = hb.TruncatedGeometric(LINE, 0.2)
    outputs = noisy(study)
    return hb.Reports.from_outputs(study, outputs[(outputs > 0) & (outputs < 29)])


def sent_by(other: hb.Mechanism) -> hb.Reports:
    """Return reports of a study whose clients ran another mechanism than it says."""
    return hb.Reports.from_outputs(hb.TruncatedGeometric(LINE, 0.2), noisy(other))


WRONG = {
    "another epsilon": lambda: sent_by(hb.TruncatedGeometric(LINE, 2.0)),
    "another mechanism": lambda: sent_by(hb.RandomizedResponse(LINE, 3.0)),
    "dropped edges": dropped_edges,
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_check_says_it(kind: str) -> None:
    check = hb.check(WRONG[kind](), values=[9])
    assert check.contradiction == CONTRADICTION


def test_honest_reports_are_left_in_peace() -> None:
    study = hb.TruncatedGeometric(LINE, 0.2)
    assert hb.check(hb.Reports.from_outputs(study, noisy(study)), values=[9]).contradiction == ""


def test_the_terminal_says_it_first(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "integers"\nlow = 0\nhigh = 29\n'
        '[mechanisms.noise]\nkind = "truncated-geometric"\nepsilon = 0.2\n'
    )
    outputs = "\n".join(str(output) for output in noisy(hb.TruncatedGeometric(LINE, 2.0)))
    (tmp_path / "reports.csv").write_text(f"output\n{outputs}\n")
    done = run("estimate", "study.toml", "reports.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()).startswith(CONTRADICTION[:60])
    quick = run("estimate", "study.toml", "reports.csv", "--quick", cwd=tmp_path)
    assert "contradict" not in quick.stdout
