"""Makes the agents of the examples."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def make_agent(algorithm: str, config: Any, environment: Any) -> Any:
    """Returns an initialized agent with an example's settings.

    Args:
      algorithm: The name of the example's configuration, such as "sac".
      config: The settings.
      environment: The environment.
    """
    agent = importlib.import_module(module_of(algorithm)).make_agent(
        config, environment
    )
    agent.initialize()
    return agent


def module_of(algorithm: str) -> str:
    """Returns the name of the module that makes an algorithm's agent.

    It is the script's, whose import defines flags, or one that several scripts share.
    """
    shared = f"examples.{algorithm}"
    if importlib.util.find_spec(shared) is not None:
        return shared
    return f"examples.train_{algorithm}"
