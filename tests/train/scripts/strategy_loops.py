"""Drives loops of two replicas; prints what they did, as JSON.

Logical devices can be set before TensorFlow starts only, so this is a process.
"""

import json
import os
import tempfile
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from tests.agents import every_agent
from tests.train.scripts import agents_on_replicas
from tfrl import agents, networks, replay_buffers, train
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

OBSERVATION = tf.TensorSpec([3], tf.float32, "observation")
NUM_BATCHES, BATCH_SIZE = 4, 8


class ByItself(agents.DqnAgent):
    """An agent that applies gradients without an adapter."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.own = keras.optimizers.SGD(0.5)


def batch_normalized(**kwargs):
    """Returns a Q-network with batch normalization."""
    layers = [
        keras.layers.Dense(6, kernel_initializer=keras.initializers.GlorotUniform(1)),
        keras.layers.BatchNormalization(**kwargs),
        keras.layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(2)),
    ]
    return networks.Sequential(layers, input_spec=OBSERVATION)


def make_agent(optimizer=None, network=None, kind=agents.DqnAgent, **kwargs):
    if network is None:
        network = networks.QNetwork(
            OBSERVATION, every_agent.CHOICE, fc_layer_params=(6,), seed=1
        )
    agent = kind(
        ts.time_step_spec(OBSERVATION),
        every_agent.CHOICE,
        network,
        keras.optimizers.SGD(0.5) if optimizer is None else optimizer,
        gamma=0.9,
        target_update_tau=0.1,
        gradient_clipping=0.02,
        seed=2,
        **kwargs,
    )
    agent.initialize()
    return agent


def make_frames(outer):
    rng = np.random.default_rng(0)
    middle = tf.fill(outer, ts.StepType.MID)
    return trajectory.Trajectory(
        step_type=middle,
        observation=tf.constant(rng.uniform(-1, 1, (*outer, 3)), tf.float32),
        action=tf.constant(rng.integers(0, 3, outer), tf.int32),
        policy_info=(),
        next_step_type=middle,
        reward=tf.constant(rng.uniform(-1, 1, outer), tf.float32),
        discount=tf.ones(outer),
    )


def make_dataset(batch_size, bad_row=None):
    """Returns the same examples in the same order, whatever the batch size."""
    frames = make_frames((NUM_BATCHES * BATCH_SIZE, 2))
    if bad_row is not None:
        rewards = frames.reward.numpy()
        rewards[bad_row] = np.nan
        frames = frames._replace(reward=tf.constant(rewards))
    return (
        tf.data.Dataset.from_tensor_slices((frames, ()))
        .batch(batch_size, drop_remainder=True)
        .repeat()
    )


def values(agent):
    return [tf.convert_to_tensor(v).numpy() for v in agent.variables()]


def difference(some, others):
    return agents_on_replicas.largest_difference(
        *([np.asarray(v, np.float64) for v in each] for each in (some, others))
    )


def make_shared(strategy, **kwargs):
    with strategy.scope():
        return make_agent(
            observation_normalizer=StreamingTensorNormalizer(OBSERVATION), **kwargs
        )


def loop_alone():
    agent = make_agent(observation_normalizer=StreamingTensorNormalizer(OBSERVATION))
    return train.DatasetLoop(agent, lambda: make_dataset(BATCH_SIZE))


def loop_shared(strategy, seen=None, **kwargs):
    def dataset(batch_size, seed):
        if seen is not None:
            seen.append((batch_size, seed))
        return make_dataset(batch_size, **kwargs)

    return train.StrategyLoop(
        make_shared(strategy), dataset, strategy, batch_size=BATCH_SIZE, seed=3
    )


def trained(strategy):
    alone, seen = loop_alone(), []
    shared = loop_shared(strategy, seen)
    infos = [loop.run(6)._asdict() for loop in (alone, shared)]
    return {
        "difference": difference(values(alone.agent), values(shared.agent)),
        "infos": infos,
        "seen": seen,
        "traces": shared.trace_count(),
        "log": shared.draw_for_log().observation.shape.as_list(),
    }


def synchronized(strategy):
    """Returns in what layers of synchronized statistics differ from one device's."""
    alone = make_agent(network=batch_normalized())
    with strategy.scope():
        shared = make_agent(network=batch_normalized(synchronized=True))
    train.DatasetLoop(alone, lambda: make_dataset(BATCH_SIZE)).run(3)
    train.StrategyLoop(
        shared, lambda n, _: make_dataset(n), strategy, batch_size=BATCH_SIZE
    ).run(3)
    copies = [strategy.experimental_local_results(v) for v in shared.variables()]
    return {
        "difference": difference(values(alone), values(shared)),
        "between_replicas": difference(*zip(*copies, strict=True)),
    }


def resumed(strategy, folder):
    """Returns how far a run is from its checkpoint when the other kind resumes it."""
    kinds = [lambda: loop_shared(strategy), loop_alone] * 2
    found, before = [], None
    for number, make in enumerate(kinds, 1):
        loop = make()
        run = train.Run(
            loop,
            train.RunDirectory(os.path.join(folder, "run"), {}),
            num_iterations=3 * number,
            log_interval=3,
            checkpoint_interval=3,
        )
        if before is not None:
            found.append(difference(before, values(loop.agent)))
        result = run.run()
        found.append(result.iteration)
        before = values(loop.agent)
    files = sorted(os.listdir(os.path.join(folder, "run")))
    return {"found": found, "files": files}


def stopped(strategy):
    """Trains until a reward of the second replica is not finite."""
    # The second half of the second batch.
    loop = loop_shared(strategy, bad_row=BATCH_SIZE + BATCH_SIZE // 2 + 1)
    after_one = loop_shared(strategy)
    after_one.run(1)
    try:
        loop.run(3)
        error = None
    except tf.errors.InvalidArgumentError as raised:
        error = str(raised)
    counts = strategy.experimental_local_results(loop.agent.train_step_counter)
    found = {
        "error": error,
        "counts": [int(count) for count in counts],
        "difference": difference(values(loop.agent), values(after_one.agent)),
    }
    loop.run(1)
    return {**found, "goes_on": loop.info().train_steps}


def prioritized(strategy):
    """Returns the weights of the replicas, what they should be, and the priorities."""
    with strategy.scope():
        agent = make_agent()
    replay_buffer = replay_buffers.TFPrioritizedReplayBuffer(
        agent.collect_data_spec, 4, max_length=20, importance_exponent=0.7, seed=1
    )
    frames = make_frames((20, 4))
    for t in range(20):
        replay_buffer.add_batch(tf.nest.map_structure(lambda x, t=t: x[t], frames))
    keys = tf.range(76, dtype=tf.int64)
    replay_buffer.update_priorities(keys, tf.cast(1 + keys, tf.float32))
    seen, drawn, train_once = [], [], agent.train

    def spy(experience, weights):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        tf.py_function(
            lambda *x: seen.append([v.numpy() for v in x]), (replica, weights), ()
        )
        return train_once(experience, weights)

    with mock.patch.object(agent, "train", spy):
        dataset = replay_buffer.as_dataset(4, 2)

        def note(frames, info):
            tf.py_function(
                lambda *x: drawn.append([v.numpy() for v in x]),
                (info.probabilities, info.keys),
                (),
            )
            return frames, info

        loop = train.StrategyLoop(
            agent,
            lambda batch_size, _: dataset.map(note, deterministic=True),
            strategy,
            batch_size=8,
            replay_buffer=replay_buffer,
        )
        loop.run(1)
    # The first element went to the first replica.
    probabilities, drawn_keys = map(np.concatenate, zip(*drawn[:2], strict=True))
    weights = np.concatenate([w for _, w in sorted(seen, key=lambda x: x[0])])
    expected = (replay_buffer.num_frames().numpy() - 4) * probabilities
    moved = replay_buffer.get_priorities(tf.constant(drawn_keys))
    before = (1.0 + drawn_keys + replay_buffer.epsilon) ** 0.6
    return {
        "weights": weights.tolist(),
        "expected": (expected**-0.7).tolist(),
        "moved": int(np.sum(np.abs(moved - before) > 1e-6)),
    }


def refusal(call):
    try:
        call()
    except (ValueError, NotImplementedError) as error:
        return str(error).splitlines()[-1]
    return None


def refusals(strategy):
    def loop(agent, batch_size=BATCH_SIZE):
        return train.StrategyLoop(
            agent, lambda n, _: make_dataset(n), strategy, batch_size=batch_size
        )

    def made(network=None, kind=agents.DqnAgent, **kwargs):
        with strategy.scope():
            return make_agent(
                keras.optimizers.SGD(0.1, **kwargs), network and network(), kind
            )

    shared = make_shared(strategy)
    batch = next(iter(make_dataset(4)))[0]

    @tf.function(jit_compile=True)
    def compiled(batch):
        return strategy.run(shared.train, args=(batch,))

    within = tf.function(shared.train, jit_compile=True)
    with strategy.scope():
        part = agents_on_replicas.make_agent("ReinforceAgent")
    part.jit_compile_losses = True
    episodes = agents_on_replicas.make_batch(part, 0)
    return {
        "batch": refusal(lambda: loop(shared, 7)),
        "agent": refusal(lambda: loop(make_agent())),
        "clipping": refusal(lambda: loop(made(global_clipnorm=1.0))),
        "accumulation": refusal(lambda: loop(made(gradient_accumulation_steps=2))),
        "statistics": refusal(lambda: loop(made(batch_normalized))),
        "by_itself": refusal(lambda: loop(made(kind=ByItself))),
        "unchecked": refusal(lambda: strategy.run(make_agent().train, args=(batch,))),
        "compiled": refusal(lambda: compiled(batch)),
        "compiled_within": refusal(lambda: strategy.run(within, args=(batch,))),
        "compiled_loss": refusal(
            lambda: tf.function(lambda: strategy.run(part.train, args=(episodes,)))()
        ),
    }


def main():
    strategy = agents_on_replicas.two_replicas()
    with tempfile.TemporaryDirectory() as folder:
        results = {
            "trained": trained(strategy),
            "stopped": stopped(strategy),
            "refusals": refusals(strategy),
            "prioritized": prioritized(strategy),
            "synchronized": synchronized(strategy),
            "resumed": resumed(strategy, folder),
        }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
