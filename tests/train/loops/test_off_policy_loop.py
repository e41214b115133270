import functools
import pickle
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tests.train import used_loops
from tfrl import testing
from tfrl.agents.dqn import dqn_agent
from tfrl.compilation.python_calls import host_calls
from tfrl.environments import native
from tfrl.environments.boundary import running_steps
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_prioritized_replay_buffer, tf_uniform_replay_buffer
from tfrl.specs import array_spec
from tfrl.train.loops import off_policy_loop, position
from tfrl.trajectories import time_step as ts


class Stateless(testing.CorridorEnvironment):
    """Its state cannot be saved."""

    def get_state(self):
        raise NotImplementedError

    def set_state(self, state):
        raise NotImplementedError


class MakesAFile:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def make_buffer(agent, max_length, seed, replay):
    arguments = agent.collect_data_spec, 1, max_length
    if replay == "uniform":
        return tf_uniform_replay_buffer.TFUniformReplayBuffer(*arguments, seed=seed)
    return tf_prioritized_replay_buffer.TFPrioritizedReplayBuffer(
        *arguments,
        # Annealed by the agent's step, and away from 0, where weights would not show.
        importance_exponent=lambda: (
            0.5 + 0.001 * tf.cast(agent.train_step_counter, tf.float64)
        ),
        seed=seed,
    )


def sources(*slow):
    """Where the samples come from: by what chances, and by which way."""
    cases = [
        (replay, sampling)
        for replay in ("uniform", "prioritized")
        for sampling in ("dataset", "variables")
    ]
    return pytest.mark.parametrize(
        "source",
        [
            pytest.param(
                {"replay": replay, "sampling": sampling},
                marks=[pytest.mark.slow] * ((replay, sampling) in slow),
                id=f"{replay}-{sampling}",
            )
            for replay, sampling in cases
        ],
    )


# A pipeline's draw is out of the graph's sight.
PIPELINES = sources(
    ("uniform", "dataset"), ("uniform", "variables"), ("prioritized", "variables")
)
# Both ways draw the same, as two tests say.
ONE_WAY = sources(
    ("uniform", "dataset"), ("uniform", "variables"), ("prioritized", "dataset")
)


UNIFORM = pytest.mark.parametrize(
    "replay", ["uniform", pytest.param("prioritized", marks=pytest.mark.slow)]
)


def build_loop(
    environment, seed=3, max_length=500, replay="uniform", n_step=1, **kwargs
):
    network = q_network.QNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=(8,),
        seed=seed,
    )
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=network,
        optimizer=keras.optimizers.Adam(1e-2),
        epsilon_greedy=0.3,
        gamma=0.9,
        n_step_update=n_step,
        target_update_period=7,
        seed=seed,
    )
    agent.initialize()
    replay_buffer = make_buffer(agent, max_length, seed, replay)
    arguments = {"initial_collect_steps": 20, "sample_batch_size": 8, **kwargs}
    return off_policy_loop.OffPolicyLoop(
        environment, agent, replay_buffer, seed=seed, **arguments
    )


pool = used_loops.Pool(build_loop)


def make_loop(environment=None, **arguments):
    """Returns a loop as it is built, and its buffer."""
    loop = pool.take(environment or testing.CorridorEnvironment(), **arguments)
    return loop, loop.checkpoint_items()["replay_buffer"]


def weights(loop):
    return [v.numpy().copy() for v in loop.agent.variables()]


def assert_equal_weights(some, others):
    for ours, theirs in zip(some, others, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_iteration_collects_and_trains_as_often_as_asked():
    """And its observers see every frame inside the call."""
    count, awaited = tf.Variable(0), []

    def observe(frame):
        awaited.append(running_steps.describe())
        count.assign_add(tf.size(frame.reward))

    loop, replay_buffer = make_loop(
        collect_steps_per_iteration=3,
        train_steps_per_iteration=2,
        observers=[observe],
        own=True,
    )
    info = loop.run(5)
    assert info.iteration == 5
    assert info.train_steps == 10
    assert int(replay_buffer.num_frames()) == int(count) == 20 + 5 * 3
    # It was traced for the initial steps, and then for the loop.
    assert {*awaited} == {None, "the compilation of the training loop"}
    assert running_steps.describe() is None


@pytest.mark.slow
def test_environment_steps_leave_out_resets():
    loop, replay_buffer = make_loop()
    info = loop.run(30)
    frames = replay_buffer.gather_all()
    boundaries = int(tf.reduce_sum(tf.cast(frames.is_boundary(), tf.int32)))
    assert boundaries > 0
    assert info.environment_steps == 50 - boundaries


@functools.cache
def run_forty(replay="uniform", sampling="dataset"):
    """The weights and actions after 40 iterations in one call.

    To be called before a test makes a loop, which may then be the same one.
    """
    loop, replay_buffer = make_loop(replay=replay, sampling=sampling)
    loop.run(40)
    actions = replay_buffer.gather_all().action.numpy()
    pool.take_back()
    return weights(loop), actions


@pytest.mark.cpu  # Plain loops repeat on a GPU with op determinism alone.
@ONE_WAY
def test_the_same_seed_gives_the_same_weights_in_calls_of_any_sizes(source):
    whole, _ = run_forty(**source)
    parts, _ = make_loop(**source)
    for size in (1, 2, 5, 32):
        parts.run(size)
    assert_equal_weights(whole, weights(parts))
    assert parts.trace_count() == 1


@pytest.mark.slow
def test_another_seed_gives_other_actions():
    _, expected = run_forty()
    loop, second = make_loop(seed=4)
    loop.run(20)
    actions = second.gather_all().action
    assert actions.shape == (1, 40)
    assert np.any(expected[:, :40] != actions)


SEVERAL_UPDATES = {"train_steps_per_iteration": 2, "n_step": 2}


@ONE_WAY
def test_a_restored_loop_goes_on_bit_for_bit(source, tmp_path):
    arguments = {**source, **SEVERAL_UPDATES}
    whole, _ = make_loop(**arguments)
    whole.run(25)
    path = tf.train.Checkpoint(**whole.checkpoint_items()).write(str(tmp_path / "c"))
    whole.run(35)
    expected = weights(whole)
    pool.take_back()
    after, _ = make_loop(**arguments)
    tf.train.Checkpoint(**after.checkpoint_items()).read(path)
    info = after.run(35)
    assert info.iteration == 60
    assert_equal_weights(expected, weights(after))


@pytest.mark.slow
def test_without_the_environments_state_a_restored_loop_begins_a_new_episode(tmp_path):
    before, _ = make_loop(Stateless())
    before.run(7)
    path = tf.train.Checkpoint(**before.checkpoint_items()).write(str(tmp_path / "c"))
    pool.take_back()
    after, replay_buffer = make_loop(Stateless())
    tf.train.Checkpoint(**after.checkpoint_items()).read(path)
    after.run(1)
    frames = replay_buffer.gather_all()
    assert frames.step_type[0, 27] == ts.StepType.FIRST
    # The cut shows, so that no agent takes the two frames for a transition.
    assert frames.next_step_type[0, 26] != frames.step_type[0, 27]


@pytest.mark.slow
def test_a_checkpoint_with_a_pickled_position_begins_a_new_episode(
    tmp_path, monkeypatch
):
    """Earlier versions pickled the position. A pickle can be code: it is not loaded."""
    pickled = pickle.dumps(MakesAFile(str(tmp_path / "created")))
    before, _ = make_loop()
    before.run(7)
    with monkeypatch.context() as earlier:
        earlier.setattr(position.Position, "serialize", lambda self: pickled)
        path = tf.train.Checkpoint(**before.checkpoint_items()).write(
            str(tmp_path / "c")
        )
    expected = weights(before)
    pool.take_back()
    after, replay_buffer = make_loop()
    with pytest.warns(RuntimeWarning, match=r"begins with b'.x80.* with a new episode"):
        tf.train.Checkpoint(**after.checkpoint_items()).read(path)
    assert not (tmp_path / "created").exists()
    assert_equal_weights(expected, weights(after))
    assert after.run(1).iteration == 8
    assert replay_buffer.gather_all().step_type[0, 27] == ts.StepType.FIRST


def test_a_restored_loop_without_its_buffer_collects_again(tmp_path):
    before, _ = make_loop()
    before.run(7)
    path = tf.train.Checkpoint(**before.checkpoint_items(False)).write(
        str(tmp_path / "c")
    )
    pool.take_back()
    after, replay_buffer = make_loop()
    tf.train.Checkpoint(**after.checkpoint_items(False)).read(path)
    after.run(1)
    assert int(replay_buffer.num_frames()) == 21


@pytest.mark.cpu
@PIPELINES
def test_every_sample_is_drawn_after_the_steps_of_its_iteration(source):
    """With one frame kept per draw, a stale or early sample would be another frame."""
    loop, replay_buffer = make_loop(
        **source,
        max_length=2,
        initial_collect_steps=2,
        sample_batch_size=1,
        own=True,
    )
    seen = []

    def remember(cell, newest):
        seen.append((cell, newest))
        return np.int64(0)

    train = loop.agent.train

    def spy(experience, weights=None):
        newest = replay_buffer.gather_all().observation[0]
        called = tf.numpy_function(
            remember, [experience.observation[0], newest], tf.int64
        )
        with tf.control_dependencies([called]):
            return train(experience, weights)

    loop.agent.train = spy
    loop.run(200)
    assert len(seen) == 200
    for sample, newest in seen:
        np.testing.assert_array_equal(sample, newest)


@pytest.mark.cpu
@pytest.mark.parametrize(
    "sampling", ["dataset", pytest.param("variables", marks=pytest.mark.slow)]
)
def test_weights_and_priorities_follow_the_definitions(sampling):
    """Every update against a model of the buffer: a dict of p^alpha by key."""
    loop, replay_buffer = make_loop(
        replay="prioritized", sampling=sampling, train_steps_per_iteration=3, own=True
    )
    seen = []

    def remember(*arrays):
        seen.append(arrays)
        return np.int64(0)

    train, update = loop.agent.train, replay_buffer.update_priorities

    def spy_on_train(experience, weights):
        loss_info = train(experience, weights)
        spied = [weights, loss_info.extra.td_error]
        with tf.control_dependencies([tf.numpy_function(remember, spied, tf.int64)]):
            return loss_info._replace(loss=tf.identity(loss_info.loss))

    def spy_on_update(keys, priorities):
        tf.numpy_function(remember, [keys], tf.int64)
        return update(keys, priorities)

    loop.agent.train = spy_on_train
    replay_buffer.update_priorities = spy_on_update
    loop.run(10)
    model, largest = dict.fromkeys(range(20), 1.0), 1.0
    for k in range(30):
        (weights, td_error), (keys,) = seen[2 * k : 2 * k + 2]
        if k % 3 == 0:
            model[len(model)] = largest**0.6
        assert np.all(keys < len(model) - 1)  # The newest frame has no next one yet.
        total = sum(model.values()) - model[len(model) - 1]
        probability = np.array([model[key] for key in keys]) / total
        expected = ((len(model) - 1) * probability) ** -(0.5 + 0.001 * k)
        np.testing.assert_allclose(weights, np.minimum(expected, 10), rtol=1e-5)
        priorities = np.abs(td_error.astype(np.float64)) + 1e-6
        model.update(zip(keys, priorities**0.6, strict=True))
        largest = max(largest, *priorities)
    stored = replay_buffer.get_priorities(np.arange(len(model)))
    np.testing.assert_allclose(stored, list(model.values()), rtol=1e-10)


@pytest.mark.cpu
@pytest.mark.parametrize(
    "replay", [pytest.param("uniform", marks=pytest.mark.slow), "prioritized"]
)
def test_both_ways_of_sampling_draw_the_same(replay):
    """So a dataset's draw, out of the graph's sight, is after all writes before it."""
    dataset, _ = run_forty(replay, "dataset")
    variables, _ = run_forty(replay, "variables")
    assert_equal_weights(dataset, variables)


@pytest.mark.slow
@UNIFORM
def test_both_ways_of_sampling_draw_the_same_for_several_updates(replay, monkeypatch):
    arguments = {"replay": replay, **SEVERAL_UPDATES}
    dataset, replay_buffer = make_loop(sampling="dataset", own=True, **arguments)
    draws, get_next = [], replay_buffer.get_next
    monkeypatch.setattr(
        replay_buffer,
        "get_next",
        lambda *sizes: draws.append(sizes) or get_next(*sizes),
    )
    variables, _ = make_loop(sampling="variables", **arguments)
    dataset.run(40)
    variables.run(40)
    assert_equal_weights(weights(dataset), weights(variables))
    # Traced once: the loop is the one writer, so it need not be able to draw again.
    assert len(draws) == 1


PLAIN_IS_FAST = pytest.mark.parametrize(
    "jit_compile", some_slow([False, True], fast=[False])
)
COMPILED_IS_FAST = pytest.mark.parametrize(
    "jit_compile", some_slow([False, True], fast=[True])
)
OVERLAPPED = {"overlap": True, "collect_steps_per_iteration": 2, "n_step": 2}


class Meeting(testing.CorridorEnvironment):
    """Once armed, a step and the update of its iteration wait for each other."""

    def __init__(self):
        super().__init__()
        self.both = threading.Barrier(2, timeout=30)
        self.is_armed = False

    def _step(self, action):
        if self.is_armed:
            self.both.wait()
        return super()._step(action)


def call_in_updates(loop, function):
    """Calls a function of the loss before an update of the loop returns it."""
    train, channel = loop.agent.train, host_calls.CallChannel()

    def spy(experience, weights=None):
        loss_info = train(experience, weights)
        (loss,) = host_calls.call(
            lambda loss: [function() or loss],
            [loss_info.loss],
            [tf.TensorSpec([], tf.float32)],
            channel,
        )
        return loss_info._replace(loss=loss)

    loop.agent.train = spy


@pytest.mark.cpu
@COMPILED_IS_FAST
def test_an_overlapped_step_and_the_updates_run_at_the_same_time(jit_compile):
    meeting = Meeting()
    loop, _ = make_loop(meeting, overlap=True, jit_compile=jit_compile, own=True)
    call_in_updates(loop, meeting.both.wait)
    loop.begin()
    meeting.is_armed = True
    # One that came after the other would break the barrier.
    assert loop.run(5).iteration == 5


@pytest.mark.cpu
def test_overlapped_updates_begin_before_the_frame_of_the_last_step():
    loop, replay_buffer = make_loop(**OVERLAPPED, train_steps_per_iteration=3, own=True)
    seen = []
    call_in_updates(loop, lambda: seen.append(int(replay_buffer.num_frames())))
    info = loop.run(4)
    assert seen == [n for n in (21, 23, 25, 27) for _ in range(3)]
    assert info.train_steps == 12
    assert replay_buffer.num_frames() == 28


@pytest.mark.cpu
@pytest.mark.parametrize(
    "replay", ["uniform", pytest.param("prioritized", marks=pytest.mark.slow)]
)
def test_overlapped_iterations_are_the_same_plain_and_compiled(replay):
    found = []
    for jit_compile in (False, True):
        loop, replay_buffer = make_loop(
            **OVERLAPPED, replay=replay, sampling="variables", jit_compile=jit_compile
        )
        loop.run(30)
        found.append((weights(loop), replay_buffer.gather_all()))
        pool.take_back()
    (plain, frames), (compiled, same_frames) = found
    for ours, theirs in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    tf.nest.map_structure(np.testing.assert_array_equal, frames, same_frames)


@pytest.mark.cpu
@COMPILED_IS_FAST
def test_an_overlapped_loop_goes_on_bit_for_bit(jit_compile, tmp_path):
    arguments = {**OVERLAPPED, "jit_compile": jit_compile}
    whole, _ = make_loop(**arguments)
    whole.run(25)
    path = tf.train.Checkpoint(**whole.checkpoint_items()).write(str(tmp_path / "c"))
    whole.run(35)
    expected = weights(whole)
    pool.take_back()
    after, _ = make_loop(**arguments)
    tf.train.Checkpoint(**after.checkpoint_items()).read(path)
    for size in (1, 4, 30):
        after.run(size)
    assert_equal_weights(expected, weights(after))
    assert after.trace_count() == 1


@pytest.mark.cpu
@PLAIN_IS_FAST
def test_the_exception_of_an_overlapped_step_comes_out(jit_compile):
    error = RuntimeError("the corridor collapsed")
    corridor = testing.CorridorEnvironment(errors={30: error})
    loop, _ = make_loop(corridor, overlap=True, jit_compile=jit_compile, own=True)
    with pytest.raises(RuntimeError, match="the corridor collapsed") as raised:
        loop.run(50)
    assert "This is from step 3" in "".join(raised.value.__notes__)
    loop.run(5)


@pytest.mark.cpu
def test_a_failed_update_leaves_no_step_running():
    environment = huge_observations()
    loop, _ = make_loop(environment, overlap=True, own=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="its gradients"):
        loop.run(50)
    taken = environment.num_steps
    loop.environment.reset()
    assert environment.num_steps == taken


def test_steps_inside_of_the_program_cannot_overlap():
    environment = native.load("CartPole-v1")
    with pytest.raises(ValueError, match=r"overlap: got True with a NativeEnv.*, exp"):
        build_loop(environment, overlap=True)


@pytest.mark.slow
def test_losses_are_priorities_where_there_are_no_errors():
    loop, replay_buffer = make_loop(replay="prioritized", own=True)
    train = loop.agent.train

    def without_errors(experience, weights):
        loss_info = train(experience, weights)
        loss = tf.fill([8, 2], -3.0) * [1.0, 2.0]
        return loss_info._replace(extra=dqn_agent.DqnLossInfo(loss, td_error=()))

    loop.agent.train = without_errors
    loop.run(1)
    stored = replay_buffer.get_priorities(np.arange(21)).numpy()
    assert set(np.round(stored, 4)) == {1.0, round((6 + 1e-6) ** 0.6, 4)}


def test_an_agent_that_gives_no_errors_is_refused_a_prioritized_buffer():
    loop, _ = make_loop(replay="prioritized", own=True)
    train = loop.agent.train
    loop.agent.train = lambda *args, **kwargs: train(*args, **kwargs)._replace(extra=())
    with pytest.raises(
        ValueError, match=r"DqnAgent returns neither td_error.*Use a TFUniform"
    ):
        loop.run(1)


@pytest.mark.slow
@UNIFORM
def test_it_learns_to_walk_to_the_goal(replay):
    loop, _ = make_loop(sample_batch_size=32, replay=replay)
    loop.run(600)
    cells = tf.range(5, dtype=tf.float32)[:, tf.newaxis]
    step = ts.TimeStep(
        tf.fill([5], 1), tf.zeros([5]), tf.ones([5]), tf.reshape(cells, [5, 1])
    )
    np.testing.assert_array_equal(loop.agent.policy.action(step).action, [1] * 5)


def test_the_environments_own_exception_comes_out():
    error = RuntimeError("the corridor collapsed")
    loop, _ = make_loop(testing.CorridorEnvironment(errors={30: error}))
    with pytest.raises(RuntimeError, match="the corridor collapsed"):
        loop.run(50)


@pytest.mark.parametrize(
    "name",
    [
        "collect_steps_per_iteration",
        "train_steps_per_iteration",
        "initial_collect_steps",
        "sample_batch_size",
    ],
)
def test_a_number_below_one_is_an_error(name):
    with pytest.raises(
        ValueError, match=f"{name}: expected an integer of at least 1, got 0; give"
    ):
        make_loop(**{name: 0})


def test_a_number_that_is_no_integer_is_an_error():
    with pytest.raises(
        TypeError, match="train_steps_per_iteration: expected an integer"
    ):
        make_loop(train_steps_per_iteration=1.5)


@pytest.mark.parametrize("part", ["environment", "agent", "replay_buffer"])
@pytest.mark.parametrize("value", [None, 3])
def test_a_part_of_another_kind_is_an_error_that_says_what_to_make(part, value):
    loop, _ = make_loop()
    parts = {
        "environment": loop._environment,
        "agent": loop.agent,
        "replay_buffer": loop._replay_buffer,
        part: value,
    }
    with pytest.raises(
        TypeError,
        match=rf"^{part}: got {value} of type {type(value).__name__}, expected a tfrl ",
    ):
        off_policy_loop.OffPolicyLoop(**parts)


def test_unknown_sampling_is_an_error():
    with pytest.raises(ValueError, match="'dataset' or 'variables', got 'magic'"):
        make_loop(sampling="magic")


def test_an_initial_collection_too_short_for_a_sample_is_an_error():
    with pytest.raises(ValueError, match="initial_collect_steps: expected at least 2"):
        make_loop(initial_collect_steps=1)


def test_a_buffer_of_other_specs_is_an_error():
    loop, _ = make_loop()
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        loop.agent.collect_data_spec._replace(
            observation=tf.TensorSpec([2], tf.float32)
        ),
        batch_size=1,
    )
    with pytest.raises(
        ValueError, match=r"replay_buffer.data_spec: .*observation has shape \(2,\)"
    ):
        off_policy_loop.OffPolicyLoop(loop.environment, loop.agent, replay_buffer)


def huge_observations():
    return testing.CountingEnvironment(
        observation_spec=array_spec.ArraySpec((1,), np.float32, "count"),
        observe=lambda count: np.full(1, 1e30, np.float32),
    )


def test_gradients_that_are_not_finite_are_a_short_error_and_change_nothing():
    loop, _ = make_loop(huge_observations(), own=True)
    before = weights(loop)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        loop.run(50)
    assert error.value.message.startswith("experience: the DqnAgent loss is finite, bu")
    for old, new in zip(before, weights(loop), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_buffer_of_another_batch_size_is_an_error():
    loop, _ = make_loop()
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        loop.agent.collect_data_spec, batch_size=2
    )
    with pytest.raises(ValueError, match=r"expected batch_size=1.*got 2"):
        off_policy_loop.OffPolicyLoop(loop.environment, loop.agent, replay_buffer)


def test_a_capacity_that_holds_no_sample_is_an_error():
    with pytest.raises(ValueError, match="num_steps"):
        make_loop(max_length=1)


def test_a_loss_that_is_not_finite_is_a_short_error():
    loop, _ = make_loop(testing.CorridorEnvironment(5, 3e38, 3e38))
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        loop.run(50)
    assert error.value.message.startswith("experience: the DqnAgent loss is not finite")
