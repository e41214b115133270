import pathlib
import re
import runpy

import pytest

from tfrl.algorithms import presets, registry

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = REPOSITORY / "configs"


@pytest.mark.parametrize(
    ("algorithm", "environment", "expected"),
    [
        ("ppo", "CartPole-v1", "ppo"),
        ("ppo", "Pendulum-v1", "ppo_pendulum"),
        ("ppo", "Walker2d-v5", "ppo_mujoco"),
        ("ppo", "ALE/Breakout-v5", "ppo_atari"),
        ("ppo", "BreakoutNoFrameskip-v4", "ppo_atari"),
        ("ppo", "MiniGrid-Empty-5x5-v0", "ppo_minigrid"),
        ("ppo", "MyWalker2d-v5", None),
        ("dqn", "ALE/Breakout-v5", "dqn_atari"),
        ("ddqn", "ALE/Breakout-v5", "dqn_atari"),
        ("dqn", "BitFlippingToOnes12-v0", "dqn_bit_flipping_to_ones"),
        ("dqn", "BitFlipping8-v0", "dqn_bit_flipping"),
        ("dqn", "HalfCheetah-v5", None),
        ("pqn", "Acrobot-v1", "pqn_acrobot"),
        ("sac", "MountainCarContinuous-v0", "sac_mountain_car"),
        ("sac", "ALE/Breakout-v5", None),
        ("tqc", "FetchReach-v4", "sac_fetch_reach"),
        ("tqc", "HalfCheetah-v5", "sac_mujoco"),
        ("sac", "FetchReach-v4", None),
        ("ddpg", "MountainCarContinuous-v0", "td3_mountain_car"),
        ("d4pg", "dm_control/cartpole-balance", "d4pg_cartpole"),
        ("c51", "Acrobot-v1", "c51_acrobot"),
        ("qr_dqn", "LunarLander-v3", "qr_dqn_lunar_lander"),
        ("rainbow", "ALE/Pong-v5", "rainbow_atari"),
    ],
)
def test_an_algorithm_finds_its_settings_for_an_environment(
    algorithm, environment, expected
):
    found = registry.find_preset(registry.find(algorithm), environment)
    assert (found and found.name) == expected


@pytest.mark.parametrize("preset", presets.every(), ids=lambda preset: preset.name)
def test_a_row_names_fields_that_it_changes(preset):
    kind = registry.find(preset.algorithm)
    made = kind.Settings(**preset.settings)
    # The rows of DQN say which of DQN and double DQN they are.
    assert made.changed().keys() | {"double_q"} >= preset.settings.keys()
    if preset.family:
        assert re.fullmatch(preset.family, preset.environment)
    assert preset.source


def test_names_are_different_and_a_wrong_one_is_told():
    names = [preset.name for preset in presets.every()]
    assert len(set(names)) == len(names)
    with pytest.raises(
        ValueError, match=r"preset: got 'ppp', expected one of [a-z0-9_]+, "
    ):
        presets.named("ppp")


@pytest.mark.parametrize("preset", presets.every(), ids=lambda preset: preset.name)
def test_a_file_has_the_settings_of_each_row(preset):
    config = runpy.run_path(str(CONFIGS / f"{preset.name}.py"))["get_config"]()
    assert (config.env, config.agent) == (preset.environment, preset.algorithm)
    expected = registry.find(preset.algorithm).Settings.of(preset.settings)
    assert registry.find(preset.algorithm).Settings.of(config) == expected


@pytest.mark.parametrize("preset", presets.every(), ids=lambda preset: preset.name)
def test_a_page_lists_each_row_with_its_source(preset):
    page = (REPOSITORY / "docs" / "agents.md").read_text()
    row = re.search(rf"^\| .* \| `{preset.name}` \| (.*) \| (.*) \|$", page, re.M)
    assert row is not None
    assert row[1].startswith(preset.environment)
    assert row[2] == preset.source
