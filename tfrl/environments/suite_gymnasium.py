"""The name of `suite_gym` in TF-Agents' last commit."""

from __future__ import annotations

from tfrl.environments.suite_gym import TimeLimitWrapperType, load, wrap_env

__all__ = ["TimeLimitWrapperType", "load", "wrap_env"]
