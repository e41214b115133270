"""Scripts to read, run and copy: `python -m examples.train_dqn --help`."""

import sys

from tfrl.command import program
from tfrl.system import threads

# As the first thing of `python -m examples.NAME`; a program that imports the examples
# keeps its own way to end.
if sys.argv[:1] == ["-m"]:
    program.handle_interrupts()

threads.set_up()
