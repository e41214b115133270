"""`AgentConformance`: the suite for agents."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.testing.conformance import Conformance, check_same, copy_nest, fail, same
from tfrl.testing.network import sample_inputs
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

_FIRST, _MID, _LAST = 0, 1, 2


class AgentConformance(Conformance):
    """Checks that a `TFAgent` behaves as loops, drivers and checkpoints expect.

    Implement `make_agent`. It must return equal agents in every call, so seed the
    networks. The checks of one object of the suite share an agent, so `run_all` makes
    two in all; pytest runs each check with its own object. The experience
    consists of whole episodes with random observations and actions, or of MID frames
    for agents that train on a fixed number of steps. The info has the structure of the
    collect policy's info. Override `make_experience` for agents that need other
    experience.

    Attributes:
      batch_size: The batch size `B` of the experience.
      num_steps: The number of steps `T` of the experience, for agents that train on any
        number of steps.
      masks_boundaries: Whether frames from LAST to FIRST have no effect on updates;
        False makes sense only for an algorithm without a notion of time.
      learns_last_observations: Whether the observations of these frames, the last of
        their episodes, do have an effect, as on a model that predicts observations.
    """

    batch_size: int = 4
    num_steps: int = 5
    masks_boundaries: bool = True
    learns_last_observations: bool = False

    _shared: tf_agent.TFAgent | None = None

    def make_agent(self) -> tf_agent.TFAgent:
        """Returns a new agent, the same in every call."""
        raise NotImplementedError(
            f"{type(self).__name__}.make_agent: not written; return a new agent from "
            "it."
        )

    def make_experience(
        self, agent: tf_agent.TFAgent, batch_size: int, seed: int = 0
    ) -> trajectory.Trajectory:
        """Returns random experience for `train`, `[batch_size, T, ...]`."""
        length = agent.train_sequence_length
        num_steps = self.num_steps if length is None else length
        flat = sample_inputs(agent.training_data_spec, batch_size * num_steps, seed)
        flat = _with_policy_info(agent, flat)
        experience = tf.nest.map_structure(
            lambda t: tf.reshape(t, [batch_size, num_steps, *t.shape[1:]]), flat
        )
        step_type = np.full([batch_size, num_steps], _MID, np.int32)
        next_step_type = step_type.copy()
        discount = np.ones([batch_size, num_steps], np.float32)
        if length is None:
            step_type[:, 0] = _FIRST
            next_step_type[:, -1] = _LAST
            discount[:, -1] = 0.0
        return experience._replace(
            step_type=tf.constant(step_type),
            next_step_type=tf.constant(next_step_type),
            discount=tf.constant(discount),
        )

    def test_train_returns_a_finite_loss_and_counts(self) -> None:
        """Checks that the loss is a finite scalar and that `train` counts its steps."""
        agent = self._agent()
        experience = self.make_experience(agent, self.batch_size)
        for _ in range(2):
            expected = int(agent.train_step_counter) + 1
            loss = agent.train(experience).loss
            if loss.shape.rank != 0 or not np.isfinite(loss.numpy()):
                fail("train().loss", f"{loss}", "a finite scalar", "reduce the loss")
            if int(agent.train_step_counter) != expected:
                fail(
                    "train_step_counter after an update",
                    f"{int(agent.train_step_counter)}",
                    f"{expected}",
                    "add one to it in _train",
                )

    def test_train_changes_what_it_lists_and_loss_nothing(self) -> None:
        """Checks that `train` changes only `variables()`, and that `loss` does not."""
        agent = self._agent()
        experience = self.make_experience(agent, self.batch_size)
        before = _values(agent)
        agent.loss(experience)
        if not same(before, _values(agent)):
            fail("variables() after loss()", "a change", "none", "update in _train")
        agent.train(experience)
        listed = {_identity(v) for v in agent.variables()}
        if same(before, _values(agent)[: len(before)]):
            fail(
                "variables() after train()",
                "no change",
                "new weights",
                "list the networks' variables in _variables, and apply the gradients",
            )
        acting = agent.collect_policy.variables()
        missing = [v.name for v in acting if _identity(v) not in listed]
        if missing:
            fail(
                "variables()",
                f"a list without the collect policy's {missing}",
                "everything that training changes",
                "return networks, targets, optimizer slots and counters from "
                "_variables",
            )

    def test_train_traces_once(self) -> None:
        """Checks that a `tf.function` of `train` is traced once for one shape."""
        agent = self._agent()
        train = tf.function(agent.train, autograph=False)
        for seed in range(3):
            train(self.make_experience(agent, self.batch_size, seed))
        if train.experimental_get_tracing_count() != 1:
            fail(
                "train in a tf.function",
                f"{train.experimental_get_tracing_count()} traces",
                "one",
                "make variables in the constructor, and no Python numbers in _train",
            )

    def test_other_batch_sizes_train(self) -> None:
        """Checks that batches of 1 and of 7 give finite losses."""
        agent = self._agent()
        for size in (1, 7):
            loss = agent.loss(self.make_experience(agent, size)).loss
            if not np.isfinite(loss.numpy()):
                fail(f"loss of a batch of {size}", f"{loss}", "a number", "look at it")

    def test_weights_of_one_change_nothing(self) -> None:
        """Checks that `weights=ones` gives the loss without weights."""
        agent = self._agent()
        experience = self.make_experience(agent, self.batch_size)
        plain = agent.loss(experience).loss.numpy()
        weighted = agent.loss(experience, weights=tf.ones([self.batch_size]))
        if not np.allclose(plain, weighted.loss.numpy(), rtol=1e-5):
            fail(
                "loss(experience, weights=ones)",
                f"{weighted.loss.numpy()}",
                f"{plain}, as without weights",
                "multiply each example's loss by its weight before the mean",
            )

    def test_boundaries_carry_no_signal(self) -> None:
        """Checks that the contents of frames from LAST to FIRST change no update."""
        if not self.masks_boundaries:
            return
        agent = self._agent()
        experience, other = (
            self._with_boundary(self.make_experience(agent, self.batch_size, seed))
            for seed in (0, 1)
        )
        is_ignored = not self.learns_last_observations
        changed = experience._replace(
            **{
                name: tf.nest.map_structure(
                    lambda new, old: tf.concat([new[:, :1], old[:, 1:]], axis=1),
                    getattr(other, name),
                    getattr(experience, name),
                )
                for name in ("action", "reward", *(["observation"] * is_ignored))
            }
        )
        start, updated = _values(agent), []
        for frames in (experience, changed):
            for variable, value in zip(agent.variables(), start, strict=True):
                variable.assign(value)
            agent.train(frames)
            updated.append(_values(agent))
        for variable, one, two in zip(agent.variables(), *updated, strict=True):
            if not np.allclose(one, two, rtol=1e-5, atol=1e-6):
                fail(
                    f"variable {variable.name!r} after an update, when only a "
                    "boundary's observation, action and reward are changed",
                    f"{two}",
                    f"{one}, as before",
                    "mask frames whose step_type is LAST in every loss",
                )

    def test_a_restored_agent_goes_on_as_before(self) -> None:
        """Checks that a saved and a restored agent make bitwise equal updates."""
        agent, other = self._agent(), self.make_agent()
        other.initialize()
        experiences = [self.make_experience(agent, self.batch_size, s) for s in (0, 1)]
        agent.train(experiences[0])
        with tempfile.TemporaryDirectory() as folder:
            path = tf.train.Checkpoint(agent=agent).write(str(Path(folder, "agent")))
            tf.train.Checkpoint(agent=other).read(path)
        for one in (agent, other):
            one.train(experiences[1])
        check_same(
            _values(agent),
            _values(other),
            "variables() of the restored agent after one more update",
            "as of the saved agent",
            "keep networks, optimizers and variables as attributes of the agent",
        )

    def test_experience_of_another_kind_is_refused(self) -> None:
        """Checks that `train` rejects a number and experience without a time axis."""
        agent = self._agent()
        experience = self.make_experience(agent, self.batch_size)
        no_time = tf.nest.map_structure(lambda leaf: leaf[:, 0], experience)
        for what, wrong in (("a number", 1.0), ("experience without time", no_time)):
            try:
                agent.train(wrong)
            except (ValueError, TypeError):
                continue
            fail(
                f"train of {what}",
                "no error",
                "a ValueError or TypeError",
                "convert experience by a data_converter, which checks it",
            )

    def test_its_policies_make_the_data_that_it_collects(self) -> None:
        """Checks `collect_data_spec`, and the structure of both policies' actions."""
        agent = self._agent()
        if agent.collect_data_spec != agent.collect_policy.trajectory_spec:
            fail(
                "collect_data_spec",
                f"{agent.collect_data_spec}",
                f"{agent.collect_policy.trajectory_spec}",
                "give the collect policy the agent's specs",
            )
        observation = sample_inputs(
            agent.time_step_spec.observation, self.batch_size, seed=0
        )
        time_step = ts.restart(
            observation, self.batch_size, agent.time_step_spec.reward
        )
        for policy in (agent.policy, agent.collect_policy):
            state = policy.get_initial_state(self.batch_size)
            action = policy.action(time_step, state).action
            tf.nest.assert_same_structure(action, agent.action_spec)

    def test_diagnose_gives_finite_scalars_and_changes_nothing(self) -> None:
        """Checks that `diagnose` returns finite scalars and does not change the run."""
        agent = self._agent()
        experience = self.make_experience(agent, self.batch_size)
        before = _everything(agent)
        for numbers in (agent.diagnose(), agent.diagnose(experience)):
            for name, value in numbers.items():
                if np.ndim(value) or not np.isfinite(value):
                    fail(
                        f"diagnose()[{name!r}]",
                        f"{value}",
                        "a finite scalar",
                        "return one number for the batch, such as a mean",
                    )
        if not same(before, _everything(agent)):
            fail(
                "variables and random generators after diagnose()",
                "a change",
                "none",
                "compute the numbers without an update, by stateless random operations",
            )

    def _agent(self) -> tf_agent.TFAgent:
        """Returns the agent that the checks share, whatever its state."""
        if self._shared is None:
            self._shared = self.make_agent()
            self._shared.initialize()
        return self._shared

    def _with_boundary(
        self, experience: trajectory.Trajectory
    ) -> trajectory.Trajectory:
        step_type, next_step_type, discount = (
            copy_nest(x.numpy())
            for x in (
                experience.step_type,
                experience.next_step_type,
                experience.discount,
            )
        )
        step_type[:, 0], next_step_type[:, 0], discount[:, 0] = _LAST, _FIRST, 1.0
        step_type[:, 1] = _FIRST
        return experience._replace(
            step_type=tf.constant(step_type),
            next_step_type=tf.constant(next_step_type),
            discount=tf.constant(discount),
        )


def _with_policy_info(
    agent: tf_agent.TFAgent, frames: trajectory.Trajectory
) -> trajectory.Trajectory:
    """Returns frames `[N, ...]` with the info that the collect policy would give.

    Entries of `training_data_spec` that the collect policy does not give do not change.
    """
    policy = agent.collect_policy
    if not tf.nest.flatten(policy.info_spec):
        return frames
    size = len(frames.step_type)
    time_step = ts.restart(frames.observation, batch_size=size)
    info = policy.action(time_step, policy.get_initial_state(size), seed=0).info
    if isinstance(info, dict):
        info = {**frames.policy_info, **info}
    return frames._replace(policy_info=info)


def _values(agent: tf_agent.TFAgent) -> list[np.ndarray]:
    return [variable.numpy().copy() for variable in agent.variables()]


def _everything(agent: tf_agent.TFAgent) -> list[np.ndarray]:
    """Returns the values of all variables, with the states of random generators."""
    tracked = tf.train.TrackableView(agent).descendants()
    states = [v.numpy().copy() for v in tracked if isinstance(v, tf.Variable)]
    return [*_values(agent), *states]


def _identity(variable: Any) -> int:
    """Returns the same id for a Keras variable and for its `tf.Variable`."""
    is_keras = isinstance(variable, keras.Variable)
    return id(variable.value if is_keras else variable)
