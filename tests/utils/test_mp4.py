"""A film is written without warnings of other libraries about the encoder."""

import os
import subprocess
import sys

FILM = """
import os, sys, warnings
import numpy as np
from tfrl.utils import mp4

def warn():
    warnings.warn("os.fork() was called. This may lead to a deadlock.", RuntimeWarning)

os.register_at_fork(before=warn)
with mp4.writer(sys.argv[1], fps=10) as add:
    for value in (0, 255):
        add(np.full((32, 48, 3), value, np.uint8))
if hasattr(os, "fork") and os.fork() == 0:
    os._exit(0)
"""


def test_the_fork_for_the_encoder_warns_of_nothing_but_others_do(tmp_path):
    path = tmp_path / "film.mp4"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", FILM, path],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert path.stat().st_size > 0
    assert done.stderr.count("RuntimeWarning: os.fork() was called") == 1
