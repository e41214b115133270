"""Actors and a learner in lockstep: the order of rows, lag, and runs that are alike."""

import contextlib
import csv
import dataclasses
import functools
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.agents.every_agent import KINDS
from tests.distribute.lockstep import killed_lockstep
from tests.distribute.small_impala import IMPALA, NUM_ENVS, NUM_STEPS
from tfrl import environments, replay_service, train
from tfrl.distribute.lockstep import lockstep_roles, rounds
from tfrl.distribute.roles import actor
from tfrl.environments import py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import reward_normalizer, tensor_normalizer
from tfrl.utils import variables as variables_lib

PATIENCE = 240.0


@contextlib.contextmanager
def acting(experiment, num_actors):
    """A server, and actors in threads of this process."""
    server = replay_service.Server(rounds.make_tables(experiment, num_actors))
    address = f"localhost:{server.port}"
    is_over, errors = threading.Event(), []

    def act(number):
        try:
            lockstep_roles.act(experiment, address, number, num_actors, is_over.is_set)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=act, args=(n,)) for n in range(num_actors)]
    for thread in threads:
        thread.start()
    try:
        yield address
    finally:
        is_over.set()
        for thread in threads:
            thread.join(PATIENCE)
        server.stop()
    assert not errors


class Learned:
    """A learner's run, with the variables of its agent at the end."""

    def __init__(self, experiment, path, num_rounds, num_actors=2, spy=None):
        agents = []

        def make_run_settings(agent):
            agents.append(agent)
            if spy is not None:
                spy(agent)
            return {"log_interval": 1, **experiment.make_run_settings(agent)}

        self.directory = train.RunDirectory(path, {"num_iterations": num_rounds})
        with acting(experiment, num_actors) as address:
            self.result = lockstep_roles.learn(
                dataclasses.replace(experiment, make_run_settings=make_run_settings),
                address,
                self.directory,
                num_rounds,
                num_actors,
                lambda: False,
            )
        self.variables = values_of(agents[0])

    @property
    def rows(self):
        with self.directory.metrics_csv.open() as file:
            return list(csv.DictReader(file))


def values_of(agent):
    return [variable.numpy() for variable in variables_lib.tracked_variables(agent)]


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def on_policy_loop(experiment):
    """The loop that does in one process what one actor and the learner do."""
    seed = actor.seed_of(experiment, 0, 0)
    environment, agent = experiment.build(seed)
    return train.OnPolicyLoop(
        environment, agent, collect_steps_per_iteration=NUM_STEPS, seed=seed
    )


def assert_alike(learned, loop):
    """Asserts that a run ends with the weights and the counters of a loop, exactly."""
    assert_equal(learned.variables, values_of(loop.agent))
    info, row = loop.run(0), learned.rows[-1]
    assert row["environment_steps"] == str(info.environment_steps)
    assert row["episodes"] == str(info.episodes)
    assert float(row["average_return"] or 0) == pytest.approx(
        info.average_return, rel=1e-5
    )


@pytest.mark.cpu
@pytest.mark.parametrize(
    "lengths",
    [(8,), pytest.param((6, 8), marks=pytest.mark.slow)],
    ids=["whole", "resumed"],
)
def test_a_run_of_one_actor_does_what_an_on_policy_loop_does(lengths, tmp_path):
    experiment = dataclasses.replace(IMPALA, batch_size=NUM_ENVS)
    for length, resumed_at in zip(lengths, (None, 6), strict=False):
        learned = Learned(experiment, tmp_path, length, num_actors=1)
        assert learned.result.resumed_at == resumed_at
    loop = on_policy_loop(experiment)
    loop.run(8)
    assert [row["iteration"] for row in learned.rows] == [str(n) for n in range(9)]
    # These are columns of the free schedule, as docs/distributed.md says.
    others = {
        "steps_per_second",
        "policy_lag_p50",
        "samples_per_insert",
        "actors_alive",
    }
    assert not others & learned.rows[0].keys()
    assert_alike(learned, loop)


def make_normalizing_ppo(environment):
    spec = environment.observation_spec()
    return make_agent(
        "PPOClipAgent",
        environment,
        observation_normalizer=tensor_normalizer.StreamingTensorNormalizer(spec),
    )


def make_agent(kind, environment, **settings):
    specs = environment.time_step_spec(), environment.action_spec()
    return KINDS[kind].make(*specs, **settings)


@pytest.mark.slow  # A test above asks the same of IMPALA.
@pytest.mark.parametrize(
    "make_agent",
    [
        make_normalizing_ppo,
        *[
            functools.partial(make_agent, kind)
            for kind in ("A2CAgent", "PPOKLPenaltyAgent", "PPOClipAgent-recurrent")
        ],
    ],
)
def test_other_agents_do_what_they_do_in_an_on_policy_loop(make_agent, tmp_path):
    experiment = dataclasses.replace(IMPALA, make_agent=make_agent, batch_size=NUM_ENVS)
    learned = Learned(experiment, tmp_path, 3, num_actors=1)
    loop = on_policy_loop(experiment)
    loop.run(3)
    assert_alike(learned, loop)


class Numbered(py_environment.PyEnvironment):
    """Shows the number of the actor, of the environment and of the step."""

    def __init__(self, actor_number, number):
        super().__init__()
        self._numbers = actor_number, number
        self._step_number = 0

    def observation_spec(self):
        return array_spec.ArraySpec([3], np.float32)

    def action_spec(self):
        return array_spec.BoundedArraySpec([], np.int32, 0, 1)

    def _show(self):
        return np.array([*self._numbers, self._step_number], np.float32)

    def _reset(self):
        return ts.restart(self._show())

    def _step(self, action):
        self._step_number += 1
        return ts.transition(self._show(), np.float32(1.0))


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """What the updates of three rounds were given, and how far the policy was."""
    given = []

    def make_environment(seed):
        seeds = [actor.seed_of(IMPALA, number, 0) for number in range(2)]
        number = seeds.index(seed) if seed in seeds else -1
        return environments.TFPyEnvironment(
            environments.BatchedPyEnvironment(
                [Numbered(number, n) for n in range(NUM_ENVS)]
            )
        )

    def spy(agent):
        plain = agent.train

        def train_and_tell(experience, **kwargs):
            loss_info = plain(experience, **kwargs)
            told = experience.observation, loss_info.extra.approx_kl
            tf.numpy_function(lambda *values: given.append(values), told, [])
            return loss_info

        agent.train = train_and_tell

    # Two sequences of two steps of each environment.
    experiment = dataclasses.replace(
        IMPALA,
        make_environment=make_environment,
        sequence_length=3,
        stride_length=2,
        pull_period=4,
    )
    Learned(experiment, tmp_path_factory.mktemp("numbered"), 3, spy=spy)
    return given


@pytest.mark.slow
def test_rows_come_in_the_order_of_actors_environments_and_steps(numbered):
    assert len(numbered) == 6
    for i, (observations, _) in enumerate(numbered):
        round_, actor_number = divmod(i, 2)
        first = 4 * round_
        expected = [
            [[actor_number, n, first + begin + step] for step in range(3)]
            for n in range(NUM_ENVS)
            for begin in (0, 2)
        ]
        np.testing.assert_array_equal(observations, expected)


@pytest.mark.slow
def test_a_round_is_collected_with_the_weights_of_the_one_before(numbered):
    moved = [float(approx_kl) for _, approx_kl in numbered]
    # Exact up to the rounding of differently batched products.
    np.testing.assert_allclose(moved[::2], 0.0, atol=1e-9)
    assert min(moved[1::2]) > 1e-7


def make_round(experiment, agent, num_actors=2):
    return rounds.make_round(experiment, num_actors, NUM_ENVS, agent)


@pytest.mark.parametrize(
    ("name", "given"),
    [("sequence_length", NUM_STEPS), ("pull_period", NUM_STEPS + 1)],
)
def test_sequences_must_divide_a_round(name, given):
    _, agent = IMPALA.build(0)
    experiment = dataclasses.replace(IMPALA, **{name: given})
    with pytest.raises(ValueError, match=f"{name}: got {given} for schedule='lock"):
        make_round(experiment, agent)


@pytest.mark.parametrize(
    ("name", "given"),
    [("num_shards", 2), ("num_learners", 2), ("evaluator", True)],
)
def test_rounds_have_one_server_and_one_learner(name, given):
    wanted = {"num_shards": 1, "num_learners": 1, "evaluator": False, name: given}
    with pytest.raises(ValueError, match=f"{name}: got {given} for schedule='lock"):
        rounds.check_processes(*wanted.values())


def test_batches_must_divide_a_round():
    environment, agent = IMPALA.build(0)
    experiment = dataclasses.replace(IMPALA, pull_period=3 * NUM_STEPS)
    assert make_round(experiment, agent).num_updates == 3
    message = "batch_size: got 4 for schedule='lockstep', expected a divisor of 18, "
    with pytest.raises(ValueError, match=message):
        make_round(experiment, agent, num_actors=3)
    agent = make_agent("PPOClipAgent", environment, num_epochs=2)
    with pytest.raises(ValueError, match=r"of num_epochs=2 .* expected 12, all"):
        make_round(experiment, agent)


def test_agents_that_cannot_learn_in_lockstep_are_refused():
    environment = IMPALA.make_environment(0)
    agent = make_agent("DqnAgent", environment)
    with pytest.raises(ValueError, match="got 'lockstep' for a DqnAgent, expected an"):
        make_round(IMPALA, agent)
    normalizer = reward_normalizer.RewardNormalizer(batch_size=NUM_ENVS)
    agent = make_agent("PPOClipAgent", environment, reward_normalizer=normalizer)
    with pytest.raises(ValueError, match=f"got one of batch_size={NUM_ENVS}, which"):
        make_round(IMPALA, agent)
    experiment = dataclasses.replace(IMPALA, pull_period=3 * NUM_STEPS)
    agent = make_agent("PPOClipAgent-recurrent", environment)
    with pytest.raises(ValueError, match=r"pull_period: got 3 times .* recurrent PPO"):
        make_round(experiment, agent)


def test_a_checkpoint_of_another_number_of_actors_is_refused():
    environment, agent = IMPALA.build(0)
    one, two = [
        lockstep_roles.Actors(
            agent,
            "localhost:1",
            rounds.make_round(IMPALA, number, 2 * environment.batch_size, agent),
        )
        for number in (1, 2)
    ]
    one.deserialize(two.serialize())
    with pytest.raises(ValueError, match=r"num_actors: got 1, but .* with 2; give"):
        one.check_restored()


def run_process(path, kills):
    """Runs the experiment of `killed_lockstep` in a process; returns how it ended."""
    command = (
        "from tests.distribute.lockstep import killed_lockstep as k;"
        f" k.main({str(path)!r})"
    )
    return subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, killed_lockstep.KILLS: str(kills)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=1200,
        check=False,
    )


def contents(path):
    """Returns what a run's last checkpoint holds, except for times and random seeds."""
    directory = train.RunDirectory(path, {"num_iterations": killed_lockstep.NUM_ROUNDS})
    newest = tf.train.latest_checkpoint(directory.checkpoints)
    reader = tf.train.load_checkpoint(newest)
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        # Generators that draw the seed of whoever gives none.
        if not name.startswith("seconds") and "_generator/" not in name
    }


# About three minutes on two idle cores: TensorFlow starts in 18 processes, and XLA
# compiles in each.
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_killed_at_five_moments_ends_as_an_uninterrupted_one(tmp_path):
    nothing, kills = tmp_path / "nothing", tmp_path / "kills"
    for directory in (nothing, kills):
        directory.mkdir()
    for moment in killed_lockstep.MOMENTS:
        (kills / moment).touch()
    whole = run_process(tmp_path / "whole", nothing)
    assert whole.returncode == 0, whole.stderr
    first = run_process(tmp_path / "killed", kills)
    assert first.returncode == -signal.SIGKILL, first.stderr
    for title in ("actor 0", "the learner", "the replay server"):
        assert f"{title}: its process" in first.stderr
    assert first.stderr.count("All processes of the run are started again") == 4
    assert [path.name for path in kills.iterdir()] == ["server.pid"]
    last = run_process(tmp_path / "killed", kills)
    assert last.returncode == 0, last.stderr
    assert "Resumed at iteration 15" in last.stderr
    found, expected = contents(tmp_path / "killed"), contents(tmp_path / "whole")
    assert found.keys() == expected.keys()
    different = [n for n in found if not np.array_equal(found[n], expected[n])]
    assert not different
