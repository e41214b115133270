"""The adder of n-step transitions."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from tfrl.acme import types
from tfrl.acme.adders.reverb import base
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.replay_service import Client
    from tfrl.specs import EnvironmentSpec


class NStepTransitionAdder(base.ReverbAdder):
    """Writes a `Transition` for every step, and shorter ones at both ends.

    An item over `k` steps is

        (s_t, a_t, R, D, s_(t+k), extras_t)

    with the return and discount of `n_step_return`. `k` is `n_step` inside an
    episode. There are also shorter items: at the start, (s_0 -> s_1), (s_0 -> s_2),
    ..., as soon as their last observation is known, and at the end, (s_(T-n+1) -> s_T),
    ..., (s_(T-1) -> s_T). After a termination the discount of the items at the end is
    0. After a truncation it is not 0, so that the last observation is bootstrapped.
    """

    def __init__(
        self,
        client: Client,
        n_step: int,
        discount: Any,
        *,
        priority_fns: base.PriorityFnMapping | None = None,
        max_in_flight_items: int | None = 5,
    ) -> None:
        """Creates an adder without connecting to the server.

        Args:
          client: The client of the server.
          n_step: The number of steps of a transition.
          discount: The agent's discount, by which it discounts future rewards: a
            number, or a nest of numbers like the rewards.
          priority_fns: See `ReverbAdder`.
          max_in_flight_items: See `ReverbAdder`.

        Raises:
          ValueError: If a number is out of range.
        """
        number_checks.check_sizes(n_step=n_step)
        super().__init__(
            client, n_step + 1, max_in_flight_items, priority_fns=priority_fns
        )
        self._discount = tree.map_structure(np.float32, discount)
        self._rewards: collections.deque[Any] = collections.deque(maxlen=n_step)
        self._discounts: collections.deque[Any] = collections.deque(maxlen=n_step)

    def add_first(self, timestep: Any) -> None:
        """Starts an episode; see `ReverbAdder`."""
        self._rewards.clear()
        self._discounts.clear()
        super().add_first(timestep)

    @classmethod
    def signature(  # type: ignore[override]  # A transition has no length.
        cls, environment_spec: EnvironmentSpec, extras_spec: Any = ()
    ) -> types.Transition:
        """Returns the signature of a table for the items.

        Args:
          environment_spec: The specs of the environment, of dm_env or of tfrl.
          extras_spec: The nest of specs of the extras of a step.

        Returns:
          A `Transition` of `tf.TensorSpec`s. The shapes of reward and discount
          are broadcast as in the items.
        """
        row = base.tensor_specs(base.step_spec(environment_spec, extras_spec))
        _, (reward, discount) = broadcast_structures(row.reward, row.discount)
        transition = types.Transition(
            observation=row.observation,
            action=row.action,
            reward=tree.map_structure(_return_spec, reward, discount),
            discount=discount,
            next_observation=row.observation,
            extras=row.extras,
        )
        return base.tensor_specs(transition)

    def _append_observation(
        self, observation: Any, is_first: bool, **more: Any
    ) -> None:
        """Starts a row, with the return of the transition that leads to it."""
        if not is_first:
            assert self._last_step is not None
            self._rewards.append(_copied(self._last_step["reward"]))
            self._discounts.append(_copied(self._last_step["discount"]))
            more = self._return_of(len(self._rewards))
        super()._append_observation(observation, is_first, **more)

    def _after_observation(self) -> None:
        self._create_transition(len(self._rewards), past=0)

    def _after_episode(self) -> None:
        longest = len(self._rewards)
        for past in range(1, longest):
            # A row of its own holds the return, since the last row has one already.
            self._writer.append(self._return_of(longest - past))
            self._create_transition(longest - past, past)

    def _create_transition(self, num_steps: int, past: int) -> None:
        """Creates the item that reaches the newest observation in `num_steps` steps.

        Args:
          num_steps: The number of steps.
          past: The number of rows without an observation that follow the newest
            observation.
        """
        history = self._writer.history
        start = -1 - past - num_steps

        def at(index: int, field: str) -> Any:
            columns = history[field]
            if not tree.is_nested(columns):  # Much faster, and the usual case.
                return columns[index]
            return tree.map_structure(lambda column: column[index], columns)

        self._create_item(
            types.Transition(
                observation=at(start, "observation"),
                action=at(start, "action"),
                reward=at(-1, "n_step_return"),
                discount=at(-1, "total_discount"),
                next_observation=at(-1 - past, "observation"),
                extras=at(start, "extras") if "extras" in history else (),
            )
        )

    def _return_of(self, num_steps: int) -> dict[str, Any]:
        """Returns the fields of a row for the return of the last steps."""
        total, discount = n_step_return(
            list(self._rewards)[-num_steps:],
            list(self._discounts)[-num_steps:],
            self._discount,
        )
        return {"n_step_return": total, "total_discount": discount}


def _copied(nest: Any) -> Any:
    """Returns a nest whose arrays an environment cannot change any more."""
    if isinstance(nest, float | np.generic):
        return nest
    return tree.map_structure(np.array, nest)


def _return_spec(reward: Any, discount: Any) -> Any:
    shape = np.broadcast_shapes(tuple(reward.shape), tuple(discount.shape))
    dtype = return_dtype(reward.dtype.as_numpy_dtype, discount.dtype.as_numpy_dtype)
    return type(reward)(shape, dtype)


def n_step_return(
    rewards: Sequence[Any], discounts: Sequence[Any], gamma: Any
) -> tuple[Any, Any]:
    """Returns the discounted return and the discount of consecutive steps.

    With the rewards `r`, the discounts `d` and `g = gamma` (Sutton and Barto 2018,
    section 7.1), the return and the discount over `k` steps are

        r_0 + g d_0 r_1 + ... + g^(k-1) d_0 ... d_(k-2) r_(k-1)
        g^(k-1) d_0 ... d_(k-1)

    `trajectories.transitions` computes n-step returns from frames of a buffer, and
    `losses.n_step_returns` from sequences with values. This function uses NumPy,
    because an actor computes the return of a few numbers after each step, in the dtypes
    of its environment, and calls of TensorFlow would take longer than the sums.

    The discount has `k - 1` factors `g`, because a loss multiplies the value of the
    last observation by `g` once more. `trajectory.to_n_step_transition` has the same
    results.

    Args:
      rewards: The `k` rewards. Each is a number, an array, or a nest of them.
      discounts: The `k` discounts of the environment. If one of rewards, discounts and
        `gamma` is a nest, each of the others is a nest of the same structure or a
        single leaf. A single leaf is used for every leaf of the nest. The shapes of a
        reward and its discount are broadcast.
      gamma: The agent's discount, a number or a nest of numbers.

    Returns:
      The return and the discount, in the common structure. A discount keeps its dtype,
      and so does a reward of floats. A return of other rewards has the dtype to which
      NumPy promotes reward and discount.
    """
    if not any(map(tree.is_nested, (rewards[0], discounts[0], gamma))):
        return _of_leaf(rewards, discounts, gamma)
    parts = [*rewards, *discounts, gamma]
    structure, parts = broadcast_structures(*parts)
    k = len(rewards)
    results = [
        _of_leaf(leaf[:k], leaf[k:-1], leaf[-1])
        for leaf in zip(*map(tree.flatten, parts), strict=True)
    ]
    returns, products = zip(*results, strict=True)
    return tree.unflatten_as(structure, returns), tree.unflatten_as(structure, products)


def broadcast_structures(*nests: Any) -> tuple[Any, list[Any]]:
    """Returns the common structure of several nests, and each nest in that structure.

    Args:
      *nests: Nests of the same structure, or single leaves. A single leaf is repeated
        for every leaf of that structure.

    Raises:
      ValueError: If two nests have different structures.
    """
    structure = next((nest for nest in nests if tree.is_nested(nest)), nests[0])
    for nest in nests:
        if tree.is_nested(nest):
            tree.assert_same_structure(structure, nest)
    return structure, [
        nest
        if tree.is_nested(nest)
        else tree.map_structure(lambda _, leaf=nest: leaf, structure)
        for nest in nests
    ]


def return_dtype(reward_dtype: Any, discount_dtype: Any) -> np.dtype:
    """Returns the dtype of the return: the reward's, if the reward is of floats."""
    reward_dtype = np.dtype(reward_dtype)
    if reward_dtype.kind == "f":
        return reward_dtype
    return np.result_type(reward_dtype, discount_dtype)


def _of_leaf(rewards: Any, discounts: Any, gamma: Any) -> tuple[Any, Any]:
    gamma = np.float32(gamma)
    first, product = np.asarray(rewards[0]), np.asarray(discounts[0])
    dtype = return_dtype(first.dtype, product.dtype)
    total = first.astype(dtype) + np.zeros(product.shape, dtype)
    for reward, discount in zip(rewards[1:], discounts[1:], strict=True):
        product = product * gamma
        total = total + reward * product
        product = product * discount
    return total.astype(dtype), product.astype(np.asarray(discounts[0]).dtype)
