"""Scripts to read, run and copy: `python -m examples.train_dqn --help`."""

from tfrl.utils import quiet

quiet.quieten_tensorflow()
