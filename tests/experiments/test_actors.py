"""The experiments that actors, replay servers and learners take part in."""

import pytest

import tfrl
from tfrl.experiments import actors


def test_a_deviation_of_returns_is_refused_before_a_process_starts():
    ppo = tfrl.PPO("CartPole-v1", normalize_rewards=True)
    with pytest.raises(ValueError, match="normalize_rewards: got True with actors, "):
        actors.make_experiment(ppo.config(), {})
    ppo = tfrl.PPO("CartPole-v1")
    experiment = actors.make_experiment(ppo.config(), {"sequences_per_update": 3})
    assert experiment.batch_size == 3
