"""Measures exported policies: bytes, seconds until the first action, and per action.

    python benchmarks/exported_policies.py logs/ppo_CartPole-v1_0/export/policy.onnx ...

It is one file that imports neither tfrl nor TensorFlow, so that it runs in an
environment with onnxruntime alone, with ai-edge-litert alone, or with NumPy alone; a
SavedModel needs TensorFlow. Each file runs in a process of its own. The seconds until
the first action include the import of the package, but not Python's own start.
"""

from __future__ import annotations

import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

NUM_ACTIONS = 2_000


def load(path: pathlib.Path) -> Callable[[], Any]:
    """Returns a function that takes one action, for an observation of zeros."""
    return {
        ".onnx": _load_onnx,
        ".tflite": _load_litert,
        ".py": _load_numpy,
        "": _load_saved_model,
    }[path.suffix](path)


def _load_onnx(path: pathlib.Path) -> Callable[[], Any]:
    import numpy as np
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    dtypes = {"tensor(float)": "float32", "tensor(uint8)": "uint8"}
    inputs = {
        x.name: np.zeros([1, *x.shape[1:]], dtypes.get(x.type, "int64"))
        for x in session.get_inputs()
    }
    return lambda: session.run(None, inputs)


def _load_litert(path: pathlib.Path) -> Callable[[], Any]:
    import numpy as np
    from ai_edge_litert import interpreter

    runner = interpreter.Interpreter(model_path=str(path)).get_signature_runner()
    inputs = {
        name: np.zeros(x["shape"], x["dtype"])
        for name, x in runner.get_input_details().items()
    }
    return lambda: runner(**inputs)


def _load_numpy(path: pathlib.Path) -> Callable[[], Any]:
    import numpy as np

    sys.path.insert(0, str(path.parent))
    module: Any = __import__(path.stem)
    inputs = {
        name: np.zeros([1, *shape], dtype)
        for name, (dtype, shape) in module.INPUTS.items()
    }
    return lambda: module.act(inputs)


def _load_saved_model(path: pathlib.Path) -> Callable[[], Any]:
    import tensorflow as tf

    action = tf.saved_model.load(str(path)).signatures["action"]
    inputs = {
        x.name: tf.zeros([1, *x.shape[1:]], x.dtype)
        for x in action.structured_input_signature[1].values()
    }
    return lambda: [x.numpy() for x in action(**inputs).values()]


def measure(path: pathlib.Path) -> None:
    """Prints a row about one file."""
    start = time.perf_counter()
    act = load(path)
    act()
    first = time.perf_counter() - start
    seconds = []
    for _ in range(NUM_ACTIONS):
        before = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - before)
    files = [path, *path.rglob("*")]
    if path.suffix == ".py":
        files.append(path.with_suffix(".npz"))
    size = sum(x.stat().st_size for x in files if x.is_file())
    print(
        f"| {path} | {size:,} | {1e6 * statistics.median(seconds):,.0f} | {first:.2f} |"
    )


def main() -> None:
    """Measures the files that the command line names."""
    if sys.argv[1] == "--one":
        measure(pathlib.Path(sys.argv[2]))
        return
    print(
        "| file | bytes | microseconds an action | seconds to the first |", flush=True
    )
    print("|---|---|---|---|", flush=True)
    for path in sys.argv[1:]:
        subprocess.run([sys.executable, __file__, "--one", path], check=True)


if __name__ == "__main__":
    main()
