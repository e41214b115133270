"""What appears on standard error while TensorFlow is imported."""

import os
import signal
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


@pytest.mark.slow
def test_importing_tfrl_makes_tensorflow_quiet_and_touches_no_device():
    result = run(
        "import importlib.util, os, sys, tfrl\n"
        "assert 'tensorflow' not in sys.modules\n"
        "assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '2'\n"
        "assert importlib.util.find_spec('tensorflow')\n"
        "import tensorflow as tf\n"
        "cpu, = tf.config.list_physical_devices('CPU')\n"
        # An error if there were a logical device.
        "tf.config.set_logical_device_configuration(\n"
        "    cpu, [tf.config.LogicalDeviceConfiguration()] * 2)\n"
        "print(len(tf.config.list_logical_devices('CPU')))\n"
        "os.write(2, b'I0000 written later\\n')\n"
    )
    assert result.stdout == "2\n", result.stderr
    assert result.stderr == "I0000 written later\n"


@pytest.mark.slow  # It imports TensorFlow once more.
def test_child_processes_are_quiet():
    result = run(
        "from tfrl.system import interpreter\n"
        "code = 'import tfrl, tensorflow as tf; print(tf.constant(2).numpy())'\n"
        "print(interpreter.start(code, [], stdin=None).wait())\n"
    )
    assert result.stdout.split() == ["2", "0"]
    assert result.stderr == ""


INFO = "I0000 00:00:1795239290.436181    8217 port.cc:153] oneDNN custom operations are"
ERROR = "E0000 00:00:1795239290.436181    8217 b.cc:3] out of memory"
WARNING = "W0000 00:00:1795239290.436181    8217 a.cc:1] a library has another version"
MESSAGES = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to",
    INFO,
    WARNING,
    "To enable the following instructions: AVX2 FMA, in other operations, rebuild",
    "E0000 00:00:1795239290.436181    8217 a.cc:2] failed call to cuInit: UNKNOWN",
    ERROR,
    "a line of Python",
)
FAKE_WITHOUT_DEVICES = """
from logging import getLogger as get_logger
class config:
    list_physical_devices = staticmethod(lambda kind=None: [])
"""
FAKE_WITH_MESSAGES = f"""
import os
os.write(2, {"".join(line + chr(10) for line in MESSAGES).encode()!r})
{FAKE_WITHOUT_DEVICES}"""


NOTICE = (
    "E0000 00:00:1795451879.047260   10708 util.cc:131] oneDNN supports DT_UINT8 only "
    "on platforms with AVX-512. Falling back to the default Eigen-based implementation."
)
FAKE_WITH_NOTICE = f"""
import contextlib, os
uint8 = None
device = contextlib.nullcontext
def zeros(shape, dtype): return shape
def transpose(shape):
    os.write(2, {f"{NOTICE}{chr(10)}{ERROR}{chr(10)}".encode()!r})
{FAKE_WITHOUT_DEVICES}"""


@pytest.mark.parametrize(("level", "shown"), [("2", [ERROR]), ("0", [NOTICE, ERROR])])
def test_onednns_notice_is_taken_once_and_hides_no_error(tmp_path, level, shown):
    (tmp_path / "tensorflow.py").write_text(FAKE_WITH_NOTICE)
    code = (
        "import tensorflow\n"
        "from tfrl.system import quiet\n"
        "quiet.take_onednn_notice()\n"
        "quiet.take_onednn_notice()\n"
        "if quiet.os.environ['TF_CPP_MIN_LOG_LEVEL'] == '0': tensorflow.transpose(1)\n"
    )
    result = run(code, tmp_path, TF_CPP_MIN_LOG_LEVEL=level)
    assert result.stderr.splitlines() == shown


@pytest.mark.slow  # It imports TensorFlow once more.
def test_the_real_notice_does_not_come_later():
    code = (
        "from tfrl.system import quiet\n"
        "quiet.take_onednn_notice()\n"
        "import tensorflow as tf\n"
        "tf.transpose(tf.zeros([2, 3], tf.uint8))\n"
    )
    assert run(code, TF_ENABLE_ONEDNN_OPTS="1").stderr == ""


@pytest.fixture
def messages(tmp_path):
    (tmp_path / "tensorflow.py").write_text(FAKE_WITH_MESSAGES)
    return tmp_path


def test_warnings_and_errors_of_the_import_stay(messages):
    lines = run("import tfrl, tensorflow", messages).stderr.splitlines()
    assert lines == [WARNING, ERROR, "a line of Python"]


def test_every_line_is_shown_at_level_0(messages):
    shown = run("import tfrl, tensorflow", messages, TF_CPP_MIN_LOG_LEVEL="0")
    assert tuple(shown.stderr.splitlines()) == MESSAGES


def test_a_tensorflow_that_is_imported_first_is_left_alone(messages):
    code = (
        "import sys, tensorflow\nbefore = set(sys.meta_path)\nimport tfrl\n"
        "print([type(finder).__module__ for finder in set(sys.meta_path) - before])"
    )
    result = run(code, messages)
    assert tuple(result.stderr.splitlines()) == MESSAGES
    assert "quiet" not in result.stdout


@pytest.mark.parametrize(("shell", "level"), [("sys.ps1 = '> '", 30), ("", 20)])
def test_a_notebook_shows_no_informational_lines_of_tensorflow(tmp_path, shell, level):
    # The logger of this TensorFlow is Python's.
    (tmp_path / "tensorflow.py").write_text(FAKE_WITHOUT_DEVICES)
    code = (
        f"import logging, sys; {shell}\n"
        "logging.getLogger().setLevel(logging.INFO)\n"
        "import tfrl, tensorflow\n"
        "print(tensorflow.get_logger().level)"
    )
    assert run(code, tmp_path).stdout == f"{level}\n"


def test_a_closed_standard_error_is_no_obstacle(tmp_path):
    (tmp_path / "tensorflow.py").write_text(FAKE_WITHOUT_DEVICES)
    result = run("import os, tfrl; os.close(2); import tensorflow", tmp_path)
    assert result.returncode == 0


def test_a_machine_with_a_gpu_shows_warnings_and_reports_about_cuda(messages):
    code = (
        "from tfrl.system import quiet\n"
        "import os; del os.environ['TF_CPP_MIN_LOG_LEVEL']\n"
        "quiet.has_visible_gpu = lambda: True\n"
        "quiet.choose_log_level()\n"
        "import tensorflow; print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    )
    result = run(code, messages)
    assert result.stdout == "1\n"
    assert "failed call to cuInit" in result.stderr
    assert INFO not in result.stderr


@pytest.mark.slow  # It imports TensorFlow once more.
def test_loggers_are_limited_to_warnings():
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


def test_the_last_words_of_a_tensorflow_that_aborts_are_shown(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        "import os; os.write(2, b'F0000 compiled for AVX instructions\\n'); os.abort()"
    )
    (tmp_path / "temporary").mkdir()
    result = run(
        "import tfrl, tensorflow", tmp_path, TMPDIR=str(tmp_path / "temporary")
    )
    assert result.returncode == -signal.SIGABRT
    assert result.stderr == "F0000 compiled for AVX instructions\n"
    assert not list((tmp_path / "temporary").iterdir())


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
    code = "import tfrl, tensorflow\n"
    assert run(code, tmp_path).stdout == "2\n"
    assert run(code, tmp_path, TF_CPP_MIN_LOG_LEVEL="1").stdout == "1\n"


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


def test_one_line_says_that_tensorflow_cannot_use_the_gpu(tmp_path):
    (tmp_path / "tensorflow.py").write_text(FAKE_WITHOUT_DEVICES)
    result = run(QUIETEN_WITH_GPUS.format(present=True), tmp_path)
    *_, line = result.stderr.splitlines()
    assert "NVIDIA GPU, but TensorFlow cannot use it" in line
    assert "pip install 'tfrl[gpu]'" in line
    without = run(QUIETEN_WITH_GPUS.format(present=False), tmp_path)
    assert without.stderr == ""
