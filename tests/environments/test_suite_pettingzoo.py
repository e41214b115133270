"""PettingZoo's and MPE2's environments by their names."""

import numpy as np
import pytest

import tfrl
from tfrl import environments
from tfrl.environments import suite_pettingzoo, suites
from tfrl.environments.boundary import conversion

pytest.importorskip("mpe2")
SPREAD = "pettingzoo/simple_spread_v3"


def test_names_are_listed_and_found_without_importing_environments():
    names = suite_pettingzoo.names()
    assert SPREAD in names
    assert "pettingzoo/tictactoe_v3" in names
    assert suites.members_of(SPREAD) == 3
    with pytest.raises(ValueError, match=r"'pettingzoo/simple_spred_v3'.*mean.*spread"):
        suites.find_action_space("pettingzoo/simple_spred_v3")


def test_steps_are_those_of_the_environment_itself():
    environment = suite_pettingzoo.load("simple_spread_v3", num_envs=2, max_cycles=3)
    environment.seed(4)
    own = [suite_pettingzoo.make("simple_spread_v3", max_cycles=3) for _ in range(2)]
    expected = [each.reset(seed=4 + i)[0] for i, each in enumerate(own)]
    found = environment.reset()
    rng = np.random.default_rng(0)
    for _ in range(3):
        seen = [each[name] for each in expected for name in environment.agents]
        np.testing.assert_allclose(found.observation, seen, rtol=1e-6)
        action = rng.integers(5, size=6)
        found = environment.step(action)
        rows = action.reshape(2, 3)
        results = [
            each.step(dict(zip(environment.agents, row, strict=True)))
            for each, row in zip(own, rows, strict=True)
        ]
        expected = [result[0] for result in results]
        rewards = [r[1][name] for r in results for name in environment.agents]
        np.testing.assert_allclose(found.reward, rewards, rtol=1e-6)
    assert found.is_last().all()
    np.testing.assert_array_equal(found.discount, 1)  # A limit of time.


def test_agents_of_two_kinds_are_padded():
    environment = suite_pettingzoo.load("simple_speaker_listener_v4")
    spec = environment.observation_spec()
    shapes = {name: part.shape for name, part in spec.items()}
    assert shapes == {"observation": (11,), "agent": (2,), "action_mask": (5,)}
    np.testing.assert_array_equal(
        environment.reset().observation["action_mask"],
        [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]],
    )


def test_a_game_of_turns_is_parallel():
    environment = suite_pettingzoo.load("tictactoe_v3")
    environment.reset()
    for places in ((0, 0), (1, 1), (3, 3), (2, 2)):
        found = environment.step(np.array(places))
        assert not found.is_last().any()
    # The first player has the first row of three: 0, 3 and 6.
    found = environment.step(np.array([6, 6]))
    assert found.is_last().all()
    assert found.reward.tolist() == [1, -1]


def test_a_number_of_agents_is_a_multiple_in_training():
    with pytest.raises(ValueError, match=r"num_envs: got 8 for .* set 9"):
        suites.load(SPREAD, 8, is_training=True)
    assert suites.load(SPREAD, 8).batch_size == 9


def make_parallel():
    return suite_pettingzoo.make("simple_spread_v3", max_cycles=5)


@pytest.mark.parametrize("given", [make_parallel, SPREAD], ids=["function", "name"])
def test_settings_are_fitted_to_the_agents(given):
    ppo = tfrl.PPO(given)
    assert ppo.num_envs == ppo.environment.batch_size == 9
    # As many minibatches as without agents, 1,024 / 256.
    frames = ppo.collect_steps_per_iteration * 9
    assert frames == 4 * ppo.minibatch_size
    assert abs(frames - 1024) < 36


def test_an_environment_itself_is_a_batch_of_its_agents():
    made = make_parallel()
    assert conversion.batch_size_of(made) == 3
    assert tfrl.DQN(made).num_envs == 3
    assert isinstance(conversion.wrap(made), environments.AgentsPyEnvironment)


def test_a_few_updates_log_the_returns_of_agents_and_of_the_team(tmp_path):
    rows = []

    class Rows(tfrl.train.Callback):
        def on_log(self, row):
            rows.append(dict(row))

    a2c = tfrl.A2C(
        SPREAD,
        shared_state=True,
        num_iterations=12,
        log_interval=12,
        eval_interval=12,
        num_eval_episodes=3,
        jit_compile=False,
    )
    a2c.learn(callbacks=[Rows()], progress=False)
    names = ["agent_0", "agent_1", "agent_2"]
    total = sum(rows[-1][f"return/{name}"] for name in names)
    assert rows[-1]["return/team"] == pytest.approx(total, rel=1e-4)
    assert a2c.agent.value_net.trainable_variables[0].shape[0] == 54 + 3
    path = a2c.world.make_film()
    film = tfrl.train.runs.video.record_video(
        path, a2c.policy, tmp_path / "film.mp4", max_frames=3
    )
    assert film[0] < 0
    assert (tmp_path / "film.mp4").stat().st_size > 0
