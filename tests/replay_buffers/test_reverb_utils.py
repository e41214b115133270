"""The observers, by the items that they make of a writer's frames."""

import logging
import math

import numpy as np
import pytest
import tensorflow as tf
import tree

from tfrl.drivers import py_driver
from tfrl.environments import batched_py_environment, test_envs
from tfrl.policies import random_py_policy
from tfrl.replay_buffers import reverb_utils
from tfrl.trajectories import trajectory
from tfrl.utils import batched_observer_unbatching

FIRST, MID, LAST = 0, 1, 2


class Column:
    """The values of one field, as a trajectory writer's history gives them."""

    def __init__(self, values):
        self.values = values

    def __getitem__(self, index):
        return Column(self.values[index])


class Writer:
    """Keeps frames as a trajectory writer does, and notes the items made of them."""

    def __init__(self):
        self.frames, self.items, self.calls = [], [], []

    @property
    def history(self):
        columns = zip(*map(tree.flatten, self.frames), strict=True)
        return tree.unflatten_as(self.frames[0], [Column(c) for c in columns])

    def append(self, data):
        self.frames.append(data)
        self.calls.append("append")

    def create_item(self, table, priority, trajectory):
        arrays = [np.stack(column.values) for column in tree.flatten(trajectory)]
        item = tree.unflatten_as(self.frames[0], arrays)
        self.items.append((table, priority, item))

    def flush(self, block_until_num_items=0, timeout_ms=None):
        self.calls.append("flush")

    def end_episode(self):
        self.frames = []
        self.calls.append("end_episode")

    def close(self):
        self.calls.append("close")


class Client:
    """Notes the writers that it gave."""

    def __init__(self):
        self.writers = []
        self.arguments = []

    def trajectory_writer(self, **arguments):
        self.arguments.append(arguments)
        self.writers.append(Writer())
        return self.writers[-1]

    @property
    def items(self):
        return [item for writer in self.writers for item in writer.items]

    @property
    def frames(self):
        """What frames each item is made of: observations, and P for padding."""
        return [
            [
                "P" if step_type == LAST and not number else int(number)
                for number, step_type in zip(
                    item.observation, item.step_type, strict=True
                )
            ]
            for _, _, item in self.items
        ]


@pytest.fixture
def client():
    return Client()


def frame(number, step_type=MID, next_step_type=MID):
    """A frame that observes `number`."""
    return trajectory.Trajectory(
        step_type=np.array(step_type, np.int32),
        observation=np.array(number, np.int32),
        action=np.array(0, np.int32),
        policy_info=(),
        next_step_type=np.array(next_step_type, np.int32),
        reward=np.array(1.0, np.float32),
        discount=np.array(1.0, np.float32),
    )


def drive(observer, steps_per_episode, max_steps):
    environment = test_envs.CountingEnv(steps_per_episode)
    policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    driver = py_driver.PyDriver(environment, policy, [observer], max_steps=max_steps)
    driver.run(environment.reset())


def drive_padded(client, **arguments):
    """Two episodes of three steps, 0 to 3 and 10 to 13, and the first step of one."""
    observer = reverb_utils.ReverbAddTrajectoryObserver(
        client, "table", pad_end_of_episodes=True, **arguments
    )
    drive(observer, 3, 7)
    return client.frames


def test_episodes_are_items_with_their_boundary(client):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 8, priority=3)
    drive(observer, steps_per_episode=3, max_steps=8)
    assert client.arguments == [{"num_keep_alive_refs": 9, "validate_items": True}]
    assert [item[:2] for item in client.items] == [("table", 3.0)] * 2
    assert client.frames == [[0, 1, 2, 3], [10, 11, 12, 13]]
    episode = client.items[0][2]
    assert episode.step_type.tolist() == [FIRST, MID, MID, LAST]
    assert episode.next_step_type.tolist() == [MID, MID, LAST, FIRST]
    assert episode.reward.tolist() == [0.0, 0.0, 1.0, 0.0]
    assert episode.discount.tolist() == [1.0, 1.0, 0.0, 1.0]


def test_reset_writes_an_unfinished_episode_or_drops_it(client):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 8)
    for number in (0, 1):
        observer(frame(number + 1, FIRST))
        observer(frame(number + 2))
        observer.reset(write_cached_steps=number == 0)
        observer.reset()
    assert client.frames == [[1, 2]]


def test_priority_of_new_episodes_can_change(client):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 8, priority=3)
    drive(observer, steps_per_episode=1, max_steps=1)
    observer.reset()
    observer.update_priority(np.float32(0.5))
    drive(observer, steps_per_episode=2, max_steps=2)
    observer.reset()
    assert [item[1] for item in client.items] == [3.0, 0.5]


def test_an_episode_too_long_is_an_error_and_the_next_is_written(client):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 3)
    with pytest.raises(ValueError, match="longer than max_sequence_length=3 frames"):
        drive(observer, steps_per_episode=3, max_steps=4)
    observer(frame(0, FIRST, LAST))
    observer(frame(1, LAST, FIRST))
    assert client.frames == [[0, 1]]


def test_episodes_too_long_are_bypassed_with_a_log(client, caplog):
    observer = reverb_utils.ReverbAddEpisodeObserver(
        client, "table", 4, bypass_partial_episodes=True
    )
    with caplog.at_level(logging.ERROR):
        drive(observer, steps_per_episode=4, max_steps=5)
        drive(observer, steps_per_episode=4, max_steps=5)
        observer.reset(write_cached_steps=False)
        drive(observer, steps_per_episode=3, max_steps=4)
    assert client.frames == [[0, 1, 2, 3]]
    assert [r.message.split(":")[0] for r in caplog.records] == [
        "ReverbAddEpisodeObserver"
    ] * 2


def test_an_episode_that_was_cut_off_is_dropped_with_a_warning(client, caplog):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 8)
    drive(observer, steps_per_episode=3, max_steps=2)
    with caplog.at_level(logging.WARNING):
        drive(observer, steps_per_episode=3, max_steps=4)
    assert client.frames == [[0, 1, 2, 3]]
    assert "dropped 2 frame(s) of an episode that was cut off" in caplog.text


def test_an_episode_whose_boundary_was_not_observed_is_whole(client, caplog):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 8)
    for _ in range(2):
        drive(observer, steps_per_episode=3, max_steps=3)
    assert client.frames == [[0, 1, 2]]
    assert not caplog.records


def test_flush_writes_an_episode_that_has_ended_without_its_boundary(client):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 8)
    frames = [(FIRST, MID), (MID, LAST), (LAST, FIRST), (FIRST, MID)]
    for number, step_types in enumerate(frames):
        observer(frame(number, *step_types))
        observer.flush()
    # The boundary that came after its episode was written is none.
    assert client.frames == [[0, 1]]
    observer.reset()
    assert client.frames == [[0, 1], [3]]


def test_padding_of_the_environment_belongs_to_its_episode(client):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 8)
    for number, step_types in enumerate(
        [(FIRST, LAST), (LAST, LAST), (LAST, LAST), (LAST, FIRST), (FIRST, LAST)]
    ):
        observer(frame(number, *step_types))
    assert client.frames == [[0, 1, 2, 3]]


def test_sequences_overlap_within_an_episode(client):
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, "table", 2)
    drive(observer, steps_per_episode=3, max_steps=4)
    assert client.arguments == [{"num_keep_alive_refs": 3, "validate_items": True}]
    assert client.frames == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("stride_length", "expected"),
    [
        (1, [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]),
        (2, [[0, 1, 2, 3], [2, 3, 4, 5]]),
        (4, [[0, 1, 2, 3]]),
    ],
)
def test_stride_is_how_much_later_the_next_sequence_begins(
    stride_length, expected, client
):
    observer = reverb_utils.ReverbAddTrajectoryObserver(
        client, "table", 4, stride_length
    )
    drive(observer, steps_per_episode=5, max_steps=6)
    assert client.frames == expected


def test_short_episodes_are_dropped_unless_padded(client):
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, "table", 6)
    drive(observer, steps_per_episode=3, max_steps=6)
    assert client.frames == []
    assert drive_padded(client, sequence_length=6) == [
        [0, 1, 2, 3, "P", "P"],
        [10, 11, 12, 13, "P", "P"],
    ]


def test_padding_is_boundary_frames_of_zeros(client):
    drive_padded(client, sequence_length=5)
    episode = client.items[0][2]
    assert episode.step_type.tolist() == [FIRST, MID, MID, LAST, LAST]
    assert episode.next_step_type.tolist() == [MID, MID, LAST, FIRST, FIRST]
    for name in ("observation", "action", "reward", "discount"):
        assert getattr(episode, name)[-1] == 0
        assert getattr(episode, name).dtype == getattr(frame(0), name).dtype


def test_tiles_begin_with_every_frame_up_to_the_boundary(client):
    assert drive_padded(client, sequence_length=3, tile_end_of_episodes=True)[:4] == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, "P"],
        [3, "P", "P"],
    ]
    assert len(client.frames) == 8


@pytest.mark.parametrize(
    ("stride_length", "num_items", "num_frames"),
    [(1, 12, 19), (2, 6, 19), (3, 4, 19), (4, 4, 19)],
)
def test_number_of_tiled_items_and_frames(stride_length, num_items, num_frames, client):
    """Two episodes of five steps, and one step; the numbers are TF-Agents'."""
    observer = reverb_utils.ReverbAddTrajectoryObserver(
        client,
        "table",
        4,
        stride_length,
        pad_end_of_episodes=True,
        tile_end_of_episodes=True,
    )
    drive(observer, steps_per_episode=5, max_steps=11)
    assert len(client.items) == num_items
    assert client.writers[0].calls.count("append") == num_frames
    observer.reset()
    assert client.writers[0].calls.count("append") == num_frames + 3
    # The one frame and its padding make one item more.
    assert len(client.items) == num_items + 1


def test_reset_pads_or_drops_or_refuses_what_remains(client):
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, "table", 4, 4)
    drive(observer, steps_per_episode=5, max_steps=2)
    with pytest.raises(ValueError, match="not enough steps remain in the cache"):
        observer.reset()
    observer.reset(write_cached_steps=False)
    observer.reset()
    assert client.frames == []
    padding = reverb_utils.ReverbAddTrajectoryObserver(
        client, "table", 4, 4, pad_end_of_episodes=True
    )
    drive(padding, steps_per_episode=5, max_steps=2)
    padding.reset()
    assert client.frames == [[0, 1, "P", "P"]]


def test_reset_writes_no_sequence_twice(client):
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, "table", 2)
    drive(observer, steps_per_episode=5, max_steps=2)
    observer.reset()
    assert client.frames == [[0, 1]]


def test_no_sequence_reaches_across_a_driver_that_starts_anew(client):
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, "table", 3)
    drive(observer, steps_per_episode=5, max_steps=2)
    drive(observer, steps_per_episode=5, max_steps=4)
    assert client.frames == [[0, 1, 2], [1, 2, 3]]


def test_sequences_of_all_that_is_observed_reach_across_episodes(client):
    observer = reverb_utils.ReverbTrajectorySequenceObserver(client, "table", 3, 2)
    drive(observer, steps_per_episode=3, max_steps=7)
    assert client.frames == [[0, 1, 2], [2, 3, 10], [10, 11, 12], [12, 13, 20]]
    assert client.writers[0].calls.count("end_episode") == 0


def test_several_tables_share_the_frames(client):
    observer = reverb_utils.ReverbTrajectorySequenceObserver(
        client, ["one", "two"], sequence_length=3, stride_length=3
    )
    drive(observer, steps_per_episode=3, max_steps=6)
    assert [item[0] for item in client.items] == ["one", "two", "one", "two"]
    assert client.writers[0].calls.count("append") == 7
    assert client.frames[0] == client.frames[1] == [0, 1, 2]


def test_frames_may_be_eager_tensors(client):
    observer = reverb_utils.ReverbAddTrajectoryObserver(
        client, "table", 2, pad_end_of_episodes=True
    )
    for number, step_types in enumerate([(FIRST, LAST), (LAST, FIRST)]):
        tensors = tf.nest.map_structure(tf.constant, frame(5 + number, *step_types))
        observer(tensors)
    assert client.frames == [[5, 6]]


def test_close_sends_all_and_open_starts_anew(client):
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 3)
    observer(frame(0, FIRST))
    observer.open()
    observer.flush()
    observer.close()
    observer.close()
    [writer] = client.writers
    assert writer.calls == ["append", "flush", "end_episode", "close"]
    for use in (observer.flush, lambda: observer(frame(1))):
        with pytest.raises(ValueError, match=r"call its open\(\) first"):
            use()
    observer.open()
    # The frames before are forgotten: these three are as many as an episode may have.
    for number, step_types in enumerate([(FIRST, MID), (MID, LAST), (LAST, FIRST)]):
        observer(frame(number, *step_types))
    assert client.frames == [[0, 1, 2]]


def test_signature_and_client_are_at_hand():
    class WithSignature(Client):
        def server_info(self):
            def info(name):
                return type("Info", (), {"signature": f"of {name}"})

            return {name: info(name) for name in ("one", "two")}

    client = WithSignature()
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, ["two", "one"], 2)
    assert observer.get_table_signature() == "of two"
    assert observer.py_client is client


def test_batched_frames_are_refused_and_can_be_unbatched(client):
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, "table", 2)
    with pytest.raises(ValueError, match=r"has shape \(2,\), expected \(\)"):
        observer(tree.map_structure(lambda x: np.stack([x, x]), frame(0)))

    def make():
        return reverb_utils.ReverbAddTrajectoryObserver(client, "table", 2)

    unbatching = batched_observer_unbatching.BatchedObserverUnbatching(make, 2)
    environment = batched_py_environment.BatchedPyEnvironment(
        [test_envs.CountingEnv(steps) for steps in (3, 2)]
    )
    policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    driver = py_driver.PyDriver(environment, policy, [unbatching], max_steps=6)
    driver.run(environment.reset())
    of_each = [
        [item.observation.tolist() for _, _, item in writer.items]
        for writer in client.writers[1:]
    ]
    assert of_each == [[[0, 1], [1, 2], [2, 3]], [[0, 1], [1, 2]]]


def test_frames_in_a_graph_and_what_is_no_frame_are_refused(client):
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, "table", 2)

    @tf.function(autograph=False)
    def in_graph(step_type):
        observer(frame(0)._replace(step_type=step_type))

    with pytest.raises(TypeError, match="call the observer by"):
        in_graph(tf.constant(0))
    with pytest.raises(TypeError, match="got a tuple, expected a Trajectory"):
        observer((1, 2, 3))


@pytest.mark.parametrize("length", [0, -1, 2.0, True])
def test_lengths_are_positive_integers(length, client):
    with pytest.raises((TypeError, ValueError), match="max_sequence_length: expected"):
        reverb_utils.ReverbAddEpisodeObserver(client, "table", length)
    with pytest.raises((TypeError, ValueError), match="sequence_length: expected"):
        reverb_utils.ReverbAddTrajectoryObserver(client, "table", length)
    with pytest.raises((TypeError, ValueError), match="stride_length: expected"):
        reverb_utils.ReverbAddTrajectoryObserver(client, "table", 2, length)


@pytest.mark.parametrize("priority", [-1, math.nan, math.inf, "high", None])
def test_priorities_are_finite_numbers_from_0_up(priority, client):
    with pytest.raises((TypeError, ValueError), match="priority: expected"):
        reverb_utils.ReverbAddTrajectoryObserver(client, "table", 2, priority=priority)
    observer = reverb_utils.ReverbAddEpisodeObserver(client, "table", 2)
    with pytest.raises((TypeError, ValueError), match="priority: expected"):
        observer.update_priority(priority)


@pytest.mark.parametrize("name", ["", [], ["one", ""], [1]])
def test_a_table_has_a_name(name, client):
    with pytest.raises(ValueError, match="table_name: got"):
        reverb_utils.ReverbAddEpisodeObserver(client, name, 2)


def test_tiles_need_padding(client):
    with pytest.raises(ValueError, match="Set pad_end_of_episodes=True"):
        reverb_utils.ReverbAddTrajectoryObserver(
            client, "table", 2, tile_end_of_episodes=True
        )


def test_an_observer_of_ones_own_writes_items_across_episodes(client):
    """As in TF-Agents' example of PPO, which programs copy."""

    class AcrossEpisodes(reverb_utils.ReverbAddTrajectoryObserver):
        def __call__(self, step):
            self._writer.append(step)
            self._cached_steps += 1
            self._write_cached_steps()

    observer = AcrossEpisodes(client, "table", 3, 3)
    for number, ends in enumerate([False, True, True, False, False, True]):
        observer(frame(number, MID, LAST if ends else MID))
    assert client.frames == [[0, 1, 2], [3, 4, 5]]
    observer.reset(write_cached_steps=False)
    assert len(client.items) == 2
