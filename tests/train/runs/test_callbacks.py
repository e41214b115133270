"""Callbacks of a run, as its user writes them."""

import csv
import re
import shutil
import warnings

import numpy as np
import pytest
import tensorflow as tf

from tests.train import countdown_runs
from tfrl import train
from tfrl.train.runs import callbacks as callbacks_lib
from tfrl.train.runs import run_files, run_length, stopped_runs


class Diary(train.Callback):
    """Writes down every event, and does what `reactions` say at some of them."""

    def __init__(self, reactions=()):
        self.events = []
        self._reactions = dict(reactions)

    def _add(self, *event):
        self.events.append(event)
        if event in self._reactions:
            self._reactions[event](self)

    def on_start(self, iteration):
        self._add("start", iteration)

    def on_log(self, row):
        self._add("log", row["iteration"])

    def on_evaluation(self, result):
        self._add("evaluation", result.mean)

    def on_checkpoint(self, path):
        self._add("checkpoint", path.rpartition("/")[2])

    def on_end(self, result):
        self._add("end", result.iteration, result.finished)


def make_run(path, num_iterations=6, callbacks=(), config=None, **kwargs):
    """A run whose evaluations return the iteration."""
    settings = {"eval_interval": 5, "log_interval": 3, **kwargs}
    return countdown_runs.make_run(
        path,
        config=config or {"num_iterations": num_iterations},
        num_iterations=num_iterations,
        callbacks=callbacks,
        **settings,
    )[0]


def weights(run):
    return [v.numpy().copy() for v in run._loop.agent.variables()]


def iterations(path):
    with open(path / "metrics.csv", newline="") as file:
        return [int(row["iteration"]) for row in csv.DictReader(file)]


class Keep(train.Callback):
    """Keeps the evaluations, and the user's metrics."""

    def __init__(self):
        self.evaluations, self.metrics = [], []

    def on_evaluation(self, result):
        self.evaluations.append((result.iteration, result.environment_steps))

    def on_log(self, row):
        self.metrics.append({name: row.get(name) for name in ("twice", "never")})


@pytest.fixture(scope="module")
def kept():
    """What a callback of `whole` has kept."""
    return Keep()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, kept):
    """The folder of a run of 6 iterations, its weights, and its callback's events."""
    path = tmp_path_factory.mktemp("whole")
    diary = Diary()
    metrics = {"twice": lambda: tf.constant(2.5), "never": lambda: float("nan")}
    run = make_run(path, callbacks=[diary, kept], metrics=metrics)
    run.run()
    return path, weights(run), diary.events


def test_an_evaluation_says_at_which_iteration_it_was(whole, kept):
    """Three steps and a boundary take four iterations, after eight initial ones."""
    seen = kept.evaluations
    with open(whole[0] / "metrics.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["evaluation_return"]]
    logged = [(int(row["iteration"]), int(row["environment_steps"])) for row in rows]
    assert seen == logged
    assert [iteration for iteration, _ in seen] == [0, 5, 6]


def test_stop_at_return_stops_at_a_trained_policy(tmp_path):
    run = make_run(
        tmp_path,
        num_iterations=20,
        evaluate=lambda iteration: countdown_runs.result(9 - iteration),
        callbacks=[train.StopAtReturn(4.0)],
    )
    outcome = run.run()
    assert outcome.iteration == 5
    assert outcome.stopped_by == "StopAtReturn: mean return 4.0 of 4"
    assert (tmp_path / "policy").exists()


def test_a_run_that_is_stopped_before_it_begins_leaves_a_policy(tmp_path):
    class StopNow(train.Callback):
        def on_evaluation(self, result):
            self.stop()

    assert make_run(tmp_path, callbacks=[StopNow()]).run().iteration == 0
    assert (tmp_path / "policy" / "saved_model.pb").exists()


@pytest.mark.usefixtures("whole")
def test_metrics_of_ones_own_are_logged_where_they_are_measured(kept):
    assert kept.metrics == [{"twice": 2.5, "never": None}] * 4


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"twice": 2.0}, TypeError, r"metrics\['twice'\]: got a float, expected a f"),
        ({"loss": float}, ValueError, "metrics: got 'loss', which the run logs itself"),
    ],
)
def test_metrics_are_functions_with_names_of_their_own(
    tmp_path, metrics, error, message
):
    with pytest.raises(error, match=message):
        make_run(tmp_path, metrics=metrics)


@pytest.mark.slow
def test_all_checkpoints_are_kept_if_the_user_wants_them(tmp_path):
    make_run(
        tmp_path, checkpoint_interval=1, files=train.RunFiles(max_to_keep=None)
    ).run()
    saved = {path.stem for path in (tmp_path / "checkpoints").glob("*.index")}
    assert saved == {f"ckpt-{iteration}" for iteration in range(1, 7)}


def test_each_event_is_told_once_and_in_order(whole):
    _, _, events = whole
    assert events == [
        ("start", 0),
        ("log", 0),
        ("evaluation", 0.0),
        ("log", 3),
        ("checkpoint", "ckpt-4"),
        ("log", 5),
        ("evaluation", 5.0),
        ("checkpoint", "ckpt-5"),
        ("log", 6),
        ("evaluation", 6.0),
        ("checkpoint", "ckpt-6"),
        ("end", 6, True),
    ]


def test_a_callback_stops_the_run_which_says_who_and_stays_stopped_until_continued(
    whole, tmp_path, capsys
):
    stops = {("evaluation", 5.0): lambda diary: diary.stop("it is good enough")}
    diary, other = Diary(stops), Diary()
    result = make_run(tmp_path, callbacks=[diary, other]).run()
    assert (result.iteration, result.finished) == (5, False)
    assert result.stopped_by == "Diary: it is good enough"
    said = capsys.readouterr().err
    assert "Stopped at iteration 5 by Diary: it is good enough; saved " in said
    assert "--continue, or continue_stopped=True in Python, continues" in said
    assert other.events == diary.events
    assert other.events[-3:] == [
        ("checkpoint", "ckpt-5"),
        ("checkpoint", "ckpt-5"),
        ("end", 5, False),
    ]
    final = tf.saved_model.load(str(tmp_path / "final_policy"))
    assert int(final.get_train_step()) == 5
    again = Diary()
    before = (tmp_path / "metrics.csv").read_bytes()
    repeated = make_run(tmp_path, callbacks=[again]).run()
    assert (repeated.iteration, repeated.finished) == (5, False)
    assert repeated.stopped_by == "Diary: it is good enough"
    assert (again.events, (tmp_path / "metrics.csv").read_bytes()) == ([], before)
    assert "This run was stopped at iteration 5 by Diary" in capsys.readouterr().err
    resumed = make_run(tmp_path, callbacks=[again], continue_stopped=True)
    result = resumed.run()
    assert (result.finished, result.resumed_at, result.stopped_by) == (True, 5, None)
    assert again.events[0] == ("start", 5)
    assert again.events[-1] == ("end", 6, True)
    for ours, theirs in zip(weights(resumed), whole[1], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_a_stopped_run_goes_on_to_another_length_and_a_continued_one_resumes(
    tmp_path, capsys
):
    def stop_at_5(*events):
        return Diary({("evaluation", 5.0): lambda diary: diary.stop(), **dict(events)})

    make_run(tmp_path, 20, callbacks=[stop_at_5()]).run()
    # An interrupted run is resumed by the same command.
    first = make_run(
        tmp_path, 20, is_interrupted=lambda: True, continue_stopped=True
    ).run()
    assert (first.iteration, first.stopped_by) == (5, None)
    second = make_run(
        tmp_path, 20, callbacks=[Diary({("log", 9): lambda diary: diary.stop()})]
    ).run()
    assert (second.iteration, second.stopped_by) == (9, "Diary")
    capsys.readouterr()
    shorter = make_run(tmp_path, 11).run()
    assert (shorter.iteration, shorter.finished) == (11, True)
    assert "num_iterations has fallen from 20 to 11" in capsys.readouterr().err
    assert make_run(tmp_path, 20).run().stopped_by == "Diary"


@pytest.mark.parametrize("text", ["{", "[]", "[{}]", '[{"length": 3}]', "7"])
def test_a_damaged_record_of_stops_holds_no_stop(tmp_path, text):
    length = run_length.RunLength(6, None)
    stop = stopped_runs.Stop(length, 3, 12, "Diary")
    stopped_runs.mark(tmp_path, stop)
    assert stopped_runs.find(tmp_path, length) == stop
    assert stopped_runs.find(tmp_path, run_length.RunLength(None, 6)) is None
    (tmp_path / "stopped.json").write_text(text)
    assert stopped_runs.find(tmp_path, length) is None


@pytest.mark.parametrize(
    ("event", "stopped_at"),
    [
        pytest.param(("start", 0), 0, marks=pytest.mark.slow),
        pytest.param(("log", 3), 3, marks=pytest.mark.slow),
        (("checkpoint", "ckpt-4"), 4),
    ],
)
def test_every_event_may_stop_the_run(tmp_path, event, stopped_at):
    diary = Diary({event: lambda diary: diary.stop()})
    result = make_run(tmp_path, callbacks=[diary]).run()
    assert (result.iteration, result.stopped_by) == (stopped_at, "Diary")
    assert (tmp_path / "checkpoints" / f"ckpt-{stopped_at}.index").exists()


@pytest.mark.slow
def test_a_stop_at_the_end_leaves_the_run_finished(tmp_path):
    stops = {("evaluation", 6.0): lambda diary: diary.stop("too late")}
    result = make_run(tmp_path, callbacks=[Diary(stops)]).run()
    assert (result.finished, result.stopped_by) == (True, None)


class PrunedError(Exception):
    """Such as a library of hyperparameter searches raises."""


@pytest.mark.slow
def test_an_exception_of_a_callback_reaches_the_caller_after_the_files_are_written(
    whole, tmp_path
):
    def prune(diary):
        raise PrunedError("a poor trial")

    diary = Diary({("evaluation", 5.0): prune})
    with pytest.raises(PrunedError) as raised:
        make_run(tmp_path, callbacks=[diary]).run()
    assert str(raised.value) == "a poor trial"
    assert diary.events[-1] == ("evaluation", 5.0)
    assert iterations(tmp_path)[-1] == 5
    assert (tmp_path / "checkpoints" / "ckpt-5.index").exists()
    assert (tmp_path / "policy").exists()
    resumed = make_run(tmp_path)
    assert resumed.run().resumed_at == 5
    for ours, theirs in zip(weights(resumed), whole[1], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_finished_run_calls_no_callback(whole):
    diary = Diary()
    assert make_run(whole[0], callbacks=[diary]).run().finished
    assert diary.events == []


@pytest.mark.parametrize(
    ("callback", "found"),
    [(Diary, "the class Diary"), (print, "a builtin_function_or_method")],
)
def test_what_is_no_callback_is_refused(tmp_path, callback, found):
    message = rf"callbacks\[1\]: got {found}, expected an instance"
    with pytest.raises(TypeError, match=message):
        make_run(tmp_path, callbacks=[Diary(), callback])


def test_one_callback_is_given_in_a_list(tmp_path):
    with pytest.raises(TypeError, match="callbacks: got a Diary, expected a list"):
        make_run(tmp_path, callbacks=Diary())


@pytest.mark.parametrize(
    ("method", "remedy"),
    [
        ("on_evaluate", "did you mean on_evaluation?"),
        ("on_training_end", "rename it without on_."),
    ],
)
def test_a_method_that_no_event_calls_is_refused(method, remedy):
    misspelt = type("Mine", (train.Callback,), {method: lambda self, result: None})
    message = rf"callbacks\[0\]: got a Mine with the method {method}, .* {remedy[:-1]}"
    with pytest.raises(TypeError, match=message):
        callbacks_lib.CallbackList([misspelt()])
    callbacks_lib.CallbackList([type("Mine", (train.Callback,), {"on_gpu": True})()])


@pytest.mark.parametrize(
    ("length", "most_steps", "interval", "is_missed"),
    [
        # 100 iterations.
        ((100, None), 8, 100, False),
        ((100, None), 8, 101, True),
        ((100, None), 8, None, True),
        # 1,000 steps, up to 8 in an iteration, half of which may be resets.
        ((None, 1_000), 8, 250, False),
        ((None, 1_000), 8, 1_000, True),
        # Episodes of any length, of one step at least.
        ((None, 1_000), None, 1_000, False),
        ((None, 1_000), None, 1_100, True),
    ],
)
def test_an_interval_that_never_comes_is_told(length, most_steps, interval, is_missed):
    def on_interval(self, iteration):
        pass

    methods = {"interval": interval, "on_interval": on_interval}
    own = callbacks_lib.CallbackList([type("Own", (train.Callback,), methods)()])
    most = run_length.RunLength(*length).most_iterations(most_steps)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        own.warn_of_missed(most, most_steps)
    text = r"callbacks\[0\].interval: got .*, so on_interval is never called"
    assert [bool(re.match(text, str(x.message))) for x in told] == [True] * is_missed


def test_a_run_tells_at_its_start_which_interval_never_comes(tmp_path):
    class Every(train.Callback):
        interval = 7

        def on_interval(self, iteration):
            self.stop()

    with pytest.warns(RuntimeWarning, match="got 7 iterations.*at most 2 iterations"):
        assert make_run(tmp_path, 2, callbacks=[Every()]).run().finished


@pytest.mark.slow
def test_a_finished_run_becomes_longer_with_more_iterations(whole, tmp_path, capsys):
    path = shutil.copytree(whole[0], tmp_path / "run")
    longer = make_run(path, num_iterations=9)
    result = longer.run()
    assert (result.finished, result.resumed_at, result.iteration) == (True, 6, 9)
    said = capsys.readouterr().err
    assert "num_iterations has grown from 6 to 9. Schedules that depend" in said
    assert iterations(path) == [0, 3, 5, 6, 9]
    begun = [
        x for x in run_files.read_rows(path / "diagnostics.jsonl") if "versions" in x
    ]
    assert [row.get("grown") for row in begun] == [None, {"num_iterations": [6, 9]}]
    straight = make_run(tmp_path / "straight", num_iterations=9)
    straight.run()
    for ours, theirs in zip(weights(longer), weights(straight), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    final = tf.saved_model.load(str(path / "final_policy"))
    assert int(final.get_train_step()) == 9


def test_a_callback_with_an_interval_is_called_before_anything_is_written(tmp_path):
    class Every(Diary):
        interval = 2

        def on_interval(self, iteration):
            self._add("interval", iteration)

    diary = Every()
    make_run(tmp_path, 5, callbacks=[diary], eval_interval=4, log_interval=4).run()
    seen = [event for event in diary.events if event[0] in ("interval", "log")]
    assert seen == [
        *[("log", 0), ("interval", 2), ("interval", 4), ("log", 4), ("log", 5)],
    ]
    Every.interval = 0
    with pytest.raises(ValueError, match=r"callbacks\[1\].interval: .* got 0"):
        make_run(tmp_path / "other", callbacks=[Diary(), diary])


@pytest.mark.slow
def test_a_run_is_interrupted_where_no_signal_reaches_it(tmp_path):
    is_over = []
    diary = Diary({("log", 3): lambda _: is_over.append(True)})
    run = make_run(tmp_path, callbacks=[diary], is_interrupted=lambda: bool(is_over))
    result = run.run()
    assert (result.iteration, result.finished, result.stopped_by) == (3, False, None)
    assert diary.events[-2:] == [("checkpoint", "ckpt-3"), ("end", 3, False)]
    assert make_run(tmp_path).run().finished
