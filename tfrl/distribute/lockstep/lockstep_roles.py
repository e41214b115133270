"""The learner of a run in lockstep, which orders rounds, and the actors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl import replay_service, train
from tfrl.agents import tf_agent
from tfrl.compilation import accelerators, stored_values
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.lockstep import rounds
from tfrl.distribute.roles import actor, learner
from tfrl.distribute.weights import shared_weights
from tfrl.savers import serialization
from tfrl.specs import tensor_spec
from tfrl.train.loops import loop_checks, placement
from tfrl.utils import variables as variables_lib


def learn(
    experiment: Experiment,
    address: str,
    directory: train.RunDirectory,
    num_iterations: int,
    num_actors: int,
    is_stopped: Callable[[], bool],
) -> train.RunResult:
    """Trains in rounds; see `learner.learn`.

    Args:
      experiment: The run's experiment.
      address: The server's address.
      directory: The directory of the outputs, which the run locks.
      num_iterations: The total number of rounds.
      num_actors: The number of actors.
      is_stopped: Returns whether to stop before that.
    """
    agent, num_envs = experiment.build_for_learner(device=experiment.device)
    round_ = rounds.make_round(experiment, num_actors, num_envs, agent)
    actors = Actors(agent, address, round_)
    run = train.Run(
        LockstepLoop(agent, actors, round_, jit_compile=experiment.jit_compile),
        directory,
        num_iterations=num_iterations,
        is_interrupted=is_stopped,
        **experiment.make_run_settings(agent),
    )
    actors.check_restored()
    return learner.finished(run.run(), is_stopped)


class Actors(tf.train.experimental.PythonState):
    """The learner's connection to the actors.

    A checkpoint holds the states and counters of the actors. To save a checkpoint, this
    object asks the actors for their states. So all actors must be waiting for an order
    then, as they are between two rounds.
    """

    def __init__(
        self, agent: tf_agent.TFAgent, address: str, round_: rounds.Round
    ) -> None:
        """Stores the arguments; the connection is made when the actors are needed.

        Args:
          agent: The agent whose weights the actors use.
          address: The server's address.
          round_: The sizes and specs of a round.
        """
        self._variables = shared_weights.shared_variables(agent)
        self._client = replay_service.Client(address)
        self._numbers = range(round_.num_actors)
        self._rollouts = [
            rounds.Inbox(address, rounds.rollouts(n), round_.rollout)
            for n in self._numbers
        ]
        text = round_.order.state
        self._states = [
            rounds.Inbox(address, rounds.states(n), text) for n in self._numbers
        ]
        self._counters = np.zeros([round_.num_actors, 3])
        # The states from which the actors continue; empty for actors that begin.
        self._restored = [b""] * round_.num_actors
        self._have_begun = False

    def collect(self) -> list[rounds.Rollout]:
        """Makes all actors take the steps of a round with the current weights.

        Returns:
          The rollout of each actor.
        """
        if self._have_begun:
            self._order(wants_state=False)
        else:
            self._have_begun = True
            for number, state in enumerate(self._restored):
                self._order([number], state)
        rollouts = [inbox.take() for inbox in self._rollouts]
        self._counters = np.stack([rollout.counters for rollout in rollouts])
        return rollouts

    def counters(self) -> dict[str, Any]:
        """Returns the actors' counters after the last round, for `IterationInfo`.

        The average return is the mean, over the actors that have finished episodes, of
        the mean returns of the last 10 episodes of each; 0 before the first one.
        """
        steps, episodes, means = self._counters.T
        known = means[episodes > 0]
        return {
            "environment_steps": int(steps.sum()),
            "episodes": int(episodes.sum()),
            "average_return": float(known.mean()) if len(known) else 0.0,
        }

    def check_restored(self) -> None:
        """Checks that a restored checkpoint has a state for each actor.

        Raises:
          ValueError: It was saved with another number of actors.
        """
        if len(self._restored) != len(self._numbers):
            raise ValueError(
                f"num_actors: got {len(self._numbers)}, but the checkpoint was saved "
                f"with {len(self._restored)}; give this number, or another directory."
            )

    def serialize(self) -> bytes:
        """Returns the states and counters of all actors as bytes."""
        if self._have_begun:
            self._order(wants_state=True)
            taken = [rounds.from_array(inbox.take()) for inbox in self._states]
        else:
            taken = self._restored
        return serialization.to_bytes({"states": taken, "counters": self._counters})

    def deserialize(self, string_value: bytes) -> None:
        """Restores the bytes of `serialize`, from which the actors continue."""
        saved = serialization.from_bytes(string_value)
        self._restored, self._counters = saved["states"], saved["counters"]

    def _order(
        self,
        numbers: Sequence[int] | None = None,
        state: bytes = b"",
        wants_state: bool = False,
    ) -> None:
        """Sends an order to some actors, or to all, with one copy of the weights."""
        numbers = self._numbers if numbers is None else numbers
        order = rounds.Order(
            self._variables, rounds.to_array(state), np.bool_(wants_state)
        )
        self._client.insert(order, {rounds.orders(n): 1.0 for n in numbers})


class LockstepLoop(train.TrainingLoop):
    """Trains on the rollouts of all actors; an iteration is a round.

    As in an `OnPolicyLoop`, the agent's `preprocess_sequence` is given the whole rows
    of a round, and the statistics of the normalizers change after the last update,
    unless the agent's `train` updates them.
    """

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        actors: Any,
        round_: rounds.Round,
        *,
        jit_compile: bool = False,
    ) -> None:
        """Creates the loop.

        Args:
          agent: An `OnPolicyAgent`.
          actors: The `Actors`.
          round_: The sizes and specs of a round.
          jit_compile: Whether XLA compiles the updates, where it can.
        """
        placed = placement.placement_of(agent.variables(), calls_python=False)
        obstacle = loop_checks.obstacle_without_environment(None)
        obstacle = obstacle or loop_checks.misplaced(agent, [], placed)
        compiles: Any = "auto" if jit_compile else False
        compiles = loop_checks.resolve_compilation(compiles, obstacle)
        super().__init__(agent, None, 0, compiles, placed)
        self._actors = actors
        self._round = round_
        self._is_recurrent = agent.collect_policy.is_recurrent
        num_rows = round_.num_actors * round_.num_envs * round_.parts
        num_frames = round_.num_steps // round_.parts
        if agent.compute_value_and_advantage_in_train:
            num_frames += 1
        with tf.device(placed.device):
            self._last_batch = stored_values.StoredNest(
                tensor_spec.add_outer_dims_nest(
                    agent.training_data_spec,
                    [num_rows // round_.num_updates, num_frames],
                )
            )

    def checkpoint_items(self, include_replay_buffer: bool = True) -> dict[str, Any]:
        """Returns the objects to save, by name."""
        items = super().checkpoint_items(include_replay_buffer)
        return {**items, "actors": self._actors}

    def info(self, loss: float = float("nan")) -> train.IterationInfo:
        """Returns the counters; steps and episodes are summed over all actors."""
        return super().info(loss)._replace(**self._actors.counters())

    def can_draw_for_log(self) -> bool:
        """Whether there was a round in this process, and the agent is not recurrent."""
        return self.trace_count() > 0 and not self._is_recurrent

    def draw_for_log(self) -> Any:
        """Returns the batch of the last update."""
        return self._last_batch.read()

    def _one_call(
        self, most_iterations: int, loss_sum: tf.Tensor
    ) -> tuple[int, tf.Tensor]:
        """Does one round, so that the actors wait between two calls."""
        del most_iterations
        device = tf.device(self._placement.collecting_device)
        with loop_checks.short_assertions(), self._own_errors(), device:
            rollouts = self._actors.collect()
            frames, policy_state = tf.nest.map_structure(
                lambda *leaves: tf.constant(np.concatenate(leaves)),
                *[(rollout.frames, rollout.policy_state) for rollout in rollouts],
            )
            _, loss_sum = self._call(
                (frames, policy_state), tf.constant(1, tf.int64), loss_sum
            )
        self._iteration.assign_add(1)
        loss = float(loss_sum)  # Waits for the device.
        if self._jit_compile:
            self._check_call(loss, 1)
        return 1, loss_sum

    def _advance(self, position: tuple[Any, ...]) -> tuple[tuple[Any, ...], tf.Tensor]:
        """Trains on a round; returns it, and the mean loss of the updates.

        Args:
          position: Frames `[R, T + 1, ...]` and policy states `[R, ...]`, where the `R`
            rows are the environments of all actors.
        """
        frames, policy_state = position
        agent, num_updates = self._agent, self._round.num_updates
        kwargs = {"policy_state": policy_state} if self._is_recurrent else {}
        experience = self._in_sequences(agent.preprocess_sequence(frames, **kwargs))
        batches = accelerators.map_moved(self._in_batches, (experience, policy_state))
        (loss_sum,) = self._transform.repeat(
            num_updates, self._update, (tf.constant(0.0),), batches
        )
        if self._ends_rounds():
            agent.end_iteration([experience], policy_state)
        last_batch, _ = accelerators.map_moved(lambda leaf: leaf[-1], batches)
        self._last_batch.assign(last_batch)
        if not agent.update_normalizers_in_train:
            agent.update_normalizers(
                accelerators.map_moved(lambda t: t[:, :-1], frames)
            )
        return position, loss_sum / num_updates

    def _update(
        self, i: tf.Tensor, loss_sum: tf.Tensor, batches: Any, policy_states: Any
    ) -> tuple[tf.Tensor]:
        """Trains on batch `i`; returns the sum of losses."""
        experience, policy_state = accelerators.map_moved(
            lambda leaf: leaf[i], (batches, policy_states)
        )
        kwargs = {"policy_state": policy_state} if self._is_recurrent else {}
        if self._ends_rounds():
            kwargs["ends_iteration"] = False
        return (loss_sum + self._agent.train(experience, **kwargs).loss,)

    def _ends_rounds(self) -> bool:
        """Whether the loop calls `end_iteration`, which `train` does for one update."""
        return self._round.num_updates > 1

    def _in_sequences(self, experience: Any) -> Any:
        """Returns experience `[R, T, ...]` as its sequences, `[R parts, ...]`.

        If rows have a frame for the last time step, each sequence has such a frame at
        its own end.
        """
        parts = self._round.parts
        if parts == 1:
            return experience
        length = self._round.num_steps // parts
        has_reached = self._agent.compute_value_and_advantage_in_train

        def divide(column: tf.Tensor) -> tf.Tensor:
            rest = column.shape[2:]
            steps = column[:, : parts * length]
            divided = tf.reshape(steps, [-1, parts, length, *rest])
            if has_reached:
                reached = column[:, length::length, tf.newaxis]
                divided = tf.concat([divided, reached], axis=2)
            return tf.reshape(divided, [-1, length + has_reached, *rest])

        return accelerators.map_moved(divide, experience)

    def _in_batches(self, column: tf.Tensor) -> tf.Tensor:
        """Returns a column `[N, ...]` as `[updates, N / updates, ...]`."""
        return tf.reshape(column, [self._round.num_updates, -1, *column.shape[1:]])


def act(
    experiment: Experiment,
    address: str,
    number: int,
    num_actors: int,
    is_stopped: Callable[[], bool],
) -> None:
    """Takes the steps of a round, or sends the actor's state, until it is stopped.

    Args:
      experiment: The run's experiment.
      address: The server's address.
      number: The number of the actor, from 0.
      num_actors: The number of actors.
      is_stopped: Returns whether to stop.
    """
    # The same one whenever this actor starts.
    seed = actor.seed_of(experiment, number, 0)
    environment, agent = experiment.build(seed, device=experiment.actor_device)
    round_ = rounds.make_round(experiment, num_actors, environment.batch_size, agent)
    client = replay_service.Client(address)
    orders = rounds.Inbox(address, rounds.orders(number), round_.order)
    loop = actor.make_loop(experiment, environment, agent, seed)
    variables = tf.nest.flatten(shared_weights.shared_variables(agent))
    with contextlib.closing(environment):
        while (order := orders.take(is_stopped)) is not None:
            state = rounds.from_array(order.state)
            if state:
                loop.restore_state(state)
            if order.wants_state:
                array = rounds.to_array(loop.save_state())
                client.insert(array, {rounds.states(number): 1.0})
                continue
            weights = tf.nest.flatten(order.weights)
            for variable, value in zip(variables, weights, strict=True):
                variables_lib.as_tf_variable(variable).assign(value)
            rollout = _collect(loop, round_.num_steps)
            client.insert(rollout, {rounds.rollouts(number): 1.0})


def _collect(loop: train.ActorLoop, num_steps: int) -> rounds.Rollout:
    frames, policy_state = loop.collect_rollout(num_steps)
    info = loop.info()
    counters = info.environment_steps, info.episodes, info.average_return
    return rounds.Rollout(frames, policy_state, np.array(counters, np.float64))
