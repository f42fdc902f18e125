"""`amplify`: the central epsilon of reports that are shuffled before anybody sees them."""

from __future__ import annotations

import math
from collections.abc import Generator

from hubbub.amplification.pair_laws import any_mechanism
from hubbub.amplification.result import BLANKET, CLONES, LOCAL, Amplification
from hubbub.amplification.validation import check_delta, check_mechanism, check_users, without_epsilon
from hubbub.amplification.worst_pair import MAX_LOCAL_EPSILON, ShuffledMechanism, epsilon_of_pair
from hubbub.core.progress import Progress, stepwise
from hubbub.mechanisms import LocalHashing, LongitudinalHashing, Mechanism


@stepwise
def amplify(mechanism: Mechanism, users: int, delta: float) -> Generator[Progress, None, Amplification]:
    r"""Return the epsilon of shuffled reports, for whoever sees all of them but not who sent which.

    Each of `users` people sends one report of the same mechanism, and somebody who is trusted with that alone shuffles
    them: nothing about an order, a time or a sender is left. Then any change of one person's value changes the
    probability of whatever may be seen by a factor of at most :math:`e^\varepsilon`, but for a probability `delta`.

    The epsilon is an upper bound that holds for all values of all other people, by the privacy blanket (Balle and
    others 2019) with the mechanism's own probabilities, computed to within 0.1% where many are hidden, rounded up;
    where a mechanism's outputs are too many to compare all pairs of values, by clones (Feldman, McMillan and Talwar
    2023), which need its epsilon alone: what its matrix realises, if that is more than it claims. It is never
    above the epsilon of a single report, and falls with `users` and with `delta`.

    Several reports of a person are not covered: their outputs could be recognised as one person's, and each of them
    spends. Where all of a person's reports are shuffled apart from each other, in rounds with one report of each, the
    epsilons and the deltas of the rounds add up. Of a mechanism with memory, one report of each person is meant. Fake
    users do not hide anybody: count those who send as told.

    Parameters
    ----------
    mechanism : Mechanism
        What everybody runs, with a finite epsilon; of several attributes, a report about all that it is for.
    users : int
        How many people send one report each.
    delta : float
        The probability that the bound leaves out, between 0 and 1: well below 1 / users.

    Returns
    -------
    Amplification
        The central `epsilon`; `explain` puts it into sentences.

    Raises
    ------
    SettingError
        If an argument is not what it should be: one mechanism, a whole number, a probability.
    MechanismError
        If the mechanism has no epsilon, or its matrix is none.

    Examples
    --------
    >>> import hubbub as hb
    >>> colours = hb.RandomizedResponse(hb.Categories(["red", "green", "blue"]), epsilon=1.0)
    >>> result = hb.amplify(colours, users=100_000, delta=1e-8)
    >>> round(result.epsilon, 3), round(result.general_epsilon, 3)
    (0.015, 0.017)
    """
    subject = check_mechanism(mechanism)
    count, chance = check_users(users), check_delta(delta)
    shuffled = ShuffledMechanism.of(subject)
    local = shuffled.local
    if not math.isfinite(local):
        raise without_epsilon(subject)
    general = local if local > MAX_LOCAL_EPSILON else epsilon_of_pair(any_mechanism(local), count, chance, local)
    own = (yield from shuffled.search(count, chance)) if shuffled.specific else general
    epsilon = min(own, general, local)
    method = LOCAL if epsilon >= local else BLANKET if shuffled.specific and own <= general else CLONES
    return Amplification(
        name=type(subject).__name__,
        epsilon=epsilon,
        delta=chance,
        users=count,
        local_epsilon=local,
        method=method,
        general_epsilon=general,
        metric=subject.metric,
        hashed=method == BLANKET and isinstance(subject, LocalHashing | LongitudinalHashing),
    )
