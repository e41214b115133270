"""Compares training on a GPU with training on the CPU of the same machine.

    python -m benchmarks gpu
    python -m benchmarks gpu --device=GPU:1

Agents, networks and settings are the examples', but for SAC's layers of 256 units and
batches of 256. The images are 84x84x4 random bytes, with the network and the batches of
DQN's paper. Without --device it takes the first GPU that TensorFlow sees; if there is
none, it measures the CPU alone. All processes may use all cores. A Python environment
is stepped on the CPU in any case; a native one is on the device.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

_CPU = "CPU:0"
_COMPILED = {"jit_compile": True}
_FORMS = {"plain": {"jit_compile": False}, "compiled": _COMPILED}
_HALF = {"compiled, bfloat16": {**_COMPILED, "dtype": "mixed_bfloat16"}}


def groups(device: str | None, quick: bool) -> Iterator[Group]:
    """Yields a group for each kind of training.

    Args:
      device: The device to compare with the CPU, or None to measure the CPU alone.
      quick: Whether to leave out the cases that take long to compile.
    """
    sac = {"actor_fc_layer_params": (256, 256), "critic_fc_layer_params": (256, 256)}
    yield _group(
        "Double DQN on CartPole: 4 steps and updates with batches of 64",
        device,
        ("off_policy", {"algorithm": "ddqn"}),
    )
    yield _group(
        "SAC on Pendulum: a step and an update of layers of 256 with batches of 256",
        device,
        ("off_policy", {"algorithm": "sac", "batch_size": 256, **sac}),
    )
    yield _group(
        "PPO on 8 CartPoles: 32 steps of each, and 20 updates of all",
        device,
        ("on_policy", {"algorithm": "ppo"}),
    )
    yield _group(
        "DQN on images, 8 environments: a step of each, and an update with 32 images",
        device,
        ("images", {"envs": 8}),
        _HALF,
    )
    if quick:
        return
    for units in (64, 1_024):
        yield _group(
            f"PPO on 1,024 native CartPoles, layers of {units:,}: 32 steps of each, "
            "and 20 epochs with minibatches of 4,096",
            device,
            (
                "on_policy",
                {
                    "algorithm": "ppo",
                    "native": True,
                    "num_envs": 1_024,
                    "minibatch_size": 4_096,
                    "fc_layer_params": (units, units),
                },
            ),
            _HALF,
            forms={"compiled": _COMPILED},
        )


def _group(
    title: str,
    device: str | None,
    task: tuple[str, dict[str, Any]],
    on_device_too: dict[str, dict[str, Any]] | None = None,
    forms: dict[str, dict[str, Any]] = _FORMS,
) -> Group:
    """Returns the contenders of a task: its forms on the device and on the CPU."""
    name, settings = task
    # The import of an example defines flags, so each has a process of its own.
    role = settings.get("algorithm", name)
    places = [(_CPU, f"tfrl_cpu:{role}", forms)]
    if device:
        more = {**forms, **(on_device_too or {})}
        places.insert(0, (device, f"tfrl_device:{role}", more))
    contenders = tuple(
        Contender(
            f"{place}, {form}",
            system,
            name,
            {"device": place, **settings, **options},
        )
        for place, system, options_by_form in places
        for form, options in options_by_form.items()
    )
    references = tuple(f"{_CPU}, {form}" for form in forms)
    return Group(title, contenders, references)


def run(session: Session) -> None:
    """Runs the benchmark."""
    seen = session.pool.get("tfrl_device:dqn").versions
    device = session.device or ("GPU:0" if seen["GPU"] != "none" else _CPU)
    session.say(
        f"device: {device}; GPU: {seen['GPU']}; CPU: {seen['processor']}; "
        f"TensorFlow {seen['tensorflow']}\n"
    )
    if seen["GPU"] == "none":
        session.say("TensorFlow sees no GPU, so this says nothing about one.\n")
    session.measure("gpu", groups(None if device == _CPU else device, session.quick))


if __name__ == "__main__":
    sys.exit(command_line.main(["gpu", *sys.argv[1:]]))
