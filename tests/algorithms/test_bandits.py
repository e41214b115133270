"""`tfrl.LinUCB`: it learns, is saved, resumes, and refuses what is no bandit."""

import csv

import numpy as np
import pytest

import tfrl
from tfrl.bandits import environments

SHORT = {"num_iterations": 60, "num_eval_episodes": 20, "eval_interval": 30}


def test_it_learns_saves_and_goes_on_as_one_run(tmp_path):
    whole = tfrl.LinUCB("PaddedArmsBandit-v0", **SHORT).learn(1920)
    first = tfrl.LinUCB("PaddedArmsBandit-v0", **SHORT).learn(960)
    assert first.agent.policy.accepts_per_arm_features
    first.save(tmp_path)
    second = tfrl.load(tmp_path).learn(960)
    np.testing.assert_array_equal(second.agent.theta, whole.agent.theta)
    true = (0.0, 1.0, 1.0, -1.0)
    np.testing.assert_allclose(whole.agent.theta[0, 4:], true, atol=0.1)
    observation = {
        "global": np.zeros(4, np.float32),
        "per_arm": np.zeros([5, 4], np.float32),
        "num_actions": np.int32(1),
    }
    assert whole.predict(observation)[0] == 0


def test_an_evaluation_has_a_round_for_each_episode():
    bandit = tfrl.LinUCB("WheelBandit-v0", **SHORT, jit_compile=False)
    result = bandit.evaluate(30)
    assert (result.lengths == 1).all()


def test_it_takes_a_bandit_that_a_program_made():
    made = environments.load("WheelBandit-v0", 4, seed=0)
    learner = tfrl.LinUCB(made, **SHORT, jit_compile=False)
    assert (learner.num_envs, learner.collect_steps_per_iteration) == (4, 4)


def test_an_environment_with_episodes_is_refused():
    with pytest.raises(ValueError, match="expected a bandit"):
        tfrl.LinUCB("CartPole-v1").build()


def test_a_run_logs_the_regret_of_a_bandit_that_knows_it(tmp_path):
    settings = SHORT | {"log_interval": 20, "jit_compile": False}
    learner = tfrl.LinUCB("LinearBandit-v0", **settings, logdir=tmp_path).learn(960)
    rows = list(csv.DictReader((tmp_path / "metrics.csv").open()))
    regret = [float(row["cumulative_regret"]) for row in rows]
    assert regret[0] == 0 < regret[1]
    assert regret == sorted(regret)
    # Of 120 rounds of each of the 8 environments.
    assert float(rows[-1]["environment_steps"]) == 960
    assert float(rows[-1]["regret_per_round"]) == pytest.approx(regret[-1] / 120)
    state = learner.environment.physical_state()
    assert "regret" in state
    assert ">Regret<" in (tmp_path / "report.html").read_text()
