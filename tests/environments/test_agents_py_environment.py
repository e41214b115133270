"""Agents of one environment as the members of a batch, without PettingZoo itself."""

import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from tfrl import environments, trajectories
from tfrl.agents import DqnAgent, PPOClipAgent
from tfrl.environments import AgentsPyEnvironment, agents_py_environment
from tfrl.metrics import tf_metrics
from tfrl.networks import ActorDistributionNetwork, QNetwork, ValueNetwork

FIRST, MID, LAST = 0, 1, 2


class Race:
    """Agent `i` ends after `i + 1` steps; the last of them is truncated.

    An observation is the agent's number and the step; the reward of a step is
    `10 * agent + step`.
    """

    render_mode = "rgb_array"

    def __init__(self, number=3):
        self.metadata = {"name": "race"}
        self.possible_agents = [f"racer_{i}" for i in range(number)]
        self.agents, self.seeds, self.actions = [], [], []

    unwrapped = property(lambda self: self)
    state_space = spaces.Box(0, 100, (1,), np.float32)

    def observation_space(self, agent):
        return spaces.Box(-1, 100, (2,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(4)

    def state(self):
        return np.float32([self.step_number])

    def _observations(self, agents):
        return {
            x: np.float32([self.possible_agents.index(x), self.step_number])
            for x in agents
        }

    def reset(self, seed=None, options=None):
        self.agents, self.step_number = list(self.possible_agents), 0
        self.seeds.append(seed)
        return self._observations(self.agents), {x: {} for x in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.actions.append(actions)
        self.step_number += 1
        acting = list(self.agents)
        over = {
            x: self.possible_agents.index(x) + 1 <= self.step_number for x in acting
        }
        last = self.possible_agents[-1]
        self.agents = [x for x in acting if not over[x]]
        return (
            self._observations(acting),
            {x: 10 * self.possible_agents.index(x) + self.step_number for x in acting},
            {x: over[x] and x != last for x in acting},
            {x: over[x] and x == last for x in acting},
            {x: {} for x in acting},
        )

    def render(self):
        return np.full([2, 2, 3], self.step_number, np.uint8)

    def close(self):
        self.closed = True


def steps(environment, number, action=1):
    size = environment.batch_size
    first = environment.reset()
    return [first, *(environment.step(np.full(size, action)) for _ in range(number))]


def column(found, name):
    return np.array([getattr(step, name) for step in found]).T.tolist()


def test_an_agent_that_has_ended_repeats_its_last_step_until_all_begin_anew():
    environment = AgentsPyEnvironment([Race()])
    found = steps(environment, 5)
    assert column(found, "step_type") == [
        [FIRST, LAST, LAST, LAST, FIRST, LAST],
        [FIRST, MID, LAST, LAST, FIRST, MID],
        [FIRST, MID, MID, LAST, FIRST, MID],
    ]
    assert column(found, "reward") == [
        [0, 1, 0, 0, 0, 1],
        [0, 11, 12, 0, 0, 11],
        [0, 21, 22, 23, 0, 21],
    ]
    # The last agent is truncated, so its discount stays.
    assert column(found, "discount") == [
        [1, 0, 1, 1, 1, 0],
        [1, 1, 0, 1, 1, 1],
        [1, 1, 1, 1, 1, 1],
    ]
    # What an agent saw last.
    assert found[3].observation.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_several_environments_are_one_batch_and_act_on_their_own_actions():
    envs = [Race(2), Race(2)]
    environment = AgentsPyEnvironment(envs)
    assert environment.batch_size == 4
    environment.seed(5)
    environment.reset()
    assert [env.seeds for env in envs] == [[5], [6]]
    environment.step(np.array([0, 1, 2, 3]))
    assert envs[0].actions == [{"racer_0": 0, "racer_1": 1}]
    assert envs[1].actions == [{"racer_0": 2, "racer_1": 3}]
    environment.step(np.array([0, 1, 2, 3]))
    assert envs[0].actions[1] == {"racer_1": 1}
    assert [env.seeds for env in envs] == [[5], [6]]


def test_returns_are_told_by_agent_and_by_team():
    environment = AgentsPyEnvironment([Race()])
    assert np.isnan(environment.mean_returns()["team"])
    steps(environment, 3)
    expected = {"racer_0": 1.0, "racer_1": 23.0, "racer_2": 66.0, "team": 90.0}
    assert environment.mean_returns() == expected


def test_metrics_count_steps_and_episodes_of_living_agents_alone():
    environment = environments.TFPyEnvironment(AgentsPyEnvironment([Race()]))
    metrics = [
        tf_metrics.EnvironmentSteps(),
        tf_metrics.NumberOfEpisodes(),
        tf_metrics.AverageReturnMetric(batch_size=3),
        tf_metrics.AverageEpisodeLengthMetric(batch_size=3),
    ]
    time_step = environment.reset()
    # An episode of 1, 2 and 3 steps, and the reset.
    for _ in range(4):
        action = tf.ones([3], tf.int64)
        reached = environment.step(action)
        frame = trajectories.from_transition(
            time_step, trajectories.PolicyStep(action), reached
        )
        for metric in metrics:
            metric(frame)
        time_step = reached
    assert [float(metric.result()) for metric in metrics] == [6, 3, 30, 2]


def frames(environment, policy, number):
    """Frames `[1, number, ...]` of each member, as training gets them."""
    collected = []
    time_step, state = environment.reset(), policy.get_initial_state(3)
    for i in range(number):
        step = policy.action(time_step, state, seed=i)
        reached = environment.step(step.action)
        collected.append(trajectories.from_transition(time_step, step, reached))
        time_step = reached
    return tf.nest.map_structure(lambda *x: tf.stack(x, axis=1), *collected)


def test_the_loss_leaves_out_frames_after_an_agents_end():
    """The losses of DQN against a sum over the living agents' steps by hand."""
    environment = environments.TFPyEnvironment(AgentsPyEnvironment([Race()]))
    specs = environment.time_step_spec(), environment.action_spec()
    network = QNetwork(specs[0].observation, specs[1], fc_layer_params=(4,), seed=1)
    agent = DqnAgent(
        *specs, network, None, td_errors_loss_fn=lambda x, y: (x - y) ** 2, gamma=0.9
    )
    agent.initialize()
    experience = frames(environment, agent.collect_policy, 4)
    pairs = tf.nest.map_structure(
        lambda x: tf.reshape(
            tf.stack([x[:, :-1], x[:, 1:]], axis=2), [-1, 2, *x.shape[2:]]
        ),
        experience,
    )
    found = agent.loss(pairs).loss.numpy()
    total, living = 0.0, 0
    kinds = pairs.step_type.numpy()[:, 0]
    for i in range(len(kinds)):
        if kinds[i] == LAST:
            continue
        living += 1
        values = network(pairs.observation[i])[0].numpy()
        action = pairs.action.numpy()[i, 0]
        discount = 0.9 * pairs.discount.numpy()[i, 0]
        target = pairs.reward.numpy()[i, 0] + discount * values[1].max()
        total += (values[0, action] - target) ** 2
    assert living == 1 + 2 + 3
    np.testing.assert_allclose(found, total / len(kinds), rtol=1e-5)


def test_advantages_of_an_agent_do_not_see_the_time_after_its_end():
    environment = environments.TFPyEnvironment(AgentsPyEnvironment([Race()]))
    specs = environment.time_step_spec(), environment.action_spec()
    agent = PPOClipAgent(
        *specs,
        None,
        ActorDistributionNetwork(
            specs[0].observation, specs[1], fc_layer_params=(4,), seed=1
        ),
        ValueNetwork(specs[0].observation, fc_layer_params=(4,), seed=2),
        lambda_value=0.5,
        discount_factor=0.9,
        use_gae=True,
        use_td_lambda_return=True,
        num_epochs=1,
        compute_value_and_advantage_in_train=False,
        update_normalizers_in_train=False,
        normalize_observations=False,
        normalize_rewards=False,
    )
    experience = frames(environment, agent.collect_policy, 5)
    processed = agent.preprocess_sequence(experience)
    values = agent.value_net(experience.observation)[0].numpy()
    rewards = experience.reward.numpy()
    for agent_number in range(3):
        advantage = 0.0
        for t in reversed(range(agent_number + 1)):
            is_end = t == agent_number
            # Only the last agent is truncated, so the value after its end counts.
            counts = 0.9 * (not is_end or agent_number == 2)
            now, then = values[agent_number, t], values[agent_number, t + 1]
            error = rewards[agent_number, t] + counts * then - now
            advantage = error + (0.0 if is_end else 0.9 * 0.5 * advantage)
            found = processed.policy_info["advantage"].numpy()[agent_number, t]
            np.testing.assert_allclose(found, advantage, rtol=1e-4, atol=1e-5)


def test_critics_see_the_state():
    environment = AgentsPyEnvironment([Race(2)], shared_state=True)
    found = steps(environment, 1)
    assert found[1].observation["critic_observation"].tolist() == [[1, 1, 0], [1, 0, 1]]
    assert found[1].observation["observation"].tolist() == [[0, 1], [1, 1]]


def test_agents_see_their_numbers_by_choice():
    environment = AgentsPyEnvironment([Race(2)], agent_numbers=True)
    assert environment.reset().observation["agent"].tolist() == [[1, 0], [0, 1]]


def test_an_agent_that_joins_later_begins_then():
    class Late(Race):
        def reset(self, seed=None, options=None):
            observations, infos = super().reset(seed)
            self.agents.remove("racer_1")
            del observations["racer_1"]
            return observations, infos

        def step(self, actions):
            result = super().step(actions)
            if self.step_number == 1:
                self.agents.append("racer_1")
                result[0].update(self._observations(["racer_1"]))
            return result

    found = steps(AgentsPyEnvironment([Late(3)]), 3)
    assert column(found, "step_type")[1] == [LAST, FIRST, LAST, LAST]
    assert column(found, "reward")[1] == [0, 0, 12, 0]


def test_pictures_are_of_each_members_environment():
    environment = AgentsPyEnvironment([Race(2), Race(2)])
    environment.reset()
    assert environment.render().shape == (4, 2, 2, 3)
    with pytest.raises(ValueError, match="render: got mode 'human'"):
        environment.render("human")


def test_attributes_of_all_environments_change():
    envs = [Race(2), Race(2)]
    environment = environments.TFPyEnvironment(AgentsPyEnvironment(envs))
    environment.change("render_mode", "human")
    assert [env.render_mode for env in envs] == ["human", "human"]
    with pytest.raises(AttributeError, match=r"rendr_mode.*did you mean render_mode\?"):
        environment.change("rendr_mode", "human")


def test_the_state_cannot_be_saved_and_closing_closes_all():
    envs = [Race(2), Race(2)]
    environment = AgentsPyEnvironment(envs)
    with pytest.raises(NotImplementedError, match="race: PettingZoo's"):
        environment.get_state()
    environment.close()
    assert all(env.closed for env in envs)


def test_no_environments_and_no_state_are_refused():
    with pytest.raises(ValueError, match="envs: got none"):
        AgentsPyEnvironment([])

    class WithoutState(Race):
        state_space = None

        def state(self):
            raise NotImplementedError

    with pytest.raises(ValueError, match="shared_state: got True for race"):
        AgentsPyEnvironment([WithoutState()], shared_state=True)


def test_the_environment_is_found_in_wrappers():
    inside = AgentsPyEnvironment([Race()])
    wrapped = environments.wrappers.ActionClipWrapper(inside)
    assert agents_py_environment.find(environments.TFPyEnvironment(wrapped)) is inside
    assert agents_py_environment.find(object()) is None
