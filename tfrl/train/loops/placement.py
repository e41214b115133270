"""Chooses the devices on which the parts of a training loop run.

A loop is one program, on the agent's device, if that can call the environment. Plain
programs on an accelerator cannot call Python, nor can compiled ones where
`gpu_calls.are_on` says so. There a loop whose environment is in Python consists of two
programs, both called from one `tf.function`:

    on the host:    copy the weights, collect a block of frames with the copies
    on the device:  add the block to the replay buffer, sample, train
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.compilation import accelerators, internals, variable_substitution
from tfrl.compilation.python_calls import gpu_calls
from tfrl.utils import variables

if TYPE_CHECKING:
    from tfrl.typing import types


def device_scope(name: str) -> contextlib.AbstractContextManager[None]:
    """Returns a context in which new variables are placed on a device.

    Args:
      name: The device, such as "GPU:0"; "" leaves the choice to TensorFlow.

    Raises:
      ValueError: There is no such device. (TensorFlow itself would use the CPU.)
    """
    if not name:
        return tf.device(None)
    known = [device.name for device in tf.config.list_logical_devices()]
    try:
        wanted = tf.DeviceSpec.from_string(name if ":" in name else f"{name}:0")
        device = f"/device:{wanted.device_type}:{wanted.device_index or 0}"
    except ValueError:
        device = ""
    if device not in known:
        raise ValueError(
            f"device: got {name!r}, expected one of {known}, or '' for TensorFlow's "
            "choice; a GPU needs CUDA's libraries, pip install 'tfrl[gpu]'."
        )
    return tf.device(name)


def host() -> str:
    """Returns the name, such as "/device:CPU:0", of the CPU that calls Python."""
    return tf.config.list_logical_devices("CPU")[0].name


def device_of(values: Iterable[types.Variable]) -> str:
    """Returns the name, such as "/device:GPU:0", of the first variable's device.

    Args:
      values: `tf.Variable`s or Keras variables; if empty, the host is returned.
    """
    for variable in variables.as_tf_variables(list(values)):
        spec = tf.DeviceSpec.from_string(variable.device)
        return f"/device:{spec.device_type}:{spec.device_index}"
    return host()


def _short(device: str) -> str:
    """Returns a device's name without its prefix: "GPU:0" of "/device:GPU:0"."""
    return device.rpartition("device:")[-1]


def placement_of(
    weights: Iterable[types.Variable], calls_python: bool, *, jit_compile: bool = False
) -> Placement:
    """Returns the placement of a loop.

    Args:
      weights: The agent's variables.
      calls_python: Whether a step of the environment calls Python.
      jit_compile: Whether the loop is to be compiled.
    """
    device = device_of(weights)
    can_call = device == host() or (jit_compile and gpu_calls.are_on(device))
    return Placement(device, calls_python and not can_call)


@dataclasses.dataclass(frozen=True)
class Placement:
    """The devices of a loop, and whether it is one program or two.

    Attributes:
      device: The device of the agent's weights.
      is_split: Whether the host collects and the device trains, in two programs.
    """

    device: str
    is_split: bool

    def describe(self) -> str:
        """Returns where the parts run; empty if there is nothing but one CPU."""
        if self.device == host() and len(tf.config.list_logical_devices()) == 1:
            return ""
        agent, cpu = (_short(device) for device in (self.device, host()))
        if self.is_split:
            return (
                f"The agent trains on {agent}. The environment is in Python, so {cpu} "
                "steps it, with a copy of the policy."
            )
        return f"Agent and environment run on {agent}."

    @property
    def collecting_device(self) -> str:
        """The device that collects; it holds the metrics, counters and seeds."""
        return host() if self.is_split else self.device

    def obstacle(
        self, name: str, values: Iterable[types.Variable], collects: bool
    ) -> str | None:
        """Returns why a compiled program cannot use variables; None if it can.

        Args:
          name: The object to which the variables belong.
          values: The variables.
          collects: Whether the collecting program uses them; else the training program
            does.
        """
        expected = self.collecting_device if collects else self.device
        for variable in variables.as_tf_variables(values):
            found = device_of([variable])
            if found == expected:
                continue
            remedy = f"make it inside of tf.device({expected!r})"
            if variable.dtype == tf.int32:
                remedy += (
                    ", with another dtype, such as int64, because TensorFlow has no "
                    "variables of int32 on a GPU"
                )
            return (
                f"{name} with the variable {variable.name} on {found}, expected it on "
                f"{expected}, because the compiled program that uses it runs there and "
                f"cannot reach another device; {remedy}; or leave jit_compile=False."
            )
        return None

    def on_host(
        self,
        function: Callable[..., Any],
        weights: Callable[[], Iterable[types.Variable]],
        jit_compile: bool,
    ) -> Callable[..., Any]:
        """Returns `function`, wrapped to run on the host if the loop is split.

        Args:
          function: Takes and returns nests of tensors.
          weights: Returns the variables that the program may copy to the host.
          jit_compile: Whether XLA compiles the program.
        """
        if not self.is_split:
            return function
        return HostProgram(function, weights, jit_compile)

    def on_device(
        self, function: Callable[..., Any], jit_compile: bool
    ) -> Callable[..., Any]:
        """Returns `function`, wrapped to run on the device if the loop is split.

        Args:
          function: Takes and returns nests of tensors.
          jit_compile: Whether XLA compiles the program.
        """
        if not self.is_split:
            return function
        return DeviceProgram(function, self.device, jit_compile)


class HostProgram:
    """A function that runs on the host with copies of another device's weights.

    It must be called in a graph. The first call finds the weights that the function
    reads; each call copies these weights to the host. Values that the function assigns
    to them, such as the state of a noisy layer's seeds, are copied back.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        weights: Callable[[], Iterable[types.Variable]],
        jit_compile: bool,
    ) -> None:
        """Wraps the function.

        Args:
          function: Takes and returns nests of tensors.
          weights: Returns the variables that may be copied.
          jit_compile: Whether XLA compiles the function.
        """
        self._function = function
        self._weights = weights
        self._jit_compile = jit_compile
        self._can_copy = not internals.obstacle_to_substitution("copies", "")
        self._copied: list[tf.Variable] | None = None
        # The variables on the host for the weights to which the function assigns.
        self._changed: dict[int, tf.Variable] = {}
        self._program = tf.function(
            self._run_with_copies, autograph=False, jit_compile=jit_compile or None
        )

    def __call__(self, *inputs: Any) -> Any:
        """Returns `function(*inputs)`, computed on the host.

        Raises:
          ValueError: The program is compiled, and uses a variable that is on another
            device and does not belong to the weights.
        """
        if self._copied is None:
            self._copied = self._find_weights(inputs)
        changed = [v for v in self._copied if id(v) in self._changed]
        with tf.device(host()):
            for variable in changed:
                self._changed[id(variable)].assign(variable)
            results = self._program(
                [tf.identity(v) for v in self._copied if id(v) not in self._changed],
                *inputs,
            )
        for variable in changed:
            with tf.device(variable.device):
                variable.assign(self._changed[id(variable)])
        return results

    def _run_with_copies(self, copies: list[tf.Tensor], *inputs: Any) -> Any:
        assert self._copied is not None
        tensors = iter(copies)
        stand_ins = [self._changed.get(id(v)) for v in self._copied]
        with (
            accelerators.graph_for(host()),
            variable_substitution.substituted(
                self._copied, [next(tensors) if s is None else s for s in stand_ins]
            ),
        ):
            return self._function(*inputs)

    def _find_weights(self, inputs: Any) -> list[tf.Variable]:
        """Returns the weights that the function reads from another device."""
        if not self._can_copy:
            return []  # A plain graph reads them from their device.
        specs = tf.nest.map_structure(
            lambda tensor: tf.TensorSpec(tensor.shape, tensor.dtype), inputs
        )
        # This trace only gives the list of variables; it never runs.
        with tf.init_scope(), tf.device(host()):
            probe = tf.function(self._function, autograph=False)
            graph = probe.get_concrete_function(*specs).graph
        # TensorFlow lists them in another order in each process.
        remote = {id(v): v for v in graph.variables if device_of([v]) != host()}
        weights = {id(v): v for v in variables.as_tf_variables(list(self._weights()))}
        others = [remote[key] for key in remote if key not in weights]
        if others and self._jit_compile:
            raise ValueError(
                f"jit_compile: the program that collects on {host()} uses "
                f"{', '.join(f'{v.name} on {device_of([v])}' for v in others)}, "
                "expected variables on the host, apart from the agent's; make the "
                "observers and schedules that hold them inside of tf.device('CPU:0')."
            )
        copied = [weights[key] for key in weights if key in remote]
        changed = {id(variable) for variable in internals.changed_variables(graph)}
        # After a call of `tf.Variable` a `tf.function` would trace a second time.
        with tf.init_scope(), tf.device(host()):
            self._changed = {
                id(variable): type(variable)(variable, trainable=False)
                for variable in copied
                if id(variable) in changed
            }
        return copied


class DeviceProgram:
    """A function that runs on one device; it must be called in a graph."""

    def __init__(
        self, function: Callable[..., Any], device: str, jit_compile: bool
    ) -> None:
        """Wraps the function.

        Args:
          function: Takes and returns nests of tensors.
          device: The device on which the function runs.
          jit_compile: Whether XLA compiles the function.
        """
        self._device = device
        self._program = tf.function(
            function, autograph=False, jit_compile=jit_compile or None
        )

    def __call__(self, *inputs: Any) -> Any:
        """Returns `function(*inputs)`."""
        with tf.device(self._device):
            return self._program(*inputs)
