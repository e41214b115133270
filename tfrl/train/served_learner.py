"""`save_learner` writes an agent that keeps learning as one SavedModel.

The SavedModel needs TensorFlow alone, in Python or in TensorFlow Serving. Its
signatures take and return dictionaries of tensors, named by their paths, such as
`observation` or `observation_per_arm`:

- `act` takes observations `[B, ...]` and returns the exploring policy's `action`, and
  its `policy_info`, which belongs to the row that is learned later. Each loaded copy
  draws from fresh entropy.
- `learn` does one update and returns `loss` and `train_step`. A bandit's row has
  `observation` (without the features of all arms), `action`, `reward` and
  `policy_info`; a row of another agent has `discount` (0 at a termination) and
  `next_observation`, too.
- `state` returns all variables that `learn` changes, and `restore` takes them.

`learn` and `restore` raise `tf.errors.InvalidArgumentError` before they change anything
if an input has another shape. `learn` does so, too, for numbers that are not finite,
and for actions, discounts and integers out of the bounds of their specs.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.policies.saving import saved_model
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import variables


def save_learner(
    agent: tf_agent.TFAgent,
    path: str | os.PathLike[str],
    learn_batch_size: int | None = None,
) -> None:
    """Saves an agent with its current weights; see the module.

    Args:
      agent: An initialized agent of a bandit, or one that learns from transitions.
      path: The directory of the SavedModel.
      learn_batch_size: The number of rows that `learn` takes; None leaves it open. With
        a number, an update has the same bits as `agent.train` with so many rows; some
        agents compute an update of an open number in another way.

    Raises:
      NotImplementedError: The agent has memory, or learns from sequences.
    """
    if agent.collect_policy.is_recurrent or not (
        agent.learns_from_rounds or agent.train_sequence_length == 2
    ):
        raise NotImplementedError(
            f"agent: got a {type(agent).__name__}, which learns from sequences, "
            "expected an agent of a bandit, or one that learns from transitions, such "
            "as DqnAgent with n_step_update=1."
        )
    held = variables.as_tf_variables(agent.variables)
    signatures = {
        "act": _act(agent),
        "learn": _learn(agent, learn_batch_size),
        **_state_and_restore(held, agent.train_step_counter),
    }
    module = tf.Module(name="learner")
    traced = [each.get_concrete_function() for each in signatures.values()]
    module.model_variables = variables.as_tf_variables(
        [*held, *(v for each in traced for v in each.variables)]
    )
    with saved_model.no_harmless_warnings():
        tf.saved_model.save(module, os.fspath(path), signatures=signatures)


def _act(agent: tf_agent.TFAgent) -> Any:
    policy = agent.collect_policy

    def act(inputs: Any) -> Any:
        observation = inputs["observation"]
        batch_size = tf.shape(tf.nest.flatten(observation)[0])[0]
        step = policy.action(
            ts.restart(observation, batch_size), seed=saved_model.fresh_seed()
        )
        return {"action": step.action, "policy_info": step.info}

    inputs = _named({"observation": policy.time_step_spec.observation})
    outputs = _named({"action": policy.action_spec, "policy_info": policy.info_spec})
    return saved_model.function_with_flat_signature(
        act,
        (saved_model.add_outer_dims(inputs, [None]),),
        saved_model.names_of(outputs),
    )


def _learn(agent: tf_agent.TFAgent, batch_size: int | None) -> Any:
    spec = agent.training_data_spec
    names = ["observation", "action", "reward", "policy_info"]
    inputs = {name: getattr(spec, name) for name in names}
    if not agent.learns_from_rounds:
        inputs |= {"discount": spec.discount, "next_observation": spec.observation}

    def learn(row: Any) -> Any:
        make = _round if agent.learns_from_rounds else _transition
        row = _of_right_shapes(row, taken)
        with tf.control_dependencies(_checks(row, inputs)):
            info = agent.train(make(row))
            step = agent.train_step_counter.read_value()
        return {"loss": info.loss, "train_step": step}

    taken = saved_model.add_outer_dims(_named(inputs), [batch_size])

    return saved_model.function_with_flat_signature(
        learn,
        (taken,),
        ["loss", "train_step"],
    )


def _of_right_shapes(inputs: Any, specs: Any) -> Any:
    """Returns tensors whose shapes are compared when the graph runs.

    TensorFlow takes other shapes for the signature of a SavedModel, and would leave out
    comparisons with a shape that the graph gives its inputs.
    """
    return tf.nest.map_structure(
        lambda x, spec: tf.ensure_shape(
            tf.raw_ops.PlaceholderWithDefault(input=x, shape=None),
            spec.shape,
            name=f"shape_of_{spec.name}",
        ),
        inputs,
        specs,
    )


def _checks(row: Any, specs: Any) -> list[tf.Operation]:
    """Returns the operations that refuse a row with wrong numbers.

    Args:
      row: What `learn` takes.
      specs: The specs of a single row, some of them with bounds.
    """
    check, found = tf.debugging, []
    size = tf.shape(row["reward"])[0]
    leaves = map(tf.nest.flatten, (row, specs, _named(specs)))
    for x, spec, named in zip(*leaves, strict=True):
        name = named.name
        text = f"{name}: expected as many rows as reward has, and at least one"
        found.append(check.assert_equal(tf.shape(x)[0], tf.maximum(size, 1), text))
        if spec.dtype.is_floating:
            text = f"{name}: expected finite numbers"
            found.append(check.Assert(tf.reduce_all(tf.math.is_finite(x)), [text]))
        is_bounded = isinstance(spec, tensor_spec.BoundedTensorSpec)
        # Observations may leave the bounds of their specs a little.
        is_exact = spec.dtype.is_integer or name.startswith(("action", "discount"))
        if is_bounded and is_exact:
            is_in = (x >= spec.minimum) & (x <= spec.maximum)
            text = f"{name}: expected from {spec.minimum} to {spec.maximum}"
            found.append(check.Assert(tf.reduce_all(is_in), [text, x]))
    return found


def _named(specs: Any) -> Any:
    """Returns specs named by their paths; loaded functions show no "/" in names."""
    return tf.nest.map_structure(
        lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype, leaf.name.replace("/", "_")),
        saved_model.rename_spec_with_nest_paths(specs),
    )


def _round(row: Any) -> trajectory.Trajectory:
    row = tf.nest.map_structure(lambda x: x[:, tf.newaxis], row)
    return trajectory.single_step(**row, discount=tf.zeros_like(row["reward"]))


def _transition(row: Any) -> trajectory.Transition:
    discount = row["discount"]
    middle = tf.fill(tf.shape(discount), ts.StepType.MID)
    is_last = tf.equal(discount, 0)
    after = tf.where(is_last, ts.StepType.LAST, ts.StepType.MID)
    return trajectory.Transition(
        ts.TimeStep(
            middle,
            tf.zeros_like(discount),
            tf.ones_like(discount),
            row["observation"],
        ),
        policy_step.PolicyStep(row["action"], (), row["policy_info"]),
        ts.TimeStep(after, row["reward"], discount, row["next_observation"]),
    )


def _state_and_restore(held: list[tf.Variable], counter: tf.Variable) -> dict[str, Any]:
    specs = [
        tf.TensorSpec(variable.shape, variable.dtype, name=f"variable_{i}")
        for i, variable in enumerate(held)
    ]

    def restore(*values: tf.Tensor) -> Any:
        checked = _of_right_shapes(list(values), specs)
        with tf.control_dependencies(checked):
            for variable, value in zip(held, checked, strict=True):
                variable.assign(value)
            return counter.read_value()

    signature = saved_model.function_with_flat_signature
    return {
        "state": signature(
            lambda: [variable.read_value() for variable in held],
            (),
            saved_model.names_of(specs),
        ),
        "restore": signature(restore, specs, ["train_step"]),
    }
