"""The buffer of episodes against a dictionary of lists."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.replay_buffers import EpisodicReplayBuffer

CAPACITY, WRITERS, STEPS = 3, 2, 2
SPEC = {name: tf.TensorSpec([], tf.int64) for name in ("id", "begins", "ends")}
# It is traced once, and emptied by each example.
BUFFER = EpisodicReplayBuffer(
    SPEC,
    CAPACITY,
    begin_episode_fn=lambda items: items["begins"] > 0,
    end_episode_fn=lambda items: items["ends"] > 0,
)
WINDOWS = iter(BUFFER.as_dataset(num_steps=STEPS))
EPISODES = iter(BUFFER.as_dataset())
FLAGS = st.lists(st.booleans(), min_size=WRITERS, max_size=WRITERS)
# Whether each writer's frame begins an episode, and whether it ends one.
WRITES = st.lists(st.tuples(FLAGS, FLAGS), min_size=1, max_size=12)


def refill(writes):
    """Returns the numbers of the frames of the episodes that it should hold, by id."""
    BUFFER.clear()
    ids = BUFFER.create_episode_ids(WRITERS)
    newest = int(BUFFER._store.last_episode)
    held, own = {}, [-1] * WRITERS
    for i, (begins, ends) in enumerate(writes):
        frames = np.arange(WRITERS) + WRITERS * i
        items = {"id": frames, "begins": np.int64(begins), "ends": np.int64(ends)}
        ids = BUFFER.add_batch(items, ids)
        for writer in range(WRITERS):
            if begins[writer] or own[writer] < 0:
                newest += 1
                own[writer] = newest
                held.pop(newest - CAPACITY, None)
                held[newest] = []
        for writer in range(WRITERS):
            if own[writer] in held:
                held[own[writer]].append(int(frames[writer]))
        assert ids.numpy().tolist() == own
    return held


@given(WRITES)
def test_it_holds_the_newest_episodes_in_the_order_of_their_beginnings(writes):
    held = refill(writes)
    expected = [frame for number in sorted(held) for frame in held[number]]
    assert BUFFER.gather_all()["id"].numpy().tolist() == [expected]
    assert int(BUFFER.num_frames()) == len(expected)


@given(WRITES)
def test_samples_are_of_one_episode(writes):
    # The last writes make one episode long enough.
    plain = ([False] * WRITERS, [False] * WRITERS)
    held = refill([*writes, *[plain] * STEPS])
    for _ in range(4):
        items, info = next(WINDOWS)
        frames, episode = items["id"].numpy().tolist(), held[int(info.ids)]
        start = episode.index(frames[0])
        assert frames == episode[start : start + STEPS]
        items, info = next(EPISODES)
        assert items["id"].numpy().tolist() == held[int(info.ids)]


@properties.fewer(0.5)
@given(WRITES, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_a_pass_in_order_gives_the_windows_of_each_episode(writes, steps, shift, drops):
    held = refill(writes)
    BUFFER._window_shift, BUFFER._drop_remainder = shift, drops
    least = steps if drops else 1
    dataset = BUFFER.as_dataset(num_steps=steps, single_deterministic_pass=True)
    got = [items["id"].tolist() for items, _ in dataset.as_numpy_iterator()]
    assert got == [
        frames[start : start + steps]
        for _, frames in sorted(held.items())
        for start in range(0, len(frames) - least + 1, shift)
    ]
