import threading

import pytest

from tfrl.acme.utils.counting import Counter


def test_counts_are_summed_by_name():
    counter = Counter()
    assert counter.get_counts() == {}
    assert counter.increment(steps=3, episodes=1) == {"steps": 3, "episodes": 1}
    assert counter.increment(steps=2) == {"steps": 5, "episodes": 1}
    assert counter.increment(seconds=0.5)["seconds"] == 0.5


def test_the_result_is_a_copy():
    counter = Counter()
    counter.increment(steps=1)["steps"] = 100
    assert counter.get_counts() == {"steps": 1}


def test_children_see_each_other_through_the_parent():
    parent = Counter()
    actor = Counter(parent, prefix="actor", time_delta=0)
    learner = Counter(parent, prefix="learner", time_delta=0)
    actor.increment(steps=10)
    assert learner.increment(steps=2) == {"actor_steps": 10, "learner_steps": 2}
    assert actor.get_counts() == {"actor_steps": 10, "learner_steps": 2}
    assert parent.increment(walltime=7) == {
        "actor_steps": 10,
        "learner_steps": 2,
        "walltime": 7,
    }


def test_children_without_a_prefix_share_a_count():
    parent = Counter()
    children = [Counter(parent, time_delta=0) for _ in range(2)]
    for child in children:
        child.increment(steps=4)
    assert parent.get_counts() == {"steps": 8}
    assert children[0].get_counts() == {"steps": 8}


def test_between_exchanges_own_counts_are_new_and_others_old():
    parent = Counter()
    child = Counter(parent, prefix="actor", time_delta=3600)
    # The first use exchanges, the others do not.
    assert child.increment(steps=1) == {"actor_steps": 1}
    parent.increment(episodes=5)
    assert child.increment(steps=1) == {"actor_steps": 2}
    assert parent.get_counts() == {"actor_steps": 1, "episodes": 5}


def test_the_own_counts_alone_have_plain_names():
    parent = Counter()
    parent.increment(steps=100, actors=3)
    child = Counter(parent, "actor", time_delta=0, return_only_prefixed=True)
    assert child.increment(steps=1) == {"steps": 1}
    assert parent.get_counts() == {"steps": 100, "actors": 3, "actor_steps": 1}
    everything = Counter(parent, time_delta=0, return_only_prefixed=True)
    assert everything.get_counts() == parent.get_counts()


@pytest.mark.parametrize("settings", [{}, {"prefix": "learner"}])
@pytest.mark.parametrize("only_prefixed", [False, True])
def test_the_steps_have_the_key_that_loggers_take(settings, only_prefixed):
    counter = Counter(
        Counter(), time_delta=0, return_only_prefixed=only_prefixed, **settings
    )
    assert counter.increment(steps=3) == {counter.get_steps_key(): 3}


def test_a_restored_counter_goes_on():
    counter = Counter()
    counter.increment(steps=5)
    state = counter.save()
    counter.increment(steps=1)
    assert state == {"counts": {"steps": 5}, "cache": {}}
    other = Counter()
    other.restore(state)
    assert other.increment(steps=1) == {"steps": 6}
    assert state["counts"] == {"steps": 5}


def test_a_restored_child_asks_its_restored_parent():
    parent = Counter()
    child = Counter(parent, "actor", time_delta=3600)
    child.increment(steps=1)  # With the parent.
    child.increment(steps=2)  # Not with it yet.
    states = parent.save(), child.save()
    assert states[1] == {"counts": {"steps": 2}, "cache": {"actor_steps": 1}}

    parent, child = Counter(), None
    parent.restore(states[0])
    child = Counter(parent, "actor", time_delta=3600)
    child.restore(states[1])
    assert child.get_counts() == {"actor_steps": 3}
    assert parent.get_counts() == {"actor_steps": 3}


def test_counts_survive_a_parent_that_cannot_be_reached():
    class Parent:
        reached = False

        def increment(self, **counts):
            if not self.reached:
                raise ConnectionError
            return counts

    parent = Parent()
    child = Counter(parent, time_delta=0)
    with pytest.raises(ConnectionError):
        child.increment(steps=3)
    parent.reached = True
    assert child.increment(steps=1) == {"steps": 4}


def test_no_count_of_several_threads_is_lost():
    parent = Counter()
    child = Counter(parent, time_delta=0)

    def count():
        for _ in range(300):
            child.increment(steps=1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert parent.get_counts() == child.get_counts() == {"steps": 1200}


def test_a_negative_time_delta_is_refused():
    with pytest.raises(ValueError, match="time_delta: got -1, expected 0 or more"):
        Counter(time_delta=-1)
