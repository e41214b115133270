"""An agent that has learned from recordings learns on in its environment."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tfrl import datasets, replay_buffers, train

OTHERS = [tfrl.TD3BC, tfrl.CQL, tfrl.ReBRAC, tfrl.EDAC]


@pytest.mark.parametrize(
    "kind", [tfrl.IQL, *(pytest.param(x, marks=pytest.mark.slow) for x in OTHERS)]
)
def test_the_agent_learns_on_in_its_environment_from_recorded_and_new_frames(kind):
    steps = 40
    random = np.random.default_rng(0)
    arrays = {
        "observations": random.normal(size=(steps, 3)),
        "actions": random.uniform(-2, 2, size=(steps, 1)),
        "rewards": random.normal(size=steps),
        "terminals": np.arange(1, steps + 1) % 20 == 0,
    }
    algorithm = kind("Pendulum-v1", seed=0, data=arrays, jit_compile=False)
    algorithm.learn(3, progress=False)
    agent = algorithm.agent
    recorded = datasets.load_arrays(arrays, agent.collect_data_spec)
    num_recorded = sum(1 for _ in recorded)
    buffer = replay_buffers.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=100
    )
    datasets.fill(buffer, recorded)
    online = train.OffPolicyLoop(
        algorithm.environment, agent, buffer, sample_batch_size=8, seed=0
    )
    before = [variable.numpy() for variable in agent.policy.variables()]
    assert iterations(agent) == 3
    info = online.run(6)
    # No initial steps: the recordings stand in for them.
    assert info.environment_steps == 6
    assert buffer.num_frames() == num_recorded + 6
    assert info.train_steps == 3 + 6
    # The optimizers go on, too.
    assert iterations(agent) == 3 + 6
    after = [variable.numpy() for variable in algorithm.policy.variables()]
    assert any(np.any(a != b) for a, b in zip(before, after, strict=True))


def iterations(agent):
    """Returns the updates of the optimizer that has done most of them."""
    parts = tf.train.TrackableView(agent).descendants()
    optimizers = [
        part for part in parts if isinstance(part, keras.optimizers.Optimizer)
    ]
    return max(int(optimizer.iterations) for optimizer in optimizers)
