"""Checks that a loop's parts fit together, and whether XLA can compile them.

It also shortens the messages of failed checks.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.agents.on_policy import on_policy_agent
from tfrl.compilation import internals
from tfrl.compilation.python_calls import gpu_calls, host_calls
from tfrl.drivers import observers as observers_lib
from tfrl.environments import tf_environment
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.train.loops import placement
from tfrl.utils import nest_utils, variables

if TYPE_CHECKING:
    from tfrl.typing import types


def check_specs(
    environment: tf_environment.TFEnvironment,
    agent: tf_agent.TFAgent,
    replay_buffer: replay_buffer_lib.ReplayBuffer | None,
) -> None:
    """Raises an error if a part is of a wrong kind, or specs or batch sizes differ."""
    _check_kind("environment", environment, tf_environment.TFEnvironment)
    check_agent(agent)
    pairs = [
        (
            "environment.time_step_spec()",
            environment.time_step_spec(),
            agent.time_step_spec,
        ),
        ("environment.action_spec()", environment.action_spec(), agent.action_spec),
    ]
    for name, given, expected in pairs:
        _check_equal(name, given, expected)
    if replay_buffer is not None:
        check_data_spec(replay_buffer, agent)
    buffer_batch_size = None if replay_buffer is None else replay_buffer.batch_size
    if buffer_batch_size not in (None, environment.batch_size):
        raise ValueError(
            f"replay_buffer: expected batch_size={environment.batch_size}, the "
            f"environment's, got {buffer_batch_size}; build it with "
            "batch_size=environment.batch_size."
        )
    normalizer = agent.reward_normalizer
    if normalizer is not None and normalizer.batch_size not in (
        None,
        environment.batch_size,
    ):
        raise ValueError(
            f"agent.reward_normalizer: expected batch_size={environment.batch_size}, "
            f"the environment's, got {normalizer.batch_size}; build it with "
            "batch_size=environment.batch_size."
        )


def check_agent(agent: object) -> None:
    """Raises a TypeError unless `agent` is a `TFAgent`."""
    _check_kind("agent", agent, tf_agent.TFAgent)


def check_data_spec(
    replay_buffer: replay_buffer_lib.ReplayBuffer, agent: tf_agent.TFAgent
) -> None:
    """Raises a ValueError unless the buffer's frames fit the agent's specs."""
    _check_equal(
        "replay_buffer.data_spec", replay_buffer.data_spec, agent.collect_data_spec
    )


def _check_equal(name: str, given: Any, expected: Any) -> None:
    difference = _first_difference(given, expected)
    if difference:
        raise ValueError(
            f"{name}: does not match the agent: {difference}; build the agent from "
            "the environment's specs and the buffer from agent.collect_data_spec."
        )


def check_replay_buffer(replay_buffer: object) -> None:
    """Raises a TypeError unless `replay_buffer` is a `ReplayBuffer`."""
    _check_kind("replay_buffer", replay_buffer, replay_buffer_lib.ReplayBuffer)


def _check_kind(name: str, part: Any, kind: type) -> None:
    if not isinstance(part, kind):
        raise TypeError(
            f"{name}: got {part!r:.200} of type {type(part).__name__}, expected a "
            f"tfrl {kind.__name__}; {_REMEDIES[name]}."
        )


_REMEDIES = {
    "environment": "wrap a Python environment in a TFPyEnvironment",
    "agent": "make one, such as a DqnAgent",
    "replay_buffer": (
        "make one of agent.collect_data_spec, such as a TFUniformReplayBuffer"
    ),
}


def resolve_compilation(
    jit_compile: bool | Literal["auto"], obstacle: str | bool | None
) -> bool:
    """Returns whether XLA compiles a loop; warns if "auto" does not.

    Args:
      jit_compile: The user's argument.
      obstacle: Why XLA cannot compile the loop; None or False if it can.

    Raises:
      ValueError: `jit_compile` is True, and there is an obstacle.
    """
    if obstacle and jit_compile is True:
        raise ValueError(f"jit_compile: got True for {obstacle}")
    if obstacle and jit_compile == "auto":
        warnings.warn(
            f"jit_compile: 'auto' does not compile this loop: got {obstacle}",
            RuntimeWarning,
            stacklevel=4,  # The line that makes the loop.
        )
    return not obstacle if jit_compile == "auto" else bool(jit_compile)


def obstacle_to_compilation(
    environment: tf_environment.TFEnvironment,
    agent: tf_agent.TFAgent,
    replay_buffer: replay_buffer_lib.ReplayBuffer | None,
    observers: Sequence[types.Observer],
    placed: placement.Placement,
    collects_into_buffer: bool,
) -> str | None:
    """Returns why XLA cannot compile the loop, and a remedy; None if it can.

    Args:
      environment: The environment.
      agent: The agent.
      replay_buffer: The replay buffer, or None.
      observers: The user's observers.
      placed: The devices of the loop.
      collects_into_buffer: Whether the program that collects fills the buffer; else the
        program that trains does.
    """
    missing = obstacle_without_environment(replay_buffer)
    if missing:
        return missing
    for part, calls_python, device in (
        (
            "a Python environment, expected a native one",
            environment.calls_python,
            placed.collecting_device,
        ),
        (
            "a host_observer, expected observers in TensorFlow",
            any(map(observers_lib.calls_python, observers)),
            placed.collecting_device,
        ),
        (
            "a row_format with functions on the host, expected them in TensorFlow",
            replay_buffer is not None and replay_buffer.calls_python,
            placed.device,
        ),
    ):
        missing = _obstacle_to_python(placed, device) if calls_python else None
        if missing:
            return f"{part}: {missing}"
    parts: list[tuple[str, Any, bool]] = [
        ("an observer", observer, True) for observer in observers
    ]
    if not environment.calls_python:
        parts.append(("an environment", environment, True))
    parts.append(("a replay buffer", replay_buffer, collects_into_buffer))
    return misplaced(agent, parts, placed)


def obstacle_without_environment(
    replay_buffer: replay_buffer_lib.ReplayBuffer | None,
) -> str | None:
    """Returns why XLA cannot compile a loop with this buffer; None if it can."""
    if replay_buffer is not None and not replay_buffer.supports_xla:
        return (
            f"a {type(replay_buffer).__name__}, expected a buffer whose supports_xla "
            "is True, such as one in variables, since a compiled program cannot call "
            "a server or Python; leave jit_compile=False."
        )
    missing = internals.obstacle_to_xla()
    if missing:
        return f"a loop that XLA compiles, expected a plain one: {missing}"
    return None


def misplaced(
    agent: tf_agent.TFAgent,
    parts: Sequence[tuple[str, Any, bool]],
    placed: placement.Placement,
) -> str | None:
    """Returns a variable of the loop's parts on another device, and a remedy, as text.

    Returns None if there is no such variable.

    Args:
      agent: The agent.
      parts: For each other part, a tuple of its name, the part, and whether the
        collecting program uses it.
      placed: The devices of the loop.
    """
    named: list[tuple[str, Any, bool]] = [
        ("an observation_normalizer", agent.observation_normalizer, False),
        ("a reward_normalizer", agent.reward_normalizer, False),
        *parts,
    ]
    held = [
        (name, variables.tracked_variables(part), collects)
        for name, part, collects in named
        if isinstance(part, tf.Module)
    ]
    # Keras's Adafactor has variables of int32, which no program uses.
    weights = [v for v in agent.variables() if v.dtype != tf.int32]
    held.append(("an agent", weights, False))
    return next(filter(None, (placed.obstacle(*each) for each in held)), None)


def _obstacle_to_python(placed: placement.Placement, device: str) -> str | None:
    """Returns why a compiled program on a device cannot call Python; None if it can."""
    missing = host_calls.obstacle()
    if missing is None and not (device == placement.host() or gpu_calls.are_on(device)):
        missing = (
            f"the compiled program with these calls runs on {device}, and only the CPU "
            "calls Python; leave jit_compile=False, or keep the agent on the CPU."
        )
    if missing or not placed.is_split:
        return missing
    return internals.obstacle_to_substitution(
        "jit_compile", "leave jit_compile=False, or keep the agent on the CPU"
    )


def _first_difference(given: Any, expected: Any) -> str | None:
    """Describes the first difference of two nests of specs; None if they agree."""
    try:
        nest_utils.assert_same_structure(given, expected)
    except (TypeError, ValueError) as error:
        return str(error).splitlines()[0]
    for (path, ours), (_, theirs) in zip(
        nest_utils.flatten_with_joined_paths(given),
        nest_utils.flatten_with_joined_paths(expected),
        strict=True,
    ):
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            return (
                f"{path or 'the spec'} has shape {tuple(ours.shape)} and dtype "
                f"{ours.dtype.name}, expected {tuple(theirs.shape)} and "
                f"{theirs.dtype.name}"
            )
    return None


def is_from_dataset(
    sampling: str | None, jit_compile: bool, replay_device: str
) -> bool:
    """Whether batches come from `as_dataset`.

    Raises:
      ValueError: `sampling` is unknown, or does not work in this loop.
    """
    on_host = replay_device == placement.host()
    if sampling is None:
        return on_host and not jit_compile
    if sampling not in ("dataset", "variables"):
        raise ValueError(
            f"sampling: expected 'dataset' or 'variables', got {sampling!r}."
        )
    if sampling == "dataset" and jit_compile:
        raise ValueError(
            "sampling: got 'dataset' with jit_compile=True, expected 'variables', "
            "since XLA cannot compile a tf.data pipeline; leave sampling out."
        )
    if sampling == "dataset" and not on_host:
        raise ValueError(
            f"sampling: got 'dataset' with a replay buffer on {replay_device}, "
            "expected 'variables', since a tf.data pipeline runs on the CPU and reads "
            "no variables of another device; leave sampling out, or make the buffer "
            "inside of tf.device('CPU:0')."
        )
    return sampling == "dataset"


def check_sequence_length(length: int | None, agent: tf_agent.TFAgent) -> int:
    """Returns the number of frames in an example.

    Raises:
      ValueError: The agent cannot learn from sequences of this length.
    """
    wanted = agent.train_sequence_length
    if length is None and wanted is not None:
        return wanted
    if length is None or length < 2 or (wanted is not None and length != wanted):
        expected, remedy = (
            ("2 or more", "any length: give one as long as its memory should span")
            if wanted is None
            else (wanted, "that length: leave it out")
        )
        raise ValueError(
            f"sequence_length: got {length}, expected {expected}, since "
            f"{type(agent).__name__} learns from sequences of {remedy}."
        )
    return length


def check_initial_collection(
    initial_collect_steps: int,
    batched_steps: int,
    num_steps: int,
    environment: tf_environment.TFEnvironment,
) -> None:
    """Raises a ValueError if the initial steps are too few for a first sample."""
    if batched_steps < num_steps:
        raise ValueError(
            f"initial_collect_steps: expected at least {num_steps} steps of each of "
            f"the {environment.batch_size} environment(s), "
            f"{num_steps * environment.batch_size} in all, so that a first sample can "
            f"be drawn, got {initial_collect_steps}."
        )


def check_overlap(environment: tf_environment.TFEnvironment) -> None:
    """Raises a ValueError unless an environment steps beside the program."""
    if not environment.supports_overlap:
        raise ValueError(
            f"overlap: got True with a {type(environment).__name__}, expected a "
            "TFPyEnvironment, since steps inside of the program cannot run beside it; "
            "leave overlap=False."
        )


def check_on_policy_agent(
    agent: tf_agent.TFAgent,
    num_epochs: int,
    minibatch_size: int | None,
    sequence_length: int | None,
) -> None:
    """Raises a ValueError unless an `OnPolicyLoop` can train an agent.

    The agent must not do the loop's work a second time.
    """
    if not isinstance(agent, on_policy_agent.OnPolicyAgent):
        return
    name = type(agent).__name__
    if agent.compute_value_and_advantage_in_train:
        for argument, given, expected in (
            ("num_epochs", num_epochs, 1),
            ("minibatch_size", minibatch_size, None),
            ("sequence_length", sequence_length, None),
        ):
            if given != expected:
                raise ValueError(
                    f"{argument}: got {given} for a {name} that computes advantages in "
                    f"train, expected {expected}, since it needs whole rollouts; make "
                    "it with compute_value_and_advantage_in_train=False."
                )
        return
    for argument, given, expected in (
        ("num_epochs", agent.num_epochs, 1),
        ("update_normalizers_in_train", agent.update_normalizers_in_train, False),
    ):
        if given != expected:
            raise ValueError(
                f"agent: got a {name} with {argument}={given}, expected {expected}, "
                "since the loop does the epochs and updates the normalizers after "
                "them; leave both to the loop."
            )


def check_piece_length(
    sequence_length: int, num_steps: int, is_recurrent: bool
) -> None:
    """Raises a ValueError unless rollouts can be cut into sequences of this length.

    Args:
      sequence_length: The number of frames in a sequence.
      num_steps: The number of steps of each environment in a rollout.
      is_recurrent: Whether the agent has recurrent networks.
    """
    if not is_recurrent:
        raise ValueError(
            f"sequence_length: got {sequence_length} for an agent without recurrent "
            "networks, whose minibatches consist of single frames, expected None; "
            "leave it out."
        )
    if num_steps % sequence_length:
        raise ValueError(
            f"sequence_length: got {sequence_length} for rollouts of {num_steps} "
            "steps, expected a divisor of the number of steps; change one of them."
        )


def check_minibatch_size(
    minibatch_size: int, batch_size: int, num_steps: int, unit: int
) -> None:
    """Raises a ValueError unless minibatches divide a rollout.

    Args:
      minibatch_size: The number of frames in a minibatch.
      batch_size: The number of environments.
      num_steps: The number of steps of each environment in a rollout.
      unit: The number of frames in a sequence of which minibatches consist; 1 for
        single frames.
    """
    num_frames = batch_size * num_steps
    divisors = [
        unit * d
        for d in range(1, num_frames // unit + 1)
        if num_frames // unit % d == 0
    ]
    if minibatch_size in divisors:
        return
    wholes = "each a number of whole sequences, " if unit > 1 else ""
    raise ValueError(
        f"minibatch_size: got {minibatch_size} for {num_steps} steps of {batch_size} "
        f"environment(s), {num_frames} frames, expected one of "
        f"{', '.join(map(str, divisors))}, {wholes}so that each frame is in one "
        "minibatch of an epoch; choose one of them, or another number of steps or "
        "environments."
    )


# A graph on several devices, as with a GPU, may fail on each of them. Then TensorFlow
# lists the errors: "  (0) INVALID_ARGUMENT:  assertion failed: [...]".
_FAILED = re.compile(
    r"^(?:\s*\(\d+\) [A-Z_]+:\s*)?"
    r"(?:assertion failed: \[(.*)\]|(.* : Tensor had .*))$",
    re.M,
)


@contextlib.contextmanager
def short_assertions() -> Iterator[None]:
    """Shortens the error of a failed assertion in a graph to the assertion's text."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        said = _FAILED.search(error.message)
        if said is None:
            raise
        text = (said[1] or said[2]).replace("\\'", "'")
        raise tf.errors.InvalidArgumentError(None, None, text) from None


def check_can_sample(num_frames: int, collect_steps: int, num_steps: int) -> None:
    """Raises a ValueError if a buffer holds too few frames for a first sample.

    Args:
      num_frames: The number of frames of each environment in the buffer.
      collect_steps: The number of frames that an iteration adds before it samples.
      num_steps: The length of an example.
    """
    if num_frames + collect_steps < num_steps:
        raise ValueError(
            f"replay_buffer: got {num_frames} frame(s) of each environment, and "
            f"{collect_steps} more come before the first sample, expected "
            f"{num_steps}, the length of an example; add more, or clear it, so that "
            "the loop fills it by initial_collect_steps."
        )
