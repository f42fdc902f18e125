"""Texts by Bloom-filter RAPPOR: maximum likelihood with a rest beside google/rappor's LASSO, with texts on no list.

Run: python benchmarks/bloom_rappor.py [--runs N] [--only TEXT]

LASSO with least squares is `decode_rappor(method="lasso")`, which follows google/rappor's analysis. Both see the same
reports. The candidates' shares are Zipf's; with a rest, 20% of the users have one of forty other texts, also by Zipf's
law. Errors are total variations over the candidates and the rest as one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from measure import row, save_merged

Floats = NDArray[np.float64]
REST_TEXTS, REST_SHARE = 40, 0.2
TOP = 10
METHODS = ("mle", "lasso")


@dataclass(frozen=True)
class Setting:
    """How texts are encoded, and how many candidates and users there are."""

    name: str
    candidates: int
    users: int
    cohorts: int
    bits: int
    p: float
    q: float
    f: float

    def mechanism(self, texts: list[str]) -> hb.BloomRappor:
        """Return the mechanism over a list of texts."""
        domain = hb.Categories(texts)
        return hb.BloomRappor(domain, self.cohorts, self.bits, 2, f=self.f, p=self.p, q=self.q)


SETTINGS = (
    Setting("google/rappor's demo: p 0.5, q 0.75, f 0.5", 100, 50_000, 64, 16, 0.5, 0.75, 0.5),
    Setting("one report: p 0.25, q 0.75, f 0", 100, 20_000, 64, 16, 0.25, 0.75, 0.0),
    Setting("long filters: 128 bits, 8 cohorts", 100, 20_000, 8, 128, 0.25, 0.75, 0.25),
    Setting("short filters: 8 bits, 128 cohorts", 50, 20_000, 128, 8, 0.25, 0.75, 0.25),
)


@dataclass(frozen=True)
class Study:
    """One simulated study: reports, and the true shares of candidates and of the rest."""

    reports: hb.Reports
    shares: Floats
    rest: float

    @classmethod
    def drawn(cls, setting: Setting, rest: float, seed: int) -> Study:
        """Simulate the users; other texts in each study, and so other hashes."""
        rng = np.random.default_rng([41, seed])
        listed, others = (
            [f"{kind} {seed} {place}" for place in range(count)]
            for kind, count in (("text", setting.candidates), ("other", REST_TEXTS))
        )
        shares, spare = zipf(setting.candidates) * (1.0 - rest), zipf(REST_TEXTS) * rest
        every = np.array(listed + others)
        values = every[rng.choice(every.size, setting.users, p=np.concatenate([shares, spare]))]
        sent = setting.mechanism(every.tolist()).privatize(values, rng=rng)
        return cls(hb.Reports.from_outputs(setting.mechanism(listed), sent), shares, rest)


def zipf(size: int) -> Floats:
    """Return shares by Zipf's law."""
    shares = 1.0 / np.arange(1.0, size + 1.0)
    return np.asarray(shares / shares.sum())


def measured(setting: Setting, rest: float, runs: int) -> Iterator[dict[str, Any]]:
    """Decode the same studies in both ways."""
    errors, top, spent = np.empty((2, runs)), np.empty((2, runs)), np.zeros(2)
    held, rejected, covered = np.zeros(2, dtype=int), 0, np.empty((2, runs))
    for run in range(runs):
        study = Study.drawn(setting, rest, run)
        for place, method in enumerate(METHODS):
            start = time.process_time()
            found = hb.decode_rappor(study.reports, method=method)
            spent[place] += time.process_time() - start
            off = np.abs(found.shares - study.shares)
            errors[place, run] = (off.sum() + abs(found.rest - rest)) / 2
            top[place, run] = off[:TOP].mean()
            held[place] += found.rest_low <= rest <= found.rest_high
            covered[place, run] = ((found.low <= study.shares) & (study.shares <= found.high)).mean()
            if method == "mle":
                rejected += not found.list_explains
    name = (
        f"{setting.name}; {setting.candidates} candidates, {setting.users:,} users, {'20%' if rest else 'nobody'} off"
    )
    name += " the list"
    tv, (likeliest, lasso) = float(errors[0].mean() / errors[1].mean()), errors.mean(axis=1)
    what = f"{runs} studies; TV of mle {likeliest:.3f}, of LASSO {lasso:.3f}"
    yield row(name, what, f"{tv:.3f} of LASSO's TV", "at most 1", holds=tv <= 1.0)
    ratio = float(top[0].mean() / top[1].mean())
    what = f"mean error of the {TOP} most frequent, mle {top[0].mean():.4f}, LASSO {top[1].mean():.4f}"
    yield row(name, what, f"{ratio:.3f} of LASSO's", "shown", holds=True)
    what = f"intervals of the rest that hold it, mle; LASSO {held[1]} of {runs}"
    yield row(name, what, f"{held[0]} of {runs}", f"at least {runs - 1}", holds=bool(held[0] >= runs - 1))
    what = f"95% intervals of candidates that hold, mle; LASSO {covered[1].mean():.1%}"
    yield row(name, what, f"{covered[0].mean():.1%}", "at least 93%", holds=bool(covered[0].mean() >= 0.93))
    asked = "shown" if rest else "at most 1"
    fits = bool(rest) or rejected <= 1
    yield row(name, "lists that are said not to explain the reports", f"{rejected} of {runs}", asked, holds=fits)
    yield row(name, "processor time of mle over LASSO's", f"{spent[0] / spent[1]:.1f}", "shown", holds=True)


def main() -> None:
    """Measure all settings and save the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", default="", help="settings whose name contains this; other rows are kept")
    options = parser.parse_args()
    for setting in SETTINGS:
        if options.only in setting.name:
            rows = [line for rest in (0.0, REST_SHARE) for line in measured(setting, rest, options.runs)]
            save_merged("bloom_rappor", rows)


if __name__ == "__main__":
    main()
