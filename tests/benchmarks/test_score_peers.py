"""Rows of the score table as other libraries' arguments, and the section of both."""

import pytest

from benchmarks import score_peers
from benchmarks.score_entries import ENTRIES

NAMED = {entry.name: entry for entry in ENTRIES}


def test_rollouts_become_the_arguments_of_ppo():
    made = score_peers.task(NAMED["ppo_ppo"])
    assert (made["algorithm"], made["environment"]) == ("PPO", "CartPole-v1")
    assert (made["num_envs"], made["steps"]) == (8, 98 * 8 * 128)
    assert made["normalized"] == [False, False]
    # Lists stand for schedules that fall linearly to 0.
    assert made["arguments"]["learning_rate"] == [1e-3]
    assert made["arguments"]["clip_range"] == [0.2]
    assert made["arguments"]["n_steps"] == 128
    assert made["arguments"]["batch_size"] == 256
    assert made["policy"]["net_arch"] == {"pi": [64, 64], "vf": [64, 64]}


def test_an_agent_with_one_update_a_rollout_has_no_minibatches():
    arguments = score_peers.task(NAMED["a2c_a2c"])["arguments"]
    assert not {"batch_size", "n_epochs", "clip_range"} & {*arguments}
    assert arguments["use_rms_prop"] is False


def test_periods_in_updates_become_periods_in_steps():
    made = score_peers.task(NAMED["dqn_dqn_mountain_car"])
    arguments = made["arguments"]
    # 8 updates in 16 steps; rl-zoo3, whose settings these are, gives 600.
    assert (arguments["train_freq"], arguments["gradient_steps"]) == (16, 8)
    assert arguments["target_update_interval"] == 600
    # Epsilon falls for 1,500 iterations of 16 steps after 1,000 random steps.
    assert arguments["exploration_fraction"] * made["steps"] == pytest.approx(25_000)


@pytest.mark.parametrize("name", score_peers.COMPARED)
def test_every_entry_that_is_compared_has_a_task(name):
    entry = NAMED[name]
    made = score_peers.task(entry)
    name = entry.algorithm.upper()
    assert made["algorithm"] in (name, f"Discrete{name}", "TD3PlusBC")
    assert made["steps"] > 10_000


def test_agents_of_recordings_are_trained_by_d3rlpy():
    entry = NAMED["td3+bc_on_replay_td3_bc_mujoco_hopper-v5"]
    assert score_peers.library_of(entry).name == "d3rlpy"
    made = score_peers.task(entry)
    assert made["data"] == entry.changes["data"]
    assert (made["steps"], made["layers"]) == (100_000, [256, 256])
    assert made["is_normalized"] is True
    assert made["arguments"] == {
        "batch_size": 256,
        "gamma": 0.99,
        "tau": 0.005,
        "actor_learning_rate": 3e-4,
        "critic_learning_rate": 3e-4,
        "alpha": 2.5,
    }
    iql = score_peers.task(NAMED["iql_on_replay_iql_mujoco_hopper-v5"])
    assert iql["arguments"]["expectile"] == 0.7
    assert iql["arguments"]["weight_temp"] == 3.0
    assert (made["reward_scale"], iql["reward_scale"]) == (1.0, 0.38)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("double_dqn_ddqn", "double_dqn_ddqn: expected an algorithm of ppo, a2c, dqn"),
        ("recurrent_ppo_ppo_pendulum_memory", "lstm_size: got 64, expected 0"),
        ("impala_impala", "impala_impala: expected an algorithm of ppo, a2c, dqn"),
    ],
)
def test_an_entry_that_cannot_be_compared_is_an_error(name, text):
    with pytest.raises(ValueError, match=text):
        score_peers.task(NAMED[name])


def row(entry, seed, returned, **more):
    return {
        "agent": entry.agent,
        "environment": entry.environment,
        "preset": entry.preset,
        "config_hash": entry.hash(),
        "seed": str(seed),
        "steps": "99000",
        "return": str(returned),
        "processor": "AMD",
        **more,
    }


def test_the_section_shows_both_and_the_ratio_of_seconds():
    entry = NAMED["ppo_ppo"]
    own = [row(entry, s, 500.0, processor_seconds=str(6 + s)) for s in range(3)]
    peer = [row(entry, 0, 480.0, seconds="35")]
    text = score_peers.section(own, peer)
    assert (
        "| PPO | CartPole-v1 | Stable-Baselines3 | 99,000 | 500.0 | 480.0 | 3, 1 | 7 | "
        "35 | 5.0 |" in text
    )
    # An older row has no processor seconds.
    older = [row(entry, 0, 500.0, processor_seconds="")]
    assert "| 500.0 | 480.0 | 1, 1 |  |  |  |" in score_peers.section(older, peer)
    assert score_peers.section(own, []) == ""


def test_seconds_are_of_runs_on_the_same_processor():
    entry = NAMED["ppo_ppo"]
    own = [
        row(entry, 0, 500.0, processor_seconds="9"),
        row(entry, 1, 500.0, processor_seconds="7", processor="Intel"),
    ]
    peer = [row(entry, 0, 480.0, seconds="35", processor="Intel")]
    assert "| 2, 1 | 7 | 35 | 5.0 |" in score_peers.section(own, peer)
    assert "| 1, 1 |  |  |  |" in score_peers.section(own[:1], peer)


def test_agents_of_one_choice_have_d3rlpys_classes_and_rates():
    made = score_peers.task(NAMED["cql_offline_cartpole-v1"])
    assert made["algorithm"] == "DiscreteCQL"
    assert made["reward_scale"] == 0.1
    # A step of 0.005 in each update makes a whole in 200.
    assert made["arguments"]["target_update_interval"] == 200
    made = score_peers.task(NAMED["bc_offline_cartpole-v1"])
    assert made["algorithm"] == "DiscreteBC"
    assert made["arguments"] == {"batch_size": 64, "learning_rate": 1e-3, "beta": 0.0}
