"""Steps under one loop, closed forms, and inversion."""

from hubbub.solvers.closed import single_pattern
from hubbub.solvers.inversion import invert
from hubbub.solvers.loop import Outcome, Progress, finish, iterate
from hubbub.solvers.steps import accelerated_step, delta_rule, em_step, gap_rule

__all__ = [
    "Outcome",
    "Progress",
    "accelerated_step",
    "delta_rule",
    "em_step",
    "finish",
    "gap_rule",
    "invert",
    "iterate",
    "single_pattern",
]
