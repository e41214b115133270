"""The base classes of Acme's programs."""

import pytest

from tfrl.acme import core


class Counts(core.Learner):
    steps = 0

    def step(self):
        self.steps += 1

    def get_variables(self, names):
        return [[self.steps] for _ in names]


def test_run_does_a_number_of_steps():
    learner = Counts()
    learner.run(num_steps=3)
    assert learner.get_variables(["steps"]) == [[3]]


def test_run_without_a_number_goes_on():
    class Ends(Counts):
        def step(self):
            super().step()
            if self.steps == 5:
                raise KeyboardInterrupt

    learner = Ends()
    with pytest.raises(KeyboardInterrupt):
        learner.run()
    assert learner.steps == 5


def test_a_learner_without_a_state_says_so():
    with pytest.raises(NotImplementedError, match=r"Counts\.save: .* write save"):
        Counts().save()
    with pytest.raises(NotImplementedError, match=r"Counts\.restore: .* write save"):
        Counts().restore({})


def test_a_learner_is_a_source_a_worker_and_a_saveable():
    assert issubclass(core.Learner, core.VariableSource)
    assert issubclass(core.Learner, core.Worker)
    assert issubclass(core.Learner, core.Saveable)
    with pytest.raises(TypeError, match="abstract"):
        core.Learner()
