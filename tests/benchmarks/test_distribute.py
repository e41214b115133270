"""What the benchmark of distributed runs prints, with runs that are made up."""

import contextlib

from benchmarks import distribute


def test_the_price_of_a_step_is_printed_by_hand_and_with_one_and_two_actors(
    monkeypatch,
):
    @contextlib.contextmanager
    def by_hand(folder):
        yield lambda: {"actor": 8e-6, "learner": 12e-6}

    @contextlib.contextmanager
    def distributed(folder, experiment, num_actors):
        yield lambda: {"actors": num_actors * 9e-6, "learner": 16e-6}

    monkeypatch.setattr(distribute, "make_experiment", object)
    monkeypatch.setattr(distribute, "_by_hand", by_hand)
    monkeypatch.setattr(distribute, "_distributed", distributed)
    monkeypatch.setattr(distribute, "_seconds_per_step", lambda found: found)
    monkeypatch.setattr(distribute, "_ROUNDS", 1)
    lines = []
    distribute.overhead(lines.append)
    assert lines == [
        "1 actor by hand         20.0 us a step (actor 8.0, learner 12.0)",
        "1 in run_distributed    25.0 us a step (actors 9.0, learner 16.0)",
        "2 in run_distributed    34.0 us a step (actors 18.0, learner 16.0)",
        "ratio with 1 actor: 1.25 (1.25-1.25)",
    ]
