"""Trains SAC with an Actor, a Learner and a replay server, as TF-Agents' examples do.

    python -m examples.actor_learner
    python -m examples.actor_learner --env=MountainCarContinuous-v0 --seed=3

An actor steps the environment and writes its experience to a replay server, a process
of its own. A learner trains on samples from this server. Triggers save policies, log
the speed and have the server save its contents. Agent and settings are as in
train_sac.py, which does the same in one compiled program and is faster; start from here
if actors and learner are to be processes of their own.

To resume a run, run the same command again; the environment then begins a new episode.
Watch it with `tensorboard --logdir=logs`.
"""

from __future__ import annotations

import sys

from absl import flags

import tfrl
from tfrl import (
    agents,
    environments,
    policies,
    replay_buffers,
    replay_service,
    specs,
    train,
)
from tfrl.command import program
from tfrl.command import train as train_command
from tfrl.experiments import single

_EVAL_DIR = "eval"


class ActorLearner(tfrl.SAC):
    """SAC, whose folders have another name."""

    name = "actor_learner"
    relative = "sac"


def main() -> None:
    """Reads the flags, which are those of `tfrl train sac`, and trains."""
    given = train_command.define_flags(ActorLearner)
    program.start(
        given,
        sys.argv[1:],
        lambda: start(given),
        lambda: train_command.help_text(ActorLearner, given, __doc__),
    )


def start(given: flags.FlagValues) -> None:
    """Trains by some flags."""
    recipe = train_command.recipe_of(ActorLearner, given)
    folder = train_command.folder_of(given, ActorLearner.name, recipe)
    algorithm = recipe.make(logdir=folder)
    assert isinstance(algorithm, ActorLearner)
    run(algorithm, given.overwrite)


def run(s: tfrl.SAC, overwrite: bool) -> None:
    """Builds actor, learner and replay, and lets actor and learner take turns.

    Args:
      s: The algorithm, whose agent and settings are taken.
      overwrite: Whether to remove the outputs of an earlier run first.
    """
    if s.batch_size > s.replay_capacity:
        raise ValueError(
            f"batch_size: expected at most replay_capacity, {s.replay_capacity}, got "
            f"{s.batch_size}; lower --batch_size, or raise --replay_capacity."
        )
    single.check_environment(s)
    single.prepare_kernels(s)
    assert s.logdir is not None
    directory = train.RunDirectory(
        s.logdir,
        s.recipe().to_json(),
        overwrite,
        further_outputs=(
            train.learner.TRAIN_DIR,
            train.learner.POLICY_SAVED_MODEL_DIR,
            train.learner.REPLAY_BUFFER_CHECKPOINT_DIR,
            _EVAL_DIR,
        ),
    )
    directory.lock()
    environment = make_environment(s.world.name, s.seed)
    on_tensors = environments.TFPyEnvironment(environment)
    agent = tfrl.SAC(on_tensors, settings=s.settings).make_agent()
    train_step = agent.train_step_counter

    replay_buffer = make_replay_buffer(s, agent, directory)
    replay_observer = replay_buffers.ReverbAddTrajectoryObserver(
        replay_buffer.py_client, "experience", sequence_length=s.n_step_update + 1
    )

    learner = train.Learner(
        directory.path,
        train_step,
        agent,
        lambda: replay_buffer.as_dataset(sample_batch_size=s.batch_size),
        triggers=[
            train.triggers.PolicySavedModelTrigger(
                directory.path / train.learner.POLICY_SAVED_MODEL_DIR,
                agent,
                train_step,
                interval=s.checkpoint_interval,
            ),
            train.triggers.ReverbCheckpointTrigger(
                train_step, s.checkpoint_interval, replay_buffer.py_client
            ),
            train.triggers.StepPerSecondLogTrigger(train_step, s.log_interval),
        ],
        checkpoint_interval=s.checkpoint_interval,
        summary_interval=s.log_interval,
    )

    if not replay_buffer.num_frames():
        train.Actor(
            environment,
            policies.RandomPyPolicy(
                environment.time_step_spec(), environment.action_spec()
            ),
            train_step,
            steps_per_run=s.initial_collect_steps,
            observers=[replay_observer],
        ).run()
    collector = train.Actor(
        environment,
        policies.PyTFEagerPolicy(agent.collect_policy, use_tf_function=True),
        train_step,
        steps_per_run=s.collect_steps_per_iteration,
        observers=[replay_observer],
        metrics=train.actor.collect_metrics(buffer_size=10),
        summary_dir=directory.path / train.learner.TRAIN_DIR,
        summary_interval=s.log_interval,
    )
    evaluator = train.Actor(
        make_environment(s.world.name, s.seed + 1),
        policies.PyTFEagerPolicy(agent.policy, use_tf_function=True),
        train_step,
        episodes_per_run=s.num_eval_episodes,
        metrics=train.actor.eval_metrics(buffer_size=s.num_eval_episodes),
        summary_dir=directory.path / _EVAL_DIR,
        summary_interval=s.eval_interval,
    )

    def evaluate() -> None:
        evaluator.run()
        average_return, _ = (metric.result() for metric in evaluator.metrics)
        print(f"{train_step.numpy():,} updates: mean return {average_return:.1f}")

    evaluate_if_due = train.interval_trigger.IntervalTrigger(
        s.eval_interval, evaluate, start=int(train_step)
    )
    last_step = s.num_iterations * s.train_steps_per_iteration
    while int(train_step) < last_step:
        collector.run()
        learner.run(s.train_steps_per_iteration)
        evaluate_if_due(int(train_step))
    evaluate_if_due(int(train_step), force_trigger=True)
    for trigger in learner.triggers:
        trigger(int(train_step), force_trigger=True)
    print(f"Outputs: {directory.path}")


def make_environment(name: str, seed: int) -> environments.PyEnvironment:
    """Makes an environment on arrays, as actors step them."""
    environment = environments.suite_gym.load(name)
    environment.seed(seed)
    return environment


def make_replay_buffer(
    s: tfrl.SAC, agent: agents.SacAgent, directory: train.RunDirectory
) -> replay_buffers.ReverbReplayBuffer:
    """Starts a server with one table, which samples uniformly."""
    num_steps = s.n_step_update + 1
    table = replay_service.Table(
        "experience",
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=s.replay_capacity,
        rate_limiter=replay_service.rate_limiters.MinSize(s.batch_size),
        signature=specs.tensor_spec.add_outer_dim(agent.collect_data_spec, num_steps),
    )
    server = replay_service.Server(
        [table],
        checkpointer=replay_service.checkpointers.DefaultCheckpointer(
            directory.path / train.learner.REPLAY_BUFFER_CHECKPOINT_DIR
        ),
        seed=s.seed,
    )
    return replay_buffers.ReverbReplayBuffer(
        agent.collect_data_spec,
        table.name,
        sequence_length=num_steps,
        local_server=server,
    )


if __name__ == "__main__":
    main()
