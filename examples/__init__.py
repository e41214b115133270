"""Scripts to read, run and copy: `python -m examples.train_dqn --help`."""

import sys

from tfrl.command import interrupts
from tfrl.system import threads

# As the first thing of `python -m examples.NAME`; a program that imports the examples
# keeps its own way to end.
if sys.argv[:1] == ["-m"]:
    interrupts.install()

threads.set_up()
