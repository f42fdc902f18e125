"""Words that nobody can list: hashes, candidates, what one report tells, what is found, and how far it holds."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import nnls

import hubbub as hb
from benchmark_modules import benchmark
from hubbub import client
from hubbub.client import WordClient, bucket_of, epsilon_of_ratio, text_key
from hubbub.discovery.consistent_shares import RoundShares, consistent_shares
from hubbub.discovery.support_counts import SupportLaw, count_supports
from hubbub.discovery.word_codes import continuations, letters_of_words, prefix_keys, words_of_letters
from terminal import hubbub

Floats = NDArray[np.float64]
zipf_words = benchmark("zipf_words").zipf_words
SMALL = hb.PrefixSearch("abcd", length=4, epsilon=2.0, prefix_lengths=[1, 2, 4], keep=6)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
FALSE_ALARM = 1e-6  # of a test of drawn numbers


def drawn_words(rng: np.random.Generator, words: list[str], shares: Floats, users: int) -> list[str]:
    return [words[place] for place in rng.choice(len(words), size=users, p=shares)]


# -- hashes and candidates


@pytest.mark.parametrize("asked", [1, 2, 3, 5])
def test_keys_of_prefixes_are_those_of_devices(asked: int) -> None:
    words = ["a", "ab", "abc", "abcde", "né", "😀b", "zz"]
    keys = prefix_keys(letters_of_words(words, 5), asked)
    assert keys.tolist() == [text_key((word + "\0")[:asked]) for word in words]


def test_the_key_of_a_text_never_changes() -> None:
    # By hand: one step of SplitMix64 from 0 for a letter with the code point 0, whose output is published.
    assert text_key("\0") == 0xE220A8397B1DCDAF
    assert text_key("") == 0
    assert len({text_key("".join(word)) for length in range(5) for word in product("abcdef", repeat=length)}) == 1555


def test_words_come_back_from_their_letters() -> None:
    words = ["a", "né", "😀b", "abcde"]
    assert words_of_letters(letters_of_words(words, 5)) == words


@pytest.mark.parametrize("lengths", [[3], [1, 3], [2, 3], [1, 2, 3]])
def test_every_word_continues_exactly_one_candidate_of_each_round(lengths: list[int]) -> None:
    alphabet = letters_of_words(["xyz"], 3).ravel()
    everything = ["".join(word) for length in (1, 2, 3) for word in product("xyz", repeat=length)]
    rows, known = np.zeros((1, 3), dtype=np.uint32), 0
    for asked in lengths:
        before = rows
        rows, parents = continuations(rows, known, asked, alphabet)
        texts = words_of_letters(rows)
        padded = [text if len(text) == asked else f"{text}\0" for text in texts]
        assert len(set(texts)) == len(texts)
        for word in everything:
            assert sum(padded_text == (word + "\0")[:asked] for padded_text in padded) == 1
        for row, parent in zip(rows, parents, strict=True):
            assert (row[:known] == before[parent][:known]).all()
        known = asked
    assert sorted(words_of_letters(rows)) == sorted(everything)


def test_supports_are_counted_as_devices_hash() -> None:
    rng = np.random.default_rng(3)
    texts = ["a", "ab\0", "abc", "zz\0"]
    keys = np.array([text_key(text) for text in texts], dtype=np.uint64)
    codes = np.stack([rng.integers(0, 2**64, 300, dtype=np.uint64), rng.integers(0, 7, 300).astype(np.uint64)], axis=1)
    expected = [sum(bucket_of(int(s), text_key(text), 7) == int(b) for s, b in codes) for text in texts]
    assert count_supports(codes, keys, 7).tolist() == expected


# -- what one report tells


def exact_chances(search: hb.PrefixSearch, word: str, seeds: list[int]) -> dict[tuple[int, int, int], Fraction]:
    """Return P(round, seed, bucket | word) up to the probability of a seed, from the numbers of the exact law."""
    response = search.law.response
    keep = Fraction(response.keep, 1 << response.width)
    g, chances = response.values, {}
    for turn, asked in enumerate(search.lengths):
        for seed in seeds:
            own = bucket_of(seed, text_key((word + "\0")[:asked]), g)
            for bucket in range(g):
                told = keep * (bucket == own) + (1 - keep) / g
                chances[turn + 1, seed, bucket] = told / search.rounds
    return chances


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_report_spends_epsilon_and_hardly_less(epsilon: float) -> None:
    search = hb.PrefixSearch("ab", length=3, epsilon=epsilon, prefix_lengths=[1, 2, 3])
    words = ["".join(word) for length in (1, 2, 3) for word in product("ab", repeat=length)]
    chances = [exact_chances(search, word, [0, 1, 2, 3]) for word in words]
    assert all(sum(each.values()) == 4 for each in chances)  # of each of four seeds
    worst = max(one[output] / other[output] for one in chances for other in chances for output in one)
    assert epsilon * (1 - 1e-9) < epsilon_of_ratio(worst) <= epsilon


def by_array(search: hb.PrefixSearch, word: str, users: int) -> Any:
    return search.privatize([word] * users)


def by_device(search: hb.PrefixSearch, word: str, users: int) -> Any:
    device = WordClient(**search.device_settings)
    return pd.DataFrame([device.privatize(word) for _ in range(users)])


def of_whole_words(search: hb.PrefixSearch, word: str, users: int) -> Any:
    """A planted fault: the hash is that of the whole word in every round."""
    device = WordClient(**search.device_settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "text_key", lambda text: text_key(word))
        return pd.DataFrame([device.privatize(word) for _ in range(users)])


def too_noisy(search: hb.PrefixSearch, word: str, users: int) -> Any:
    """A planted fault: less epsilon than the search says."""
    twin = hb.PrefixSearch("abcd", 4, 1.7, prefix_lengths=[1, 2, 4], keep=6, buckets=search.buckets)
    return by_device(twin, word, users)


def lowest_p(search: hb.PrefixSearch, word: str, outputs: Any) -> float:
    """Return the smallest p-value of: shares of rounds, own supports of each round, those of another text."""
    table = pd.DataFrame(outputs) if isinstance(outputs, np.ndarray) else outputs
    if "output" in table:
        pairs = table["output"].str.split(":", expand=True)
        table = table.assign(seed=pairs[0].astype("uint64"), bucket=pairs[1].astype("uint32"))
    counts = table["round"].value_counts().reindex(range(1, search.rounds + 1), fill_value=0)
    values = [float(stats.chisquare(counts).pvalue)]
    for turn, asked in enumerate(search.lengths):
        mine = table[table["round"] == turn + 1]
        codes = mine[["seed", "bucket"]].to_numpy(dtype=np.uint64)
        keys = np.array([text_key((word + "\0")[:asked]), text_key("other")], dtype=np.uint64)
        own, other = count_supports(codes, keys, int(search.buckets or 2)).tolist()
        values.append(float(stats.binomtest(own, len(mine), search.own_support).pvalue))
        values.append(float(stats.binomtest(other, len(mine), search.other_support).pvalue))
    return min(values)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("word", ["b", "cab", "dddd"])
@pytest.mark.parametrize("collect", [by_array, by_device])
def test_reports_are_drawn_from_the_stated_law(word: str, collect: Callable[..., Any]) -> None:
    assert lowest_p(SMALL, word, collect(SMALL, word, 9_000)) > FALSE_ALARM


@pytest.mark.parametrize("collect", [of_whole_words, too_noisy])
def test_planted_faults_are_seen(collect: Callable[..., Any]) -> None:
    assert lowest_p(SMALL, "cab", collect(SMALL, "cab", 12_000)) < FALSE_ALARM


# -- limits and shares


def test_limits_are_those_of_binomial_tails() -> None:
    law = SupportLaw(500, 0.6, 0.2)
    counts = np.array([0, 1, 99, 130, 300, 499, 500])
    low, high = law.low(counts, 0.01), law.high(counts, 0.02)
    for count, below, above in zip(counts.tolist(), low.tolist(), high.tolist(), strict=True):
        if 0 < below < 1:
            assert stats.binom.sf(count - 1, 500, 0.2 + 0.4 * below) == pytest.approx(0.01)
        if 0 < above < 1:
            assert stats.binom.cdf(count, 500, 0.2 + 0.4 * above) == pytest.approx(0.02)
    assert low[:3].tolist() == [0, 0, 0]
    assert high[-1] == 1
    assert (low <= high).all()
    shares = np.array([0.0, 0.1, 0.3])
    assert law.chance_above(120, shares) == pytest.approx(stats.binom.sf(120, 500, 0.2 + 0.4 * shares))
    enough = law.reached_by_chance(0.01)
    assert stats.binom.sf(enough, 500, 0.2) <= 0.01 < stats.binom.sf(enough - 1, 500, 0.2)
    assert (law.low(np.array([enough, enough + 1]), 0.01) > 0).tolist() == [False, True]
    assert law.chance_above(-1, shares).tolist() == [1, 1, 1]


@pytest.mark.parametrize("seed", range(6))
def test_consistent_shares_are_the_least_squares_of_another_solver(seed: int) -> None:
    rng = np.random.default_rng([seed, 51])
    rounds, kept = [], 1
    for turn in range(3):
        parents = np.sort(rng.integers(kept, size=9))
        estimates, weights = rng.normal(0.05, 0.2, 9), rng.uniform(1, 5, 9)
        own = rng.choice(9, 3, replace=False) if turn < 2 else np.zeros(0, dtype=np.int64)
        rounds.append(RoundShares(estimates, weights, parents, own))
        kept = 3
    columns, last = [], []  # a leaf's share counts for itself and for all above it
    for turn, tested in enumerate(rounds):
        for node in range(9):
            if node in tested.kept and (rounds[turn + 1].parents == tested.kept.tolist().index(node)).any():
                continue
            column, level, place = np.zeros(27), turn, node
            column[9 * level + place] = 1
            while level:
                place, level = int(rounds[level - 1].kept[rounds[level].parents[place]]), level - 1
                column[9 * level + place] = 1
            if node not in tested.kept:
                columns.append(column)
                last.append(turn == 2)
    scale = np.sqrt(np.concatenate([tested.weights for tested in rounds]))
    solved, _ = nnls(np.array(columns).T * scale[:, None], np.concatenate([t.estimates for t in rounds]) * scale)
    assert consistent_shares(rounds) == pytest.approx(solved[np.array(last)], abs=1e-9)


# -- what is found


def test_frequent_words_are_found_with_their_shares() -> None:
    rng = np.random.default_rng(1)
    words, shares = zipf_words(rng, 2_000, LETTERS, 6)
    search = hb.PrefixSearch(LETTERS, length=6, epsilon=4.0, prefix_lengths=[2, 3, 4, 5, 6], keep=64)
    outputs = search.privatize(drawn_words(rng, words, shares, 60_000), rng=rng)
    found = hb.discover(search, outputs)
    assert set(words[:6]) <= set(found.words[:8])
    true = np.array([shares[words.index(word)] if word in words else 0.0 for word in found.words])
    assert ((found.low <= true) & (true <= found.high)).all()
    assert true[found.certain].min() > 0
    assert (np.diff(found.estimates) <= 0).all()
    assert (found.low <= found.estimates).all()
    assert (found.estimates <= found.high).all()
    assert len(found.words) <= 32
    missed = [share for word, share in zip(words, shares, strict=True) if word not in found.words]
    assert max(missed) <= found.missed_at_most < 0.05
    assert found.epsilon == 4.0


def test_words_that_begin_other_words_are_told_apart() -> None:
    people = ["a"] * 4_000 + ["ab"] * 3_000 + ["abcd"] * 2_000 + ["d"] * 1_000
    found = hb.discover(SMALL, SMALL.privatize(people, rng=4), most=4)
    assert found.words == ("a", "ab", "abcd", "d")
    assert found.estimates == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.05)


def test_letters_outside_the_alphabet_and_long_words_follow_the_stated_rule() -> None:
    search = hb.PrefixSearch("abcd_", length=4, epsilon=6.0, prefix_lengths=[2, 4], keep=8, other="_", cut=True)
    assert WordClient(**search.device_settings).letters("a?cdabc") == "a_cd"
    found = hb.discover(search, search.privatize(["a?cdabc"] * 1_500 + ["é"] * 500, rng=1))
    assert found.words[:2] == ("a_cd", "_")


@pytest.mark.parametrize("word", ["", 17, "sécret", "a" * 97])
def test_devices_refuse_words_without_repeating_them(word: Any) -> None:
    with pytest.raises(client.ClientError) as refused:
        WordClient(LETTERS, 6, 1.0, [3, 6]).privatize(word)
    message = str(refused.value)
    assert all(part in message for part in ("where:", "got:", "expected:", "remedy:"))
    assert not any(part in message for part in ("17", "sécret", "é", "97", "aaa"))


def test_reports_of_devices_are_read_from_tables() -> None:
    outputs = SMALL.privatize(["abc"] * 900 + ["d"] * 300, rng=2)
    table = pd.DataFrame(outputs)
    texts = [f"{seed}:{bucket}" for seed, bucket in zip(outputs["seed"], outputs["bucket"], strict=True)]
    told = pd.DataFrame({"round": outputs["round"], "output": texts})
    frames = [hb.discover(SMALL, given).to_frame() for given in (outputs, table, told)]
    pd.testing.assert_frame_equal(frames[0], frames[1])
    pd.testing.assert_frame_equal(frames[0], frames[2])


def test_the_same_seed_gives_the_same_reports_and_none_gives_others() -> None:
    words = ["abc", "d"] * 50
    assert (SMALL.privatize(words, rng=5) == SMALL.privatize(words, rng=5)).all()
    assert (SMALL.privatize(words) != SMALL.privatize(words)).any()


def test_results_are_kept_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = hb.discover(SMALL, SMALL.privatize(["abc"] * 3_000 + ["d"] * 1_000, rng=2))
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert again.explain() == found.explain() == str(found)
    assert "Each of 4,000 people reported once, and spent epsilon 2." in found.explain()
    document = json.loads(found.to_json())
    assert document["words"][0]["word"] == "abc"
    assert WordClient(**{name: entry for name, entry in document["search"].items() if name != "keep"})
    assert list(found.to_frame().columns) == ["word", "estimate", "low", "high", "certain"]
    assert "abc" in found._repr_html_()
    axes = found.plot(most=2)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(found.words[:2])
    assert "abc" in axes.get_title(loc="left") + axes.get_title()


def test_a_search_is_a_value() -> None:
    twin = hb.PrefixSearch("abcd", length=4, epsilon=2.0, prefix_lengths=(1, 2, 4), keep=6, buckets=SMALL.buckets)
    assert twin == SMALL
    assert hash(twin) == hash(SMALL)
    assert pickle.loads(pickle.dumps(SMALL)) == SMALL  # noqa: S301
    assert hb.PrefixSearch("ab", length=1, epsilon=1.0).lengths == (1,)


def test_a_handful_of_reports_finds_nothing_and_says_so() -> None:
    found = hb.discover(SMALL, SMALL.privatize(["abc", "d", "ab"] * 10, rng=2))
    assert not found.certain.any()
    assert found.missed_at_most > 0.3
    assert found.findable(0.99) is None


def test_a_share_that_no_word_can_have_is_not_promised() -> None:
    search = hb.PrefixSearch("ab", length=2, epsilon=1.0, prefix_lengths=[1, 2])
    told = pd.DataFrame({"round": [1, 2], "output": ["1:0", "2:1"]})
    few = hb.discover(search, told)
    assert few.chance(0.9999999) == pytest.approx(0.0)
    assert few.findable() is None
    assert "No share is large enough to be found with a probability of 90% by so few reports." in few.explain()
    assert few.missed_at_most == 1.0
    assert "has more than" not in few.explain()
    assert "So few reports say nothing about words that were not found." in few.explain()
    assert "A word with" not in few.explain()
    json.loads(few.to_json())
    many = hb.discover(SMALL, SMALL.privatize(["abc"] * 3_000 + ["d"] * 1_000, rng=2))
    share = many.findable()
    assert share is not None
    assert many.chance(share) >= 0.9 > many.chance(share / 1.01)


def test_columns_that_are_not_used_are_named() -> None:
    outputs = SMALL.privatize(["abc"] * 900 + ["d"] * 300, rng=2)
    table = pd.DataFrame(outputs)
    assert hb.discover(SMALL, table).notes == ()
    with pytest.warns(hb.HubbubWarning, match="column user is not used: each row is counted as one person"):
        found = hb.discover(SMALL, table.assign(user=7))
    (note,) = found.notes
    assert note in found.explain()
    assert pickle.loads(pickle.dumps(found)).notes == found.notes  # noqa: S301


# -- how far it holds


def simulated(runs: int, seed: int, fault: float = 1.0) -> tuple[int, int, list[Floats]]:
    """Return in how many searches an interval misses, or a missed word is too frequent; and found words by chance.

    With a `fault` other than 1, reports are those of another epsilon than the search believes.
    """
    words, shares = zipf_words(np.random.default_rng([seed, 1]), 40, "abcd", 4)
    wrong = late = 0
    chances = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run, 2])
        told = hb.PrefixSearch("abcd", 4, 2.0 * fault, prefix_lengths=[1, 2, 4], keep=6, buckets=SMALL.buckets)
        outputs = told.privatize(drawn_words(rng, words, shares, 4_000), rng=rng)
        found = hb.discover(SMALL, outputs, most=6)
        share = dict(zip(words, shares.tolist(), strict=True))
        true = np.array([share.get(word, 0.0) for word in found.words])
        wrong += bool(((true < found.low) | (true > found.high)).any())
        late += max((own for word, own in share.items() if word not in found.words), default=0.0) > found.missed_at_most
        chances += [np.array([found.chance(share[word]), word in found.words]) for word in words[:8]]
    return wrong, late, chances


def is_plausible(misses: int, runs: int, level: float = 0.95) -> bool:
    return bool(stats.binom.sf(misses - 1, runs, 1 - level) > 1e-4)


def test_intervals_hold_together_and_little_is_missed() -> None:
    runs = 60
    wrong, late, chances = simulated(runs, 7)
    assert is_plausible(wrong, runs)
    assert is_plausible(late, runs)
    assert not is_plausible(simulated(20, 7, fault=1.6)[0], 20)
    stated, is_found = np.array(chances).T
    assert is_found.mean() >= stated.mean() - 3 * math.sqrt(0.25 / stated.size)


@pytest.mark.slow
def test_intervals_hold_together_in_many_searches() -> None:
    runs = 1_500
    wrong, late, chances = simulated(runs, 8)
    assert is_plausible(wrong, runs)
    assert is_plausible(late, runs)
    stated, is_found = np.array(chances).T
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        mine = (stated >= low) & (stated <= high)
        assert not mine.any() or is_found[mine].mean() >= stated[mine].mean() - 3 * math.sqrt(0.25 / mine.sum())


def test_collisions_of_texts_are_as_rare_as_chance() -> None:
    seeds = np.random.default_rng(9).integers(0, 2**64, 20_000, dtype=np.uint64)
    keys = [text_key(text) for text in ("a\0", "ab\0", "abc", "b\0")]
    buckets = [Counter() for _ in keys]  # type: ignore[var-annotated]
    own = np.array([[bucket_of(int(seed), key, 5) for key in keys] for seed in seeds])
    for column, counter in zip(own.T, buckets, strict=True):
        counter.update(column.tolist())
        assert stats.chisquare([counter[bucket] for bucket in range(5)]).pvalue > FALSE_ALARM
    for first in range(4):
        for second in range(first):
            table = np.zeros((5, 5))
            np.add.at(table, (own[:, first], own[:, second]), 1)
            assert stats.chisquare(table.ravel()).pvalue > FALSE_ALARM


# -- at the terminal


@pytest.fixture
def collected(tmp_path: Path) -> Path:
    """A folder with the settings of a search, and the reports of half of the people in each of two files."""
    (tmp_path / "search.json").write_text(SMALL.to_json())
    outputs = SMALL.privatize(["abc"] * 900 + ["d"] * 300, rng=2)
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"round": outputs["round"], "output": [f"{s}:{b}" for _, s, b in outputs.tolist()]})
    table = table.iloc[rng.permutation(len(table))]
    table[:600].to_csv(tmp_path / "one.csv", index=False)
    table[600:].to_parquet(tmp_path / "two.parquet", index=False)
    return tmp_path


def test_the_terminal_finds_what_python_finds(collected: Path) -> None:
    assert hb.PrefixSearch(**json.loads(SMALL.to_json())) == SMALL
    expected = hb.discover(SMALL, SMALL.privatize(["abc"] * 900 + ["d"] * 300, rng=2), most=3)
    words = ["discover", "search.json", "one.csv", "two.parquet", "--most", "3"]
    printed = json.loads(hubbub(*words, "--json", cwd=collected).stdout)
    assert printed == expected.document()
    shown = hubbub(*words, cwd=collected)
    assert "'abc'" in " ".join(shown.stdout.split())
    for name in ("found.csv", "found.json", "found.png"):
        assert hubbub(*words, "-o", name, cwd=collected).returncode == 0
    pd.testing.assert_frame_equal(pd.read_csv(collected / "found.csv"), expected.to_frame())
    assert (collected / "found.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("files", "words", "told"),
    [
        ({}, "gone.json one.csv", ["no such search file", "gone.json"]),
        ({"a.json": "{"}, "a.json one.csv", ["not JSON", "a.json"]),
        ({"a.json": "[1]"}, "a.json one.csv", ["no settings", "[1]"]),
        ({"a.json": '{"alphabet": "ab", "length": 2}'}, "a.json one.csv", ["no epsilon", "to_json"]),
        ({"a.json": '{"alphabet": "ab", "lenght": 2, "epsilon": 1}'}, "a.json one.csv", ["lenght", "length"]),
        ({"a.json": '{"alphabet": "aa", "length": 2, "epsilon": 1}'}, "a.json one.csv", ["alphabet", "more than once"]),
        ({}, "search.json gone.csv", ["no such file of reports", "gone.csv"]),
        ({}, "search.json search.json", ["another format", ".csv or .parquet"]),
        ({"a.csv": "round,text\n1,a\n"}, "search.json a.csv", ["no column output", "text"]),
        ({"a.csv": "round,output\n\n1,1:1\nx,1:1\n"}, "search.json a.csv", ["whole number", "a.csv, line 4", "'x'"]),
        ({"a.parquet": "no"}, "search.json a.parquet", ["not a table of reports", "a.parquet"]),
        ({"a.csv": "round,output\n1,1:1\n2,x\n"}, "search.json one.csv a.csv", ["seed:bucket", "a.csv, line 3", "'x'"]),
        ({"a.csv": "round,output\n1,1:1\n2,\n"}, "search.json a.csv", ["a.csv, line 3, column output", "empty cell"]),
        ({"a.csv": "round,output\n1,1:1\n,1:1\n"}, "search.json a.csv", ["a.csv, line 3, column round", "empty cell"]),
        ({"a.csv": "round,output\n\n\n7,1:1\n"}, "search.json one.csv a.csv", ["no such round", "a.csv, line 4"]),
        ({"a.csv": "round,output\n1,1:1\n1,1:99\n"}, "search.json a.csv", ["no such bucket", "a.csv, line 3"]),
        ({"a.csv": "round,round,output\n1,1,1:1\n"}, "search.json a.csv", ["several columns round", "a.csv"]),
        ({}, "search.json one.csv one.csv", ["same input is there twice", "one.csv"]),
        ({}, "search.json one.csv ./one.csv", ["same input is there twice", "one.csv"]),
        ({}, "search.json two.parquet one.csv again.parquet", ["exactly the same bytes", "two.parquet, again.parquet"]),
        ({"a.json": SMALL.to_json()[:-1] + ', "epsilon": 9.0}'}, "a.json one.csv", ["twice", "'epsilon'", "a.json"]),
        ({}, "search.json one.csv -o found.txt", [".png"]),
        ({}, "search.json one.csv --level 95", ["level", "0.95"]),
        ({}, "search.json one.csv -o one.csv", ["overwritten", "one.csv"]),
    ],
)
def test_mistakes_at_the_terminal_are_told(collected: Path, files: dict[str, str], words: str, told: list[str]) -> None:
    for name, text in files.items():
        (collected / name).write_text(text)
    (collected / "again.parquet").write_bytes((collected / "two.parquet").read_bytes())
    before = {path.name: path.read_bytes() for path in collected.iterdir()}
    done = hubbub("discover", *words.split(), cwd=collected)
    message = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert all(part in message for part in told), message
    assert {path.name: path.read_bytes() for path in collected.iterdir()} == before


def test_the_row_of_a_parquet_file_is_named(collected: Path) -> None:
    table = pd.read_parquet(collected / "two.parquet")
    table.iloc[3, 0] = 9
    table.to_parquet(collected / "three.parquet", index=False)
    done = hubbub("discover", "search.json", "one.csv", "three.parquet", cwd=collected)
    assert done.returncode != 0
    assert "three.parquet, row 4" in done.stderr


def test_the_terminal_names_columns_that_are_not_used(collected: Path) -> None:
    table = pd.read_csv(collected / "one.csv")
    table.assign(user=7, note="").to_csv(collected / "more.csv", index=False)
    note = "more.csv: columns user, note are not used: each row is counted as one person"
    shown = hubbub("discover", "search.json", "more.csv", cwd=collected)
    assert shown.returncode == 0
    assert note in " ".join(shown.stdout.split())
    printed = json.loads(hubbub("discover", "search.json", "more.csv", "--json", cwd=collected).stdout)
    assert note in printed["text"]
