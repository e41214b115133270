"""Runs of tuning: in the slots of one program, and in processes that end or fail."""

import dataclasses
import math
import os
import signal

import numpy as np
import pytest

import tfrl
from tfrl import train
from tfrl.algorithms import bandits, registry
from tfrl.bandits.environments import loading as bandit_loading
from tfrl.environments import native
from tfrl.experiments.tuning import plan as plan_lib
from tfrl.experiments.tuning import runners
from tfrl.system import interrupts, jobs
from tfrl.utils import variables

SMALL = {
    "jit_compile": False,
    "initial_collect_steps": 40,
    "replay_capacity": 200,
    "batch_size": 8,
    "num_envs": 2,
    "collect_steps_per_iteration": 4,
    "train_steps_per_iteration": 2,
    "sequence_length": 4,
    "num_iterations": 12,
    "epsilon_decay_iterations": 3,
    "eval_interval": 2,
    "num_eval_episodes": 2,
    "num_epochs": 2,
    "minibatch_size": 4,
    "target_update_period": 2,
    "burn_in_length": 1,
    "trace_length": 4,
    "n_step_update": 2,
    "num_samples": 3,
    "fc_layer_params": (4,),
    "actor_fc_layer_params": (4,),
    "critic_fc_layer_params": (4,),
    "lstm_size": 4,
}
EVALUATIONS = 6
WITH_LSTM = ("r2d2",)
LIVE = [name for name in registry.CLASSES if registry.find(name).live_settings()]


def settings_of(name, **values):
    small = {**SMALL, **values}
    if name not in WITH_LSTM:
        small.pop("lstm_size")
    return {k: x for k, x in small.items() if k in registry.find(name).defaults()}


def dynamics_of(name):
    kind, environment = registry.find(name), "Pendulum-v1"
    if issubclass(kind, bandits.Bandit):
        return bandit_loading.dynamics(kind.environment_name)
    if kind.actions == "discrete":
        environment = "CartPole-v1"
    return dataclasses.replace(native.load(environment).dynamics, max_episode_steps=20)


def slots_of(name, number=1, **values):
    recipe = registry.find(name)(settings=settings_of(name, **values)).recipe()
    plan = plan_lib.Plan(recipe, None, EVALUATIONS, None, recipe.environment)
    return runners.Slots(plan, dynamics_of(name), number)


def other_values(name):
    """Another value for each live field."""
    recipe = registry.find(name)(settings=settings_of(name))
    live = {k: recipe.settings[k] for k in sorted(recipe.live_settings())}
    # Without a last learning rate there is no schedule that could have another.
    return {name: x * 0.7 or 0.1 for name, x in live.items() if x is not None}


def every_variable(loop):
    return variables.as_tf_variables(variables.tracked_variables(loop))


@pytest.mark.slow
@pytest.mark.parametrize("name", LIVE)
def test_a_loop_reads_all_live_settings_from_variables(name):
    """The values of another run's variables make a loop that run."""
    slots, values = slots_of(name), other_values(name)
    s = registry.find(name)(settings=settings_of(name, seed=3))
    usual = {each: s.settings[each] for each in values}
    loop = slots._make_loop(3, **usual)
    other = slots._make_loop(3, **values)
    for mine, others in zip(every_variable(loop), every_variable(other), strict=True):
        mine.assign(others)
    environment = native.NativeEnvironment(dynamics_of(name), s.num_envs, 3)
    alone = registry.find(name)(
        environment, settings=settings_of(name, **values, seed=3)
    )
    expected = alone.build()
    np.testing.assert_allclose(loop.run(6).loss, expected.run(6).loss, rtol=1e-5)
    # The policies of bandits read settings, too.
    settings = {id(variable) for variable in loop.agent.live_settings}
    mine = [x for x in loop.agent.policy.variables() if id(x) not in settings]
    for found, wanted in zip(mine, expected.agent.policy.variables(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_slots_of_ended_runs_get_the_next_without_another_trace(monkeypatch):
    traced, seen = [], []
    iterate = train.OffPolicyLoop.iterate
    monkeypatch.setattr(
        train.OffPolicyLoop,
        "iterate",
        lambda loop, *position: traced.append(loop) or iterate(loop, *position),
    )
    quick = dict.fromkeys(("num_envs", "train_steps_per_iteration"), 1)
    slots = slots_of("dqn", 3, jit_compile=True, n_step_update=1, **quick)
    gammas = [0.5, 0.6, 0.7, 0.8, 0.5]
    runs = [
        plan_lib.TunedRun(str(i), 3, {"gamma": gamma}) for i, gamma in enumerate(gammas)
    ]
    waiting = iter(runs)

    def report(run, number, value):
        seen.append((run.name, number, value, len(traced)))
        return number < (1 if run.name == "1" else 3)

    slots.run(lambda: next(waiting, None), report)
    order = [(name, number) for name, number, *_ in seen]
    assert order == [
        *[("0", 1), ("1", 1), ("2", 1)],
        *[("0", 2), ("3", 1), ("2", 2)],
        *[("0", 3), ("3", 2), ("2", 3)],
        *[("4", 1), ("3", 3)],
        *[("4", 2), ("4", 3)],
    ]
    assert len({count for *_, count in seen}) == 1
    # The last run is the first one over again, in a slot that others have had.
    first = [value for name, _, value, _ in seen if name == "0"]
    last = [value for name, _, value, _ in seen if name == "4"]
    assert first == last


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
EVALUATION = {"iteration": "10", "evaluation_return": "5.0"}


@pytest.fixture
def in_processes(tmp_path, monkeypatch):
    """Returns what two runs report whose processes end with a status."""
    recipe = tfrl.DQN("CartPole-v1", num_iterations=20).recipe()
    planned = plan_lib.Plan(recipe, None, 2, "gamma", recipe.environment)
    made = runners.Processes(planned, "CartPole-v1", tmp_path, number=2)
    rows = []
    monkeypatch.setattr(runners.run_files, "read_metrics", lambda _: rows)

    def start(statuses, reported, before_the_end=lambda: None, evaluated=()):
        def run_all(made, most, is_stopped, on_end, *, ends_early):
            for number, job in enumerate(made):
                rows[:] = evaluated
                job.output.with_name("metrics.csv").write_text("read by `read_metrics`")
                ends_early(number)
            before_the_end()
            for number, status in enumerate(statuses):
                on_end(number, status)
            return statuses

        def report(run, number, value):
            reported.append((run.name, number, value))
            return value is not None and math.isfinite(value)

        runs = iter(plan_lib.TunedRun(f"run_{i}", i, {"gamma": 0.9}) for i in range(2))
        monkeypatch.setattr(jobs, "run_all", run_all)
        made.run(lambda: next(runs, None), report)

    return start


def test_a_run_that_failed_is_reported_after_its_evaluations(in_processes):
    reported = []
    in_processes([1, -9], reported, evaluated=[EVALUATION])
    assert sorted(reported) == [
        (name, *rest) for name in ("run_0", "run_1") for rest in ((1, 5.0), (2, None))
    ]


@pytest.mark.parametrize("number", SIGNALS)
def test_runs_that_a_signal_to_the_search_has_stopped_report_nothing(
    in_processes, number
):
    reported = []
    meaning = KeyboardInterrupt if number == signal.SIGINT else interrupts.Terminated
    statuses = [128 + signal.SIGTERM, 1]  # An interrupted import may end with 1.
    with pytest.raises(meaning):
        in_processes(statuses, reported, lambda: os.kill(os.getpid(), number))
    assert reported == []


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("of", [lambda x: -x, lambda x: 128 + x], ids=["killed", "own"])
def test_a_run_that_was_told_to_stop_alone_has_not_failed(in_processes, number, of):
    reported = []
    with pytest.raises(
        RuntimeError, match=r"1 of 2 runs .*run_1.output\.txt\. The sam"
    ):
        in_processes([1, of(number)], reported)
    assert reported == [("run_0", 1, None)]


def test_a_run_that_was_pruned_and_so_told_to_stop_is_at_its_end(in_processes):
    reported = []
    ends = [{**EVALUATION, "evaluation_return": "nan"}]
    in_processes([143, 143], reported, evaluated=ends)
    assert len(reported) == 2
