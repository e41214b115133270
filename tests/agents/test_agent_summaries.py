"""What agents write for TensorBoard, read back from the event files.

The tags are those that TF-Agents 0.19 writes for the same agents.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.agents.reinforce import reinforce_agent
from tfrl.networks import actor_distribution_network, sequential
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
STATISTICS = {"histogram", "mean", "mean_abs", "max", "min", "std"}


@pytest.fixture
def written(tmp_path):
    """Runs a callable under a writer; returns its `{tag: {step: value}}`."""

    def run(write):
        with tf.summary.create_file_writer(str(tmp_path)).as_default() as writer:
            write()
            writer.flush()
        (path,) = tmp_path.iterdir()
        result = {}
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                steps = result.setdefault(value.tag, {})
                steps[event.step] = tf.make_ndarray(value.tensor)
        return result

    return run


def dqn(normalized=True, **kwargs):
    normalize = keras.layers.BatchNormalization(
        name="normalize", scale=False, center=False
    )
    values = keras.layers.Dense(
        2, kernel_initializer="ones", use_bias=normalized, name="values"
    )
    layers = [normalize, values] if normalized else [values]
    return dqn_agent.DqnAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        sequential.Sequential(layers, input_spec=OBSERVATION, name="Net"),
        keras.optimizers.SGD(0.1),
        **kwargs,
    )


def reinforce(**kwargs):
    actor = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, ACTION, fc_layer_params=(), seed=0
    )
    return reinforce_agent.ReinforceAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        actor,
        keras.optimizers.SGD(0.1),
        **kwargs,
    )


def frames(step_types, next_step_types):
    """A row of frames with rewards 1, 2, ..."""
    length = len(step_types)
    reward = tf.range(1.0, length + 1.0)
    return trajectory.Trajectory(
        step_type=tf.constant([step_types]),
        observation=tf.reshape(tf.range(2.0 * length), [1, length, 2]),
        action=tf.zeros([1, length], tf.int32),
        policy_info=(),
        next_step_type=tf.constant([next_step_types]),
        reward=reward[tf.newaxis],
        discount=tf.ones([1, length]),
    )


TRANSITION = frames([MID, MID], [MID, MID])
EPISODE = frames([FIRST, MID], [MID, LAST])


def test_dqn_summaries_are_those_of_tf_agents(written):
    agent = dqn(debug_summaries=True, summarize_grads_and_vars=True)
    result = written(lambda: agent.train(TRANSITION))
    details = {"td_error", "td_loss", "q_values", "next_q_values", "diff_q_values"}
    trained = {"values/kernel", "values/bias"}
    statistics = {"normalize/moving_mean", "normalize/moving_variance"}
    assert set(result) == {
        *(f"Losses/{name}" for name in ("td_loss", "reg_loss", "total_loss")),
        *(f"loss/{name}/{what}" for name in details for what in STATISTICS),
        *(f"summarize_grads/Net/{v}_0_gradient" for v in trained),
        *(f"summarize_grads/Net/{v}_0_gradient_norm" for v in trained),
        *(f"summarize_vars/Net/{v}_0_value" for v in trained | statistics),
        *(f"summarize_vars/Net/{v}_0_value_norm" for v in trained | statistics),
    }
    assert result["Losses/reg_loss"][0] == 0


def test_dqn_summaries_hold_the_numbers_of_the_loss(written):
    agent = dqn(debug_summaries=True)
    losses = []
    result = written(lambda: losses.append(agent.train(TRANSITION)))
    loss, extra = losses[0]
    np.testing.assert_allclose(result["Losses/total_loss"][0], loss, rtol=1e-6)
    np.testing.assert_allclose(
        result["loss/td_error/mean"][0], np.mean(extra.td_error), rtol=1e-6
    )
    # Of one transition, so both ends of the histogram are it; a bucket is
    # [left, right, count].
    histogram = result["loss/td_loss/histogram"][0]
    assert histogram[:, 2].sum() == 1
    np.testing.assert_allclose(
        result["loss/td_loss/max"][0], extra.td_loss[0], rtol=1e-6
    )
    assert not any(tag.startswith("summarize_") for tag in result)


def test_reinforce_summaries_are_those_of_tf_agents(written):
    agent = reinforce(
        value_network=sequential.Sequential(
            [keras.layers.Dense(1, name="dense")], input_spec=OBSERVATION, name="Value"
        ),
        debug_summaries=True,
        summarize_grads_and_vars=True,
        entropy_regularization=0.5,
    )
    losses = []
    result = written(lambda: losses.append(agent.train(EPISODE)))
    variables = {
        *(
            f"ActorDistributionNetwork/CategoricalProjectionNetwork/logits/{v}"
            for v in ("kernel", "bias")
        ),
        *(f"Value/dense/{v}" for v in ("kernel", "bias")),
    }
    loss, extra = losses[0]
    assert set(result) == {
        "Losses/total_loss",
        *(f"Losses/{name}" for name in extra._fields),
        *("rewards", "discounts", "returns", "value_preds", "advantages"),
        *("normalized_advantages", "action_log_prob", "action_log_prob_times_return"),
        *(f"summarize_grads/{v}_0_gradient" for v in variables),
        *(f"summarize_grads/{v}_0_gradient_norm" for v in variables),
        *(f"summarize_vars/{v}_0_value" for v in variables),
        *(f"summarize_vars/{v}_0_value_norm" for v in variables),
    }
    np.testing.assert_allclose(result["Losses/total_loss"][0], loss, rtol=1e-6)
    np.testing.assert_allclose(
        result["Losses/entropy_regularization_loss"][0],
        extra.entropy_regularization_loss,
        rtol=1e-6,
    )
    # The returns are 3 and 2.
    returns = result["returns"][0]
    assert (returns[0, 0], returns[-1, 1], returns[:, 2].sum()) == (2, 3, 2)


def test_without_a_baseline_it_is_the_returns_that_are_normalised(written):
    agent = reinforce(debug_summaries=True)
    result = written(lambda: agent.loss(EPISODE))
    assert "normalized_returns" in result
    assert "value_preds" not in result


@pytest.mark.parametrize("make", [dqn, reinforce])
def test_losses_alone_are_written_by_default(written, make):
    experience = TRANSITION if make is dqn else EPISODE
    result = written(lambda: make().train(experience))
    assert {tag.split("/")[0] for tag in result} == {"Losses"}


@pytest.mark.slow
def test_steps_to_record_are_chosen_without_tracing_again(written):
    agent = dqn(
        normalized=False,
        summarize_grads_and_vars=True,
        train_step_counter=tf.Variable(0),
    )
    train = tf.function(agent.train)
    due = tf.Variable(True)

    def steps():
        with tf.summary.record_if(lambda: due):
            for step in range(4):
                due.assign(step % 2 == 0)
                train(TRANSITION)

    result = written(steps)
    assert train.experimental_get_tracing_count() == 1
    assert {tuple(steps) for steps in result.values()} == {(0, 2)}
    assert "summarize_vars/Net/values/kernel_0_value" in result
    assert "summarize_grads/Net/values/kernel_0_gradient_norm" in result


def test_without_a_writer_the_train_step_holds_no_summaries():
    agents = [
        dqn(debug_summaries=on, summarize_grads_and_vars=on) for on in (False, True)
    ]
    off, on = (
        [
            op.type
            for op in tf.function(agent.train, autograph=False)
            .get_concrete_function(TRANSITION)
            .graph.get_operations()
            if op.type != "Const"
        ]
        for agent in agents
    )
    assert not [op for op in on if "Summary" in op or op in ("If", "StatelessIf")]
    # Nothing but the differences of Q-values, which is not worth a branch.
    assert len(on) == len(off) + 1
