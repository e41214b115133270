"""Algorithms that learn from rollouts: their settings and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfrl import agents, train
from tfrl.algorithms import algorithm, parts
from tfrl.algorithms.settings import (
    DISCOUNTS,
    ENVIRONMENTS,
    FRACTION,
    SIZE,
    SIZE_OR_0,
    check_layers,
    field,
    final_rate,
    gradient_norm,
    live,
    rate,
    uniform,
)


class OnPolicy(algorithm.Algorithm):
    """An algorithm that learns from rollouts."""

    num_envs: int = field("Environments stepped together.", ENVIRONMENTS, default=8)
    collect_steps_per_iteration: int = field(
        "Steps of each environment in an iteration.", SIZE, default=128
    )
    num_epochs: int = field(
        "Epochs of training on each rollout.", SIZE, search=(1, 5, 10, 20), default=1
    )
    minibatch_size: int = field(
        "Frames in each update; 0 uses the whole rollout.", SIZE_OR_0, default=0
    )
    fc_layer_params: Sequence[int] = field(
        "Units of the hidden layers of each network.", check_layers, default=(64, 64)
    )
    normalize_observations: bool = field(
        "Normalize observations by their running statistics.", default=False
    )
    learning_rate: float = rate(default=1e-3)
    final_learning_rate: float | None = final_rate(default=0.0)
    gamma: float = live("Discount per step.", FRACTION, DISCOUNTS, default=0.99)
    max_gradient_norm: float = gradient_norm(default=0.5, search=uniform(0.3, 2.0))

    @classmethod
    def fitted(cls, values: Mapping[str, Any], num_envs: int) -> dict[str, Any]:
        """Returns changes that keep the number of frames in a rollout."""
        frames = values["collect_steps_per_iteration"] * values["num_envs"]
        steps = max(frames // num_envs, 1)
        return {"num_envs": num_envs, "collect_steps_per_iteration": steps}

    def make_loop(self, agent: agents.TFAgent) -> train.OnPolicyLoop:
        """Makes the loop; see `Algorithm.make_loop`.

        Raises:
          ValueError: There is a replay buffer.
        """
        self.refuse_replay()
        return train.OnPolicyLoop(
            self.environment,
            agent,
            collect_steps_per_iteration=self.collect_steps_per_iteration,
            num_epochs=self.num_epochs,
            minibatch_size=self.minibatch_size or None,
            seed=self.seed,
            jit_compile="auto" if self.jit_compile else False,
            **self.further_loop_arguments(),
        )

    def further_loop_arguments(self) -> dict[str, Any]:
        """Returns the loop's arguments that only some algorithms have."""
        return {}

    @property
    def steps_per_iteration(self) -> int:
        """The environment steps of an iteration."""
        return self.collect_steps_per_iteration * self.num_envs

    @property
    def num_updates(self) -> int:
        """The updates of the run, which schedules span."""
        return self.schedule_iterations * self.updates_per_rollout

    @property
    def updates_per_rollout(self) -> int:
        """The updates in an iteration, which collects a rollout."""
        minibatches = 1
        if self.minibatch_size:
            # The loop refuses minibatches that are larger than a rollout.
            minibatches = max(self.steps_per_iteration // self.minibatch_size, 1)
        return self.num_epochs * minibatches

    def scheduled_rate(self) -> Any:
        """Returns the learning rate, or its schedule if it changes."""
        return parts.rate(
            self.learning_rate, self.num_updates, self.final_learning_rate
        )
