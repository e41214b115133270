import csv
import dataclasses
import json
import os
import pathlib
import re
import shlex

import imageio.v3 as iio
import numpy as np
import pytest
import tensorflow as tf

from benchmarks import (
    score_curves,
    score_entries,
    score_pictures,
    score_table,
    scores,
)
from tfrl.algorithms import registry
from tfrl.command import train as train_command

# The defaults of the settings that the rows of the table were trained with.
DEFAULTS = pathlib.Path(__file__).with_name("recorded_defaults.json")
SAC = next(entry for entry in scores.ENTRIES if entry.name == "sac_sac")


def row_of(run, value, **fields):
    return {
        "agent": run.entry.agent,
        "environment": "Pendulum-v1",
        "preset": run.entry.preset,
        "seed": str(run.seed),
        "steps": "20000",
        "return": str(value),
        "episodes": "1000",
        "seconds": "60",
        "config_hash": run.entry.hash(),
        "commit": "1234567",
        "processor": "A processor",
        "processor_seconds": "",
        "versions": "python 3.11.7",
        "checksum": "abc",
        "again": "",
        "resumed": "no",
        **fields,
    }


def test_only_runs_without_a_row_of_their_configuration_are_missing():
    rows = [row_of(scores.Run(SAC, seed), -150) for seed in (0, 2)]
    rows += [row_of(scores.Run(SAC, 1), -900, config_hash="of another configuration")]
    seeds = [run.seed for run in scores.missing([SAC], rows)]
    assert seeds == [1, *range(3, SAC.num_seeds)]


def test_a_run_whose_row_says_again_is_missing_and_its_old_outputs_go(tmp_path):
    rows = [row_of(scores.Run(SAC, 0), -150), row_of(scores.Run(SAC, 1), -150)]
    rows[1]["again"] = "no commit"
    first, *_ = scores.missing([SAC], rows)
    assert (first.seed, first.is_again) == (1, True)
    run = dataclasses.replace(first, logs=tmp_path)
    run.folder.mkdir()
    (run.folder / "metrics.csv").touch()
    run.remove_outputs_of_its_row()
    assert (run.folder / "metrics.csv").exists()  # Interrupted: it goes on.
    (run.folder / "finished.json").touch()
    run.remove_outputs_of_its_row()
    assert not run.folder.exists()


def test_every_row_has_the_hash_of_its_configuration():
    """Without it, the command would train rows again whose settings are the same."""
    for row in scores.read_rows():
        name = row["agent"], row["environment"], row["seed"], row["config_hash"]
        assert sum(entry.has(row) for entry in scores.ENTRIES) == 1, name


def test_the_queue_has_every_entry_once_and_each_has_its_own_files():
    assert sorted(scores.QUEUE, key=repr) == sorted(scores.ENTRIES, key=repr)
    assert len({entry.name for entry in scores.ENTRIES}) == len(scores.ENTRIES)


def parts_of(tmp_path, *rows):
    """What a row says of a run with this log."""
    run = scores.Run(SAC, 0, tmp_path)
    run.folder.mkdir(exist_ok=True)
    log = "".join(json.dumps({"iteration": 1, **row}) + "\n" for row in rows)
    (run.folder / "diagnostics.jsonl").write_text(log)
    return run.parts()


# The rows of three processes; each begins with the versions.
FIRST = ({"versions": {}, "processor_seconds": 1.0}, {"processor_seconds": 30.0})
SECOND = {"versions": {}, "resumed_without": [], "processor_seconds": 32.0}
THIRD = {
    "versions": {},
    "resumed_without": ["replay_buffer", "environment"],
    "processor_seconds": 50.0,
}


def test_processor_time_is_added_up_over_the_parts_of_a_run(tmp_path):
    assert parts_of(tmp_path, *FIRST).seconds(37.0) == 37.0
    assert parts_of(tmp_path, *FIRST, SECOND).seconds(9.0) == 39.0
    assert parts_of(tmp_path, *FIRST, SECOND, THIRD).seconds(25.0) == 57.0


def test_a_process_that_finds_a_finished_run_does_not_count_for_all_of_it(tmp_path):
    """The command was killed between the end of the run and its row."""
    assert parts_of(tmp_path, *FIRST).seconds(5.0) == 30.0
    assert parts_of(tmp_path, *FIRST, SECOND, THIRD).seconds(5.0) == 50.0


def test_a_row_says_whether_its_run_was_resumed_and_what_was_lost(tmp_path):
    assert parts_of(tmp_path, *FIRST).text() == "no"
    assert parts_of(tmp_path, *FIRST, SECOND).text() == "yes"
    lost = parts_of(tmp_path, *FIRST, SECOND, THIRD).text()
    assert lost == "without environment and replay_buffer"


def test_a_row_names_the_versions_that_its_numbers_depend_on():
    common = scores.versions("Classic control")
    assert f"numpy {np.__version__}" in common
    assert f"tensorflow {tf.__version__}" in common
    assert scores.versions("MuJoCo").startswith(f"{common} mujoco ")
    assert set(scores._PACKAGES_OF) <= set(score_entries.FAMILIES)


@pytest.mark.parametrize(
    ("now", "is_good"),
    [
        ({}, True),
        ({"return": "-151.0"}, False),
        ({"checksum": "another"}, False),
        ({"processor": "Another", "return": "-155.0", "checksum": "another"}, True),
        ({"processor": "Another", "checksum": "another"}, True),
        ({"versions": "python 3.13.0", "return": "-185.0"}, False),
    ],
)
def test_a_verified_run_is_the_same_here_and_near_its_row_elsewhere(now, is_good):
    """The standard deviation of the three is 10."""
    runs = [scores.Run(SAC, seed) for seed in range(3)]
    values = (-140, -150, -160)
    rows = [row_of(run, value) for run, value in zip(runs, values, strict=True)]
    found, text = scores.verdict(rows[1], {**rows[1], **now}, rows)
    assert found is is_good
    assert text.startswith("SAC on Pendulum-v1, seed 1: -150 in the table")


def test_the_same_return_is_verified_where_a_row_does_not_say_where_it_ran():
    rows = [row_of(scores.Run(SAC, seed), -10 * seed) for seed in range(3)]
    old = {**rows[0], "versions": "", "checksum": ""}
    found, text = scores.verdict(old, rows[0], rows)
    assert found
    assert text.endswith("; the returns are the same.")


def test_a_run_that_was_resumed_without_its_state_is_not_verified():
    row = row_of(scores.Run(SAC, 0), -150)
    lossy = {**row, "resumed": "without environment"}
    for pair, which in (((lossy, row), "the row's run"), ((row, lossy), "the run")):
        found, text = scores.verdict(*pair, [row])
        assert not found
        assert f"cannot be verified; {which} was resumed without environment" in text


def test_such_a_row_is_not_trained_again_in_vain(monkeypatch, capsys):
    rows = [row_of(scores.Run(SAC, 0), -150, resumed="without environment")]
    trained = []
    monkeypatch.setattr(scores, "train", lambda runs, *_: trained.extend(runs))
    assert scores.verify("SAC", rows, {}, 1) == 1
    assert not trained
    assert "SAC on Pendulum-v1, seed 0: cannot be verified" in capsys.readouterr().out


def test_other_weights_of_an_old_row_may_be_those_of_a_resumed_run():
    row = row_of(scores.Run(SAC, 0), -150, resumed="")
    found, text = scores.verdict(row, {**row, "checksum": "another"}, [row])
    assert not found
    assert "The row does not say whether its run was resumed" in text


def test_another_draw_cannot_be_compared_with_a_single_run():
    row = row_of(scores.Run(SAC, 0), -150)
    elsewhere = {**row, "processor": "another", "return": "-151"}
    found, text = scores.verdict(row, elsewhere, [row])
    assert not found
    assert text.endswith("; the row's one run has no deviation to compare by.")


def test_the_page_says_which_settings_were_chosen_on_the_seeds_of_the_row():
    seen = dataclasses.replace(SAC, note="chosen on seeds 0 to 2")
    assert score_table.notes([SAC, seen])[-1:] == [
        "- SAC on Pendulum-v1: chosen on seeds 0 to 2."
    ]
    assert "Exceptions" not in " ".join(score_table.notes([SAC]))
    page = (score_table.DOCS / "scores.md").read_text()
    assert "\n".join(score_table.notes(scores.ENTRIES)) in page


def test_what_is_to_be_verified_needs_rows():
    with pytest.raises(ValueError, match="expected an entry, or ENTRY/SEED, with rows"):
        scores.verify("sac_sac/77", [], {}, 1)


def curve(*returns):
    steps = 10 * np.arange(len(returns))
    return score_curves.Curve(steps, np.array(returns, float))


def test_a_run_whose_evaluations_are_cut_short_is_named():
    rows = [row_of(scores.Run(SAC, seed), -20) for seed in range(2)]
    runs = score_pictures.Runs("SAC", rows, [curve(-100, -20), curve(-100)], None)
    with pytest.raises(ValueError, match="seed 1: got 1 evaluations, expected 2, as"):
        runs.stack()


def test_a_hash_depends_on_every_setting_but_the_seed_and_the_device():
    changed = dataclasses.replace(SAC, changes={"gamma": 0.9})
    assert changed.hash() != SAC.hash()
    for changes in ({"seed": 7}, {"device": "GPU:0"}):
        assert dataclasses.replace(SAC, changes=changes).hash() == SAC.hash()


def test_rows_come_back_in_the_order_of_entries_and_seeds(tmp_path):
    runs = [scores.Run(entry, seed) for entry in scores.ENTRIES for seed in (0, 10)]
    rows = [row_of(run, 1.5) for run in runs]
    scores.write_rows(rows[::-1], tmp_path / "scores.csv")
    assert scores.read_rows(tmp_path / "scores.csv") == rows


def test_the_page_has_the_mean_its_interval_and_the_interquartile_mean(tmp_path):
    """Mean and deviation of five are -110 and 38.08; t of 4 degrees is 2.776.

    t is 4.604 for 99 %, and the episodes of rl-zoo3's run deviate by 88.71.
    """
    values = (-150, -160, -100, -60, -80)
    rows = [row_of(scores.Run(SAC, seed), v) for seed, v in enumerate(values)]
    rows[0]["steps"], rows[1]["steps"] = "19000", "20990"
    rows[3] |= {"commit": "abcdefg"}
    rows[4] |= {"commit": "", "processor": ""}
    score_table.write([SAC], rows, {}, tmp_path / "logs", tmp_path)
    text, _, _ = (tmp_path / "scores.md").read_text().partition("## Beside")
    lines = [line for line in text.splitlines() if line.startswith("| SAC")]
    first, *others = ([x.strip() for x in line.strip("|").split("|")] for line in lines)
    assert [other[:2] for other in others] == [first[:2]] * 2
    cells = [*first, *others[0][2:], *others[1][2:]]
    assert cells[:4] == ["SAC", "Pendulum-v1", "19,998", "5"]
    reach = 2.776 * np.std(values, ddof=1) / np.sqrt(5) + 0.5  # Of whole numbers.
    expected = f"-110.0 ({-110 - reach:.1f}, {-110 + reach:.1f}; seeds only)"
    assert cells[4:7] == [expected, "-110.0", "-160.0"]
    by_runs = 4.604 * np.std(values, ddof=1) * np.sqrt(1 / 5 + 1)
    by_starts = 2.576 * 88.71 * np.sqrt(1 / 750 + 1 / 1000)
    reach, middle = np.hypot(by_runs, by_starts) + 0.5, -110 + 156.995
    level = f"level ({middle - reach:.0f} to +{middle + reach:.0f}; 5 and 1 runs)"
    assert cells[7:10] == ["-157 (rl-zoo3, one run)", level, ""]
    assert cells[10:] == ["60", "1234567, abcdefg", "A processor"]
    assert "Of 1 rows, 0 are ahead, 1 level and 0 behind" in text


def test_a_curve_is_a_runs_evaluations_and_comes_back_from_the_file(tmp_path):
    with open(tmp_path / "metrics.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["environment_steps", "evaluation_return"])
        writer.writerows([[0, -1000], [5, ""], [10, -200.5]])
    found = score_curves.of_run(tmp_path)
    assert found.steps.tolist() == [0, 10]
    assert found.returns.tolist() == [-1000, -200.5]
    assert found.finals.size == 0
    found = dataclasses.replace(found, finals=np.array([-150.25, -149]))
    keys = [scores.Run(SAC, seed).key() for seed in (1, 0)]
    path = tmp_path / "curves.csv"
    score_curves.write(dict.fromkeys(keys, found), path)
    read = score_curves.read(path)
    assert list(read) == sorted(keys)
    for each in read.values():
        np.testing.assert_array_equal(each.steps, found.steps)
        np.testing.assert_array_equal(each.returns, found.returns)
        np.testing.assert_array_equal(each.finals, found.finals)
    assert score_curves.read(tmp_path / "none.csv") == {}


def test_an_environments_picture_has_the_curves_and_a_dot_for_each_run():
    """The interquartile mean of four is that of the middle two."""
    rows = [row_of(scores.Run(SAC, s), r) for s, r in enumerate((-4, -2, -1, -9))]
    curves = [curve(-100, r) for r in (-4, -2, -1, -9)]
    entries = [
        score_pictures.Runs("SAC", rows, curves, -2.5),
        score_pictures.Runs("Old", rows[:1], (), None),
    ]
    picture = score_pictures.draw_environment("Pendulum-v1", entries)
    over_steps, over_seconds, dots = picture.axes
    (line,) = over_steps.lines
    np.testing.assert_allclose(line.get_xydata(), [[0, -100], [10, -3]])
    (line,) = over_seconds.lines
    np.testing.assert_allclose(line.get_xydata(), [[0, -100], [60, -3]])
    drawn = [c.get_offsets()[:, 0].tolist() for c in dots.collections]
    assert drawn == [[-4, -2, -1, -9], [-4]]
    (reference,) = dots.lines
    assert list(reference.get_xdata()) == [-2.5, -2.5]


def test_the_page_shows_each_environment_once_and_old_pictures(tmp_path):
    other = next(e for e in scores.ENTRIES if e.name == "td3_td3")
    runs = [scores.Run(entry, seed) for entry in (SAC, other) for seed in range(2)]
    rows = [row_of(run, -200) for run in runs]
    curves = {run.key(): curve(-1000, -200) for run in runs[:2]}
    (tmp_path / "scores").mkdir()
    old = tmp_path / "scores" / f"{other.name}.png"
    replaced = tmp_path / "scores" / f"{SAC.name}.png"
    for picture in (old, replaced):
        picture.touch()
    frames = np.zeros([12, 240, 240, 3], np.uint8)
    film = SAC.folder(0, tmp_path) / "agent.mp4"
    film.parent.mkdir()
    iio.imwrite(film, frames, fps=30)
    score_table.write([SAC, other], rows, curves, tmp_path, tmp_path)
    page = (tmp_path / "scores.md").read_text()
    assert re.findall(r"^!\[.*", page, re.MULTILINE)[-3:] == [
        "![Returns on Pendulum-v1](scores/Pendulum-v1.png)",
        "![An episode of Pendulum-v1](scores/strip_Pendulum-v1.png)",
        f"![{other.agent} on Pendulum-v1](scores/{old.name})",
    ]
    assert not replaced.exists()
    strip = iio.imread(tmp_path / "scores" / "strip_Pendulum-v1.png")
    assert strip.shape == (120, 720, 3)


def test_an_entry_without_a_picture_of_its_own_has_the_environments(tmp_path):
    assert score_table.picture_of(SAC, "Pendulum-v1", tmp_path) == "Pendulum-v1.png"
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / f"{SAC.name}.png").touch()
    assert score_table.picture_of(SAC, "Pendulum-v1", tmp_path) == f"{SAC.name}.png"


def test_best_evaluations_stand_beside_published_ones_without_a_verdict():
    entry = next(e for e in scores.ENTRIES if e.name == "ppo_ppo_mujoco_ant-v5")
    runs = [scores.Run(entry, seed) for seed in range(2)]
    rows = [row_of(run, 0.0, steps="1000000") for run in runs]
    both = curve(1000, 1500, 2), curve(3, 2, 1900)
    curves = {run.key(): one for run, one in zip(runs, both, strict=True)}
    [_, line, _] = score_table.best_evaluations({entry: rows, SAC: []}, curves)
    reach = 12.706 * 200
    assert line == (
        f"| PPO | Ant-v5 | 2 | 3 | 1700.0 ({1700 - reach:.1f}, {1700 + reach:.1f}) "
        "| 3258.4 (Tianshou, 10 runs, best evaluations, v3) |"
    )
    rows = [row_of(scores.Run(SAC, 0), 0.0)]
    assert score_table.best_evaluations({SAC: rows}, {}) == []
    assert score_table.best_evaluations({entry: rows}, {}) == []


def test_the_starts_of_the_final_episodes_differ_from_seed_to_seed():
    """By more than the 1,000 episodes, whose environments have seeds in a row."""
    starts = [scores.Run(SAC, seed).seed_of_starts() for seed in range(5)]
    assert min(np.diff(starts)) > 1000
    old = [scores.Run(SAC, seed, has_own_starts=False) for seed in range(2)]
    assert [run.seed_of_starts() for run in old] == [starts[0]] * 2


def test_a_run_is_verified_from_the_starts_of_its_row(monkeypatch, tmp_path):
    rows = [row_of(scores.Run(SAC, seed), -150) for seed in range(2)]
    finals = dataclasses.replace(curve(-150), finals=np.array([-149.0, -151]))
    curves = {scores.Run(SAC, 0).key(): finals, scores.Run(SAC, 1).key(): curve(-150)}
    trained = []
    monkeypatch.setattr(scores, "train", lambda runs, *_: trained.extend(runs))
    assert scores.verify(SAC.name, rows, curves, 1) == 0
    assert [run.has_own_starts for run in trained] == [True, False]


def test_a_setting_counts_once_it_is_not_at_its_default():
    entry = next(entry for entry in scores.ENTRIES if entry.agent == "A2C")
    assert entry.settings()["lstm_size"] == 0
    same = dataclasses.replace(entry, changes={"lstm_size": 0})
    assert same.hash() == entry.hash()
    used = dataclasses.replace(entry, changes={"lstm_size": 8})
    assert used.hash() != entry.hash()


def test_the_defaults_that_rows_were_trained_with_are_unchanged():
    """A hash leaves settings at their defaults out, so a default must not change.

    Adding a setting, or removing one that had no effect, changes the file; run
    `record_defaults` then.
    """
    recorded = json.loads(DEFAULTS.read_text())
    now = json.loads(json.dumps(current_defaults()))
    for name, values in recorded.items():
        assert {field: now[name].get(field) for field in values} == values
    assert {name: values.keys() for name, values in recorded.items()} == {
        name: values.keys() for name, values in now.items()
    }


def current_defaults():
    """The defaults of the settings of all algorithms."""
    return {name: registry.find(name).defaults() for name in registry.CLASSES}


def record_defaults():
    """Writes the defaults to the file; only for new or removed settings."""
    DEFAULTS.write_text(json.dumps(current_defaults(), indent=1) + "\n")


def test_runs_and_their_evaluations_ignore_the_kernels_of_the_shell(monkeypatch):
    for name in (*scores._ONE_THREAD, "TF_ENABLE_ONEDNN_OPTS"):
        monkeypatch.setenv(name, "0")
    environments = []
    monkeypatch.setattr(
        scores.jobs, "run_all", lambda *_, **__: environments.append(dict(os.environ))
    )
    scores.train([], 1, lambda *_: None, lambda: False)
    (environment,) = environments
    assert "TF_ENABLE_ONEDNN_OPTS" not in environment
    assert {environment[name] for name in scores._ONE_THREAD} == {"1"}


def test_an_unknown_name_is_an_error(capsys):
    with pytest.raises(SystemExit):
        scores.main(["--only=Sarsa"])
    assert (
        "expected one of A2C, BC, BC on episodes, BC on replay, C51, CQL, CrossQ"
        in capsys.readouterr().err
    )


def test_a_shell_reads_the_page_s_commands_as_they_are_meant():
    page = (score_table.DOCS / "scores.md").read_text()
    commands = re.findall("^- .*: `(tfrl .*)`$", page, re.MULTILINE)
    assert len(commands) > 50
    for command in commands:
        assert shlex.join(shlex.split(command)) == command


@pytest.mark.parametrize(
    ("now", "is_good"), [({}, True), ({"checksum": "another"}, False)]
)
def test_a_portable_run_is_the_same_on_another_processor(now, is_good):
    row = {**row_of(scores.Run(SAC, 0), -150), "versions": "python 3.11.7 portable"}
    new = {**row, "processor": "Another", **now}
    found, text = scores.verdict(row, new, [row])
    assert found is is_good
    assert "the final weights and the return are" in text


def test_rows_name_portable_runs_and_only_portable_processes_verify_them(monkeypatch):
    monkeypatch.setenv("TFRL_PORTABLE", "1")
    versions = scores.versions("Classic control")
    assert versions.endswith(" portable")
    run = scores.Run(SAC, 0)
    row = {**row_of(run, -150), "versions": versions}
    monkeypatch.setenv("TFRL_PORTABLE", "0")
    with pytest.raises(ValueError, match=r"portable .* give --portable"):
        scores.verify(SAC.name, [row], {}, 1)


@pytest.mark.parametrize("entry", scores.ENTRIES, ids=lambda entry: entry.name)
def test_a_row_s_command_has_its_settings(entry):
    program, command, name, *flags = shlex.split(score_table.command(entry))
    assert (program, command) == ("tfrl", "train")
    kind = registry.find(name)
    given = train_command.define_flags(kind)
    given([command, *flags])
    made = train_command.recipe_of(kind, given)
    config = {"env": made.environment, "algorithm": name, **made.settings}
    assert json.dumps(config, sort_keys=True) == json.dumps(
        entry.settings(), sort_keys=True
    )


def test_the_page_says_how_recordings_are_made():
    (entry,) = scores.chosen("td3+bc_on_episodes_td3_bc_mujoco_hopper-v5")
    folder = entry.changes["data"].removesuffix("/episodes.tfrecord")
    assert score_table.recorded([entry]) == [
        "tfrl train sac --preset=sac_mujoco --env=Hopper-v5 --num_iterations=90000 "
        f"--logdir={folder}",
        f"tfrl record --num_episodes=100 {folder} --output={folder}/episodes.tfrecord",
    ]
    (other,) = scores.chosen("td3+bc_on_replay_td3_bc_mujoco_hopper-v5")
    trained, *records = score_table.recorded([entry, other])
    assert folder in trained
    assert [("--replay" in line, "--num_episodes" in line) for line in records] == [
        (True, False),
        (False, True),
    ]


def test_the_steps_of_agents_that_learn_from_recordings_are_updates():
    assert score_curves.steps_of({"environment_steps": "0", "train_steps": "7"}) == 7
    assert score_curves.steps_of({"environment_steps": "9", "train_steps": "7"}) == 9


def test_a_command_is_about_an_agent_an_environment_a_configuration_or_an_entry():
    names = {
        only: [entry.name for entry in scores.chosen(only)]
        for only in ("PPO", "Hopper-v5", "ppo_mujoco", "ppo_ppo_mujoco_hopper-v5")
    }
    (one,) = names["ppo_ppo_mujoco_hopper-v5"]
    assert all(one in found for found in names.values())
    assert {"Hopper-v5"} == {e.environment for e in scores.chosen("Hopper-v5")}
    with pytest.raises(ValueError, match="got 'Hoper-v5', expected one of A2C"):
        scores.chosen("Hoper-v5")
