"""Base classes of batched environments, and of batches of `PyEnvironment`s."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import time_step_checker
from tfrl.trajectories import time_step as ts


class EnvironmentBatch(py_environment.PyEnvironment):
    """Base of batched environments; subclasses set the three attributes below."""

    _batch_size: int
    _action_spec: Any  # The spec of one member's actions, like the specs of time steps.
    _time_step_spec: ts.TimeStep

    @property
    def batched(self) -> bool:
        """Always True: there is a batch dimension."""
        return True

    @property
    def batch_size(self) -> int:
        """The number of members."""
        return self._batch_size

    def observation_spec(self) -> Any:
        """The specs of one member's observations."""
        return self._time_step_spec.observation

    def action_spec(self) -> Any:
        """The specs of one member's actions."""
        return self._action_spec

    def reward_spec(self) -> Any:
        """The specs of one member's rewards."""
        return self._time_step_spec.reward

    def discount_spec(self) -> Any:
        """The spec of one member's discount."""
        return self._time_step_spec.discount

    def time_step_spec(self) -> ts.TimeStep:
        """The specs of one member's time steps."""
        return self._time_step_spec


class BatchOfMembers(EnvironmentBatch):
    """Base of batches of `PyEnvironment`s, in this process or in others."""

    # Each member keeps its own current time step, and resets when it has none.
    _current_time_step: Any = ()
    _envs: list[Any]

    @property
    def envs(self) -> list[Any]:
        """The members."""
        return self._envs

    @property
    def is_bandit(self) -> bool:
        """Whether the members of the batch are bandits."""
        return all(env.is_bandit is True for env in self._envs)

    def seed(self, seed: int | Sequence[Any]) -> list[Any]:
        """Seeds the members.

        Args:
          seed: One seed for each member; or a number, which gives member `i` the seed
            `seed + i`.

        Returns:
          The results of the members' own `seed`.

        Raises:
          ValueError: If there is not one seed for each member.
          NotImplementedError: If a member cannot be seeded.
        """
        if isinstance(seed, (int, np.integer)):
            seed = [int(seed) + i for i in range(self.batch_size)]
        if len(seed) != self.batch_size:
            raise ValueError(
                f"seed: got {len(seed)} seeds, expected one for each of the "
                f"{self.batch_size} members; give as many, or a single number."
            )
        return self._call("seed", [(own,) for own in seed])

    @property
    def is_seeded(self) -> bool:
        """Whether the batch or a member was given a seed."""
        return self._is_seeded or any(env.is_seeded for env in self._envs)

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute in all members; see `PyEnvironment.change`."""
        self._call("change", [(name, value, calls)] * self.batch_size)

    def get_info(self) -> Any:
        """Returns the members' infos as one nest, `[B, ...]`.

        Infos that differ in structure or shape are returned as a list of `B`.
        """
        return stack_infos(self._call("get_info"))

    def get_state(self) -> list[Any]:
        """Returns the members' states.

        Raises:
          NotImplementedError: If a member's state cannot be saved.
        """
        nothing: list[tuple[Any, ...]] = [()] * self.batch_size
        return self._apply("get_state", py_environment.capture_state, nothing)

    def set_state(self, state: list[Any]) -> None:
        """Restores a result of `get_state`.

        Raises:
          NotImplementedError: If a member's state cannot be restored.
          ValueError: It is the state of another number of members.
        """
        if not isinstance(state, list | tuple) or len(state) != self.batch_size:
            size = len(state) if isinstance(state, list | tuple) else "no list"
            raise ValueError(
                f"state: got {size}, expected the states of {self.batch_size} members; "
                "give what get_state of a batch of this size has returned."
            )
        arguments = [(member,) for member in state]
        self._apply("set_state", py_environment.restore_state, arguments)
        time_steps = [member["time_step"] for member in state]
        are_known = all(time_step is not None for time_step in time_steps)
        self._restore_time_step(self._stack(time_steps) if are_known else ())

    def _call(
        self, name: str, arguments: Sequence[tuple[Any, ...]] | None = None
    ) -> list[Any]:
        """Calls a method of all members, each with its own arguments, if any."""
        arguments = [()] * self.batch_size if arguments is None else arguments
        return self._apply(name, _call_method, [(name, *args) for args in arguments])

    @abc.abstractmethod
    def _stack(self, time_steps: list[ts.TimeStep]) -> ts.TimeStep:
        """Returns the time steps of the members as one, `[B, ...]`."""

    @abc.abstractmethod
    def _apply(
        self,
        what: str,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
    ) -> list[Any]:
        """Calls `function(member, *args)` for every member, with its own `args`.

        Args:
          what: The name of the call, for messages.
          function: A function that pickles.
          arguments: The further arguments for each member.
        """


def _call_method(member: Any, name: str, *args: Any) -> Any:
    return getattr(member, name)(*args)


def check_equal_specs(argument: str, envs: Sequence[Any]) -> None:
    """Checks that all members have the specs of the first.

    Args:
      argument: The name of the members in the message, such as "envs".
      envs: The members.

    Raises:
      ValueError: If specs differ; the message names the member and the field.
    """
    steps, actions = envs[0].time_step_spec(), envs[0].action_spec()
    for index, env in enumerate(envs):
        where = f"{argument}[{index}]"
        _check_equal(where, (), env.time_step_spec(), steps)
        _check_equal(where, ("action",), env.action_spec(), actions)


def unstack_actions(batched_actions: Any, batch_size: int | None = None) -> list[Any]:
    """Splits a batch of actions into the list of the members' actions.

    Args:
      batched_actions: A nest of arrays `[B, ...]`.
      batch_size: The number of members; None takes it from the actions.

    Raises:
      ValueError: If the arrays differ in their first dimension, or have another one
        than `batch_size`.
    """
    leaves = [np.asarray(leaf) for leaf in tree.flatten(batched_actions)]
    sizes = [leaf.shape[:1] for leaf in leaves]
    expected = (sizes[0] if sizes else ()) if batch_size is None else (batch_size,)
    if not expected or any(size != expected for size in sizes):
        size = "in all" if batch_size is None else str(batch_size)
        raise ValueError(
            f"action: got leading dimensions {sizes}, expected the batch size {size}; "
            "give one action for each member."
        )
    return [
        tree.unflatten_as(batched_actions, [leaf[i] for leaf in leaves])
        for i in range(len(leaves[0]))
    ]


def stack_time_steps(
    time_steps: Sequence[ts.TimeStep], spec: ts.TimeStep, name: Callable[[int], str]
) -> ts.TimeStep:
    """Stacks the members' time steps into one, `[B, ...]`.

    Args:
      time_steps: One time step for each member.
      spec: The time step spec of all members.
      name: Maps a member's index to its name in the message.

    Raises:
      ValueError: If the time steps do not fit together; the message names the member
        and the field.
    """
    try:
        return tree.map_structure(lambda *leaves: np.stack(leaves), *time_steps)
    except (TypeError, ValueError):
        flat = [
            time_step_checker.TimeStepChecker(name(index), spec).conform(time_step)
            for index, time_step in enumerate(time_steps)
        ]
        return tree.map_structure(lambda *leaves: np.stack(leaves), *flat)


def stack_infos(infos: list[Any]) -> Any:
    """Stacks the members' infos `[B, ...]`, or returns the list if they differ."""
    try:
        return tree.map_structure(lambda *leaves: np.stack(leaves), *infos)
    except (TypeError, ValueError):
        return infos


def _check_equal(where: str, root: tuple[str, ...], got: Any, expected: Any) -> None:
    if got == expected:
        return
    ours = {_join(root, path): leaf for path, leaf in tree.flatten_with_path(got)}
    first = {_join(root, path): leaf for path, leaf in tree.flatten_with_path(expected)}
    for field in sorted(ours.keys() | first.keys()):
        if ours.get(field) != first.get(field):
            raise ValueError(
                f"{where}: got the {field} spec {ours.get(field)}, expected the first "
                f"member's, {first.get(field)}; wrap the members so that they agree."
            )
    raise ValueError(
        f"{where}: got specs packed as {type(got).__name__}, expected the first "
        f"member's, {expected}; wrap the members so that they agree."
    )


def _join(root: tuple[str, ...], path: tuple[Any, ...]) -> str:
    return "/".join((*root, *map(str, path)))
