"""Calls Python from a program that XLA compiled.

An ordinary graph calls Python through `tf.numpy_function`, which XLA cannot compile.
Under XLA `host_call` makes a custom call of XLA's foreign function interface (its
stable C interface, declared in `xla/ffi/api/c_api.h` of TensorFlow's headers). A single
handler, written in Python, answers all of these calls. Such a call takes a few
microseconds; a `tf.numpy_function` takes twenty or more.

XLA must never see a call fail: when a program fails, XLA frees the variables that the
program was about to update in place, and TensorFlow continues using their memory. So an
exception is kept, and raised after the program has ended. `call` chooses between the
two kinds of calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.compilation import accelerators, context, internals
from tfrl.compilation.python_calls import gpu_calls, graph_calls, xla_ffi

HostFunction = Callable[..., Sequence[np.ndarray]]

_TARGET = "tfrl_host_call"
_CPU, _CUDA = "CPU", "CUDA"  # Platforms of programs.
_MOST_KNOWN = 16
_MLIR_TYPES = {
    tf.bool: "i1",
    tf.int8: "i8",
    tf.int16: "i16",
    tf.int32: "i32",
    tf.int64: "i64",
    tf.uint8: "ui8",
    tf.uint16: "ui16",
    tf.uint32: "ui32",
    tf.uint64: "ui64",
    tf.float16: "f16",
    tf.bfloat16: "bf16",
    tf.float32: "f32",
    tf.float64: "f64",
}


class CallChannel:
    """Serialises host calls and keeps the first exception one of them raises.

    After an exception the calls return their fallback values and call nothing, until
    `check` has raised the exception. Create the channel before the graph is built.
    """

    def __init__(self) -> None:
        """Creates the variable that orders the calls."""
        self.state = graph_calls.order_variable()
        # Programs on another device cannot reach it. By the device's name.
        self._others: dict[str, tf.Variable] = {}
        self.error: BaseException | None = None
        self._kept: BaseException | None = None
        self._is_watched = False

    def has_failed(self) -> tf.Tensor:
        """Returns a bool scalar: whether a call has raised. Loops use it to stop."""
        if not context.in_xla_graph():
            return self.state.read_value() != 0
        return self.state_on(accelerators.device_of_trace()).read_value() != 0

    def state_on(self, device: str) -> tf.Variable:
        """Returns the variable that orders the calls of programs on a device."""
        if accelerators.is_host(device):
            return self.state
        if device not in self._others:
            # After a call of `tf.Variable` a `tf.function` would trace a second time.
            with tf.init_scope(), tf.device(device):
                self._others[device] = type(self.state)(self.state, trainable=False)
        return self._others[device]

    def fail(self, error: BaseException) -> None:
        """Records an exception that a call has raised."""
        self.error = error
        if not self._is_watched:
            traceback.print_exception(error)

    def check(self) -> None:
        """Raises the recorded exception, if there is one, and forgets it."""
        if self.error is not None:
            error, self.error = self.error, None
            for state in (self.state, *self._others.values()):
                state.assign(0)
            raise error

    def keep(self, error: BaseException) -> None:
        """Keeps an exception that makes a graph fail that XLA did not compile."""
        self._kept = error

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Raises the exceptions of the called functions unchanged, and unprinted.

        The exception of a compiled program is raised when the context ends. The last
        exception given to `keep` is raised instead of the `tf.errors.OpError` that
        TensorFlow made of it.
        """
        self.check()
        self._is_watched, self._kept = True, None
        try:
            yield
        except tf.errors.OpError:
            kept, self._kept = self._kept, None
            if kept is None:
                raise
            raise kept from None
        finally:
            self._is_watched = False
        self.check()


def obstacle() -> str | None:
    """Returns why this build of TensorFlow cannot call Python from XLA, or None."""
    try:
        internals.check_xla_call_module()
        _register_handler(_CPU)
    except NotImplementedError as error:
        return str(error)
    return None


@tf.autograph.experimental.do_not_convert
def host_call(
    function: HostFunction,
    inputs: Sequence[tf.Tensor],
    output_specs: Sequence[tf.TensorSpec],
    channel: CallChannel,
    fallback: HostFunction | None = None,
    name: str | None = None,
) -> list[tf.Tensor]:
    """Calls a Python function from a graph that XLA compiles.

    No gradient flows through the call, as with `tf.numpy_function`.

    Args:
      function: Takes NumPy arrays, one for each input, and returns a sequence of arrays
        of `output_specs`. The inputs are XLA's own memory: the function may neither
        change nor keep them.
      inputs: Tensors of fully defined shapes.
      output_specs: The shape and dtype of each output.
      channel: Orders the calls. Calls that share a channel are made in program order,
        also in loops, branches and functions, and programs that share a channel run one
        after another. Calls of different channels are made in any order.
      fallback: Takes no arguments and returns the outputs for a call that raised, and
        for the calls after it. If None, these outputs are zeros.
      name: The operation's name in the graph.

    Returns:
      A tensor for each of `output_specs`.

    Raises:
      NotImplementedError: If this build of TensorFlow does not have the interface, or a
        shape or dtype cannot be passed.
      ValueError: If the program is for a device that cannot call Python.
    """
    device = accelerators.device_of_trace()
    platform = _platform_of(device)
    _register_handler(platform)
    order = channel.state_on(device)
    inputs = [tf.stop_gradient(tensor) for tensor in inputs]
    with tf.name_scope(name or "host_call"):
        # XLA orders calls only by data dependencies, and follows these through the
        # variables. So each call takes and returns the value of the channel's variable.
        operands = [*inputs, order.read_value()]
        operand_specs = [_spec(tensor) for tensor in operands]
        site = _CallSite(function, operand_specs[:-1], output_specs, channel, fallback)
        output_specs = [*output_specs, operand_specs[-1]]
        module = _module(_remember(site), operand_specs, output_specs)
        *outputs, state = internals.xla_call_module(
            operands,
            version=9,
            module=module,
            Tout=[spec.dtype for spec in output_specs],
            Sout=[spec.shape for spec in output_specs],
            platforms=[platform],
            disabled_checks=[f"custom_call:{_TARGET}"],
        )
        order.assign(state)
    return outputs


@tf.autograph.experimental.do_not_convert
def call(
    function: HostFunction,
    inputs: Sequence[tf.Tensor],
    output_specs: Sequence[tf.TensorSpec],
    channel: CallChannel,
    fallback: HostFunction | None = None,
    name: str | None = None,
) -> list[tf.Tensor]:
    """Calls a Python function from a graph, whether or not XLA compiles it.

    Args:
      function: See `host_call`. The function may return arrays of other dtypes, which
        are converted.
      inputs: Tensors; of fully defined shapes under XLA.
      output_specs: See `host_call`.
      channel: See `host_call`; it orders the calls of other graphs, too. The channel's
        `raising` raises exceptions as they are.
      fallback: See `host_call`. It has no effect in graphs that XLA does not compile,
        which end at an exception.
      name: See `host_call`.

    Returns:
      A tensor for each of `output_specs`.

    Raises:
      NotImplementedError: See `host_call`.
    """
    if context.in_xla_graph():
        return host_call(function, inputs, output_specs, channel, fallback, name)

    dtypes = [spec.dtype.as_numpy_dtype for spec in output_specs]

    def kept(*arrays: np.ndarray) -> list[np.ndarray]:
        try:
            # Copies, because TensorFlow may use the memory of an array that it gets.
            return [
                np.array(result, dtype)
                for result, dtype in zip(function(*arrays), dtypes, strict=True)
            ]
        except BaseException as error:
            channel.keep(error)
            raise

    return graph_calls.call_in_order(channel.state, kept, inputs, output_specs, name)


def _platform_of(device: str) -> str:
    """Returns XLA's name of a device's platform; raises a ValueError if it has none."""
    if accelerators.is_host(device):
        return _CPU
    if gpu_calls.are_on(device):
        return _CUDA
    raise ValueError(
        f"jit_compile: got a compiled function that calls Python, such as the step of "
        f"a Python environment, on {device}, expected it on the CPU, which alone can "
        "call Python; call the function inside of tf.device('CPU:0')."
    )


def _spec(tensor: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _module(
    site: int, inputs: Sequence[tf.TensorSpec], outputs: Sequence[tf.TensorSpec]
) -> str:
    """Returns a StableHLO program that consists of the call of a site alone."""
    input_types = [_mlir_type(spec) for spec in inputs]
    output_types = ", ".join(_mlir_type(spec) for spec in outputs)
    names = [f"%arg{i}" for i in range(len(inputs))]
    signature = ", ".join(f"{n}: {t}" for n, t in zip(names, input_types, strict=True))
    results = ", ".join(f"%0#{i}" for i in range(len(outputs)))
    if len(outputs) == 1:
        results = "%0"
    count = f":{len(outputs)}" if len(outputs) > 1 else ""
    return f"""module {{
      func.func public @main({signature}) -> ({output_types}) {{
        %0{count} = stablehlo.custom_call @{_TARGET}({", ".join(names)}) {{
          api_version = 4 : i32, has_side_effect = true,
          backend_config = {{site = {site} : i64}}
        }} : ({", ".join(input_types)}) -> ({output_types})
        return {results} : {output_types}
      }}
    }}"""


def _mlir_type(spec: tf.TensorSpec) -> str:
    if spec.dtype not in _MLIR_TYPES or not spec.shape.is_fully_defined():
        raise NotImplementedError(
            f"host_call: got {spec}, expected a fully defined shape and one of the "
            f"dtypes {[dtype.name for dtype in _MLIR_TYPES]}, since nothing else can "
            "be passed from a program compiled by XLA to Python; do not compile this "
            "loop."
        )
    return f"tensor<{''.join(f'{d}x' for d in spec.shape)}{_MLIR_TYPES[spec.dtype]}>"


class _CallSite:
    """A place in a program that calls Python."""

    def __init__(
        self,
        function: HostFunction,
        inputs: Sequence[tf.TensorSpec],
        outputs: Sequence[tf.TensorSpec],
        channel: CallChannel,
        fallback: HostFunction | None,
    ) -> None:
        self._function = function
        self._inputs, self._outputs = inputs, outputs
        self._channel = channel
        self._fallback = fallback or (lambda: [np.zeros([], bool)] * len(outputs))
        # XLA uses the same few buffers again and again.
        self._known: dict[tuple[int, ...], _Buffers] = {}
        self._staging: gpu_calls.Staging | None = None

    def call(self, addresses: tuple[int, ...]) -> None:
        """Calls the function.

        Args:
          addresses: The addresses of the operands of the call in XLA's memory, and then
            of its results.
        """
        channel = self._channel
        inputs, outputs, state = self._known.get(addresses) or self._view(addresses)
        if channel.error is None:
            try:
                values = self._function(*inputs)
                if len(values) != len(outputs):
                    raise _wrong_number(values, outputs)
                # zip takes longer than the copies.
                for index, output in enumerate(outputs):
                    output[...] = values[index]
            except BaseException as error:  # Ctrl-C, too, is raised later.
                channel.fail(error)
        if channel.error is None:
            state.value = 0
            return
        for output, value in zip(outputs, self._fallback(), strict=True):
            output[...] = value
        state.value = 1

    def staging(self, memory: gpu_calls.Memory) -> gpu_calls.Staging:
        """Returns the memory of the host for calls from another device."""
        if self._staging is None:
            outputs = [_size(spec) for spec in self._outputs]
            self._staging = gpu_calls.Staging(
                memory,
                # The channel's variable is not read.
                [*(_size(spec) for spec in self._inputs), 0],
                [*outputs, ctypes.sizeof(ctypes.c_int64)],
            )
        return self._staging

    def _view(self, addresses: tuple[int, ...]) -> _Buffers:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        end = len(self._inputs)
        # The channel's variable is the last operand, and the last result.
        places = [*addresses[:end], *addresses[end + 1 : -1]]
        arrays = [
            _array_at(address, spec)
            for address, spec in zip(
                places, [*self._inputs, *self._outputs], strict=True
            )
        ]
        buffers = _Buffers(
            arrays[:end],
            arrays[end:],
            ctypes.c_int64.from_address(addresses[-1]),
        )
        self._known[addresses] = buffers
        return buffers


class _Buffers(NamedTuple):
    """XLA's memory for a call."""

    inputs: list[np.ndarray]
    outputs: list[np.ndarray]
    state: ctypes.c_int64


def _wrong_number(values: Sequence[Any], outputs: Sequence[Any]) -> ValueError:
    return ValueError(
        f"function: got {len(values)} results, expected {len(outputs)}, one for each "
        "of output_specs; return an array for each."
    )


def _size(spec: tf.TensorSpec) -> int:
    """Returns the size of a buffer in bytes."""
    return math.prod(spec.shape) * spec.dtype.size


def _array_at(address: int, spec: tf.TensorSpec) -> np.ndarray:
    """Returns an array over the buffer at an address."""
    buffer: Any = (ctypes.c_char * _size(spec)).from_address(address)
    return np.frombuffer(buffer, spec.dtype.as_numpy_dtype).reshape(spec.shape)


# The call sites, by the numbers that programs pass to the handler.
_sites: weakref.WeakValueDictionary[int, _CallSite] = weakref.WeakValueDictionary()


def _remember(site: _CallSite) -> int:
    """Returns a number for the site, and keeps the site as long as its graphs live.

    The number is an attribute of the call, the only trace of this process in it.
    """
    number = internals.next_number()
    _sites[number] = site
    graph_calls.keep_in_graphs(site)
    return number


def _answer(site: int, addresses: tuple[int, ...], xla_context: int) -> None:
    """Makes the call of a site.

    Args:
      site: The number of the site.
      addresses: The addresses of the input buffers, then of the output buffers.
      xla_context: XLA's context of the call.
    """
    del xla_context
    _sites[site].call(addresses)


def _answer_on(
    memory: gpu_calls.Memory,
    find_stream: Callable[[int], int],
    site: int,
    addresses: tuple[int, ...],
    xla_context: int,
) -> None:
    """Makes the call of a site in a program on a device with other memory.

    Args:
      memory: Copies between the device's memory and the host's.
      find_stream: Returns the device's stream of a context.
      site: See `_answer`.
      addresses: See `_answer`; addresses of the device.
      xla_context: See `_answer`.
    """
    called = _sites[site]
    called.staging(memory).call(called.call, addresses, find_stream(xla_context))


@functools.cache
def _register_handler(platform: str) -> Any:
    """Registers the handler with XLA, once; the returned object must be kept."""
    if platform == _CPU:
        return xla_ffi.register(_TARGET, _answer)
    answer = functools.partial(_answer_on, gpu_calls.CudaMemory(), xla_ffi.stream_of)
    return xla_ffi.register(_TARGET, answer, platform)
