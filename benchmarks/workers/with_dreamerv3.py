"""Measures the updates of DreamerV3's authors, in JAX, with one thread.

`dreamerv3` is no package: `benchmarks.peers` makes an environment with what it needs,
and the variable TFRL_DREAMERV3 names a clone of github.com/danijar/dreamerv3.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from typing import Any

from benchmarks.workers import serving

_CLONE = pathlib.Path(os.environ.get("TFRL_DREAMERV3", "dreamerv3")).resolve()
if not (_CLONE / "dreamerv3" / "configs.yaml").exists():
    sys.exit(
        "TFRL_DREAMERV3 must name a clone of github.com/danijar/dreamerv3, and "
        f"{_CLONE} is none"
    )
sys.path.insert(0, str(_CLONE))

import elements  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
import ruamel.yaml  # noqa: E402
from dreamerv3 import agent  # noqa: E402
from embodied.jax import internal  # noqa: E402


def updates(size: str, batch: int, length: int) -> serving.Task:
    """Makes updates of the agent for Pendulum with the same random batch.

    Args:
      size: The size of its networks, such as "1m".
      batch: Sequences in a batch.
      length: Frames in a sequence.
    """
    text = (_CLONE / "dreamerv3" / "configs.yaml").read_text(encoding="utf-8")
    configs = ruamel.yaml.YAML(typ="safe").load(text)
    config = elements.Config(configs["defaults"]).update(configs[f"size{size}"])
    config = config.update(
        {
            "jax.platform": "cpu",
            "jax.compute_dtype": "float32",
            "jax.prealloc": False,
            "batch_size": batch,
            "batch_length": length,
        }
    )
    known = "seed", "batch_size", "batch_length", "replay_context", "report_length"
    observations = {
        "position": elements.Space(np.float32, (3,)),
        "reward": elements.Space(np.float32),
        **{name: elements.Space(bool) for name in ("is_first", "is_last")},
        "is_terminal": elements.Space(bool),
    }
    made = agent.Agent(
        observations,
        {"action": elements.Space(np.float32, (1,), -1, 1)},
        elements.Config(
            **config.agent,
            **{name: config[name] for name in known},
            jax={**config.jax, "profiler": False},
            logdir=tempfile.mkdtemp(),
            replica=0,
            replicas=1,
        ),
    )
    frames = length + config.replay_context
    data = internal.device_put(_batch(made.spaces, batch, frames), made.train_sharded)
    carry: Any = made.init_train(batch)

    def run(count: int) -> dict[str, int]:
        nonlocal carry
        for _ in range(count):
            seed = made._seeds(int(made.n_updates), made.train_mirrored)
            carry, _, _ = made.train(carry, {**data, "seed": seed})
        jax.block_until_ready(made.params)
        return {"iterations": count}

    return serving.Task(run)


def _batch(spaces: Any, batch: int, length: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    given = {}
    for name, space in spaces.items():
        shape = (batch, length, *space.shape)
        is_float = np.issubdtype(space.dtype, np.floating)
        given[name] = rng.standard_normal(shape) if is_float else np.zeros(shape)
        given[name] = given[name].astype(space.dtype)
    return given


if __name__ == "__main__":
    serving.serve({"updates": updates}, ["jax", "ninjax", "numpy"])
