import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks, policies, specs, trajectories

SPEC = trajectories.time_step_spec(
    {"seen": tf.TensorSpec([2]), "hidden": tf.TensorSpec([3], tf.int32)}
)
ACTION = specs.BoundedTensorSpec([1], tf.float32, -1, 1)


@pytest.fixture(scope="module")
def whole():
    """A policy whose network uses all parts."""
    network = networks.ActorDistributionNetwork(
        SPEC.observation,
        ACTION,
        preprocessing_layers={
            "seen": tf.keras.layers.Flatten(),
            "hidden": tf.keras.layers.Lambda(lambda x: tf.cast(x, tf.float32)),
        },
        preprocessing_combiner=tf.keras.layers.Concatenate(),
        seed=1,
    )
    return policies.ActorPolicy(SPEC, ACTION, network)


def time_step(**observation):
    return trajectories.restart(observation, batch_size=2)


def test_unseen_parts_are_zero(whole):
    policy = policies.PartialObservationPolicy(whole, ["hidden"])
    assert list(policy.time_step_spec.observation) == ["seen"]
    assert policy.action_spec == whole.action_spec
    seen = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    zeros = time_step(seen=seen, hidden=tf.zeros([2, 3], tf.int32))
    for given in (time_step(seen=seen), time_step(seen=seen, hidden=seen)):
        np.testing.assert_array_equal(
            policy.action(given, seed=5).action, whole.action(zeros, seed=5).action
        )
    greedy = policies.GreedyPolicy(policy)
    np.testing.assert_array_equal(
        greedy.action(time_step(seen=seen)).action,
        whole.distribution(zeros).action.mode(),
    )
    np.testing.assert_array_equal(
        policy.distribution(time_step(seen=seen)).action.mode(),
        whole.distribution(zeros).action.mode(),
    )


@pytest.mark.parametrize("unseen", [["other"], ["seen", "hidden"]])
def test_other_parts_are_refused(whole, unseen):
    with pytest.raises(ValueError, match=r"unseen: got .*expected some, but not all"):
        policies.PartialObservationPolicy(whole, unseen)


def test_observations_without_parts_are_refused():
    spec = trajectories.time_step_spec(tf.TensorSpec([2]))
    policy = policies.RandomTFPolicy(spec, ACTION)
    with pytest.raises(ValueError, match="unseen: got"):
        policies.PartialObservationPolicy(policy, ["hidden"])
