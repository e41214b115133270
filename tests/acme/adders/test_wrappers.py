"""Adders that pass their steps on."""

import numpy as np

from tests.acme.adders import episodes
from tfrl.acme.adders import reverb as adders
from tfrl.acme.adders.wrappers import ForkingAdder, IgnoreExtrasAdder

REWARDS = episodes.floats(1, 2, 3)


def test_a_fork_writes_the_items_of_all_its_adders(client, drain):
    adder = ForkingAdder(
        adder
        for adder in (
            adders.NStepTransitionAdder(client, 1, 0.5),
            IgnoreExtrasAdder(
                adders.EpisodeAdder(client, 4, priority_fns={"second": None})
            ),
        )
    )
    for until, end in ((3, None), (2, adder.end_episode), (2, adder.reset)):
        episodes.add_episode(
            adder,
            episodes.time_steps(REWARDS),
            extras=lambda t: {"x": np.float32(t)},
            until=until,
        )
        if end is not None:
            end()
    # Three, two and two transitions with extras; two whole episodes without extras.
    assert [item[-1] for item in drain()] == [0, 1, 2, 0, 1, 0, 1]
    assert [len(item) for item in drain("second")] == [5, 5]
