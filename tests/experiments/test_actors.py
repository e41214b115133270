"""The experiments that actors, replay servers and learners take part in."""

import dataclasses

import pytest

import tfrl
from tfrl.experiments import actors


def test_a_deviation_of_returns_is_refused_before_a_process_starts():
    ppo = tfrl.PPO("CartPole-v1", normalize_rewards=True)
    with pytest.raises(ValueError, match="normalize_rewards: got True with actors, "):
        actors.make_experiment(ppo.recipe().to_json())
    recipe = tfrl.PPO("CartPole-v1").recipe()
    own = dataclasses.replace(recipe, actors={"sequences_per_update": 3})
    experiment = actors.make_experiment(own.to_json())
    assert experiment.batch_size == 3


PPO = {"pull_period": 128, "sequences_per_update": 16}
LENGTHS = {
    tfrl.PPO: {"num_envs": 8, "collect_steps_per_iteration": 128},
    tfrl.IMPALA: {"num_envs": 8, "sequence_length": 20},
    tfrl.DQN: {},
}
IMPALA = {"pull_period": 20, "sequences_per_update": 16}


@pytest.mark.parametrize(
    ("kind", "num_actors", "values", "message"),
    [
        (tfrl.PPO, 2, PPO, None),
        (tfrl.IMPALA, 4, IMPALA, None),
        (tfrl.IMPALA, 4, {**IMPALA, "pull_period": 40}, None),
        (tfrl.PPO, 4, PPO, r"^sequences_per_update: got 16 .*, expected 32, the seq"),
        (tfrl.PPO, 1, PPO, "expected 8, the sequences of a round; .*_per_update=8"),
        (tfrl.IMPALA, 3, IMPALA, "got 16 .* expected 24 or a divisor of it, the seq"),
        (tfrl.PPO, 2, {}, r"^pull_period: got 10 .* multiple of 128, .*_period=128"),
        (
            tfrl.IMPALA,
            4,
            {**IMPALA, "pull_period": 30},
            "^pull_period: got 30 .* of 20",
        ),
        (tfrl.DQN, 2, {}, None),  # The learner says what it lacks.
    ],
)
def test_rounds_in_lockstep_are_whole_updates(kind, num_actors, values, message):
    made = kind("CartPole-v1", **LENGTHS[kind])
    settings = actors.ActorSettings(**values)
    if message is None:
        actors.check_rounds(made, settings, num_actors)
        return
    with pytest.raises(ValueError, match=message):
        actors.check_rounds(made, settings, num_actors)
