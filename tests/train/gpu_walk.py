"""Walks over traced functions and says what each operation would do on a GPU.

TensorFlow's Linux wheel registers its GPU kernels on a machine without a GPU, too. A
kernel's registration names the arguments that it takes from, or leaves in, the memory
of the host. So a walk over the operations of a traced function shows which of them have
no GPU kernel, and which tensors are copied from the GPU to the host.
"""

import collections
import functools
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry

INTEGERS = frozenset(
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
# Operations whose GPU kernels copy whole operands to the host, compute there, and copy
# the result back, for these dtypes. Read in TensorFlow 2.21: `DoScatter` of
# tensorflow/core/kernels/resource_variable_ops.cc and `DoScatterNd` of
# scatter_nd_op.cc say "Run on the CPU for integer types, since the GPU implementation
# uses atomics, which are not supported for all integer types". The second is seen in
# the wheel, too: of `DoScatterNd<Eigen::GpuDevice, T, ...>`, `nm -DC
# libtensorflow_cc.so.2` lists half, bfloat16, float, double and complex alone. With
# `enable_op_determinism`, both do so for every dtype.
WORKING_ON_HOST = {
    **dict.fromkeys(
        (
            f"ResourceScatter{kind}"
            for kind in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")
        ),
        ("dtype", INTEGERS),
    ),
    **dict.fromkeys(
        (
            "ResourceScatterNdAdd",
            "ResourceScatterNdSub",
            "ResourceScatterNdUpdate",
            "ScatterNd",
            "TensorScatterAdd",
            "TensorScatterMax",
            "TensorScatterMin",
            "TensorScatterSub",
            "TensorScatterUpdate",
        ),
        ("T", INTEGERS),
    ),
}
# Handles and references to tensors lie in the host's memory whatever they refer to.
_REFERENCES = {"string", "resource", "variant"}


class Crossing(NamedTuple):
    """A tensor that is copied from the GPU to the host.

    Attributes:
      source: The type of the operation that computes it.
      name: The name of that operation.
      dtype: The tensor's dtype.
      user: The type of an operation that needs it on the host.
      times: How often an iteration copies it.
    """

    source: str
    name: str
    dtype: str
    user: str
    times: int


@functools.cache
def kernels_of(op):
    return tuple(kernels.get_registered_kernels_for_op(op).kernel)


def gpu_kernel(node):
    """The kernel that a GPU would run, or None."""
    found = [
        kernel
        for kernel in kernels_of(node.op)
        if kernel.device_type in ("GPU", "DEFAULT")
        and all(_allows(constraint, node) for constraint in kernel.constraint)
    ]
    return max(found, key=lambda kernel: kernel.device_type == "GPU", default=None)


def _allows(constraint, node):
    value = node.attr[constraint.name]
    given = list(value.list.type) or [value.type]
    return set(given) <= set(constraint.allowed_values.list.type)


def dtypes(node):
    return {
        tf.as_dtype(value.type).name
        for name, value in node.attr.items()
        if value.type and not name.startswith("_")
    }


def falling_back(trace):
    """The operations without a kernel for a GPU, and the dtypes of each.

    Args:
      trace: A concrete function; the functions that it calls are looked through, too.
    """
    return _dtypes_by_op(trace, lambda node: gpu_kernel(node) is None)


def working_on_host(trace):
    """The operations whose GPU kernels work on the host, and the dtypes of each."""
    return _dtypes_by_op(trace, works_on_host)


def works_on_host(node):
    name, on_host = WORKING_ON_HOST.get(node.op, ("", ()))
    return name and tf.as_dtype(node.attr[name].type).name in on_host


def _dtypes_by_op(trace, holds):
    graph = trace.graph.as_graph_def()
    functions = {function.signature.name for function in graph.library.function}
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    found = collections.defaultdict(set)
    for node in nodes:
        if node.op not in functions and holds(node):
            found[node.op] |= dtypes(node)
    return dict(found)


def crossings(trace, device="", host=None):
    """The tensors that one turn of a trace's loop copies from the GPU to the host.

    An operation without a GPU kernel, or placed on `host`, needs all of its inputs
    there; a GPU kernel needs the inputs that its registration names. What an operation
    on the GPU computes crosses if it is needed so: once, whatever the number of its
    users and of operations that compute the same. Constants that are not int32 lie on
    the GPU and cross, too. So does what an operation that works on the host copies
    there. From one turn of a loop to the next, and out of a `tf.cond`,
    int32 goes by the host. What is in a loop counts as often as the loop turns; of a
    `tf.cond`, both branches count. What is outside of all loops does not.

    Args:
      trace: A concrete function.
      device: The name of the device on which it is called.
      host: How the name of the host's device ends, such as "CPU:0"; all else is on the
        GPU. None puts all on the GPU.

    Returns:
      A list of `Crossing`s, the most frequent ones first.
    """
    graph = trace.graph.as_graph_def()
    walk = _Walk({f.signature.name: f for f in graph.library.function}, host)
    definition = trace.function_def
    # The last arguments are the handles of the variables.
    devices = [getattr(handle, "device", "") for handle in trace.captured_inputs]
    names = definition.signature.input_arg
    devices = [""] * (len(names) - len(devices)) + devices
    on_host = walk.is_on_host(device)
    arguments = [
        _Value(_dtype(arg.type), on_host, "Arg", arg.name, arg.name, device=resource)
        for arg, resource in zip(names, devices, strict=True)
    ]
    walk.call(definition, arguments, 0, device)
    return sorted(walk.found.values(), key=lambda crossing: -crossing.times)


class _Value(NamedTuple):
    """A tensor in a walk.

    Attributes:
      dtype: The dtype's name.
      on_host: Whether it lies in the host's memory.
      source: The type of the operation that computes it.
      name: The name of that operation.
      key: What equals the key of any tensor that is computed in the same way.
      is_constant: Whether it is known when the function is traced.
      number: Its value, if it is a constant integer.
      device: Of a handle, the device of the resource.
    """

    dtype: str
    on_host: bool
    source: str
    name: str
    key: object
    is_constant: bool = False
    number: int | None = None
    device: str = ""


class _Walk:
    """Follows tensors through functions."""

    def __init__(self, library, host):
        self.found = {}
        self.library = library
        self._host = host

    def call(self, definition, arguments, times, device):
        """Walks through one function; returns the values of its results."""
        frame = _Frame(self, definition, arguments, times, device)
        for control in definition.control_ret.values():
            frame.run(control)
        return [
            frame.value(definition.ret[result.name])
            for result in definition.signature.output_arg
        ]

    def is_on_host(self, device):
        return self._host is not None and device.endswith(self._host)

    def need_on_host(self, value, user, times):
        """Notes that `user` reads the value in the memory of the host."""
        if value.on_host or value.dtype in _REFERENCES or not times:
            return
        key = value.key, value.dtype
        if key not in self.found or self.found[key].times < times:
            self.found[key] = Crossing(
                value.source, value.name, value.dtype, user, times
            )


class _Frame:
    """One call of a function, which runs `times` times in an iteration."""

    def __init__(self, walk, definition, arguments, times, device):
        self._walk = walk
        self._times = times
        self._device = device
        self._name = definition.signature.name
        self._nodes = {node.name: node for node in definition.node_def}
        names = [arg.name for arg in definition.signature.input_arg]
        self._arguments = dict(zip(names, arguments, strict=True))
        self._results = {}

    def value(self, name):
        """Returns the value of "argument" or "node:output:index"."""
        if name in self._arguments:
            return self._arguments[name]
        node, output, index = name.split(":")
        return self.run(node)[output][int(index)]

    def run(self, name):
        """Returns the values of a node's outputs, by the outputs' names."""
        if name not in self._results and name not in self._arguments:
            node = self._nodes[name]
            for control in (x[1:] for x in node.input if x.startswith("^")):
                self.run(control)
            inputs = [self.value(x) for x in node.input if not x.startswith("^")]
            self._results[name] = self._run(node, inputs)
        return self._results.get(name)

    def _run(self, node, inputs):
        definition = op_def_registry.get(node.op)
        if definition is None or node.op.endswith("PartitionedCall"):
            return self._call(node, inputs)
        if node.op in ("While", "StatelessWhile"):
            return self._loop(node, inputs)
        if node.op in ("If", "StatelessIf"):
            return self._branch(node, inputs)
        if node.op == "Identity":
            return {"output": inputs}  # TensorFlow leaves nearly all of them out.
        kernel = gpu_kernel(node)
        resource = next((value.device for value in inputs if value.device), "")
        on_host = kernel is None or self._walk.is_on_host(
            resource or node.device or self._device
        )
        in_host_memory = () if on_host else kernel.host_memory_arg
        is_constant = (
            not definition.is_stateful
            and node.op != "Placeholder"
            and all(value.is_constant for value in inputs)
        )
        if not is_constant:  # TensorFlow computes constants once.
            given = iter(inputs)
            for arg in definition.input_arg:
                for _ in _types(arg, node):
                    value = next(given)
                    if on_host or arg.name in in_host_memory:
                        self._walk.need_on_host(value, node.op, self._times)
        name = f"{self._name}/{node.name}"
        if not on_host and works_on_host(node):
            dtype = _dtype(node.attr[WORKING_ON_HOST[node.op][0]].type)
            self._walk.need_on_host(
                _Value(dtype, False, node.op, name, name), node.op, self._times
            )
        key = name if definition.is_stateful else _key(node, inputs)
        return {
            arg.name: [
                _Value(
                    dtype,
                    on_host
                    or arg.name in in_host_memory
                    or (is_constant and dtype == "int32"),
                    node.op,
                    name,
                    (key, arg.name, i),
                    is_constant,
                    _number(node, inputs),
                )
                for i, dtype in enumerate(_types(arg, node))
            ]
            for arg in definition.output_arg
        }

    def _call(self, node, inputs):
        is_call = node.op.endswith("PartitionedCall")
        name = node.attr["f"].func.name if is_call else node.op
        definition = self._walk.library[name]
        device = node.device or self._device
        results = self._walk.call(definition, inputs, self._times, device)
        if is_call:
            return {"output": results}
        names = [arg.name for arg in definition.signature.output_arg]
        return {name: [value] for name, value in zip(names, results, strict=True)}

    def _loop(self, node, inputs):
        condition, body = (
            self._walk.library[node.attr[name].func.name] for name in ("cond", "body")
        )
        device = node.device or self._device
        inputs = [self._handed_on(value, node, self._times) for value in inputs]
        times = _turns(condition, inputs) * max(self._times, 1)
        varying = [
            value._replace(
                source="While",
                name=f"{self._name}/{node.name}",
                key=(self._name, node.name, i),
                is_constant=False,
                number=None,
            )
            for i, value in enumerate(inputs)
        ]
        (goes_on,) = self._walk.call(condition, varying, times, device)
        if not self._walk.is_on_host(device):
            self._walk.need_on_host(goes_on, "LoopCond", times)
        for value in self._walk.call(body, varying, times, device):
            self._handed_on(value, node, times)
        return {"output": varying}

    def _branch(self, node, inputs):
        device = node.device or self._device
        self._walk.need_on_host(inputs[0], node.op, self._times)
        inputs = [self._handed_on(v, node, self._times) for v in inputs[1:]]
        both = [
            self._walk.call(
                self._walk.library[node.attr[name].func.name],
                inputs,
                self._times,
                device,
            )
            for name in ("then_branch", "else_branch")
        ]
        for results in both:
            handed_on = [self._handed_on(v, node, self._times) for v in results]
        name = f"{self._name}/{node.name}"
        return {
            "output": [
                value._replace(source="If", name=name, key=(name, i))
                for i, value in enumerate(handed_on)
            ]
        }

    def _handed_on(self, value, node, times):
        """Returns a value as loops and branches get and return it."""
        on_host = self._walk.is_on_host(node.device or self._device)
        if on_host or value.dtype == "int32":
            self._walk.need_on_host(value, node.op, times)
        return value._replace(on_host=on_host or value.dtype == "int32")


def _turns(condition, inputs):
    """How often a loop turns; 1 if that is not known when it is traced."""
    known = {
        arg.name: value.number
        for arg, value in zip(condition.signature.input_arg, inputs, strict=True)
    }
    nodes = {node.name: node for node in condition.node_def}

    def number(name):
        name = name.split(":")[0]
        if name in known:
            return known[name]
        node = nodes[name]
        if node.op in ("Cast", "Identity"):
            return number(node.input[0])
        return _number(node, ())

    limits = [number(node.input[1]) for node in nodes.values() if node.op == "Less"]
    return min((limit for limit in limits if limit is not None), default=1)


def _number(node, inputs):
    """The value of a constant integer; None if there is none."""
    if node.op == "Cast" and inputs:
        return inputs[0].number
    if node.op != "Const":
        return None
    value = tf.make_ndarray(node.attr["value"].tensor)
    return int(value) if value.shape == () and value.dtype.kind in "iu" else None


def _key(node, inputs):
    attributes = tuple(
        (name, value.SerializeToString(deterministic=True))
        for name, value in sorted(node.attr.items())
        if not name.startswith("_")
    )
    # Nested keys would be as long as the graph.
    return hash((node.op, attributes, tuple(value.key for value in inputs)))


def _types(arg, node):
    """The dtypes of an operation's argument, which may be a list of tensors."""
    if arg.type_list_attr:
        return [_dtype(dtype) for dtype in node.attr[arg.type_list_attr].list.type]
    dtype = _dtype(node.attr[arg.type_attr].type if arg.type_attr else arg.type)
    return [dtype] * (node.attr[arg.number_attr].i if arg.number_attr else 1)


def _dtype(dtype):
    return tf.as_dtype(dtype).name
