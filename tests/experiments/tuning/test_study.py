"""Trials of a study: the same after a kill, pruned, failed, repeated with new seeds."""

import functools
import math

import optuna
import pytest

import tfrl
from tfrl.experiments.tuning import search, study

optuna.logging.set_verbosity(optuna.logging.WARNING)
SEARCHED = search.fields(tfrl.DQN, "learning_rate,gamma")
SPACE = search.distributions(SEARCHED)
SEED, EVALUATIONS = 7, 3


class Plan:
    """Stands for what the runs have in common."""

    searched, seed, num_evaluations = SEARCHED, SEED, EVALUATIONS

    def __init__(self, check=lambda values: None):
        self.recipe_of = check


class Liar(optuna.samplers.TPESampler):
    """TPE that draws all values together, and looks at unfinished trials."""

    def __init__(self, seed=None):
        super().__init__(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=3
        )


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def make_study(tmp_path):
    def make(folder="tuned", sampler="TPESampler", pruner="NopPruner", **kwargs):
        path = tmp_path / folder
        path.mkdir(exist_ok=True)
        opened, storage = study.open_study(path, None, pruner, EVALUATIONS)
        say = kwargs.pop("say", lambda line: None)
        plan = Plan(**kwargs)
        return study.TuningStudy(opened, sampler, plan, path, say, storage)

    return make


def runner(curve, slots=2, most=math.inf):
    """Trains runs in slots; the process dies when `most` evaluations are reported."""
    ran, number = [], 0

    def run(next_run, report):
        nonlocal number
        running = {}
        while True:
            while len(running) < slots and (each := next_run()) is not None:
                ran.append(each)
                running[each.name] = [each, 0]
            if not running:
                return
            for name, held in list(running.items()):
                held[1] += 1
                number += 1
                if number > most:
                    raise Killed
                if not report(held[0], held[1], curve(held[0], held[1])):
                    del running[name]

    run.ran = ran
    return run


def rising(run, number):
    return number * run.values["gamma"] + run.values["learning_rate"]


def drawn(studied):
    return [(t.number, t.params, t.value) for t in studied.study.trials]


def test_a_killed_study_goes_on_with_the_same_trials(make_study):
    whole = make_study("whole")
    whole.search(runner(rising), 15)
    killed = make_study()
    with pytest.raises(Killed):
        killed.search(runner(rising, most=32), 15)
    states = [trial.state.name for trial in killed.study.trials]
    assert states.count("COMPLETE") == 10
    assert states.count("RUNNING") == 2
    again = runner(rising)
    make_study().search(again, 15)
    assert drawn(make_study()) == drawn(whole)
    assert [run.name for run in again.ran] == [f"trial_{i}" for i in range(10, 15)]
    assert all(run.seed == SEED for run in again.ran)
    # A study that has come to its end draws no more, unless there shall be more.
    make_study().search(again, 15)
    assert len(again.ran) == 5
    make_study().search(again, 16)
    assert len(make_study().study.trials) == 16


def test_evaluations_that_were_reported_before_a_kill_are_not_reported_again(
    make_study, recwarn
):
    with pytest.raises(Killed):
        make_study().search(runner(rising, most=4), 2)
    make_study().search(runner(rising), 2)
    (first, second) = make_study().study.trials
    for trial in (first, second):
        assert list(trial.intermediate_values) == [1, 2, 3]
        assert trial.state.name == "COMPLETE"
    assert not recwarn.list


def test_a_trial_whose_process_ended_while_it_drew_values_draws_them(make_study):
    whole = make_study("whole")
    whole.search(runner(rising), 4)
    make_study().study.ask()
    make_study().search(runner(rising), 4)
    assert drawn(make_study()) == drawn(whole)
    partly = make_study("partly")
    name, distribution = next(iter(SPACE.items()))
    search.draw(partly.study.ask(), name, distribution)
    first = partly.study.trials[0].params
    make_study("partly").search(runner(rising), 4)
    trials = make_study("partly").study.trials
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 4
    assert trials[0].params.keys() == SPACE.keys()
    assert trials[0].params[name] == first[name]


class KilledWhileStoring:
    """A storage whose process dies at a call that stores something about a trial."""

    def __init__(self, storage, most):
        self._storage, self._left = storage, most

    def __getattr__(self, name):
        method = getattr(self._storage, name)
        if not name.startswith(("set_trial_param", "set_trial_user_attr")):
            return method

        def counted(*args, **kwargs):
            if not self._left:
                raise Killed
            self._left -= 1
            return method(*args, **kwargs)

        return counted


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    ("sampler", "pruner"),
    [
        ("TPESampler", "SuccessiveHalvingPruner"),
        ("QMCSampler", "NopPruner"),
        ("Liar", "HyperbandPruner"),
        *(
            pytest.param(name, "NopPruner", marks=pytest.mark.slow)
            for name in ("TPESampler", "RandomSampler", "NSGAIISampler", "Liar")
        ),
    ],
)
def test_a_kill_while_values_are_drawn_does_not_change_them(
    make_study, sampler, pruner, monkeypatch, tmp_path
):
    """At each value of trial 10, the first that TPE draws by its model, and before.

    QMC counts its draws in the study, so a kill between the count and the record of the
    draw takes its next point.
    """
    first = 2 if sampler == "QMCSampler" else 0
    if sampler == "Liar":
        monkeypatch.setattr(optuna.samplers, "TPESampler", Liar)
        sampler = "TPESampler"
    make = functools.partial(make_study, sampler=sampler, pruner=pruner)
    log = tmp_path / "tuned" / "study.log"
    make().search(runner(rising, slots=1), 10)
    before = log.read_bytes()
    make().search(runner(rising, slots=1), 11)
    expected = drawn(make())
    assert len(expected) == 11
    for most in range(first, len(SPACE) + 2):
        log.write_bytes(before)
        killed = make()
        killed.study._storage = KilledWhileStoring(killed.study._storage, most)
        with pytest.raises(Killed):
            killed._next(11)
        assert [trial.state.name for trial in make().study.trials][10:] == ["RUNNING"]
        make().search(runner(rising, slots=1), 11)
        assert drawn(make()) == expected


def test_a_trial_of_another_search_fails(make_study):
    says = []
    search.draw(make_study().study.ask(), "epsilon", SPACE["gamma"])
    make_study(say=says.append).search(runner(rising), 2)
    assert "Trial 0 failed: its process searched for other settings" in says
    states = [trial.state.name for trial in make_study().study.trials]
    assert states == ["FAIL", "COMPLETE"]


def test_the_pruner_ends_trials_and_the_next_takes_the_slot(make_study):
    says = []

    def curve(run, number):
        return number * (10.0 if run.trial.number < 6 else 1.0)

    studied = make_study(
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4), say=says.append
    )
    ran = runner(curve)
    studied.search(ran, 10)
    trials = studied.study.trials
    assert [t.state.name for t in trials] == ["COMPLETE"] * 6 + ["PRUNED"] * 4
    assert all(list(t.intermediate_values) == [1] for t in trials[6:])
    assert says[-1].startswith("Trial 9: pruned at evaluation 1 of 3 with 1.0; gamma=")


def test_trials_that_fail_or_do_not_fit_are_failed(make_study):
    def check(values):
        if values["gamma"] == made[0]["gamma"]:
            raise ValueError("they do not go together.")

    made, says = [], []
    make_study("first").search(runner(lambda *_: 0.0), 1)
    made.append(make_study("first").study.trials[0].params)
    studied = make_study(check=check, say=says.append)
    ends = {1: math.nan, 2: None}
    studied.search(runner(lambda r, n: ends.get(r.trial.number, 1.0)), 4)
    states = [trial.state.name for trial in studied.study.trials]
    assert states[:3] == ["FAIL"] * 3
    assert says[0] == "Trial 0 failed: they do not go together."
    assert "Trial 1 failed: it diverged" in says
    assert "Trial 2 failed: see its output.txt" in says


def test_the_best_are_trained_again_with_other_seeds_and_goes_on(make_study):
    studied = make_study()
    studied.search(runner(rising), 6)
    with pytest.raises(Killed):
        studied.repeat(runner(rising, most=8), 2, 3)
    ran = runner(lambda run, number: run.seed + rising(run, number))
    again = make_study()
    returns = again.repeat(ran, 2, 3)
    values = sorted((t.value for t in again.study.trials), reverse=True)
    assert [again.study.trials[n].value for n in returns] == values[:2]
    for number, own in returns.items():
        assert list(own) == [SEED + 1, SEED + 2, SEED + 3]
        params = again.study.trials[number].params
        assert {str(r.values) for r in ran.ran if f"_{number}_" in r.name} <= {
            str(search.values(SEARCHED, params))
        }
    assert len(ran.ran) == 4  # Two were done before the kill.
    assert all(run.trial is None for run in ran.ran)


def test_a_repeated_run_that_diverges_has_no_return(make_study):
    studied = make_study()
    studied.search(runner(rising), 2)
    returns = studied.repeat(
        runner(lambda run, n: None if run.seed == SEED + 1 else 1.0), 1, 2
    )
    ((first, second),) = (own.values() for own in returns.values())
    assert math.isnan(first)
    assert second == 1.0


def test_without_a_trial_that_ends_there_is_no_best(make_study):
    studied = make_study()
    studied.search(runner(lambda *_: None), 2)
    with pytest.raises(RuntimeError, match="none of 2 came to its end"):
        studied.repeat(runner(rising), 1, 1)


def test_a_study_that_minimizes_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="one that minimizes, expected direction="):
        study.TuningStudy(optuna.create_study(), None, Plan(), tmp_path, print)


def test_samplers_and_pruners_are_optunas_by_name(make_study):
    studied = make_study(sampler="RandomSampler", pruner="HyperbandPruner")
    studied.search(runner(rising), 2)
    assert studied.study.sampler.kind is optuna.samplers.RandomSampler
    assert isinstance(studied.study.pruner, optuna.pruners.HyperbandPruner)
    with pytest.raises(ValueError, match="sampler: got 'Tpe', expected one of BaseGA"):
        study.find_class("sampler", "Tpe")
    with pytest.raises(ValueError, match=r"pruner: got 'x', expected one of .*Hyper"):
        study.find_class("pruner", "x")
