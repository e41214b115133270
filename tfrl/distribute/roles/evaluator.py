"""The evaluator of a run: it evaluates policies while the learner trains."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl import replay_service, train
from tfrl.agents import tf_agent
from tfrl.distribute import replay_servers
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.weights import shared_weights, weight_puller
from tfrl.eval import evaluate as evaluate_lib
from tfrl.utils import variables as variables_lib

_LOGGER = logging.getLogger("tfrl.distribute")

# The tables of policies to evaluate, and of their results. A result without episodes
# says that an evaluation has begun.
POLICIES, RESULTS = "evaluations", "evaluation_results"
_PERIOD = 0.2  # Seconds between two looks into these tables.
_MOST_RESULTS = 100
_AGAIN = 60.0  # Seconds after which a policy without a result is sent again.
_PATIENCE = 60.0  # Seconds after which a line reports that the run is waiting.


def make_tables(agent: tf_agent.TFAgent) -> list[replay_service.Table]:
    """Makes the tables of the agent's newest policy, and of results."""
    iteration = number = tf.TensorSpec([], tf.int64)
    policy = [iteration, *[tf.TensorSpec(v.shape, v.dtype) for v in _variables(agent)]]
    result = [
        iteration,
        tf.TensorSpec([None], tf.float32),
        tf.TensorSpec([None], tf.int64),
        number,
    ]
    return [
        replay_servers.make_table(POLICIES, 1, policy, max_times_sampled=0),
        replay_servers.make_table(RESULTS, _MOST_RESULTS, result),
    ]


def evaluate(
    experiment: Experiment,
    servers: replay_servers.Servers,
    is_stopped: Callable[[], bool],
) -> None:
    """Evaluates the newest policy from the learner, again and again until stopped.

    It calls the function `evaluate` of the experiment's `make_run_settings`.

    Args:
      experiment: The run's experiment.
      servers: The replay servers.
      is_stopped: Returns whether to stop.

    Raises:
      ValueError: The experiment has no such function.
    """
    agent = experiment.build_agent()
    settings = experiment.make_run_settings(agent)
    if settings.get("evaluate") is None:
        raise ValueError(
            "experiment: its make_run_settings returns no 'evaluate', expected the "
            "function that the evaluator calls; return one, or start no evaluator."
        )
    variables = _variables(agent)
    iteration_leaf = weight_puller.Leaf((), np.dtype(np.int64), "iteration")
    leaves = [iteration_leaf, *shared_weights.leaves_of(variables)]
    central = replay_servers.CentralServer(servers)
    puller = weight_puller.Puller(central.client, POLICIES, leaves, _PERIOD)
    done: weight_puller.Pulled | None = None

    def turn() -> None:
        nonlocal done
        newest = puller.newest()
        if newest is None or newest is done:
            return
        iteration, *values = newest.arrays
        _assign(variables, values)
        _send(central, iteration, evaluate_lib.EvaluationResult(*_NONE))
        with contextlib.suppress(evaluate_lib.EvaluationInterruptedError):
            result = _evaluated(settings, int(iteration), is_stopped)
            _send(central, iteration, result)
        done = newest

    with contextlib.closing(puller):
        while not is_stopped():
            central.attempt(turn)
            time.sleep(_PERIOD)


class Evaluations:
    """The learner's side of the evaluator: `train.LateEvaluations` for a `train.Run`.

    It keeps at most three copies of the weights: the weights that the evaluator is
    evaluating, as far as the learner knows, and the last two that the learner has sent.
    """

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        central: replay_servers.CentralServer,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stores the arguments.

        Args:
          agent: The agent.
          central: The server that has the tables of `make_tables`.
          now: The clock, in seconds.
        """
        self._agent = agent
        self._variables = _variables(agent)
        self._central = central
        self._now = now
        self._due = float("-inf")
        # Maps iterations to the policies whose results may still arrive.
        self._pending: dict[int, list[np.ndarray]] = {}
        self._begun: int | None = None  # The newest policy under evaluation.
        # Results, each with its weights, that nobody has taken yet.
        self._arrived: list[tuple[evaluate_lib.EvaluationResult, list[np.ndarray]]] = []

    def begin(self, iteration: int) -> None:
        """Sends the policy; it replaces a policy that is not being evaluated yet."""
        self._central.attempt(self._look, within=replay_servers.SHORT)
        values = self._pending[iteration] = _values(self._agent)
        kept = {self._begun, *sorted(self._pending)[-2:]}
        self._pending = {i: v for i, v in self._pending.items() if i in kept}
        data = [np.int64(iteration), *values]
        self._central.attempt(
            lambda: self._central.client.insert(data, {POLICIES: 1.0}),
            within=replay_servers.SHORT,
        )

    def take(
        self,
    ) -> Sequence[
        tuple[evaluate_lib.EvaluationResult, contextlib.AbstractContextManager[None]]
    ]:
        """Returns new results, each with a context that sets the evaluated weights.

        It looks for them from time to time only, because a run calls it often.
        """
        waits = self._pending or self._arrived
        if not waits or self._now() < self._due:
            return []
        self._due = self._now() + _PERIOD
        self._central.attempt(self._look, within=replay_servers.SHORT)
        arrived, self._arrived = self._arrived, []
        return [(result, self._with(values)) for result, values in arrived]

    def finish(self, iteration: int) -> evaluate_lib.EvaluationResult:
        """Sends the policy, and waits for its result."""
        due, started, patience = float("-inf"), self._now(), _PATIENCE
        while True:
            if self._now() >= due:
                # Sends the policy again, in case a killed server has lost it.
                self.begin(iteration)
                due = self._now() + _AGAIN
            if self._now() - started >= patience:
                self._say_what_is_awaited(iteration, patience)
                patience *= 2
            for result, _ in self.take():
                if result.iteration == iteration:
                    return result
            watch = evaluate_lib.current_supervision()
            if watch is not None:
                watch.between_calls(0, 1, 0)
            time.sleep(_PERIOD)

    def _forget_before(self, iteration: int) -> None:
        """Forgets the weights of earlier iterations."""
        self._pending = {i: v for i, v in self._pending.items() if i >= iteration}

    def _say_what_is_awaited(self, iteration: int, seconds: float) -> None:
        if self._begun == iteration:
            doing = "evaluates it"
        elif self._begun is None:
            doing = "has not begun with it"
        else:
            doing = f"has not begun with it, but last with iteration {self._begun:,}"
        _LOGGER.warning(
            "The learner has done its last iteration, %s, and has waited %.0f s for "
            "the evaluator, which %s. If that hangs, kill its process: it is then "
            "started again. Ctrl-C ends the run without this evaluation, which the "
            "same command does later.",
            f"{iteration:,}",
            seconds,
            doing,
        )

    def _look(self) -> None:
        """Takes the evaluator's messages, and forgets weights no longer needed."""
        client = self._central.client
        size = client.server_info()[RESULTS].current_size
        if not size:
            return
        for sample in client.sample(RESULTS, size, emit_timesteps=False):
            result = _as_result([column[0] for column in sample.data])
            if result is None:
                continue
            iteration = int(sample.data[0][0])
            values = self._pending.get(iteration)
            if values is None:  # From before a restart, or a second result.
                continue
            if len(result.returns):
                self._arrived.append((result, values))
                self._forget_before(iteration + 1)
            else:
                self._begun = iteration
                self._forget_before(iteration)

    @contextlib.contextmanager
    def _with(self, values: Sequence[np.ndarray]) -> Iterator[None]:
        """Gives the agent these values in this context."""
        now = _values(self._agent)
        _assign(self._variables, values)
        try:
            yield
        finally:
            _assign(self._variables, now)


# The returns, lengths and number of cut episodes of an evaluation that has just begun.
_NONE = np.zeros([0], np.float32), np.zeros([0], np.int64), 0


def _send(
    central: replay_servers.CentralServer,
    iteration: np.ndarray,
    result: evaluate_lib.EvaluationResult,
) -> None:
    # An `evaluate` of a user may return numbers of other dtypes.
    data = [
        np.int64(iteration),
        np.asarray(result.returns, np.float32),
        np.asarray(result.lengths, np.int64),
        np.int64(result.num_cut),
    ]
    central.client.insert(data, {RESULTS: 1.0})


def _as_result(data: Sequence[np.ndarray]) -> evaluate_lib.EvaluationResult | None:
    """Returns an evaluator's message as a result; warns if it is not valid."""
    iteration, returns, lengths, num_cut = data
    if returns.shape == lengths.shape:
        return evaluate_lib.EvaluationResult(
            returns, lengths, int(num_cut), int(iteration)
        )
    _LOGGER.warning(
        "The result of an evaluation is left out: got %d returns and %d lengths of "
        "episodes, expected as many returns as lengths.",
        len(returns),
        len(lengths),
    )
    return None


def _variables(agent: tf_agent.TFAgent) -> list[tf.Variable]:
    """Returns the variables that a saved policy holds."""
    found = variables_lib.as_tf_variables(agent.policy.variables())
    return [*found, agent.train_step_counter]


def _values(agent: tf_agent.TFAgent) -> list[np.ndarray]:
    return [tf.convert_to_tensor(each).numpy() for each in _variables(agent)]


def _assign(variables: Sequence[tf.Variable], values: Sequence[np.ndarray]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _evaluated(
    settings: Any, iteration: int, is_stopped: Callable[[], bool]
) -> evaluate_lib.EvaluationResult:
    """Evaluates with the limits that a `train.Run` of these settings has."""

    def between_calls(*_: int) -> None:
        if is_stopped():
            raise evaluate_lib.EvaluationInterruptedError

    limits = settings.get("limits", train.EvaluationLimits())
    with limits.supervised(iteration, between_calls):
        return settings["evaluate"](iteration)
