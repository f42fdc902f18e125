"""The channel of users of whom a share is fake (Huber's contamination).

If a share e_i of the users who may send pattern i is fake, the pattern's likelihood is

    f_i = (1 - e_i) (theta G)_i + e_i r_i,

with theta the distribution of the honest users and r that of what fakes send, which may be anything. So there is one
more row for each pattern: that of a fake who sends it. Theta and r are passed as one vector, theta first. Fakes may
imitate honest users (r = theta G), so that "exactly a share of fakes" allows all that "at most a share" does.
"""

from __future__ import annotations

import numpy as np

from hubbub.channels.base import Channel
from hubbub.core.arrays import Floats, Positions, frozen


class ContaminatedChannel(Channel):
    """A channel with one more row for each pattern, mixed in with that pattern's share of fakes."""

    def __init__(self, honest: Channel, shares: Floats) -> None:
        self.honest = honest
        self.values, self.patterns = honest.values + honest.patterns, honest.patterns
        self.log_scale = honest.log_scale
        self.honest_shares = frozen(1.0 - shares)
        self.fake_entries = frozen(shares * np.exp(-honest.log_scale))  # of the row of each pattern

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        honest, fakes = theta[..., : self.honest.values], theta[..., self.honest.values :]
        return self.honest_shares * self.honest.forward(honest) + self.fake_entries * fakes

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return np.concatenate([self.honest.backward(self.honest_shares * ratio), self.fake_entries * ratio], axis=-1)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        honest = self.honest.squares(self.honest_shares**2 * weights)
        return np.concatenate([honest, self.fake_entries**2 * weights])

    def rows(self, positions: Positions) -> Floats:
        """Return rows of honest values and of fakes."""
        rows = np.zeros((positions.size, self.patterns))
        is_honest = positions < self.honest.values
        rows[is_honest] = self.honest.rows(positions[is_honest]) * self.honest_shares
        places = positions[~is_honest] - self.honest.values
        rows[np.flatnonzero(~is_honest), places] = self.fake_entries[places]
        return rows
