"""Scripts to read, run and copy: `python -m examples.train_dqn --help`."""

import os
import sys

from examples import interrupts

# As the first thing of `python -m examples.NAME`; a program that imports the examples
# keeps its own way to end.
if sys.argv[:1] == ["-m"]:
    interrupts.install()

import tfrl  # noqa: F401  Keeps TensorFlow's start-up messages away.

# Most networks here are small: handing an operation to another thread, or starting one
# of oneDNN's kernels, takes longer than computing it. Set these variables yourself for
# large networks on many cores.
HAS_USERS_KERNELS = "TF_ENABLE_ONEDNN_OPTS" in os.environ
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
