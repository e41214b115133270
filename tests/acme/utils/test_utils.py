"""Small helpers of Acme's programs."""

import os

from tfrl.acme import core
from tfrl.acme.utils import experiment_utils, frozen_learner, loggers, paths


class Learner(core.Learner):
    steps, state = 0, None

    def step(self):
        self.steps += 1

    def get_variables(self, names):
        return [names]

    def save(self):
        return "state"

    def restore(self, state):
        self.state = state


def test_a_frozen_learner_does_not_learn():
    learner, calls = Learner(), []
    frozen = frozen_learner.FrozenLearner(learner, lambda: calls.append(1))
    frozen.run(num_steps=2)
    frozen_learner.FrozenLearner(learner).step()
    assert learner.steps == 0
    assert len(calls) == 2
    assert frozen.get_variables(["policy"]) == [["policy"]]
    assert frozen.save() == "state"
    frozen.restore("other")
    assert learner.state == "other"


def test_the_logger_of_an_experiment_prints_the_label(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    make = experiment_utils.create_experiment_logger_factory()
    logger = make("learner", "learner_steps", 0)
    logger.write({"loss": 1.0})
    logger.close()
    assert "[Learner] Loss = 1.000" in capsys.readouterr().out


def test_the_time_is_added():
    memory = loggers.InMemoryLogger()
    logger = loggers.TimestampLogger(memory, "time")
    logger.write({"step": 1})
    logger.close()
    assert memory.data[0]["step"] == 1
    assert memory.data[0]["time"] > 1e9


def test_paths_have_the_identifier_of_the_run(monkeypatch, tmp_path):
    monkeypatch.setenv("TFRL_ID", "mine")
    assert paths.get_unique_id() == ("mine",)
    path = paths.process_path(str(tmp_path), "logs")
    assert path == os.path.join(tmp_path, "mine", "logs")
    paths.rmdir(os.path.dirname(path))
    assert os.listdir(tmp_path) == []
