"""Many runs in one program: each gives the results that it gives alone."""

import functools
import os
import shutil
import signal
import tempfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses, train
from tfrl.agents import DdqnAgent, DqnAgent, R2d2Agent, ReinforceAgent
from tfrl.environments import TFPyEnvironment, native, suite_gym
from tfrl.eval import evaluate
from tfrl.networks import ActorDistributionNetwork, QNetwork, QRnnNetwork
from tfrl.replay_buffers import (
    FrameStacking,
    TFPrioritizedReplayBuffer,
    TFUniformReplayBuffer,
)
from tfrl.specs import tensor_spec
from tfrl.system import directory_lock, file_lock
from tfrl.train.sweeps import members
from tfrl.utils import common, variables

ITERATIONS = 30
RECURRENT = {
    "input_fc_layer_params": (4,),
    "lstm_size": (4,),
    "output_fc_layer_params": None,
}


def make_loop(
    seed,
    learning_rate=1e-2,
    gamma=0.9,
    epsilon=0.2,
    *,
    agent_class=DqnAgent,
    buffer_class=TFUniformReplayBuffer,
    batch_size=1,
    layer=6,
    capacity=50,
    environment=None,
    agent_settings=(("target_update_period", 7),),
    **kwargs,
):
    """A DQN loop on short CartPole episodes, all of whose numbers are in variables."""
    environment = environment or native.load(
        "CartPole-v1", batch_size, seed, max_episode_steps=30
    )
    agent = agent_class(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=QNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(layer,),
            seed=seed,
        ),
        optimizer=keras.optimizers.Adam(learning_rate),
        epsilon_greedy=tf.Variable(epsilon),
        gamma=tf.Variable(gamma),
        seed=seed,
        **dict(agent_settings),
    )
    replay_buffer = buffer_class(
        agent.collect_data_spec, batch_size=batch_size, max_length=capacity, seed=seed
    )
    settings = {
        "seed": seed,
        "initial_collect_steps": 20 * batch_size,
        "sample_batch_size": 8,
        "sampling": "variables",
    }
    return train.OffPolicyLoop(environment, agent, replay_buffer, **settings | kwargs)


def assert_as_alone(result, run, alone):
    """Compares the run with a loop: agent, buffer, environment and counters."""
    restored = result.restore(run)
    for found, expected in zip(
        held_variables(restored), held_variables(alone), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(restored.info(0.0), alone.info(0.0), rtol=1e-6)


def held_variables(loop):
    items = loop.checkpoint_items()
    parts = items["agent"], items["replay_buffer"], loop.environment
    return [v for part in parts for v in variables.tracked_variables(part)]


# Five runs on two threads, so that one thread has a run to spare.
SEEDS = [5, 5, 5, 8, 5]
SWEPT = {
    "learning_rate": [1e-2, 1e-3, np.inf, 1e-2, 1e-2],
    "gamma": [0.9, 0.9, 0.9, 0.5, 0.9],
    "epsilon": [0.0, 0.5, 0.2, 0.2, 0.0],
}
# The run with an infinite learning rate loses its weights at once.
LOST, WHOLE = 2, [0, 1, 3, 4]
CALLED = []
TRACED = []


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """A folder with what the sweep's folder held at each evaluation."""
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def result(tmp_path_factory, checkpoints):
    folder = tmp_path_factory.mktemp("sweep")
    iterate = train.OffPolicyLoop.iterate

    def callback(iteration, returns):
        CALLED.append((iteration, returns))
        shutil.copytree(folder, checkpoints / str(iteration))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            train.OffPolicyLoop,
            "iterate",
            lambda loop, *position: TRACED.append(loop) or iterate(loop, *position),
        )
        return run_sweep(callback, folder, checkpoint_interval=12)


def run_sweep(callback, directory, num_iterations=ITERATIONS, **kwargs):
    return train.sweep(
        make_swept_loop,
        SEEDS,
        SWEPT,
        num_iterations=num_iterations,
        eval_interval=12,
        num_eval_episodes=3,
        num_threads=2,
        callback=callback,
        directory=directory,
        **kwargs,
    )


def make_swept_loop(seed, learning_rate, gamma, epsilon):
    loop = make_loop(seed, 1e-2, gamma, epsilon)
    # The agent's constructor refuses a rate that is not finite.
    loop.agent._optimizer.optimizer.learning_rate = learning_rate
    return loop


def run_alone(run):
    """The loop of a run after all iterations, and its mean losses."""
    return trained_alone(SEEDS[run], *(values[run] for values in SWEPT.values()))


@functools.cache
def trained_alone(*arguments, calls=(12, 12, 6)):
    """A loop that has what another one, which is traced, has done in its place."""
    loop, trainer = make_swept_loop(*arguments), traced_loop()
    with tempfile.TemporaryDirectory() as folder:
        copy(loop, trainer, folder)
        losses = [trainer.run(number).loss for number in calls]
        copy(trainer, loop, folder)
    return loop, losses


@functools.cache
def traced_loop():
    return make_swept_loop(1, 1.0, 1.0, 1.0)


def copy(source, target, folder):
    """Gives a loop all that another one holds."""
    path = tf.train.Checkpoint(**source.checkpoint_items()).write(f"{folder}/copied")
    tf.train.Checkpoint(**target.checkpoint_items()).read(path).assert_consumed()
    for copied, original in zip(
        held_variables(target), held_variables(source), strict=True
    ):
        # A checkpoint leaves out the environment of a loop that has not begun.
        variables.as_tf_variable(copied).assign(variables.as_tf_variable(original))


@pytest.mark.parametrize("run", WHOLE)
def test_each_run_is_what_the_loop_comes_to_alone(result, run):
    assert_as_alone(result, run, run_alone(run)[0])


@pytest.mark.slow
def test_a_run_that_takes_anothers_place_is_what_it_comes_to_alone():
    """With counters of its own; the run beside it goes on."""
    first, other = ({k: v[run] for k, v in SWEPT.items()} for run in (0, 3))
    runs = members.Members(
        make_swept_loop,
        [SEEDS[1], SEEDS[0]],
        {name: [SWEPT[name][1], SWEPT[name][0]] for name in SWEPT},
        num_eval_episodes=3,
        num_threads=1,
    )
    runs.start()
    runs.advance(12)
    runs.replace({0: (SEEDS[3], other)})
    losses = [runs.advance(number)[0] for number in (12, 12, 6)]
    alone, alone_losses = run_alone(3)
    np.testing.assert_allclose([loss[0] for loss in losses], alone_losses, rtol=1e-4)
    assert_holds(runs, 0, alone)
    longer, longer_losses = trained_alone(
        SEEDS[0], *first.values(), calls=(12, 12, 12, 6)
    )
    np.testing.assert_allclose(
        [loss[1] for loss in losses], longer_losses[1:], rtol=1e-4
    )
    assert_holds(runs, 1, longer)


def assert_holds(runs, run, alone):
    """Compares what the runs hold with a loop: agent, buffer and environment."""
    for variable, values in zip(runs.variables, runs.final_values(), strict=True):
        variable.assign(values[run])
    for found, expected in zip(
        held_variables(runs.loop), held_variables(alone), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert runs.loop.info().environment_steps == alone.info().environment_steps


def test_a_run_that_loses_its_weights_shows(result):
    """And does no harm to the others, which are what they come to alone."""
    shown = np.isfinite(result.losses)
    np.testing.assert_array_equal(shown[WHOLE], [[True] * 3] * len(WHOLE))
    np.testing.assert_array_equal(shown[LOST], [False] * 3)


def test_the_result_has_a_row_for_each_run_and_a_column_for_each_evaluation(result):
    assert result.seeds == (5, 5, 5, 8, 5)
    assert result.hyperparameters["gamma"] == (0.9, 0.9, 0.9, 0.5, 0.9)
    np.testing.assert_array_equal(result.iterations, [12, 24, 30])
    np.testing.assert_array_equal(result.environment_steps[:, 0] > 12, [True] * 5)
    assert result.environment_steps.shape == (5, 3)
    for values in (result.returns, result.losses):
        assert values.shape == (5, 3)
        assert values.dtype == np.float32
    assert np.isfinite(result.returns).all()


def test_the_returns_are_those_of_whole_episodes(result):
    # CartPole pays 1 a step, 30 at most; three episodes are averaged.
    assert (result.returns >= 5).all()
    assert (result.returns <= 30).all()
    sums = result.returns * 3
    np.testing.assert_allclose(sums, np.round(sums), rtol=1e-6)


def test_the_last_loss_is_the_mean_since_the_evaluation_before(result):
    np.testing.assert_allclose(result.losses[3], run_alone(3)[1], rtol=1e-4)


def test_the_steps_are_those_that_the_loop_counts(result):
    for run in WHOLE:
        assert result.environment_steps[run, -1] == run_alone(run)[0].info()[2]


def test_the_callback_is_told_after_each_evaluation(result):
    assert [done for done, _ in CALLED] == [12, 24, 30]
    for column, (_, returns) in enumerate(CALLED):
        np.testing.assert_array_equal(returns, result.returns[:, column])


def test_a_restored_runs_policy_acts_as_that_run(result):
    observation = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    alone_environment = native.load("CartPole-v1", 200)
    time_step = alone_environment.reset()._replace(observation=observation)
    actions = []
    for run in (3, 0, 3):
        found = result.restore(run).agent.policy.action(time_step).action
        expected = run_alone(run)[0].agent.policy.action(time_step).action
        assert np.mean(found == expected) > 0.99  # Ties may go either way.
        actions.append(found.numpy())
    assert (actions[0] == actions[2]).all()
    assert (actions[0] != actions[1]).any()


def test_a_restored_run_goes_on(result):
    loop = result.restore(1)
    before = loop.info()
    assert before.iteration == before.train_steps == ITERATIONS
    after = loop.run(5)
    assert (after.iteration, after.train_steps) == (35, 35)
    assert result.restore(0).iteration == ITERATIONS


@pytest.mark.slow
def test_a_sweep_goes_on_to_the_numbers_of_one_without_a_pause(
    result, checkpoints, tmp_path
):
    """One that was killed at 12 goes on, and is interrupted at 24."""
    go_on_to_an_interrupt(checkpoints, tmp_path)


@pytest.mark.slow  # It traces all programs again.
def test_a_sweep_that_has_reached_its_end_gives_its_results(
    result, checkpoints, tmp_path
):
    folder, called = go_on_to_an_interrupt(checkpoints, tmp_path)
    ended = run_sweep(lambda i, _: called.append(i), folder, num_iterations=24)
    assert called == [24]
    np.testing.assert_array_equal(ended.iterations, [12, 24])
    for name in ("environment_steps", "returns", "losses"):
        np.testing.assert_array_equal(
            getattr(ended, name), getattr(result, name)[:, :2]
        )
    expected = contents(checkpoints / "24")
    for i, array in enumerate(ended._final):
        np.testing.assert_array_equal(array, expected[f"array_{i}"])


def go_on_to_an_interrupt(checkpoints, tmp_path):
    """Asserts that it comes to the sweep's state; returns the folder and the calls."""

    def press_ctrl_c(iteration, returns):
        called.append(iteration)
        os.kill(os.getpid(), signal.SIGINT)

    called = []
    folder = shutil.copytree(checkpoints / "12", tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        run_sweep(press_ctrl_c, folder)
    assert called == [24]
    found, expected = contents(folder), contents(checkpoints / "24")
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    return folder, called


def contents(folder):
    """The arrays of a sweep's checkpoint, without the time that it took."""
    with np.load(folder / "sweep.npz") as file:
        return {name: array for name, array in file.items() if name != "seconds"}


def test_the_plot_is_a_picture_with_a_curve_for_each_value(
    result, tmp_path, monkeypatch
):
    from matplotlib.axes import Axes

    labels = []
    plot = Axes.plot
    monkeypatch.setattr(
        Axes, "plot", lambda *a, **k: labels.append(k["label"]) or plot(*a, **k)
    )
    result.plot(tmp_path / "all.png")
    result.plot(str(tmp_path / "grouped.png"), group_by="learning_rate")
    assert labels == [
        "5 runs",
        "learning_rate=0.001 (1 run)",
        "learning_rate=0.01 (3 runs)",
        "learning_rate=inf (1 run)",
    ]
    for name in ("all.png", "grouped.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_curves_are_grouped_by_hyperparameters_only(result, tmp_path):
    with pytest.raises(ValueError, match=r"group_by: got 'tau', expected.*'gamma'"):
        result.plot(tmp_path / "curves.png", group_by="tau")


def stacked_walk(batch_size, seed):
    """A random walk of which the last three places are seen; an episode has 9 steps."""
    return native.NativeEnvironment(
        native.Dynamics(
            initial=lambda random: tf.tile(random, [1, 3]),
            step=lambda places, action, random: native.Outcome(
                state=tf.concat([places[:, 1:], places[:, 2:] + random - 0.5], 1),
                reward=places[:, 2] * tf.cast(2 * action - 1, tf.float32),
                terminated=tf.zeros_like(action, tf.bool),
            ),
            observation_spec=tensor_spec.TensorSpec([3], tf.float32),
            action_spec=tensor_spec.BoundedTensorSpec([], tf.int64, 0, 1),
            num_initial_randoms=1,
            num_step_randoms=1,
            max_episode_steps=9,
        ),
        batch_size,
        seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [TFUniformReplayBuffer, TFPrioritizedReplayBuffer])
def test_buffers_that_store_each_frame_once(kind):
    def make(seed):
        return make_loop(
            seed,
            batch_size=2,
            environment=stacked_walk(2, seed),
            buffer_class=functools.partial(kind, row_format=FrameStacking(3)),
        )

    result = train.sweep(
        make, [1, 2], num_iterations=10, eval_interval=10, num_eval_episodes=1
    )
    for run, seed in enumerate([1, 2]):
        alone = make(seed)
        alone.run(10)
        assert_as_alone(result, run, alone)


@pytest.mark.slow
@pytest.mark.parametrize(
    "buffer_class", [TFUniformReplayBuffer, TFPrioritizedReplayBuffer]
)
def test_several_environments_collect_steps_and_train_steps(buffer_class):
    settings = {
        "agent_class": DdqnAgent,
        "buffer_class": buffer_class,
        "batch_size": 3,
        "collect_steps_per_iteration": 2,
        "train_steps_per_iteration": 2,
    }
    result = train.sweep(
        lambda seed: make_loop(seed, **settings),
        [1, 2],
        num_iterations=10,
        eval_interval=10,
        num_eval_episodes=1,
        num_threads=1,
    )
    assert result.returns.shape == (2, 1)
    for run, seed in enumerate([1, 2]):
        alone = make_loop(seed, **settings)
        alone.run(10)
        assert_as_alone(result, run, alone)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent_class", "network_class", "layers", "agent_settings", "loop_settings"),
    [
        (DqnAgent, QRnnNetwork, RECURRENT, {}, {"sequence_length": 4}),
        (
            R2d2Agent,
            QRnnNetwork,
            RECURRENT,
            {"burn_in_length": 1, "n_step_update": 2, "target_update_period": 2},
            {"sequence_length": 5, "priority_fn": losses.sequence_priorities},
        ),
        (
            DqnAgent,
            QNetwork,
            {"fc_layer_params": (4,)},
            {
                "n_step_update": 3,
                "epsilon_greedy": None,
                "boltzmann_temperature": 1.0,
                "gradient_clipping": 1.0,
            },
            {},
        ),
    ],
    ids=["recurrent", "R2D2", "n steps and Boltzmann"],
)
def test_other_agents_of_its_kin(
    agent_class, network_class, layers, agent_settings, loop_settings
):
    is_prioritized = "priority_fn" in loop_settings
    buffer_class = (
        TFPrioritizedReplayBuffer if is_prioritized else TFUniformReplayBuffer
    )

    def make(seed):
        environment = native.load("CartPole-v1", 2, seed, max_episode_steps=30)
        specs = environment.observation_spec(), environment.action_spec()
        agent = agent_class(
            environment.time_step_spec(),
            environment.action_spec(),
            q_network=network_class(*specs, seed=seed, **layers),
            optimizer=keras.optimizers.Adam(1e-2),
            seed=seed,
            **agent_settings,
        )
        replay_buffer = buffer_class(
            agent.collect_data_spec, batch_size=2, max_length=50, seed=seed
        )
        return train.OffPolicyLoop(
            environment,
            agent,
            replay_buffer,
            initial_collect_steps=20,
            sample_batch_size=8,
            sampling="variables",
            seed=seed,
            **loop_settings,
        )

    result = sweep(make, num_iterations=10)
    for run, seed in enumerate([1, 2]):
        alone = make(seed)
        alone.run(10)
        assert_as_alone(result, run, alone)


def test_all_runs_share_one_trace(result):
    # A while loop may trace its body twice, but later calls trace nothing.
    assert 1 <= len(TRACED) <= 2
    assert len(set(map(id, TRACED))) == 1


# --- What cannot be run together.


def sweep(make, seeds=(1, 2), hyperparameters=None, **kwargs):
    settings = {"num_iterations": 2, "eval_interval": 2, "num_eval_episodes": 1}
    return train.sweep(make, seeds, hyperparameters, **settings | kwargs)


def never(seed, **hyperparameters):
    raise AssertionError("made a loop")


@pytest.mark.parametrize(
    ("seeds", "hyperparameters", "kwargs", "message"),
    [
        ([], None, {}, r"seeds: got none, expected one for each run"),
        (
            [1, 2],
            {"gamma": [0.9]},
            {},
            r"hyperparameters\['gamma'\]: got 1 values, expected 2, one for each seed",
        ),
        ([1], None, {"num_iterations": 0}, r"num_iterations: got 0, expected at least"),
        ([1], None, {"eval_interval": -1}, r"eval_interval: got -1, expected at least"),
        ([1], None, {"num_eval_episodes": 0}, r"num_eval_episodes: got 0, expected"),
        ([1], None, {"num_threads": 0}, r"num_threads: got 0, expected at least 1"),
    ],
)
def test_arguments_are_checked_before_a_loop_is_made(
    seeds, hyperparameters, kwargs, message
):
    with pytest.raises(ValueError, match=message):
        sweep(never, seeds, hyperparameters, **kwargs)


def test_a_hyperparameter_that_is_in_no_variable_is_refused():
    with pytest.raises(
        ValueError,
        match=r"hyperparameters\['tau'\]: no variable.*0.1, 0.2.*tf.Variable\(tau\)",
    ):
        sweep(lambda seed, tau: make_loop(seed), hyperparameters={"tau": [0.1, 0.2]})


def test_a_directory_that_another_process_uses_is_refused(tmp_path):
    # A lock belongs to an open file, so this is as one of another process.
    held = file_lock.FileLock(os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT))
    with pytest.raises(directory_lock.DirectoryLockedError, match="by another process"):
        sweep(never, directory=tmp_path)
    held.release()


def test_loops_with_other_variables_are_refused():
    with pytest.raises(
        ValueError,
        match=r"make_loop: the loop of run 1 has other variables than.*run 0",
    ):
        sweep(lambda seed: make_loop(seed, layer=3 + seed))


@pytest.mark.cpu
def test_a_loop_that_samples_from_a_dataset_is_refused():
    with pytest.raises(ValueError, match=r"samples from a dataset.*jit_compile=True"):
        sweep(lambda seed: make_loop(seed, sampling="dataset"))


def test_a_loop_on_a_python_environment_is_refused():
    environment = TFPyEnvironment(suite_gym.load("CartPole-v1"))
    with pytest.raises(
        TypeError, match=r"on a TFPyEnvironment, expected a NativeEnvironment.*native"
    ):
        sweep(lambda seed: make_loop(seed, environment=environment))


def test_an_environment_without_a_time_limit_is_refused():
    environment = native.load("CartPole-v1", max_episode_steps=0)
    with pytest.raises(ValueError, match=r"no time limit.*set max_episode_steps"):
        sweep(lambda seed: make_loop(seed, environment=environment))


def test_another_kind_of_loop_is_refused():
    def make_episodic_loop(seed):
        environment = native.load("CartPole-v1", seed=seed)
        specs = environment.observation_spec(), environment.action_spec()
        agent = ReinforceAgent(
            environment.time_step_spec(),
            environment.action_spec(),
            ActorDistributionNetwork(*specs, fc_layer_params=(4,)),
            optimizer=keras.optimizers.Adam(1e-3),
        )
        buffer = TFUniformReplayBuffer(
            agent.collect_data_spec, batch_size=1, max_length=1000
        )
        return train.EpisodicLoop(environment, agent, buffer)

    with pytest.raises(
        TypeError, match="of type EpisodicLoop, expected an OffPolicyLoop"
    ):
        sweep(make_episodic_loop)


@pytest.mark.slow
def test_a_variable_that_all_runs_would_share_is_refused_by_name():
    counter = tf.Variable(0.0, name="my_counter")
    observers = [lambda trajectory: counter.assign_add(trajectory.reward[0])]
    with pytest.raises(
        ValueError,
        match=r"\['my_counter:0'\].*all runs would share it.*agent.my_variable = ",
    ):
        sweep(lambda seed: make_loop(seed, observers=observers))


def test_a_loop_with_a_host_observer_is_refused():
    observers = [train.host_observer(print)]
    with pytest.raises(TypeError, match=r"with a host_observer, .*expected .*metrics"):
        sweep(lambda seed: make_loop(seed, observers=observers))


def test_an_observer_in_python_alone_is_refused():
    with pytest.raises(ValueError, match=r"observers: got .* runs in Python alone"):
        sweep(lambda seed: make_loop(seed, observers=[print]))


@pytest.mark.slow  # `test_host_observers.py` asks the same of a loop.
def test_tf_print_is_an_error_that_says_so():
    observers = [lambda trajectory: tf.print(trajectory.reward)]
    with pytest.raises(NotImplementedError, match=r"a program with tf\.print"):
        sweep(lambda seed: make_loop(seed, observers=observers))


# --- Learning.


@pytest.mark.slow
def test_eight_runs_of_dqn_learn_cart_pole_as_they_do_alone():
    def make(seed):
        return make_loop(
            seed,
            learning_rate=1e-3,
            gamma=0.99,
            epsilon=0.1,
            environment=native.load("CartPole-v1", seed=seed),
            agent_class=DdqnAgent,
            agent_settings={
                "target_update_tau": 0.02,
                "td_errors_loss_fn": common.element_wise_squared_loss,
            },
            layer=100,
            capacity=30_000,
            initial_collect_steps=1_000,
            sample_batch_size=64,
            jit_compile=True,
        )

    result = train.sweep(make, range(8), num_iterations=20_000, eval_interval=1_000)
    medians = np.median(result.returns, axis=0)
    assert medians.max() >= 195
    assert medians[-1] >= 195

    steps, scores = [], []
    for seed in range(4):
        loop = make(seed)
        steps.append(loop.run(1_000).environment_steps)
        loop.run(19_000)
        environment = native.load("CartPole-v1", 20, seed)
        scores.append(
            evaluate.Evaluator(environment, loop.agent.policy, 20).run().returns.mean()
        )
    # The same until rounding turns an action, and as good in the end.
    np.testing.assert_allclose(result.environment_steps[:4, 0], steps, atol=10)
    late = result.returns[:, -5:]
    assert np.median(late) / 2 <= np.median(scores) <= np.median(late) * 2
