"""The runs of a sweep, as one loop and the stacked variables of every run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import compile_errors, processors, trace_counts
from tfrl.environments.boundary import running_steps
from tfrl.environments.native import native_environment
from tfrl.system import log
from tfrl.train.loops import collecting_loop, placement
from tfrl.train.sweeps import vectorized_members
from tfrl.utils import variables

MakeLoop = Callable[..., collecting_loop.CollectingLoop]


def _num_processors(device: str) -> int:
    """Returns the number of programs to run in parallel; on the CPU, one per core."""
    return processors.number() if device == placement.host() else 1


class Members:
    """All runs of a sweep, as one loop and the stacked variables of every run.

    The runs are divided among threads. Each thread advances its share of the runs by
    the same program, which is a pure function of the variables.
    """

    def __init__(
        self,
        make_loop: MakeLoop,
        seeds: Sequence[int],
        hyperparameters: Mapping[str, Sequence[float]],
        num_eval_episodes: int,
        num_threads: int | None = None,
    ) -> None:
        """Makes the loop of each run; for the arguments see `sweep`."""
        self._make_loop = make_loop
        initial: list[list[np.ndarray]] = []
        for run, seed in enumerate(seeds):
            own = {name: values[run] for name, values in hyperparameters.items()}
            with log.silenced(is_silent=run > 0):  # All would say the same.
                made = make_loop(seed, **own)
            environment = _check_loop(made)
            if run == 0:
                self.loop = made
                self._device = placement.device_of(made.agent.variables())
                with tf.device(self._device):
                    self._evaluation = native_environment.NativeEnvironment(
                        environment.dynamics, num_eval_episodes
                    )
                self.variables = _all_variables(made, self._evaluation)
            initial.append(self._initial_values(run, seed, made))
        columns = [np.stack(values) for values in zip(*initial, strict=True)]
        _check_hyperparameters(hyperparameters, columns)
        self._number = len(seeds)
        if num_threads is None:
            num_threads = _num_processors(self._device)
        self._share = -(-len(seeds) // num_threads)
        self._pool = futures.ThreadPoolExecutor(-(-len(seeds) // self._share))
        self._transform = vectorized_members.VectorizedMembers(
            self.variables, self._share
        )
        self._values = self._shares(columns)
        self._positions: list[Any] = []
        self._compiles = False
        running_steps.register(self)
        self._start_program = self._compiled(self._start)
        self._program = self._compiled(self._train_and_evaluate)

    def _initial_values(
        self, run: int, seed: int, made: collecting_loop.CollectingLoop
    ) -> list[np.ndarray]:
        """Returns the values of a new run's variables."""
        self._evaluation.seed(seed)
        found = _all_variables(made, self._evaluation)
        _check_same(self.variables, found, run)
        return [variable.numpy() for variable in found]

    def replace(self, runs: Mapping[int, tuple[int, Mapping[str, float]]]) -> None:
        """Replaces some runs by new ones, in the same compiled program.

        The new runs have their own counters, weights and random numbers, and begin with
        their initial experience. The others continue as if nothing had happened.

        Args:
          runs: The seed and the hyperparameters of the new run in each place.

        Raises:
          ValueError: The variables of a new loop have other shapes.
        """
        with log.silenced():
            fresh = {
                run: self._initial_values(run, seed, self._make_loop(seed, **own))
                for run, (seed, own) in runs.items()
            }
        changed = sorted({run // self._share for run in runs})
        filled = []
        for share in changed:
            places = range(share * self._share, (share + 1) * self._share)
            # Runs that continue are computed here, too, from the values of a new one.
            some = next(fresh[run] for run in places if run in fresh)
            rows = [fresh.get(run, some) for run in places]
            columns = [np.stack(column) for column in zip(*rows, strict=True)]
            filled.append(list(map(tf.constant, columns)))
        started = self._on_threads(self._start_program, filled)
        for share, begun in zip(changed, started, strict=True):
            is_new = [share * self._share + i in fresh for i in range(self._share)]
            with tf.device(self._device):
                self._values[share], self._positions[share] = tf.nest.map_structure(
                    functools.partial(_chosen, is_new),
                    begun,
                    (self._values[share], self._positions[share]),
                )

    def start(self, state: Sequence[np.ndarray] | None = None) -> None:
        """Collects the initial experience of every run.

        Args:
          state: A result of `state` from which the runs continue instead, or None.

        Raises:
          ValueError: `state` was taken from other loops.
        """
        self._compiles = True
        try:
            self._begin(state)
        except BaseException:
            self._compiles = False
            raise

    def _begin(self, state: Sequence[np.ndarray] | None) -> None:
        """Compiles the programs, and sets the values and positions of the runs."""
        _, position = self._check_all_stacked(self._start_program, self._values[0])
        if state is None:
            started = self._on_threads(self._start_program, self._values)
            self._values, self._positions = (
                list(x) for x in zip(*started, strict=True)
            )
        else:
            self._continue(state, position)
        self._check_all_stacked(
            self._program,
            self._values[0],
            self._positions[0],
            tf.constant(0, tf.int64),
        )

    def advance(self, iterations: int) -> list[np.ndarray]:
        """Trains all runs and evaluates them.

        Returns the mean loss, the steps so far and the mean return, each `[N]`.
        """
        number = tf.constant(iterations, tf.int64)
        try:
            shares = self._on_threads(
                lambda values, position: self._program(values, position, number),
                self._values,
                self._positions,
            )
        finally:
            self._compiles = False
        self._values, self._positions, measured = (
            list(x) for x in zip(*shares, strict=True)
        )
        return [self._joined(parts) for parts in zip(*measured, strict=True)]

    def running_step(self) -> str | None:
        """Returns what a signal waits for until the first `advance` has ended."""
        if not self._compiles:
            return None
        return (
            "the compilation of the runs' program (with the iterations until the first "
            "evaluation)"
        )

    def state(self) -> list[np.ndarray]:
        """Returns the state from which the runs continue, arrays `[N, ...]`."""
        positions = zip(*map(tf.nest.flatten, self._positions), strict=True)
        return [*self.final_values(), *map(self._joined, positions)]

    def _continue(self, state: Sequence[np.ndarray], position: Any) -> None:
        specs = [*self._values[0], *tf.nest.flatten(position)]
        columns = [
            # NumPy's files have no name for dtypes such as bfloat16.
            array.view(spec.dtype.as_numpy_dtype) if array.dtype.kind == "V" else array
            for array, spec in zip(state, specs, strict=False)
        ]
        found = [(column.shape, column.dtype) for column in columns]
        if len(state) != len(specs) or found != [
            ((self._number, *spec.shape[1:]), spec.dtype.as_numpy_dtype)
            for spec in specs
        ]:
            raise ValueError(
                "make_loop: got loops whose variables differ from the checkpoint's in "
                "number, shape or dtype, expected the same loops; choose another "
                "directory, or make the loops as before."
            )
        held = len(self._values[0])
        self._values = self._shares(columns[:held])
        self._positions = [
            tf.nest.pack_sequence_as(position, share)
            for share in self._shares(columns[held:])
        ]

    def _shares(self, columns: Sequence[np.ndarray]) -> list[list[tf.Tensor]]:
        """Divides arrays `[N, ...]` among the threads."""
        return [
            [tf.constant(_padded(c[i : i + self._share], self._share)) for c in columns]
            for i in range(0, self._number, self._share)
        ]

    def final_values(self) -> list[np.ndarray]:
        """Returns every variable's values in all runs, `[N, ...]`."""
        return [self._joined(parts) for parts in zip(*self._values, strict=True)]

    def _joined(self, shares: Sequence[tf.Tensor]) -> np.ndarray:
        return np.concatenate([share.numpy() for share in shares])[: self._number]

    def _on_threads(
        self, function: Callable[..., Any], *shares: list[Any]
    ) -> list[Any]:
        def on_device(*share: Any) -> Any:
            with tf.device(self._device), compile_errors.explained():
                return function(*share)

        return list(self._pool.map(on_device, *shares))

    def _check_all_stacked(self, program: Any, *inputs: Any) -> Any:
        """Raises a ValueError if `program` uses a variable that is not stacked.

        Returns the specs of the program's outputs.
        """
        with tf.device(self._device):
            concrete = program.get_concrete_function(*inputs)
        captured = {id(x) for x in concrete.captured_inputs if x.dtype == tf.resource}
        if captured:
            names = [
                v.name for v in concrete.graph.variables if id(v.handle) in captured
            ]
            raise ValueError(
                f"make_loop: the loop uses {names or 'a resource'}, which none of its "
                "parts holds, so that all runs would share it, expected variables that "
                "the agent, the buffer, an observer or the environment holds; make it "
                "an attribute of one, agent.my_variable = variable, say."
            )
        return concrete.structured_outputs

    def _compiled(self, function: Callable[..., Any]) -> Any:
        return tf.function(
            trace_counts.of_one_object(function), autograph=False, jit_compile=True
        )

    def _start(self, values: list[tf.Tensor]) -> tuple[list[tf.Tensor], Any]:
        self._transform.values = values
        with self.loop.transformed_by(self._transform):
            position = self.loop.begin()
        return self._transform.values, position

    def _train_and_evaluate(
        self, values: list[tf.Tensor], position: Any, number: tf.Tensor
    ) -> tuple[list[tf.Tensor], Any, tuple[tf.Tensor, ...]]:
        self._transform.values = values
        with self.loop.transformed_by(self._transform):

            def body(
                i: tf.Tensor, time_step: Any, policy_state: Any, loss_sum: tf.Tensor
            ) -> tuple[Any, ...]:
                del i
                *position, loss = self.loop.iterate(time_step, policy_state)
                return *position, loss_sum + loss

            limit = tf.cast(number, tf.int32)
            *position, loss_sum = self._transform.loop(
                lambda i, *_: i < limit, body, (*position, tf.zeros([self._share]))
            )
            steps = self._transform.apply(self.loop.environment_steps)
            is_finite = self._transform.apply(self.loop.agent_is_finite)
            returns = self._evaluate()
        loss = loss_sum / tf.cast(number, tf.float32)
        loss = tf.where(is_finite, loss, float("nan"))
        return self._transform.values, tuple(position), (loss, steps, returns)

    def _evaluate(self) -> tf.Tensor:
        """Returns the mean return of each run's greedy policy, `[N]`."""
        policy = self.loop.agent.policy
        environment = self._evaluation
        batch = environment.batch_size
        start = self._transform.apply(
            lambda: (environment.reset(), policy.get_initial_state(batch))
        )

        def step(
            i: tf.Tensor, time_step: Any, state: Any, total: tf.Tensor, runs: tf.Tensor
        ) -> tuple[Any, ...]:
            # Greedy policies ignore the seed; others need a new one at each step.
            number = tf.cast(i, tf.int64)
            seed = tf.stack([tf.zeros_like(number), number])
            action_step = policy.action(time_step, state, seed=seed)
            time_step = environment.step(action_step.action)
            total += tf.where(runs, time_step.reward, 0.0)
            runs &= ~time_step.is_last()
            return time_step, action_step.state, total, runs

        shape = [self._share, batch]
        carried = self._transform.loop(
            lambda *carried: tf.reduce_any(carried[-1]),
            lambda i, *carried: self._transform.apply(
                functools.partial(step, i), *carried
            ),
            (*start, tf.zeros(shape), tf.ones(shape, tf.bool)),
        )
        return tf.reduce_mean(carried[2], axis=1)


def _chosen(is_new: Sequence[bool], new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
    """Returns the rows of `new` where `is_new`, and of `old` elsewhere."""
    return tf.where(tf.reshape(is_new, [-1] + [1] * (new.shape.rank - 1)), new, old)


def _padded(rows: np.ndarray, number: int) -> np.ndarray:
    """Repeats the last row until there are `number` rows.

    All threads can then run the same program.
    """
    missing = number - len(rows)
    return np.concatenate([rows, *[rows[-1:]] * missing]) if missing else rows


def _all_variables(
    made: collecting_loop.CollectingLoop,
    evaluation: native_environment.NativeEnvironment,
) -> list[tf.Variable]:
    """Returns all variables of a run, including variables of random generators."""
    parts = [
        part
        for module in (made, evaluation)
        for part in tf.train.TrackableView(module).descendants()
    ]
    generators = [part for part in parts if isinstance(part, tf.random.Generator)]
    return variables.as_tf_variables(
        [
            *variables.tracked_variables(made),
            *variables.tracked_variables(evaluation),
            *(generator.state for generator in generators),
        ]
    )


def _check_loop(made: Any) -> native_environment.NativeEnvironment:
    """Returns the loop's environment; raises an error if the loop cannot be swept."""
    if not getattr(made, "supports_sweep", False):
        raise TypeError(
            f"make_loop: got a loop of type {type(made).__name__}, expected an "
            "OffPolicyLoop, an OnPolicyLoop or another one whose supports_sweep is "
            "True; run loops of other kinds one after another."
        )
    if made.samples_from_dataset:
        raise ValueError(
            "make_loop: got a loop that samples from a dataset, expected one that "
            "XLA can compile; give it jit_compile=True, or sampling='variables'."
        )
    environment = made.environment
    if not isinstance(environment, native_environment.NativeEnvironment):
        raise TypeError(
            f"make_loop: got a loop on a {type(environment).__name__}, expected "
            "a NativeEnvironment, since one program can run many copies only of those; "
            "see environments.native.load."
        )
    if made.calls_python:
        raise TypeError(
            "make_loop: got a loop with a host_observer, or with a row_format whose "
            "functions are on the host, expected observers in TensorFlow, such as "
            "metrics, and a reward of tensors for Hindsight, since one program takes "
            "the steps of many runs together; leave them out, or run the loops one "
            "after another."
        )
    if environment.dynamics.max_episode_steps is None and not environment.is_bandit:
        raise ValueError(
            "make_loop: the environment has no time limit, expected one, so that "
            "every evaluation ends; set max_episode_steps."
        )
    return environment


def _check_same(
    expected: Sequence[tf.Variable], found: Sequence[tf.Variable], run: int
) -> None:
    def describe(run_variables: Sequence[tf.Variable]) -> list[Any]:
        return [(tuple(v.shape), v.dtype.name) for v in run_variables]

    if describe(expected) != describe(found):
        raise ValueError(
            f"make_loop: the loop of run {run} has other variables than the loop of "
            f"run 0 ({len(found)} and {len(expected)}; their shapes and dtypes must "
            "agree, too), expected loops that differ in values only; sweep over "
            "numbers that change no shapes."
        )


def _check_hyperparameters(
    hyperparameters: Mapping[str, Sequence[float]], columns: Sequence[np.ndarray]
) -> None:
    """Raises a ValueError if no variable holds the values of a hyperparameter."""
    for name, values in hyperparameters.items():
        found = any(
            column.ndim == 1 and np.allclose(column, values, rtol=1e-6, atol=0)
            for column in columns
        )
        if not found and len(set(values)) > 1:
            raise ValueError(
                f"hyperparameters[{name!r}]: no variable of the loops holds its values "
                f"{list(values)}, expected one, since all runs share one program and "
                f"differ in variables only; give the agent tf.Variable({name}) for the "
                "number itself."
            )
