"""The learner of an agent with its own actor: batches in, updates out."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl import loggers
from tfrl.acme import core
from tfrl.acme.adders.reverb import experience
from tfrl.acme.tf import savers
from tfrl.acme.utils import counting
from tfrl.agents import tf_agent
from tfrl.utils import common


class Learner(core.Learner):
    """Trains an agent of tfrl on the items of an adder, as Acme's learners do."""

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        batches: Iterator[Any],
        variables: Mapping[str, Sequence[Any]],
        *,
        counter: counting.Counter | None = None,
        logger: loggers.Logger | None = None,
        checkpoint: str | None = None,
    ) -> None:
        """Initializes the agent, and restores its newest checkpoint if there is one.

        Args:
          agent: The agent to train.
          batches: Items of an adder in batches, `types.Transition`s `[B, ...]` or
            `Trajectory`s `[B, T, ...]`, of arrays; see `adders.to_experience`.
          variables: The variables of networks by name, for `get_variables`.
          counter: Counts the `steps` and the seconds, `walltime`; None makes a
            separate counter.
          logger: Gets the losses and the counts of each step; None prints them once a
            second.
          checkpoint: The name of a directory of checkpoints of the agent and of the
            counter, in `~/tfrl/<unique_id>/checkpoints`, one every ten minutes; None
            for no checkpoints.
        """
        self._agent = agent
        self._batches = batches
        self._variables = dict(variables)
        self._counter = counting.Counter() if counter is None else counter
        if logger is None:
            logger = loggers.TerminalLogger("learner", time_delta=1.0)
        self._logger = logger
        self._last_time: float | None = None
        agent.initialize()
        self._train = common.function(
            lambda items: agent.train(experience.to_experience(items))
        )
        self._checkpointer: savers.Checkpointer | None = None
        if checkpoint is not None:
            self._checkpointer = savers.Checkpointer(
                {"agent": agent, "counter": self._counter}, subdirectory=checkpoint
            )

    @property
    def agent(self) -> tf_agent.TFAgent:
        """The agent that is trained."""
        return self._agent

    @property
    def _policy_network(self) -> Any:
        """The network of the policy, which programs for Acme read."""
        return self._agent.policy._actor_network

    @functools.cached_property
    def _snapshotter(self) -> savers.Snapshotter:
        """Saves the policy when programs for Acme tell it to; `step` does not."""
        return savers.Snapshotter({"policy": self._policy_network})

    def step(self) -> None:
        """Does one update on the next batch, logs it, and saves if that is due."""
        batch = next(self._batches)
        info = self._train(tf.nest.map_structure(tf.convert_to_tensor, batch))
        values = {
            name: loss.numpy()
            for name, loss in {"loss": info.loss, **info.extra._asdict()}.items()
            if tf.is_tensor(loss) and not loss.shape.rank
        }
        now = time.monotonic()
        elapsed = 0.0 if self._last_time is None else now - self._last_time
        self._last_time = now
        counts = self._counter.increment(steps=1, walltime=elapsed)
        if self._checkpointer is not None:
            self._checkpointer.save()
        self._logger.write({**values, **counts})

    def get_variables(self, names: Sequence[str]) -> list[list[np.ndarray]]:
        """Returns the variables of networks, as arrays.

        Args:
          names: Keys of the constructor's `variables`, such as `["policy"]`.

        Raises:
          ValueError: A name is not known.
        """
        unknown = [name for name in names if name not in self._variables]
        if unknown:
            raise ValueError(
                f"names: got {', '.join(unknown)}, expected some of "
                f"{', '.join(self._variables)}; use these names."
            )
        return [[np.asarray(v) for v in self._variables[name]] for name in names]
