"""Settings for every test: quiet, few threads, no display, and SIGINT handled.

And the process whose forks run examples and scripts, which modules share.
"""

import contextlib
import gc
import importlib.util
import os
import random
import signal
import sys

import numpy as np
import pytest
from numpy.random import bit_generator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")
# The suite runs one process on each core. More threads mostly wait, by turning.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")

import tfrl  # noqa: F401 -- Before TensorFlow, so that what it compiles is kept.
from tests.forks import Forks

if importlib.util.find_spec("hypothesis"):  # Tests of JAX run without it.
    from tests import properties  # noqa: F401 -- It chooses the profile.

# What a shell starts in the background, as by `nohup ... &`, ignores SIGINT and SIGHUP,
# and so do its children, to which tests send them.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
# NumPy's generators without a seed, such as environments' own, take theirs from here.
bit_generator.randbits = random.getrandbits


def pytest_configure(config):
    """Keeps two compilers from optimizing what the fast tests trace and compile.

    XLA's, LLVM, takes a fifth of the processor time of tests that compile, and
    TensorFlow's for graphs, Grappler, a twentieth of all. What these tests compare does
    not ask for either. The slow tests, and the processes that tests start, optimize
    graphs as users do.
    """
    if config.option.markexpr == "not slow":
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
        _Draws.optimizes_graphs = False


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keeps the garbage collector from objects that live as long as the process.

    Without this, the collector takes a third of the time of the tests' collection. And
    graphs, which tests make by the hundred, are large: at the interpreter's thresholds
    the collector takes a sixth of the time of tests of loops and agents.
    """
    gc.disable()
    result = yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    return result


@pytest.fixture(autouse=True)
def _on_the_cpu(request):
    """Places what a test marked `cpu` does on the CPU, also where there is a GPU."""
    with _cpu_if_marked(request):
        yield


@pytest.fixture(autouse=True, scope="module")
def _module_on_the_cpu(request):
    """Places on the CPU what the fixtures of a module make that is marked `cpu`."""
    with _cpu_if_marked(request):
        yield


@pytest.fixture(autouse=True, scope="module")
def _what_a_module_leaves_is_permanent():
    """Keeps later searches for garbage from what a module of tests has left behind.

    Graphs and programs stay until the process ends, and each search would visit them: a
    test that asks for one waited up to eight seconds.
    """
    yield
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def _cpu_if_marked(request):
    if request.node.get_closest_marker("cpu") is None:
        yield
        return
    import tensorflow as tf

    with tf.device("CPU:0"):
        yield


def pytest_runtest_setup():
    """Lets what has no seed draw the same numbers in each run of a test.

    Keras takes the seeds of layers from Python's generator, as environments do here;
    networks, policies and loops take theirs from TensorFlow's, which not every test
    imports.
    """
    random.seed(0)
    np.random.seed(0)
    if "tensorflow" in sys.modules:
        _Draws.seed_tensorflow()


class _Draws:
    """Whether TensorFlow has drawn, outside graphs, since `tf.random.set_seed(0)`.

    `set_seed` makes TensorFlow forget all its kernels, since some of them hold the
    state of a random sequence. To make them again takes a quarter of the time of tests
    of agents, so this calls `set_seed` only after a test that has drawn or has set
    another seed. All that draws from such a kernel gets its seed from `get_seed`,
    which this watches.
    """

    optimizes_graphs = True
    _get_seed = None
    _drawn = True

    @classmethod
    def seed_tensorflow(cls):
        if cls._get_seed is None:
            module = sys.modules["tensorflow.python.framework.random_seed"]
            cls._get_seed = module.get_seed
            module.get_seed = cls._watched
            config = sys.modules["tensorflow"].config
            # What tests compare does not ask for a GPU's products with errors of 3e-4.
            config.experimental.enable_tensor_float_32_execution(False)
            config.optimizer.set_experimental_options(
                {"disable_meta_optimizer": not cls.optimizes_graphs}
            )
        if cls._drawn or cls._get_seed(1) != (0, 1):
            sys.modules["tensorflow"].random.set_seed(0)
            cls._drawn = False

    @classmethod
    def _watched(cls, op_seed):
        cls._drawn |= sys.modules["tensorflow"].executing_eagerly()
        return cls._get_seed(op_seed)


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    forks = Forks(tmp_path_factory.mktemp("forks"))
    yield forks
    forks.close()


@pytest.fixture(scope="session")
def run(forks):
    return forks.run
