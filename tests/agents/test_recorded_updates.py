"""Three updates of every agent give the numbers that were recorded.

The numbers hold an agent's mathematics, its order of updates and its seeds while its
code changes. `python -m tests.agents.test_recorded_updates` records them anew, which
only a change that is meant to change them may do.
"""

import functools
import pathlib
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents.every_agent import KINDS
from tests.pairs import some_slow
from tfrl import testing
from tfrl.specs import tensor_spec
from tfrl.train.loops import replay_updates
from tfrl.trajectories import time_step as ts

RECORD = pathlib.Path(__file__).parent / "recorded_updates.npz"
TIME_STEP_SPEC = ts.time_step_spec(
    tensor_spec.BoundedTensorSpec([3], tf.float32, -1.0, 1.0)
)
LEARNING = [name for name, kind in KINDS.items() if not kind.without_weights]
# Agents whose examples count alike; the others have weights of examples.
UNWEIGHTED = ("A2CAgent", "ImpalaAgent", "PPO")


def updates(name, jit_compile=False):
    """Returns the numbers of three updates, by name."""
    keras.utils.clear_session(free_memory=False)  # The names of layers count from 0.
    kind = KINDS[name]
    agent = kind.make(TIME_STEP_SPEC)
    conformance = testing.AgentConformance()
    weights = None if name.startswith(UNWEIGHTED) else tf.constant([1.0, 0.5, 2.0, 1.0])
    batches = [conformance.make_experience(agent, 4, seed) for seed in range(3)]
    numbers = {"before": agent.loss(batches[0], weights).loss}

    @functools.partial(tf.function, autograph=False, jit_compile=jit_compile)
    def train(batch):
        loss_info = agent.train(batch, weights)
        if kind.without_td_error:
            return loss_info, ()
        return loss_info, replay_updates.priorities_of(loss_info, agent)

    for i, batch in enumerate(batches):
        loss_info, sizes = train(batch)
        numbers[f"loss{i}"] = loss_info.loss
        extra = loss_info.extra
        fields = extra._asdict() if hasattr(extra, "_asdict") else {"extra": extra}
        for field, value in fields.items():
            for j, leaf in enumerate(tf.nest.flatten(value)):
                numbers[f"{field}{i}.{j}"] = leaf
        if not kind.without_td_error:
            numbers[f"priorities{i}"] = sizes
    # Sorted, since neither the order in which an agent lists its variables counts, nor
    # the one in which its layers were made. `in_order` sorts those of one name.
    held = [
        (re.sub(r"_\d+(?=[_/:]|$)|:0$", "", v.name), np.ravel(v.numpy()))
        for v in agent.variables()
    ]
    for i, (variable, values) in enumerate(sorted(held, key=lambda item: item[0])):
        # Of large variables some hundred values, spread over all of them.
        numbers[f"{i:03} {variable}"] = values[:: 1 + len(values) // 300]
    return {key: np.ravel(value).astype(np.float64) for key, value in numbers.items()}


def recorded(name):
    """Returns the numbers that were recorded, by name."""
    with np.load(RECORD) as record:
        ends = np.cumsum(record[f"{name} sizes"])[:-1]
        values = np.split(record[name], ends)
        return dict(zip(record[f"{name} names"].tolist(), values, strict=True))


def in_order(found, expected):
    """Returns what was found with the variables of one name ordered as expected.

    To each that is expected goes the nearest one that is left, of its size. An order by
    the values themselves would hang on their last digits.
    """
    left = dict(found)
    result = {}
    for key, value in expected.items():
        variable = re.sub(r"^\d{3} ", "", key)
        distances = {
            k: np.max(np.abs(v - value)) if v.size == value.size else np.inf
            for k, v in left.items()
            if re.sub(r"^\d{3} ", "", k) == variable
        }
        result[key] = left.pop(min(distances, key=distances.get))
    return result


def differences(name, found, **tolerances):
    """Returns which numbers are not those that were recorded."""
    expected = recorded(name)
    assert expected.keys() == found.keys()
    found = in_order(found, expected)
    return {
        key: (value, found[key])
        for key, value in expected.items()
        if not np.allclose(found[key], value, **tolerances)
    }


# Each algorithm's own tests compare its losses with worked numbers.
FAST = ("DqnAgent", "ReinforceAgent", "PPOAgent", "SacAgent")


@pytest.mark.parametrize("name", some_slow(LEARNING, fast=FAST))
def test_three_updates_give_the_recorded_numbers(name):
    assert not differences(name, updates(name), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_three_compiled_updates_give_the_recorded_numbers(name):
    assert not differences(name, updates(name, jit_compile=True), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["IqnAgent", "SacAgent-recurrent"])
def test_variables_of_one_name_may_come_in_any_order(name):
    expected = recorded(name)
    found, moved = {}, []
    for key in expected:
        same = [k for k in expected if k[4:] == key[4:] and key[:3].isdigit()] or [key]
        moved += same[1:]
        found[key] = expected[same[-1 - same.index(key)]]
    assert moved
    assert not differences(name, found)
    found[moved[0]] = found[moved[0]] + 0.1
    assert len(differences(name, found)) == 1


def record():
    """Writes the record anew."""
    arrays = {}
    for name in LEARNING:
        numbers = updates(name)
        arrays[name] = np.concatenate(list(numbers.values()))
        arrays[f"{name} names"] = np.array(list(numbers))
        arrays[f"{name} sizes"] = np.array([v.size for v in numbers.values()])
    np.savez_compressed(RECORD, **arrays)


if __name__ == "__main__":
    record()
