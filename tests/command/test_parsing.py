"""Flags of the commands: their help, their values, and what wrong ones are told."""

import json
import os
import re
import resource
import subprocess
import sys

import pytest

from tests.forks import REPOSITORY, Forks
from tfrl.algorithms import presets, registry
from tfrl.command import config_files, train
from tfrl.environments import extras, suites
from tfrl.experiments import actors, single
from tfrl.train.runs import callbacks

NEEDS_DM_CONTROL = pytest.mark.skipif(
    not extras.is_installed("dm_control"), reason="needs tfrl[dm-control]"
)
# Runs the command or an example, and then prints which large modules are imported.
RUN = """
import runpy, sys
module = sys.argv.pop(1)
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
finally:
    print(*(name in sys.modules for name in ("tensorflow", "keras")))
"""
# Of commands that train.
RUN_FLAGS = (
    *("env", "logdir", "preset", "config", "initial_run", "num_environment_steps"),
    *(
        "overwrite",
        "continue",
        "evaluate_untrained",
        "film",
        "report",
        "portable",
        "quiet",
        "trust",
    ),
    *("track", "traceback"),
)
ACTORS_FLAGS = (
    *("num_actors=0", "num_shards=1", "num_learners=1", "evaluator", "launcher=local"),
    *("address", "schedule=free", *actors.ActorSettings.setting_fields()),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Gives the status, output and errors of a command that needs no TensorFlow."""
    folder = tmp_path_factory.mktemp("forks")
    script = folder / "script.py"
    script.write_text(RUN)
    # What every command imports.
    forks = Forks(folder, "from tfrl.command import train\n")

    def run_command(words, *arguments, imports="False False"):
        first, *rest = words.split()
        if not first.startswith("examples."):
            first, rest = "tfrl", [first, *rest]
        code, printed, errors = forks.run(str(script), first, *rest, *arguments)
        output, _, imported = printed.rstrip().rpartition("\n")
        assert imported == imports
        return code, output, errors

    yield run_command
    forks.close()


def rows_of(text):
    return dict(re.findall(r"^  (--\S+(?: [^ ]+)*)  +(\S.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("name", registry.CLASSES)
def test_help_lists_every_flag_and_setting_with_default_and_meaning(run, name):
    code, output, errors = run(f"train {name} --help")
    assert (code, errors) == (0, "")
    kind = registry.find(name)
    listed, settings = output.split("\n\nSettings, ")
    has_actors = name in actors.OF_REPLAY + actors.OF_QUEUE
    names = [*RUN_FLAGS[:-1], *ACTORS_FLAGS * has_actors, RUN_FLAGS[-1]]
    if kind.is_offline:
        names.remove("num_environment_steps")
    # In this order.
    assert [*rows_of(listed.partition("\nFlags:\n")[2])] == [f"--{x}" for x in names]
    assert settings.startswith(f"{name} for {kind.environment_name}:\n")
    options = {k: x.default for k, x in suites.options().items()}
    assert options.keys() >= {"action_repeat", "emulator", "grid_observations"}
    shown = {**kind().settings, **options}
    assert [*rows_of(settings)] == [f"--{key}={x}".strip() for key, x in shown.items()]
    assert max(map(len, output.splitlines())) <= 88


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("play", ["policy", "num_episodes=20", "video", "video_episodes=1", "seed"]),
        ("evaluate", ["num_episodes=20", "max_steps=100000", "sampled", "json"]),
        (
            "record",
            ["num_episodes=100", "format=tfrl", "output", "overwrite", "replay"],
        ),
        ("report", ["output"]),
        ("compare", ["out", "metric=evaluation_return", "normalize"]),
        ("list", []),
        ("completion", []),
        ("sweep ppo", ["seeds=0..4", "processes", "overwrite", "preset"]),
        ("tune ppo", ["trials=64", "best=3", "search", "sampler=TPESampler"]),
    ],
)
def test_help_of_other_commands(run, words, expected):
    code, output, errors = run(words, "--help")
    assert (code, errors) == (0, "")
    rows = rows_of(output.partition("\nFlags:\n")[2])
    found = {re.sub(r"processes=\d+", "processes", name) for name in rows}
    assert found >= {f"--{name}" for name in [*expected, "traceback"]}
    assert max(map(len, output.splitlines())) <= 88


@pytest.mark.parametrize(
    "words", [["train", "sac", "--help"], ["train", "sac", "--gama=1"], ["list"]]
)
def test_help_and_a_typing_error_take_little_time(words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Only so as to find what is imported, which takes most of the time.
    command = [sys.executable, "-X", "importtime", "-m", "tfrl", *words]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    imported = re.findall(r"\| +(\w+)$", result.stderr, re.MULTILINE)
    assert "absl" in imported
    large = {"tensorflow", "keras", "gymnasium", "matplotlib", "tqdm", "ml_collections"}
    assert not large & {*imported}
    # About 0.7 s; a busy host takes longer.
    assert after.ru_utime - before.ru_utime < 3


def begin_program(monkeypatch, variables):
    """Sets up threads as a program does that is started with some variables."""
    threads = single.threads
    monkeypatch.setattr(threads, "_chosen_here", set())
    for name in threads._FOR_SMALL_NETWORKS:
        monkeypatch.setenv(name, "")  # So that it is restored later.
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    threads.set_up()


@pytest.mark.parametrize(
    ("layers", "given", "expected"),
    [
        ((), "", "0"),
        (((8, 3, 1),), "", "1"),
        (((8, 3, 1),), "by the user", "0"),
        (((8, 3, 1),), "portable", "0"),
    ],
)
def test_convolutions_take_onednns_kernels(monkeypatch, layers, given, expected):
    variable = single.threads.KERNELS
    begin_program(monkeypatch, {variable: "0"} if given == "by the user" else {})
    monkeypatch.setenv("TFRL_PORTABLE", "1" if given == "portable" else "0")
    monkeypatch.setattr(single.quiet, "quieten_tensorflow", lambda: None)
    single.prepare_kernels(registry.find("ddqn")(conv_layer_params=layers))
    assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == expected


@pytest.mark.parametrize(
    ("name", "settings", "given", "expected"),
    [
        ("sac", {}, "", "1"),
        ("sac", {"critic_fc_layer_params": (256, 256)}, "", "0"),
        ("sac", {"critic_fc_layer_params": (256, 256)}, "by the user", "1"),
        ("sac", {"critic_fc_layer_params": (256, 256)}, "portable", "1"),
        ("td3", {"fc_layer_params": (64, 1_000, 63)}, "", "0"),
        ("td3", {"fc_layer_params": (1_000,)}, "", "1"),
        ("ppo", {"minibatch_size": 1_024}, "", "0"),
        ("ppo", {"minibatch_size": 512}, "", "1"),
        ("ddqn", {"conv_layer_params": ((8, 3, 1),)}, "", "0"),
        ("mrq", {}, "", "0"),
        ("mrq", {"hidden_size": 64}, "", "1"),
        ("dreamer", {}, "", "0"),
        ("lin_ucb", {}, "", "1"),
    ],
)
def test_large_layers_take_all_processors(monkeypatch, name, settings, given, expected):
    variable = single.threads.INSIDE_OPERATIONS
    begin_program(monkeypatch, {variable: "1"} if given == "by the user" else {})
    monkeypatch.setenv("TFRL_PORTABLE", "1" if given == "portable" else "0")
    single.prepare_threads(registry.find(name)(**settings))
    assert os.environ[variable] == expected


@pytest.mark.parametrize("share", [None, 3])
def test_child_processes_choose_what_this_one_has_chosen(monkeypatch, share):
    threads = single.threads
    begin_program(monkeypatch, {threads.KERNELS: "0"})
    threads.choose(threads.KERNELS, "1")
    threads.choose(threads.INSIDE_OPERATIONS, "0")
    threads.hand_down(share)
    assert os.environ[threads.KERNELS] == "0"  # By the user.
    assert "TF_NUM_INTEROP_THREADS" not in os.environ
    assert os.environ.get(threads.INSIDE_OPERATIONS) == (share and str(share))


def recipe_by(name, *words):
    """Returns the recipe of the run that some flags describe."""
    kind = registry.find(name)
    given = train.define_flags(kind)
    train.add_actor_flags(given, name)
    given(["tfrl", *words])
    return train.recipe_of(kind, given)


def test_values_of_flags_have_the_types_of_their_settings():
    recipe = recipe_by(
        "ddqn",
        *("--final_learning_rate=None", "--fc_layer_params=8,16", "--nojit_compile"),
        *("--conv_layer_params=((8, 3, 1),)", "--gamma=1", "--seed=3", "--device=None"),
    )
    made = recipe.make()
    assert made.final_learning_rate is None
    assert made.fc_layer_params == (8, 16)
    assert made.conv_layer_params == ((8, 3, 1),)
    assert (made.gamma, type(made.gamma)) == (1.0, float)
    assert (made.jit_compile, made.seed, made.device) == (False, 3, "None")
    assert recipe_by("ddqn", "--fc_layer_params=").settings["fc_layer_params"] == ()


@pytest.mark.parametrize("preset", presets.every(), ids=lambda preset: preset.name)
def test_each_preset_is_taken_by_its_name(preset):
    recipe = recipe_by(preset.algorithm, f"--preset={preset.name}")
    found = {name: recipe.settings[name] for name in preset.settings}
    given = json.loads(json.dumps(preset.settings))
    assert json.loads(json.dumps(found)) == given


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("configs/*.*")), ids=str)
def test_each_file_of_configs_is_read_and_its_algorithm_built(path):
    name = path.name.partition("_")[0]
    recipe = recipe_by(name, f"--config={path}")
    read = config_files.read(str(path), registry.find(name), trusts=True)
    assert recipe.environment == read.environment != ""
    assert json.dumps(read.settings) == json.dumps(recipe.settings)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.py", "config = {'gamma': 0.5}", "has no function get_config, expected one"),
        ("b.py", "def get_config():\n    return", "got a NoneType from get_config()"),
        ("c.json", '{"own_parts": "network=net"}', "program's own, network=net, exp"),
    ],
)
def test_a_file_that_would_be_used_in_part_is_refused(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        config_files.read(str(path), registry.find("dqn"), trusts=True)


def test_a_runs_own_config_and_a_python_file_give_the_same_run(tmp_path):
    first = recipe_by("ppo", "--gamma=0.5", "--env=Acrobot-v1")
    own = tmp_path / "config.json"
    longer = first.changed(num_environment_steps=500)
    own.write_text(json.dumps(longer.to_json()))
    second = recipe_by("ppo", f"--config={own}")
    assert second == longer
    python = tmp_path / "mine.py"
    python.write_text(f"def get_config():\n    return {first.settings!r}\n")
    third = recipe_by("ppo", f"--config={python}", "--gamma=0.25")
    assert third.settings == {**first.settings, "gamma": 0.25}
    assert third.environment == "CartPole-v1"


def test_the_table_of_algorithms_in_the_readme_has_all():
    text = (REPOSITORY / "README.md").read_text()
    missing = [x for x in registry.CLASSES if not re.search(rf"\btrain {x}\b", text)]
    assert missing == []


def test_a_reader_may_close_the_pipe_before_the_help_has_ended():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        process = subprocess.run(
            [sys.executable, "-m", "tfrl", "train", "dqn", "--help"],
            cwd=REPOSITORY,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writing)
    assert (process.returncode, process.stderr) == (0, "")


def test_help_of_an_example_begins_with_its_docstring(run):
    _, output, _ = run("examples.train_dqn", "-h")
    assert output.startswith("Trains DQN on an environment with one discrete action.\n")
    assert "Settings, dqn for CartPole-v1:" in output


def test_help_shows_the_settings_for_the_environment(run):
    _, output, errors = run("train c51 -h", "--env=Acrobot-v1", "--gamma=0.5")
    rows = rows_of(output.partition("\nSettings, c51 for Acrobot-v1:\n")[2])
    assert rows["--gamma=0.5"] == "Discount per step."
    assert any(name.startswith("--num_atoms=") for name in rows)
    assert errors == ""


def test_warnings_are_lines_without_the_source(tmp_path):
    script = tmp_path / "warns.py"
    script.write_text(
        "import gymnasium, warnings\n"
        "from tfrl.command import parsing, program\n"
        "def main():\n"
        "    warnings.warn('a:\\nb')\n"
        "    gymnasium.logger.warn('coloured')\n"
        "program.start(parsing.new(), [], main, None)\n"
    )
    result = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert result.stderr == "warning: a: b\nwarning: coloured\n"


def test_settings_made_for_the_environment_are_named_unless_quiet(run):
    words = ("train tqc", "--env=FetchReach-v4", "--seed=-1")
    _, _, errors = run(*words)
    assert errors.startswith("TQC on FetchReach-v4: settings '")
    _, _, errors = run(*words, "--quiet")
    assert errors.startswith("error: seed: ")


def test_a_file_of_json_holds_a_row_of_settings(run, tmp_path):
    row = {
        "name": "tuned",
        "algorithm": "ddqn",
        "environment": "Acrobot-v1",
        "source": "here",
        "settings": {"gamma": 0.5, "batch_size": 7},
    }
    path = tmp_path / "best.json"
    path.write_text(json.dumps(row))
    _, output, _ = run("train ddqn", f"--config={path}", "--help")
    for shown in ("gamma=0.5", "batch_size=7"):
        assert f"--{shown} " in output
    assert "\nSettings, ddqn for Acrobot-v1:\n" in output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"gama": 1}', "expected settings of 'ddqn'; did you mean gamma?"),
        ("[1]", "got a list in"),
        ("{", "give another file of settings"),
        ('{"algorithm": "ppo"}', "settings of 'ppo', expected some of 'ddqn'"),
        ('{"gamma": 2}', "gamma: expected a number in [0, 1], got 2.0; set --gamma."),
        ('{"gamma": "high"}', "gamma: expected a number"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(run, tmp_path, content, message):
    path = tmp_path / "mine.json"
    path.write_text(content)
    code, _, errors = run("train ddqn", f"--config={path}")
    assert (code, errors[:7]) == (2, "error: ")
    assert message in errors


@pytest.mark.parametrize(
    ("module", "argument", "message"),
    [
        ("train dqn", "--sed=3", "--sed: unknown flag; did you mean --seed?"),
        ("train ppo", "Acrobot-v1", "expected flags only; write --env=Acrobot-v1."),
        ("train ppo", "--n_timesteps=9", "did you mean --num_environment_steps?"),
        ("play", "--logdir=x", "--logdir: unknown flag; give the folder without a fla"),
        ("play", "one two", "folder: got one two, expected the folder of one run."),
        ("sweep dqn", "--seeds=0-2", "seeds: got '0-2', expected different numbers; "),
        ("train bc", "--env=Pendulum-v1", "data: got 'logs/recordings/Pendulum-v1/*.t"),
        (
            "train dqn",
            "--overwite",
            "--overwite: unknown flag; did you mean --overwrite?",
        ),
        ("sweep ddqn", "--sedes=3", "did you mean --seeds?"),
        ("play", "--num_episode=3", "did you mean --num_episodes?"),
        ("play", "--processes", "--processes: unknown flag\n"),
        ("train dqn", "--config.gamma=1", "did you mean --gamma?"),
        ("train dqn", "--gama=1", "did you mean --gamma?"),
        ("train dqn", "--fc_layer_params=(64", "expected a tuple such as (64, 64), go"),
        ("train dqn", "--fc_layer_params=a", "expected a tuple such as (64, 64), got"),
        ("train dqn", "--final_learning_rate=x", "expected a number or None, got 'x'"),
        ("train dqn", "--preset=ppo", "settings of 'ppo', expected a preset of 'dqn'"),
        ("train ppo", "--preset=ddqn", "settings of 'ddqn', expected a preset of 'ppo"),
        ("train ppo", "--preset=ddq", "preset: got 'ddq', expected one of "),
        ("train dqn", "--logdir=x --initial_run=./x --overwrite", "which is the folde"),
        ("train dqn", "--track=comet", "--track: expected one of wandb, mlflow, got "),
        (
            "train c51",
            "--num_actors=2",
            "--num_actors: unknown flag; did you mean --nu",
        ),
        ("train bc", "--num_environment_steps=7", "did you mean --num_iterations?"),
        ("train dqn", "--config=configs/sac_walker.py", "expected settings of 'dqn'; "),
        ("tune ddqn", "--trails=3", "did you mean --trials?"),
        (
            "train reinforce",
            "--use_baselin",
            "did you mean --use_baseline?",
        ),
        (
            "train dqn",
            "--num_iteration=1",
            "did you mean --num_iterations?",
        ),
        ("train dqn", "--xyzzyx=1", "error: --xyzzyx: unknown flag\n"),
        *(
            ("train ppo", f"--{theirs}=1", f"unknown flag; did you mean --{ours}?")
            for theirs, ours in (
                ("total_timesteps", "num_environment_steps"),
                ("total-timesteps", "num_environment_steps"),
                ("learning-rate", "learning_rate"),
                ("enviroment", "env"),
                ("env-id", "env"),
                ("gym-id", "env"),
                ("num-envs", "num_envs"),
                ("n-steps", "collect_steps_per_iteration"),
                ("gae-lambda", "lambda_value"),
                ("lr", "learning_rate"),
            )
        ),
        ("train pqn", "--gae-lambda=1", "did you mean --lambda_value?"),
        ("play", "--total_timesteps=1", "error: --total_timesteps: unknown flag\n"),
        ("train dqn", "--seed=three", "--seed: expected an integer, got 'three'; wri"),
        ("train dqn", "--gamma=None", "--gamma: expected a number, got"),
        ("train dqn", "--film=7", "--film: expected true or false, got '7'; write --f"),
        ("train dqn", "--final_epsilon=2.5", "final_epsilon: expected a number"),
        ("examples.train_dqn_service", "--batch_size=50001", "at most replay_capacity"),
        (
            "examples.train_reinforce_service",
            "--collect_episodes_per_iteration=2001",
            "collect_episodes_per_iteration: expected at most replay_capacity, 2000",
        ),
        ("train pqn", "--env=ALE/Pongg-v5", "got 'ALE/Pongg-v5', expected a name that"),
        ("train dqn", "--env=Pongg-v4", "got 'Pongg-v4', expected a name that is"),
        ("sweep ddqn", "--processes=0", "--processes: expected a positive integer"),
        ("train dqn", "--config=nowhere.py", "got 'nowhere.py', where there is no"),
        (
            "train dqn",
            "--config=configs/ddqn_smal.py",
            "did you mean configs/ddqn_small.py?",
        ),
        ("train dqn", "--env=CartPol-v1", "did you mean CartPole-v1 or "),
        ("train dqn", "--env=nowhere:Foo-v0", "No module named 'nowhere'"),
        ("train dqn", "--env=Pendulum-v1", "whose actions are continuous, but DQN"),
        ("train sac", "--env=FrozenLake-v1", "whose actions are discrete, but SAC"),
        (
            "train dqn",
            "seed=3",
            "got 'seed=3', expected flags only; write --name=value",
        ),
        ("train dqn", "--seed=-1", "seed: expected an integer in [0, 46116860184273"),
        ("play", "/nowhere", "got '/nowhere', which does not exist, expected the f"),
    ],
)
def test_a_wrong_flag_is_told_at_once_with_the_near_one(run, module, argument, message):
    code, output, errors = run(module, *argument.split())
    assert (code, output) == (2, "")
    assert message in errors
    assert re.search("^error: ", errors, re.MULTILINE)
    assert errors.splitlines()[-1].endswith("--help lists the flags)")


@pytest.mark.slow
@NEEDS_DM_CONTROL
@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            "cartpole-balanse",
            "task_name: got ('cartpole', 'balanse'), expected a task of the suite; ",
        ),
        ("cartpol-balance", "domain_name: got ('cartpol'"),
    ],
)
def test_a_wrong_task_is_told_after_tensorflow_is_imported(run, task, message):
    # TensorFlow comes before dm_control, which knows the tasks.
    code, output, errors = run(
        "train sac", f"--env=dm_control/{task}", imports="True True"
    )
    assert (code, output) == (2, "")
    settings, error, *_ = errors.splitlines()
    assert settings.startswith("SAC on dm_control/")
    assert error.startswith(f"error: {message}")


def test_a_length_in_steps_and_no_environment_is_about_the_environments(run):
    _, _, errors = run("train dqn", "--num_environment_steps=9", "--num_envs=0")
    assert "\nerror: num_envs: expected an integer in [1, " in errors


def test_the_end_of_a_run_without_updates_is_printed(tmp_path, capsys):
    untrained = callbacks.RunResult(0, True, None, None, 9.25, 0.0)
    train.report(untrained, tmp_path)
    assert capsys.readouterr().out.startswith(
        "Finished 0 iterations. Mean return of the last evaluation: 9.2.\n"
    )
    trained = callbacks.RunResult(
        1_000, True, None, 30.0, 20.0, 10.0, environment_steps_per_second=50.0
    )
    train.report(trained, tmp_path)
    assert capsys.readouterr().out.startswith(
        "Finished 1,000 iterations, 50 steps a second. Mean return of the last "
        "evaluation: 20.0, of the best: 30.0.\n"
    )
