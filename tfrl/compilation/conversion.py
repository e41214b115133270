"""Keeps AutoGraph from converting modules that need no conversion.

`tf.function` converts each Python function that it meets, at 10 to 300 ms each, and an
agent's `train` meets a hundred. No function of this package branches on a tensor, but
users' functions may, and AutoGraph finds them only through converted callers. The
modules in `_CALL_NOTHING_OF_USERS` call no code of users, except through Keras layers
and optimizers, which AutoGraph never converts. AutoGraph can therefore leave these
modules as they are.
"""

from __future__ import annotations

import functools

from tfrl.compilation import context, internals

_CALL_NOTHING_OF_USERS = (
    "agents.checks",
    "agents.data_converter",
    "compilation.context",
    "compilation.internals",
    "compilation.words",
    "environments.boundary",
    "environments.random_tf_environment",
    "losses",
    "networks.construction.checks",
    "networks.network",
    "policies.random_tf_policy",
    "policies.acting.validation",
    "replay_buffers.batch_check",
    "replay_buffers.episodic_store",
    "replay_buffers.episodic_table",
    "replay_buffers.reverb.reverb_rollouts",
    "replay_buffers.reverb_replay_buffer",
    "replay_buffers.reverb_utils",
    "replay_buffers.table",
    "replay_buffers.ring.sum_tree",
    "replay_service.client",
    "replay_service.trajectory_writer",
    "replay_service.transport",
    "replay_service.writing",
    "specs.array_spec",
    "specs.bounds",
    "specs.tensor_sampling",
    "trajectories",
    "utils.composite",
    "utils.nests.batching",
    "utils.nests.checks",
    "utils.random_numbers.seeds",
    "utils.variables",
)


@functools.cache
def spare_modules() -> None:
    """Makes AutoGraph leave `_CALL_NOTHING_OF_USERS` unconverted from now on."""
    internals.leave_unconverted(
        context.name_in_this_package(module) for module in _CALL_NOTHING_OF_USERS
    )
