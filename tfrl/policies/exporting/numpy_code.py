"""Translates the graph of a function to Python code that needs only NumPy.

Each operation becomes a line. Operations whose inputs are constants are computed at
once, and equal operations only once.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

# An array of so many elements or fewer is written into the code.
_SMALL = 16
# How the modules begin.
MARK = b'"""Acts as a policy that tfrl trained'
_HEADER = '''"""Acts as a policy that tfrl trained; the arrays are in {arrays}."""

import pathlib

import numpy as np

w = np.load(pathlib.Path(__file__).with_suffix(".npz"), allow_pickle=False)
w = {{name: w[name] for name in w.files}}
# The dtype and the shape of each input of `act`, after the dimension of the batch.
INPUTS = {inputs}
'''
# Functions that the code has if it calls them.
_HELPERS = {
    "softmax": """
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
""",
    "pad_same": """
def pad_same(x, sizes, strides, value=0):
    missing = [
        max((-(-n // s) - 1) * s + k - n, 0)
        for n, k, s in zip(x.shape[1:3], sizes, strides)
    ]
    pads = [(0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)]
    return np.pad(x, pads, constant_values=value)
""",
    "windows": """
def windows(x, sizes, strides):  # [B, H, W, C, *sizes]
    x = np.lib.stride_tricks.sliding_window_view(x, sizes, (1, 2))
    return x[:, :: strides[0], :: strides[1]]
""",
    "conv2d": """
def conv2d(x, w, strides):  # w is [height, width, inputs, outputs].
    x = windows(x, w.shape[:2], strides)
    y = x.reshape(-1, w[..., 0].size) @ w.transpose(2, 0, 1, 3).reshape(-1, w.shape[3])
    return y.reshape(*x.shape[:3], -1)
""",
}

# The expressions of operations: `{0}`, `{1}` and so on are their inputs, `{all}` the
# list of these, and the other names their attributes.
_EXPRESSIONS = {
    **dict.fromkeys(("Add", "AddV2", "BiasAdd"), "{0} + {1}"),
    "Sub": "{0} - {1}",
    "Mul": "{0} * {1}",
    **dict.fromkeys(("RealDiv", "Div"), "{0} / {1}"),
    "DivNoNan": "np.where({1} == 0, 0, {0} / np.where({1} == 0, 1, {1}))",
    "FloorDiv": "{0} // {1}",
    "FloorMod": "{0} % {1}",
    "Pow": "{0} ** {1}",
    "SquaredDifference": "({0} - {1}) ** 2",
    "Maximum": "np.maximum({0}, {1})",
    "Minimum": "np.minimum({0}, {1})",
    "Neg": "-{0}",
    "Square": "{0} ** 2",
    "Reciprocal": "1 / {0}",
    "Round": "np.round({0})",  # Both to the even neighbour of a half.
    "Rsqrt": "1 / np.sqrt({0})",
    **{
        name: f"np.{name.lower()}({{0}})"
        for name in (
            *("Abs", "Sqrt", "Exp", "Log", "Log1p", "Expm1", "Sin", "Cos"),
            *("Tanh", "Sign", "Floor", "Ceil"),
        )
    },
    "Relu": "np.maximum({0}, 0)",
    "Relu6": "np.clip({0}, 0, 6)",
    "LeakyRelu": "np.where({0} > 0, {0}, {0} * {alpha})",
    "Elu": "np.where({0} > 0, {0}, np.expm1(np.minimum({0}, 0)))",
    "Selu": "1.05070098 * np.where({0} > 0, {0}, 1.67326324 * np.expm1("
    "np.minimum({0}, 0)))",
    "Sigmoid": "0.5 + 0.5 * np.tanh(0.5 * {0})",
    "Softplus": "np.logaddexp({0}, 0)",
    "Softsign": "{0} / (1 + np.abs({0}))",
    "Softmax": "softmax({0})",
    "Equal": "{0} == {1}",
    "NotEqual": "{0} != {1}",
    "Less": "{0} < {1}",
    "LessEqual": "{0} <= {1}",
    "Greater": "{0} > {1}",
    "GreaterEqual": "{0} >= {1}",
    "LogicalAnd": "{0} & {1}",
    "LogicalOr": "{0} | {1}",
    "LogicalNot": "~{0}",
    **dict.fromkeys(("Select", "SelectV2"), "np.where({0}, {1}, {2})"),
    "ClipByValue": "np.clip({0}, {1}, {2})",
    "MatMul": "{0}{t0} @ {1}{t1}",
    "BatchMatMulV2": "{0}{t0} @ {1}{t1}",
    "Cast": "{0}.astype(np.{dtype})",
    "ArgMax": "np.argmax({0}, {1}).astype(np.{dtype})",
    "ArgMin": "np.argmin({0}, {1}).astype(np.{dtype})",
    **{
        name: f"np.{name.lower()}({{0}}, {{axes1}}, keepdims={{keep_dims}})"
        for name in ("Sum", "Mean", "Max", "Min", "Prod", "All", "Any")
    },
    "Shape": "np.array(np.shape({0}), np.{dtype})",
    "StridedSlice": "{0}[{slices}]",
    "Reshape": "np.reshape({0}, {1})",
    "ExpandDims": "np.expand_dims({0}, {1})",
    "Squeeze": "np.squeeze({0}, {squeeze_dims})",
    "Transpose": "np.transpose({0}, {1})",
    "Tile": "np.tile({0}, {1})",
    "Fill": "np.full({0}, {1})",
    "ZerosLike": "np.zeros_like({0})",
    "OnesLike": "np.ones_like({0})",
    "BroadcastTo": "np.broadcast_to({0}, {1})",
    "BroadcastArgs": "np.array(np.broadcast_shapes({0}, {1}), np.{dtype})",
    "Pack": "np.stack({all}, {axis})",
    "ConcatV2": "np.concatenate({all}, {axis})",
    "GatherV2": "np.take({0}, {1}, {2})",
    "OneHot": "np.where({0}[..., None] == np.arange({1}), {2}, {3})",
    "Range": "np.arange({0}, {1}, {2}, np.{dtype})",
    "Split": "np.split({1}, {num_split}, {0})[{output}]",
    "SplitV": "np.split({0}, np.cumsum({1})[:-1], {2})[{output}]",
    "Unpack": "np.moveaxis({0}, {axis}, 0)[{output}]",
    "IdentityN": "{all}[{output}]",
    "Pad": "np.pad({0}, {1})",
    "PadV2": "np.pad({0}, {1}, constant_values={2})",
    "Cumsum": "np.cumsum({0}, {1})",
    "Conv2D": "conv2d({padded}, {1}, {pool_strides})",
    "MaxPool": "windows({padded}, {pool_sizes}, {pool_strides}).max((4, 5))",
    "AvgPool": "windows({padded}, {pool_sizes}, {pool_strides}).mean((4, 5))",
}
_SAME = {
    *("Identity", "StopGradient", "PreventGradient", "CheckNumerics", "Snapshot"),
    *("ReadVariableOp", "EnsureShape"),
}
_ATTRIBUTES = {
    *("keep_dims", "axis", "num_split", "alpha"),
}


def compile_function(
    function: Any, inputs: Mapping[str, tf.TensorSpec], arrays_name: str
) -> tuple[str, dict[str, np.ndarray]]:
    """Returns the code of a module with a function `act`, and its arrays by name.

    `act` takes a dict of arrays `[B, ...]` by the names of the inputs, and returns a
    dict of arrays by the names of the outputs.

    Args:
      function: A concrete function that returns a dict of tensors.
      inputs: The specs of its inputs by their names, without the batch, in order.
      arrays_name: The name of the file that the arrays will be in, for the docstring.

    Raises:
      ValueError: The graph has an operation that cannot be translated.
    """
    compiler = _Compiler(function, list(inputs))
    outputs = {
        name: compiler.name_of(tensor)
        for name, tensor in function.structured_outputs.items()
    }
    body = "\n".join(f"    {line}" for line in compiler.lines)
    used = _with_helpers(body)
    described = {name: (x.dtype.name, tuple(x.shape)) for name, x in inputs.items()}
    rows = "".join(f"        {name!r}: {value},\n" for name, value in outputs.items())
    source = (
        _HEADER.format(inputs=described, arrays=arrays_name)
        + "".join(f"\n{_HELPERS[name]}" for name in used)
        + '\n\ndef act(inputs):\n    """Returns the outputs [B, ...] by name."""\n'
        + f"{body}\n    return {{\n{rows}    }}\n"
    )
    return source, compiler.arrays


def _with_helpers(body: str) -> list[str]:
    """Returns the names of the helpers that some code needs, in their order."""
    text = body
    for name in reversed(_HELPERS):
        text += _HELPERS[name] if f"{name}(" in text else ""
    return [name for name in _HELPERS if f"{name}(" in text.replace(f"def {name}(", "")]


def _helpers() -> dict[str, Any]:
    """Returns the helpers as functions, to compute constants with."""
    found: dict[str, Any] = {"np": np}
    exec("".join(_HELPERS.values()), found)
    return found


class _Compiler:
    """Writes the lines of a graph.

    Attributes:
      lines: The lines so far.
      arrays: The arrays that they use, by name.
    """

    def __init__(self, function: Any, inputs: list[str]) -> None:
        self.lines: list[str] = []
        self.arrays: dict[str, np.ndarray] = {}
        variables = {id(x.handle): x for x in function.graph.variables}
        self._values = {
            inside.name: np.asarray(variables.get(id(outside), outside))
            for outside, inside in function.graph.captures
        }
        self._names: dict[str, str] = {}
        self._known: dict[Any, str] = {}
        self._scope = _helpers()
        count = len(inputs)
        for tensor, name in zip(function.inputs[:count], inputs, strict=True):
            self._names[tensor.name] = self._line(f"inputs[{name!r}]", _word(name))

    def name_of(self, tensor: Any) -> str:
        """Returns the expression for a tensor, after the lines that it needs."""
        if tensor.name in self._values:
            return self._constant(self._values[tensor.name])
        return self._names[tensor.name] if self._find(tensor) else self.name_of(tensor)

    def _find(self, tensor: Any) -> bool:
        """Finds a tensor's name or its constant value; returns whether it is a name."""
        if tensor.name in self._names or tensor.name in self._values:
            return tensor.name in self._names
        operation = tensor.op
        if operation.type == "Const":
            self._values[tensor.name] = tf.make_ndarray(operation.get_attr("value"))
        elif operation.type in _SAME or _keeps_shape(operation, tensor):
            self._alias(tensor, operation.inputs[0])
        else:
            self._translate(tensor, operation)
        return tensor.name in self._names

    def _alias(self, tensor: Any, other: Any) -> None:
        if self._find(other):
            self._names[tensor.name] = self._names[other.name]
        else:
            self._values[tensor.name] = self._values[other.name]

    def _translate(self, tensor: Any, operation: Any) -> None:
        """Computes an operation on constants, or writes its line."""
        varies = [self._find(x) for x in operation.inputs]
        build = _expression(operation, tensor)
        if any(varies):
            words = [self.name_of(x) for x in operation.inputs]
            self._names[tensor.name] = self._line(build(words, self._constant_of))
            return
        words = [f"_{i}" for i in range(len(varies))]
        values = [self._values[x.name] for x in operation.inputs]
        scope = {**self._scope, **dict(zip(words, values, strict=True))}
        value = np.asarray(eval(build(words, self._constant_of), scope))
        self._values[tensor.name] = value.astype(tensor.dtype.as_numpy_dtype)

    def _constant_of(self, tensor: Any) -> np.ndarray:
        if self._find(tensor):
            raise _untranslated(f"{tensor.op.type} with computed sizes")
        return self._values[tensor.name]

    def _line(self, expression: str, name: str = "") -> str:
        """Writes a line, unless there is one for the same; returns its variable."""
        if expression not in self._known:
            taken = set(self._known.values())
            name = name if name and name not in taken else f"x{len(self.lines)}"
            self.lines.append(f"{name} = {expression}")
            self._known[expression] = name
        return self._known[expression]

    def _constant(self, value: np.ndarray) -> str:
        """Returns the expression for a constant."""
        if value.size <= _SMALL and np.all(np.isfinite(value)):
            dtype = "bool_" if value.dtype == bool else value.dtype.name
            if value.ndim == 0:
                return f"np.{dtype}({value.item()!r})"
            return f"np.array({value.tolist()!r}, np.{dtype})"
        key = (value.dtype.name, value.shape, value.tobytes())
        if key not in self._known:
            name = f"w{len(self.arrays)}"
            self.arrays[name] = value
            self._known[key] = f'w["{name}"]'
        return self._known[key]


def _keeps_shape(operation: Any, tensor: Any) -> bool:
    """Whether an operation broadcasts to the same shape; only the batch is unknown."""
    if operation.type != "BroadcastTo" or tensor.shape.rank is None:
        return False
    shape: list[int | None] = tensor.shape.as_list()
    return shape == operation.inputs[0].shape.as_list() and shape.count(None) < 2


def _word(name: str) -> str:
    """Returns a variable's name for the name of an input."""
    word = re.sub(r"\W", "_", name)
    return f"{word}_" if keyword.iskeyword(word) else word


def _untranslated(what: str) -> ValueError:
    return ValueError(f"the operation {what} has no NumPy code")


_Build = Callable[[list[str], Callable[[Any], np.ndarray]], str]


def _expression(operation: Any, tensor: Any) -> _Build:
    """Returns a function that writes the expression of an operation's output.

    The function takes the expressions of the inputs, and a function that returns the
    value of an input that has to be constant.
    """
    template = _EXPRESSIONS.get(operation.type)
    if template is None:
        raise _untranslated(operation.type)

    def build(words: list[str], constant_of: Callable[[Any], np.ndarray]) -> str:
        fields: dict[str, Any] = {
            "dtype": tensor.dtype.name,
            "output": tensor.value_index,
            "all": f"[{', '.join(words)}]",
        }
        attributes = set(operation.node_def.attr)
        for name in _ATTRIBUTES & attributes:
            fields[name] = operation.get_attr(name)
        for name, write in _FIELDS.items():
            if f"{{{name}}}" in template:
                fields[name] = write(operation, words, constant_of)
        return template.format(*words, **{**fields, **_concat(operation, words)})

    return build


def _concat(operation: Any, words: list[str]) -> dict[str, str]:
    """Returns the arrays and the axis of a concatenation."""
    if operation.type != "ConcatV2":
        return {}
    return {"all": f"[{', '.join(words[:-1])}]", "axis": words[-1]}


def _transposed(position: int) -> Callable[..., str]:
    names = ("transpose_a", "transpose_b"), ("adj_x", "adj_y")

    def write(operation: Any, *_: Any) -> str:
        pair = names[operation.type != "MatMul"]
        return ".swapaxes(-1, -2)" if operation.get_attr(pair[position]) else ""

    return write


def _slices(operation: Any, _: Any, constant_of: Callable[[Any], Any]) -> str:
    """Returns the index of a StridedSlice, in Python's words."""
    limits = [constant_of(x) for x in operation.inputs[1:]]
    masks = {
        name: operation.get_attr(f"{name}_mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    parts = []
    for i, (begin, end, step) in enumerate(zip(*limits, strict=True)):
        has = {name for name, mask in masks.items() if mask >> i & 1}
        if "ellipsis" in has:
            parts.append("...")
        elif "new_axis" in has:
            parts.append("None")
        elif "shrink_axis" in has:
            parts.append(str(begin))
        else:
            first = "" if "begin" in has else begin
            last = "" if "end" in has else end
            parts.append(f"{first}:{last}" + (f":{step}" if step != 1 else ""))
    return ", ".join(parts)


def _padded(operation: Any, words: list[str], _: Any) -> str:
    """Returns the input of a convolution or a pooling, padded."""
    padding = operation.get_attr("padding").decode()
    dilations = (
        operation.get_attr("dilations") if operation.type == "Conv2D" else [1] * 4
    )
    is_known = operation.get_attr("data_format") == b"NHWC" and set(dilations) == {1}
    if padding == "VALID" and is_known:
        return words[0]
    if padding != "SAME" or operation.type == "AvgPool" or not is_known:
        raise _untranslated(f"{operation.type} with {padding} padding and dilations")
    is_pool = operation.type == "MaxPool"
    sizes = _sizes("ksize")(operation) if is_pool else f"{words[1]}.shape[:2]"
    value = ", -np.inf" if is_pool else ""
    return f"pad_same({words[0]}, {sizes}, {_sizes('strides')(operation)}{value})"


def _sizes(name: str) -> Callable[..., str]:
    return lambda operation, *_: str(tuple(operation.get_attr(name)[1:3]))


_FIELDS: dict[str, Callable[..., str]] = {
    "t0": _transposed(0),
    "t1": _transposed(1),
    "slices": _slices,
    "padded": _padded,
    "pool_sizes": _sizes("ksize"),
    "pool_strides": _sizes("strides"),
    "squeeze_dims": lambda operation, *_: str(
        tuple(operation.get_attr("squeeze_dims")) or None
    ),
    "axes1": lambda operation, _, constant_of: str(
        tuple(constant_of(operation.inputs[1]).ravel().tolist())
    ),
}
