"""What is known of the environments of a run."""

import pickle
import threading

import cloudpickle
import gymnasium

import tfrl
from tfrl.algorithms import worlds


def make_world(environment, evaluation=None):
    fit = worlds.ActionFit("discrete", "DQN")
    return worlds.World(environment, tfrl.DQN(), fit, evaluation)


class Doubled(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 2 * reward


def make_doubled():
    return Doubled(gymnasium.make("CartPole-v1"))


def test_facts_are_those_of_a_copy_of_the_environment_to_train_in():
    facts = make_world("CartPole-v1").facts()
    assert facts["reward_range"] == [1, 1]
    assert (facts["time_limit"], facts["reward_threshold"]) == (500, 475)
    assert "evaluation_differs" not in facts


def test_another_environment_for_evaluation_is_compared():
    assert make_world("CartPole-v1", make_doubled).facts()["evaluation_differs"] == [
        "rewards"
    ]
    same = make_world("CartPole-v1", lambda: gymnasium.make("CartPole-v1"))
    assert same.facts()["evaluation_differs"] == []


def test_no_copy_is_made_of_an_environment_that_a_program_made():
    assert make_world(gymnasium.make("CartPole-v1"), "CartPole-v1").facts() == {}


def test_nothing_is_known_of_an_environment_in_tensorflow():
    assert make_world("BitFlipping4-v0").facts() == {}


def test_facts_leave_the_fit_of_the_actions_as_it_was():
    world = make_world("CartPole-v1")
    before = world.fit._pair
    world.facts()
    assert world.fit._pair is before


def test_a_fit_goes_to_another_process_without_its_last_environment():
    fit = worlds.ActionFit("continuous", "SAC", clip=True)
    environment = worlds.make_environment("Pendulum-v1", 1, 0, fit=fit)
    environment.pyenv.here = threading.Lock()  # It cannot be pickled.
    assert fit.has_changed_actions
    other = pickle.loads(cloudpickle.dumps(fit))
    assert (other.kind, other.title, other.clip) == ("continuous", "SAC", True)
    assert not other.has_changed_actions
    assert fit.has_changed_actions
