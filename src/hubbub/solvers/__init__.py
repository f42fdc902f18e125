"""Solvers: steps under one loop, closed forms, and inversion."""

from hubbub.solvers.em_steps import (
    BatchedUpdates,
    accelerated_step,
    certified_rule,
    delta_rule,
    em_step,
    gap_rule,
    smoothed_step,
)
from hubbub.solvers.inversion import invert
from hubbub.solvers.loop import Outcome, SolverProgress, iterate
from hubbub.solvers.maximum_likelihood import DEFAULT_MAX_ITERATIONS, EM, SOLVERS, likeliest_point, maximise

__all__ = [
    "DEFAULT_MAX_ITERATIONS",
    "EM",
    "SOLVERS",
    "BatchedUpdates",
    "Outcome",
    "SolverProgress",
    "accelerated_step",
    "certified_rule",
    "delta_rule",
    "em_step",
    "gap_rule",
    "invert",
    "iterate",
    "likeliest_point",
    "maximise",
    "smoothed_step",
]
