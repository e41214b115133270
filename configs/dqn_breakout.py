"""DQN on Breakout, with the preset for Atari's games and a smaller replay buffer.

    tfrl train dqn --config=configs/dqn_breakout.py

It needs `pip install 'tfrl[atari]'`.
"""

from typing import Any

from tfrl.algorithms import presets


def get_config() -> dict[str, Any]:
    """Returns the environment and the settings, which flags may override."""
    return {
        **presets.named("dqn_atari").settings,
        "env": "ALE/Breakout-v5",
        "replay_capacity": 100_000,  # Frames: 0.7 GB.
    }
