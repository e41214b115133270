"""What appears on standard error while TensorFlow is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfrl.system import quiet

ROOT = Path(__file__).parents[2]


def run(code, *path, **environment):
    """Runs `code` in a fresh interpreter, which finds `path` first."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={
            **inherited,
            "PYTHONPATH": os.pathsep.join([*map(str, path), str(ROOT)]),
            **environment,
        },
    )


def test_import_is_silent_and_later_lines_are_not():
    result = run(
        "from tfrl.system import quiet\n"
        "quiet.quieten_tensorflow()\n"
        "import sys, tensorflow as tf\n"
        "print(tf.constant(1).numpy() + 1)\n"
        "print('a line of the program', file=sys.stderr, flush=True)\n"
        "tf.get_logger().warning('a warning')\n"
        "tf.get_logger().info('chatter')\n"
    )
    assert result.returncode == 0
    assert result.stdout == "2\n"
    first, *others = result.stderr.splitlines()
    assert first == "a line of the program"
    assert "a warning" in others[0]
    assert len(others) == 1


FAKE = """
import os
os.write(2, b"the reason, from a library\\n")
raise ImportError("no such symbol")
"""


def test_failing_import_shows_what_was_held_back(tmp_path):
    (tmp_path / "tensorflow.py").write_text(FAKE)
    result = run(
        "from tfrl.system import quiet\nquiet.quieten_tensorflow()\n", tmp_path
    )
    assert result.returncode == 1
    assert result.stderr.startswith("the reason, from a library\n")
    assert "ImportError: no such symbol" in result.stderr


def test_standard_error_works_again_after_a_failure(tmp_path):
    (tmp_path / "tensorflow.py").write_text(FAKE)
    result = run(
        "import os\n"
        "from tfrl.system import quiet\n"
        "before = len(os.listdir('/proc/self/fd')) if os.path.isdir('/proc') else 0\n"
        "try:\n"
        "    quiet.quieten_tensorflow()\n"
        "except ImportError:\n"
        "    os.write(2, b'still here\\n')\n"
        "after = len(os.listdir('/proc/self/fd')) if os.path.isdir('/proc') else 0\n"
        "print(after - before)\n",
        tmp_path,
    )
    assert result.stderr == "the reason, from a library\nstill here\n"
    assert result.stdout == "0\n"


def test_log_level_of_the_user_is_kept(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        "import os\nprint(os.environ['TF_CPP_MIN_LOG_LEVEL'])\nraise ImportError\n"
    )
    code = "from tfrl.system import quiet\nquiet.quieten_tensorflow()\n"
    assert run(code, tmp_path).stdout == "2\n"
    assert run(code, tmp_path, TF_CPP_MIN_LOG_LEVEL="0").stdout == "0\n"


@pytest.fixture
def machine_with_a_gpu(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0").mkdir(parents=True)
    return str(tmp_path)


def test_a_gpu_is_known_by_its_driver(machine_with_a_gpu, tmp_path):
    assert quiet.has_visible_gpu(machine_with_a_gpu)
    assert not quiet.has_visible_gpu(str(tmp_path / "elsewhere"))


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_a_gpu_that_the_user_hides_does_not_count(
    machine_with_a_gpu, monkeypatch, hidden
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert not quiet.has_visible_gpu(machine_with_a_gpu)


QUIETEN_WITH_GPUS = """
from tfrl.system import quiet
quiet.has_visible_gpu = lambda: {present}
quiet.quieten_tensorflow()
"""


def test_one_line_says_that_tensorflow_cannot_use_the_gpu():
    result = run(QUIETEN_WITH_GPUS.format(present=True), CUDA_VISIBLE_DEVICES="-1")
    (line,) = result.stderr.splitlines()
    assert "NVIDIA GPU, but TensorFlow cannot use it" in line
    assert "pip install 'tfrl[gpu]'" in line
    without = run(QUIETEN_WITH_GPUS.format(present=False), CUDA_VISIBLE_DEVICES="-1")
    assert without.stderr == ""
