import functools
import os
import re
import resource
import shutil
import signal
import types
import warnings

import numpy as np
import pytest
import tensorflow as tf

from tests.train.countdown_runs import countdown, make_run, result, rows, weights
from tfrl import testing, train
from tfrl.environments import tf_py_environment
from tfrl.eval import evaluate
from tfrl.loggers import base, filters, terminal
from tfrl.savers import whole_checkpoints
from tfrl.specs import array_spec
from tfrl.train.runs import (
    full_disk,
    outputs,
    progress,
    run,
    run_directory,
    run_files,
)


class Diary:
    """A user's own logger: what was written, and whether it was closed."""

    def __init__(self):
        self.entries = []
        self.times_closed = 0

    def write(self, values):
        self.entries.append(dict(values))

    def close(self):
        self.times_closed += 1


def interrupt_at(iteration, number=signal.SIGINT):
    def evaluate_and_interrupt(now):
        if now == iteration:
            os.kill(os.getpid(), number)
        return result(now)

    return evaluate_and_interrupt


def handlers():
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing interrupted, and what was seen of it."""
    path = tmp_path_factory.mktemp("whole") / "run"
    memory, diary, lines, held = base.InMemoryLogger(), Diary(), [], []
    shown = filters.KeyFilter(
        terminal.TerminalLogger("cartpole", print_fn=lines.append),
        keep=["iteration", "evaluation_return"],
    )

    def evaluate_locked(iteration):
        held.append((path / "lock").exists())
        return result(iteration)

    before = handlers()
    this, loop = make_run(
        path, evaluate=evaluate_locked, loggers=[memory, diary, shown]
    )
    held.append((path / "lock").exists())
    outcome = this.run()
    return types.SimpleNamespace(
        path=path,
        weights=weights(loop),
        outcome=outcome,
        held=held,
        memory=memory,
        diary=diary,
        lines=lines,
        handlers=(before, handlers()),
    )


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """The folder of a run that an error of the environment ended, and its logger."""
    path = tmp_path_factory.mktemp("broken") / "run"
    diary = Diary()
    # One call in four resets, so step 16 is call 21, in iteration 13.
    failing = countdown(errors={16: RuntimeError("the clock stopped")})
    this, _ = make_run(path, failing, loggers=[diary])
    with pytest.raises(RuntimeError, match="the clock stopped") as raised:
        this.run()
    return path, diary, raised.value.__notes__


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The folder of a run that was interrupted at iteration 10."""
    path = tmp_path_factory.mktemp("half") / "run"
    make_run(path, evaluate=interrupt_at(10), eval_interval=5)[0].run()
    return path


@pytest.fixture
def stopped(half, tmp_path):
    """A copy of the folder of the run that was interrupted at iteration 10."""
    return shutil.copytree(half, tmp_path / "stopped")


@pytest.fixture
def finished(whole, tmp_path):
    """A copy of the folder of the run that nothing interrupted."""
    return shutil.copytree(whole.path, tmp_path / "finished")


def test_a_run_writes_all_its_outputs(whole):
    outcome = whole.outcome
    assert outcome.finished
    assert outcome.resumed_at is None
    assert (outcome.iteration, outcome.best_return) == (20, 20.0)
    assert outcome.iterations_per_second > 0
    assert outcome.environment_steps_per_second > 0
    names = {path.name for path in whole.path.iterdir()}
    assert names == {
        "checkpoints",
        "config.json",
        "diagnostics.jsonl",
        "final_policy",
        "finished.json",
        "learning_curve.png",
        "metrics.csv",
        "policy",
        "tensorboard",
    }


def test_rows_are_written_at_the_log_interval_and_hold_the_evaluations(whole):
    written = rows(whole.path)
    table = [(row["iteration"], row["evaluation_return"]) for row in written]
    assert table == [
        ("0", "0.0"),
        ("5", ""),
        ("10", "10.0"),
        ("15", ""),
        ("20", "20.0"),
    ]
    last = written[-1]
    assert float(last["average_return"]) == 3.0
    assert float(last["loss"]) > 0
    assert int(last["train_steps"]) == 20


def test_the_best_policy_is_kept_when_later_ones_are_worse(tmp_path):
    scores = {0: 1.0, 10: 5.0, 20: 2.0}
    this, loop = make_run(tmp_path, evaluate=lambda iteration: remember(iteration))
    at_best = []

    def remember(iteration):
        if iteration == 10:
            at_best.extend(v.numpy() for v in loop.agent.policy.variables())
        return result(scores[iteration])

    outcome = this.run()
    assert (outcome.best_return, outcome.last_return) == (5.0, 2.0)
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    assert int(policy.get_train_step()) == 10
    for ours, saved in zip(at_best, policy.model_variables, strict=True):
        np.testing.assert_array_equal(ours, saved)
    final = tf.saved_model.load(str(tmp_path / "final_policy"))
    assert int(final.get_train_step()) == 20


@pytest.mark.slow
def test_without_evaluation_the_last_policy_is_saved(tmp_path):
    this, _ = make_run(tmp_path, evaluate=None)
    assert this.run().best_return is None
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    assert int(policy.get_train_step()) == 20


def test_a_finished_run_says_so_and_changes_nothing(finished, capsys):
    before = rows(finished)
    again, loop = make_run(finished)
    outcome = again.run()
    assert outcome.finished
    assert outcome.resumed_at == 20
    assert loop.iteration == 20
    assert rows(finished) == before
    assert "This run is finished: 20 iterations done" in capsys.readouterr().err


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_goes_on_to_the_same_weights(
    whole, tmp_path, capsys, number
):
    first, _ = make_run(tmp_path / "parts", evaluate=interrupt_at(10, number))
    outcome = first.run()
    assert (outcome.finished, outcome.iteration) == (False, 10)
    assert "Interrupted at iteration 10" in capsys.readouterr().err
    second, loop = make_run(tmp_path / "parts")
    outcome = second.run()
    assert (outcome.finished, outcome.resumed_at) == (True, 10)
    assert "Resumed at iteration 10, environment step" in capsys.readouterr().err
    for ours, theirs in zip(weights(loop), whole.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(rows(tmp_path / "parts"), rows(whole.path), strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours.keys() - {"training_seconds"}:
            assert ours[name] == theirs[name]


@pytest.mark.slow
def test_a_run_goes_on_from_the_last_checkpoint_after_an_error(whole, broken, tmp_path):
    """A row then has the mean loss of its whole interval."""
    path = shutil.copytree(broken[0], tmp_path / "broken")
    after, loop = make_run(path)
    assert loop.iteration == 12
    assert after.run().resumed_at == 12
    losses = [row["loss"] for row in rows(path)]
    assert losses == [row["loss"] for row in rows(whole.path)]


class Endless(testing.CountingEnvironment):
    """Sends a signal to this process in step 300, and never ends an episode."""

    def __init__(self, number=None):
        spec = array_spec.BoundedArraySpec((1,), np.float32, 0, 3, "count")
        super().__init__(10**9, observation_spec=spec, observe=lambda count: [0.0])
        self._number = number

    def _step(self, action):
        if self._number is not None and self.num_steps == 300:
            os.kill(os.getpid(), self._number)
        return super()._step(action)._replace(observation=np.zeros(1, np.float32))


def endless_at(iterations, loop, number=None):
    """An evaluation that does not end at some of the iterations."""
    environment = tf_py_environment.TFPyEnvironment(Endless(number))
    evaluator = evaluate.Evaluator(environment, loop.agent.policy, 1)
    return lambda now: evaluator.run() if now in iterations else result(now)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("iteration", "number"),
    [
        (0, signal.SIGINT),
        (10, signal.SIGTERM),
        (20, signal.SIGINT),
    ],
)
def test_a_signal_ends_an_evaluation_which_a_resumed_run_does_again(
    whole, tmp_path, capsys, number, iteration
):
    first, loop = make_run(tmp_path, evaluate=lambda i: evaluate_until_signal(i))
    evaluate_until_signal = endless_at([iteration], loop, number)
    outcome = first.run()
    assert (outcome.finished, outcome.iteration) == (False, iteration)
    assert f"Interrupted at iteration {iteration}; saved" in capsys.readouterr().err
    assert not (tmp_path / "final_policy").exists()
    second, loop = make_run(tmp_path)
    outcome = second.run()
    assert (outcome.finished, outcome.resumed_at) == (True, iteration)
    assert (tmp_path / "final_policy").exists()
    for ours, theirs in zip(weights(loop), whole.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(rows(tmp_path), rows(whole.path), strict=True):
        for name in ours.keys() - {"training_seconds"}:
            assert ours[name] == theirs[name]


@pytest.mark.slow
def test_an_evaluation_that_does_not_end_is_limited(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        run.progress,
        "Progress",
        functools.partial(progress.Progress, seconds_between_lines=1e-9),
    )
    limits = train.EvaluationLimits(700)
    this, loop = make_run(tmp_path, limits=limits, evaluate=lambda i: endless(i))
    endless = endless_at([0, 10, 20], loop)
    with pytest.warns(RuntimeWarning, match="max_eval_steps: .* limit of 700 steps"):
        outcome = this.run()
    assert outcome.finished
    measured = [row["evaluation_length"] for row in rows(tmp_path)]
    assert measured == ["700.0", "", "700.0", "", "700.0"]
    assert (
        "iteration 10 of 20, evaluating: 0 of 1 episodes ended, 700 steps of each "
        "environment\n"
    ) in capsys.readouterr().err


@pytest.mark.slow
def test_after_a_signal_no_film_is_made_and_the_resumed_run_makes_it(
    tmp_path, monkeypatch
):
    films = []

    def film(environment, policy, path):
        films.append(path.name)

    monkeypatch.setattr(outputs.video, "record_video", film)
    settings = {
        "eval_interval": 5,
        "files": train.RunFiles(video_environment=countdown),
    }
    for interrupted_at in (10, 20):
        this, _ = make_run(tmp_path, evaluate=interrupt_at(interrupted_at), **settings)
        this.run()
        assert films == []
        assert not (tmp_path / "finished.json").exists()
    assert make_run(tmp_path, **settings)[0].run().finished
    assert films == ["agent.mp4"]
    assert (tmp_path / "finished.json").exists()


class ClosedOnce(tf_py_environment.TFPyEnvironment):
    times_closed = 0

    def close(self):
        self.times_closed += 1


@pytest.mark.parametrize(("is_function", "times_closed"), [(True, 1), (False, 0)])
def test_a_run_closes_the_environment_that_it_makes_to_film(
    half, tmp_path, monkeypatch, is_function, times_closed
):
    filmed = []
    monkeypatch.setattr(
        outputs.video,
        "record_video",
        lambda environment, *_: filmed.append(environment),
    )
    environment = ClosedOnce(countdown())
    path = shutil.copytree(half, tmp_path / "run")
    given = (lambda: environment) if is_function else environment
    assert (
        make_run(path, files=train.RunFiles(video_environment=given))[0].run().finished
    )
    assert filmed == [environment]
    assert environment.times_closed == times_closed


def test_a_film_that_cannot_be_made_is_a_warning_and_the_run_ends_well(
    half, tmp_path, monkeypatch
):
    def fail(*_):
        raise TypeError("write() got an unexpected keyword argument 'fps'")

    monkeypatch.setattr(outputs.video, "record_video", fail)
    path = shutil.copytree(half, tmp_path / "run")
    this, _ = make_run(path, files=train.RunFiles(video_environment=countdown()))
    with pytest.warns(RuntimeWarning, match=r"agent\.mp4 could not be made: TypeError"):
        assert this.run().finished
    assert (path / "finished.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "limit"),
    [
        (7, [7, 9]),
        pytest.param(0, [], marks=pytest.mark.slow),
        pytest.param(100, [9, 9], marks=pytest.mark.slow),
    ],
)
def test_the_untrained_policys_evaluation_has_a_limit_of_its_own(tmp_path, most, limit):
    limits = []

    def evaluate_and_note(iteration):
        limits.append(evaluate.current_supervision().max_steps)
        return result(iteration)

    this, _ = make_run(
        tmp_path,
        evaluate=evaluate_and_note,
        limits=train.EvaluationLimits(9, most),
        num_iterations=2,
        eval_interval=2,
    )
    this.run()
    assert limits == (limit or [9])
    first = rows(tmp_path)[0]
    assert (first["iteration"], first["evaluation_return"]) == (
        "0",
        "0.0" if most else "",
    )


def test_signals_have_their_handlers_back_after_a_run(whole):
    before, after = whole.handlers
    assert before == after


@pytest.mark.slow
def test_training_seconds_are_those_of_the_iterations(tmp_path, monkeypatch):
    """The clock says how many iterations, initial steps and traces there were."""
    for evaluate_part, is_new in ((interrupt_at(10), True), (result, False)):
        this, loop = make_run(tmp_path, evaluate=evaluate_part, own=is_new)

        def clock(loop=loop):
            initial = min(int(loop._step), 8)
            return loop.iteration + 100.0 * initial + 10_000.0 * loop.trace_count()

        monkeypatch.setattr(run, "time", types.SimpleNamespace(monotonic=clock))
        outcome = this.run()
        assert outcome.iterations_per_second == 1.0
    measured = [float(row["training_seconds"]) for row in rows(tmp_path)]
    assert measured == [0, 5, 10, 15, 20]


@pytest.mark.slow
def test_the_best_return_survives_a_restart(stopped):
    second, _ = make_run(stopped, evaluate=lambda i: result(5.0))
    assert second.run().best_return == 10.0
    policy = tf.saved_model.load(str(stopped / "policy"))
    assert int(policy.get_train_step()) == 10


class Forgetful(testing.CountingEnvironment):
    """An environment that cannot save its state."""

    def get_state(self):
        raise NotImplementedError("Forgetful: no state.")


@pytest.mark.filterwarnings("ignore:The checkpoints of this run leave out")
@pytest.mark.parametrize("is_whole", [True, False])
def test_the_log_says_what_a_resumed_run_lacked_and_adds_up_seconds(tmp_path, is_whole):
    environment = countdown()
    if not is_whole:
        environment.__class__ = Forgetful
    settings = {"files": train.RunFiles(checkpoint_replay_buffer=is_whole)}
    first = interrupt_at(10, signal.SIGINT)
    make_run(tmp_path, environment, evaluate=first, **settings)[0].run()
    before = run_files.read_rows(tmp_path / "diagnostics.jsonl")
    make_run(tmp_path, environment, **settings)[0].run()
    after = run_files.read_rows(tmp_path / "diagnostics.jsonl")
    assert after[: len(before)] == before
    begins = [row for row in after if "versions" in row]
    assert begins == [before[0], after[len(before)]]
    assert "resumed_without" not in begins[0]
    lacking = [] if is_whole else ["replay_buffer", "environment"]
    assert begins[1]["resumed_without"] == lacking
    for name in ("processor_seconds", "training_seconds"):
        seconds = [row[name] for row in after]
        assert seconds == sorted(seconds)
    assert after[len(before)]["processor_seconds"] > before[-1]["processor_seconds"] > 0


def damage(path):
    with open(path, "r+b") as file:
        file.write(b"\xff" * 8)


def test_a_damaged_last_checkpoint_falls_back_with_a_warning(finished):
    damage(finished / "checkpoints" / "ckpt-20.data-00000-of-00001")
    with pytest.warns(RuntimeWarning, match="CHECKPOINT DAMAGED"):
        again, loop = make_run(finished)
    assert loop.iteration == 16
    assert again.run().resumed_at == 16


def test_nothing_but_damaged_checkpoints_is_an_error(finished):
    for path in (finished / "checkpoints").glob("*.index"):
        damage(path)
    with pytest.raises(whole_checkpoints.CheckpointError, match="none of its 3"):
        make_run(finished)
    assert not (finished / "lock").exists()


def test_weights_that_are_not_finite_leave_the_outputs_as_they_are(
    tmp_path, monkeypatch
):
    this, loop = make_run(tmp_path, eval_interval=3)
    run_call = loop.run_call

    def run_and_spoil(number):
        info = run_call(number)
        if loop.iteration == 6:
            weight = loop.agent.variables()[0]
            weight.assign(weight * np.nan)
        return info

    monkeypatch.setattr(loop, "run_call", run_and_spoil)
    with pytest.raises(
        whole_checkpoints.CheckpointError, match="agent, variable QNetwork"
    ):
        this.run()
    assert loop.iteration == 6
    assert int(tf.saved_model.load(str(tmp_path / "policy")).get_train_step()) == 3
    assert [row["iteration"] for row in rows(tmp_path)] == list("035")
    _, again = make_run(tmp_path)
    assert again.iteration == 4
    assert all(np.isfinite(weight).all() for weight in weights(again))


def test_a_run_holds_the_lock_of_its_directory_until_it_ends(whole):
    assert whole.held == [True] * 4
    assert not (whole.path / "lock").exists()


def test_an_error_says_where_the_run_is_and_how_it_goes_on(broken):
    path, _, notes = broken
    assert re.fullmatch(r"This is from step \d+ of CountingEnvironment\.", notes[0])
    assert notes[1] == (
        "It ended the run at iteration 12; the same command resumes from "
        f"{path / 'checkpoints' / 'ckpt-12'}."
    )


def test_a_run_that_fails_releases_the_lock(broken):
    assert not (broken[0] / "lock").exists()


def test_a_replaced_policy_that_was_cut_short_is_recovered(finished):
    os.rename(finished / "policy", finished / "policy.old")
    again, _ = make_run(finished)
    again.run()
    assert (finished / "policy" / "saved_model.pb").exists()
    assert not (finished / "policy.old").exists()


@pytest.mark.parametrize(
    "name",
    [
        "num_iterations",
        "eval_interval",
        "log_interval",
        "checkpoint_interval",
    ],
)
def test_a_number_below_one_is_an_error(tmp_path, name):
    with pytest.raises(
        ValueError, match=f"{name}: expected an integer of at least 1, got 0"
    ):
        make_run(tmp_path, **{name: 0})


@pytest.mark.parametrize(
    ("kind", "name", "least"),
    [
        (train.EvaluationLimits, "max_eval_steps", 1),
        (train.EvaluationLimits, "max_untrained_eval_steps", 0),
        (train.RunFiles, "max_to_keep", 1),
    ],
)
def test_a_number_below_the_least_is_an_error(kind, name, least):
    with pytest.raises(ValueError, match=f"{name}: expected an integer of at least"):
        kind(**{name: least - 1})


@pytest.mark.slow
def test_a_run_of_so_many_environment_steps_ends_after_the_iteration_that_reaches_it(
    tmp_path,
):
    """An iteration takes one step, or none at the boundary of two episodes."""
    length = {"num_iterations": None, "num_environment_steps": 15}
    this, loop = make_run(tmp_path, **length, config=length)
    outcome = this.run()
    assert outcome.finished
    assert loop.info().environment_steps == 15
    assert (tmp_path / "final_policy").exists()
    assert rows(tmp_path)[-1]["evaluation_return"] == f"{outcome.iteration}.0"
    length["num_environment_steps"] = 17
    longer, loop = make_run(tmp_path, **length, config=length)
    assert longer.run().resumed_at == outcome.iteration
    assert loop.info().environment_steps == 17


def test_a_run_that_ends_within_its_initial_collection_saves_the_untrained_policy(
    tmp_path, capsys
):
    """The first call of a new loop has no iteration; a used loop's may have some."""
    length = {"num_iterations": None, "num_environment_steps": 5}
    this, loop = make_run(tmp_path, **length, config=length, own=True)
    outcome = this.run()
    assert outcome.finished
    assert outcome.iteration == 0
    assert loop.info().environment_steps >= 5
    assert outcome.last_return == 0.0
    assert outcome.best_return is None
    assert "ended before its first update" in capsys.readouterr().err
    assert (tmp_path / "final_policy").exists()
    length["num_environment_steps"] = 12
    longer, loop = make_run(tmp_path, **length, config=length)
    assert longer.run().iteration > 0
    assert loop.info().environment_steps == 12


def test_loggers_get_the_rows_of_the_metrics_without_the_empty_ones(whole):
    data = whole.memory.data
    assert data == whole.diary.entries
    table = rows(whole.path)
    columns = table[0].keys()
    written = [{k: v for k, v in row.items() if v} for row in table]
    assert [
        {k: str(v) for k, v in row.items() if k in columns} for row in data
    ] == written
    assert data[0]["evaluation_return"] == 0.0
    assert "loss" not in data[0]
    assert "evaluation_return" not in data[1]
    assert whole.diary.times_closed == 1
    assert (whole.path / "tensorboard").exists()


def test_a_filter_may_stand_before_a_logger(whole):
    assert whole.lines[:2] == [
        "[Cartpole] Evaluation Return = 0.000 | Iteration = 0",
        "[Cartpole] Iteration = 5",
    ]


def test_loggers_are_closed_when_a_run_fails_or_has_nothing_to_do(broken, finished):
    assert broken[1].times_closed == 1
    idle = Diary()
    make_run(finished, loggers=[idle])[0].run()
    assert (idle.entries, idle.times_closed) == ([], 1)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"loggers": [base.InMemoryLogger(), "file"]}, r"loggers\[1\]: got a str"),
        (
            {"loggers": [base.InMemoryLogger]},
            r"loggers\[0\]: got the class InMemoryLogger",
        ),
        ({"view": types.SimpleNamespace(measure=dict)}, "view: got a SimpleNamespace"),
    ],
)
def test_a_logger_or_a_view_without_its_methods_is_refused(tmp_path, given, found):
    with pytest.raises(TypeError, match=f"{found}, expected an object with"):
        make_run(tmp_path, **given)


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_run_resumes_when_there_is_space(tmp_path):
    this, _ = make_run(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        with pytest.raises(
            full_disk.FullDiskError, match=r"File too large.*continues from"
        ):
            this.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    this, _ = make_run(tmp_path)
    assert this.run().finished


def remove_folder(path):
    shutil.rmtree(path / "checkpoints")


def remove_files(path):
    for file in (path / "checkpoints").iterdir():
        file.unlink()


def remove_checkpoints(path):
    for file in (path / "checkpoints").glob("ckpt-*"):
        file.unlink()


@pytest.mark.parametrize("remove", [remove_folder, remove_files, remove_checkpoints])
@pytest.mark.parametrize("last", [10, 20])
def test_lost_checkpoints_are_an_error_and_not_a_new_start(
    finished, stopped, remove, last
):
    path = stopped if last == 10 else finished
    remove(path)
    with pytest.raises(run_directory.RunDirectoryError) as error:
        make_run(path)
    assert f"up to iteration {last}, but {path / 'checkpoints'} has" in str(error.value)
    assert "metrics.csv, policy" in str(error.value)
    assert "--overwrite" in str(error.value)


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_starts_again_with_a_warning(
    tmp_path,
):
    failing = countdown(errors={13: RuntimeError("killed")})
    this, _ = make_run(tmp_path, failing, checkpoint_interval=100, eval_interval=100)
    with pytest.raises(RuntimeError, match="killed"):
        this.run()
    assert rows(tmp_path)[-1]["iteration"] == "5"
    with pytest.warns(
        RuntimeWarning, match="up to iteration 5, which ended before its"
    ):
        again, loop = make_run(tmp_path)
    assert loop.iteration == 0
    assert again.run().finished


def test_a_run_killed_before_its_first_iterations_starts_again_in_silence(tmp_path):
    failing = countdown(errors={9: RuntimeError("killed")})
    with pytest.raises(RuntimeError, match="killed"):
        make_run(tmp_path, failing)[0].run()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        make_run(tmp_path)


def test_a_run_whose_first_checkpoint_found_no_space_begins_again(tmp_path):
    """TensorFlow had moved the values, and had no space for their index."""
    folder = tmp_path / "checkpoints"
    make_run(tmp_path)
    (folder / "ckpt-4_temp").mkdir()
    (folder / "ckpt-4.data-00000-of-00001").write_bytes(b"values")
    _, loop = make_run(tmp_path)
    assert loop.iteration == 0
    assert not list(folder.iterdir())


def test_what_a_killed_run_left_of_an_unfinished_checkpoint_is_removed(finished):
    unfinished = finished / "checkpoints" / "ckpt-24_temp"
    unfinished.mkdir()
    (unfinished / "part-00000-of-00001.data-00000-of-00001").write_text("part")
    make_run(finished)
    assert not unfinished.exists()


def remove_at(iteration, path):
    """An evaluation that removes a file or folder at an iteration."""

    def evaluate_and_remove(now):
        if now == iteration:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return result(now)

    return evaluate_and_remove


def test_a_directory_removed_during_the_run_is_an_error(tmp_path, capsys):
    path = tmp_path / "run"
    this, _ = make_run(path, evaluate=remove_at(10, path))
    with pytest.raises(
        run_directory.RunDirectoryError,
        match=r"removed or replaced during the run. All outputs up to iteration 12 are",
    ):
        this.run()
    assert "Finished" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_directory_replaced_during_the_run_is_left_to_its_owner(tmp_path):
    path = tmp_path / "run"

    def replace(iteration):
        if iteration == 10:
            path.rename(tmp_path / "old")
            path.mkdir()
        return result(iteration)

    this, _ = make_run(path, evaluate=replace, eval_interval=5)
    with pytest.raises(run_directory.RunDirectoryError, match="removed or replaced"):
        this.run()
    assert not (path / "metrics.csv").exists()


@pytest.mark.slow
def test_metrics_removed_during_the_run_are_an_error_and_the_run_may_be_resumed(
    tmp_path,
):
    this, _ = make_run(tmp_path, evaluate=remove_at(10, tmp_path / "metrics.csv"))
    with pytest.raises(
        run_directory.RunDirectoryError, match=r"metrics.csv: it was re"
    ):
        this.run()
    assert make_run(tmp_path)[0].run().resumed_at == 10


@pytest.mark.slow
def test_a_policy_removed_during_the_run_is_written_again(tmp_path):
    scores = {0: 1.0, 10: 5.0, 15: 4.0, 20: 3.0}

    def evaluate_and_remove(now):
        if now == 15:
            shutil.rmtree(tmp_path / "policy")
        return result(scores.get(now, 0.0))

    this, _ = make_run(tmp_path, evaluate=evaluate_and_remove, eval_interval=5)
    with pytest.warns(
        RuntimeWarning, match=r"iteration 20, of mean return 3.0.*return 5, is lost"
    ):
        assert this.run().best_return == 3.0
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    assert int(policy.get_train_step()) == 20


def damage_policy(path):
    cut = next((path / "variables").glob("*.data*"))
    cut.write_bytes(cut.read_bytes()[:10])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("policy", damage_policy),
        ("final_policy", shutil.rmtree),
        pytest.param("policy", shutil.rmtree, marks=pytest.mark.slow),
        pytest.param("final_policy", damage_policy, marks=pytest.mark.slow),
    ],
)
def test_a_policy_of_a_finished_run_is_written_again_with_a_warning(
    finished, name, harm
):
    harm(finished / name)
    again, loop = make_run(finished)
    with pytest.warns(
        RuntimeWarning, match=f"POLICY LOST: .*{name} is .*written again"
    ):
        assert again.run().best_return == 20.0
    policy = tf.saved_model.load(str(finished / name))
    assert int(policy.get_train_step()) == 20
    for ours, saved in zip(
        loop.agent.policy.variables(), policy.model_variables, strict=True
    ):
        np.testing.assert_array_equal(ours, saved)


@pytest.mark.slow  # Three runs; `test_saved_policies.py` asks the same of the parts.
def test_a_lost_best_policy_is_replaced_and_a_worse_one_may_be_the_best_then(tmp_path):
    scores = {0: 1.0, 5: 9.0, 10: 2.0}
    make_run(
        tmp_path,
        evaluate=lambda i: interrupt_at(10)(i) and result(scores[i]),
        eval_interval=5,
    )[0].run()
    shutil.rmtree(tmp_path / "policy")
    again, _ = make_run(tmp_path, evaluate=interrupt_at(15), eval_interval=5)
    with pytest.warns(
        RuntimeWarning,
        match=r"iteration 10, of mean return 2.0.*mean return 9, is lost",
    ):
        assert again.run().best_return == 15.0
    last, _ = make_run(tmp_path, evaluate=lambda i: result(3.0), eval_interval=5)
    assert last.run().best_return == 15.0


@pytest.mark.slow
def test_whole_policies_are_left_alone_at_a_resume(stopped):
    before = (stopped / "policy").stat().st_ino
    again, _ = make_run(stopped, evaluate=lambda i: result(0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        again.run()
    assert (stopped / "policy").stat().st_ino == before


@pytest.mark.slow  # Three runs.
def test_a_run_without_evaluations_has_no_best_policy_to_miss(tmp_path):
    failing = countdown(errors={16: RuntimeError("stopped")})
    with pytest.raises(RuntimeError, match="stopped"):
        make_run(tmp_path, failing, evaluate=None)[0].run()
    again, _ = make_run(tmp_path, evaluate=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert again.run().finished
    shutil.rmtree(tmp_path / "policy")
    last, _ = make_run(tmp_path, evaluate=None)
    with pytest.warns(RuntimeWarning, match="POLICY LOST: .*policy is missing"):
        last.run()
    assert (tmp_path / "policy" / "saved_model.pb").exists()
