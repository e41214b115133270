"""Environments of several agents, each of whom is a member of the batch.

A team is `Dynamics` of a whole environment, whose actions, observations and rewards
have a dimension of agents. `of_team` makes dynamics of it in which each agent is a
member, so that one policy acts for all.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tfrl.environments.native.dynamics import Dynamics, Outcome
from tfrl.specs import tensor_spec
from tfrl.utils import nest_utils

# The part of a team's observation that holds the agents' rewards, `[B, N]`.
REWARDS = "rewards"


def is_team(dynamics: Dynamics) -> bool:
    """Whether dynamics are those of a team that `of_team` takes."""
    spec = dynamics.observation_spec
    return isinstance(spec, dict) and REWARDS in spec


def of_team(team: Dynamics) -> Dynamics:
    """Returns dynamics with an agent as each member, `N` after one another of a team.

    The state of a team is held by each of its agents, and computed once.

    Args:
      team: The whole environment. Its observation is a dict: the agents' rewards, and
        parts `[B, N, ...]` that the agents see; its action is `[B, N, ...]`. Its
        episodes end for all agents at once.
    """
    count = team.observation_spec[REWARDS].shape[0]
    parts = {k: x for k, x in team.observation_spec.items() if k != REWARDS}

    def of_teams(nest: Any) -> Any:
        return tf.nest.map_structure(lambda x: x[::count], nest)

    def of_agents(nest: Any) -> Any:
        return nest_utils.tile_batch(nest, count)

    def merged(x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, [x.shape[0] * count, *x.shape[2:]])

    def step(state: Any, action: tf.Tensor, random: tf.Tensor) -> Outcome:
        own = of_teams(state)
        together = tf.reshape(action, [-1, count, *action.shape[1:]])
        after = team.step(own, together, random[::count])
        reward = tf.cast(merged(team.observation(after.state)[REWARDS]), tf.float32)
        cut = None if after.truncated is None else of_agents(after.truncated)
        return Outcome(of_agents(after.state), reward, of_agents(after.terminated), cut)

    def restart(state: Any, needed: tf.Tensor, random: tf.Tensor) -> Any:
        assert team.restart is not None
        own = of_teams((state, needed, random))
        return of_agents(team.restart(*own))

    def observe(state: Any) -> Any:
        seen = team.observation(of_teams(state))
        found = {name: merged(seen[name]) for name in parts}
        return found if len(found) > 1 else next(iter(found.values()))

    specs = {name: _without_agents(spec) for name, spec in parts.items()}
    return dataclasses.replace(
        team,
        initial=lambda random: of_agents(team.initial(random[::count])),
        step=step,
        restart=None if team.restart is None else restart,
        observe=observe,
        observation_spec=specs if len(specs) > 1 else next(iter(specs.values())),
        action_spec=_without_agents(team.action_spec),
        members=count,
    )


def _without_agents(spec: Any) -> Any:
    """Returns the spec of one agent, where all agents have the same."""
    if isinstance(spec, tensor_spec.BoundedTensorSpec):
        low, high = (
            x[0] if x.ndim == len(spec.shape) else x
            for x in (spec.minimum, spec.maximum)
        )
        return tensor_spec.BoundedTensorSpec(
            spec.shape[1:], spec.dtype, low, high, name=spec.name
        )
    return tf.TensorSpec(spec.shape[1:], spec.dtype, name=spec.name)
