"""Leaves out what MuJoCo says of the way in which Gymnasium's models are written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gymnasium.envs import registration

from tfrl.system import log


@contextlib.contextmanager
def omitted(spec: registration.EnvSpec) -> Iterator[None]:
    """Omits, within this context, MuJoCo's warnings that a model's words will go.

    MuJoCo 3.3 and later print one for each HalfCheetah that is made, and write it to
    MUJOCO_LOG.TXT in the current folder; only Gymnasium can change its models. Other
    warnings of MuJoCo become Python's. A handler of the user's own stays.

    Args:
      spec: The specification of the environment that is made.
    """
    if not str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        yield
        return
    import mujoco

    if mujoco.get_mju_user_warning() is not None:
        yield
        return
    mujoco.set_mju_user_warning(_warn)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)


def _warn(text: str) -> None:
    if "deprecated" not in text:
        log.warn(f"MuJoCo: {text}")
