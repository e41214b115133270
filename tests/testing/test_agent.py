"""Each check of `AgentConformance` finds the fault it is for."""

import keras
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.agents import tf_agent
from tfrl.agents.dqn import dqn_agent
from tfrl.networks import q_network
from tfrl.policies import random_tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)


class Good(dqn_agent.DqnAgent):
    def __init__(self):
        super().__init__(
            ts.time_step_spec(OBSERVATION),
            ACTION,
            q_network=q_network.QNetwork(
                OBSERVATION, ACTION, fc_layer_params=(4,), seed=1
            ),
            optimizer=keras.optimizers.Adam(1e-2),
        )


class NotANumber(Good):
    def train(self, experience, weights=None):
        loss_info = super().train(experience, weights)
        return loss_info._replace(loss=loss_info.loss * float("nan"))


class DoesNotCount(Good):
    def train(self, experience, weights=None):
        loss_info = super().train(experience, weights)
        self.train_step_counter.assign(0)
        return loss_info


class LearnsInLoss(Good):
    def loss(self, experience, weights=None, training=False):
        return self.train(experience, weights)


class ListsNothing(Good):
    def _variables(self):
        return [tf.Variable(0.0)]


class CountsExamples(Good):
    def loss(self, experience, weights=None, training=False):
        if tf.nest.flatten(experience)[0].shape[0] == 7:
            return tf_agent.LossInfo(tf.constant(float("inf")), ())
        return super().loss(experience, weights, training)


class AddsWeights(Good):
    def loss(self, experience, weights=None, training=False):
        info = super().loss(experience, None, training)
        extra = 0.0 if weights is None else tf.reduce_sum(weights)
        return info._replace(loss=info.loss + extra)


class LearnsFromBoundaries(Good):
    def train(self, experience, weights=None):
        steps = tf.ones_like(experience.step_type)
        forgetful = experience._replace(step_type=steps, next_step_type=steps)
        return super().train(forgetful, weights)


class ForgetsItsOptimizer(Good):
    def _trackable_children(self, *args, **kwargs):
        children = super()._trackable_children(*args, **kwargs)
        held = ("_optimizer", "_parts")
        return {k: v for k, v in children.items() if k not in held}


class TakesAnything(Good):
    def train(self, experience, weights=None):
        return None


class CollectsOtherData(Good):
    @property
    def collect_policy(self):
        return random_tf_policy.RandomTFPolicy(
            ts.time_step_spec(OBSERVATION), ACTION, emit_log_probability=True
        )


class DiagnosesExamples(Good):
    def diagnose(self, experience=None):
        return {} if experience is None else {"reward": experience.reward}


class DiagnosesByChance(Good):
    def __init__(self):
        super().__init__()
        self._generator = tf.random.Generator.from_seed(0)

    def diagnose(self, experience=None):
        return {"number": self._generator.uniform([])}


DIAGNOSE = "test_diagnose_gives_finite_scalars_and_changes_nothing"
FAULTS = [
    (NotANumber, "test_train_returns_a_finite_loss_and_counts", "finite scalar"),
    (DoesNotCount, "test_train_returns_a_finite_loss_and_counts", "train_step_counter"),
    (LearnsInLoss, "test_train_changes_what_it_lists_and_loss_nothing", "after loss"),
    (
        ListsNothing,
        "test_train_changes_what_it_lists_and_loss_nothing",
        "a list without",
    ),
    (CountsExamples, "test_other_batch_sizes_train", "batch of 7"),
    (AddsWeights, "test_weights_of_one_change_nothing", "weights=ones"),
    (LearnsFromBoundaries, "test_boundaries_carry_no_signal", "mask frames"),
    (ForgetsItsOptimizer, "test_a_restored_agent_goes_on_as_before", "restored"),
    (TakesAnything, "test_experience_of_another_kind_is_refused", "no error"),
    (
        CollectsOtherData,
        "test_its_policies_make_the_data_that_it_collects",
        "collect_data_spec",
    ),
    (DiagnosesExamples, DIAGNOSE, r"(?s)\['reward'\]: got .* finite scalar"),
    (DiagnosesByChance, DIAGNOSE, "random generators after diagnose"),
]


def suite_of(agent):
    class Suite(testing.AgentConformance):
        def make_agent(self):
            return agent()

    return Suite()


@pytest.mark.parametrize(
    ("agent", "check", "message"),
    FAULTS,
    ids=[f"{agent.__name__}-{check}" for agent, check, _ in FAULTS],
)
def test_a_fault_is_found(agent, check, message):
    with pytest.raises(AssertionError, match=message):
        getattr(suite_of(agent), check)()


def test_more_than_one_trace_is_found():
    class Suite(testing.AgentConformance):
        def make_agent(self):
            return Good()

        def make_experience(self, agent, batch_size, seed=0):
            return super().make_experience(agent, batch_size + seed // 2, seed)

    with pytest.raises(AssertionError, match="2 traces"):
        Suite().test_train_traces_once()


def test_every_check_has_a_fault():
    covered = {check for _, check, _ in FAULTS} | {"test_train_traces_once"}
    assert covered == set(testing.AgentConformance.checks())


def test_boundaries_can_be_meant():
    suite = suite_of(LearnsFromBoundaries)
    suite.masks_boundaries = False
    suite.test_boundaries_carry_no_signal()


def test_a_suite_without_an_agent_says_what_to_write():
    with pytest.raises(NotImplementedError, match="make_agent: not written"):
        testing.AgentConformance().run_all()
