"""The lockstep schedule, in which actors and learner take turns.

In round k + 1 each actor takes `pull_period` steps of its environments with the weights
after the learner's updates on the rows of round k, and sends these steps. Then the
learner trains on the rows of all actors, in the order of the actors, of their
environments and of their steps. So a run over several processes is reproducible.

Each actor exchanges items with the learner through three queues of one item each:

- `orders_N`: the weights to act with, and whether to take steps or to send the state.
- `rollouts_N`: the steps of a round, and the actor's counters after it.
- `states_N`: the state on which the actor's next steps depend.

Between two rounds all queues are empty, and all actors wait. Whenever the learner then
saves a checkpoint, it asks them for their states and puts these into it. So actors and
server save nothing, and a checkpoint is either complete or absent. When the learner
starts, it sends the states of its checkpoint with its first orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl import replay_service
from tfrl.agents import tf_agent
from tfrl.agents.on_policy import on_policy_agent
from tfrl.distribute import replay_servers
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.weights import shared_weights
from tfrl.replay_service.sampling import sampler
from tfrl.specs import tensor_spec

FREE, LOCKSTEP = SCHEDULES = ("free", "lockstep")
_POLL = 0.5  # Seconds between checks whether to stop.


class Order(NamedTuple):
    """An order of the learner to an actor.

    Attributes:
      weights: The variables to act with; see `shared_weights.shared_variables`.
      state: The state from which to continue, as `to_array` writes it; empty to keep
        the current state.
      wants_state: Whether to send the state; if not, to take the steps of a round.
    """

    weights: Any
    state: Any
    wants_state: Any


class Rollout(NamedTuple):
    """The steps of an actor in a round.

    Attributes:
      frames: A `Trajectory` `[B, T + 1, ...]` of its environments.
      policy_state: The policy's state before the first frame, `[B, ...]`.
      counters: The actor's steps, episodes and mean return since the beginning, float64
        `[3]`.
    """

    frames: Any
    policy_state: Any
    counters: Any


class Round(NamedTuple):
    """The sizes and specs of a round.

    Attributes:
      num_actors: The number of actors (`A`).
      num_envs: The number of environments of each actor (`B`).
      num_steps: The steps of each environment.
      parts: The number of successive sequences in these steps.
      num_updates: The number of updates on the sequences.
      order: The nest of specs of an `Order`.
      rollout: The nest of specs of a `Rollout`.
    """

    num_actors: int
    num_envs: int
    num_steps: int
    parts: int
    num_updates: int
    order: Order
    rollout: Rollout


def check_processes(num_shards: int, num_learners: int, has_evaluator: bool) -> None:
    """Checks the processes of a run for the schedule.

    Args:
      num_shards: The number of replay servers.
      num_learners: The number of replicas of the learner.
      has_evaluator: Whether a separate process evaluates.

    Raises:
      ValueError: There are several servers or learners, or an evaluator.
    """
    for name, given in (("num_shards", num_shards), ("num_learners", num_learners)):
        if given != 1:
            raise ValueError(
                f"{name}: got {given} for schedule='lockstep', expected 1, because "
                "rounds go from one learner to the actors and back; leave it out, or "
                "take schedule='free'."
            )
    if has_evaluator:
        raise ValueError(
            "evaluator: got True for schedule='lockstep', expected False, because the "
            "result of another process comes at any time; leave it out, and the "
            "learner evaluates between two rounds."
        )


def make_round(
    experiment: Experiment,
    num_actors: int,
    num_envs: int,
    agent: tf_agent.TFAgent,
) -> Round:
    """Returns the sizes and specs of a round.

    Args:
      experiment: The run's experiment.
      num_actors: The number of actors.
      num_envs: The number of environments of each actor.
      agent: The agent.

    Raises:
      ValueError: The agent cannot learn in lockstep, the experiment has priorities, or
        the sequences or batches do not divide a round.
    """
    if experiment.importance_exponent is not None:
        raise ValueError(
            f"importance_exponent: got {experiment.importance_exponent} for "
            "schedule='lockstep', expected None, because a round's sequences are "
            "trained on once; leave it out, or take schedule='free'."
        )
    parts = experiment.pull_period // experiment.stride_length
    _check_agent(agent, parts)
    _check_lengths(experiment)
    num_rows = num_actors * num_envs * parts
    if num_rows % experiment.batch_size:
        raise ValueError(
            f"batch_size: got {experiment.batch_size} for schedule='lockstep', "
            f"expected a divisor of {num_rows}, the sequences of a round: {parts} of "
            f"each of {num_envs} environment(s) of {num_actors} actor(s)."
        )
    num_updates = num_rows // experiment.batch_size
    if num_updates > 1 and agent.num_epochs > 1:
        raise ValueError(
            f"batch_size: got {experiment.batch_size} for an agent of num_epochs="
            f"{agent.num_epochs} and schedule='lockstep', expected {num_rows}, all "
            "sequences of a round, since a second batch would meet a policy that has "
            "moved on by all epochs of the first."
        )
    return Round(
        num_actors,
        num_envs,
        experiment.pull_period,
        parts,
        num_updates,
        Order(
            shared_weights.weights_spec(agent),
            tf.TensorSpec([None], tf.uint8),
            tf.TensorSpec([], tf.bool),
        ),
        Rollout(
            tensor_spec.add_outer_dims_nest(
                agent.collect_data_spec, [num_envs, experiment.pull_period + 1]
            ),
            tensor_spec.add_outer_dim(agent.collect_policy.policy_state_spec, num_envs),
            tf.TensorSpec([3], tf.float64),
        ),
    )


def make_tables(experiment: Experiment, num_actors: int) -> list[replay_service.Table]:
    """Makes the queues of all actors, for a server.

    Raises:
      ValueError: See `make_round`.
    """
    agent, num_envs = experiment.build_for_learner()
    round_ = make_round(experiment, num_actors, num_envs, agent)
    return [
        replay_service.Table.queue(name(number), 1, signature=signature)
        for number in range(num_actors)
        for name, signature in (
            (orders, round_.order),
            (rollouts, round_.rollout),
            (states, round_.order.state),
        )
    ]


def orders(number: int) -> str:
    """Returns the name of an actor's table of orders."""
    return f"orders_{number}"


def rollouts(number: int) -> str:
    """Returns the name of an actor's table of rollouts."""
    return f"rollouts_{number}"


def states(number: int) -> str:
    """Returns the name of an actor's table of states."""
    return f"states_{number}"


class Inbox:
    """Takes the items of a queue, one after another."""

    def __init__(self, address: str, table: str, spec: Any) -> None:
        """Stores the arguments; the connection is made when the first item is taken.

        Args:
          address: The server's address.
          table: The name of the queue.
          spec: The nest of specs of an item.
        """
        self._stream = sampler.SampleStream(address, table)
        self._spec = spec

    def take(self, is_stopped: Callable[[], bool] = lambda: False) -> Any:
        """Waits for an item, and returns its nest of arrays.

        Args:
          is_stopped: Returns whether to stop waiting; the result is then None.

        Raises:
          ReplayUnavailable: The server does not answer any more.
        """
        num_leaves = len(tf.nest.flatten(self._spec))
        while not is_stopped():
            batch = self._stream.next_batch(1, timeout=_POLL)
            if batch is not None:
                # The result is one item, which has one step.
                leaves = [column[0, 0] for column in batch[-num_leaves:]]
                return tf.nest.pack_sequence_as(self._spec, leaves)
        return None


def to_array(data: bytes) -> np.ndarray:
    """Returns a uint8 array: the number of bytes, the bytes, and zeros as padding."""
    return replay_servers.padded(len(data).to_bytes(8, "little") + data, b"\0")


def from_array(array: np.ndarray) -> bytes:
    """Returns the bytes from which `to_array` made an array."""
    data = array.tobytes()
    return data[8 : 8 + int.from_bytes(data[:8], "little")]


def _check_agent(agent: tf_agent.TFAgent, parts: int) -> None:
    name = type(agent).__name__
    if not isinstance(agent, on_policy_agent.OnPolicyAgent):
        raise ValueError(
            f"schedule: got 'lockstep' for a {name}, expected an agent that learns "
            "from fresh rollouts, such as ImpalaAgent, PPOAgent or A2CAgent; take "
            "schedule='free'."
        )
    normalizer = agent.reward_normalizer
    if normalizer is not None and normalizer.batch_size is not None:
        raise ValueError(
            f"agent.reward_normalizer: got one of batch_size={normalizer.batch_size}, "
            "which follows the steps of that many environments, expected one of "
            "batch_size=None with gamma=0, because the environments belong to several "
            "actors."
        )
    if parts > 1 and agent.collect_policy.is_recurrent:
        raise ValueError(
            f"pull_period: got {parts} times the stride_length for a recurrent {name} "
            "and schedule='lockstep', expected the stride_length itself, because the "
            "policy's state is known at the beginning of a round only."
        )


def _check_lengths(experiment: Experiment) -> None:
    stride = experiment.stride_length
    for name, given, expected, is_right in (
        (
            "sequence_length",
            experiment.sequence_length,
            f"stride_length + 1 = {stride + 1}, so that the last frame of a sequence "
            "is the first one of the next",
            experiment.sequence_length == stride + 1,
        ),
        (
            "pull_period",
            experiment.pull_period,
            f"a multiple of stride_length = {stride}, so that whole sequences are "
            "collected with the same weights",
            experiment.pull_period % stride == 0,
        ),
    ):
        if not is_right:
            raise ValueError(
                f"{name}: got {given} for schedule='lockstep', expected {expected}; "
                "change it in the Experiment, or take schedule='free'."
            )
