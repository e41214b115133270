import dataclasses
import functools
import pickle

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl import testing
from tfrl.environments import native
from tfrl.specs import tensor_spec
from tfrl.utils import nest_utils

FIRST, MID, LAST = 0, 1, 2


# What is made of the same dynamics checks them once.
@functools.cache
def corridor(max_episode_steps=None):
    """Nested states, observations and actions, and random numbers in the steps.

    A member starts at 0, 1 or 2, and walks `left` or not, slipping at random. Its door
    is at 5, and pays 10.
    """

    def initial(random):
        return {"at": tf.cast(3 * random[:, 0], tf.int32), "wind": random[:, 1:]}

    def step(state, action, random):
        slips = random[:, 0] < 0.25
        right = tf.where(slips, False, tf.equal(action["left"], 0))
        at = tf.maximum(state["at"] + tf.where(right, 1, -1), 0)
        done = at >= 5
        return native.Outcome(
            {"at": at, "wind": state["wind"]}, tf.where(done, 10.0, -1.0), done
        )

    def observe(state):
        return {"far": tf.cast(5 - state["at"], tf.float32)[:, None], **state}

    return native.Dynamics(
        initial,
        step,
        observation_spec={
            "far": tensor_spec.BoundedTensorSpec([1], tf.float32, 0, 5),
            "at": tensor_spec.BoundedTensorSpec([], tf.int32, 0, 5),
            "wind": tensor_spec.BoundedTensorSpec([2], tf.float32, 0, 1),
        },
        action_spec={"left": tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)},
        num_initial_randoms=3,
        num_step_randoms=1,
        observe=observe,
        max_episode_steps=max_episode_steps,
    )


@functools.cache
def countdown(max_episode_steps=None):
    """Member states count down by the action; below 1 the episode terminates."""
    return native.Dynamics(
        initial=lambda random: tf.fill([random.shape[0]], 3),
        step=lambda state, action, random: native.Outcome(
            state - action, tf.cast(action, tf.float32), state - action < 1
        ),
        observation_spec=tf.TensorSpec([], tf.int32),
        action_spec=tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3),
        num_initial_randoms=0,
        max_episode_steps=max_episode_steps,
    )


def play(environment, steps, seed=0):
    """Returns the time steps of random actions, in NumPy."""
    spec = environment.action_spec()
    actions = tensor_spec.sample_spec_nest(
        spec, seed=seed, outer_dims=(steps, environment.batch_size)
    )
    return [
        tf.nest.map_structure(
            lambda tensor: tensor.numpy(),
            environment.step(tf.nest.map_structure(lambda a, i=i: a[i], actions)),
        )
        for i in range(steps)
    ]


def assert_equal(steps, others):
    for one, two in zip(tf.nest.flatten(steps), tf.nest.flatten(others), strict=True):
        np.testing.assert_array_equal(one, two)


def differ(steps, others):
    return any(
        not np.array_equal(one, two)
        for one, two in zip(
            tf.nest.flatten(steps), tf.nest.flatten(others), strict=True
        )
    )


CONFORMING = {
    "Acrobot-v1[1]": lambda: native.load("Acrobot-v1", max_episode_steps=3),
    "CartPole-v1[1]": lambda: native.load("CartPole-v1"),
    "CartPole-v1[7]": lambda: native.load("CartPole-v1", batch_size=7),
    "MountainCar-v0[7]": lambda: native.load("MountainCar-v0", 7, max_episode_steps=4),
    "MountainCarContinuous-v0[1]": lambda: native.load("MountainCarContinuous-v0"),
    "Pendulum-v1[7]": lambda: native.load("Pendulum-v1", 7, max_episode_steps=5),
    "corridor[1]": lambda: native.NativeEnvironment(corridor()),
    "corridor[7]": lambda: native.NativeEnvironment(corridor(4), 7, seed=1),
    "countdown[2]": lambda: native.NativeEnvironment(countdown(2), 2),
}


# A test of `test_gymnasium_agreement.py` takes many steps of each environment.
FAST = ("MountainCarContinuous-v0[1]", "corridor[7]", "countdown[2]")


@pytest.mark.parametrize("name", some_slow(CONFORMING, fast=FAST))
def test_it_conforms(name):
    class Suite(testing.TFEnvironmentConformance):
        num_steps = 25

        def make_environment(self):
            return CONFORMING[name]()

    Suite().run_all()


def test_it_holds_observations_that_are_its_state():
    shown, computed = (
        native.NativeEnvironment(dynamics, 2).held_fields
        for dynamics in (countdown(), corridor())
    )
    assert shown == ("step_type", "reward", "discount", "observation")
    assert computed == ("step_type", "reward", "discount")


def test_each_member_ends_and_begins_by_itself():
    environment = native.NativeEnvironment(countdown(), 2)
    environment.reset()
    steps = [environment.step([1, 3]) for _ in range(5)]
    members = [np.stack(x, axis=1) for x in zip(*steps, strict=True)]
    step_type, reward, discount, observation = members
    assert step_type.tolist() == [
        [MID, MID, LAST, FIRST, MID],
        [LAST, FIRST, LAST, FIRST, LAST],
    ]
    assert reward.tolist() == [[1, 1, 1, 0, 1], [3, 0, 3, 0, 3]]
    assert discount.tolist() == [[1, 1, 0, 1, 1], [0, 1, 0, 1, 0]]
    assert observation.tolist() == [[2, 1, 0, 3, 2], [0, 3, 0, 3, 0]]


def test_the_time_limit_truncates_and_restarts():
    environment = native.NativeEnvironment(countdown(max_episode_steps=2))
    environment.reset()
    steps = [environment.step([0]) for _ in range(6)]
    assert [int(s.step_type[0]) for s in steps] == [MID, LAST, FIRST, MID, LAST, FIRST]
    assert [float(s.discount[0]) for s in steps] == [1.0] * 6


def test_a_termination_at_the_time_limit_is_a_termination():
    environment = native.NativeEnvironment(countdown(max_episode_steps=1))
    environment.reset()
    time_step = environment.step([3])
    assert (int(time_step.step_type[0]), float(time_step.discount[0])) == (LAST, 0.0)


def test_dynamics_may_truncate_themselves():
    def step(state, action, random):
        outcome = countdown().step(state, action, random)
        return outcome._replace(truncated=outcome.reward > 1)

    dynamics = dataclasses.replace(countdown(), step=step)
    environment = native.NativeEnvironment(dynamics, 3)
    environment.reset()
    steps = [environment.step([1, 2, 3]) for _ in range(3)]
    # The last one terminates, too.
    assert np.stack([x.step_type for x in steps]).tolist() == [
        [MID, LAST, LAST],
        [MID, FIRST, FIRST],
        [LAST, LAST, LAST],
    ]
    assert np.stack([x.discount for x in steps]).tolist() == [
        [1, 1, 0],
        [1, 1, 1],
        [0, 1, 0],
    ]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_restart_of_the_members_that_need_it_changes_no_number(jit_compile):
    def restart(state, needed, random):
        return nest_utils.where(needed, corridor(4).initial(random), state)

    restarting = dataclasses.replace(corridor(4), restart=restart)
    plain, other = (
        native.NativeEnvironment(dynamics, 5, seed=2)
        for dynamics in (corridor(4), restarting)
    )
    for environment in (plain, other):
        step = tf.function(environment.step, jit_compile=jit_compile, autograph=False)
        environment.reset()
        for _ in range(9):
            step({"left": tf.constant([0, 1, 0, 0, 1])})
    assert_equal(plain.get_state(), other.get_state())


def test_a_reset_interrupts_every_member():
    environment = native.NativeEnvironment(countdown(max_episode_steps=2), 2)
    environment.reset()
    environment.step([1, 3])
    time_step = environment.reset()
    assert time_step.step_type.numpy().tolist() == [FIRST, FIRST]
    assert time_step.observation.numpy().tolist() == [3, 3]
    assert environment.step([1, 1]).step_type.numpy().tolist() == [MID, MID]


def test_the_first_call_resets_whichever_it_is():
    by_step = native.NativeEnvironment(countdown(), 2)
    assert by_step.step([3, 3]).step_type.numpy().tolist() == [FIRST, FIRST]
    by_look = native.NativeEnvironment(countdown(), 2)
    assert by_look.current_time_step().step_type.numpy().tolist() == [FIRST, FIRST]
    assert by_look.step([3, 1]).step_type.numpy().tolist() == [LAST, MID]


def test_the_seed_decides_the_run():
    runs = [
        play(native.NativeEnvironment(corridor(4), 5, seed=seed), 12)
        for seed in (1, 1, 2)
    ]
    assert_equal(runs[0], runs[1])
    assert differ(runs[0], runs[2])


@pytest.mark.slow
def test_without_a_seed_the_global_one_decides():
    runs = []
    for seed in (1, 1, 2):
        tf.random.set_seed(seed)
        runs.append(play(native.NativeEnvironment(corridor(), 3), 3))
    assert_equal(runs[0], runs[1])
    assert differ(runs[0], runs[2])


def test_seeding_makes_it_as_new():
    environment = native.NativeEnvironment(corridor(), 3, seed=1)
    expected = environment.current_time_step(), *play(environment, 6)
    environment.seed(1)
    assert_equal((environment.current_time_step(), *play(environment, 6)), expected)


def test_members_and_episodes_start_apart():
    environment = native.load("CartPole-v1", batch_size=64, seed=0)
    starts = np.concatenate([environment.reset().observation for _ in range(4)])
    assert len(np.unique(starts)) == starts.size


def test_random_numbers_of_the_start_and_of_the_step_are_apart():
    seen = []

    def step(state, action, random):
        seen.append(random)
        return native.Outcome(state, random[:, 0], random[:, 0] < 2)

    dynamics = dataclasses.replace(
        corridor(), step=step, num_initial_randoms=3, num_step_randoms=2
    )
    environment = native.NativeEnvironment(dynamics, 1, seed=0)
    environment.reset()
    seen.clear()
    with_rewards = play(environment, 40)
    rewards = np.concatenate([step.reward for step in with_rewards])
    starts = np.concatenate([step.observation["wind"] for step in with_rewards])
    assert seen[0].shape == (1, 2)
    rewards = rewards[rewards > 0]
    assert len(np.unique(rewards)) == len(rewards) == 20
    assert not np.isin(rewards, starts).any()


def test_a_saved_state_continues_exactly():
    environment = native.NativeEnvironment(corridor(4), 3, seed=1)
    play(environment, 5)
    state = pickle.loads(pickle.dumps(environment.get_state()))
    expected = environment.current_time_step(), *play(environment, 9)
    resumed = native.NativeEnvironment(corridor(4), 3, seed=7)
    resumed.set_state(state)
    assert_equal((resumed.current_time_step(), *play(resumed, 9)), expected)


def test_a_checkpoint_holds_it(tmp_path):
    environment = native.NativeEnvironment(corridor(4), 3, seed=1)
    play(environment, 5)
    path = tf.train.Checkpoint(environment).save(str(tmp_path / "at"))
    expected = play(environment, 9)
    resumed = native.NativeEnvironment(corridor(4), 3, seed=7)
    tf.train.Checkpoint(resumed).restore(path).assert_consumed()
    assert_equal(play(resumed, 9), expected)
    assert not environment.trainable_variables


def test_specs_stay_as_they_were_given():
    dynamics = corridor()
    environment = native.NativeEnvironment(dynamics)
    assert type(environment.observation_spec()) is dict
    assert environment.observation_spec() == dynamics.observation_spec
    assert type(environment.action_spec()) is dict


def test_episodes_begin_in_a_given_state():
    environment = native.NativeEnvironment(countdown(max_episode_steps=2), 2)
    environment.reset()
    environment.step([1, 3])
    time_step = environment.reset_to(np.array([9, 1], np.int32))
    assert time_step.step_type.numpy().tolist() == [FIRST, FIRST]
    assert environment.physical_state().numpy().tolist() == [9, 1]
    assert environment.step([1, 1]).step_type.numpy().tolist() == [MID, LAST]


def test_a_given_state_is_checked():
    environment = native.NativeEnvironment(countdown(), 2)
    with pytest.raises(ValueError, match=r"state: got shape \(3,\), expected \(2,\); "):
        environment.reset_to(np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="state: not like the physical state"):
        environment.reset_to({"a": [1, 2]})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Acrobot-v1", marks=pytest.mark.slow),
        "CartPole-v1",
        pytest.param("Pendulum-v1", marks=pytest.mark.slow),
    ],
)
def test_compiled_and_plain_agree(name):
    environment = native.load(name, batch_size=16, seed=0)
    start = environment.reset().observation.shape, environment.physical_state()
    spec = environment.action_spec()

    def run():
        time_step = environment.reset_to(start[1])
        action = tf.ones([16, *spec.shape], spec.dtype)
        for _ in tf.range(7):
            time_step = environment.step(action)
        return time_step, environment.current_time_step()

    plain = tf.function(run)()
    compiled = tf.function(run, jit_compile=True)()
    for one, two in zip(tf.nest.flatten(plain), tf.nest.flatten(compiled), strict=True):
        np.testing.assert_allclose(one, two, atol=2e-5)


@pytest.mark.slow
def test_compiled_runs_draw_the_same_numbers():
    def run():
        environment.reset()
        return [environment.step(tf.ones([3], tf.int64)) for _ in range(6)]

    runs = []
    for jit_compile in (False, True):
        environment = native.load("CartPole-v1", 3, seed=1, max_episode_steps=2)
        runs.append(tf.function(run, jit_compile=jit_compile, autograph=False)())
    for one, two in zip(*map(tf.nest.flatten, runs), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", native.names())
def test_dynamics_can_be_vectorized_once_more(name):
    dynamics = native.load(name).dynamics
    spec, rng = dynamics.action_spec, np.random.default_rng(0)
    randoms = rng.random((4, 3, dynamics.num_initial_randoms), np.float32)
    action = tf.ones([3, *spec.shape], spec.dtype)

    def run(random):
        outcome = dynamics.step(dynamics.initial(random), action, tf.zeros([3, 0]))
        return *outcome[:3], dynamics.observation(outcome.state)

    # One vectorised check, without a loop over the four.
    at_once = tf.vectorized_map(run, randoms, fallback_to_while_loop=False)
    for stacked, *single in zip(at_once, *map(run, randoms), strict=True):
        np.testing.assert_allclose(stacked, np.stack(single), atol=1e-6)


def test_compiled_episodes_end_and_begin():
    environment = native.NativeEnvironment(countdown(max_episode_steps=2), 2)

    @tf.function(jit_compile=True)
    def step(action):
        return environment.step(action)

    step_types = [step(tf.constant([1, 3])).step_type.numpy() for _ in range(4)]
    assert np.stack(step_types, axis=1).tolist() == [
        [FIRST, MID, LAST, FIRST],
        [FIRST, LAST, FIRST, LAST],
    ]
    assert step.experimental_get_tracing_count() == 1


def test_eager_steps_trace_once():
    environment = native.NativeEnvironment(countdown(), 2)
    for action in ([1, 1], np.array([1, 0], np.int32), tf.constant([2, 1])):
        environment.step(action)
    assert environment._step_function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (
            [1],
            ValueError,
            r"action: got shape \(1,\), expected \(2,\); cast the action",
        ),
        ([0.5, 0.5], TypeError, "action: got dtype float32, expected int32; cast"),
    ],
)
def test_actions_are_checked(action, error, message):
    environment = native.NativeEnvironment(countdown(), 2)
    with pytest.raises(error, match=message):
        environment.step(action)


@pytest.mark.parametrize("in_graph", [False, True])
def test_an_infinite_reward_is_an_error_outside_of_compiled_programs(in_graph):
    def step(state, action, random):
        del random
        reward = 1.0 / tf.cast(state - 2, tf.float32)
        return native.Outcome(state - action, reward, state < 1)

    environment = native.NativeEnvironment(
        dataclasses.replace(countdown(), step=step), batch_size=2
    )
    environment.reset()
    take_step = tf.function(environment.step) if in_graph else environment.step
    take_step(tf.constant([0, 1]))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="reward: got NaN or infinity from the ste"
    ):
        take_step(tf.constant([0, 0]))


def test_dynamics_are_checked_once_for_each_batch_size():
    sizes = []

    def step(state, action, random):
        sizes.append(state.shape[0])
        return countdown().step(state, action, random)

    dynamics = dataclasses.replace(countdown(), step=step)
    for batch_size in (2, 3, 2):
        native.NativeEnvironment(dynamics, batch_size)
    assert sizes == [2, 3]


def test_observations_and_actions_have_elements():
    empty = tensor_spec.BoundedTensorSpec([0], tf.int32, 0, 1)
    for field in ("observation_spec", "action_spec"):
        with pytest.raises(ValueError, match=rf"^{field}: got the shape \(0,\)"):
            native.NativeEnvironment(dataclasses.replace(countdown(), **{field: empty}))


def test_a_batch_has_members():
    with pytest.raises(ValueError, match=r"batch_size: .* at least 1, got 0; "):
        native.NativeEnvironment(countdown(), 0)
