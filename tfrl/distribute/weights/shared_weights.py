"""The weights of a run, which the learner pushes and the actors pull."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl import replay_service, train
from tfrl.agents import tf_agent
from tfrl.distribute import replay_servers
from tfrl.distribute.weights import reverb_variable_container, weight_puller
from tfrl.savers import finite
from tfrl.utils import variables as variables_lib

VARIABLES = reverb_variable_container.DEFAULT_TABLE


def shared_variables(agent: tf_agent.TFAgent) -> dict[str, Any]:
    """Returns the variables that the learner pushes and the actors pull."""
    return {
        reverb_variable_container.POLICY_KEY: list(agent.collect_policy.variables()),
        reverb_variable_container.TRAIN_STEP_KEY: agent.train_step_counter,
    }


def weights_spec(agent: tf_agent.TFAgent) -> dict[str, Any]:
    """Returns the nest of specs of `shared_variables`."""
    return tf.nest.map_structure(
        lambda v: tf.TensorSpec(v.shape, v.dtype), shared_variables(agent)
    )


def leaves_of(variables: Sequence[tf.Variable]) -> list[weight_puller.Leaf]:
    """Returns what a `weight_puller.Puller` must know of variables.

    Variables that are not finite now, such as an infinite bound, may stay so.
    """
    return [
        weight_puller.Leaf(
            tuple(v.shape), v.dtype.as_numpy_dtype, v.name, bool(finite.is_finite(v))
        )
        for v in variables
    ]


def make_table(agent: tf_agent.TFAgent) -> replay_service.Table:
    """Makes the table of the newest weights."""
    return replay_service.Table(
        VARIABLES,
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=1,
        rate_limiter=replay_service.rate_limiters.MinSize(1),
        signature=weights_spec(agent),
    )


class PushWeights(train.Callback):
    """Pushes the weights from the learner to the server."""

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        central: replay_servers.CentralServer,
        period: int,
    ) -> None:
        """Creates the callback.

        Args:
          agent: The learner's agent.
          central: The server of the weights.
          period: The number of iterations between two pushes.
        """
        self.interval = period
        self._variables = shared_variables(agent)
        self._central = central
        self._container = reverb_variable_container.ReverbVariableContainer(
            central.client.server_address
        )

    def on_start(self, iteration: int) -> None:
        """Pushes the weights, and lets the server save them."""
        self.on_interval(iteration)
        # From now on a restored server has weights.
        self._central.attempt(self._central.client.checkpoint)

    def on_interval(self, iteration: int) -> None:
        """Pushes the weights."""
        del iteration
        self._central.attempt(
            lambda: self._container.push(self._variables), within=replay_servers.SHORT
        )


class PulledWeights:
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
          period: The least number of seconds between two requests for newer weights.
        """
        shared = tf.nest.flatten(shared_variables(agent))
        self._variables = [variables_lib.as_tf_variable(each) for each in shared]
        leaves = leaves_of(self._variables)
        self._puller = weight_puller.Puller(client, VARIABLES, leaves, period)
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
        self._version = int(newest.arrays[-1])  # See `shared_variables`.

    def close(self) -> None:
        """Ends the thread that pulls."""
        self._puller.close()
