"""EnvPool's environments, beside Gymnasium's own."""

import re
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
import tree

import tfrl
from tests.forks import REPOSITORY
from tfrl import testing
from tfrl.command import listing
from tfrl.environments import suite_envpool, suites, tf_py_environment
from tfrl.environments.gymnasium import envpool_vector_env, state_adapters
from tfrl.specs import array_spec

pytest.importorskip("envpool")

PAIR = 2  # Members of most batches.
RIGHT = np.ones(PAIR, np.int64)


def load(name="CartPole-v1", num_envs=PAIR, seed=3, **kwargs):
    environment = suite_envpool.load(name, num_envs, **kwargs)
    environment.seed(seed)
    return environment


def walk(environment, actions):
    """Returns the first time step and those after each of the actions."""
    return [environment.reset(), *map(environment.step, actions)]


def assert_same(left, right):
    for one, other in zip(left, right, strict=True):
        tree.map_structure(np.testing.assert_array_equal, one, other)


class Conforms(testing.PyEnvironmentConformance):
    num_steps = 30

    def __init__(self, name, num_envs, **kwargs):
        self.make_environment = lambda: load(name, num_envs, **kwargs)


@pytest.mark.parametrize(
    ("name", "num_envs", "kwargs"),
    [
        ("CartPole-v1", 1, {}),
        ("CartPole-v1", 7, {"max_episode_steps": 12, "discount": 0.9}),
        ("Pendulum-v1", 2, {"max_episode_steps": 5}),
        ("FrozenLake-v1", 3, {}),
        ("HalfCheetah-v5", 2, {"max_episode_steps": 9}),
        ("envpool/BinPack-v2", 2, {}),
        ("Play2048-v1", 2, {}),
        ("LaneKeeping-v0", 3, {"max_episode_steps": 7}),
        ("MiniGrid-Empty-5x5-v0", 2, {"max_episode_steps": 8}),
    ],
)
def test_tasks_conform(name, num_envs, kwargs):
    Conforms(name, num_envs, **kwargs).run_all()


def test_an_atari_game_conforms_and_its_pictures_are_channels_last():
    shared = load("Breakout-v5", 2, max_episode_steps=7)
    spec = shared.observation_spec()
    assert (spec.shape, spec.dtype) == ((84, 84, 4), np.uint8)
    assert (spec.minimum, spec.maximum) == (0, 255)
    before = shared.reset().observation
    after = shared.step(np.ones(2, np.int64)).observation
    np.testing.assert_array_equal(after[..., :3], before[..., 1:])
    assert (after[..., 3] != before[..., 3]).any()


def test_specs_are_float32_and_nested():
    environment = load("CheetahRun-v1")
    time_steps = walk(environment, [np.zeros((PAIR, 6), np.float32)])
    assert array_spec.check_arrays_nest(
        time_steps,
        [array_spec.add_outer_dims_nest(environment.time_step_spec(), (2,))] * 2,
    )
    limits = np.finfo(np.float32)
    spec = environment.observation_spec()
    assert {key: (leaf.shape, leaf.dtype) for key, leaf in spec.items()} == {
        "position": ((8,), np.float32),
        "velocity": ((9,), np.float32),
    }
    assert spec["position"].minimum == limits.min
    assert spec["position"].maximum == limits.max
    action = environment.action_spec()
    assert (action.shape, action.dtype) == ((6,), np.float32)
    assert (action.minimum, action.maximum) == (-1, 1)


@pytest.mark.parametrize("channels", [1, 3, 4, 8])
def test_planes_become_channels(channels):
    planes = np.random.default_rng(0).integers(0, 256, (2, channels, 9, 5), np.uint8)
    pictures = envpool_vector_env._channels_last(planes)
    np.testing.assert_array_equal(pictures, np.moveaxis(planes, 1, -1))


def cart_pole(single, observation, action):
    single.state = tuple(observation.astype(float))
    single.steps_beyond_terminated = None
    return single.step(int(action))


def pendulum(single, observation, action):
    cosine, sine, speed = observation.astype(float)
    single.state = np.array([np.arctan2(sine, cosine), speed])
    return single.step(action)


@pytest.mark.parametrize(
    ("name", "follow", "ends"),
    [("CartPole-v1", cart_pole, {0.0, 0.9}), ("Pendulum-v1", pendulum, {0.9})],
)
def test_dynamics_and_ends_are_gymnasiums(name, follow, ends):
    environment = load(name, 4, max_episode_steps=30, discount=0.9)
    single = gymnasium.make(name).unwrapped
    single.reset()
    rng, spec = np.random.default_rng(0), environment.action_spec()
    time_step, steps, seen = environment.reset(), np.zeros(4, int), set()
    for _ in range(100):
        action = array_spec.sample_spec_nest(spec, rng, outer_dims=(4,))
        following = environment.step(action)
        for member in range(4):
            now = tree.map_structure(lambda leaf, i=member: leaf[i], following)
            if time_step.step_type[member] == 2:
                assert (now.step_type, now.reward, now.discount) == (0, 0.0, 1.0)
                steps[member] = 0
                continue
            steps[member] += 1
            observation, reward, terminated, _, _ = follow(
                single, time_step.observation[member], action[member]
            )
            np.testing.assert_allclose(now.observation, observation, atol=2e-5)
            assert now.reward == pytest.approx(reward, abs=1e-4)
            is_last = terminated or steps[member] == 30
            assert now.step_type == (2 if is_last else 1)
            assert now.discount == np.float32(0.0 if terminated else 0.9)
            if is_last:
                seen.add(0.0 if terminated else 0.9)
        time_step = following
    assert seen == ends


def test_an_end_at_the_limit_may_be_a_termination():
    falls = len(walk_to_end(load(num_envs=1))) - 1
    for limit, discount in ((falls - 1, 1.0), (falls, 0.0), (falls + 1, 0.0)):
        environment = load(num_envs=1, max_episode_steps=limit)
        last = walk_to_end(environment)
        assert len(last) - 1 == min(limit, falls)
        assert last[-1].discount == discount
        assert environment.step(RIGHT[:1]).is_first()


def walk_to_end(environment):
    steps = [environment.reset()]
    while not steps[-1].is_last():
        steps.append(environment.step(RIGHT[:1]))
    return steps


def test_members_are_those_of_their_seeds_whatever_the_others_do():
    # Each pushes its cart another way, so episodes end at the limit and before it.
    actions = np.random.default_rng(1).integers(0, 2, (60, 3)) | [0, 1, 0]
    together = walk(load(num_envs=3, seed=8, max_episode_steps=11), actions)
    for member in range(3):
        alone = load(num_envs=1, seed=8 + member, max_episode_steps=11)
        expected = walk(alone, actions[:, member : member + 1])
        ours = [
            tree.map_structure(lambda leaf, i=member: leaf[i : i + 1], step)
            for step in together
        ]
        assert_same(ours, expected)
    ends = np.stack([step.step_type for step in together]) == 2
    assert (ends.any(axis=1) & ~ends.all(axis=1)).any()


def test_seeds_take_effect_at_a_reset_and_may_have_more_than_31_bits():
    environment = load()
    first = walk(environment, [RIGHT] * 3)
    assert_same(walk(load(), [RIGHT] * 3), first)
    # Without a seed the random numbers go on.
    assert (environment.reset().observation != first[0].observation).all()
    environment.seed(3 + 2**31)
    assert environment.step(RIGHT).is_mid().all()
    assert_same(walk(environment, [RIGHT] * 3), first)


def test_without_a_seed_environments_differ():
    starts = [suite_envpool.load("CartPole-v1").reset().observation for _ in range(2)]
    assert (starts[0] != starts[1]).all()


def test_without_a_limit_episodes_go_on():
    environment = load("Pendulum-v1", 1, max_episode_steps=0)
    steps = walk(environment, [np.zeros((1, 1), np.float32)] * 210)
    assert not steps[-1].is_last()


def test_a_limit_that_envpool_ignores_truncates_each_member_by_itself():
    environment = load("Parking-v0", 3, max_episode_steps=9)
    environment.reset()
    played, ends = np.zeros(3, int), 0
    for step in range(60):
        # One drives off, and its episodes may end earlier.
        action = np.zeros((3, 2), np.float32)
        action[0] = 1.0 if step % 7 else 0.3
        following = environment.step(action)
        played = np.where(following.is_first(), 0, played + 1)
        at_limit = played == 9
        assert following.is_last()[at_limit].all()
        assert (following.discount[at_limit] == 1.0).all()
        ends += at_limit.sum()
        assert (played <= 9).all()
    assert ends >= 10


def test_rewards_that_depend_on_the_limit_are_those_of_the_registered_one():
    # MiniGrid's reward is 1 - 0.9 * steps / limit.
    environment = load("MiniGrid-Empty-5x5-v0", 1, seed=0)
    route = [2, 2, 1, 2, 2]  # Forward twice, to the right, forward twice.
    steps = walk(environment, np.array(route)[:, np.newaxis])
    assert steps[-1].reward == pytest.approx(1 - 0.9 * len(route) / 100)
    assert (steps[-1].step_type, steps[-1].discount) == (2, 0.0)


def test_an_own_end_at_the_limit_is_the_truncation_that_envpool_says():
    environment = load("LevelBasedForaging-v0", 1)
    noop = np.zeros((1, 2), np.int32)
    last = walk(environment, [noop] * 100)[-1]
    assert (last.step_type, last.discount) == (2, 1.0)


def test_lives_end_episodes_and_the_limit_ends_the_game():
    environment = load(
        "Breakout-v5",
        1,
        max_episode_steps=100,
        envpool_kwargs={"episodic_life": True, "noop_max": 1},
    )
    time_step, ends, lives = environment.reset(), [], []
    while len(ends) < 6:
        played = environment.get_info()["elapsed_step"][0]
        time_step = environment.step(np.array([1]))
        if time_step.is_last():
            ends.append((played + 1, float(time_step.discount[0])))
        if time_step.is_first():
            lives.append(int(environment.get_info()["lives"][0]))
            assert environment.get_info()["elapsed_step"][0] == (
                0 if lives[-1] == 5 else ends[-1][0]
            )
    # A lost life is a termination; at the limit the next game begins, with five lives.
    assert {end for end in ends if end[1] == 1.0} == {(100, 1.0)}
    assert {0.0, 1.0} == {discount for _, discount in ends}
    at_limit = [number for number, _ in ends[:-1]]
    assert [life == 5 for life in lives] == [number == 100 for number in at_limit]


@pytest.mark.slow
def test_a_life_lost_in_the_step_of_the_limit_ends_the_game():
    kwargs = {"envpool_kwargs": {"episodic_life": True, "noop_max": 1}}
    environment = load("Breakout-v5", 1, **kwargs)
    environment.reset()
    steps = 0
    while not environment.current_time_step().is_last():
        environment.step(np.array([1]))
        steps += 1
    limited = load("Breakout-v5", 1, max_episode_steps=steps, **kwargs)
    walk(limited, [np.array([1])] * steps)
    last = limited.current_time_step()
    assert (last.step_type, last.discount) == (2, 0.0)
    assert limited.step(np.array([1])).is_first()
    info = limited.get_info()
    assert (info["lives"], info["elapsed_step"]) == (5, 0)


def test_a_compiled_program_calls_the_pool_once_for_all_members(monkeypatch):
    environment = load(num_envs=3)
    tf_environment = tf_py_environment.TFPyEnvironment(environment)
    tf_environment.reset()
    pool, calls = environment.gym._pool, []
    monkeypatch.setattr(
        pool, "step", lambda action, *rest: calls.append(1) or step(action, *rest)
    )
    step = type(pool).step.__get__(pool)

    @tf.function(jit_compile=True)
    def run(steps):
        def body(i, total):
            action = tf.ones([3], tf.int64) * tf.cast(i % 2, tf.int64)
            return i + 1, total + tf.reduce_sum(tf_environment.step(action).reward)

        return tf.while_loop(lambda i, _: i < steps, body, (0, 0.0))[1]

    with tf_environment.reraise():
        assert run(5) == 15.0
    assert len(calls) == 5


def test_pictures_of_all_members():
    environment = load()
    environment.reset()
    assert environment.render().shape == (PAIR, 400, 600, 3)
    cheetah = load("HalfCheetah-v5", 1)
    cheetah.reset()
    with pytest.raises(
        NotImplementedError, match=r"render: got HalfCheetah-v5, .* of mujoco.gym, wh"
    ):
        cheetah.render()


def test_its_state_cannot_be_saved_and_the_error_says_so():
    environment = load()
    environment.reset()
    with pytest.raises(
        NotImplementedError,
        match=r"EnvPool keeps the state.*load environments .* by suite_gym",
    ):
        environment.get_state()
    with pytest.raises(NotImplementedError, match="EnvPool keeps the state"):
        state_adapters.set_state(
            environment.gym,
            {
                "classes": [
                    "tfrl.environments.gymnasium.envpool_vector_env:EnvPoolVectorEnv"
                ],
                "states": [None],
                "random": None,
            },
        )


def test_a_closed_environment_says_so():
    with load() as environment:
        environment.reset()
    with pytest.raises(RuntimeError, match=r"step: got a call after close\(\)"):
        environment.step(RIGHT)
    with pytest.raises(RuntimeError, match=r"reset: got a call after close\(\)"):
        environment.reset()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.ones(3, np.int64), r"action: got shape \(3,\), expected \(2,"),
        (np.array([1, 2]), "action: got 2 for member 1 of CartPole-v1, expected an in"),
        (np.array([-1, 1]), "action: got -1 for member 0 of CartPole-v1"),
    ],
)
def test_wrong_actions_are_refused(action, message):
    environment = load()
    environment.reset()
    with pytest.raises(ValueError, match=message):
        environment.step(action)


def test_a_mask_in_the_info_is_a_part_of_the_observation():
    environment = load("Play2048-v1", 2)
    assert environment.observation_spec()["action_mask"].shape == (4,)
    time_step, illegal = environment.reset(), 0
    for step in range(40):
        mask = time_step.observation["action_mask"]
        told = environment.get_info()["legal_action_mask"]
        np.testing.assert_array_equal(mask, told)
        illegal += (mask == 0).sum()
        time_step = environment.step(mask.argmax(axis=-1) if step % 3 else RIGHT)
    assert illegal


def test_a_class_trains_evaluates_and_films_by_a_name():
    ppo = tfrl.PPO("envpool/CartPole-v1", num_envs=2, jit_compile=False, seed=0)
    ppo.learn(64, progress=False)
    assert ppo.environment.batch_size == 2
    assert ppo.evaluate(3).lengths.shape == (3,)
    assert ppo.world.has_time_limit(ppo.world.make_evaluation(1, 0))
    assert ppo.world.make_film() is not None
    assert tfrl.PPO("envpool/HalfCheetah-v4").world.make_film() is None


def test_an_agent_takes_the_legal_actions_of_a_task_alone():
    ppo = tfrl.PPO("envpool/Knapsack-v1", num_envs=2, jit_compile=False, seed=0)
    ppo.learn(128, progress=False)
    environment = ppo.world.make_evaluation(4, 1)
    time_step, policy = environment.reset(), ppo.agent.policy
    for _ in range(20):
        action = policy.action(time_step).action.numpy()
        legal = time_step.observation["action_mask"].numpy()
        goes_on = ~time_step.is_last().numpy()
        assert legal[np.arange(4), action].astype(bool)[goes_on].all()
        time_step = environment.step(action)


def test_several_choices_are_chosen_one_by_one_or_numbered():
    name = "envpool/RubiksCube-v0"
    assert suites.find_action_space(name) == gymnasium.spaces.MultiDiscrete([6, 1, 3])
    assert tfrl.DQN(name).environment.action_spec().maximum == 6 * 1 * 3 - 1
    environment = load(name, 2)
    environment.reset()
    environment.step(np.array([[5, 0, 2], [0, 0, 0]]))
    with pytest.raises(
        ValueError, match=r"action: got \[0 1 0\] for member 1 of Rubiks"
    ):
        environment.step(np.array([[5, 0, 2], [0, 1, 0]]))


def test_games_end_with_lives_and_have_signs_as_rewards_in_training_alone():
    for is_training in (True, False):
        game = suites.load("envpool/Breakout-v5", 1, is_training=is_training)
        options = game.gym._options
        assert options.get("episodic_life", False) is is_training
        assert options.get("reward_clip", False) is is_training


def test_presets_are_those_of_the_kind_of_a_task():
    kinds = {
        "Pong-v5": "pictures",
        "CarRacing-v3": "pictures",
        "HalfCheetah-v4": "continuous control beyond classic size",
        "CartPole-v1": None,
        "MiniGrid-Empty-5x5-v0": None,
    }
    for name, kind in kinds.items():
        assert suites.kind_of(f"envpool/{name}") == kind
    assert suites.find_action_space("envpool/Basic-v1").n == 6  # Buttons of VizDoom.


@pytest.mark.slow
def test_a_name_is_checked_without_tensorflow():
    code = """
import sys
from tfrl.environments import suites
assert suites.find_action_space("envpool/HalfCheetah-v4").shape == (6,)
assert "tensorflow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("HalfCheeta-v4", "got 'envpool/HalfCheeta-v4'.*mean envpool/HalfCheetah-v4"),
        ("", "got 'envpool/', expected a task of EnvPool; envpool.list_all_envs"),
        ("Go9x9-v1", "got 'Go9x9-v1', a task of 2 players, .* one player is supported"),
        ("Cig-v1", "got 'envpool/Cig-v1', expected another task, because EnvPool ends"),
    ],
)
def test_names_that_cannot_be_loaded_are_told_before_a_run(name, message):
    with pytest.raises(ValueError, match=message):
        suites.find_action_space(f"envpool/{name}")


def test_the_listing_has_every_task_after_the_prefix(capsys):
    import envpool

    listing.main(["environments", "envpool/"])
    listed = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert listed == sorted(f"envpool/{task}" for task in envpool.list_all_envs())
    listing.main(["environments", "lunar"])
    assert re.search(
        r"envpool/\.\.\. +tfrl list environments envpool/", capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("CartPol-v1", {}, "environment_name: got 'CartPol-v1'.*mean CartPole-v1"),
        ("ALE/Pong-v5", {}, "environment_name: got 'ALE/Pong-v5'.*mean Pong-v5"),
        ("Nothing", {}, r"environment_name: .*envpool.list_all_envs\(\) lists"),
        ("CartPole-v1", {"num_envs": 0}, r"num_envs: .* got 0"),
        ("CartPole-v1", {"max_episode_steps": -1}, r"max_episode_steps: .* got -1"),
        (
            "CartPole-v1",
            {"envpool_kwargs": {"seed": 3}},
            r"envpool_kwargs: got 'seed', expected .*; call seed\(...\) of the",
        ),
        (
            "CartPole-v1",
            {"envpool_kwargs": {"frameskip": 3}},
            "envpool_kwargs: got frameskip, expected options of CartPole-v1; choose",
        ),
        (
            "CartPole-v1",
            {"envpool_kwargs": {"base_path": 5}},
            "envpool_kwargs: got 5 of type int for 'base_path', expected a str",
        ),
        (
            "Pong-v5",
            {"envpool_kwargs": {"task": "tetris"}},
            "envpool_kwargs: got 'task', expected .*; give load the argument envi",
        ),
        ("Go9x9-v1", {}, "got 'Go9x9-v1', (a task of 2 players|expected a task)"),
    ],
)
def test_what_cannot_be_loaded_is_an_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        suite_envpool.load(name, **kwargs)


@pytest.mark.parametrize(
    ("name", "option", "value", "message"),
    [
        ("CartPole-v1", "num_threads", -1, "expected an integer of at least 0, got -1"),
        ("CartPole-v1", "num_threads", 10**6, "got 1000000, expected at most 1000; "),
        ("Pong-v5", "num_threads", np.int64(-1), "expected .* at least 0, got -1"),
        ("Pong-v5", "stack_num", 0, "expected an integer of at least 1, got 0; .* 4"),
        ("Pong-v5", "stack_num", -1, "expected an integer of at least 1, got -1; .* 4"),
        ("Pong-v5", "noop_max", 0, "expected an integer of at least 1, got 0; .* 30"),
        ("Pong-v5", "img_height", 0, "expected an integer of at least 1, got 0; .* 84"),
        ("Pong-v5", "img_width", -3, "expected an integer of at least 1, got -3"),
        ("Pong-v5", "frame_skip", 0, "expected an integer of at least 1, got 0; .* 4"),
        ("Pong-v5", "base_path", "/nowhere", "got '/nowhere', expected a folder with"),
        (
            "Pong-v5",
            "base_path",
            "",
            "got '', expected a folder with .* atari/roms/.*b",
        ),
        ("HalfCheetah-v5", "base_path", "/nowhere", "got '/nowhere', expected a fold"),
    ],
)
def test_options_of_which_the_process_would_die_are_refused(
    name, option, value, message
):
    with pytest.raises(ValueError, match=rf"^envpool_kwargs\['{option}'\]: {message}"):
        suite_envpool.load(name, envpool_kwargs={option: value})


@pytest.mark.slow
def test_the_files_of_a_task_may_lie_elsewhere(tmp_path):
    import envpool

    own = envpool.make_spec("Pong-v5").config.base_path
    (tmp_path / "copy").symlink_to(own)
    load("Pong-v5", envpool_kwargs={"base_path": str(tmp_path / "copy")}).reset()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"size": 1}, pytest.param({"env_name": "no"}, marks=pytest.mark.slow)]
)
def test_options_that_only_envpool_knows_are_tried_in_another_process(options):
    name = "MiniGrid-Empty-5x5-v0"
    with pytest.raises(
        ValueError,
        match=rf"^envpool_kwargs: got {options} for {name}, with which a process was "
        "killed by SIGABRT when it made the task, expected options",
    ):
        suite_envpool.load(name, envpool_kwargs=options)
