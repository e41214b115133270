"""What all adders do when an episode is cut, ended early, or the server is away."""

import subprocess
import sys
import threading

import dm_env
import numpy as np
import pytest

from tests.acme.adders import episodes
from tfrl import replay_service as reverb
from tfrl.acme.adders import reverb as adders
from tfrl.acme.adders.reverb import EndBehavior, base, utils
from tfrl.acme.adders.reverb.utils import calculate_priorities
from tfrl.trajectories import time_step as ts

REWARDS = episodes.floats(1, 2, 3, 4)


def make_adders(client):
    step_spec = adders.Step(*[np.zeros((), np.float32)] * 5)
    configs = adders.create_sequence_config(step_spec, 2, 2)
    return {
        "transition": adders.NStepTransitionAdder(client, 2, 0.5),
        "sequence": adders.SequenceAdder(client, 2, 2),
        "continued": adders.SequenceAdder(
            client, 2, 2, end_of_episode_behavior=EndBehavior.CONTINUE
        ),
        "episode": adders.EpisodeAdder(client, 9),
        "structured": adders.StructuredAdder(client, 2, configs, step_spec),
    }


KINDS = ["transition", "sequence", "continued", "episode", "structured"]


def leaves(items):
    return [[leaf.tolist() for leaf in item] for item in items]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def adder(kind, client):
    return make_adders(client)[kind]


def start_again(adder):
    """Drops rows that sequences could continue."""
    adder.add_first(dm_env.restart(np.float32(50)))
    adder.reset()


def whole_episode(adder, drain, first=100):
    episodes.add_episode(adder, episodes.time_steps(REWARDS, first=first))
    return leaves(drain())


@pytest.mark.parametrize("calls_reset", [True, False])
@pytest.mark.parametrize("num_steps", [0, 1, 3])
def test_nothing_of_an_episode_that_was_cut_gets_into_the_next(
    kind, client, drain, calls_reset, num_steps
):
    expected = whole_episode(make_adders(client)[kind], drain)
    adder = make_adders(client)[kind]
    episodes.add_episode(adder, episodes.time_steps(REWARDS), until=num_steps)
    if calls_reset:
        adder.reset()
        adder.reset()  # A second call does nothing.
    start_again(adder)  # Without a reset, this is what cuts the episode.
    assert len(drain()) <= num_steps
    assert whole_episode(adder, drain) == expected


def test_items_before_a_cut_are_kept(client, drain):
    adder = adders.NStepTransitionAdder(client, 2, 0.5, max_in_flight_items=None)
    episodes.add_episode(adder, episodes.time_steps(REWARDS), until=2)
    adder.reset()
    # Not the item s_1 to s_2, which belongs to the end of an episode.
    assert leaves(drain()) == [[0, 10, 1, 1, 1], [0, 10, 2, 0.5, 2]]


def test_an_episode_can_be_ended_early_as_a_truncation(adder, drain):
    truncated = episodes.time_steps(REWARDS[:3], is_truncated=True)
    episodes.add_episode(adder, truncated)
    expected = leaves(drain())
    start_again(adder)
    episodes.add_episode(adder, episodes.time_steps(REWARDS), until=3)
    adder.end_episode()
    assert leaves(drain()) == expected
    adder.end_episode()  # The episode is over.
    assert not drain()


def test_an_episode_without_steps_gives_nothing(adder, drain):
    adder.add_first(dm_env.restart(np.float32(0)))
    adder.end_episode()
    assert not drain()


def test_sequences_continue_over_a_reset_between_episodes(client, drain):
    adder = make_adders(client)["continued"]
    for first in (0, 100):
        episodes.add_episode(adder, episodes.time_steps(REWARDS, first=first))
        adder.reset()
    assert [item[0].tolist() for item in drain()] == [
        [0, 1],
        [2, 3],
        [4, 100],
        [101, 102],
        [103, 104],
    ]


def test_time_steps_of_tfrl_can_be_added(client, drain):
    adder = adders.NStepTransitionAdder(client, 1, 0.5)
    adder.add_first(ts.restart(np.float32(0)))
    adder.add(np.int32(7), ts.termination(np.float32(1), 3.0))
    assert leaves(drain()) == [[0, 7, 3, 0, 1]]


def test_calls_in_the_wrong_order_are_refused(adder):
    with pytest.raises(ValueError, match="no episode is running; call add_first"):
        adder.add(0, dm_env.termination(1.0, np.float32(1)))
    with pytest.raises(ValueError, match=r"got step type 2, expected FIRST \(0\)"):
        adder.add_first(dm_env.termination(1.0, np.float32(1)))
    episodes.add_episode(adder, episodes.time_steps(REWARDS))
    with pytest.raises(ValueError, match="no episode is running"):
        adder.add(0, dm_env.termination(1.0, np.float32(1)))


def test_after_wrong_data_the_next_episode_is_complete(adder, drain):
    expected = whole_episode(adder, drain, first=0)
    start_again(adder)
    adder.add_first(dm_env.restart(np.float32(0)))
    with pytest.raises(ValueError, match="wrong dtype provided for column"):
        adder.add(
            np.int32(0), dm_env.transition(np.float32(1), np.float64(2), np.float32(1))
        )
    with pytest.raises(ValueError, match=r"call add_first .* also after an error"):
        adder.add(np.int32(0), dm_env.transition(np.float32(1), np.float32(2)))
    assert whole_episode(adder, drain, first=0) == expected


def test_an_unknown_table_is_named(client):
    adder = adders.SequenceAdder(client, 2, 2, priority_fns={"absent": None})
    with pytest.raises(ValueError, match="in table 'absent' since the table could not"):
        episodes.add_episode(adder, episodes.time_steps(REWARDS))


def test_a_rate_limiter_makes_an_actor_wait(client, drain):
    adder = adders.NStepTransitionAdder(
        client, 1, 0.5, priority_fns={"small": None}, max_in_flight_items=1
    )
    # The table holds two items and a third may wait, so the fourth blocks the actor.
    finished = []

    def act():
        episodes.add_episode(adder, episodes.time_steps(REWARDS))
        finished.append(True)

    actor = threading.Thread(target=act)
    actor.start()
    drawn = []
    while len(drawn) < 4:
        assert client.server_info()["small"].current_size <= 2
        drawn += drain("small")
    actor.join(timeout=60)
    assert finished
    assert [item[0] for item in drawn] == [0, 1, 2, 3]


def test_a_timeout_ends_the_wait_and_the_episode(client, drain):
    adder = adders.NStepTransitionAdder(
        client, 1, 0.5, priority_fns={"small": None}, max_in_flight_items=None
    )
    episodes.add_episode(adder, episodes.time_steps(REWARDS), until=3)
    with pytest.raises(reverb.DeadlineExceededError, match="within provided timeout"):
        adder.end_episode(timeout_ms=20)
    with pytest.raises(ValueError, match="no episode is running"):
        adder.add(0, dm_env.termination(1.0, np.float32(1)))
    drawn = []
    while len(drawn) < 3:
        drawn += drain("small")
    adder.reset()
    assert [item[0] for item in drawn] == [0, 1, 2]


def test_without_a_server_an_episode_does_not_start():
    adder = adders.EpisodeAdder(reverb.Client("localhost:1", timeout=0.1), 5)
    with pytest.raises(reverb.ReplayUnavailable, match="localhost:1"):
        adder.add_first(dm_env.restart(np.float32(0)))


@pytest.mark.slow
def test_without_its_server_an_actor_gets_an_error_and_can_go_on_later():
    server = reverb.Server([reverb.Table.queue("priority_table", 100)])
    port = server.port
    client = reverb.Client(f"localhost:{port}", timeout=0.3)
    adder = adders.NStepTransitionAdder(client, 1, 0.5)
    adder.add_first(dm_env.restart(np.float32(0)))
    server.stop()
    adder.add(
        np.int32(0), dm_env.transition(np.float32(1), np.float32(1), np.float32(1))
    )
    with pytest.raises(reverb.ReplayUnavailable):
        adder.end_episode()
    with pytest.raises(ValueError, match="no episode is running"):
        adder.add(0, dm_env.termination(1.0, np.float32(1)))

    second = reverb.Server([reverb.Table.queue("priority_table", 100)], port=port)
    adder.reset()  # Sends what the first server has not confirmed.
    episodes.add_episode(adder, episodes.time_steps(REWARDS[:2], first=7))
    items = second.localhost_client().sample("priority_table", 3, emit_timesteps=False)
    assert [item.data[0] for item in items] == [0, 7, 8]
    second.stop()


def test_actors_need_no_tensorflow():
    code = (
        "import sys; from tfrl.acme.adders import reverb;"
        "reverb.NStepTransitionAdder; print('tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "False\n", run.stderr


def test_after_a_flush_all_items_are_in_their_table(client):
    adder = adders.NStepTransitionAdder(client, 2, 0.5, max_in_flight_items=None)
    adder.flush()  # There is nothing to wait for yet.
    steps = list(episodes.time_steps(REWARDS))
    adder.add_first(steps[0])
    for step in steps[1:3]:
        adder.add(np.float32(0), step)
    adder.flush()
    # From the first to the second and the third, and from the second to the third.
    assert client.server_info()["priority_table"].current_size == 2


def test_zeros_like_keeps_shapes_and_dtypes():
    zeros = utils.zeros_like({"a": np.ones([2, 3], np.uint8), "b": (2.5, np.True_)})
    np.testing.assert_array_equal(zeros["a"], np.zeros([2, 3]))
    assert zeros["a"].dtype == np.uint8
    assert [leaf.dtype for leaf in zeros["b"]] == [np.float64, np.bool_]
    assert zeros["b"] == (0, False)


def test_a_final_step_has_only_its_observation():
    step = adders.Step(
        observation=np.float32(1),
        action={"a": np.ones(2, np.int32)},
        reward=np.float32(2),
        discount=np.float32(1),
        start_of_episode=np.True_,
        extras=(np.float64(3),),
    )
    final = utils.final_step_like(step, np.float32(7))
    assert final.observation == 7
    np.testing.assert_array_equal(final.action["a"], [0, 0])
    assert final.action["a"].dtype == np.int32
    assert final[2:] == (0, 0, False, (0,))


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        ((), True),
        ({}, True),
        (None, True),
        ({"a": ()}, True),
        (np.zeros([]), False),
        (np.zeros([0]), False),
        ({"a": 0}, False),
    ],
)
def test_empty_extras(extras, expected):
    assert base.is_empty(extras) is expected


class Column:
    """A column that counts how often its data is read."""

    reads = 0

    def numpy(self):
        self.reads += 1
        return np.arange(3)


def test_each_table_has_its_function_and_the_data_is_read_once():
    column = Column()
    priorities = calculate_priorities(
        {"sum": lambda item: item["x"].sum(), "most": lambda item: item["x"].max()}
        | {"one": None},
        {"x": column},
    )
    assert priorities == {"sum": 3, "most": 2, "one": 1.0}
    assert column.reads == 1


def test_without_functions_the_data_is_not_read():
    column = Column()
    assert calculate_priorities({"table": None}, {"x": column}) == {"table": 1.0}
    assert column.reads == 0
