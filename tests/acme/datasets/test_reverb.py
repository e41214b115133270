"""Datasets of the items of adders."""

import dm_env
import numpy as np
import tensorflow as tf

from tfrl import replay_service, specs
from tfrl.acme import types
from tfrl.acme.adders import reverb as adders
from tfrl.acme.datasets import make_reverb_dataset


def test_samples_of_an_adder_arrive_as_experience():
    scalar = specs.ArraySpec((), np.float32)
    signature = adders.NStepTransitionAdder.signature(
        specs.EnvironmentSpec(*[scalar] * 4)
    )
    tables = [
        replay_service.server.Table(
            name,
            sampler=replay_service.selectors.Fifo(),
            remover=replay_service.selectors.Fifo(),
            max_size=100,
            rate_limiter=replay_service.rate_limiters.MinSize(1),
            signature=signature,
        )
        for name in ("priority_table", "second")
    ]
    server = replay_service.Server(tables)
    adder = adders.NStepTransitionAdder(
        server.localhost_client(),
        n_step=2,
        discount=0.5,
        priority_fns={"priority_table": None, "second": None},
    )
    adder.add_first(dm_env.restart(np.float32(0)))
    adder.add(
        np.float32(7), dm_env.transition(np.float32(1), np.float32(1), np.float32(1))
    )
    adder.end_episode()
    address = f"localhost:{server.port}"

    sample = next(iter(make_reverb_dataset(address)))
    assert isinstance(sample.data, types.Transition)
    assert sample.data.reward.shape == ()

    batches = make_reverb_dataset(address, batch_size=3, prefetch_size=1)
    experience = batches.map(lambda batch: adders.to_experience(batch.data))
    transition = next(iter(experience))
    np.testing.assert_array_equal(transition.action_step.action, [7, 7, 7])
    np.testing.assert_array_equal(transition.next_time_step.observation, [1, 1, 1])
    assert experience.element_spec.next_time_step.reward == tf.TensorSpec([3])

    doubled = make_reverb_dataset(
        address,
        batch_size=2,
        table="second",
        postprocess=lambda sample: sample.data.action * 2,
    )
    np.testing.assert_array_equal(next(iter(doubled)), [14, 14])
    server.stop()
