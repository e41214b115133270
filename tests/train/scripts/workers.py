"""A worker of a group of two; its environment says which. Prints what it did, as JSON.

The arguments are a folder, a number of iterations, and the row of the examples whose
reward is NaN, or -1.
"""

import json
import os
import sys

import tensorflow as tf

from tests.train.scripts import strategy_loops
from tfrl import train


def main():
    folder, num_iterations, bad_row = sys.argv[1], *map(int, sys.argv[2:])
    strategy = train.worker_group.make_strategy(timeout_s=60)
    index = strategy.cluster_resolver.task_id

    def dataset(batch_size, seed):
        seeds.append(seed)
        bad = None if bad_row < 0 else bad_row
        # The halves of each batch go to the two workers in turn.
        return strategy_loops.make_dataset(batch_size, bad).shard(2, index)

    seeds = []
    loop = train.StrategyLoop(
        strategy_loops.make_shared(strategy),
        dataset,
        strategy,
        batch_size=strategy_loops.BATCH_SIZE,
        seed=3,
    )

    def run():
        directory = train.RunDirectory(os.path.join(folder, "run"), {})
        return train.Run(
            loop,
            directory,
            num_iterations=num_iterations,
            log_interval=5,
            checkpoint_interval=5,
        ).run()

    found = {"error": None, "result": None}
    try:
        result = loop.run_group(run)
        found["result"] = None if result is None else result.resumed_at
    except (
        tf.errors.InvalidArgumentError,
        train.worker_group.WorkerLostError,
    ) as error:
        found["error"] = f"{type(error).__name__}: {error}"
    found |= {
        "iteration": loop.iteration,
        "train_steps": loop.info().train_steps,
        "seeds": seeds,
        "sums": [float(abs(v).sum()) for v in strategy_loops.values(loop.agent)],
    }
    if index == 0 and found["error"] is None and found["result"] is None:
        alone = strategy_loops.loop_alone()
        alone.run(num_iterations)
        found["difference"] = strategy_loops.difference(
            strategy_loops.values(alone.agent), strategy_loops.values(loop.agent)
        )
    print(json.dumps(found), flush=True)
    # TensorFlow waits for a worker that is lost.
    os._exit(0)


if __name__ == "__main__":
    main()
