"""The steps of a session are found by their numbers, and released once each."""

import numpy as np
import pytest

from tfrl.replay_service.engine.storage import sent_steps, step_store


@pytest.fixture
def store():
    return step_store.StepStore(0, [("int64", ())], shared=False)


def add(steps, store, numbers):
    numbers = np.asarray(numbers, np.int64)
    slots = store.allocate(len(numbers))
    store.write(slots, [numbers])
    steps.add(numbers, slots)


def test_any_course_of_additions_and_releases_agrees_with_a_naive_model(store):
    rng = np.random.default_rng(0)
    steps, model, end = sent_steps.SentSteps(store), [], 0
    for _ in range(500):
        if rng.random() < 0.7:
            numbers = end + np.flatnonzero(rng.random(rng.integers(1, 60)) < 0.8)
            if rng.random() < 0.1:  # Some are sent again, as after a lost connection.
                numbers = np.union1d(numbers, rng.choice(model, 3) if model else [])
            if len(numbers):
                add(steps, store, numbers)
                model = sorted({*model, *numbers.tolist()})
                end = model[-1] + 1
        else:
            keep = int(rng.integers(max(end - 200, 0), end + 10))
            for _ in steps.forgetting(keep):
                pass
            model = [number for number in model if number >= keep]
        assert len(steps) == len(model) == store.rows_in_use
        refs = np.array([model, model[::-1]], np.int64)
        assert (store.read(0, steps.slots(refs)) == refs).all()
        with pytest.raises(ValueError, match=f"step {end}, which is not available"):
            steps.slots(np.array([end]))
    releasing = steps.close()
    assert len(steps) == 0
    assert not list(releasing)
    assert store.rows_in_use == 0


def test_room_for_many_steps_is_given_back(store):
    steps = sent_steps.SentSteps(store)
    for start in range(0, 300_000, 1000):
        add(steps, store, np.arange(start, start + 1000))
    for _ in steps.forgetting(299_999):
        pass
    assert len(steps) == 1 == store.rows_in_use
    for _ in steps.forgetting(300_000):
        pass
    assert len(steps._numbers) == sent_steps._LEAST
    add(steps, store, [300_000])
    assert store.read(0, steps.slots(np.array([300_000]))) == 300_000
