"""The actor of a run in lockstep, which follows the learner's orders."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfrl import replay_service, train
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.lockstep import rounds
from tfrl.distribute.roles import actor
from tfrl.distribute.weights import shared_weights
from tfrl.utils import variables as variables_lib


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


def _collect(loop: train.CollectLoop, num_steps: int) -> rounds.Rollout:
    frames, policy_state = loop.collect_rollout(num_steps)
    info = loop.info()
    counters = info.environment_steps, info.episodes, info.average_return
    return rounds.Rollout(frames, policy_state, np.array(counters, np.float64))
