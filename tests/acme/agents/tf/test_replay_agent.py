"""D4PG, MPO and distributional MPO as agents of Acme, in an `EnvironmentLoop`."""

import dm_env
import keras
import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tests.pairs import some_slow
from tfrl import acme, agents, loggers, specs
from tfrl.acme import types, wrappers
from tfrl.acme.adders import reverb as adders
from tfrl.acme.agents.tf import d4pg, dmpo, learning, mpo
from tfrl.acme.tf import networks
from tfrl.acme.tf import utils as tf2_utils
from tfrl.acme.utils import counting
from tfrl.trajectories import time_step as ts

BEST_ACTION = 0.5


class Target(dm_env.Environment):
    """Five steps, each rewarded by how close the action is to `BEST_ACTION`."""

    def __init__(self):
        self._step = 0

    def reset(self):
        self._step = 0
        return dm_env.restart(self._observation())

    def step(self, action):
        self._step += 1
        reward = -abs(action[0] - BEST_ACTION)
        if self._step == 5:
            return dm_env.termination(reward, self._observation())
        return dm_env.transition(reward, self._observation())

    def observation_spec(self):
        return {
            "one": specs.Array((), np.float32),
            "step": specs.Array((1,), np.float32),
        }

    def action_spec(self):
        return specs.BoundedArray((1,), np.float32, -1.0, 1.0)

    def reward_spec(self):
        return specs.Array((), np.float32)

    def discount_spec(self):
        return specs.BoundedArray((), np.float32, 0.0, 1.0)

    def _observation(self):
        return {"one": np.float32(1), "step": np.float32([self._step / 5])}


ENVIRONMENT = wrappers.SinglePrecisionWrapper(Target())
SPEC = acme.make_environment_spec(ENVIRONMENT)


def head(kind):
    if kind is d4pg.D4PG:
        return [
            networks.NearZeroInitializedLinear(1),
            networks.TanhToSpec(SPEC.actions),
        ]
    return [networks.MultivariateNormalDiagHead(1)]


def make_networks(kind, seed=0):
    values = networks.DiscreteValuedHead(vmin=-8.0, vmax=0.0, num_atoms=21)
    return {
        "policy_network": networks.Sequential(
            [networks.LayerNormMLP([16], activate_final=True), *head(kind)], seed=seed
        ),
        "critic_network": networks.Sequential(
            [
                networks.CriticMultiplexer(),
                networks.LayerNormMLP([16], activate_final=True),
                # As in Acme's examples, whose values are [B, 1].
                networks.NearZeroInitializedLinear(1) if kind is mpo.MPO else values,
            ],
            seed=seed,
        ),
        "observation_network": tf2_utils.batch_concat,
    }


SMALL = {
    "batch_size": 8,
    "samples_per_insert": 4.0,
    "min_replay_size": 12,
    "checkpoint": False,
    "seed": 0,
}


def make_agent(kind, **settings):
    given = {"logger": loggers.NoOpLogger(), **SMALL, **make_networks(kind), **settings}
    return kind(SPEC, **given)


def run(agent, num_episodes):
    loop = acme.EnvironmentLoop(ENVIRONMENT, agent, logger=loggers.NoOpLogger())
    loop.run(num_episodes=num_episodes)


def rows(memory):
    return [
        {name: value for name, value in row.items() if name != "walltime"}
        for row in memory.data
    ]


# Distributional MPO has D4PG's critics and MPO's policy.
@pytest.fixture(
    scope="module",
    params=some_slow(
        [d4pg.D4PG, mpo.MPO, dmpo.DistributionalMPO], fast=[dmpo.DistributionalMPO]
    ),
)
def trained(request):
    """An agent of each kind after 40 observations, and its log."""
    memory = loggers.InMemoryLogger()
    agent = make_agent(request.param, logger=memory)
    run(agent, num_episodes=8)
    return request.param, agent, rows(memory)


@pytest.mark.slow
def test_each_observation_is_sampled_as_often_as_asked(trained):
    _, agent, log = trained
    # An update for 2 observations, from the twelfth on: ceil((40 - 12 + 1) / 2).
    assert [row["steps"] for row in log] == list(range(1, 16))
    assert int(agent.learner.agent.train_step_counter) == 15
    assert all(np.isfinite(list(row.values())).all() for row in log)


@pytest.mark.slow
def test_same_seed_same_run(trained):
    kind, agent, log = trained
    memory = loggers.InMemoryLogger()
    again = make_agent(kind, logger=memory)
    run(again, num_episodes=8)
    assert rows(memory) == log
    names = ["policy", "critic"]
    for one, other in zip(
        agent.get_variables(names), again.get_variables(names), strict=True
    ):
        assert len(one) == len(other) > 0
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_nothing_is_traced_again(trained):
    _, agent, _ = trained
    critic = agent.learner.agent._critic_networks[0]
    traces = []
    call = critic.call
    critic.call = lambda *args, **kwargs: (traces.append(1), call(*args, **kwargs))[1]
    try:
        run(agent, num_episodes=2)
    finally:
        critic.call = call
    assert not traces


def transitions(size):
    rng = np.random.default_rng(0)

    def draw(*shape):
        return rng.uniform(-1, 1, [size, *shape]).astype(np.float32)

    return types.Transition(
        observation={"one": draw(), "step": draw(1)},
        action=draw(1),
        reward=draw(),
        discount=(draw() > 0).astype(np.float32),
        next_observation={"one": draw(), "step": draw(1)},
        extras=(),
    )


def make_learner(batches):
    """A learner of a `D4pgAgent` that is the same each time."""
    given = make_networks(d4pg.D4PG)
    agent = agents.D4pgAgent(
        ts.time_step_spec(
            tf.nest.map_structure(
                lambda spec: tf.TensorSpec(spec.shape, spec.dtype), SPEC.observations
            )
        ),
        tfrl.specs.tensor_spec.from_spec(SPEC.actions),
        given["policy_network"],
        given["critic_network"],
        keras.optimizers.Adam(1e-2),
        keras.optimizers.Adam(1e-2),
        observation_network=networks.Sequential([tf2_utils.batch_concat]),
        n_step_update=1,
        seed=0,
    )
    memory = loggers.InMemoryLogger()
    policy = {"policy": agent.policy.variables()}
    return learning.Learner(agent, batches, policy, logger=memory), memory


def test_a_learner_step_is_an_update_of_the_agent():
    batch = transitions(8)
    learner, memory = make_learner(iter([batch]))
    other, _ = make_learner(iter([]))
    learner.step()
    info = other.agent.train(adders.to_experience(batch))
    row = memory.data[-1]
    # The same computation, in a graph and eagerly: a few roundings of float32.
    np.testing.assert_allclose(row["loss"], info.loss, rtol=1e-5)
    np.testing.assert_allclose(row["critic_loss"], info.extra.critic_loss, rtol=1e-5)
    assert row["steps"] == 1
    assert "td_loss" not in row
    (one,), (same) = learner.get_variables(["policy"]), other.agent.policy.variables()
    for left, right in zip(one, same, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"names: got actor, expected some of policy"):
        learner.get_variables(["policy", "actor"])


def test_what_programs_read_of_acmes_learners_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TFRL_ID", "run")
    learner, _ = make_learner(iter([]))
    variables = learner.agent.policy.variables()
    assert [id(x) for x in learner._policy_network.variables] == [*map(id, variables)]
    assert learner._snapshotter.save(force=True)
    assert (tmp_path / "tfrl" / "run" / "snapshots" / "policy").is_dir()


@pytest.mark.slow
def test_a_checkpoint_is_restored_with_its_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TFRL_ID", "run")
    counter = counting.Counter()
    agent = make_agent(d4pg.D4PG, checkpoint=True, counter=counter)
    # The first step saves, and the next checkpoint would come ten minutes later.
    run(agent, num_episodes=2)
    agent.learner.step()
    assert (tmp_path / "tfrl" / "run" / "checkpoints" / "d4pg_learner").exists()
    counter = counting.Counter()
    again = make_agent(d4pg.D4PG, checkpoint=True, counter=counter)
    assert counter.get_counts()["steps"] == 1
    assert int(again.learner.agent.train_step_counter) == 1


MPO_PERIODS = {"target_policy_update_period": 10, "target_critic_update_period": 10}


# `tests/agents` has fast tests in which the agents learn as much.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "periods", "num_episodes"),
    [
        (d4pg.D4PG, {"target_update_period": 10}, 60),
        (mpo.MPO, MPO_PERIODS, 100),
        (dmpo.DistributionalMPO, MPO_PERIODS, 60),
    ],
)
def test_an_agent_learns_the_best_action(kind, periods, num_episodes):
    agent = make_agent(
        kind,
        discount=0.5,
        n_step=2,
        batch_size=32,
        samples_per_insert=32.0,
        min_replay_size=32,
        policy_optimizer=keras.optimizers.Adam(3e-3),
        critic_optimizer=keras.optimizers.Adam(1e-2),
        **periods,
    )
    run(agent, num_episodes)
    observations = {"one": tf.ones([5]), "step": tf.range(5.0)[:, tf.newaxis] / 5}
    time_step = ts.restart(observations, batch_size=5)
    actions = agent.learner.agent.policy.action(time_step).action
    # After 100 episodes two seeds ended at 0.49 to 0.60.
    assert np.abs(actions.numpy() - BEST_ACTION).mean() < 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size: expected an integer of at least 1, got 0"),
        ({"n_step": 0}, "n_step: expected an integer of at least 1, got 0"),
        ({"samples_per_insert": 0.0}, "samples_per_insert: expected a finite number"),
        ({"samples_per_insert": None}, "samples_per_insert: expected a finite number"),
        ({"max_replay_size": 11}, "max_replay_size: got 11, expected at least 12"),
        ({"discount": 1.5}, r"discount: expected a number in \[0, 1\], got 1.5"),
        ({"sigma": -1.0}, "sigma: expected a finite number of at least 0, got -1"),
        ({"prefetch_size": 4}, "unexpected keyword argument 'prefetch_size'"),
    ],
)
def test_wrong_settings_are_errors_at_construction(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_agent(d4pg.D4PG, **settings)


def test_an_environment_in_place_of_its_spec_is_an_error():
    with pytest.raises(
        TypeError, match=r"environment_spec: got .*make_environment_spec"
    ):
        d4pg.D4PG(ENVIRONMENT, **make_networks(d4pg.D4PG))


def test_the_targets_of_mpo_are_copied_together():
    with pytest.raises(
        ValueError, match="target_critic_update_period: got 10, expected 100, the "
    ):
        make_agent(mpo.MPO, target_critic_update_period=10)


def test_mpos_critic_may_give_values_with_or_without_a_last_dimension():
    values = tf.reshape(tf.range(4.0), [4, 1])
    for layers in ([], [lambda x: tf.squeeze(x, -1)]):
        critic = networks.Sequential([lambda x: x, *layers])
        network = mpo.MPO._critic(critic)
        network.create_variables(tf.TensorSpec([1], tf.float32))
        output, _ = network(values)
        assert output.numpy().tolist() == [0, 1, 2, 3]
