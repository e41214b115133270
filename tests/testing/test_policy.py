"""Each check of `PolicyConformance` finds the fault it is for."""

import itertools

import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl import testing
from tfrl.policies import random_tf_policy, tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3, "action")


class Good(tf_policy.TFPolicy):
    """Random actions, and a state that counts steps."""

    def __init__(self, **kwargs):
        arguments = {
            "policy_state_spec": tf.TensorSpec([], tf.int32),
            "info_spec": tf.TensorSpec([2], tf.float32),
            # Without it, the checks of the base class would find most of the faults.
            "validate_args": False,
            "clip": False,
            **kwargs,
        }
        super().__init__(
            ts.time_step_spec(tf.TensorSpec([3], tf.float32)), ACTION, **arguments
        )
        self.weight = tf.Variable(1.0)

    def _distribution(self, time_step, policy_state):
        size = tf.shape(time_step.discount)[0]
        logits = tf.zeros([size, 4]) + tf.cast(policy_state, tf.float32)[:, None] * [
            0.0,
            0.0,
            9.0,
            0.0,
        ]
        return policy_step.PolicyStep(
            tfp.distributions.Categorical(logits=logits, dtype=tf.int32),
            policy_state + 1,
            tf.zeros([size, 2]),
        )

    def _variables(self):
        return [self.weight]


def changed(**fields):
    """A policy class whose steps have other fields."""

    class Changed(Good):
        def _action(self, time_step, policy_state, seed):
            step = super()._action(time_step, policy_state, seed)
            return step._replace(**{k: f(getattr(step, k)) for k, f in fields.items()})

    return Changed


class BadInitialState(Good):
    def _get_initial_state(self, batch_size):
        return tf.zeros([] if batch_size is None else [batch_size], tf.float32)


class IgnoresItsSeed(Good):
    count = itertools.count()

    def _action(self, time_step, policy_state, seed):
        return super()._action(time_step, policy_state, seed + next(self.count))


class WrongDistribution(Good):
    def _distribution(self, time_step, policy_state):
        step = super()._distribution(time_step, policy_state)
        return step._replace(action=tfp.distributions.Normal(tf.zeros([7]), 1.0))


class KeepsItsState(Good):
    def __init__(self):
        super().__init__(automatic_state_reset=False)


class UpdatesItself(Good):
    def update(self, policy, **kwargs):
        self.weight.assign_add(1.0)


FAULTS = [
    (
        changed(action=lambda a: tf.cast(a, tf.int64)),
        "test_steps_are_what_the_specs_say",
        "action.*int64",
    ),
    (changed(action=lambda a: a + 9), "test_steps_are_what_the_specs_say", "bounds"),
    (changed(state=lambda s: s[None]), "test_steps_are_what_the_specs_say", "state"),
    (changed(info=lambda i: i[:, 0]), "test_steps_are_what_the_specs_say", "info"),
    (BadInitialState, "test_the_initial_state_is_what_its_spec_says", "float32"),
    (IgnoresItsSeed, "test_the_same_seed_gives_the_same_action", "seed=3"),
    (WrongDistribution, "test_the_distribution_is_one_of_the_actions", "float32"),
    (KeepsItsState, "test_a_first_step_forgets_the_state", "automatic_state_reset"),
    (UpdatesItself, "test_variables_are_listed", "update from itself"),
    (
        changed(info=lambda i: tf.cast(i, tf.float64)),
        "test_its_trajectories_have_its_spec",
        "info.*float64",
    ),
]


def suite_of(make):
    class Suite(testing.PolicyConformance):
        def make_policy(self):
            return make()

    return Suite()


def test_a_good_policy_passes():
    suite_of(Good).run_all()


@pytest.mark.parametrize(
    ("faulty", "check", "message"),
    FAULTS,
    ids=[f"{number}-{fault[1]}" for number, fault in enumerate(FAULTS)],
)
def test_a_fault_is_found(faulty, check, message):
    with pytest.raises(AssertionError, match=message):
        getattr(suite_of(faulty), check)()


def test_more_than_one_trace_is_found():
    class Suite(testing.PolicyConformance):
        def make_policy(self):
            return random_tf_policy.RandomTFPolicy(
                ts.time_step_spec(tf.TensorSpec([3], tf.float32)), ACTION
            )

        def make_time_step(self, policy, batch_size, seed=0):
            return super().make_time_step(policy, batch_size + seed // 2, seed)

    with pytest.raises(AssertionError, match="2 traces"):
        Suite().test_it_traces_once()


def test_every_check_has_a_fault():
    covered = {check for _, check, _ in FAULTS} | {"test_it_traces_once"}
    assert covered == set(testing.PolicyConformance.checks())


def test_a_suite_without_a_policy_says_what_to_write():
    with pytest.raises(NotImplementedError, match="make_policy: not written"):
        testing.PolicyConformance().run_all()
