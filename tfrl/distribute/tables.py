"""The tables of a replay server, by which actors and learner meet."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl import replay_buffers, replay_service
from tfrl.agents import tf_agent
from tfrl.distribute import experiment as experiments
from tfrl.distribute import reports
from tfrl.distribute import reverb_variable_container as containers
from tfrl.specs import tensor_spec

SEQUENCES = replay_buffers.reverb_replay_buffer.DEFAULT_TABLE
VARIABLES = containers.DEFAULT_TABLE


def make_tables(experiment: experiments.Experiment) -> list[replay_service.Table]:
    """Makes the tables of sequences, weights and reports, for a server."""
    agent = experiment.build_agent()
    return [
        experiment.make_table(
            SEQUENCES,
            tensor_spec.add_outer_dim(
                agent.collect_data_spec, experiment.sequence_length
            ),
        ),
        replay_service.Table(
            VARIABLES,
            sampler=replay_service.selectors.Uniform(),
            remover=replay_service.selectors.Fifo(),
            max_size=1,
            rate_limiter=replay_service.rate_limiters.MinSize(1),
            signature=tf.nest.map_structure(
                lambda v: tf.TensorSpec(v.shape, v.dtype), shared_variables(agent)
            ),
        ),
        reports.make_table(),
    ]


def shared_variables(agent: tf_agent.TFAgent) -> dict[str, Any]:
    """Returns the variables that the learner pushes and the actors pull."""
    return {
        containers.POLICY_KEY: list(agent.collect_policy.variables()),
        containers.TRAIN_STEP_KEY: agent.train_step_counter,
    }
