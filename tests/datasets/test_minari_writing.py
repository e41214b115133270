"""Frames in Minari's files: as in our own, without boundaries, and those not kept."""

import builtins

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from tfrl import datasets, policies
from tfrl.algorithms import worlds
from tfrl.datasets import minari_files, recordings
from tfrl.specs import array_spec

minari = pytest.importorskip("minari")

OBSERVATION = array_spec.ArraySpec((1,), np.float32)
ACTION = array_spec.BoundedArraySpec((), np.int64, 0, 1)


@pytest.fixture(autouse=True)
def sets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def episode(length, terminated=True):
    frames = datasets.frames_of_episode(
        observations=np.arange(length + 1, dtype=np.float32)[:, None],
        actions=np.ones(length, np.int64),
        rewards=np.arange(length, dtype=np.float32),
        terminations=np.arange(length) == (length - 1 if terminated else -1),
    )
    return [
        tf.nest.map_structure(lambda a, i=i: a[i], frames) for i in range(length + 1)
    ]


def write(frames, dataset_id="a-v0"):
    count = datasets.write_minari(frames, dataset_id, OBSERVATION, ACTION)
    assert count == len(frames)
    return list(minari.load_dataset(dataset_id).iterate_episodes())


def test_the_last_frame_stands_in_for_a_boundary_that_is_missing():
    # A replay buffer begins within an episode and ends within another one.
    first, second = write(episode(3)[1:] + episode(4)[:-1])
    np.testing.assert_array_equal(first.observations[:, 0], [1, 2, 3])
    np.testing.assert_array_equal(first.terminations, [False, True])
    np.testing.assert_array_equal(second.observations[:, 0], [0, 1, 2, 3])
    np.testing.assert_array_equal(second.truncations, [False, False, True])
    assert not second.terminations.any()


def test_a_boundary_alone_is_no_episode():
    (only,) = write(episode(2)[-1:] + episode(1) + episode(1)[:1])
    np.testing.assert_array_equal(only.observations[:, 0], [0, 1])


def test_an_error_leaves_the_old_data_set_and_nothing_else(sets):
    write(episode(2))
    half = [frame._replace(discount=np.float32(0.5)) for frame in episode(3)]
    with pytest.raises(ValueError, match=r"^discount: got \[0.5\] in an episode, exp"):
        write(half)
    with pytest.raises(ValueError, match=r"^frames: got 1, expected at least one step"):
        write(episode(1)[:1])
    assert [path.name for path in sets.iterdir()] == ["a-v0"]
    assert minari.load_dataset("a-v0").total_steps == 2
    assert len(write(episode(3))[0].rewards) == 3
    assert [path.name for path in sets.iterdir()] == ["a-v0"]


def test_an_id_has_a_version_and_no_dots():
    assert datasets.minari_folder("space/of/a-v3").parts[-3:] == ("space", "of", "a-v3")
    for wrong in ("a", "../a-v0", "a.b-v0", "/a-v0", ""):
        expected = f"^dataset_id: got {wrong!r}, expected the id of a Minari dataset,"
        with pytest.raises(ValueError, match=expected):
            datasets.minari_folder(wrong)


def test_the_extra_is_named_where_minari_is_missing(monkeypatch):
    def without(name, *args, plain=builtins.__import__):
        if name.partition(".")[0] == "minari":
            raise ImportError(name, name="minari")
        return plain(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"minari is not .*pip install 'tfrl\[minari"):
        datasets.minari_folder("a-v0")


class Walk(gymnasium.Env):
    """Observations in a dict with a tuple; ends by 0, and after 4 steps."""

    observation_space = gymnasium.spaces.Dict(
        {
            "place": gymnasium.spaces.Box(-9, 9, (2,), np.float64),
            "more": gymnasium.spaces.Tuple(
                [
                    gymnasium.spaces.Discrete(9),
                    gymnasium.spaces.Box(0, 255, (3, 4, 3), np.uint8),
                ]
            ),
        }
    )
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {}

    def step(self, action):
        self.steps += 1
        ends = self.np_random.random() < 0.2
        return self._observe(), 0.1 * self.steps, ends, self.steps == 4, {}

    def _observe(self):
        random = self.np_random
        picture = random.integers(0, 256, (3, 4, 3), np.uint8)
        return {"place": random.normal(size=2), "more": (self.steps, picture)}


def play(name, seed=5, num_episodes=3, **options):
    """Returns an environment, and the frames of random actions in it."""
    environment = worlds.make_environment(name, 1, seed, **options)
    policy = policies.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    return environment, recordings.play(environment, policy, num_episodes, seed)


def write_minari(name, algorithm_name="", dataset_id="a-v0", seed=5, **options):
    environment, frames = play(name, **options)
    count = minari_files.write_from(
        environment, frames, dataset_id, seed=seed, algorithm_name=algorithm_name
    )
    return count, minari.load_dataset(dataset_id)


def stacked(frames):
    return tf.nest.map_structure(lambda *x: np.stack(x), *frames.as_numpy_iterator())


@pytest.mark.parametrize(
    ("name", "num_episodes"),
    [
        ("CartPole-v1", 3),
        ("FrozenLake-v1", 3),
        pytest.param("Pendulum-v1", 1, marks=pytest.mark.slow),
        (Walk, 3),
    ],
)
def test_both_formats_hold_the_same_frames_bit_for_bit(name, num_episodes, sets):
    environment, frames = play(name, num_episodes=num_episodes)
    own = str(sets / "own.tfrecord")
    recordings.write(frames, own, recordings.frame_spec(environment))
    count, made = write_minari(name, num_episodes=num_episodes)
    ours = stacked(datasets.load_recordings(own))
    theirs = stacked(
        datasets.load_minari(sets / "a-v0", recordings.frame_spec(environment))
    )
    assert count == len(ours.step_type)
    # Minari has no place for the action at a boundary, which leads nowhere.
    steps = ours.step_type != 2
    for path, left in ours._asdict().items():
        right = getattr(theirs, path)
        if path == "action":
            left, right = left[steps], right[steps]
        tf.nest.assert_same_structure(left, right)
        for a, b in zip(tf.nest.flatten(left), tf.nest.flatten(right), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    # What Minari's own loader sees.
    ends = np.flatnonzero(~steps)
    assert made.total_episodes == len(ends) == num_episodes
    begin = 0
    for end, episode in zip(ends, made.iterate_episodes(), strict=True):
        assert len(episode.rewards) == end - begin
        for given, seen, last in (
            (ours.observation, episode.observations, end + 1),
            (ours.action, episode.actions, end),
            (ours.reward, episode.rewards, end),
        ):
            tf.nest.map_structure(
                lambda a, b, last=last, begin=begin: np.testing.assert_array_equal(
                    a[begin:last], b
                ),
                given,
                seen,
            )
        is_terminated = bool(ours.discount[end - 1] == 0)
        assert episode.terminations[-1] == is_terminated
        assert episode.truncations[-1] != is_terminated
        assert not (episode.terminations | episode.truncations)[:-1].any()
        # The spaces are those of the data.
        first = tf.nest.map_structure(lambda a: a[0], episode.observations)
        if name is not Walk:  # A Discrete of a Tuple is a NumPy array there.
            assert made.observation_space.contains(first)
        assert made.action_space.contains(episode.actions[0])
        begin = end + 1


def test_minari_makes_the_environment_and_its_episodes_again():
    _, made = write_minari("CartPole-v1", "dqn")
    assert made.storage.metadata["algorithm_name"] == "dqn"
    assert made.env_spec.max_episode_steps == 500
    metadata = list(made.storage.get_episode_metadata(range(3)))
    assert metadata[0]["seed"] == 5
    assert "seed" not in metadata[1]
    again = made.recover_environment()
    seed = 5
    for episode in made.iterate_episodes():
        observation, _ = again.reset(seed=seed)
        seed = None
        np.testing.assert_array_equal(observation, episode.observations[0])
        for action, expected in zip(
            episode.actions, episode.observations[1:], strict=True
        ):
            observation, *_ = again.step(action)
            np.testing.assert_array_equal(observation, expected)


def test_an_environment_that_was_registered_by_its_class_is_not_named():
    gymnasium.register("ByClass-v0", entry_point=Walk)
    try:
        count, made = write_minari("ByClass-v0", num_episodes=1)
    finally:
        del gymnasium.registry["ByClass-v0"]
    assert count == len(made[0].rewards) + 1
    assert made.env_spec is None


def test_an_environment_with_other_actions_than_the_frames_is_not_named():
    _, made = write_minari("Pendulum-v1", num_action_bins=5, num_episodes=1)
    assert made.env_spec is None
    assert made.action_space.n == 5


def test_the_id_of_a_run_is_one_of_minaris():
    made = minari_files.default_id("ALE/Pong-v5", "dqn 0.5_replay")
    assert made == "ALE-Pong-v5/dqn-0-5_replay-v0"
    assert datasets.minari_folder(made).name == "dqn-0-5_replay-v0"
