"""Whether draws follow the matrix: a test for sampler faults that cost no privacy but spoil estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.auditing.count_tests import combined_p_value
from hubbub.auditing.empirical_bounds import DrawnOutputs
from hubbub.auditing.law_tests import law_tests
from hubbub.mechanisms import Mechanism

FIT_LEVEL = 1e-6  # of all tests together


@dataclass(frozen=True)
class DrawsFit:
    """The p-value of several kinds of tests together, the number of tests, and which one is the clearest."""

    p_value: float
    level: float
    tests: int
    worst: str

    @property
    def rejected(self) -> bool:
        """Whether the sampler does not follow its matrix."""
        return self.p_value < self.level


def compare_with_law(mechanism: Mechanism, drawn: DrawnOutputs) -> DrawsFit | None:
    """Compare the draws of each value with its law; None if the probabilities of outputs are not known."""
    outputs_by_value = [np.concatenate(halves) for halves in zip(drawn.choosing, drawn.counting, strict=True)]
    positions = np.repeat(drawn.positions, [len(outputs) for outputs in outputs_by_value])
    tests = law_tests(mechanism, positions, mechanism.output_space.encode(np.concatenate(outputs_by_value)))
    if not tests:
        return None
    clearest = min(tests, key=lambda test: test.p_value)
    return DrawsFit(combined_p_value(tests), FIT_LEVEL, sum(test.tests for test in tests), clearest.worst)
