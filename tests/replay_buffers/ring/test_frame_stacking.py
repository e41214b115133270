import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import environments, testing
from tfrl.acme.wrappers import frame_stacking as frame_stacking_wrapper
from tfrl.agents.dqn import dqn_agent
from tfrl.environments import atari_wrappers
from tfrl.networks import q_network
from tfrl.replay_buffers import (
    FrameStacking,
    TFPrioritizedReplayBuffer,
    TFUniformReplayBuffer,
)
from tfrl.train.loops import off_policy_loop
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

KINDS = [TFUniformReplayBuffer, TFPrioritizedReplayBuffer]
FRAMES = 3


class Pictures(gymnasium.Env):
    """Random pictures; an episode is as many steps as the last `length`."""

    observation_space = gymnasium.spaces.Box(0, 255, (2, 3, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, rng):
        self._rng = rng

    def reset(self, *, seed=None, options=None):
        return self._picture(), {}

    def step(self, action):
        return self._picture(), 0.0, False, False, {}

    def flips_coin(self):
        return self._rng.random() < 0.5

    def _picture(self):
        return self._rng.integers(0, 256, (2, 3, 1), np.uint8)


class First(atari_wrappers.FrameStack4):
    """Gymnasium's rule: the first frame fills the stack."""

    STACK_SIZE = FRAMES

    def start(self):
        return self.reset()[0]

    def go_on(self):
        return self.step(0)[0]


class Kept(First):
    """EnvPool's rule: half of the episodes go on from the stack before."""

    has_stack = False

    def start(self):
        if self.has_stack and self.unwrapped.flips_coin():
            return self.go_on()
        self.has_stack = True
        return super().start()


class Zeros:
    """The rule of the wrappers for dm_env environments: zeros fill it."""

    def __init__(self, env):
        self._env = env
        self._stacker = frame_stacking_wrapper.FrameStacker(FRAMES)

    def start(self):
        self._stacker.reset()
        return self._stacker.step(self._env.reset()[0][..., 0])

    def go_on(self):
        return self._stacker.step(self._env.step(0)[0][..., 0])


def episodes(wrapper, seed, axis=-1, longest=10):
    """Yields the frames of endless episodes of 1 to `longest` steps."""
    rng = np.random.default_rng(seed)
    wrapped = wrapper(Pictures(rng))
    number = 0
    while True:
        length = int(rng.integers(1, longest + 1))
        types = [ts.StepType.FIRST, *[ts.StepType.MID] * (length - 1), ts.StepType.LAST]
        for i, step_type in enumerate(types):
            stack = wrapped.go_on() if i else wrapped.start()
            yield trajectory.Trajectory(
                step_type,
                {"stack": np.moveaxis(stack, -1, axis), "number": np.int64(number)},
                np.int64(number % 2),
                (),
                types[i + 1] if i < length else ts.StepType.FIRST,
                np.float32(number),
                np.float32(1),
            )
            number += 1


def spec_of(frame):
    return tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), frame)


def streams(wrapper, axis=-1, batch_size=2):
    """Yields frames `[B, ...]` of as many environments."""
    each = [episodes(wrapper, seed, axis) for seed in range(batch_size)]
    for frames in zip(*each, strict=True):
        yield tf.nest.map_structure(lambda *x: np.stack(x), *frames)


def make_buffer(kind, wrapper, axis=-1, max_length=37, **kwargs):
    return kind(
        spec_of(next(episodes(wrapper, 0, axis))),
        2,
        max_length,
        seed=3,
        row_format=FrameStacking(
            FRAMES,
            axis=axis,
            padding="zeros" if wrapper is Zeros else "first",
            is_stacked={"stack": True, "number": False},
        ),
        **kwargs,
    )


def writer(buffer, jit_compile=False):
    """A function that writes frames `[K, B, ...]`, one after the other."""

    @tf.function(jit_compile=jit_compile, autograph=False)
    def write(frames):
        def body(i):
            buffer.add_batch(tf.nest.map_structure(lambda x: x[i], frames))
            return i + 1

        tf.while_loop(
            lambda i: i < tf.shape(frames.reward)[0], body, [0], parallel_iterations=1
        )

    return write


def check_same(given, expected):
    tf.nest.map_structure(
        lambda x, y: np.testing.assert_array_equal(np.asarray(x), y), given, expected
    )


@pytest.mark.parametrize(
    ("wrapper", "axis", "jit_compile", "number"),
    [
        (First, -1, False, 100),
        pytest.param(Kept, -1, True, 100, marks=pytest.mark.slow),
        *(
            pytest.param(*given, 1_000, marks=pytest.mark.slow)
            for given in ((First, -1, False), (Zeros, 0, False), (Kept, -1, True))
        ),
    ],
)
def test_frames_are_the_wrappers_over_many_episodes(wrapper, axis, jit_compile, number):
    kind = KINDS[axis]  # Both kinds occur.
    buffer = make_buffer(kind, wrapper, axis)
    write = writer(buffer, jit_compile)
    sample = tf.function(
        lambda seed: buffer.sample(16, 4, seed), jit_compile=jit_compile
    )
    stream, held, ends, starts = streams(wrapper, axis), [], 0, 0
    while ends < number:
        frames = [next(stream) for _ in range(29)]
        ends += sum(int((f.step_type == ts.StepType.LAST).sum()) for f in frames)
        write(tf.nest.map_structure(lambda *x: np.stack(x), *frames))
        held = [*held, *frames][-37:]
        expected = tf.nest.map_structure(lambda *x: np.stack(x, 1), *held)
        check_same(buffer.gather_all(), expected)
        items, info = sample(tf.constant([ends, 1], tf.int64))
        # A frame's number is its running number in its environment.
        at = info.ids.numpy() - int(held[0].reward[0])
        drawn = expected.observation["stack"][:, at]
        same = np.equal(drawn, items.observation["stack"]).all((2, 3, 4, 5))
        assert same.any(0).all()
        np.testing.assert_array_equal(items.reward, info.ids)
        starts += int(tf.reduce_sum(tf.cast(items.is_first(), tf.int32)))
    assert starts > number / 10
    assert sample.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("jit_compile", [False, True])
def test_stacks_of_four_bytes_are_the_frames_of_an_episode(jit_compile):
    frames = np.random.default_rng(1).integers(0, 256, (15, 2, 3), np.uint8)
    padded = np.concatenate([frames[:1]] * 3 + [frames])
    stacks = np.stack([padded[i : i + 15] for i in range(4)], -1)
    steps = [
        trajectory.Trajectory(
            ts.StepType.MID if i else ts.StepType.FIRST,
            stacks[i],
            np.int64(0),
            (),
            ts.StepType.MID,
            np.float32(i),
            np.float32(1),
        )
        for i in range(15)
    ]
    buffer = TFUniformReplayBuffer(
        spec_of(steps[0]), 1, 15, row_format=FrameStacking(4)
    )
    for step in steps:
        buffer.add_batch(tf.nest.map_structure(lambda x: np.stack([x]), step))
    sample = tf.function(lambda: buffer.sample(64, 2)[0], jit_compile=jit_compile)
    items = sample()
    numbers = items.reward.numpy().astype(int)
    assert set(numbers.ravel()) == set(range(15))
    np.testing.assert_array_equal(items.observation, stacks[numbers])


@pytest.mark.slow
def test_frames_are_those_of_envpool_after_a_lost_life():
    pytest.importorskip("envpool")
    game = environments.suite_envpool.load(
        "Breakout-v5", 2, envpool_kwargs={"episodic_life": True}
    )
    game.seed(1)
    spec = tf.TensorSpec([84, 84, 4], tf.uint8)
    buffer = TFUniformReplayBuffer(
        spec_of(next(episodes(First, 0)))._replace(observation=spec),
        2,
        300,
        row_format=FrameStacking(4),
    )
    time_step, written = game.reset(), []
    for i in range(300):
        following = game.step(np.full([2], 1 + i % 3))
        frame = trajectory.Trajectory(
            time_step.step_type,
            time_step.observation,
            np.zeros([2], np.int64),
            (),
            following.step_type,
            np.zeros([2], np.float32),
            np.ones([2], np.float32),
        )
        buffer.add_batch(frame)
        written.append(frame.observation)
        time_step = following
    held = buffer.gather_all()
    np.testing.assert_array_equal(held.observation, np.stack(written, 1))
    assert np.sum(held.step_type == ts.StepType.FIRST) > 4


@pytest.mark.slow
def test_every_way_of_reading_gives_the_stacks():
    buffer = make_buffer(TFUniformReplayBuffer, First, max_length=6)
    stream = streams(First)
    frames = [next(stream) for _ in range(15)]
    for frame in frames:
        buffer.add_batch(frame)
    held = tf.nest.map_structure(lambda *x: np.stack(x, 1), *frames[-6:])
    expected = held.observation["stack"]
    given = buffer.as_dataset(2, 3, single_deterministic_pass=True)
    windows = [items.observation["stack"] for items, _ in given]
    np.testing.assert_array_equal(np.concatenate(windows, 1), expected)
    single = [
        x.observation["stack"]
        for x, _ in buffer.as_dataset(single_deterministic_pass=True)
    ]
    np.testing.assert_array_equal(np.reshape(single, expected.shape), expected)
    buffer.clear()
    for frame in frames[:2]:
        buffer.add_batch(frame)
    first = buffer.gather_first(3).observation["stack"]
    np.testing.assert_array_equal(first[:, 1], frames[1].observation["stack"])
    assert not np.any(first[:, 2])
    for arguments in ((), (None, 2), (4,)):
        items, info = buffer.get_next(*arguments)
        assert items.observation["stack"].shape[: len(info.ids.shape)] == info.ids.shape


def test_each_frame_is_stored_once():
    spec = spec_of(next(episodes(First, 0)))
    stored = [
        sum(v.shape.num_elements() * v.dtype.size for v in buffer.variables())
        for buffer in (
            TFUniformReplayBuffer(spec, 2, 1_000),
            make_buffer(TFUniformReplayBuffer, First, max_length=1_000),
        )
    ]
    pictures = 2 * 1_000 * 2 * 3
    # The difference are two of three pictures; a row has 8 bytes more for its age.
    # Beside the two frames of context.
    assert stored[0] - stored[1] == pytest.approx(2 * pictures - 2 * 8_000, rel=0.03)


@pytest.mark.parametrize(("wrapper", "padding"), [(First, "zeros"), (Zeros, "first")])
def test_wrong_padding_is_an_error(wrapper, padding):
    buffer = TFUniformReplayBuffer(
        spec_of(next(episodes(wrapper, 0))),
        2,
        9,
        row_format=FrameStacking(
            FRAMES, padding=padding, is_stacked={"stack": True, "number": False}
        ),
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"padding={padding}. Exp"):
        buffer.add_batch(next(streams(wrapper)))


def test_observations_that_no_wrapper_stacked_are_an_error():
    buffer = make_buffer(TFUniformReplayBuffer, First)
    stream = streams(First)
    for _ in range(20):
        frame = next(stream)
        buffer.add_batch(frame)
    bad = frame._replace(step_type=np.full([2], 1, np.int32))
    bad.observation["stack"] = bad.observation["stack"] + np.uint8(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="last frame but one"):
        buffer.add_batch(bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_frames": 1}, "num_frames: expected an integer of at least 2, got 1"),
        ({"axis": 1}, "axis: got 1, expected -1 or 0"),
        ({"padding": "none"}, "padding: got 'none'"),
    ],
)
def test_unknown_settings_are_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        FrameStacking(**arguments)


def test_specs_that_are_no_stacks_are_errors():
    spec = spec_of(next(episodes(First, 0)))
    with pytest.raises(ValueError, match=r"got shape \(\), expected 3 frames along"):
        TFUniformReplayBuffer(spec, 1, 9, row_format=FrameStacking(FRAMES))
    with pytest.raises(TypeError, match="data_spec: got a TensorSpec, expected a Traj"):
        TFUniformReplayBuffer(
            tf.TensorSpec([4]), 1, 9, row_format=FrameStacking(FRAMES)
        )


def train_dqn(kind, row_format, jit_compile, iterations=30, checkpoint=None):
    """Trains a DQN on stacks of a corridor's observations; returns the loop."""
    environment = environments.TFPyEnvironment(
        environments.HistoryWrapper(testing.CorridorEnvironment(), FRAMES)
    )
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            preprocessing_combiner=None,
            fc_layer_params=(8,),
            seed=1,
        ),
        optimizer=keras.optimizers.Adam(0.01),
        seed=1,
    )
    buffer = kind(agent.collect_data_spec, 1, 50, seed=1, row_format=row_format)
    loop = off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        buffer,
        collect_steps_per_iteration=3,
        initial_collect_steps=20,
        sample_batch_size=8,
        seed=1,
        jit_compile=jit_compile,
        sampling="variables",
    )
    if checkpoint is not None:
        checkpoint(loop)
    loop.run(iterations)
    return loop, agent, buffer


def state_of(agent, buffer):
    return [v.numpy() for v in [*agent.variables(), *buffer.variables()]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "jit_compile"),
    [(TFUniformReplayBuffer, False), (TFPrioritizedReplayBuffer, True)],
)
def test_a_dqn_learns_the_same_from_it_and_goes_on_bit_for_bit(
    tmp_path, kind, jit_compile
):
    row_format = FrameStacking(FRAMES, axis=0, padding="zeros")
    _, plain, _ = train_dqn(kind, None, jit_compile)
    loop, agent, buffer = train_dqn(kind, row_format, jit_compile)
    for one, other in zip(plain.variables(), agent.variables(), strict=True):
        # XLA may add in another order.
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)
    path = tf.train.Checkpoint(**loop.checkpoint_items()).write(str(tmp_path / "c"))
    loop.run(5)

    def restore(loop):
        tf.train.Checkpoint(**loop.checkpoint_items()).read(path)

    _, *resumed = train_dqn(kind, row_format, jit_compile, 5, restore)
    for one, other in zip(state_of(agent, buffer), state_of(*resumed), strict=True):
        np.testing.assert_array_equal(one, other)
