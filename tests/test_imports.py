"""Imports without the rare parts, which still work when they are used."""

import gc
import subprocess
import sys

import pytest

from tfrl import imports

# A package of Keras' name, whose rare part says when its code runs.
PART = """
print("runs")
from keras import visualization
assert not hasattr(visualization, "draw")
import keras.visualization.colors
def draw():
    return keras.visualization.colors.RED
"""


@pytest.fixture
def run(tmp_path):
    """Runs a program that imports tfrl first; returns the lines that it prints."""
    part = tmp_path / "keras" / "visualization"
    part.mkdir(parents=True)
    whole = "from keras import visualization\nKEPT = [[]]\n"
    (tmp_path / "keras" / "__init__.py").write_text(whole)
    (part / "__init__.py").write_text(PART)
    (part / "colors.py").write_text("RED = 'red'\n")

    def run(program, failing=""):
        if failing:
            (part / "colors.py").write_text(failing)
        return subprocess.run(
            [sys.executable, "-c", f"import tfrl, keras\n{program}"],
            env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")[:-1]

    return run


@pytest.mark.parametrize(
    ("use", "printed"),
    [
        ("keras.visualization.draw()", ["red"]),
        ("'draw' in dir(keras.visualization)", ["True"]),
        ("hasattr(keras.visualization, 'paint')", ["False"]),
    ],
)
def test_code_of_a_rare_part_runs_when_a_name_is_used(run, use, printed):
    program = f"print('imported')\nprint({use})\nprint({use})"
    assert run(program) == ["imported", "runs", *printed, *printed]


def test_code_of_a_rare_part_does_not_run_for_tools_that_look_into_modules(run):
    program = (
        "import inspect, sys\n"
        "print([hasattr(m, '__warningregistry__') for m in [keras.visualization]])\n"
        "print(inspect.getmodule(keras.visualization).__file__[-25:])\n"
        "import keras.visualization.colors as colors\n"
        "print(colors.RED)"
    )
    assert run(program) == ["[False]", "visualization/__init__.py", "red"]


def test_a_rare_part_that_fails_fails_at_each_use(run):
    program = (
        "for _ in range(2):\n"
        "    try:\n"
        "        keras.visualization.draw\n"
        "    except ZeroDivisionError as error:\n"
        "        print(error)"
    )
    failed = ["runs", "division by zero"]
    assert run(program, failing="1 / 0") == failed * 2


def test_threads_use_a_rare_part_at_once(run):
    program = (
        "import threading\n"
        "def use(): print(keras.visualization.draw())\n"
        "threads = [threading.Thread(target=use) for _ in range(4)]\n"
        "[t.start() for t in threads]\n"
        "[t.join() for t in threads]"
    )
    assert run(program) == ["runs", *["red"] * 4]


def test_what_an_import_has_made_is_not_searched_as_new_objects_are(run):
    program = "import gc; print(any(x is keras.KEPT for x in gc.get_objects(2)))"
    assert run(program) == ["True"]


def test_tensorflow_comes_without_rare_parts_that_still_work():
    program = """
import tfrl, sys, gc
import tensorflow as tf
import keras
assert gc.isenabled()
assert not {"matplotlib", "tensorflow.lite.python.lite"} & {*sys.modules}
assert tf.compat.v1.metrics.mean and tf.compat.v1.compat.v2.Variable is tf.Variable
assert tf.lite.TFLiteConverter and tf.feature_column.numeric_column and tf.tpu
assert keras.visualization.plot_image_gallery and tf.keras.visualization
from tensorflow.compat.v1 import losses, train
assert train.AdamOptimizer and losses.Reduction
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_in_an_import(is_enabled):
    try:
        (gc.enable if is_enabled else gc.disable)()
        with imports.without_collections():
            with imports.without_collections():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()


def test_garbage_is_collected_after_an_import_that_fails():
    with pytest.raises(ImportError), imports.without_collections():
        raise ImportError
    assert gc.isenabled()
