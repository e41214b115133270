"""What the runs of a sweep say of their compilation, without compiling."""

import pytest

from tests.train import test_sweep
from tfrl.system import log
from tfrl.train.sweeps import members


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("call", ["start", "advance"])
def test_a_compilation_that_was_interrupted_has_ended(monkeypatch, call):
    runs = object.__new__(members.Members)
    vars(runs).update(_values=[None], _positions=[None], _start_program=None)
    runs._compiles = call == "advance"
    for name in ("_check_all_stacked", "_on_threads"):
        monkeypatch.setattr(members.Members, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runs.start() if call == "start" else runs.advance(1)
    assert runs.running_step() is None


def test_loops_that_say_what_they_are_are_heard_once(capsys):
    def make_loop(seed):
        log.info("The settings are these.")
        return test_sweep.make_loop(seed)

    members.Members(make_loop, [1, 2, 3], {}, num_eval_episodes=2)
    assert capsys.readouterr().err.count("The settings are these.") == 1
