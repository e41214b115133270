"""SAC on Walker2d-v5, with the preset for MuJoCo and smaller networks.

    tfrl train sac --config=configs/sac_walker.py
    tfrl sweep sac --config=configs/sac_walker.py --seeds=0..4

It needs `pip install 'tfrl[mujoco]'`.
"""

from typing import Any

from tfrl.algorithms import presets


def get_config() -> dict[str, Any]:
    """Returns the environment and the settings, which flags may override."""
    return {
        **presets.named("sac_mujoco").settings,
        "env": "Walker2d-v5",
        "actor_fc_layer_params": (128, 128),
        "critic_fc_layer_params": (128, 128),
    }
