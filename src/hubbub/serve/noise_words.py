"""What the noise of a mechanism means, for the people who answer: how often what is sent is the answer itself."""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.text import percent
from hubbub.mechanisms import (
    BloomRappor,
    Cloaking,
    CountMeanSketch,
    DBitFlip,
    HadamardCountMeanSketch,
    LocalHashing,
    Matrix,
    Mechanism,
    Split,
    SubsetSelection,
)
from hubbub.mechanisms.hadamard_response import ListedSets
from hubbub.mechanisms.one_among_fakes import SampleOneWithFakes
from hubbub.mechanisms.output_spaces import LabelOutputs, PairOutputs
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.mechanisms.survey_designs import SurveyDesign
from hubbub.mechanisms.unary_encoding import UnaryEncoding

MAX_TRIED_VALUES = 200  # whose chance to be sent as they are is computed
EQUAL = 5e-4  # chances that differ by less are shown as one
UNKNOWABLE = "Nobody who sees what is sent can tell for certain what is your answer and what is noise."


def noise_sentences(mechanism: Mechanism) -> list[str]:
    """Return what happens to an answer, with the chance that it is sent as it is."""
    if isinstance(mechanism, SeveralAttributes):
        chosen = "" if isinstance(mechanism, Split) else ", if it is chosen"
        parts = [f"{name}{chosen}: {_sentence(part)}" for name, part in mechanism.parts.items()]
        return [_several(mechanism), *parts, UNKNOWABLE]
    return [_sentence(mechanism), *([] if isinstance(mechanism, Cloaking) else [UNKNOWABLE])]


def _several(mechanism: SeveralAttributes) -> str:
    if isinstance(mechanism, Split):
        return "Each part of the answer gets noise of its own."
    if isinstance(mechanism, SampleOneWithFakes):
        return "One part of the answer, chosen by chance, gets noise; the others are replaced by invented ones."
    return "Only one part of the answer, chosen by chance, is sent, with noise; nothing is sent of the others."


def _sentence(mechanism: Mechanism) -> str:
    """Return the sentence about one answer, or one part of it."""
    if isinstance(mechanism, SurveyDesign):
        chances = [percent(float(chance)) for chance in mechanism.chances]
        first, second = (mechanism.domain.title(position) for position in (0, 1))
        return (
            f"“{mechanism.outputs[0]}” is sent with a chance of {chances[0]} if the answer is “{first}”, and of "
            f"{chances[1]} if it is “{second}”."
        )
    if isinstance(mechanism, Cloaking):
        return "The answer is replaced by the group that it belongs to. There is no noise: the group is always right."
    if isinstance(mechanism, UnaryEncoding):
        own, other = mechanism.support
        marks = f"{len(mechanism.domain):,} marks are sent, one for each possible answer"
        return (
            f"{marks}. The mark of your answer is set with a chance of {percent(own)}, every other mark with "
            f"{percent(other)}."
        )
    if isinstance(mechanism, SubsetSelection):
        size = int(mechanism.size or 0)
        return (
            f"A set of {size:,} of the {len(mechanism.domain):,} possible answers is sent, chosen by chance; yours is "
            f"among them with a chance of {percent(mechanism.support.true)}."
        )
    if isinstance(mechanism, LocalHashing):
        return (
            f"All possible answers are dealt into {mechanism.buckets} groups by chance, and a group is sent: with a "
            f"chance of {percent(mechanism.support.true)} the one that your answer is in."
        )
    if isinstance(mechanism, BloomRappor):
        zero, one = (percent(float(chance)) for chance in mechanism.chances)
        return (
            f"Your answer marks {mechanism.hashes} of {mechanism.bits} places in a row, as many others do. A place "
            f"is sent with a mark with a chance of {one} if it has one, and of {zero} if it has none."
        )
    if isinstance(mechanism, ListedSets):
        chance = percent(mechanism.member_chance)
        return (
            f"One of {mechanism.output_count:,} numbers is sent. To each answer belong {mechanism.set_size:,} of them; "
            f"with a chance of {chance} it is one of those of your answer."
        )
    if isinstance(mechanism, CountMeanSketch):
        right = percent(mechanism.support.true)
        return (
            f"All possible answers are dealt into {mechanism.width} groups, in one of {mechanism.hashes:,} ways, "
            f"chosen by chance. Of each group it is said whether your answer is in it; each of these is right with a "
            f"chance of {right}."
        )
    if isinstance(mechanism, HadamardCountMeanSketch):
        right = percent(mechanism.support.true)
        return (
            "All possible answers are divided into two halves, in one of many ways, chosen by chance, and it is said "
            f"in which half your answer is; this is right with a chance of {right}."
        )
    if isinstance(mechanism, DBitFlip):
        right = percent(1.0 / (1.0 + math.exp(-mechanism.nats)))
        return (
            f"All possible answers are put into {mechanism.buckets} groups. About {mechanism.bits} of them, chosen by "
            f"chance, it is said whether your answer is in that group; this is right with a chance of {right}."
        )
    space = mechanism.output_space
    if isinstance(space, LabelOutputs) and not mechanism.answers_in_domain:  # a matrix, or one of somebody's own
        return f"One of {space.size:,} outputs is sent, drawn by chances that depend on the answer."
    low, high = _kept(mechanism)
    chance = percent(high) if high - low < EQUAL else f"{percent(low)} to {percent(high)}, depending on the answer"
    is_near = mechanism.metric and not isinstance(mechanism, Matrix)  # whose outputs may mean anything
    others = "otherwise another one, rather a near one than a far one" if is_near else "otherwise another one"
    return f"With a chance of {chance}, your answer itself is sent; {others}, drawn by chance."


def _kept(mechanism: Mechanism) -> tuple[float, float]:
    """Return the smallest and largest probability that an answer is sent as it is, over evenly chosen answers."""
    domain = mechanism.domain
    places = np.unique(np.linspace(0, len(domain) - 1, MAX_TRIED_VALUES).round().astype(np.int64))
    is_place = isinstance(mechanism.output_space, PairOutputs)  # a column and a row, perhaps beyond the map
    grid = domain.grid if is_place else None
    outputs = domain.labels[places] if grid is None else grid.steps[places]
    codes = mechanism.output_space.encode(outputs)
    logs = [mechanism.log_columns(codes[at : at + 1], places[at : at + 1])[0, 0] for at in range(len(places))]
    chances = np.exp(np.array(logs))
    return float(chances.min()), float(chances.max())
