import dm_env
import gymnasium
import numpy as np
import pytest

from tfrl import acme, loggers
from tfrl.acme import core, environment_loop
from tfrl.acme.utils import counting
from tfrl.environments import batched_py_environment, test_envs


class Countdown(dm_env.Environment):
    """Episodes of three steps, whose rewards are their actions."""

    def reset(self):
        self._left = 3
        return dm_env.restart(np.array(3))

    def step(self, action):
        self._left -= 1
        make = dm_env.transition if self._left else dm_env.termination
        return make(float(action), np.array(self._left))

    def observation_spec(self):
        return dm_env.specs.Array((), np.int64)

    def action_spec(self):
        return dm_env.specs.DiscreteArray(10)


class TwoRewards(Countdown):
    """The same, with a reward of two entries."""

    def step(self, action):
        timestep = super().step(action)
        return timestep._replace(
            reward={"a": timestep.reward, "b": np.array([1.0, -1.0], np.float32)}
        )

    def reward_spec(self):
        return {
            "a": dm_env.specs.Array((), np.float64),
            "b": dm_env.specs.Array((2,), np.float32),
        }


class Recorder(core.Actor):
    """Acts by doubling the observation, and records what it is told."""

    def __init__(self):
        self.calls = []

    def select_action(self, observation):
        self.calls.append(("select_action", int(observation)))
        return 2 * observation

    def observe_first(self, timestep):
        assert timestep.first()
        self.calls.append(("observe_first", int(timestep.observation)))

    def observe(self, action, next_timestep):
        self.calls.append(("observe", int(action), int(next_timestep.observation)))

    def update(self, wait=False):
        self.calls.append(("update", wait))


def test_an_episode_makes_acmes_calls_in_acmes_order():
    actor = Recorder()
    result = environment_loop.EnvironmentLoop(Countdown(), actor).run_episode()
    assert actor.calls == [
        ("observe_first", 3),
        ("select_action", 3),
        ("observe", 6, 2),
        ("update", False),
        ("select_action", 2),
        ("observe", 4, 1),
        ("update", False),
        ("select_action", 1),
        ("observe", 2, 0),
        ("update", False),
    ]
    assert result["episode_length"] == 3
    assert result["episode_return"] == 6 + 4 + 2
    assert result["steps_per_second"] > 0
    assert (result["episodes"], result["steps"]) == (1, 3)


def test_without_should_update_the_actor_is_not_updated():
    actor = Recorder()
    loop = environment_loop.EnvironmentLoop(Countdown(), actor, should_update=False)
    loop.run_episode()
    assert not [call for call in actor.calls if call[0] == "update"]


@pytest.mark.parametrize(
    ("arguments", "episodes"),
    [
        ({"num_episodes": 2}, 2),
        ({"num_episodes": 0}, 0),
        ({"num_steps": 0}, 0),
        ({"num_steps": 1}, 1),
        ({"num_steps": 3}, 1),
        # The episode that passes the limit is finished.
        ({"num_steps": 4}, 2),
    ],
)
def test_run_ends_after_whole_episodes(arguments, episodes):
    logger = loggers.InMemoryLogger()
    loop = acme.EnvironmentLoop(Countdown(), Recorder(), logger=logger)
    loop.run(**arguments)
    assert [row["steps"] for row in logger.data] == [3, 6][:episodes]


def test_run_takes_one_limit_at_most():
    loop = environment_loop.EnvironmentLoop(Countdown(), Recorder())
    with pytest.raises(
        ValueError, match=r"num_episodes, num_steps: got 1 and 2, expec"
    ):
        loop.run(num_episodes=1, num_steps=2)


def test_nests_of_rewards_are_summed_entry_by_entry():
    loop = environment_loop.EnvironmentLoop(TwoRewards(), Recorder())
    for _ in range(2):  # The second episode begins at zero again.
        result = loop.run_episode()["episode_return"]
        assert result["a"] == 12
        np.testing.assert_array_equal(result["b"], np.array([3, -3], np.float32))
        assert result["b"].dtype == np.float32


def test_counts_go_to_the_counter_that_is_given():
    parent = counting.Counter()
    parent.increment(walltime=5)
    counter = counting.Counter(parent, prefix="train", time_delta=0)
    logger = loggers.InMemoryLogger()
    loop = environment_loop.EnvironmentLoop(Countdown(), Recorder(), counter, logger)
    loop.run(num_episodes=2)
    assert parent.get_counts() == {"walltime": 5, "train_episodes": 2, "train_steps": 6}
    assert logger.data[-1]["train_steps"] == 6
    assert logger.data[-1]["walltime"] == 5


class LargestAction:
    def observe_first(self, env, timestep):
        assert isinstance(env, dm_env.Environment)
        self._largest = -1

    def observe(self, env, timestep, action):
        assert int(timestep.observation) == int(action) // 2 - 1
        self._largest = max(self._largest, int(action))

    def get_metrics(self):
        return {"largest_action": self._largest}


def test_observers_add_to_what_is_logged():
    logger = loggers.InMemoryLogger()
    acme.EnvironmentLoop(
        Countdown(), Recorder(), logger=logger, observers=[LargestAction()]
    ).run(num_episodes=1)
    assert logger.data[0]["largest_action"] == 6


def test_the_default_logger_prints_the_label(capsys):
    acme.EnvironmentLoop(Countdown(), Recorder(), label="evaluation").run(
        num_episodes=1
    )
    printed = capsys.readouterr().out
    assert printed.startswith("[Evaluation] ")
    assert "Episode Return = 12.000" in printed


class ConstantAction(Recorder):
    def select_action(self, observation):
        return np.array(1, np.int32)

    def observe_first(self, timestep):
        assert timestep.reward is None

    def observe(self, action, next_timestep):
        assert isinstance(next_timestep, dm_env.TimeStep)


def test_an_environment_of_tfrl_can_be_given():
    environment = test_envs.CountingEnv(steps_per_episode=4)
    loop = environment_loop.EnvironmentLoop(environment, ConstantAction())
    assert loop.run_episode()["episode_length"] == 4
    assert loop.run_episode()["steps"] == 8


def test_other_environments_are_refused_with_the_remedy():
    with pytest.raises(TypeError, match=r"tfrl\.acme\.wrappers\.GymWrapper"):
        acme.EnvironmentLoop(gymnasium.make("CartPole-v1"), Recorder())
    batch = batched_py_environment.BatchedPyEnvironment([test_envs.CountingEnv(4)])
    with pytest.raises(NotImplementedError, match="env: got a batched environment"):
        acme.EnvironmentLoop(batch, Recorder())
