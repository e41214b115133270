"""Renews the config.json of runs that began when settings had other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The algorithms whose double Q-learning was a setting; `ddqn` is double DQN now.
_Q_LEARNING = ("dqn", "ddqn", "r2d2")
_RENAMED = {"gae_lambda": "lambda_value", "gradient_clipping": "max_gradient_norm"}
# Settings that algorithms no longer have.
_LOST = {"impala": ("batch_size", "max_queue_size"), "reinforce": ("replay",)}
_ANNEALED = ("anneal_learning_rate", "anneal_learning_rates")


def renewed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration with today's names.

    Args:
      config: The configuration of a run. An old one has a field `agent`.
    """
    if config.get("emulator") == "envpool":
        config = {**config, "emulator": "ale-py"}
    if "agent" not in config:
        return dict(config)
    new = {_RENAMED.get(name, name): value for name, value in config.items()}
    name = new.pop("agent")
    if name == "dqn" and new.get("double_q"):
        name = "ddqn"
    new["algorithm"] = name
    if name in _Q_LEARNING:
        new.pop("double_q", None)
    for lost in _LOST.get(name, ()):
        new.pop(lost, None)
    if "max_gradient_norm" in new:
        new["max_gradient_norm"] = new["max_gradient_norm"] or 0.0
    for annealed in _ANNEALED:
        if annealed in new:
            new["final_learning_rate"] = 0.0 if new.pop(annealed) else None
    rate, last = new.get("learning_rate"), new.get("final_learning_rate")
    if rate is not None and rate == last:
        new["final_learning_rate"] = None
    return new
