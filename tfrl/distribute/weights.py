"""The weights of an actor, which a thread pulls while the actor collects."""

from __future__ import annotations

import tensorflow as tf

from tfrl import replay_service
from tfrl.agents import tf_agent
from tfrl.distribute import tables, weight_puller
from tfrl.utils import variables as variables_lib


class Weights:
    """The weights of an actor's agent, which follow the learner's weights."""

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        client: replay_service.Client,
        period: float,
    ) -> None:
        """Starts the thread that pulls.

        Args:
          agent: The agent.
          client: A client of the server of the weights.
          period: The least number of seconds between two looks for newer weights.
        """
        shared = tf.nest.flatten(tables.shared_variables(agent))
        self._variables = [variables_lib.as_tf_variable(each) for each in shared]
        specs = [(tuple(v.shape), v.dtype.as_numpy_dtype) for v in self._variables]
        self._puller = weight_puller.Puller(client, tables.VARIABLES, specs, period)
        self._assigned: weight_puller.Pulled | None = None
        self._version = int(agent.train_step_counter)

    @property
    def version(self) -> int:
        """The train step of the agent's weights."""
        return self._version

    def update(self) -> None:
        """Assigns the newest weights that have arrived, if they are newer.

        Raises:
          replay_service.ReverbError: The server has failed.
        """
        # A server without a checkpoint has no weights until the learner pushes some.
        newest = self._puller.newest()
        if newest is None or newest is self._assigned:
            return
        for variable, array in zip(self._variables, newest.arrays, strict=True):
            variable.assign(array)
        self._assigned = newest
        self._version = int(newest.arrays[-1])  # See `tables.shared_variables`.

    def close(self) -> None:
        """Ends the thread that pulls."""
        self._puller.close()
