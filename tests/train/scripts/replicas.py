"""Trains agents on one device and on two replicas; prints what differs, as JSON.

Logical devices can be set before TensorFlow starts only, so this is a process.
"""

import contextlib
import json
import os
import sys
import tempfile

# What is compared is compiled alike: neither needs LLVM's optimizations.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"

import keras
import numpy as np
import tensorflow as tf

from tests.agents import every_agent
from tests.train.scripts import agents_on_replicas
from tfrl import agents, networks
from tfrl.compilation import replicas
from tfrl.train import learner, ppo_learner
from tfrl.trajectories import time_step as ts
from tfrl.utils.optimization import optimizers
from tfrl.utils.random_numbers import seeds
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

BATCH_SIZE, STEPS = 24, 5
OBSERVATION = tf.TensorSpec([3], tf.float32, "observation")
TIME_STEP = ts.time_step_spec(OBSERVATION)


def sgd(rate=0.5):
    return keras.optimizers.SGD(rate)


def make_dqn(make_optimizer=sgd):
    return agents.DqnAgent(
        TIME_STEP,
        every_agent.CHOICE,
        networks.QNetwork(
            OBSERVATION, every_agent.CHOICE, fc_layer_params=(6,), seed=1
        ),
        make_optimizer(),
        gamma=0.9,
        target_update_tau=0.1,
        target_update_period=2,
        gradient_clipping=0.02,
        observation_normalizer=StreamingTensorNormalizer(OBSERVATION),
    )


def make_ppo(make_optimizer=sgd):
    parts = every_agent.Parts((OBSERVATION, every_agent.FORCE), (6,), 1)
    return agents.PPOClipAgent(
        TIME_STEP,
        every_agent.FORCE,
        make_optimizer(0.02),
        parts.distributions(),
        parts.value(),
        importance_ratio_clipping=0.2,
        num_epochs=1,
        gradient_clipping=0.5,
        normalize_rewards=False,
        compute_value_and_advantage_in_train=False,
        update_normalizers_in_train=False,
    )


def make_batches(spec):
    """Returns random transitions, `[STEPS, BATCH_SIZE, 2, ...]`."""
    rng = np.random.default_rng(0)
    outer = STEPS, BATCH_SIZE, 2

    def draw(leaf):
        if leaf.dtype.is_integer:
            numbers = rng.integers(0, 3, (*outer, *leaf.shape))
        else:
            numbers = rng.uniform(-1, 1, (*outer, *leaf.shape))
        return tf.constant(numbers, leaf.dtype)

    middle = tf.fill(outer, ts.StepType.MID)
    frames = tf.nest.map_structure(draw, spec)._replace(
        step_type=middle, next_step_type=middle, discount=tf.ones(outer)
    )
    if frames.policy_info:
        # Standard deviations are positive.
        frames.policy_info["dist_params"] = tf.nest.map_structure(
            lambda x: 0.5 + tf.abs(x), frames.policy_info["dist_params"]
        )
    return frames


def make_learner(
    agent, batches, batch_size, folder, strategy=None, train_step=None, **kwargs
):
    def make_dataset():
        parts = tf.nest.map_structure(
            lambda x: tf.reshape(x, [-1, batch_size, *x.shape[2:]]), batches
        )
        return tf.data.Dataset.from_tensor_slices((parts, ()))

    return learner.Learner(
        tempfile.mkdtemp(dir=folder),
        agent.train_step_counter if train_step is None else train_step,
        agent,
        make_dataset,
        summary_interval=0,
        strategy=strategy,
        **kwargs,
    )


def count_traces(agent):
    traces, train = [], agent.train

    def counting(experience):
        traces.append(tf.distribute.get_replica_context().replica_id_in_sync_group)
        return train(experience)

    agent.train = counting
    return traces


def difference(some, others):
    return max(
        float(np.abs(a.numpy() - b.numpy()).max())
        for a, b in zip(some, others, strict=True)
    )


def train_alone(make, folder):
    """Trains an agent on one device; returns it, its first weights and its loss."""
    agent = make()
    before = [v.numpy() for v in agent.variables()]
    batches = make_batches(agent.training_data_spec)
    return agent, before, make_learner(agent, batches, BATCH_SIZE, folder).run(STEPS)


def compare(alone, make, strategy, folder, **kwargs):
    """Trains an agent with two replicas; returns in what it differs from one alone."""
    agent, before, loss_info = alone
    with strategy.scope():
        shared = make()
    traces = count_traces(shared)
    batches = make_batches(agent.training_data_spec)
    trained = make_learner(shared, batches, BATCH_SIZE // 2, folder, strategy, **kwargs)
    results = [loss_info, trained.run(STEPS)]
    floats = [i for i, v in enumerate(agent.variables()) if v.dtype.is_floating]
    pick = [[a.variables()[i] for i in floats] for a in (agent, shared)]
    copies = [strategy.experimental_local_results(v) for v in pick[1]]
    return {
        "difference": difference(*pick),
        "between_replicas": max(difference([a], [b]) for a, b in copies),
        "moved": max(
            float(np.abs(before[i] - agent.variables()[i].numpy()).max())
            for i in floats
        ),
        "losses": [float(result.loss) for result in results],
        "td_errors": difference(
            *([getattr(r.extra, "td_error", r.loss)] for r in results)
        ),
        "train_steps": [int(a.train_step_counter.numpy()) for a in (agent, shared)],
        "traces": len(traces),
    }


def ppo_learned(folder, minibatch_size, strategy=None):
    """Trains PPO by its own learner; returns the agent, and the last loss of each run.

    A second learner, with an agent of its own, goes on from the first one's checkpoint.
    """
    root = os.path.join(folder, str(minibatch_size))
    losses = []
    for _ in range(2):
        with strategy.scope() if strategy else contextlib.nullcontext():
            agent = make_ppo()
        frames = tf.nest.map_structure(
            # Four sequences of six frames: 20 steps, and where they end.
            lambda x: tf.reshape(x, [-1, 6, *x.shape[3:]])[:4],
            make_batches(agent.collect_data_spec),
        )
        experience = agent.preprocess_sequence(frames)
        trained = ppo_learner.PPOLearner(
            root,
            agent.train_step_counter,
            agent,
            lambda experience=experience: tf.data.Dataset.from_tensors(
                (experience, ())
            ),
            None,
            num_samples=1,
            num_epochs=2,
            minibatch_size=minibatch_size,
            checkpoint_interval=1,
            summary_interval=0,
            strategy=strategy,
            seed=0,
        )
        losses.append(float(trained.run().loss))
    return agent, losses


def compare_ppo_learners(strategy, folder):
    """Compares PPO's learners on one device and with two replicas."""
    alone, losses = ppo_learned(folder, 10)
    shared, shared_losses = ppo_learned(folder, 5, strategy)
    before = make_ppo()
    pick = [
        [v for v in agent.variables() if v.dtype.is_floating]
        for agent in (alone, shared, before)
    ]
    copies = [strategy.experimental_local_results(v) for v in pick[1]]
    return {
        "difference": difference(*pick[:2]),
        "between_replicas": max(difference([a], [b]) for a, b in copies),
        "moved": difference(pick[0], pick[2]),
        "losses": [losses, shared_losses],
        "train_steps": [int(a.train_step_counter.numpy()) for a in (alone, shared)],
    }


def refusal(strategy, agent, folder, **kwargs):
    batches = make_batches(agent.collect_data_spec)
    try:
        make_learner(agent, batches, BATCH_SIZE // 2, folder, strategy, **kwargs)
    except ValueError as error:
        return str(error)
    return None


def refusals(strategy, outside, inside, folder):
    optimizer, train_step = sgd(), tf.Variable(0, dtype=tf.int64)
    with strategy.scope():
        with_foreign_optimizer = make_dqn(lambda: optimizer)
        clipping = make_dqn(lambda: keras.optimizers.SGD(0.1, clipnorm=1.0))
    return {
        "agent": refusal(strategy, outside, folder),
        "optimizer": refusal(strategy, with_foreign_optimizer, folder),
        "clipping": refusal(strategy, clipping, folder),
        "train_step": refusal(strategy, inside, folder, train_step=train_step),
    }


def updated(strategy, make_optimizer):
    """Returns 1 after a step of rate 0.1 down the gradients 1 and 5, clipped to 2."""
    with strategy.scope():
        variable = tf.Variable(1.0)
        adapter = optimizers.OptimizerAdapter(
            make_optimizer(0.1), [variable], optimizers.each_to_norm(2.0)
        )

    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        gradient = 1.0 + 4.0 * tf.cast(replica, tf.float32)
        adapter.apply(adapter.reduced(tf.constant(0.0), [gradient])[1])

    tf.function(lambda: strategy.run(step))()
    return [float(v.numpy()) for v in strategy.experimental_local_results(variable)]


def restored(agent, folder):
    """Returns how far the checkpoint of two replicas differs from one device."""
    (root,) = os.listdir(folder)
    alone = make_dqn()
    root = os.path.join(folder, root)
    learner.Learner(root, alone.train_step_counter, alone, summary_interval=0)
    return difference(alone.variables(), agent.variables())


def draw(shape):
    """Returns numbers of examples, numbers that all share, and a seed."""
    seed = tf.constant([1, 2], tf.int64)
    return (
        seeds.normal(seed, shape),
        seeds.uniform(seed, [3], batch_axis=None),
        replicas.seed_of_replica(seed),
    )


def numbers(strategy):
    """Returns what is drawn on one device for 4 examples, and on two for 2 each."""
    of_two = [
        tf.function(lambda s=shape: strategy.run(lambda: draw(s)))()
        for shape in ([2, 5], tf.stack([tf.size(tf.zeros([2])), 5]))
    ]
    local = [
        [
            [x.numpy().tolist() for x in strategy.experimental_local_results(value)]
            for value in drawn
        ]
        for drawn in of_two
    ]
    return {"alone": [x.numpy().tolist() for x in draw([4, 5])], "shared": local}


def main():
    strategy = agents_on_replicas.two_replicas()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "slow":
            results["ppo_learner"] = compare_ppo_learners(strategy, folder)
            print(json.dumps(results))
            return
        dqn = train_alone(make_dqn, folder)
        results["compiled"] = compare(dqn, make_dqn, strategy, folder, jit_compile=True)
        with strategy.scope():
            agent = make_dqn()
        results["refusals"] = refusals(strategy, dqn[0], agent, folder)
        action = agent.collect_policy.action(ts.restart(tf.zeros([2, 3]), 2)).action
        results["action"] = action.shape.as_list()
    with tempfile.TemporaryDirectory() as folder:
        results["dqn"] = compare(dqn, make_dqn, strategy, folder, checkpoint_interval=1)
        results["restored"] = restored(dqn[0], folder)
    results["numbers"] = numbers(strategy)
    results["updated"] = {
        "keras": updated(strategy, keras.optimizers.SGD),
        "v1": updated(strategy, tf.compat.v1.train.GradientDescentOptimizer),
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
