"""The command of a worker in a fork, which has imported what it needs.

The first argument is the run's token, which belongs into the environment.
"""

import os
import sys

from tfrl.distribute import worker

if __name__ == "__main__":
    os.environ["TFRL_REPLAY_TOKEN"] = sys.argv[1]
    sys.exit(worker.main(sys.argv[2:]))
