"""Writes a policy in another library's format, and checks what was written.

```python
formats.export(agent.policy, "policy.onnx", "onnx")
```
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.policies import policy_saver, tf_policy
from tfrl.policies.exporting import checking, named_function, numpy_code
from tfrl.policies.saving import saved_model
from tfrl.system import files, interpreter

# The newest set of ONNX operations that tf2onnx writes.
_OPSET = 18
# The producer of ONNX files, by which they are known as ours.
_PRODUCER = "tfrl"
# The file of TF-Agents' saved policies that other SavedModels lack.
_MARKED = "policy_specs.pbtxt"
_CONVERT = (
    "import pathlib; from tfrl.policies.exporting import formats; "
    "pathlib.Path(sys.argv[2]).write_bytes(formats.saved_to_litert(sys.argv[1]))"
)


class Format(NamedTuple):
    """A format of files.

    Attributes:
      file: The usual name of a file, or of the folder; it gives the ending.
      mark: What the beginning of a file holds by which it is known.
      modules: The modules that writing and checking need.
      write: Writes a function to a path.
      load: Loads what was written, as a function from inputs to outputs by name.
      batch_size: The only size of a batch, if there is one.
    """

    file: str
    mark: bytes
    modules: tuple[str, ...]
    write: Callable[[named_function.NamedFunction, pathlib.Path], None]
    load: Callable[[pathlib.Path], checking.Act]
    batch_size: int | None = None


def export(
    policy: tf_policy.TFPolicy,
    path: str | os.PathLike,
    format: str,
    original_action: Callable[[Any], Any] | None = None,
    *,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes the greedy policy in a format, and checks it; see `checking.check`.

    Args:
      policy: The policy.
      path: The file to write, or the folder of a SavedModel. The format "numpy" writes
        a module, such as `policy.py`, and its arrays beside it, `policy.npz`.
      format: One of `FORMATS`.
      original_action: Changes the nest of actions, in TensorFlow; None leaves it. A
        SavedModel has the policy's own actions.
      overwrite: Whether to replace an older export of this format at the path.

    Returns:
      The path.

    Raises:
      ImportError: The packages of the format are not installed.
      ValueError: There is no such format, or the policy cannot be written in it, or
        what was written does not act as the policy does; then it is deleted. Or there
        is something at the path that may not be replaced.
    """
    kind = find(format)
    path = pathlib.Path(path)
    _check_path(path, kind, overwrite)
    if format == "savedmodel":
        original_action = None
    function = named_function.NamedFunction(policy, original_action)
    # A file that is there already is replaced by one that has been checked.
    with files.beside(path) as made:
        try:
            kind.write(function, made)
        except Exception as error:
            raise ValueError(
                f"format: the policy cannot be written as {format} "
                f"({_first_line(error)}); choose another format."
            ) from error
        size = kind.batch_size or checking.NUM_OBSERVATIONS
        try:
            checking.check(kind.load(made), function, batch_size=size)
        except Exception as error:
            raise ValueError(
                f"format: what was written as {format} does not act as the policy does "
                f"({_first_line(error)}), and was deleted; choose another format."
            ) from error
        if path.is_dir():
            files.remove(path)
        for each in made.parent.iterdir():
            each.replace(path.parent / each.name)
    return path


def _check_path(path: pathlib.Path, kind: Format, overwrite: bool) -> None:
    """Raises a ValueError if a path is wrong, or would replace something else."""
    endings = {pathlib.Path(each.file).suffix for each in FORMATS.values()}
    ending = pathlib.Path(kind.file).suffix
    if path.suffix != ending and (ending or path.suffix in endings):
        raise ValueError(
            f"path: got {str(path)!r}, expected a name such as {kind.file}; end it "
            f"{f'with {ending}' if ending else 'otherwise, since it is a folder'}."
        )
    marked = path if ending else path / _MARKED
    is_own = files.bears(marked, kind.mark)
    beside = [path.with_suffix(".npz")] if ending == ".py" else []
    for each in (path, *beside):
        files.check_replaceable("path", each, is_own=is_own, overwrite=overwrite)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def find(format: str) -> Format:
    """Returns a format, whose packages are installed.

    Raises:
      ImportError: A package is missing.
      ValueError: There is no such format.
    """
    if format not in FORMATS:
        raise ValueError(
            f"format: got {format!r}, expected one of {', '.join(FORMATS)}."
        )
    kind = FORMATS[format]
    missing = [x for x in kind.modules if importlib.util.find_spec(x) is None]
    if missing:
        raise ImportError(
            f"format: {format!r} needs {', '.join(missing)}; install the extra: "
            "pip install 'tfrl[export]'."
        )
    return kind


def _write_onnx(function: named_function.NamedFunction, path: pathlib.Path) -> None:
    tf2onnx: Any = importlib.import_module("tf2onnx")
    onnx: Any = importlib.import_module("onnx")
    specs = [
        tf.TensorSpec([None, *spec.shape], spec.dtype, f"input_{i}")
        for i, spec in enumerate(function.inputs.values())
    ]
    outputs: list[str] = []

    def flat(*inputs: tf.Tensor) -> list[tf.Tensor]:
        named = function(*inputs)
        outputs[:] = named
        # An input that is an output, too, has two names.
        return [tf.identity(x) for x in named.values()]

    traced = tf.function(flat, input_signature=specs, autograph=False)
    with _quiet("tf2onnx"):
        model, _ = tf2onnx.convert.from_function(
            traced,
            specs,
            opset=_OPSET,
            custom_op_handlers={
                "BroadcastArgs": (_broadcast_args, []),
                "Log1p": (_log1p, []),
            },
        )
    _rename(model.graph, list(function.inputs), outputs)
    model.producer_name = _PRODUCER
    onnx.checker.check_model(model)
    onnx.save_model(model, str(path))


def _broadcast_args(context: Any, node: Any, name: str, _: Any) -> None:
    """Writes BroadcastArgs of two shapes, which tf2onnx lacks, as their maximum."""
    lengths = [context.get_shape(x)[0] for x in node.input]
    longer = []
    for i, (shape, length) in enumerate(zip(node.input, lengths, strict=True)):
        if length < max(lengths):
            dtype = np.int32 if context.get_dtype(shape) == 6 else np.int64
            ones = np.ones(max(lengths) - length, dtype)
            parts = [context.make_const(f"{name}_ones_{i}", ones).output[0], shape]
            shape = context.make_node("Concat", parts, attr={"axis": 0}).output[0]
        longer.append(shape)
    node.type, node.domain = "Max", ""
    context.replace_inputs(node, longer)


def _log1p(context: Any, node: Any, name: str, _: Any) -> None:
    """Writes Log1p, which tf2onnx lacks, as the logarithm of a sum."""
    (x,) = node.input
    one = context.make_const(f"{name}_one", np.ones([], np.float32)).output[0]
    node.type, node.domain = "Log", ""
    context.replace_inputs(node, context.make_node("Add", [x, one]).output)


def _rename(graph: Any, inputs: list[str], outputs: list[str]) -> None:
    """Gives the inputs and outputs of an ONNX graph their names."""
    given = {x.name: name for x, name in zip(graph.output, outputs, strict=True)}
    # The converter leaves out inputs that the policy does not read.
    given |= {x.name: inputs[int(x.name[6:].split(":")[0])] for x in graph.input}
    for value in (*graph.input, *graph.output):
        value.name = given[value.name]
    for node in graph.node:
        node.input[:] = [given.get(name, name) for name in node.input]
        node.output[:] = [given.get(name, name) for name in node.output]


def _load_onnx(path: pathlib.Path) -> checking.Act:
    onnxruntime: Any = importlib.import_module("onnxruntime")
    session = onnxruntime.InferenceSession(str(path))
    names = [x.name for x in session.get_outputs()]
    read = [x.name for x in session.get_inputs()]

    def act(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = session.run(names, {name: inputs[name] for name in read})
        return dict(zip(names, outputs, strict=True))

    return act


def saved_to_litert(saved_model_path: str, select_tf_ops: bool = False) -> bytes:
    """Returns a saved policy's signature `action` as a LiteRT (TensorFlow Lite) model.

    The model has the inputs and outputs of this signature, such as `0/observation`: a
    policy with a state takes it as `1` (`1/0`, ... for a nest), which is zeros at
    first, and returns it as `state`.

    Args:
      saved_model_path: The directory that `PolicySaver.save` wrote.
      select_tf_ops: Whether the model may use TensorFlow's own operations where
        TensorFlow Lite has none. The model then needs the Flex delegate, which the
        Python packages of TensorFlow 2.20 and 2.21 leave out. Policies that draw random
        numbers need such operations; a `GreedyPolicy` of the usual networks does not.

    Raises:
      FileNotFoundError: `saved_model_path` holds no saved policy.
      ValueError: The policy uses operations that TensorFlow Lite does not have.
    """
    saved_model_path = os.fspath(saved_model_path)
    loaded = saved_model.load_saved_model(saved_model_path)
    # It leaves no variables in the model, as the converter of SavedModels may.
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [loaded.signatures["action"]], loaded
    )
    ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if select_tf_ops:
        ops.append(tf.lite.OpsSet.SELECT_TF_OPS)
    converter.target_spec.supported_ops = ops
    try:
        return converter.convert()
    except Exception as error:
        # The converter's own class of errors has no public name.
        if type(error).__name__ != "ConverterError":
            raise
        raise ValueError(
            f"saved_model_path: the policy in {saved_model_path} uses operations that "
            "TensorFlow Lite lacks, expected its built-in ones only"
            f"{' and TensorFlow operations' if select_tf_ops else ''}; save a "
            "GreedyPolicy of it, or pass select_tf_ops=True for an interpreter with "
            "the Flex delegate."
        ) from error


def _write_litert(function: named_function.NamedFunction, path: pathlib.Path) -> None:
    """Converts one step of a batch of one, in a process of its own.

    The converter does not free its memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        signatures = {"action": function.trace(1)}
        with saved_model.no_harmless_warnings():
            tf.saved_model.save(function, folder, signatures=signatures)
        done = interpreter.run(_CONVERT, [folder, path])
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise ValueError(f"the converter failed: {lines[-1]}")


def _load_litert(path: pathlib.Path) -> checking.Act:
    litert: Any = importlib.import_module("ai_edge_litert.interpreter")
    with _quiet("ai_edge_litert"):
        runner = litert.Interpreter(model_path=str(path)).get_signature_runner()
    read = list(runner.get_input_details())

    def act(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = runner(**{name: inputs[name] for name in read})
        return {name: np.array(x) for name, x in found.items()}

    return act


def _write_numpy(function: named_function.NamedFunction, path: pathlib.Path) -> None:
    arrays_path = path.with_suffix(".npz")
    source, arrays = numpy_code.compile_function(
        function.trace(), function.inputs, arrays_path.name
    )
    np.savez(arrays_path, **arrays)  # type: ignore[arg-type]
    path.write_text(source)


def _load_numpy(path: pathlib.Path) -> checking.Act:
    spec = importlib.util.spec_from_file_location("exported_policy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # No cache of its bytes beside it.
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return module.act


def _write_saved_model(
    function: named_function.NamedFunction, path: pathlib.Path
) -> None:
    policy_saver.PolicySaver(function.policy).save(str(path))


def _load_saved_model(path: pathlib.Path) -> checking.Act:
    loaded = saved_model.load_saved_model(str(path))
    action = loaded.signatures["action"]
    _, specs = action.structured_input_signature
    rewards = [x for x in specs.values() if x.name.startswith("0/reward")]

    def act(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        size = len(next(iter(inputs.values())))
        named = {
            name.replace("observation", "0/observation", 1)
            if name.startswith("observation")
            else name.replace("state", "1", 1): tf.constant(x)
            for name, x in inputs.items()
        }
        outputs = action(
            **{
                "0/step_type": tf.ones([size], tf.int32),
                "0/discount": tf.ones([size]),
                **{
                    spec.name: tf.zeros([size, *spec.shape[1:]], spec.dtype)
                    for spec in rewards
                },
                **named,
            }
        )
        return {
            f"next_{name}" if name.startswith("state") else name: x.numpy()
            for name, x in outputs.items()
            if not name.startswith("info")
        }

    return act


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silences a library, whose failures are exceptions, too."""
    logger, root = logging.getLogger(name), logging.getLogger()
    level = logger.level
    logger.setLevel(logging.CRITICAL)

    def is_foreign(record: logging.LogRecord) -> bool:
        return name not in record.pathname

    root.addFilter(is_foreign)  # Of what the library logs by the root itself.
    try:
        yield
    finally:
        root.removeFilter(is_foreign)
        logger.setLevel(level)


FORMATS = {
    "onnx": Format(
        "policy.onnx",
        _PRODUCER.encode(),
        ("tf2onnx", "onnx", "onnxruntime"),
        _write_onnx,
        _load_onnx,
    ),
    "litert": Format(
        "policy.tflite", b"TFL3", ("ai_edge_litert",), _write_litert, _load_litert, 1
    ),
    "savedmodel": Format("saved_model", b"", (), _write_saved_model, _load_saved_model),
    "numpy": Format("policy.py", numpy_code.MARK, (), _write_numpy, _load_numpy),
}
