"""The bandits' algorithms: they learn, are saved, resume, and refuse what is none."""

import csv

import keras
import numpy as np
import pytest

import tfrl
from tfrl.bandits import environments
from tfrl.specs import array_spec

SHORT = {"num_iterations": 60, "num_eval_episodes": 20, "eval_interval": 30}


def test_it_learns_saves_and_goes_on_as_one_run(tmp_path):
    whole = tfrl.LinUCB("PaddedArmsBandit-v0", **SHORT).learn(960)
    assert whole.agent.collect_policy.accepts_per_arm_features
    whole.save(tmp_path)
    second = tfrl.load(tmp_path).learn(960)
    whole.learn(960)
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

    def my_shop():
        return tfrl.environments.suite_gym.load("CartPole-v1")

    with pytest.raises(ValueError, match=r"got 'my_shop', .*BanditPyEnvironment"):
        tfrl.LinUCB(my_shop).build()


def test_a_misspelt_name_is_answered_by_the_nearest_bandit():
    with pytest.raises(ValueError, match=r"did you mean LinearBandit-v0\b"):
        tfrl.LinUCB("LinearBandt-v0").build()


def test_linear_models_refuse_an_encoder():
    with pytest.raises(ValueError, match="network: got one, but LinTS has no network"):
        tfrl.LinTS(network="x").build()
    with pytest.raises(ValueError, match="encoder: got one, but LinTS has no network"):
        tfrl.LinTS("LinearBandit-v0", encoder=lambda x: x).build()


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


# Small and traced only.
TRACED = SHORT | {"jit_compile": False}
NEURAL = TRACED | {
    "num_envs": 16,
    "fc_layer_params": (16,),
    "learning_rate": 0.03,
    "final_epsilon": 0.1,
}
KINDS = {
    tfrl.LinTS: TRACED,
    tfrl.NeuralEpsilonGreedy: NEURAL,
    tfrl.NeuralLinUCB: NEURAL | {"encoding_iterations": 40},
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_it_learns_which_arm_is_best_and_takes_no_padding(kind):
    learner = kind("PaddedArmsBandit-v0", **KINDS[kind]).learn(progress=False)
    rounds = environments.load("PaddedArmsBandit-v0", 1000, seed=7).reset()
    observation = rounds.observation
    number = observation["num_actions"].numpy()
    exists = np.arange(5) < number[:, np.newaxis]
    # The features of the arms and their parameters, as in `problems.per_arm_linear`.
    means = observation["per_arm"].numpy() @ np.array([0.0, 1.0, 1.0, -1.0])
    best = np.where(exists, means, -np.inf).max(axis=1)
    chance = np.mean(best - (means * exists).sum(axis=1) / number)
    arms, _ = learner.predict(observation)
    np.testing.assert_array_equal(learner.predict(observation)[0], arms)
    tried, _ = learner.predict(observation, greedy=False)
    assert (np.maximum(arms, tried) < number).all()
    if kind is not tfrl.NeuralLinUCB:  # Its second phase is not random.
        assert (arms != tried).any()
    regret = np.mean(best - means[np.arange(1000), arms])
    assert regret < chance / 4, (regret, chance)


@pytest.mark.slow
def test_a_saved_network_goes_on_bit_for_bit_from_one_phase_to_the_other(tmp_path):
    settings = TRACED | {"fc_layer_params": (4,), "encoding_iterations": 5}
    whole, first = (tfrl.NeuralLinUCB(**settings) for _ in range(2))
    whole.learn(160, progress=False)
    first.learn(48, total=160, progress=False).save(tmp_path)
    second = tfrl.load(tmp_path).learn(112, progress=False)
    assert first.agent.actions_from_reward_layer
    assert not second.agent.actions_from_reward_layer
    for mine, other in zip(
        second.agent.variables(), whole.agent.variables(), strict=True
    ):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("kind", [tfrl.NeuralEpsilonGreedy, tfrl.NeuralLinUCB])
def test_a_network_sees_no_mask_and_takes_allowed_arms_alone(kind):
    bandit = environments.BernoulliActionMaskTFEnvironment(
        environments.load("WheelBandit-v0", 8, seed=0),
        lambda observation, mask: (observation, mask),
        0.4,
        seed=0,
    )
    keywords = {"observation_and_action_constraint_splitter": lambda both: both}
    learner = kind(bandit, **NEURAL | {"num_envs": 8}, agent_arguments=keywords)
    _, mask = bandit.current_time_step().observation
    arms, _ = learner.predict(bandit.current_time_step().observation)
    assert mask.numpy()[np.arange(8), arms].all()


class Masked(environments.BanditPyEnvironment):
    """Tells that one of three arms is legal."""

    def __init__(self):
        super().__init__(
            {
                "seen": array_spec.ArraySpec((2,), np.float32),
                "action_mask": array_spec.BoundedArraySpec((3,), np.int32, 0, 1),
            },
            array_spec.BoundedArraySpec((), np.int32, 0, 2),
        )
        self.rounds = 0

    def _observe(self):
        self.rounds += 1
        mask = np.eye(3, dtype=np.int32)[self.rounds % 3]
        return {"seen": np.ones(2, np.float32), "action_mask": mask}

    def _apply_action(self, action):
        assert action == self.rounds % 3
        return np.float32(1)


def test_a_mask_by_its_usual_name_is_taken():
    learner = tfrl.LinUCB(Masked, num_envs=1, jit_compile=False).learn(9)
    assert learner.evaluate(6).mean == 1


@pytest.mark.parametrize("kind", [tfrl.NeuralEpsilonGreedy, tfrl.NeuralLinUCB])
def test_an_encoder_of_ones_own_is_for_bandits_without_arm_features(kind):
    own = {"encoder": keras.layers.Dense(3), "fc_layer_params": (4,)}
    learner = kind("WheelBandit-v0", **own)
    assert (2, 3) in [tuple(v.shape) for v in learner.policy.variables()]
    with pytest.raises(ValueError, match=r"^encoder: got one for arms with features"):
        kind("PerArmBandit-v0", **own).build()
