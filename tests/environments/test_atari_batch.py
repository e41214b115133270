"""Games on ale-py's threads, beside the wrappers of Gymnasium around a single game."""

import dataclasses
import functools

import gymnasium
import numpy as np
import pytest
import tree

from tfrl import testing
from tfrl.environments import (
    atari_batch,
    atari_console,
    atari_wrappers,
    parallel_py_environment,
    suite_atari,
)
from tfrl.environments.atari_preprocessing import AtariPreprocessing

pytest.importorskip("ale_py")
BREAKOUT = "BreakoutNoFrameskip-v4"
LIVES = {"fire_on_reset": True, "terminal_on_life_loss": True}


class LateLifeLoss(gymnasium.Wrapper):
    """Ends an episode after the four frames in which a life was lost."""

    life_lost = False

    def reset(self, *, seed=None, options=None):
        if self.life_lost and seed is None:
            self.life_lost = False
            return self.picture, {}
        self.life_lost = False
        return self.env.reset(seed=seed, options=options)

    def step(self, action):
        lives = self.unwrapped.ale.lives()
        self.picture, reward, over, truncated, info = self.env.step(action)
        self.life_lost = info["lives"] < lives and not over
        return self.picture, reward, over or self.life_lost, truncated, info


class NoOps:
    """Gives the number of no-ops that another game had, instead of a random one."""

    count = 0

    def integers(self, low, high):
        assert low <= self.count < high
        return self.count


def make_single(name, noop_max=0, fire_on_reset=False, terminal_on_life_loss=False):
    """Makes a game with the wrappers, whose seed and no-ops are given from outside."""
    chosen = [functools.partial(AtariPreprocessing, noop_max=noop_max)]
    chosen += [LateLifeLoss] * terminal_on_life_loss
    chosen += [atari_wrappers.FireOnReset] * fire_on_reset
    single = suite_atari.load(
        name, gym_env_wrappers=[*chosen, atari_wrappers.FrameStack4]
    )
    game = single.unwrapped

    def seed_game(seed):
        game.ale.setInt("random_seed", seed)
        game._np_random = NoOps()

    game.seed_game = seed_game
    return single


def assert_plays_like_singles(name, num_steps, num_envs=1, renders=True, **kwargs):
    """Compares every member with a single game of the same seed and no-ops.

    The pictures in colour, too, are compared at the end if `renders`.

    Returns:
      What happened: the number of rewards, of terminations and of games.
    """
    batch = suite_atari.load_batch(name, max(num_envs, 2), **kwargs)
    assert isinstance(batch, atari_batch.AtariBatch)
    batch.seed(7)
    singles = [make_single(name, **kwargs) for _ in range(num_envs)]
    rng, counts = np.random.default_rng(0), np.zeros(3, int)
    time_step = batch.reset()
    for single, member in zip(singles, batch._members, strict=False):
        single.seed(member.console._seed)
    for step in range(num_steps):
        actions = rng.integers(batch.action_spec().maximum + 1, size=batch.batch_size)
        if step:
            time_step = batch.step(actions)
        for i, single in enumerate(singles):
            events = batch._members[i].console._events
            NoOps.count = next(-1 - event for event in reversed(events) if event < 0)
            expected = single.step(actions[i]) if step else single.reset()
            own = tree.map_structure(lambda leaf, i=i: leaf[i], time_step)
            tree.map_structure(np.testing.assert_array_equal, own, expected)
            counts += [
                own.reward != 0,
                own.is_last(),
                own.is_first() and min(events[-3:]) < 0,
            ]
    if renders:
        pictures = batch.render()
        for i, single in enumerate(singles):
            np.testing.assert_array_equal(pictures[i], single.render())
    batch.close()
    return tuple(counts)


@pytest.mark.parametrize(
    ("name", "kwargs", "least"),
    [
        (BREAKOUT, {"noop_max": 5, **LIVES}, (2, 6, 2)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("ALE/Pong-v5", {}, (3, 0, 1)),
                ("ALE/SpaceInvaders-v5", {"terminal_on_life_loss": True}, (3, 2, 1)),
            )
        ),
    ],
)
def test_frames_are_those_of_the_wrappers(name, kwargs, least):
    counts = assert_plays_like_singles(name, 260, **kwargs)
    assert all(np.array(counts) >= least), counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        (BREAKOUT, {"noop_max": 30, **LIVES}),
        ("ALE/Pong-v5", {}),
        ("ALE/SpaceInvaders-v5", {"terminal_on_life_loss": True}),
    ],
)
def test_10_000_frames_are_those_of_the_wrappers(name, kwargs, monkeypatch):
    # A new seed is tested elsewhere.
    monkeypatch.setattr(atari_batch, "_ACTIONS_FOR_A_SEED", 10**9)
    counts = assert_plays_like_singles(name, 10_000, renders=False, **kwargs)
    assert min(counts) > 5, counts


class Conforms(testing.PyEnvironmentConformance):
    num_steps = 30

    def make_environment(self):
        return load(max_episode_steps=12)


@pytest.mark.slow
def test_games_conform():
    Conforms().run_all()


def load(name=BREAKOUT, seed=3, **kwargs):
    batch = suite_atari.load_batch(name, 2, **{"noop_max": 3, **LIVES, **kwargs})
    batch.seed(seed)
    return batch


@pytest.fixture(scope="module")
def breakout():
    batch = load()
    batch.reset()
    return batch


def walk(batch, seed, num_steps):
    """Returns the time steps after a seed and random actions."""
    rng = np.random.default_rng(0)
    batch.seed(seed)
    return [
        batch.reset(),
        *(batch.step(rng.integers(4, size=2)) for _ in range(num_steps)),
    ]


def test_a_seed_repeats_a_run_and_members_have_the_next_ones(breakout):
    first, again = (walk(breakout, 3, 40) for _ in range(2))
    tree.map_structure(np.testing.assert_array_equal, first, again)
    other = walk(breakout, 4, 0)
    np.testing.assert_array_equal(first[0].observation[1], other[0].observation[0])
    assert (first[0].observation[0] != other[0].observation[0]).any()


def test_games_continue_bit_for_bit(check_resuming, monkeypatch):
    # So many actions that games are continued before and after a new seed.
    monkeypatch.setattr(atari_batch, "_ACTIONS_FOR_A_SEED", 60)
    make = functools.partial(load, "ALE/Breakout-v5", max_episode_steps=70)
    steps = check_resuming(make, 30, 85, more=15)
    assert any(step.is_first().any() for step in steps)


def test_an_end_at_the_limit_begins_another_game():
    batch = load(max_episode_steps=70, discount=0.9)
    batch.reset()
    played, ends, lives = 0, [], []
    while not lives or lives[-1] < 5:
        time_step = batch.step(np.ones(2, int))
        if time_step.is_first()[0]:
            lives.append(batch.get_info()["lives"][0])
            continue
        played += 1
        if time_step.is_last()[0]:
            ends.append((played, float(time_step.discount[0])))
    # Lost lives are terminations, and the game is truncated after its 70 steps.
    num_lost = len(ends) - 1
    assert lives == [*range(4, 4 - num_lost, -1), 5]
    assert [discount for _, discount in ends[:-1]] == [0.0] * num_lost
    assert num_lost > 0
    assert ends[-1] == (70, pytest.approx(0.9))


def test_games_end_after_108_000_frames():
    batch = load("ALE/Pong-v5", noop_max=0)
    batch.reset()
    # FIRE and action 2 have taken eight frames.
    member = batch._members[0]
    assert member._rules.max_num_frames == 108_000
    member._rules = dataclasses.replace(member._rules, max_num_frames=18)
    steps = [batch.step(np.zeros(2, int)) for _ in range(4)]
    assert [step.step_type.tolist() for step in steps] == [
        [1, 1],
        [1, 1],
        [2, 1],
        [0, 1],
    ]
    assert steps[2].discount[0] == 1.0
    assert batch.get_info()["episode_frame_number"].tolist() == [8, 24]


def test_rewards_become_their_signs():
    batch = load("MsPacmanNoFrameskip-v4", clip_rewards=True)
    batch.reset()
    # Each dot counts 10 points.
    steps = [batch.step(np.array([3, 3])) for _ in range(100)]
    assert {float(step.reward[0]) for step in steps} == {0.0, 1.0}


def test_there_are_from_one_to_noop_max_no_ops():
    game, seen = atari_console.Console("breakout", 0.0, noop_max=2), []
    for seed in (0, *[None] * 20):
        game.begin(seed)
        seen.append(game.num_frames)
    assert set(seen) == {1, 2}


def test_observations_may_be_changed(breakout):
    before = walk(breakout, 3, 0)[0].observation
    expected = before[..., 1:].copy()
    before[:] = 7
    after = breakout.step(np.array([2, 3])).observation
    np.testing.assert_array_equal(after[..., :3], expected)


def test_an_action_whose_result_was_not_received_has_been_played(breakout):
    walk(breakout, 3, 0)
    breakout.step(np.array([1, 1]))
    expected = breakout.step(np.array([2, 3]))
    walk(breakout, 3, 0)
    for member in breakout._members:
        member.console.send(1)  # An interrupt came before `receive`.
    found = breakout.step(np.array([2, 3]))
    np.testing.assert_array_equal(
        found.observation[..., 3], expected.observation[..., 3]
    )


def test_a_state_of_other_games_is_refused(breakout):
    walk(breakout, 3, 5)
    state = breakout.get_state()
    state["members"][1]["console"]["picture"][3, 4] += 1
    with pytest.raises(ValueError, match="state: got another picture of breakout than"):
        breakout.set_state(state)
    with pytest.raises(ValueError, match=r"state: got one of other .* that of 2 games"):
        breakout.set_state([{}, {}])


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.ones(3, int), r"action: got shape \(3,\), expected \(2,"),
        (np.array([0, 4]), r"action: got 4 for member 1 of .*, expected .* 0 to 3"),
        (np.array([-1, 0]), "action: got -1 for member 0 of BreakoutNoFrameskip-v4"),
    ],
)
def test_wrong_actions_are_refused(action, message, breakout):
    with pytest.raises(ValueError, match=message):
        breakout.step(action)


def test_a_window_is_refused(breakout):
    with pytest.raises(NotImplementedError, match="mode: got 'human', expected 'rgb"):
        breakout.render("human")


def test_a_new_batch_and_a_closed_one_say_so():
    with load() as batch:
        with pytest.raises(
            ValueError, match=r"was not reset yet.*call reset\(\) first"
        ):
            batch.render()
        assert batch.get_info()["lives"].tolist() == [0, 0]
        batch.reset()
    with pytest.raises(
        RuntimeError, match=r"step: got a call after close\(\) of Break"
    ):
        batch.step(np.zeros(2, int))
    with pytest.raises(RuntimeError, match=r"reset: got a call after close\(\)"):
        batch.reset()


def test_a_game_that_is_registered_with_more_settings_is_for_processes():
    gymnasium.register(
        "HardPong-v0",
        entry_point="ale_py.env:AtariEnv",
        kwargs={"game": "pong", "frameskip": 1, "difficulty": 1},
    )
    try:
        with pytest.raises(
            ValueError, match=r"with difficulty, .*emulator='gymnasium'"
        ):
            suite_atari.load_batch("HardPong-v0", 2)
    finally:
        del gymnasium.registry["HardPong-v0"]


def test_processes_remain_a_choice(monkeypatch):
    made = []
    monkeypatch.setattr(
        parallel_py_environment,
        "ParallelPyEnvironment",
        lambda makers, **_: made.extend(makers),
    )
    suite_atari.load_batch(BREAKOUT, 3, emulator="gymnasium")
    assert len(made) == 3
