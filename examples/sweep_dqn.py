"""Trains double DQN with many seeds and learning rates in one compiled program.

    python -m examples.sweep_dqn
    python -m examples.sweep_dqn --num_seeds=16 --learning_rates=3e-4,1e-3,3e-3
    python -m examples.sweep_dqn --env=Acrobot-v1 --num_iterations=100_000

The environment is one of `tfrl.environments.native.names()`; the settings are in
configs/sweep_dqn.py. Two files are written to --logdir: curves.csv has every
evaluation of every run, and learning_curves.png shows the median and the quartiles of
the runs with each learning rate.
"""

import csv
import itertools
import pathlib
import time

import keras
import numpy as np
from absl import flags

from examples import cli
from tfrl import train
from tfrl.agents.dqn import dqn_agent
from tfrl.environments import native
from tfrl.networks import preprocessing, q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.utils import common

_CONFIG = cli.define_config("sweep_dqn")
_NUM_SEEDS = flags.DEFINE_integer("num_seeds", 8, "Runs with each learning rate.")
_LEARNING_RATES = flags.DEFINE_list("learning_rates", ["1e-3"], "Numbers, with commas.")


def main() -> None:
    """Runs the sweep and writes its curves."""
    config = cli.read_config(_CONFIG)
    rates = [float(rate) for rate in _LEARNING_RATES.value]
    seeds = range(config.seed, config.seed + _NUM_SEEDS.value)
    runs = list(itertools.product(rates, seeds))
    logdir = pathlib.Path(cli.LOGDIR.value or f"logs/sweep_dqn_{config.env}")
    logdir.mkdir(parents=True, exist_ok=True)
    cli.lock(logdir)

    print(f"{len(runs)} runs of {config.num_iterations:,} iterations.", flush=True)
    progress = Progress(config.num_iterations)
    with train.device_scope(config.device):
        result = train.sweep(
            lambda seed, learning_rate: make_loop(config, seed, learning_rate),
            [seed for _, seed in runs],
            {"learning_rate": [rate for rate, _ in runs]},
            num_iterations=config.num_iterations,
            eval_interval=config.eval_interval,
            num_eval_episodes=config.num_eval_episodes,
            callback=progress,
        )

    write_curves(logdir / "curves.csv", result)
    result.plot(logdir / "learning_curves.png", group_by="learning_rate")
    for rate in rates:
        last = result.returns[[run_rate == rate for run_rate, _ in runs], -1]
        print(f"learning rate {rate:g}: {summary(last)}")
    steps = result.environment_steps.sum(axis=0)
    print(
        f"{progress.per_second(steps):,.0f} environment steps a second, all together."
    )
    print(f"Outputs: {logdir}")


def make_loop(
    config: cli.Config, seed: int, learning_rate: float
) -> train.OffPolicyLoop:
    """Makes one run, as if it were trained alone."""
    environment = native.load(config.env, config.num_envs, seed)
    if config.num_action_bins:
        environment = native.NativeEnvironment(
            native.discretize_actions(environment.dynamics, config.num_action_bins),
            config.num_envs,
            seed,
        )
    cli.check_discrete_actions(config.env, environment.action_spec())
    observation_spec = environment.observation_spec()
    layers, combiner = preprocessing.default_preprocessing(observation_spec)
    network = q_network.QNetwork(
        observation_spec,
        environment.action_spec(),
        preprocessing_layers=layers,
        preprocessing_combiner=combiner,
        fc_layer_params=tuple(config.fc_layer_params),
        seed=seed,
    )
    epsilon = keras.optimizers.schedules.PolynomialDecay(
        config.initial_epsilon, config.epsilon_decay_iterations, config.final_epsilon
    )
    agent = dqn_agent.DdqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=network,
        optimizer=keras.optimizers.Adam(learning_rate),
        epsilon_greedy=epsilon,
        target_update_tau=config.target_update_tau,
        td_errors_loss_fn=common.element_wise_squared_loss,
        gamma=config.gamma,
        seed=seed,
    )
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec,
        batch_size=environment.batch_size,
        max_length=config.replay_capacity // environment.batch_size,
        seed=seed,
    )
    return train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        initial_collect_steps=config.initial_collect_steps,
        sample_batch_size=config.batch_size,
        seed=seed,
        jit_compile=True,
    )


class Progress:
    """Prints a line for each evaluation, and records its time."""

    def __init__(self, num_iterations: int) -> None:
        """Starts the clock of a sweep of `num_iterations` iterations."""
        self._num_iterations = num_iterations
        self._times = [time.perf_counter()]

    def __call__(self, iteration: int, returns: np.ndarray) -> None:
        """Prints the iteration, the time and a summary of `returns`, `[N]`."""
        self._times.append(time.perf_counter())
        seconds = self._times[-1] - self._times[0]
        print(
            f"iteration {iteration:,} of {self._num_iterations:,}, {seconds:.0f} s: "
            f"{summary(returns)}",
            flush=True,
        )

    def per_second(self, steps: np.ndarray) -> float:
        """Returns the rate after the first evaluation, without the compilation."""
        first = 1 if len(steps) > 1 else 0
        done = steps[-1] - (steps[0] if first else 0)
        return done / (self._times[-1] - self._times[first])


def summary(returns: np.ndarray) -> str:
    """Returns the median and the quartiles of the runs' returns as text."""
    low, median, high = np.quantile(returns, (0.25, 0.5, 0.75))
    return f"median return {median:.1f} (quartiles {low:.1f} and {high:.1f})"


def write_curves(path: pathlib.Path, result: train.SweepResult) -> None:
    """Writes a row for each run and evaluation."""
    rates = result.hyperparameters["learning_rate"]
    measured = result.environment_steps, result.returns, result.losses
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "learning_rate",
                "seed",
                "iteration",
                "environment_steps",
                "return",
                "loss",
            ]
        )
        for run, (rate, seed) in enumerate(zip(rates, result.seeds, strict=True)):
            for column, iteration in enumerate(result.iterations):
                numbers = (values[run, column] for values in measured)
                writer.writerow([rate, seed, iteration, *numbers])


if __name__ == "__main__":
    cli.start(main)
