"""R2D2 learns by priorities from the sequences of an actor's server."""

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.small_impala import BATCH_SIZE, make_environment
from tfrl import agents, distribute, losses, networks, replay_service, train
from tfrl.distribute import replay_servers
from tfrl.distribute.lockstep import rounds
from tfrl.distribute.roles import actor, learner, run_tables
from tfrl.distribute.weights import weight_versions

BURN_IN, TRACE = 2, 3


def make_agent(environment):
    specs = environment.observation_spec(), environment.action_spec()
    return agents.R2d2Agent(
        environment.time_step_spec(),
        specs[1],
        networks.QRnnNetwork(*specs, lstm_size=(4,), seed=1),
        # The errors of a sequence are the same before and after.
        keras.optimizers.SGD(0.0),
        burn_in_length=BURN_IN,
        n_step_update=2,
        epsilon_greedy=0.3,
        seed=1,
    )


def make_table(name, signature):
    return replay_service.Table(
        name,
        sampler=replay_service.selectors.Prioritized(1.0),
        remover=replay_service.selectors.Fifo(),
        max_size=1_000,
        rate_limiter=replay_service.rate_limiters.MinSize(BATCH_SIZE),
        signature=signature,
    )


R2D2 = distribute.Experiment(
    make_environment,
    make_agent,
    make_table,
    sequence_length=BURN_IN + TRACE + 1,
    stride_length=3,
    batch_size=BATCH_SIZE,
    push_period=2,
    pull_period=6,
    importance_exponent=0.5,
    priority_fn=losses.sequence_priorities,
    jit_compile=False,
)


@pytest.mark.slow
def test_the_learner_sets_the_priorities_of_its_sequences(tmp_path):
    make = functools.partial(replay_servers.make_server, run_tables.make_tables(R2D2))
    server = replay_servers.SupervisedServer(
        functools.partial(make, tmp_path / "server")
    )
    address = f"localhost:{server.port}"
    found = replay_servers.FixedServers((address,))
    calls = itertools.count()
    actor.act(R2D2, found, 0, 0, lambda: next(calls) > 10)
    directory = train.RunDirectory(tmp_path / "run", {})
    result = learner.learn(R2D2, found, directory, 4, lambda: False)
    assert result.finished

    _, agent = R2D2.build(R2D2.seed)
    spec = weight_versions.stamped_spec(agent.collect_data_spec)
    client = replay_service.Client(address)
    samples = list(client.sample(run_tables.SEQUENCES, 64, emit_timesteps=False))
    server.stop(0.0)
    sequences = [tf.nest.flatten(sample.data) for sample in samples]
    leaves = [np.stack(leaf) for leaf in zip(*sequences, strict=True)]
    frames = tf.nest.pack_sequence_as(spec, leaves).frames
    errors = agent.loss(frames).extra.td_error
    assert errors.shape == [64, TRACE]
    expected = losses.sequence_priorities(errors).numpy()
    priorities = np.array([float(sample.info.priority) for sample in samples])
    is_trained = priorities != 1
    assert is_trained.sum() > BATCH_SIZE
    np.testing.assert_allclose(priorities[is_trained], expected[is_trained], rtol=1e-3)
    # Those that were never drawn have the priority of new ones.
    assert not is_trained.all()


def test_rounds_have_no_priorities():
    environment, agent = R2D2.build(0)
    environment.close()
    with pytest.raises(ValueError, match=r"importance_exponent: got 0.5 for schedule"):
        rounds.make_round(R2D2, 1, environment.batch_size, agent)
