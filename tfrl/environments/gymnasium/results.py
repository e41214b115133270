"""Explains results of Gymnasium's environments that do not follow its API."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrl.specs import bounds

_EXPECTED = {
    "reset": "the two values (observation, info)",
    "step": "the five values (observation, reward, terminated, truncated, info)",
}
_REMEDY = (
    "follow Gymnasium's API, or convert an environment of the old Gym with "
    "shimmy.GymV21CompatibilityV0"
)


def wrong_result(what: str, result: Any, name: str) -> ValueError:
    """Returns the error for a result with the wrong number of values.

    Args:
      what: "reset" or "step".
      result: The result of this method of the environment.
      name: The name of the environment.
    """
    return _wrong(what, _describe(result), name)


def ends(
    terminated: Any, truncated: Any, shape: tuple[int, ...], name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns `terminated` and `truncated` as arrays of bools.

    Numbers that are 0 or 1 count as bools.

    Args:
      terminated: The third value of a step's result.
      truncated: The fourth value of a step's result.
      shape: The shape of both, `()` or `(B,)`.
      name: The name of the environment.

    Raises:
      ValueError: If one of them is anything else.
    """
    first, second = _as_bools(terminated, shape), _as_bools(truncated, shape)
    if first is None or second is None:
        expected = f"bools of shape {shape}" if shape else "two bools"
        raise ValueError(
            f"step: got terminated={terminated!r} and truncated={truncated!r} from "
            f"{name}, expected {expected}; correct the third and the fourth value that "
            "its step returns."
        )
    return first, second


def explain(error: Exception, what: str, name: str) -> Exception | None:
    """Returns a better error for one that Gymnasium raised; None if there is none.

    Args:
      error: The exception of a call of `reset` or `step`.
      what: "reset" or "step".
      name: The name of the environment.
    """
    module = _module_that_raised(error)
    if not _is_plumbing(module):
        return None
    text = str(error)
    if "unexpected keyword argument" in text:
        return TypeError(
            f"{what}: {name} does not take the arguments of Gymnasium's API ({text}), "
            f"expected reset(self, *, seed=None, options=None); {_REMEDY}."
        )
    number = 2 if what == "reset" else 5
    if f"to unpack (expected {number}" in text or "cannot unpack non-iter" in text:
        return _wrong(what, f"a result that cannot be unpacked ({text})", name)
    # The asynchronous vector environment raises the exceptions of its environments,
    # too.
    if ".vector." in module and not module.endswith(".async_vector_env"):
        return ValueError(
            f"{what}: got a result of a member of {name} that Gymnasium cannot batch "
            f"({text}), expected {_EXPECTED[what]}, in the shapes of its spaces; give "
            "one member to tfrl.environments.suite_gym.wrap_env, whose error is "
            "clearer."
        )
    return None


def _as_bools(value: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    array = np.asarray(value)
    if array.shape != shape:
        return None
    if array.dtype == np.bool_:
        return array
    is_flag = array.dtype.kind in "iuf" and np.all((array == 0) | (array == 1))
    return array.astype(np.bool_) if is_flag else None


def _wrong(what: str, got: str, name: str) -> ValueError:
    return ValueError(
        f"{what}: got {got} from {name}, expected {_EXPECTED[what]}; {_REMEDY}."
    )


def _describe(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, tuple | list):
        return f"a {kind} of {len(value)} values"
    shape = getattr(value, "shape", None)
    return f"a {kind}" if shape is None else f"a {kind} of shape {shape}"


def _module_that_raised(error: Exception) -> str:
    """Returns the name of the innermost module on the stack, except NumPy's."""
    found, traceback = "", error.__traceback__
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        if not name.startswith("numpy."):
            found = name
        traceback = traceback.tb_next
    return found


def _is_plumbing(module: str) -> bool:
    """Whether a module only passes on the results of environments."""
    if module.startswith("gymnasium."):
        return not module.startswith("gymnasium.envs.")
    return module.startswith(__name__.rpartition(".")[0])


_LEAST, _GREATEST = -bounds.FLOAT32_MAX, bounds.FLOAT32_MAX


def as_array(
    reward: Any, shape: tuple[int, ...], name: str, dtype: Any = np.float32
) -> np.ndarray:
    """Returns a reward as an array of `shape`.

    Args:
      reward: The reward that an environment returned.
      shape: The shape that it has to have, `()` for one number.
      name: The name of the environment, for the message.
      dtype: The floating-point dtype of the array.

    Raises:
      ValueError: If the reward has another shape, or does not consist of numbers that
        are finite in float32.
    """
    # This is the common case; np.float64 is a float, too. Comparisons with NaN are
    # false.
    if shape == () and isinstance(reward, float) and _LEAST <= reward <= _GREATEST:
        return np.array(reward, dtype)
    array = np.asarray(reward)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"reward: got {_shorten(reward)} of type {type(reward).__name__} from "
            f"{name}, expected {_expected(shape)}; correct the second value that its "
            "step returns."
        )
    if array.shape != shape:
        remedy = (
            "return rewards of that shape from its step"
            if shape
            else "return float(reward) from its step, or give the wrapper a "
            "reward_spec if its rewards are vectors"
        )
        raise ValueError(
            f"reward: got {_shorten(reward)} of shape {array.shape} from {name}, "
            f"expected {_expected(shape)}; {remedy}."
        )
    if array.dtype.kind == "f" and not bounds.is_finite_in_float32(array):
        raise ValueError(
            f"reward: got {bounds.describe_not_finite_in_float32(array)} from {name}, "
            "expected a finite number; correct the environment's reward, or clip it "
            "in a wrapper."
        )
    return array.astype(dtype)


def _expected(shape: tuple[int, ...]) -> str:
    return f"numbers of shape {shape}" if shape else "one number"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
