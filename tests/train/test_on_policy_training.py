"""On-policy loops with PPO: plain, compiled, resumed, swept, recurrent."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents import every_agent
from tfrl import train
from tfrl.agents import PPOClipAgent, PPOKLPenaltyAgent
from tfrl.agents.ppo import ppo_networks
from tfrl.environments import PyEnvironment, TFPyEnvironment, native
from tfrl.networks import (
    ActorDistributionNetwork,
    ActorDistributionRnnNetwork,
    ValueNetwork,
    ValueRnnNetwork,
)
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import variables
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

# Plain loops repeat on a GPU with op determinism alone.
pytestmark = pytest.mark.cpu

BATCH_SIZE, NUM_STEPS, ITERATIONS = 4, 16, 6
# Some iterations reach it, and others do not.
TARGET_KL = 4e-3


def make_networks(environment, recurrent, seed):
    specs = environment.observation_spec(), environment.action_spec()
    if recurrent:
        small = {"lstm_size": (4,), "input_fc_layer_params": None}
        return (
            ActorDistributionRnnNetwork(*specs, **small, seed=seed),
            ValueRnnNetwork(specs[0], **small, seed=seed + 1),
        )
    small = {"fc_layer_params": (8,), "activation_fn": tf.tanh}
    return (
        ActorDistributionNetwork(*specs, **small, seed=seed),
        ValueNetwork(specs[0], **small, seed=seed + 1),
    )


def make_agent(environment, learning_rate=1e-2, seed=5, recurrent=False, **kwargs):
    actor_net, value_net = make_networks(environment, recurrent, seed)
    settings = {
        "importance_ratio_clipping": 0.2,
        "value_clipping": 0.2,
        "use_gae": True,
        "use_td_lambda_return": True,
        "entropy_regularization": 0.01,
        "gradient_clipping": 0.5,
        "normalize_rewards": False,
        "normalize_observations": False,
        "num_epochs": 1,
        "compute_value_and_advantage_in_train": False,
        "update_normalizers_in_train": False,
        "observation_normalizer": StreamingTensorNormalizer(
            environment.observation_spec()
        ),
        "reward_normalizer": RewardNormalizer(environment.batch_size),
    }
    return PPOClipAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        keras.optimizers.Adam(learning_rate, epsilon=1e-5),
        actor_net,
        value_net,
        seed=seed,
        **{**settings, **kwargs},
    )


def cart_pole(seed=5):
    return native.load("CartPole-v1", BATCH_SIZE, seed, max_episode_steps=20)


def make_loop(
    seed=5, learning_rate=1e-2, environment=None, recurrent=False, agent=(), **kwargs
):
    environment = environment or cart_pole(seed)
    settings = {
        "collect_steps_per_iteration": NUM_STEPS,
        "num_epochs": 3,
        "minibatch_size": 16,
        "target_kl": TARGET_KL,
        "seed": seed,
    }
    made = make_agent(environment, learning_rate, seed, recurrent, **dict(agent))
    return train.OnPolicyLoop(environment, made, **{**settings, **kwargs})


def held(loop, *environments):
    """The values of variables of the agent, and of native environments."""
    parts = [*loop.agent.variables()]
    for environment in environments:
        parts += variables.tracked_variables(environment)
    # The carries of compensated sums are what their rounding leaves.
    return [
        v.numpy() for v in variables.as_tf_variables(parts) if "carry" not in v.name
    ]


def assert_close(ours, theirs, rtol=1e-4, atol=1e-5):
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=rtol, atol=atol)


@pytest.fixture(scope="module")
def plain():
    """A plain loop after its iterations, with what it was then."""
    loop = make_loop()
    loop.info_then = loop.run(ITERATIONS)
    loop.held_then = held(loop, loop.environment)
    return loop


@pytest.fixture(scope="module")
def compiled():
    """A compiled loop after the same iterations."""
    loop = make_loop(jit_compile=True)
    loop.info_then = loop.run(ITERATIONS)
    loop.held_then = held(loop, loop.environment)
    return loop


def test_a_compiled_loop_gives_the_numbers_of_a_plain_one(plain, compiled):
    ours, theirs = plain.info_then, compiled.info_then
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-4)
    assert ours._replace(loss=0) == theirs._replace(loss=0)
    assert_close(plain.held_then, compiled.held_then)
    for mine, other in zip(
        tf.nest.flatten(plain.draw_for_log()),
        tf.nest.flatten(compiled.draw_for_log()),
        strict=True,
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def test_some_iterations_end_at_the_target_kl(plain):
    updates = plain.info_then.train_steps
    assert ITERATIONS < updates < 3 * 4 * ITERATIONS


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_calls_of_all_sizes_share_one_trace(kind, request):
    loop = request.getfixturevalue(kind)
    loop.run(1)
    loop.run(2)
    assert loop.trace_count() == 1


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_a_restored_loop_goes_on_bit_for_bit(kind, request, tmp_path):
    loop = request.getfixturevalue(kind)
    path = tf.train.Checkpoint(**loop.checkpoint_items()).write(str(tmp_path / "c"))
    info = loop.run(3)
    expected = held(loop, loop.environment)
    tf.train.Checkpoint(**loop.checkpoint_items()).read(path)
    # In other calls.
    loop.run(1)
    assert loop.run(2)._replace(loss=0) == info._replace(loss=0)
    for mine, other in zip(held(loop, loop.environment), expected, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.slow  # `test_sweep.py` sweeps an `OffPolicyLoop`.
def test_a_sweeps_runs_are_those_alone(plain):
    result = train.sweep(
        make_loop,
        [5, 7],
        {"learning_rate": [1e-2, 1e-3]},
        num_iterations=ITERATIONS,
        eval_interval=ITERATIONS,
        num_eval_episodes=2,
        num_threads=1,
    )
    alone = make_loop(7, 1e-3)
    alone.run(ITERATIONS)
    for run, expected in enumerate((plain.held_then, held(alone, alone.environment))):
        restored = result.restore(run)
        assert_close(held(restored, restored.environment), expected, 1e-3, 1e-4)


def test_the_log_shows_the_last_minibatch(plain):
    assert plain.can_draw_for_log()
    drawn = plain.draw_for_log()
    assert drawn.reward.shape == [16, 1]
    numbers = plain.agent.diagnose(drawn)
    assert {"approx_kl", "clip_fraction", "entropy", "explained_variance"} <= {*numbers}
    assert 0 < numbers["entropy"] < np.log(2)
    assert not make_loop().can_draw_for_log()


@pytest.mark.slow
@pytest.mark.parametrize(
    "recurrent", [False, pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("learning_rate", "factor"),
    [(1e-12, 1 / 1.5), pytest.param(0.3, 1.5, marks=pytest.mark.slow)],
)
def test_the_kl_penalty_is_adapted_once_an_iteration(learning_rate, factor, recurrent):
    """After the epochs: Schulman et al. 2017, section 4."""
    environment = cart_pole()
    actor_net, value_net = make_networks(environment, recurrent, seed=5)
    agent = PPOKLPenaltyAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        optimizer=keras.optimizers.Adam(learning_rate),
        actor_net=actor_net,
        value_net=value_net,
        num_epochs=1,
        initial_adaptive_kl_beta=0.01,
        adaptive_kl_target=1e-3,
        adaptive_kl_tolerance=0.3,
        compute_value_and_advantage_in_train=False,
        update_normalizers_in_train=False,
        normalize_rewards=False,
        normalize_observations=False,
    )
    loop = train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=NUM_STEPS,
        num_epochs=3,
        minibatch_size=16 if not recurrent else 2 * NUM_STEPS,
        seed=5,
    )
    loop.run(1)
    np.testing.assert_allclose(agent.adaptive_kl_beta, 0.01 * factor, rtol=1e-5)


@pytest.mark.slow  # The test above asks the same of discrete actions and minibatches.
@pytest.mark.parametrize(
    ("name", "jit_compile"),
    [
        ("PPOKLPenaltyAgent", False),
        ("PPOKLPenaltyAgent", True),
        ("PPOKLPenaltyAgent-recurrent", False),
    ],
)
def test_the_kl_penalty_of_whole_rollouts_is_adapted_after_the_epochs(
    name, jit_compile
):
    """Their continuous actions are evaluated in the loop of epochs and after it."""
    environment = native.load("Pendulum-v1", 2, seed=5)
    specs = environment.time_step_spec(), environment.action_spec()
    recurrent = name.endswith("-recurrent")
    actor_net, value_net = make_networks(environment, recurrent, seed=5)
    agent = every_agent.KINDS["PPOKLPenaltyAgent"].make(
        *specs,
        actor_net=actor_net,
        value_net=value_net,
        optimizer=keras.optimizers.Adam(1e-12),
        compute_value_and_advantage_in_train=False,
        update_normalizers_in_train=False,
    )
    loop = train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=4,
        num_epochs=2,
        seed=5,
        jit_compile=jit_compile,
    )
    info = loop.run(2)
    assert info.train_steps == 4
    # The policy stays where it is, so each iteration divides the weight.
    np.testing.assert_allclose(agent.adaptive_kl_beta, 1 / 1.5**2, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("sequence_length", [None, 2])
def test_the_ratios_of_a_recurrent_agent_start_at_one(sequence_length):
    """So a sequence's first state is kept: nothing moves, but the normalizer."""
    loop = make_loop(
        sequence_length=sequence_length,
        learning_rate=1e-12,
        recurrent=True,
        collect_steps_per_iteration=4,
        minibatch_size=8,
        target_kl=1e-9,
    )
    info = loop.run(3)
    assert info.train_steps == 3 * 3 * 2
    assert not loop.can_draw_for_log()
    assert max(
        np.abs(state).max() for state in tf.nest.flatten(loop._position.get()[1])
    )


@pytest.mark.slow
def test_an_agent_that_does_all_in_train_is_given_the_whole_rollout():
    whole = {
        "num_epochs": 2,
        "compute_value_and_advantage_in_train": True,
        "update_normalizers_in_train": True,
    }
    loop = make_loop(agent=whole, num_epochs=1, minibatch_size=None, target_kl=None)
    assert loop.run(2).train_steps == 4
    assert loop.draw_for_log().reward.shape == [BATCH_SIZE, NUM_STEPS + 1]
    # Each frame once: the last one of a rollout is the first one of the next.
    count = loop.agent.observation_normalizer.variables[0]
    assert np.max(count) == 2 * BATCH_SIZE * NUM_STEPS


@pytest.mark.parametrize(
    ("agent", "loop", "text"),
    [
        ({"num_epochs": 3}, {}, "got a PPOClipAgent with num_epochs=3, expected 1"),
        (
            {"update_normalizers_in_train": True},
            {},
            "with update_normalizers_in_train=True, expected False",
        ),
        (
            {"compute_value_and_advantage_in_train": True},
            {"num_epochs": 1},
            "minibatch_size: got 16 for a PPOClipAgent that .* expected None",
        ),
        (
            {"compute_value_and_advantage_in_train": True},
            {"minibatch_size": None},
            "num_epochs: got 3 for a PPOClipAgent that .* expected 1",
        ),
        (
            {"compute_value_and_advantage_in_train": True},
            {"num_epochs": 1, "minibatch_size": None, "sequence_length": 4},
            "sequence_length: got 4 for a PPOClipAgent that .* expected None",
        ),
    ],
)
def test_an_agent_that_trains_in_another_way_is_an_error(agent, loop, text):
    with pytest.raises(ValueError, match=text):
        make_loop(agent=agent, **loop)


class MostlyInvalid(PyEnvironment):
    """Two of twelve actions are valid at each step; another one raises.

    The smaller of the two gives 1. Episodes end after ten steps.
    """

    batched, batch_size = True, 8

    def __init__(self):
        super().__init__()
        self._random = np.random.default_rng(0)
        self._steps = 0

    def observation_spec(self):
        return {
            "x": array_spec.ArraySpec([12], np.float32),
            "mask": array_spec.BoundedArraySpec([12], np.int32, 0, 1),
        }

    def action_spec(self):
        return array_spec.BoundedArraySpec([], np.int32, 0, 11)

    def _observe(self):
        order = self._random.random([self.batch_size, 12]).argsort(axis=1)
        self._mask = (order < 2).astype(np.int32)
        return {"x": self._mask.astype(np.float32), "mask": self._mask}

    def _reset(self):
        self._steps = 0
        return ts.restart(self._observe(), batch_size=self.batch_size)

    def _step(self, action):
        if not np.take_along_axis(self._mask, action[:, None], axis=1).all():
            raise AssertionError(f"got invalid actions among {action}")
        reward = (action == self._mask.argmax(axis=1)).astype(np.float32)
        self._steps += 1
        ends = self._steps == 10
        return ts.TimeStep(
            np.full(8, ts.StepType.LAST if ends else ts.StepType.MID, np.int32),
            reward,
            np.full(8, not ends, np.float32),
            self._observe(),
        )


@pytest.mark.slow
def test_an_agent_with_a_mask_never_takes_an_invalid_action():
    environment = TFPyEnvironment(MostlyInvalid())
    specs = environment.observation_spec()["x"], environment.action_spec()
    agent = PPOClipAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        keras.optimizers.Adam(1e-2),
        *ppo_networks.create_networks(*specs, (32,), seed=0),
        importance_ratio_clipping=0.2,
        entropy_regularization=0.01,
        use_gae=True,
        use_td_lambda_return=True,
        num_epochs=1,
        compute_value_and_advantage_in_train=False,
        update_normalizers_in_train=False,
        observation_and_action_constraint_splitter=lambda o: (o["x"], o["mask"]),
    )
    loop = train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=22,
        num_epochs=4,
        minibatch_size=44,
        seed=0,
    )
    # Chance gives 5 of 10.
    assert loop.run(25).average_return > 7
    # Two actions have at most this entropy.
    assert agent.diagnose(loop.draw_for_log())["entropy"] < np.log(2)


@pytest.mark.slow  # 400 rollouts; compiled, since a plain loop takes ten times as long.
def test_ppo_learns_cart_pole():
    environment = native.load("CartPole-v1", 8, 1)
    agent = make_agent(environment, 1e-3, discount_factor=0.98, lambda_value=0.8)
    loop = train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=32,
        num_epochs=10,
        minibatch_size=64,
        seed=1,
        jit_compile=True,
    )
    assert loop.run(400).average_return > 450


@pytest.mark.parametrize("num_steps", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_short_rollouts_can_be_logged(num_steps):
    environment = cart_pole()
    agent = every_agent.KINDS["A2CAgent"].make(
        environment.time_step_spec(), environment.action_spec()
    )
    loop = train.OnPolicyLoop(
        environment, agent, collect_steps_per_iteration=num_steps, seed=1
    )
    assert loop.run(2).train_steps == 2
    numbers = loop.agent.diagnose(loop.draw_for_log())
    assert numbers
    assert np.all(np.isfinite(list(numbers.values())))
