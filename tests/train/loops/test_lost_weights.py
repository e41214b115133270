import numpy as np
import pytest
import tensorflow as tf

from tfrl.train.loops import lost_weights


class Agent:
    """Has variables, one of which is infinite from the start."""

    def __init__(self):
        self.weights = tf.Variable([1.0, 2.0])
        self.bound = tf.Variable(np.inf)

    def variables(self):
        return [self.weights, self.bound, tf.Variable(3)]


def test_only_weights_that_were_finite_are_watched():
    agent = Agent()
    lost = lost_weights.LostWeights(agent)
    assert lost.nan_if_lost(tf.constant(5.0)) == 5.0
    agent.weights.assign([np.nan, 0.0])
    assert not lost.are_finite()
    assert np.isnan(lost.nan_if_lost(tf.constant(5.0)))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (0.0, "1 of the agent's 3 variables hold NaN or infinity now"),
        (np.nan, "2 of the agent's 3 variables hold NaN or infinity now, so the weigh"),
    ],
)
def test_the_error_counts_the_variables(weight, message):
    agent = Agent()
    lost = lost_weights.LostWeights(agent)
    lost.check(1.0, 50)
    agent.weights.assign([weight, 1.0])
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=f"^experience: a Agent loss in the last 50 iterations.*{message}",
    ):
        lost.check(np.inf, 50)
