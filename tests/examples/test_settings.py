import pathlib

import pytest

from examples import settings

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = REPOSITORY / "configs"


@pytest.mark.parametrize(
    ("name", "environment", "expected"),
    [
        ("ppo", "CartPole-v1", "ppo"),
        ("ppo", "Pendulum-v1", "ppo_pendulum"),
        ("ppo", "Walker2d-v5", "ppo_mujoco"),
        ("ppo", "ALE/Breakout-v5", "ppo_atari"),
        ("ppo", "BreakoutNoFrameskip-v4", "ppo_atari"),
        ("dqn", "ALE/Breakout-v5", "dqn_atari"),
        ("pqn", "Acrobot-v1", "pqn_acrobot"),
        ("ppo", "MyWalker2d-v5", "ppo"),
        ("sac", "MountainCarContinuous-v0", "sac_mountain_car"),
        ("sac", "ALE/Breakout-v5", "sac"),
        ("dqn", "BitFlippingToOnes10-v0", "dqn_bit_flipping_to_ones"),
        ("d4pg", "dm_control/cartpole-balance", "d4pg_cartpole"),
        ("dqn", "HalfCheetah-v5", "dqn"),
    ],
)
def test_an_environment_finds_its_settings(name, environment, expected):
    found = settings.find(CONFIGS / f"{name}.py", environment)
    assert found == CONFIGS / f"{expected}.py"


@pytest.mark.parametrize(
    ("agent", "environment", "expected"),
    [
        ("c51", None, "c51"),
        ("c51", "Acrobot-v1", "c51_acrobot"),
        ("qr_dqn", "LunarLander-v3", "qr_dqn_lunar_lander"),
        ("iqn", "Acrobot-v1", "iqn"),
        ("rainbow", "ALE/Pong-v5", "rainbow_atari"),
        ("dqn", None, "dqn"),
        ("sarsa", "Acrobot-v1", "dqn_acrobot"),
        (None, None, "dqn"),
    ],
)
def test_an_agent_finds_its_settings(agent, environment, expected):
    found = settings.find(CONFIGS / "dqn.py", environment, agent)
    assert found == CONFIGS / f"{expected}.py"


def test_a_page_lists_the_settings_made_for_an_environment():
    page = (REPOSITORY / "docs" / "agents.md").read_text()
    defaults = {path.stem for path in CONFIGS.glob("*.py") if "_" not in path.stem}
    for path in CONFIGS.glob("*_*.py"):
        if path.stem.partition("_")[0] in defaults:
            row = f"| `configs/{path.name}` | {settings.environment_of(path)}"
            assert row in page, row
