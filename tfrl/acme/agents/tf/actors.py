"""Actors for an `EnvironmentLoop`: a network or any policy, with an adder.

An adder (`tfrl.acme.adders`) stores the actor's experience, and a variable client
fetches a learner's weights. Both are optional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.acme import core
from tfrl.distributions import sampling
from tfrl.networks import network
from tfrl.policies import py_policy, py_tf_eager_policy, tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.utils import common, nest_utils
from tfrl.utils.random_numbers import seeds

if TYPE_CHECKING:
    import dm_env
    import keras

    from tfrl.acme import adders
    from tfrl.acme.tf import variable_utils
    from tfrl.typing import types


class _AddingActor(core.Actor):
    """Base of actors that pass their time steps and actions to an adder."""

    def __init__(
        self,
        adder: adders.Adder | None,
        variable_client: variable_utils.VariableClient | None,
        seed: int | None,
    ):
        self._adder = adder
        self._variable_client = variable_client
        seed = seeds.draw_number() if seed is None else seed
        self._rng = np.random.default_rng(seed % 2**64)
        # The extras that the adder stores with the next step.
        self._extras: Any = ()

    def observe_first(self, timestep: dm_env.TimeStep) -> None:
        """Takes the first time step of an episode."""
        if self._adder is not None:
            self._adder.add_first(timestep)

    def observe(
        self, action: types.NestedArray, next_timestep: dm_env.TimeStep
    ) -> None:
        """Takes an action and the time step that it led to."""
        if self._adder is not None:
            self._adder.add(action, next_timestep, extras=self._extras)

    def update(self, wait: bool = False) -> None:
        """Asks the variable client, if there is one, for new weights."""
        if self._variable_client is not None:
            self._variable_client.update(wait)

    def _draw_seed(self) -> int:
        return int(self._rng.integers(2**31))

    def _seed(self) -> tf.Tensor:
        return seeds.as_seed(tf.constant(self._draw_seed(), tf.int64))


class FeedForwardActor(_AddingActor):
    """Acts with a network that maps observations to actions or to their distribution.

    >>> import keras
    >>> import numpy as np
    >>> actor = FeedForwardActor(keras.layers.Dense(2, kernel_initializer="ones"))
    >>> actor.select_action(np.array([1.0, 2.0], np.float32)).tolist()
    [3.0, 3.0]
    """

    def __init__(
        self,
        policy_network: network.Network | keras.layers.Layer,
        adder: adders.Adder | None = None,
        variable_client: variable_utils.VariableClient | None = None,
        *,
        seed: int | None = None,
    ):
        """Creates the actor.

        Args:
          policy_network: Maps a nest of observations `[1, ...]` to a nest of actions
            `[1, ...]`, or of distributions, which are sampled.
          adder: Gets each time step; None for none.
          variable_client: Updates the network's weights; None for none.
          seed: Seeds the samples; None follows `tf.random.set_seed`.

        Raises:
          TypeError: If `policy_network` is neither a Network nor a Keras layer.
          ValueError: If it is recurrent.
        """
        super().__init__(adder, variable_client, seed)
        policy_network = network.as_network(policy_network)
        if tf.nest.flatten(policy_network.state_spec):
            raise ValueError(
                f"policy_network: got {policy_network.name} with the state "
                f"{policy_network.state_spec}, expected a network without state; give "
                "it to RecurrentActor."
            )
        self._network = policy_network
        self._act = common.function(self._sample)

    def select_action(self, observation: types.NestedArray) -> types.NestedArray:
        """Returns the action for an observation, both without a batch dimension."""
        action = self._act(_batch(observation), self._seed())
        return nest_utils.unbatch_nested_tensors_to_arrays(action)

    def _sample(self, observation: Any, seed: tf.Tensor) -> Any:
        output, _ = self._network(observation)
        return _actions(output, seed)


class RecurrentActor(_AddingActor):
    """Acts with a recurrent network, whose state is reset at each episode.

    The adder gets `(state,)`, the state before an action, as the extras of the step.
    """

    def __init__(
        self,
        policy_network: network.Network | keras.layers.Layer,
        adder: adders.Adder | None = None,
        variable_client: variable_utils.VariableClient | None = None,
        store_recurrent_state: bool = True,
        *,
        seed: int | None = None,
    ):
        """Creates the actor.

        Args:
          policy_network: Maps a nest of observations `[1, ...]` and a state to a nest
            of actions `[1, ...]`, or of distributions, which are sampled, and the next
            state.
          adder: Gets each time step; None for none.
          variable_client: Updates the network's weights; None for none.
          store_recurrent_state: Whether the adder gets the state.
          seed: Seeds the samples; None follows `tf.random.set_seed`.

        Raises:
          TypeError: If `policy_network` is neither a Network nor a Keras layer.
          ValueError: If it has no state.
        """
        super().__init__(adder, variable_client, seed)
        policy_network = network.as_network(policy_network)
        if not tf.nest.flatten(policy_network.state_spec):
            raise ValueError(
                f"policy_network: got {policy_network.name} without a state, expected "
                "a recurrent network; give this one to FeedForwardActor."
            )
        self._network = policy_network
        self._store_recurrent_state = store_recurrent_state
        self._act = common.function(self._sample)
        self._state = policy_network.get_initial_state(1)

    def select_action(self, observation: types.NestedArray) -> types.NestedArray:
        """Returns the action for an observation, both without a batch dimension."""
        if self._store_recurrent_state:
            state = nest_utils.unbatch_nested_tensors_to_arrays(self._state)
            self._extras = (state,)
        action, self._state = self._act(_batch(observation), self._state, self._seed())
        return nest_utils.unbatch_nested_tensors_to_arrays(action)

    def observe_first(self, timestep: dm_env.TimeStep) -> None:
        """Takes the first time step of an episode."""
        super().observe_first(timestep)
        self._state = self._network.get_initial_state(1)

    def _sample(self, observation: Any, state: Any, seed: tf.Tensor) -> tuple[Any, Any]:
        output, next_state = self._network(observation, network_state=state)
        return _actions(output, seed), next_state


class PolicyActor(_AddingActor):
    """Acts with any policy of tfrl, including recurrent ones.

    The policy's `info`, such as the log-probability of an action, goes to the adder as
    the extras of the step. The policy's state is reset at each episode.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy | py_policy.PyPolicy,
        adder: adders.Adder | None = None,
        variable_client: variable_utils.VariableClient | None = None,
        *,
        seed: int | None = None,
    ):
        """Creates the actor.

        Args:
          policy: A policy on tensors or on arrays, such as an agent's `collect_policy`.
            Time steps are converted to the dtypes of its specs.
          adder: Gets each time step; None for none.
          variable_client: Updates the policy's weights; None for none.
          seed: Seeds the policy's actions; None follows `tf.random.set_seed`.

        Raises:
          TypeError: If `policy` is of another kind.
        """
        super().__init__(adder, variable_client, seed)
        played: Any = policy
        if isinstance(policy, tf_policy.TFPolicy):
            played = py_tf_eager_policy.PyTFEagerPolicy(policy, use_tf_function=True)
        if not isinstance(played, py_policy.PyPolicy):
            raise TypeError(
                f"policy: got {policy!r} of type {type(policy).__name__}, expected a "
                "TFPolicy or a PyPolicy; give a network to FeedForwardActor."
            )
        self._policy: py_policy.PyPolicy = played
        self._state = self._policy.get_initial_state()
        self._timestep: Any = None

    def select_action(self, observation: types.NestedArray) -> types.NestedArray:
        """Returns the action for an observation, both without a batch dimension."""
        step = self._policy.action(
            self._time_step(observation), self._state, seed=self._draw_seed()
        )
        self._state, self._extras = step.state, step.info
        return step.action

    def observe_first(self, timestep: dm_env.TimeStep) -> None:
        """Takes the first time step of an episode."""
        super().observe_first(timestep)
        self._timestep = timestep
        self._state = self._policy.get_initial_state()

    def observe(
        self, action: types.NestedArray, next_timestep: dm_env.TimeStep
    ) -> None:
        """Takes an action and the time step that it led to."""
        super().observe(action, next_timestep)
        self._timestep = next_timestep

    def _time_step(self, observation: types.NestedArray) -> ts.TimeStep:
        """Returns the time step observed last, as arrays of the policy's specs."""
        last, spec = self._timestep, self._policy.time_step_spec
        if last is None or last.first():
            first = ts.restart(observation, reward_spec=spec.reward)
            return first._replace(observation=_cast(observation, spec.observation))
        return ts.TimeStep(
            step_type=np.asarray(last.step_type, np.int32),
            reward=_cast(last.reward, spec.reward),
            discount=_cast(last.discount, spec.discount),
            observation=_cast(observation, spec.observation),
        )


def _batch(observation: types.NestedArray) -> Any:
    """Returns tensors, because each new Python number would cause a new trace."""
    return tf.nest.map_structure(
        lambda leaf: tf.constant(np.asarray(leaf)[np.newaxis]), observation
    )


def _actions(output: Any, seed: tf.Tensor) -> Any:
    """Returns a nest of tensors, with samples instead of distributions."""
    leaves = tf.nest.flatten(output)
    actions = [
        leaf if tf.is_tensor(leaf) else sampling.sample(leaf, leaf_seed)
        for leaf, leaf_seed in zip(
            leaves, seeds.split_seed(seed, len(leaves)), strict=True
        )
    ]
    return tf.nest.pack_sequence_as(output, actions)


def _cast(values: types.NestedArray, specs: types.NestedArraySpec) -> Any:
    return tree.map_structure_up_to(
        specs, lambda spec, value: np.asarray(value, spec.dtype), specs, values
    )
