"""The items of the adder of n-step transitions."""

import dm_env
import numpy as np
import pytest
import tensorflow as tf

from tests.acme.adders import episodes
from tfrl import replay_service as reverb
from tfrl import specs
from tfrl.acme import types
from tfrl.acme.adders import reverb as adders
from tfrl.acme.adders.reverb import transition

REWARDS = episodes.floats(1, 2, 3, 4, 5)


def values(items):
    return [[leaf.tolist() for leaf in item] for item in items]


@pytest.mark.parametrize("is_truncated", [False, True])
def test_items_of_an_episode(client, drain, is_truncated):
    adder = adders.NStepTransitionAdder(client, n_step=3, discount=0.5)
    for _ in range(2):  # Nothing of an episode is left for the next one.
        episodes.add_episode(
            adder, episodes.time_steps(REWARDS, is_truncated=is_truncated)
        )
        items = drain()
        end = float(is_truncated)
        assert values(items) == [
            [0, 10, 1, 1, 1],
            [0, 10, 2, 0.5, 2],
            [0, 10, 2.75, 0.25, 3],
            [1, 11, 4.5, 0.25, 4],
            [2, 12, 6.25, 0.25 * end, 5],
            [3, 13, 6.5, 0.5 * end, 5],
            [4, 14, 5, end, 5],
        ]
        dtypes = {tuple(leaf.dtype.name for leaf in item) for item in items}
        assert dtypes == {("float32", "int32", "float32", "float32", "float32")}


def test_an_episode_shorter_than_n(client, drain):
    adder = adders.NStepTransitionAdder(client, n_step=3, discount=0.5)
    episodes.add_episode(adder, episodes.time_steps(REWARDS[:2]))
    assert values(drain()) == [[0, 10, 1, 1, 1], [0, 10, 2, 0, 2], [1, 11, 2, 0, 2]]


def test_one_step_transitions_do_not_use_the_agents_discount(client, drain):
    adder = adders.NStepTransitionAdder(client, n_step=1, discount=0.5)
    episodes.add_episode(adder, episodes.time_steps(REWARDS[:3], discount=0.9))
    discount = np.float32(0.9).item()
    assert values(drain()) == [
        [0, 10, 1, discount, 1],
        [1, 11, 2, discount, 2],
        [2, 12, 3, 0, 3],
    ]


def test_discounts_of_the_environment_multiply(client, drain):
    adder = adders.NStepTransitionAdder(client, n_step=2, discount=0.5)
    episodes.add_episode(
        adder,
        episodes.time_steps(REWARDS[:3], discount=0.5, is_truncated=True),
    )
    # R = 1 + (1/2)(1/2) 2 and D = (1/2)(1/2)(1/2); then 2 + 3/4.
    assert [(r, d) for _, _, r, d, _ in values(drain())] == [
        (1, 0.5),
        (1.5, 0.125),
        (2.75, 0.125),
        (3, 0.5),
    ]


def test_extras_are_those_of_the_first_step(client, drain):
    adder = adders.NStepTransitionAdder(client, n_step=2, discount=0.5)
    episodes.add_episode(
        adder,
        episodes.time_steps(REWARDS[:3]),
        extras=lambda t: {"core": np.array([t, t + 0.5]), "log_prob": np.float32(-t)},
    )
    assert [item[5:] for item in values(drain())] == [
        [[0, 0.5], 0],
        [[0, 0.5], 0],
        [[1, 1.5], -1],
        [[2, 2.5], -2],
    ]


def test_nests_and_vector_rewards(client, drain):
    def observation(t):
        return {"image": np.full([2, 2], t, np.uint8), "speed": np.float32(t)}

    adder = adders.NStepTransitionAdder(client, n_step=2, discount=0.5)
    rewards = [np.array([t, 10 * t], np.float32) for t in (1, 2)]
    episodes.add_episode(
        adder,
        episodes.time_steps(rewards, observation),
        action=lambda t: (np.int32(t), {"torque": np.full(3, t, np.float32)}),
    )
    first, whole, last = values(drain())
    start = [[[0, 0], [0, 0]], 0, 10, [10, 10, 10]]
    assert first == [*start, [1, 10], 1, [[1, 1], [1, 1]], 1]
    assert whole == [*start, [2, 20], 0, [[2, 2], [2, 2]], 2]
    assert last[2:] == [11, [11, 11, 11], [2, 20], 0, [[2, 2], [2, 2]], 2]


def test_an_environment_can_use_its_arrays_again(client, drain):
    adder = adders.NStepTransitionAdder(client, n_step=2, discount=0.5)
    reward, observation = np.zeros(1, np.float32), np.zeros(1, np.float32)

    def steps():
        for t, step in enumerate(episodes.time_steps(REWARDS[:3])):
            reward[:] = 2**t
            observation[:] = t
            yield step._replace(reward=reward, observation=observation)

    episodes.add_episode(adder, steps())
    assert [(s, r) for s, _, r, _, _ in values(drain())] == [
        ([0], [2]),
        ([0], [2 + 4 / 2]),
        ([1], [4 + 8 / 2]),
        ([2], [8]),
    ]


def test_a_nest_of_rewards_can_have_a_nest_of_discounts(client, drain):
    adder = adders.NStepTransitionAdder(
        client, n_step=2, discount={"food": 0.5, "speed": 0.25}
    )
    rewards = [{"food": np.float32(1), "speed": np.float32(2)} for _ in range(2)]
    episodes.add_episode(adder, episodes.time_steps(rewards, is_truncated=True))
    # The leaves: observation, action, two rewards, two discounts, next observation.
    assert values(drain()) == [
        [0, 10, 1, 2, 1, 1, 1],
        [0, 10, 1.5, 2.5, 0.5, 0.25, 2],
        [1, 11, 1, 2, 1, 1, 2],
    ]


def test_each_table_has_priorities_by_its_own_function(client):
    seen = []

    def by_reward(transition):
        seen.append(transition)
        return transition.reward

    adder = adders.NStepTransitionAdder(
        client,
        n_step=2,
        discount=0.5,
        priority_fns={"priority_table": by_reward, "second": None},
    )
    adder.add_priority_table("third", lambda transition: transition.extras["error"])
    with pytest.raises(ValueError, match="'third', to which the adder writes already"):
        adder.add_priority_table("third", None)
    episodes.add_episode(
        adder,
        episodes.time_steps(REWARDS[:2]),
        extras=lambda t: {"error": np.float32(3 + t)},
    )
    drawn = {
        table: [
            sample.info.priority
            for sample in client.sample(table, 3, emit_timesteps=False)
        ]
        for table in ("priority_table", "second", "third")
    }
    assert drawn == {
        "priority_table": [1, 2, 2],
        "second": [1, 1, 1],
        "third": [3, 3, 4],
    }
    assert isinstance(seen[0], types.Transition)
    assert seen[1].observation.dtype == np.float32
    assert seen[1].next_observation == 2


@pytest.mark.parametrize(
    ("reward", "discount", "expected"),
    [
        (specs.ArraySpec((), np.float32), specs.ArraySpec((), np.float32), ((), ())),
        (
            specs.ArraySpec((2,), np.float32),
            specs.ArraySpec((), np.float32),
            ((2,), ()),
        ),
        (
            specs.ArraySpec((), np.int32),
            specs.ArraySpec((3,), np.float32),
            ((3,), (3,)),
        ),
    ],
)
def test_the_items_have_the_signature(server, client, reward, discount, expected):
    environment_spec = specs.EnvironmentSpec(
        observations={"x": specs.ArraySpec((4,), np.float32)},
        actions=specs.BoundedArraySpec((), np.int64, 0, 3),
        rewards=reward,
        discounts=discount,
    )
    signature = adders.NStepTransitionAdder.signature(
        environment_spec, {"core": dm_env.specs.Array((2,), np.float16)}
    )
    shapes = (tuple(signature.reward.shape), tuple(signature.discount.shape))
    assert shapes == expected
    assert signature.discount.dtype == tf.float32
    assert signature.observation["x"].name == "observation/x"

    written = []

    class Recorder:
        """A client whose writers check items against the signature."""

        def trajectory_writer(self, num_keep_alive_refs):
            self.writer = client.trajectory_writer(num_keep_alive_refs)
            self.writer.create_item = self.create_item
            return self.writer

        def create_item(self, table, priority, item):
            written.append(item)

    adder = adders.NStepTransitionAdder(Recorder(), n_step=2, discount=0.5)
    episodes.add_episode(
        adder,
        episodes.time_steps(
            [np.ones(reward.shape, reward.dtype)] * 3,
            lambda t: {"x": np.full(4, t, np.float32)},
            discount=np.ones(discount.shape, np.float32),
        ),
        action=np.int64,
        extras=lambda t: {"core": np.zeros(2, np.float16)},
    )
    assert len(written) == 4
    for item in written:
        tf.nest.assert_same_structure(item, signature)
        for column, spec in zip(
            tf.nest.flatten(item), tf.nest.flatten(signature), strict=True
        ):
            assert column.shape == tuple(spec.shape)
            assert column.dtype == spec.dtype.as_numpy_dtype


def test_python_floats_are_refused_by_a_signature_of_float32():
    environment_spec = specs.EnvironmentSpec(
        *[specs.ArraySpec((), np.float32)] * 4,
    )
    table = reverb.Table.queue(
        "signed", 10, signature=adders.NStepTransitionAdder.signature(environment_spec)
    )
    server = reverb.Server([table])
    adder = adders.NStepTransitionAdder(
        server.localhost_client(), 1, 0.5, priority_fns={"signed": None}
    )
    adder.add_first(dm_env.restart(np.float32(0)))
    with pytest.raises(ValueError, match=r"expects column 2 to be a float .* double"):
        adder.add(np.float32(0), dm_env.transition(1.0, np.float32(0)))
    server.stop()


def test_n_below_one_is_refused(client):
    with pytest.raises(ValueError, match=r"n_step: .* got 0"):
        adders.NStepTransitionAdder(client, 0, 0.5)


def test_the_discount_has_one_factor_less_than_steps():
    total, discount = transition.n_step_return([1, 2, 3], [0.9, 0.8, 0.7], 0.5)
    np.testing.assert_allclose(total, 1 + 0.45 * 2 + 0.45 * 0.4 * 3, rtol=1e-12)
    np.testing.assert_allclose(discount, 0.25 * 0.9 * 0.8 * 0.7, rtol=1e-12)


@pytest.mark.parametrize(
    ("reward", "discount", "expected"),
    [
        (np.float32, np.float32, (np.float32, np.float32)),
        (np.float32, np.float64, (np.float32, np.float64)),
        (np.float64, np.float32, (np.float64, np.float32)),
        (np.int32, np.float32, (np.float64, np.float32)),
    ],
)
@pytest.mark.parametrize("num_steps", [1, 2])
def test_dtypes_do_not_depend_on_the_number_of_steps(
    reward, discount, expected, num_steps
):
    total, product = transition.n_step_return(
        [reward(3)] * num_steps, [discount(0.5)] * num_steps, 0.25
    )
    assert (total.dtype, product.dtype) == expected
    assert (total, product) == [(3, 0.5), (3.375, 0.0625)][num_steps - 1]


def test_shapes_of_a_reward_and_its_discount_are_broadcast():
    ones = [np.ones([3, 1], np.float32)] * 2
    halves = [np.full([2], 0.5, np.float32)] * 2
    total, product = transition.n_step_return(ones, halves, 0.5)
    np.testing.assert_array_equal(total, np.full([3, 2], 1.25))
    np.testing.assert_array_equal(product, [0.125, 0.125])


def test_one_discount_serves_a_nest_of_rewards():
    rewards = [{"a": np.float32(1), "b": np.float32(2)}] * 2
    total, product = transition.n_step_return(rewards, [np.float32(1)] * 2, 0.5)
    assert total == {"a": 1.5, "b": 3}
    assert product == {"a": 0.5, "b": 0.5}


def test_nests_of_different_structures_are_refused():
    with pytest.raises(ValueError, match="structure"):
        transition.n_step_return([{"a": 1.0}], [{"b": 1.0}], 0.5)
