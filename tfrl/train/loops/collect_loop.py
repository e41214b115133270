"""The loop of an actor, which collects and does not train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.environments import tf_environment
from tfrl.train.loops import collecting_loop


class CollectLoop(collecting_loop.CollectingLoop):
    """Steps an environment with the collecting policy, and shows the frames.

    An iteration is one step of the batched environment. The observers write the frames,
    for instance to a replay server, and another process trains.
    """

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        agent: tf_agent.TFAgent,
        observers: Sequence[Callable[[Any], Any]],
        *,
        seed: int | None = None,
        jit_compile: bool | Literal["auto"] = False,
    ) -> None:
        """Creates the loop.

        Args:
          environment: See `CollectingLoop`.
          agent: See `CollectingLoop`; it is not trained.
          observers: See `CollectingLoop`.
          seed: See `CollectingLoop`.
          jit_compile: See `CollectingLoop`.

        Raises:
          ValueError: Specs do not match.
        """
        super().__init__(environment, agent, None, observers, seed, jit_compile)

    def collect(self, num_steps: int) -> None:
        """Takes `num_steps` steps, as `run` does, but does not read the counters.

        A process that takes a few steps at a time saves a good part of its time.

        Args:
          num_steps: The number of steps of the batched environment.

        Raises:
          Exception: See `run`.
        """
        done = 0
        while done < num_steps:
            size, _ = self._run_call(num_steps - done, self._zero_loss)
            done += size

    def iterate(self, time_step: Any, policy_state: Any) -> tuple[Any, Any, tf.Tensor]:
        """Takes a step; the loss is 0."""
        _, time_step, policy_state = self._take_step(
            self._agent.collect_policy, time_step, policy_state
        )
        return time_step, policy_state, tf.constant(0.0)
