"""The command and the examples as their users run them: as processes, with flags.

Most are forks of one process; see `tests.forks`. And most are slow: `tests/algorithms`,
`tests/command` and `tests/train` have fast tests of the code that the examples call.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import h5py
import imageio.v2 as imageio
import numpy as np
import pytest
import tensorflow as tf

from tests import listings
from tests.forks import ENVIRONMENT, REPOSITORY
from tfrl import datasets
from tfrl.train.runs import run_length, stopped_runs

# Without what takes long and no assertion is about.
QUICK = ("--jit_compile=False", "--nofilm", "--noevaluate_untrained")
SMALL_DQN = (
    "--num_iterations=60",
    "--initial_collect_steps=100",
    "--eval_interval=20",
    "--log_interval=10",
    "--checkpoint_interval=10",
    "--num_eval_episodes=2",
)
PLAIN_DQN = (*SMALL_DQN, "--jit_compile=False")

# For tests that look at a run's outputs alone.
SHORT_DQN = (
    "--num_iterations=8",
    "--initial_collect_steps=100",
    "--eval_interval=8",
    "--log_interval=8",
    "--checkpoint_interval=8",
    "--num_eval_episodes=2",
    "--fc_layer_params=(8,)",
    "--jit_compile=False",
)


def run_process(command, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "tfrl", *command.split(), *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=280,
    )


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / "examples").rglob("*.py")), ids=lambda path: path.stem
)
def test_every_example_has_names_and_arguments_that_exist(path):
    # To import an example defines its flags.
    assert listings.faults(path.read_text(), path, without=["examples"]) == []


def rows(logdir):
    with open(logdir / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A short DQN run, and what it printed."""
    logdir = tmp_path_factory.mktemp("dqn") / "run"
    process = run_process("train ddqn", f"--logdir={logdir}", *SMALL_DQN)
    assert process.returncode == 0, process.stderr
    return logdir, process.stdout, process.stderr


@pytest.mark.slow
def test_train_dqn_writes_all_its_outputs(trained):
    logdir, output, _ = trained
    assert {path.name for path in logdir.iterdir()} == {
        "agent.mp4",
        "checkpoints",
        "config.json",
        "diagnostics.jsonl",
        "final_policy",
        "finished.json",
        "learning_curve.png",
        "metrics.csv",
        "policy",
        "report.html",
        "tensorboard",
    }
    assert json.loads((logdir / "config.json").read_text())["env"] == "CartPole-v1"
    assert [row["iteration"] for row in rows(logdir)][-1] == "60"
    with imageio.get_reader(logdir / "agent.mp4") as reader:
        assert reader.get_data(0).shape == (400, 600, 3)
    assert "Finished 60 iterations" in output
    assert str(logdir) in output


@pytest.mark.slow
def test_a_stopped_run_stays_stopped_until_it_is_continued(trained, run, tmp_path):
    logdir = shutil.copytree(trained[0], tmp_path / "stopped")
    length = run_length.RunLength(60, None)
    (logdir / "finished.json").unlink()
    stopped_runs.mark(logdir, stopped_runs.Stop(length, 40, 50, "Patience: over"))
    arguments = ("train ddqn", f"--logdir={logdir}", *SMALL_DQN)
    code, output, errors = run(*arguments)
    assert (code, output) == (0, f"Outputs: {logdir}\n")
    assert "This run was stopped at iteration 40 by Patience: over" in errors
    code, _, errors = run(*arguments, "--continue")
    assert code == 0
    assert "This run is finished: 60 iterations done" in errors


@pytest.mark.slow
def test_nothing_of_tensorflow_comes_between_the_lines(trained):
    _, output, errors = trained
    assert "WARNING" not in output + errors
    assert "tensorflow" not in (output + errors).lower()


@pytest.mark.slow
def test_a_finished_run_says_so_and_leaves_its_outputs_alone(trained, run):
    logdir, _, _ = trained
    before = (logdir / "learning_curve.png").stat().st_mtime_ns
    # It may go on on another device.
    code, _, errors = run(
        "train ddqn", f"--logdir={logdir}", *SMALL_DQN, "--device=CPU:0"
    )
    assert code == 0
    assert "This run is finished: 60 iterations done" in errors
    assert (logdir / "learning_curve.png").stat().st_mtime_ns == before


@pytest.mark.slow
def test_changed_flags_are_an_error_that_names_the_field(trained, run):
    logdir, _, _ = trained
    before = (logdir / "metrics.csv").read_text()
    code, _, errors = run("train ddqn", f"--logdir={logdir}", *SMALL_DQN, "--gamma=0.5")
    assert code == 2
    assert "gamma: was 0.995, is 0.5" in errors
    assert "Traceback" not in errors
    assert (logdir / "metrics.csv").read_text() == before


@pytest.mark.slow
def test_a_run_may_go_on_that_began_before_there_were_some_settings(
    trained, run, tmp_path
):
    logdir = shutil.copytree(trained[0], tmp_path / "run")
    config = json.loads((logdir / "config.json").read_text())
    for name in ("dtype", "normalize_observations", "num_action_bins"):
        del config[name]
    (logdir / "config.json").write_text(json.dumps(config))
    arguments = ("train ddqn", f"--logdir={logdir}", *SMALL_DQN)
    code, _, errors = run(*arguments)
    assert code == 0, errors
    assert "This run is finished" in errors
    code, _, errors = run(*arguments, "--dtype=mixed_bfloat16")
    assert code == 2
    assert "dtype: was 'float32', is 'mixed_bfloat16'" in errors


@pytest.mark.slow
def test_a_folder_that_another_process_uses_is_an_error(trained, run):
    logdir, _, _ = trained
    script = (
        "import sys; from tfrl.system import directory_lock\n"
        "directory_lock.lock(sys.argv[1]); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(logdir)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        holder.stdout.readline()
        for module in ("train ddqn",):
            code, _, errors = run(module, f"--logdir={logdir}", *SMALL_DQN[:1])
            assert code == 2
            assert f"locked by process {holder.pid} on host" in errors
            assert "Traceback" not in errors


@pytest.mark.slow
def test_a_damaged_policy_is_an_error_and_the_run_writes_it_again(
    trained, run, tmp_path
):
    logdir = shutil.copytree(trained[0], tmp_path / "run")
    data = logdir / "policy" / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:10])
    code, _, errors = run("play", f"{logdir}", "--video=")
    assert code == 2
    assert f"the policy in '{logdir / 'policy'}' cannot be used" in errors
    code, _, errors = run("train ddqn", f"--logdir={logdir}", *SMALL_DQN)
    assert code == 0
    assert f"POLICY LOST: {logdir / 'policy'} is damaged" in errors
    code, output, _ = run("play", f"{logdir}", "--video=")
    assert code == 0
    assert "mean return" in output


@pytest.mark.slow
def test_play_prints_returns_limits_the_steps_of_an_episode_and_films(
    trained, run, tmp_path
):
    logdir, _, _ = trained
    video = tmp_path / "play.mp4"
    code, output, errors = run(
        "play",
        f"{logdir}",
        "--num_episodes=2",
        "--max_steps=5",
        f"--video={video}",
    )
    assert code == 0, errors
    assert "episode 2: return" in output
    assert "2 episodes of CartPole-v1: mean return 5.0" in output
    assert "max_steps: an evaluation ended at its limit of 5 steps" in errors
    with imageio.get_reader(video) as reader:
        assert np.std(reader.get_data(0)) > 0


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_last_checkpoint(trained, forks, tmp_path):
    whole, _, _ = trained
    logdir = tmp_path / "run"
    fork = forks.start("train ddqn", f"--logdir={logdir}", *PLAIN_DQN)
    fork.wait_for((logdir / "checkpoints" / "ckpt-20.index").exists)
    fork.end(signal.SIGKILL)
    code, _, errors = forks.run("train ddqn", f"--logdir={logdir}", *PLAIN_DQN)
    assert code == 0, errors
    if "This run is finished" not in errors:
        assert "Resumed at iteration" in errors
    iterations = [row["iteration"] for row in rows(logdir)]
    assert iterations == [row["iteration"] for row in rows(whole)]
    assert (logdir / "agent.mp4").exists()


@pytest.mark.slow
def test_an_interrupted_run_saves_itself_and_exits_with_130(forks, tmp_path):
    logdir = tmp_path / "run"
    arguments = (f"--logdir={logdir}", *SMALL_DQN[1:], *QUICK)
    arguments = (*arguments, "--num_iterations=1000000")
    fork = forks.start("train ddqn", *arguments)
    fork.wait_for((logdir / "checkpoints" / "ckpt-20.index").exists)
    code, _, errors = fork.end(signal.SIGINT)
    assert code == 130
    assert "Interrupted at iteration" in errors
    assert "Traceback" not in errors


# An environment and settings of one's own, as a page of the guide shows them.
OWN_CONFIG = """
import runpy

import gymnasium
import numpy as np


class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 9, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.position = max(0, self.position + 2 * action - 1)
        observation = np.array([self.position], np.float32)
        return observation, -0.1, self.position == 9, False, {}


gymnasium.register("Corridor-v0", entry_point=Corridor, max_episode_steps=50)


def get_config():
    config = runpy.run_path("configs/ddqn_small.py")["get_config"]()
    return {**config, "env": "Corridor-v0"}
"""


@pytest.mark.slow
def test_a_config_brings_an_environment_of_ones_own_for_prioritized_replay(
    run, tmp_path
):
    (tmp_path / "corridor.py").write_text(OWN_CONFIG)
    logdir = tmp_path / "run"
    code, output, errors = run(
        "train ddqn",
        f"--config={tmp_path / 'corridor.py'}",
        f"--logdir={logdir}",
        "--replay=prioritized",
        "--importance_exponent=0.5",
        *SHORT_DQN,
    )
    assert code == 0, errors
    assert "Finished 8 iterations" in output
    assert json.loads((logdir / "config.json").read_text())["env"] == "Corridor-v0"
    # It cannot be rendered.
    assert not (logdir / "agent.mp4").exists()
    saved = tf.train.load_checkpoint(tf.train.latest_checkpoint(logdir / "checkpoints"))
    assert any("_max_priority" in name for name in saved.get_variable_to_shape_map())


@pytest.mark.slow
def test_a_run_with_a_replay_server_goes_on(forks, tmp_path):
    logdir = tmp_path / "run"
    arguments = ("train_dqn_service", f"--logdir={logdir}", *SMALL_DQN, *QUICK)
    fork = forks.start(*arguments)
    fork.wait_for((logdir / "checkpoints" / "ckpt-20.index").exists)
    assert fork.end(signal.SIGINT).code == 130
    code, output, errors = forks.run(*arguments)
    assert code == 0, errors
    assert "Resumed at iteration" in errors
    assert "Finished 60 iterations" in output
    # The server's last two checkpoints of its table are complete.
    assert len(list((logdir / "checkpoints" / "replay").glob("*/DONE"))) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_run_tells_that_its_replay_server_has_died(forks, tmp_path):
    logdir = tmp_path / "run"
    fork = forks.start(
        "train_dqn_service",
        f"--logdir={logdir}",
        *SMALL_DQN[1:],
        *QUICK,
        "--num_iterations=9999",
        "--env=Pendulum-v1",
        "--num_action_bins=3",
    )
    fork.wait_for((logdir / "checkpoints" / "ckpt-20.index").exists)
    children = pathlib.Path(f"/proc/{fork.pid}/task").glob("*/children")
    servers = [int(pid) for path in children for pid in path.read_text().split()]
    for pid in servers:
        os.kill(pid, signal.SIGKILL)
    code, _, errors = fork.end()
    assert code == 2
    *_, error, hint = errors.splitlines()
    assert f"(process {servers[0]}), which this process had started, has died" in error
    assert "exit code -9: it was killed by SIGKILL" in error
    assert "Run this program again" in error
    assert hint.startswith("(--traceback")
    assert "Traceback" not in errors


@pytest.mark.slow
def test_train_dqn_takes_observations_of_several_parts(run, tmp_path):
    logdir = tmp_path / "run"
    code, output, errors = run(
        "train ddqn", f"--logdir={logdir}", "--env=Blackjack-v1", *SHORT_DQN
    )
    assert code == 0, errors
    assert "Finished 8 iterations" in output
    assert (logdir / "agent.mp4").exists()


@pytest.mark.slow
def test_continuous_actions_in_bins_train_and_play(run, tmp_path):
    logdir = tmp_path / "run"
    arguments = (*SHORT_DQN, "--env=Pendulum-v1", "--num_action_bins=5")
    code, output, errors = run("train ddqn", f"--logdir={logdir}", *arguments)
    assert code == 0, errors
    assert (logdir / "agent.mp4").exists()
    # The saved policy returns the number of a bin, which its folder's run explains.
    policy = tf.saved_model.load(str(logdir / "policy"))
    action = policy.signatures["action"].structured_outputs["action"]
    assert (action.dtype, action.shape.rank) == (tf.int32, 1)
    code, output, errors = run(
        "play", f"--policy={logdir / 'policy'}", "--num_episodes=2", "--video="
    )
    assert code == 0, errors
    assert "2 episodes of Pendulum-v1: mean return -" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "env"),
    [("train reinforce", "CartPole-v0"), ("train_reinforce_service", "Blackjack-v1")],
)
def test_train_reinforce_runs(module, env, run, tmp_path):
    logdir = tmp_path / "run"
    code, output, errors = run(
        module,
        f"--logdir={logdir}",
        f"--env={env}",
        "--num_iterations=4",
        "--eval_interval=2",
        "--num_eval_episodes=2",
        "--use_baseline",
        "--nofilm",
    )
    assert code == 0, errors
    assert "Finished 4 iterations" in output
    config = json.loads((logdir / "config.json").read_text())
    assert config["algorithm"] == module.removeprefix("train").strip("_ ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        ("train ddqn", ["--gamma=high"], "gamma"),
        ("train ddqn", ["--env=CartPol-v1"], "CartPole"),
        (
            "train ddqn",
            ["--env=Pendulum-v1"],
            'set num_action_bins=11, for example, or train SAC: tfrl.SAC("Pendulum',
        ),
        (
            "train ddqn",
            ["--num_action_bins=5"],
            "num_action_bins for 'CartPole-v1': env: got the action spec",
        ),
        ("train ddqn", ["--logdir=/proc/nowhere"], "cannot be written"),
        (
            "train ddqn",
            ["--num_iterations=0"],
            "num_iterations: expected an integer in",
        ),
        ("train ddqn", ["--replay_capacity=1"], "(num_envs, n_step_update)"),
        (
            "train ddqn",
            ["--replay_capacity=0"],
            "replay_capacity: expected an in",
        ),
        (
            "train ddqn",
            ["--learning_rate=-1"],
            "learning_rate: expected a finite",
        ),
        ("train ddqn", ["--gamma=2"], "gamma: expected a number in [0, 1], got"),
        ("train ddqn", ["--device=x"], "device: got 'x', expected one of"),
        ("train ddqn", ["--jit_compile=perhaps"], "jit_compile"),
        ("train ddqn", ["--device=GPU:9"], "device: got 'GPU:9', expected one"),
        (
            "train ddqn",
            ["--replay=magic"],
            "one of 'uniform', 'prioritized', got 'magic",
        ),
        (
            "train_dqn_service",
            ["--replay=prioritized"],
            "expected 'uniform' in a server",
        ),
        ("train_reinforce_service", ["--num_envs=2"], "expected 1"),
        ("play", [], "folder: expected the folder of a run"),
    ],
)
def test_a_wrong_word_gets_help_and_no_traceback(
    run, module, arguments, message, tmp_path
):
    if module.startswith("train_") and not any("logdir" in a for a in arguments):
        arguments = [*arguments, f"--logdir={tmp_path / 'run'}"]
    code, output, errors = run(module, *arguments)
    assert code != 0
    assert message in output + errors
    assert "Traceback" not in errors
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_an_error_of_the_users_environment_is_shown_as_what_it_is(run, tmp_path):
    """Before the first checkpoint, and after one."""
    arguments = (
        "--env=tests.examples.broken_environment:Broken-v0",
        f"--logdir={tmp_path / 'run'}",
        "--jit_compile=False",
        "--num_envs=1",
        "--collect_steps_per_iteration=8",
        "--minibatch_size=8",
        "--num_epochs=1",
        "--num_iterations=20",
        "--checkpoint_interval=2",
        "--noevaluate_untrained",
    )
    code, _, errors = run("train ppo", *arguments)
    assert code == 2
    assert 'return {}["qpos"]' in errors
    assert re.search(
        r"error: KeyError\('qpos'\)\. This is from step 6\d of Broken-v0\. It ended "
        r"the run at iteration \d; the same command resumes from \S+/ckpt-[2468]\.\n",
        errors,
    ), errors


@pytest.mark.slow
def test_train_sac_writes_all_its_outputs(run, tmp_path):
    arguments = (
        f"--logdir={tmp_path / 'run'}",
        "--jit_compile=False",
        "--noevaluate_untrained",
        "--initial_collect_steps=20",
        "--num_iterations=4",
        "--eval_interval=2",
        "--num_eval_episodes=1",
        "--log_interval=2",
        "--batch_size=8",
        "--actor_fc_layer_params=(4,)",
        "--critic_fc_layer_params=(4,)",
        "--num_critics=3",
        "--num_min=2",
        "--ou_stddev=0.1",
    )
    code, _, errors = run("train sac", *arguments)
    assert code == 0, errors
    assert float(rows(tmp_path / "run")[-1]["evaluation_return"]) < 0
    assert (tmp_path / "run" / "agent.mp4").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("train tqc", "--num_quantiles=3"),
        ("train discrete_sac", "--replay=prioritized"),
    ],
)
def test_train_sac_trains_its_other_agents(run, arguments, tmp_path):
    arguments = (
        *arguments,
        f"--logdir={tmp_path / 'run'}",
        "--jit_compile=False",
        "--initial_collect_steps=20",
        "--num_iterations=4",
        "--eval_interval=4",
        "--num_eval_episodes=1",
        "--log_interval=4",
        "--batch_size=8",
        "--actor_fc_layer_params=(4,)",
        "--critic_fc_layer_params=(4,)",
    )
    code, _, errors = run(*arguments)
    assert code == 0, errors
    assert rows(tmp_path / "run")[-1]["iteration"] == "4"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("train sac", "--env=CartPole-v1"),
            'SAC chooses continuous ones; train DQN: tfrl.DQN("CartPole-v1"), or ',
        ),
        (
            ("train discrete_sac", "--env=Pendulum-v1"),
            "Discrete SAC chooses among discrete ones; train SAC: tfrl.SAC(",
        ),
        (
            ("train td3", "--env=CartPole-v1"),
            "TD3 chooses continuous ones; train DQN: tfrl.DQN(",
        ),
    ],
)
def test_the_algorithm_to_take_instead_is_named(run, arguments, message, tmp_path):
    code, _, errors = run(*arguments, f"--logdir={tmp_path}")
    assert code == 2
    assert message in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "updates"),
    [
        (
            (
                "train ppo",
                "--env=Pendulum-v1",
                "--num_epochs=2",
                "--minibatch_size=8",
                "--normalize_observations",
                "--normalize_rewards",
            ),
            "16",
        ),
        (("train a2c",), "4"),
    ],
)
def test_train_ppo_writes_its_outputs(run, arguments, updates, tmp_path):
    arguments = (
        *arguments,
        *QUICK,
        f"--logdir={tmp_path / 'run'}",
        "--num_envs=2",
        "--collect_steps_per_iteration=8",
        "--num_iterations=4",
        "--eval_interval=4",
        "--num_eval_episodes=1",
        "--log_interval=4",
        "--fc_layer_params=(4,)",
    )
    code, _, errors = run(*arguments)
    assert code == 0, errors
    assert rows(tmp_path / "run")[-1]["train_steps"] == updates


@pytest.mark.slow
def test_train_pqn_writes_its_log(run, tmp_path):
    arguments = (
        f"--logdir={tmp_path / 'run'}",
        "--env=Pendulum-v1",
        "--num_action_bins=3",
        *QUICK,
        "--num_envs=2",
        "--collect_steps_per_iteration=8",
        "--minibatch_size=8",
        "--num_iterations=4",
        "--eval_interval=4",
        "--num_eval_episodes=1",
        "--log_interval=4",
        "--fc_layer_params=(4,)",
    )
    code, _, errors = run("train pqn", *arguments)
    assert code == 0, errors
    # In each iteration, 4 epochs of 2 minibatches.
    assert rows(tmp_path / "run")[-1]["train_steps"] == "32"


@pytest.mark.slow
def test_train_td3_resumes_and_writes_all_its_outputs(run, tmp_path):
    arguments = (
        f"--logdir={tmp_path / 'run'}",
        "--jit_compile=False",
        "--noevaluate_untrained",
        "--initial_collect_steps=20",
        "--eval_interval=4",
        "--num_eval_episodes=1",
        "--log_interval=4",
        "--batch_size=8",
        "--fc_layer_params=(4,)",
        "--replay=prioritized",
    )
    for length, film in ((4, "--nofilm"), (8, "--film")):
        flags = (f"--num_iterations={length}", film)
        code, _, errors = run("train ddpg", *flags, *arguments)
        assert code == 0, errors
    last = rows(tmp_path / "run")[-1]
    assert (last["iteration"], last["train_steps"]) == ("8", "8")
    assert (tmp_path / "run" / "agent.mp4").exists()


@pytest.mark.slow
@pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="labmaze has no wheel for Python 3.13"
)
def test_train_d4pg_on_dm_control(run, tmp_path):
    code, _, errors = run(
        "train d4pg",
        "--env=dm_control/cartpole-swingup",
        *QUICK,
        "--num_iterations=10",
        "--initial_collect_steps=20",
        "--eval_interval=100",
        "--num_eval_episodes=1",
        "--batch_size=8",
        f"--logdir={tmp_path / 'run'}",
    )
    assert code == 0, errors
    last = rows(tmp_path / "run")[-1]
    assert (last["iteration"], last["train_steps"]) == ("10", "10")


@pytest.mark.slow
@pytest.mark.parametrize("config", ["dmpo", "mpo"])
def test_train_dmpo_writes_its_outputs(run, tmp_path, config):
    code, _, errors = run(
        f"train {config}",
        *QUICK,
        "--num_iterations=10",
        "--initial_collect_steps=20",
        "--fc_layer_params=(8,)",
        "--eval_interval=100",
        "--num_eval_episodes=1",
        "--batch_size=8",
        f"--logdir={tmp_path / 'run'}",
    )
    assert code == 0, errors
    last = rows(tmp_path / "run")[-1]
    assert (last["iteration"], last["train_steps"]) == ("10", "10")


SMALL_OFFLINE = (
    "--jit_compile=False",
    "--batch_size=8",
    "--fc_layer_params=(4,)",
    "--num_iterations=4",
    "--num_eval_episodes=1",
    "--noevaluate_untrained",
)


@pytest.mark.slow
def test_a_recorded_policy_is_cloned(trained, run, tmp_path):
    data = tmp_path / "data" / "episodes.tfrecord"
    code, output, errors = run(
        "record", f"{trained[0]}", "--num_episodes=3", f"--output={data}"
    )
    assert code == 0, errors
    assert "3 whole episodes of CartPole-v1, mean return" in output
    mean = re.search(r"mean return [\d.]+", output)[0]
    code, output, errors = run(
        "train bc",
        f"--logdir={tmp_path / 'run'}",
        "--env=CartPole-v1",
        f"--data={data.parent}/*.tfrecord",
        *SMALL_OFFLINE,
    )
    assert code == 0, errors
    assert f"3 whole episodes, {mean}" in errors
    last = rows(tmp_path / "run")[-1]
    assert (last["train_steps"], last["environment_steps"]) == ("4", "0")
    assert float(last["evaluation_return"]) > 0
    assert (tmp_path / "run" / "agent.mp4").exists()


@pytest.mark.slow
def test_the_replay_of_a_run_is_recorded(trained, run, tmp_path):
    data = tmp_path / "replay.tfrecord"
    flags = ("record", "--replay", f"{trained[0]}", f"--output={data}")
    code, output, errors = run(*flags)
    assert code == 0, errors
    frames = list(datasets.load_recordings(str(data)).as_numpy_iterator())
    steps = int(rows(trained[0])[-1]["environment_steps"])
    # All steps, and the boundaries between the episodes.
    assert sum(int(frame.step_type != 2) for frame in frames) == steps
    episodes = sum(int(frame.next_step_type == 2) for frame in frames)
    assert f"{len(frames):,} frames, {episodes} whole episodes" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "flags"),
    [
        (
            "train ppo",
            [
                "--env=ALE/Pong-v5",
                "--num_envs=2",
                "--collect_steps_per_iteration=8",
                "--minibatch_size=8",
            ],
        ),
        *(
            (
                f"train {agent}",
                [
                    "--env=ALE/Pong-v5",
                    "--initial_collect_steps=50",
                    "--replay_capacity=1000",
                ],
            )
            for agent in ("dqn", "rainbow")
        ),
    ],
    ids=["ppo", "dqn", "rainbow"],
)
def test_an_agent_plays_an_atari_game(run, tmp_path, script, flags):
    code, output, errors = run(
        script,
        f"--logdir={tmp_path}",
        *flags,
        "--num_iterations=2",
        "--num_eval_episodes=1",
    )
    assert code == 0, errors
    assert "Finished 2 iterations" in output
    with imageio.get_reader(tmp_path / "agent.mp4") as reader:
        height, width, _ = reader.get_data(0).shape
    assert (height, width) >= (210, 160)
    # A game of Pong is lost by 21 points, whatever the rewards in training are.
    assert -21 <= float(rows(tmp_path)[-1]["evaluation_return"]) <= 21


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["iql", "cql"])
def test_train_offline_reads_files_of_minari(agent, run, tmp_path):
    with h5py.File(tmp_path / "main_data.hdf5", "w") as file:
        for name, shape in (
            ("observations", (31, 3)),
            ("actions", (30, 1)),
            ("rewards", (30,)),
        ):
            file[f"episode_0/{name}"] = np.ones(shape, np.float32)
        file["episode_0/terminations"] = np.zeros(30, bool)
    code, _, errors = run(
        f"train {agent}",
        f"--logdir={tmp_path / 'run'}",
        f"--data={tmp_path / 'main_data.hdf5'}",
        "--normalize_observations",
        *SMALL_OFFLINE,
        "--nofilm",
    )
    assert code == 0, errors
    assert "31 frames, 1 whole episodes, mean return 30.0" in errors
    # The normalizer has seen the data: its mean is 1, as all observations are.
    checkpoint = tf.train.latest_checkpoint(tmp_path / "run" / "checkpoints")
    saved = tf.train.load_checkpoint(checkpoint)
    shapes = saved.get_variable_to_shape_map().items()
    statistics = [saved.get_tensor(name) for name, shape in shapes if shape == [3]]
    assert [1.0, 1.0, 1.0] in [array.tolist() for array in statistics]
    assert rows(tmp_path / "run")[-1]["train_steps"] == "4"


@pytest.mark.slow
def test_train_offline_says_how_to_make_the_data(run, tmp_path):
    path = tmp_path / "datasets" / "hopper"
    code, _, errors = run("train iql", f"--logdir={tmp_path / 'run'}", f"--data={path}")
    assert code == 2
    assert f"data: got {str(path)!r}, where there is no file or folder" in errors
    assert "which tfrl record makes" in errors
    assert "`minari download NAME` fetches one to ~/.minari/datasets/NAME" in errors


@pytest.mark.slow
def test_actor_learner_trains_and_goes_on_from_its_checkpoints(run, tmp_path):
    arguments = (
        f"--logdir={tmp_path}",
        "--initial_collect_steps=20",
        "--eval_interval=4",
        "--log_interval=2",
        "--checkpoint_interval=2",
        "--num_eval_episodes=1",
        "--batch_size=8",
        "--actor_fc_layer_params=(4,)",
        "--critic_fc_layer_params=(4,)",
    )
    code, output, errors = run("actor_learner", *arguments, "--num_iterations=5")
    assert code == 0, errors
    evaluated = re.findall(r"^(\d+) updates: mean return -\d+\.\d$", output, re.M)
    assert evaluated == ["4", "5"]
    saved = tmp_path / "policies" / "checkpoints"
    assert {path.name for path in saved.iterdir()} == {
        f"policy_checkpoint_000000000{step}" for step in (2, 4, 5)
    }
    assert (tmp_path / "train/checkpoints/ckpt-5.index").exists()

    code, output, errors = run("actor_learner", *arguments, "--num_iterations=7")
    assert code == 0, errors
    assert re.findall(r"^(\d+) updates", output, re.M) == ["7"]
    assert (saved / "policy_checkpoint_0000000007").exists()
    assert (tmp_path / "train/checkpoints/ckpt-7.index").exists()

    arguments = (*arguments, "--overwrite", "--seed=2", "--num_iterations=2")
    code, output, errors = run("actor_learner", *arguments)
    assert code == 0, errors
    assert re.findall(r"^(\d+) updates", output, re.M) == ["2"]
    assert {path.name for path in saved.iterdir()} == {"policy_checkpoint_0000000002"}


SMALL_IMPALA = (
    "--jit_compile=False",
    "--noevaluate_untrained",
    "--num_envs=2",
    "--sequence_length=8",
    "--fc_layer_params=(4,)",
    "--num_eval_episodes=1",
    "--num_iterations=4",
    "--eval_interval=4",
    "--log_interval=4",
)


@pytest.mark.slow
def test_train_impala_writes_its_outputs(run, tmp_path):
    arguments = (f"--logdir={tmp_path / 'run'}", "--nofilm", *SMALL_IMPALA)
    code, _, errors = run("train impala", *arguments)
    assert code == 0, errors
    last = rows(tmp_path / "run")[-1]
    assert (last["train_steps"], last["iteration"]) == ("4", "4")


SMALL_ACTORS = (
    "--num_actors=2",
    "--nofilm",
    "--jit_compile=False",
    "--num_envs=2",
    "--num_eval_episodes=1",
    "--eval_interval=4",
    "--log_interval=2",
)
SAC = ("--actor_fc_layer_params=(4,)", "--critic_fc_layer_params=(4,)")


# Three or four processes import TensorFlow.
@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        (
            *("train ddqn", "--num_shards=2", "--initial_collect_steps=50"),
            *("--evaluator", "--fc_layer_params=(4,)"),
        ),
        (
            *("train ppo", "--schedule=lockstep", "--sequences_per_update=4"),
            *("--collect_steps_per_iteration=8", "--pull_period=8"),
            "--fc_layer_params=(4,)",
        ),
        ("train sac", "--initial_collect_steps=50", "--batch_size=8", *SAC),
        pytest.param(
            (
                *("train sac", "--env=dm_control/cartpole-balance"),
                *("--action_repeat=2", "--jit_compile=True"),
                *("--initial_collect_steps=50", "--batch_size=8", *SAC),
            ),
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 13), reason="dm-control needs labmaze"
            ),
        ),
        (
            *("train impala", "--sequences_per_update=2", "--sequence_length=8"),
            "--fc_layer_params=(4,)",
        ),
    ],
    ids=["DQN, two shards", "PPO, lockstep", "SAC", "SAC, dm_control", "IMPALA"],
)
def test_runs_with_actors_train_and_resume(run, arguments, tmp_path):
    logdir = tmp_path / "run"
    command, *flags = arguments
    flags = (f"--logdir={logdir}", *SMALL_ACTORS, *flags)
    for length in (4, 8):
        code, output, errors = run(command, *flags, f"--num_iterations={length}")
        assert code == 0, errors
        assert "Starting 2 actors, " in errors
        assert f"Finished {length} iterations" in output
        assert rows(logdir)[-1]["iteration"] == str(length)
    code, _, errors = run(command, *flags, "--num_iterations=8")
    assert code == 0, errors
    assert "This run is finished: 8 iterations done" in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--address=auto",), "address: got 'auto' with --launcher=local, expected no"),
        (
            ("--launcher=command", "--address=here"),
            "address: got 'here' with --launcher=command, expected host:port",
        ),
        (("--num_shards=3",), "num_shards: got 3 with 2 actors"),
        (("--schedule=lockstep",), "got 'lockstep' for a DdqnAgent"),
        (("--num_environment_steps=9",), "num_environment_steps: got 9 with actors"),
        (("--track=mlflow",), "track: got 'mlflow', but a run of actors and a learner"),
        (("--initial_run=there",), "initial_run: got 'there' with actors, expected"),
        (("--push_period=0",), "push_period: expected an integer in [1, "),
    ],
)
def test_what_actors_cannot_do_is_refused(run, arguments, message, tmp_path):
    logdir = f"--logdir={tmp_path / 'run'}"
    code, _, errors = run("train ddqn", "--num_actors=2", logdir, *arguments)
    assert code == 2
    assert message in " ".join(errors.split())
    assert "Traceback" not in errors


# Three processes import TensorFlow.
@pytest.mark.slow
def test_actors_wait_for_many_updates_after_few_first_steps(run, tmp_path):
    code, output, errors = run(
        "train dmpo",
        f"--logdir={tmp_path / 'run'}",
        "--nofilm",
        "--num_actors=1",
        "--num_iterations=3",
        "--train_steps_per_iteration=7",
        "--initial_collect_steps=1",
        "--fc_layer_params=(8,)",
        "--num_eval_episodes=1",
    )
    assert code == 0, errors
    assert "Finished 3 iterations" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "argument", "message"),
    [
        (
            "train ddqn",
            "--env=Foo-v9",
            r"error: environment_name: .* Here environment_name comes from --env\.",
        ),
        (
            "train reinforce",
            "--replay_capacity=5",
            r"error: EpisodicLoop: .* Here max_length comes from "
            r"--replay_capacity\.",
        ),
        (
            "train_reinforce_service",
            "--replay_capacity=5",
            r"error: ReverbAddEpisodeObserver: .* Here max_sequence_length comes from "
            r"--replay_capacity\.",
        ),
    ],
)
def test_an_error_that_shows_late_names_the_setting_without_a_dump(
    module, argument, message, run, tmp_path
):
    code, _, errors = run(
        module, f"--logdir={tmp_path}", "--num_iterations=2", "--nofilm", argument
    )
    assert code == 2
    assert any(re.fullmatch(message, line) for line in errors.splitlines())
    assert "Traceback" not in errors


@pytest.mark.slow
def test_a_lack_of_memory_says_what_to_lower(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tensorflow as tf\n"
        "from tfrl.command import parsing, program\n"
        "def main():\n"
        "    raise tf.errors.ResourceExhaustedError(None, None, 'a\\nallocating 9')\n"
        "program.start(parsing.new(), [], main, None)\n"
    )
    code, _, errors = run(str(script))
    assert code == 2
    assert "such as num_envs, batch_size, replay_capacity" in errors
    assert "(allocating 9)" in errors
