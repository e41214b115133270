"""The algorithms as classes: trained, asked, saved, loaded, and made of own parts."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tfrl import (
    agents,
    environments,
    losses,
    networks,
    policies,
    replay_buffers,
    savers,
    specs,
    train,
)
from tfrl.algorithms import registry
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

# Small and traced only: these tests are about what surrounds the agents.
SMALL = {"jit_compile": False, "seed": 3, "num_eval_episodes": 2}
REPLAY = {**SMALL, "initial_collect_steps": 20, "replay_capacity": 500}
ROLLOUTS = {
    **SMALL,
    "num_envs": 2,
    "collect_steps_per_iteration": 8,
    "minibatch_size": 8,
    "num_epochs": 2,
    "fc_layer_params": (4,),
}


def make_dqn(environment="CartPole-v1", **arguments):
    settings = {"fc_layer_params": (8,), "train_steps_per_iteration": 1, **REPLAY}
    return tfrl.DQN(environment, **{**settings, **arguments})


def make_ppo(environment="CartPole-v1", **arguments):
    return tfrl.PPO(environment, **{**ROLLOUTS, **arguments})


def weights(algorithm):
    return [variable.numpy() for variable in algorithm.agent.variables()]


def assert_same(one, other):
    for a, b in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def ppo():
    return make_ppo().learn(100, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [pytest.param(make_dqn, marks=pytest.mark.slow), make_ppo]
)
def test_two_calls_do_what_one_call_does(make):
    """Learning rate, epsilon and clipping fall over the total."""
    whole = make().learn(160, progress=False)
    halves = make().learn(60, total=160, progress=False)
    assert 60 <= halves.loop.info().environment_steps < 160
    halves.learn(100, progress=False)
    assert halves.loop.info()[:4] == whole.loop.info()[:4]
    assert_same(halves, whole)


def test_a_saved_one_goes_on_as_if_it_had_not_been_saved(ppo, tmp_path):
    ppo.save(tmp_path / "ppo")
    loaded = tfrl.load(tmp_path / "ppo")
    assert len(ppo.rows) >= 2
    assert loaded.rows == ppo.rows
    assert loaded.health() == ppo.health()
    assert type(loaded) is tfrl.PPO
    lengths = loaded.schedule_iterations, ppo.schedule_iterations
    assert lengths == (7, 7)
    assert {**ppo.settings, "num_iterations": 7} == loaded.settings
    assert_same(loaded, ppo)
    ppo.learn(50, progress=False)
    loaded.learn(50, progress=False)
    assert loaded.loop.info()[:4] == ppo.loop.info()[:4]
    assert_same(loaded, ppo)
    assert (tmp_path / "ppo" / "final_policy" / "saved_model.pb").exists()


@pytest.mark.slow
def test_saving_again_replaces_what_was_saved(ppo, tmp_path):
    make_ppo(seed=4).learn(20, progress=False).save(tmp_path)
    with pytest.raises(train.RunDirectoryError, match=r"seed: 4 -> |seed"):
        ppo.save(tmp_path)
    ppo.save(tmp_path, overwrite=True)
    assert_same(tfrl.load(tmp_path), ppo)
    ppo.save(tmp_path)  # The same run.
    (tmp_path / "metrics.csv").write_text("iteration,evaluation_return\n")
    with pytest.raises(train.RunDirectoryError, match=r"holds the metrics of a run; "):
        ppo.save(tmp_path)
    assert_same(tfrl.load(tmp_path), ppo)


def test_a_file_of_the_user_is_not_recorded_over(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    made = make_dqn()
    with pytest.raises(ValueError, match=r"something that tfrl did not write, and kee"):
        made.record(path, 1, overwrite=True)
    assert path.read_text() == "mine"
    (tmp_path / "notes.txt.spec").touch()
    with pytest.raises(ValueError, match=r"there is one already; give overwrite=True"):
        made.record(path, 1)
    path.rename(tmp_path / "moved")
    with pytest.raises(ValueError, match=r"notes\.txt\.spec', where there is someth"):
        made.record(path, 1, overwrite=True)


def test_outputs_are_removed_from_the_folder_of_a_run_alone(tmp_path):
    (tmp_path / "config.json").write_text('{"port": 80}')
    (tmp_path / "runs").mkdir()
    made = make_dqn(logdir=tmp_path)
    for begin in (
        lambda: made.learn(10, overwrite=True, progress=False),
        lambda: made.open_folder(overwrite=True),
    ):
        with pytest.raises(train.RunDirectoryError, match=r"json that tfrl did not wr"):
            begin()
    assert sorted(x.name for x in tmp_path.iterdir()) == ["config.json", "runs"]


def test_weights_that_are_not_finite_do_not_replace_what_was_saved(tmp_path):
    dqn = make_dqn()
    dqn.save(tmp_path)
    saved = weights(dqn)
    kernel = dqn.policy.variables()[0]
    kernel.assign(tf.fill(kernel.shape, np.nan))
    with pytest.raises(
        savers.whole_checkpoints.CheckpointError, match="nothing was saved, because"
    ):
        dqn.save(tmp_path)
    for a, b in zip(weights(tfrl.load(tmp_path)), saved, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("config", [None, '{"name": "mine"}'])
def test_what_is_no_run_is_not_replaced(tmp_path, config):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "thesis.txt").touch()
    if config:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(
        train.RunDirectoryError, match=r"holds runs but no config|of another config"
    ):
        make_dqn().save(tmp_path)
    assert (tmp_path / "runs" / "thesis.txt").exists()


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no config\.json, expected"):
        tfrl.load(tmp_path)
    (tmp_path / "config.json").write_text('{"program": "sweep", "algorithm": "dqn"}')
    with pytest.raises(FileNotFoundError, match="which is that of a sweep, expected"):
        tfrl.load(tmp_path)


def test_actions_are_predicted_for_an_observation_and_for_a_batch(ppo):
    observation = np.zeros(4, np.float32)
    action, state = ppo.predict(observation)
    assert (np.shape(action), action.dtype, state) == ((), np.int64, ())
    batch, _ = ppo.predict([observation] * 3)
    np.testing.assert_array_equal(batch, [action] * 3)
    sampled = {int(ppo.predict(observation, greedy=False)[0]) for _ in range(40)}
    assert sampled == {0, 1}
    with pytest.raises(
        ValueError, match=r"^observation: got shape \(3,\), expected \(4,\); convert it"
    ):
        ppo.predict(np.zeros(3))
    with pytest.raises(
        ValueError, match=r"^observation: got NaN at index \[1, 2\], exp"
    ):
        ppo.predict([observation, [0, 0, np.nan, 0]])


def test_predictions_follow_new_weights_and_are_traced_once_a_size(ppo):
    for size in (1, 20, 3, 1, 4):
        ppo.predict(np.zeros([size, 4]))
    trace = ppo._predictors[True]._act.__self__.function(ppo.policy)
    assert trace.experimental_get_tracing_count() <= 3  # One for the test above.
    bias = ppo.policy.variables()[-1]
    before = bias.numpy()
    try:
        for action in (0, 1, 0):
            bias.assign(100 * np.eye(2, dtype=np.float32)[action])
            assert ppo.predict(np.zeros(4))[0] == action
    finally:
        bias.assign(before)


class Counting(policies.TFPolicy):
    """Acts with the number of steps since the episode began."""

    def __init__(self):
        super().__init__(
            ts.time_step_spec(tf.TensorSpec([4])),
            specs.BoundedTensorSpec([], tf.int64, 0, 9),
            tf.TensorSpec([], tf.int64),
        )

    def _action(self, time_step, policy_state, seed):
        return policy_step.PolicyStep(policy_state, policy_state + 1)


def test_a_policy_with_a_state_goes_on_from_the_call_before(monkeypatch):
    monkeypatch.setattr(tfrl.PPO, "policy", Counting())
    made, state, observation = make_ppo(), None, np.zeros(4)
    for expected in (0, 1, 2):
        action, state = made.predict(observation, state)
        assert action == expected
    _, states = made.predict([observation] * 2)
    assert made.predict([observation] * 2, states)[0].tolist() == [1, 1]
    assert made.predict(observation)[0] == 0


def test_an_evaluation_repeats_from_its_seed(ppo):
    one, other = ppo.evaluate(3, seed=5), ppo.evaluate(3, seed=5)
    np.testing.assert_array_equal(one.returns, other.returns)
    assert len(one.returns) == 3
    assert not np.array_equal(ppo.evaluate(3, seed=6).returns, one.returns)


@pytest.mark.parametrize("count", [0, -1])
def test_an_evaluation_has_an_episode(count):
    with pytest.raises(ValueError, match=f"^num_episodes: expected .*, got {count}; p"):
        make_dqn().evaluate(count)


def test_a_run_in_a_folder_writes_its_outputs_and_resumes(tmp_path, capsys):
    def make():
        return make_ppo(logdir=tmp_path, eval_interval=3, num_eval_episodes=1)

    made = make().learn(60)
    for name in ("metrics.csv", "config.json", "policy", "agent.mp4", "finished.json"):
        assert (tmp_path / name).exists(), name
    again = make().learn(60)
    assert_same(again, made)
    assert "training\n" in capsys.readouterr().err
    assert_same(tfrl.load(tmp_path), made)


def test_a_run_with_own_parts_resumes_with_the_same_ones_alone(tmp_path):
    def huber(targets, values):
        return losses.huber_loss(targets - values)

    def folder(**arguments):
        make_dqn(logdir=tmp_path, **arguments).open_folder()

    with_huber = {"agent_arguments": {"td_errors_loss_fn": huber}}
    folder(**with_huber)
    folder(**with_huber)
    with pytest.raises(train.RunDirectoryError, match=r"own_parts: was '.*=huber', is"):
        folder()


@pytest.mark.slow
def test_a_run_in_a_folder_becomes_longer(tmp_path):
    def make():
        return make_ppo(logdir=tmp_path, eval_interval=3, num_eval_episodes=1)

    longer = make().learn(60).learn(40, progress=False)
    assert longer.loop.info().environment_steps >= 100
    program = make().learn(60)  # As a program that is started again.
    assert_same(program, longer)
    assert_same(program.learn(40), longer)
    loaded = tfrl.load(tmp_path)
    assert_same(loaded, longer)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {},
            r"length of 1,000 environment steps, .* begun with 5,000, .* done 0; give",
        ),
        ({"gamma": 0.5}, "gamma: was 0.999, is 0.5"),
    ],
)
def test_a_shorter_run_does_not_end_in_a_folder_in_silence(tmp_path, changed, message):
    killed = make_dqn(logdir=tmp_path)
    killed.train_for(5_000)
    killed.save(tmp_path)
    with pytest.raises(train.RunDirectoryError, match=message):
        make_dqn(logdir=tmp_path, **changed).learn(1_000, progress=False)


@pytest.mark.slow
def test_a_program_that_was_stopped_stays_stopped_until_it_goes_on(tmp_path, capsys):
    class StopAt(train.Callback):
        def __init__(self, iteration):
            self.iteration = iteration

        def on_evaluation(self, result):
            if result.iteration >= self.iteration:
                self.stop("enough")

    def make(iteration, **arguments):
        made = make_ppo(logdir=tmp_path, eval_interval=2, num_eval_episodes=1)
        return made.learn(
            200, callbacks=[StopAt(iteration)], progress=False, **arguments
        )

    def steps(algorithm):
        return algorithm.loop.info().environment_steps

    stopped = make(2)
    at = steps(stopped)
    assert at < 50
    capsys.readouterr()
    again = make(2)
    assert_same(again, stopped)
    assert "This run was stopped at iteration 2 by StopAt: enough" in (
        capsys.readouterr().err
    )
    further = make(2).learn(40, progress=False)
    assert at + 40 <= steps(further) < at + 60
    # The whole program, started again.
    program = make(2)
    assert_same(program, further)
    assert_same(program.learn(40, progress=False), further)
    later = make(6, continue_stopped=True)
    assert steps(further) < steps(later) < 200
    assert steps(make(9)) == steps(later)
    assert steps(make(100, continue_stopped=True)) >= 200


def assert_same_policy(one, other):
    for a, b in zip(one.policy.variables(), other.policy.variables(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_run_begins_with_the_weights_of_another_and_begins_again(ppo, tmp_path):
    ppo.save(tmp_path / "first")

    def make(**arguments):
        # Without a step of the weights, they stay as they were loaded.
        return make_ppo(
            initial_run=tmp_path / "first",
            learning_rate=0.0,
            eval_interval=9,
            **arguments,
        )

    assert_same_policy(make(seed=9), ppo)
    tuned = make(logdir=tmp_path / "tuned").learn(20, progress=False)
    assert_same_policy(tuned, ppo)
    assert tuned.loop.info().environment_steps < 40
    (tmp_path / "first").rename(tmp_path / "moved")
    resumed = make(logdir=tmp_path / "tuned").learn(20, progress=False)
    assert resumed.loop.info() == tuned.loop.info()
    loaded = tfrl.load(tmp_path / "tuned", logdir=tmp_path / "tuned")
    assert_same_policy(loaded.learn(16, progress=False), ppo)
    (tmp_path / "moved").rename(tmp_path / "first")
    again = make(logdir=tmp_path / "tuned")
    assert again.loop.iteration == 0  # The parts are made before the folder is empty.
    again.learn(16, overwrite=True, progress=False)
    assert_same_policy(again, ppo)
    assert again.loop.info().environment_steps < tuned.loop.info().environment_steps
    with pytest.raises(ValueError, match=r"^initial_run: got '.*tuned', which is the"):
        make_ppo(logdir=tmp_path / "tuned", initial_run=tmp_path / "tuned")
    with pytest.raises(ValueError, match=r"^overwrite: got True without a logdir"):
        make_ppo().learn(10, overwrite=True)


def test_recorded_episodes_are_learned_from(ppo, tmp_path):
    path = tmp_path / "recordings" / "episodes.tfrecord"
    frames = ppo.record(path, num_episodes=3, seed=1)
    returns = tfrl.datasets.episode_returns(tfrl.datasets.load_recordings(str(path)))
    assert len(returns) == 3
    assert frames == sum(returns) + 3  # One for each step, and the boundaries.
    sampled = tmp_path / "sampled.tfrecord"
    ppo.record(sampled, 3, greedy=False)
    settings = {"fc_layer_params": (8,), "data": str(tmp_path / "*.tfrecord"), **SMALL}
    bc = tfrl.BC("CartPole-v1", **settings).learn(5, progress=False)
    assert bc.loop.iteration == 5


@pytest.mark.slow
def test_callbacks_see_evaluations_and_stop_the_training():
    class Stop(train.Callback):
        seen = ()

        def on_evaluation(self, result):
            self.seen += (result.iteration,)
            if result.iteration >= 4:
                self.stop("enough")

        def on_log(self, row):
            self.last = row

    stop = Stop()
    made = make_ppo(eval_interval=2)
    metrics = {"twice": lambda: 2 * made.loop.iteration}
    made.learn(1_000, callbacks=[stop], metrics=metrics, progress=False)
    assert stop.seen == (0, 2, 4)  # Untrained at first.
    assert stop.last["twice"] == 8
    assert made.loop.iteration == 4
    made.learn(16, progress=False)  # From where it stopped.
    assert made.loop.iteration in (5, 6)


def test_own_parts_are_arguments():
    class Agent(agents.DqnAgent):
        pass

    def make_network(observation_spec, action_spec):
        return networks.QNetwork(
            observation_spec, action_spec, fc_layer_params=(5,), seed=1
        )

    def make_buffer(data_spec, batch_size):
        return replay_buffers.TFUniformReplayBuffer(data_spec, batch_size, 50)

    made = make_dqn(
        network=make_network,
        replay_buffer=make_buffer,
        agent=Agent,
        agent_arguments={"gamma": 0.5},
    )
    assert type(made.agent) is Agent
    assert made.agent._q_network.trainable_variables[0].shape == [4, 5]
    assert made.replay_buffer.capacity == 50
    made.learn(40, progress=False)


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        (tfrl.DQN, "td_error_loss_fn", "DqnAgent .*did you mean td_errors_loss_fn"),
        (tfrl.R2D2, "td_error_loss_fn", "R2d2Agent .*did you mean td_errors_loss_fn"),
        (tfrl.LinUCB, "xyzzy", "LinearUCBAgent does not take; leave it out"),
    ],
)
def test_an_argument_that_an_agent_lacks_is_named(kind, given, text):
    made = kind(agent_arguments={given: None})
    with pytest.raises(TypeError, match=f"^agent_arguments: got '{given}', .*{text}"):
        made.make_agent()


def test_an_agent_with_several_networks_takes_a_dict_of_them():
    def make_actor(observation_spec, action_spec):
        return networks.ActorNetwork(observation_spec, action_spec, (3,), seed=0)

    made = tfrl.TD3(
        "Pendulum-v1", network={"actor_network": make_actor}, fc_layer_params=(4,)
    )
    assert made.make_networks()["actor_network"] is not None
    agent = made.make_agent()
    agent.initialize()
    assert agent._actor_network.trainable_variables[0].shape == [3, 3]
    for wrong, message in (
        (make_actor, "several; give a dict with some of actor_network, critic_network"),
        ({"actor": make_actor}, "got 'actor', expected some of actor_network, critic"),
        ({"actor_net": make_actor}, r"TD3; did you mean actor_network\?"),
    ):
        with pytest.raises(ValueError, match=message):
            tfrl.TD3("Pendulum-v1", network=wrong).make_agent()


@pytest.mark.parametrize(("acting", "expected"), [(0, 4), (7, 7)])
def test_iqn_acts_by_its_own_number_of_quantiles(acting, expected):
    layers = {"fc_layer_params": (), "quantile_layer_params": (5,)}
    made = tfrl.IQN(num_quantiles=4, num_acting_quantiles=acting, **layers, **REPLAY)
    network = made.make_networks()["q_network"]
    quantiles, _ = network(np.zeros((1, 4), np.float32))
    assert quantiles.shape == (1, 2, expected)
    # The embedding has the size of the observation; a hidden layer of 5 units follows.
    assert [x.shape[0] for x in network.trainable_variables] == [64, 4, 4, 5, 5, 2]


def test_sac_explores_by_a_function():
    def explore(policy):
        return policies.OUNoisePolicy(policy, seed=0)

    made = tfrl.SAC("Pendulum-v1", exploration=explore, **REPLAY)
    assert isinstance(made.agent.collect_policy, policies.OUNoisePolicy)


def test_ppo_keeps_its_noise_for_some_steps():
    # Half a rollout is a minibatch: the noise makes no sequence of the frames.
    noisy = make_ppo("Pendulum-v1", gsde_sample_freq=4)
    assert isinstance(noisy.agent.collect_policy, policies.StateDependentNoisePolicy)
    before = weights(noisy)
    noisy.learn(16, progress=False)
    assert any(np.any(a != b) for a, b in zip(before, weights(noisy), strict=True))
    with pytest.raises(ValueError, match="CartPole-v1"):
        make_ppo(gsde_sample_freq=4).learn(16, progress=False)


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (tfrl.PPO, {}),
        (tfrl.PPO, {"gsde_sample_freq": 4}),
        (tfrl.A2C, {}),
        (tfrl.IMPALA, {}),
        (tfrl.REINFORCE, {}),
    ],
)
def test_unbounded_actions_are_clipped(make, values):
    """The car pays 0.1 times the square of the action that it gets, at most 1."""
    name = "MountainCarContinuous-v0"
    for environment in (name, lambda: gymnasium.make(name)):
        world = make(environment, num_envs=1, **values).world
        for made in (world.make_training(), world.make_evaluation(1, seed=0)):
            made.reset()
            reward = made.step(np.float32([[5.0]])).reward.numpy()
            np.testing.assert_allclose(reward, [-0.1], rtol=1e-6)


def test_every_algorithm_of_values_explores_by_a_function():
    def explore(policy):
        return policies.EpsilonGreedyPolicy(policy, epsilon=0.2, seed=0)

    for kind in (tfrl.DQN, tfrl.C51, tfrl.QRDQN, tfrl.IQN, tfrl.R2D2):
        made = kind("CartPole-v1", exploration=explore, fc_layer_params=(4,), **REPLAY)
        agent = made.make_agent()
        collecting = agent.collect_policy
        if kind is tfrl.R2D2:  # It records the state of the network.
            collecting = collecting.wrapped_policy
        assert isinstance(collecting, policies.EpsilonGreedyPolicy), kind
        assert agent._epsilon_greedy is None


def test_the_memory_of_a_large_buffer_is_said_before_it_is_taken(capsys):
    def refuse_to_make(**_):
        raise MemoryError(capsys.readouterr().err)

    made = make_dqn(num_envs=2, replay_capacity=100_000_000)
    made.make_agent()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replay_buffers, "TFUniformReplayBuffer", refuse_to_make)
        # Two int32, four of the observation, action, reward and discount.
        with pytest.raises(MemoryError, match=r"takes \d\.\d GB .* for 100,000,000 "):
            made.build()
    make_dqn(replay_capacity=1_000).build()
    assert "GB" not in capsys.readouterr().err


class RandomEnvironment(gymnasium.Env):
    """An environment that is not registered."""

    observation_space = gymnasium.spaces.Box(-1, 1, [2], np.float32)
    action_space = gymnasium.spaces.Discrete(2)


def make_cart_pole():
    return gymnasium.make("CartPole-v1")


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(make_cart_pole, marks=pytest.mark.slow),
        pytest.param(
            lambda: environments.suite_gym.load("CartPole-v1"),
            id="of tfrl",
            marks=pytest.mark.slow,
        ),
        pytest.param("instance", id="instance", marks=pytest.mark.slow),
        pytest.param("vector", id="vector"),
    ],
)
def test_it_trains_in_every_kind_of_environment(environment):
    num_envs = 2
    if environment == "instance":
        environment, num_envs = make_cart_pole(), 1
    elif environment == "vector":
        environment = gymnasium.make_vec("CartPole-v1", 2)
    made = make_ppo(environment, num_envs=num_envs).learn(20, progress=False)
    assert made.environment.batch_size == num_envs
    assert len(made.evaluate(2).returns) == 2


class Unseeded(environments.PyEnvironment):
    """An environment without `seed`, as its base class allows."""

    def observation_spec(self):
        return specs.BoundedArraySpec([2], np.float32, 0.0, 1.0)

    def action_spec(self):
        return specs.BoundedArraySpec([], np.int32, 0, 1)

    def _reset(self):
        return ts.restart(np.zeros(2, np.float32))

    def _step(self, action):
        return ts.termination(np.ones(2, np.float32), 1.0)


def test_an_environment_needs_no_seed():
    assert make_ppo(Unseeded).environment.reset().is_first().numpy().all()


@pytest.mark.slow
def test_an_environment_without_a_seed_is_trained_in_and_evaluated():
    made = make_ppo(Unseeded, eval_interval=1)
    made.learn(8, progress=False, callbacks=[train.Callback()])  # They evaluate.
    assert made.evaluate(2).mean == 1.0


class Masked(gymnasium.Env):
    """Every action but one is illegal at each step."""

    observation_space = gymnasium.spaces.Dict(
        legal=gymnasium.spaces.MultiBinary(3),
        seen=gymnasium.spaces.Box(-1, 1, [2], np.float32),
    )
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.legal, self.steps = 0, 0
        return self.observe(), {}

    def observe(self):
        return {"legal": np.eye(3, dtype=np.int8)[self.legal], "seen": np.ones(2, "f")}

    def step(self, action):
        assert action == self.legal
        self.legal, self.steps = (self.legal + 1) % 3, self.steps + 1
        return self.observe(), 1.0, self.steps == 5, False, {}


@pytest.mark.parametrize(
    "kind",
    [
        tfrl.PPO,
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in (tfrl.DQN, tfrl.C51, tfrl.IQN, tfrl.R2D2, tfrl.PQN, tfrl.IMPALA)
        ),
    ],
)
def test_the_networks_do_not_see_the_mask_of_actions(kind, capsys):
    def split(observation):
        return observation["seen"], observation["legal"]

    has_replay = "replay_capacity" in kind.setting_fields()
    values = {"initial_collect_steps": 40} if has_replay else {"num_envs": 2}
    made = kind(
        Masked,
        fc_layer_params=(4,),
        agent_arguments={"observation_and_action_constraint_splitter": split},
        **{**SMALL, **values},
    )
    made.learn(60, progress=False)
    assert made.evaluate(2).mean == 5.0
    assert "legal" not in capsys.readouterr().err


class ToldInInfo(Masked):
    """The same with the mask in the infos."""

    observation_space = Masked.observation_space["seen"]

    def reset(self, *, seed=None, options=None):
        observation, _ = super().reset(seed=seed)
        return self.parts(observation)

    def parts(self, observation):
        return observation["seen"], {"action_mask": observation["legal"]}

    def step(self, action):
        observation, *others, _ = super().step(action)
        seen, info = self.parts(observation)
        return seen, *others, info


class ToldByMethod(ToldInInfo):
    """The same with sb3-contrib's method."""

    def parts(self, observation):
        return observation["seen"], {}

    def action_masks(self):
        return np.arange(3) == self.legal


class ToldInObservation(ToldInInfo):
    """The same with PettingZoo's part of the observation."""

    observation_space = gymnasium.spaces.Dict(
        observation=Masked.observation_space["seen"],
        action_mask=gymnasium.spaces.Box(0, 1, [3], np.int8),
    )

    def parts(self, observation):
        parts = {"observation": observation["seen"]}
        return {**parts, "action_mask": observation["legal"]}, {}


@pytest.mark.parametrize(
    ("kind", "environment"),
    [
        (tfrl.A2C, ToldInInfo),
        *(
            pytest.param(kind, environment, marks=pytest.mark.slow)
            for kind, environment in [
                (tfrl.DiscreteSAC, ToldInInfo),
                (tfrl.DiscreteSAC, ToldInObservation),
                (tfrl.DQN, ToldByMethod),
                (tfrl.PPO, ToldByMethod),
                (tfrl.QRDQN, ToldInObservation),
                (tfrl.PQN, ToldInInfo),
                (tfrl.IMPALA, ToldInObservation),
            ]
        ),
    ],
)
def test_masks_by_the_usual_names_are_kept_everywhere(
    kind, environment, tmp_path, capsys
):
    has_replay = "replay_capacity" in kind.setting_fields()
    values = {"initial_collect_steps": 40} if has_replay else {"num_envs": 2}
    # An illegal action fails in the environment: while collecting, too.
    made = kind(environment, **{**SMALL, **values}).learn(60, progress=False)
    told = capsys.readouterr().err
    assert (
        "Networks: observation [2]: as it is; action: one of 3; action_mask: " in told
    )
    assert made.evaluate(2).mean == made.evaluate(2, greedy=False).mean == 5.0
    made.save(tmp_path / "run")
    made.export(tmp_path / "exported", "savedmodel")
    saved = tf.saved_model.load(tmp_path / "exported")
    loaded = tfrl.load(tmp_path / "run", environment)
    # Networks and exports have int32 for Gymnasium's MultiBinary.
    dtype = made.environment.observation_spec()["action_mask"].dtype.as_numpy_dtype
    for legal in range(3):
        mask = np.eye(3, dtype=dtype)[legal]
        observation = {"observation": np.ones(2, np.float32), "action_mask": mask}
        for greedy in (True, False):
            assert made.predict(observation, greedy=greedy)[0] == legal
            assert loaded.predict(observation, greedy=greedy)[0] == legal
        batch = ts.restart({name: x[None] for name, x in observation.items()}, 1)
        step = tf.nest.map_structure(tf.convert_to_tensor, batch)
        assert saved.action(step, ()).action.numpy() == [legal]


def test_algorithms_without_masks_refuse_them():
    with pytest.raises(ValueError, match="'action_mask', but REINFORCE takes none; tr"):
        tfrl.REINFORCE(ToldInInfo, **SMALL).build()
    parts = {"observation": np.zeros((1, 2)), "action_mask": np.ones((1, 3))}
    recorded = {"observations": parts, "actions": [0], "rewards": [0], "dones": [1]}
    with pytest.raises(ValueError, match="Behavioural cloning takes none; rename"):
        tfrl.BC(ToldInInfo, data=recorded).build()


def test_cql_learns_from_recorded_masks():
    actions = np.array([0, 1, 2, 0])
    masks = np.eye(3, dtype=np.int8)[actions]
    recorded = {
        "observations": {"observation": np.zeros((4, 2)), "action_mask": masks},
        "actions": actions,
        "rewards": np.ones(4),
        "terminals": actions == 9,
        "timeouts": np.arange(4) == 3,
    }
    made = tfrl.CQL(ToldInObservation, data=recorded, jit_compile=False)
    made.learn(2, progress=False)
    for legal in range(3):
        seen = {"observation": np.ones(2, np.float32), "action_mask": masks[legal]}
        assert made.predict(seen)[0] == legal


class Pictures(gymnasium.Env):
    """A picture and a number to see, and two levers to choose."""

    observation_space = gymnasium.spaces.Dict(
        picture=gymnasium.spaces.Box(0, 255, (12, 12, 3), np.uint8),
        number=gymnasium.spaces.Discrete(3),
    )
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        self.observation_space.seed(self.np_random.integers(1000).item())
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self._steps += 1
        return self.observation_space.sample(), 1.0, self._steps == 5, False, {}


@pytest.mark.slow
def test_pictures_in_a_dict_are_convolved_and_combined_actions_chosen(capsys):
    made = make_dqn(Pictures).learn(40, progress=False)
    told = capsys.readouterr().err
    assert "picture [12, 12, 3]: image, convolutions (16, 3, 1)" in told
    network = made.agent._q_network
    assert [v.shape[-1] for v in network.variables if v.shape.rank == 4] == [16, 32]
    action, _ = made.predict({"picture": np.zeros((12, 12, 3)), "number": 1})
    assert Pictures.action_space.contains(action)
    np.testing.assert_array_equal(made.evaluate(2).returns, [5.0, 5.0])


def test_settings_follow_the_number_of_environments_that_are_given():
    vector = tfrl.PPO(gymnasium.make_vec("CartPole-v1", 4), gamma=0.5)
    s = vector
    assert (s.num_envs, s.collect_steps_per_iteration, s.gamma) == (4, 256, 0.5)
    assert vector.loop.most_steps_per_iteration == 1_024
    alone = tfrl.PPO(make_cart_pole(), collect_steps_per_iteration=512)
    assert (alone.num_envs, alone.collect_steps_per_iteration) == (1, 512)
    assert tfrl.DQN(gymnasium.make_vec("CartPole-v1", 4)).num_envs == 4
    assert tfrl.PPO(make_cart_pole).num_envs == 8
    with pytest.raises(ValueError, match="num_envs: got 3 for an environment that is"):
        tfrl.PPO(make_cart_pole(), num_envs=3)


@pytest.mark.parametrize("stack", [keras.Sequential, tfrl.networks.Sequential])
def test_a_critic_of_observations_alone_is_refused(stack):
    critic = stack([keras.layers.Dense(1)])
    message = (
        r"network\['critic_network'\]: got a Sequential .* \(observation, action\)"
    )
    with pytest.raises(ValueError, match=message):
        tfrl.TD3("Pendulum-v1", network={"critic_network": critic}).make_agent()


def test_a_model_of_keras_with_two_inputs_is_a_critic():
    inputs = [keras.Input((3,)), keras.Input((1,))]
    value = keras.layers.Dense(1)(keras.layers.Concatenate()(inputs))
    own = tfrl.TD3(
        "Pendulum-v1", network={"critic_network": keras.Model(inputs, value)}
    )
    agent = own.make_agent()
    agent.initialize()
    shapes = [tuple(x.shape) for x in agent.variables()]
    assert shapes.count((3 + 1, 1)) == 2 * 2  # Two critics, and their targets.


@pytest.mark.parametrize(
    ("kind", "exploration", "message"),
    [
        (tfrl.DQN, 0.1, "exploration: got 0.1, expected a function"),
        (tfrl.DQN, lambda policy: None, "collect_policy: got None, expected a policy"),
        (tfrl.PPO, lambda policy: None, "collect_policy: got None, expected a policy"),
    ],
)
def test_an_exploration_that_makes_no_policy_is_refused(kind, exploration, message):
    with pytest.raises(TypeError, match=message):
        kind("CartPole-v1", exploration=exploration).make_agent()


def test_the_line_about_networks_is_of_those_that_the_algorithm_makes(capsys):
    class Parts(gymnasium.Env):
        observation_space = gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2)] * 2)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return (0, 1), {}

    def build(**network):
        tfrl.DQN(Parts(), **network).build()
        return "Networks: " in capsys.readouterr().err

    def make_network(observation_spec, action_spec):
        encoder = networks.observation_encoder(observation_spec)
        return networks.QNetwork(observation_spec, action_spec, **encoder)

    assert not build(network=make_network)
    assert build()


def test_a_model_of_keras_is_a_network_or_an_encoder():
    layers = [keras.layers.Dense(7, "relu"), keras.layers.Dense(2)]
    own = tfrl.DQN("CartPole-v1", network=keras.Sequential(layers))
    assert [tuple(x.shape) for x in own.agent.variables()[:2]] == [(4, 7), (7,)]
    encoder = keras.Sequential([keras.layers.Dense(5, "relu")])
    for kind, arguments in (
        (tfrl.PPO, {}),
        (tfrl.SAC, {"environment": "Pendulum-v1"}),
        (tfrl.MPO, {"environment": "Pendulum-v1"}),
    ):
        made = kind(encoder=encoder, **arguments)
        shapes = [tuple(x.shape) for x in made.agent.variables()]
        size = made.environment.observation_spec().shape[0]
        assert shapes.count((size, 5)) >= 2, kind  # Of actor and critic.
        assert made.own_parts() == "encoder=Sequential"


def test_an_encoder_that_is_a_functional_model_is_seeded():
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(4)(inputs) + inputs)

    def first_kernel(seed):
        return tfrl.PPO(encoder=model, seed=seed).agent.variables()[0].numpy()

    np.testing.assert_array_equal(first_kernel(3), first_kernel(3))
    assert not np.array_equal(first_kernel(3), first_kernel(4))


def test_a_learning_rate_leaves_the_last_one_as_it_is():
    def rates(*arguments, **settings):
        made = tfrl.DQN(*arguments, **settings)
        return made.learning_rate, made.final_learning_rate

    assert rates("Acrobot-v1", learning_rate=1e-3) == (1e-3, None)  # Constant there.
    assert rates("CartPole-v1", learning_rate=1e-3) == (1e-3, 1e-5)
    with pytest.raises(TypeError, match=r"^learning_rate: "):
        tfrl.DQN("Acrobot-v1", learning_rate="high")


def test_what_cannot_be_an_environment_is_refused():
    with pytest.raises(TypeError, match="environment: got a int, expected the name of"):
        tfrl.PPO(7)
    made = make_ppo(RandomEnvironment(), num_envs=1)
    with pytest.raises(ValueError, match="evaluation_environment: got none, and the"):
        made.evaluate(2)
    with pytest.raises(TypeError, match="unknown setting 'gama'; did you mean gamma"):
        make_dqn(gama=0.9)
    with pytest.raises(ValueError, match=r"^gamma: expected a number in \[0, 1\], got"):
        make_dqn(gamma=2.0)
    with pytest.raises(ValueError, match="got one, but PPO learns from rollouts, with"):
        make_ppo(replay_buffer=object()).build()
    with pytest.raises(ValueError, match="SAC chooses continuous ones; train DQN: "):
        tfrl.SAC("CartPole-v1").build()


def test_the_settings_are_those_of_the_environment(capsys):
    made = tfrl.PPO("Hopper-v5", gamma=0.5)
    assert "settings 'ppo_mujoco' (Tianshou" in capsys.readouterr().err
    assert (made.gamma, made.minibatch_size) == (0.5, 64)
    assert tfrl.DQN("CartPole-v1").agent_class() is agents.DqnAgent
    assert tfrl.DDQN("Acrobot-v1").agent_class() is agents.DdqnAgent
    variant = tfrl.DDQN("CartPole-v1", preset="ddqn_prioritized")
    assert variant.replay == "prioritized"


TINY = {
    "fc_layer_params": (4,),
    "actor_fc_layer_params": (4,),
    "critic_fc_layer_params": (4,),
    "num_envs": 2,
    "initial_collect_steps": 20,
    "replay_capacity": 600,
    "batch_size": 4,
    "collect_steps_per_iteration": 4,
    "minibatch_size": 8,
    "num_epochs": 1,
    "train_steps_per_iteration": 1,
    "num_quantiles": 3,
    "num_dropped_quantiles": 1,
    "num_atoms": 5,
    "num_samples": 2,
    "burn_in_length": 2,
    "trace_length": 3,
    "collect_episodes_per_iteration": 2,
}
OFFLINE = [
    name for name, (module, _) in registry.CLASSES.items() if module == "offline"
]
MEMORY = {"lstm_size": 3}
ONLINE = [
    *((name, {}) for name in registry.CLASSES if name not in OFFLINE),
    ("r2d2", MEMORY),
    *((name, {**MEMORY, "lstm_sequence_length": 4}) for name in ("sac", "td3")),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "own"), ONLINE, ids=["-".join([name, *own]) for name, own in ONLINE]
)
def test_every_algorithm_trains_evaluates_and_goes_on_after_loading(
    name, own, tmp_path
):
    kind = registry.find(name)
    tiny = {key: x for key, x in TINY.items() if key in kind.setting_fields()} | own
    if name == "a2c":
        tiny["minibatch_size"] = 0
    made = kind(**{**SMALL, **tiny}).learn(60, progress=False)
    assert len(made.evaluate(2).returns) == 2
    observation = made.environment.current_time_step().observation[0]
    action, _ = made.predict(observation)
    assert np.shape(action) == tuple(made.environment.action_spec().shape)
    made.save(tmp_path)
    loaded = tfrl.load(tmp_path)
    assert_same(loaded, made)
    assert_same(loaded.learn(20, progress=False), made.learn(20, progress=False))
