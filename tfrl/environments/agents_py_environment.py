"""`AgentsPyEnvironment`: the agents of PettingZoo's environments as a batch."""

from __future__ import annotations

import collections
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.environments import batches, joint_spaces, py_environment
from tfrl.environments.boundary import action_arrays
from tfrl.specs.gym_spaces import spec_from_gym_space
from tfrl.trajectories import time_step as ts

_LATEST = 10  # Episodes whose returns are averaged, as in a run's log.


class AgentsPyEnvironment(batches.EnvironmentBatch):
    """Several agents that one policy acts for, as the members of a batch `[B, ...]`.

    It takes PettingZoo's parallel environments, in which all agents act at once. The
    members are the agents of the first environment, then those of the second one, and
    so on. Each has its own observations, rewards and ends.

    An agent that ends before the others repeats its LAST step, with a reward of 0,
    until its environment begins again. Such frames are boundaries, which losses and
    metrics leave out, and so are those in which an environment is reset: that is the
    step after the last of its agents has ended.

    Spaces that differ are joined; see `joint_spaces.JointSpaces`. In observations that
    are no dicts, the agent's own part is then `observation`, beside `agent`, its
    number as a one-hot vector, and masks of actions that only other agents have.

    Its state cannot be saved: a resumed run begins new episodes.
    """

    def __init__(
        self,
        envs: Sequence[Any],
        discount: float = 1.0,
        *,
        agent_numbers: bool = False,
        shared_state: bool = False,
    ) -> None:
        """Creates the batch.

        Args:
          envs: Equal parallel environments, such as `mpe2.simple_spread_v3`'s
            `parallel_env()`, which must not be used directly from then on.
          discount: The discount of every step but the first and a termination.
          agent_numbers: Whether observations have the part `agent` in any case.
          shared_state: Whether critics see `state()` and the agent's number instead of
            its observation, as in Yu et al., "The surprising effectiveness of PPO in
            cooperative multi-agent games" (2022, arXiv:2103.01955).

        Raises:
          ValueError: The agents' spaces cannot be joined, or there is no environment,
            or no state.
        """
        super().__init__(handle_auto_reset=False)
        if not envs:
            raise ValueError(
                "envs: got none, expected at least one parallel environment; give some."
            )
        self._envs = list(envs)
        first = self._envs[0]
        self._agents = list(first.possible_agents)
        self._batch_size = len(self._envs) * len(self._agents)
        self._name = str(first.metadata.get("name") or type(first.unwrapped).__name__)
        spaces = [
            [space_of(agent) for agent in self._agents]
            for space_of in (first.observation_space, first.action_space)
        ]
        self._has_masks = joint_spaces.has_own_mask(spaces[0][0])
        self._shares_state = shared_state
        self._joint = joint_spaces.JointSpaces(
            *spaces,
            sees_number=agent_numbers,
            state_size=self._size_of_state() if shared_state else None,
        )
        self._time_step_spec = ts.time_step_spec(
            spec_from_gym_space(self._joint.observation_space, name="observation")
        )
        self._action_spec = spec_from_gym_space(self._joint.action_space, name="action")
        self._check_action = action_arrays.ActionChecker(
            self._name, self._action_spec, (self._batch_size,)
        )
        self._discount = discount
        self._seeds: list[int | None] = [None] * len(self._envs)
        self._infos: list[dict[str, Any]] = [{} for _ in self._envs]
        # What each member has seen last.
        self._seen: list[Any] = [None] * self._batch_size
        # The returns of the running episodes, and of the latest ended ones, `[agents]`.
        self._sums = np.zeros([len(self._envs), len(self._agents)])
        self._ended: collections.deque[np.ndarray] = collections.deque(maxlen=_LATEST)

    @property
    def envs(self) -> list[Any]:
        """The parallel environments."""
        return self._envs

    @property
    def agents(self) -> list[str]:
        """The names of an environment's agents, in the order of the members."""
        return list(self._agents)

    @property
    def render_mode(self) -> str | None:
        """How the environments draw, such as "rgb_array"; None if they do not."""
        mode: str | None = getattr(self._envs[0], "render_mode", None)
        return mode

    def seed(self, seed: int) -> int:
        """Seeds environment `i` with `seed + i` at the next `reset`. Returns `seed`."""
        self._seeds = [int(seed) + i for i in range(len(self._envs))]
        return int(seed)

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute in all environments; see `PyEnvironment.change`."""
        for env in self._envs:
            target = env if hasattr(env, name) else env.unwrapped
            py_environment.change_attribute(target, name, value, calls=calls)

    def get_state(self) -> Any:
        """Raises a NotImplementedError: PettingZoo's environments have no states.

        Raises:
          NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"{self._name}: PettingZoo's environments cannot save their states; "
            "training that resumes begins new episodes."
        )

    def get_info(self) -> list[dict[str, Any]]:
        """Returns the latest infos of each environment, by the names of its agents."""
        return self._infos

    def mean_returns(self) -> dict[str, float]:
        """Returns the mean returns of the last ten episodes, by agents' names.

        The key "team" has the mean of the agents' sums. All are not a number before an
        episode has ended.
        """
        each = np.full(len(self._agents), np.nan)
        if self._ended:
            each = np.mean(self._ended, axis=0)
        named = {name: float(x) for name, x in zip(self._agents, each, strict=True)}
        return {**named, "team": float(each.sum())}

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns the picture of each member's environment, `[B, height, width, 3]`.

        Raises:
          ValueError: The environments were made for another render mode.
        """
        if mode != self.render_mode:
            raise ValueError(
                f"render: got mode {mode!r}, expected {self.render_mode!r}, for which "
                f"the environments were made; make them with render_mode={mode!r}."
            )
        pictures = [env.render() for env in self._envs]
        if mode == "human":
            return None
        return np.repeat(np.stack(pictures), len(self._agents), axis=0)

    def close(self) -> None:
        """Closes the environments."""
        for env in self._envs:
            env.close()

    def _size_of_state(self) -> int:
        """Returns the numbers of the state that critics see."""
        first = self._envs[0]
        space = getattr(first, "state_space", None)
        if space is not None:
            return math.prod(space.shape)
        first.reset()
        try:
            return int(np.size(first.state()))
        except NotImplementedError as error:
            raise ValueError(
                f"shared_state: got True for {self._name}, which has no state(), "
                "expected False; critics then see the agents' observations."
            ) from error

    def _reset(self) -> ts.TimeStep:
        parts = [self._begin(number) for number in range(len(self._envs))]
        return self._stacked(parts)

    def _step(self, action: Any) -> ts.TimeStep:
        flat = self._check_action(action)
        actions = batches.unstack_actions(tree.unflatten_as(self._action_spec, flat))
        size = len(self._agents)
        parts = []
        for number, env in enumerate(self._envs):
            own = actions[number * size : (number + 1) * size]
            acts = env.agents
            parts.append(self._act(number, own) if acts else self._begin(number))
        return self._stacked(parts)

    def _begin(self, number: int) -> list[tuple[Any, ...]]:
        """Resets an environment; returns the steps of its agents."""
        env, seed = self._envs[number], self._seeds[number]
        self._seeds[number] = None
        self._sums[number] = 0.0
        observations, self._infos[number] = env.reset(seed=seed)
        state = self._state(env)
        kinds = [
            ts.StepType.FIRST if agent in observations else ts.StepType.LAST
            for agent in self._agents
        ]
        return [
            self._after(number, i, observations, state, kind, 0.0, 1.0)
            for i, kind in enumerate(kinds)
        ]

    def _act(self, number: int, actions: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Steps an environment; returns the steps of its agents."""
        env = self._envs[number]
        acting = set(env.agents)
        result = env.step(
            {
                agent: self._joint.action(i, action)
                for i, (agent, action) in enumerate(
                    zip(self._agents, actions, strict=True)
                )
                if agent in acting
            }
        )
        observations, rewards, terminated, truncated, self._infos[number] = result
        state = self._state(env)
        steps = []
        for i, agent in enumerate(self._agents):
            if agent in acting:
                ends = terminated.get(agent, False), truncated.get(agent, False)
                kind = ts.StepType.LAST if any(ends) else ts.StepType.MID
                discount = 0.0 if ends[0] else self._discount
                reward = rewards.get(agent, 0.0)
                self._sums[number, i] += reward
            else:
                joins = agent in env.agents and agent in observations
                kind = ts.StepType.FIRST if joins else ts.StepType.LAST
                reward, discount = 0.0, 1.0
            steps.append(
                self._after(number, i, observations, state, kind, reward, discount)
            )
        if not env.agents:
            self._ended.append(self._sums[number].copy())
        return steps

    def _after(
        self,
        number: int,
        i: int,
        observations: Mapping[str, Any],
        state: Any,
        kind: Any,
        reward: float,
        discount: float,
    ) -> tuple[Any, ...]:
        """Returns the step type, reward, discount and observation of an agent.

        An agent without an observation sees what it has seen last.
        """
        member, agent = number * len(self._agents) + i, self._agents[i]
        if agent in observations:
            seen = observations[agent]
            if self._has_masks:
                seen = joint_spaces.mended_mask(seen)
            self._seen[member] = self._joint.observation(i, seen, state)
        elif self._seen[member] is None:
            self._seen[member] = tree.map_structure(
                lambda spec: np.zeros(spec.shape, spec.dtype), self.observation_spec()
            )
        return kind, reward, discount, self._seen[member]

    def _state(self, env: Any) -> np.ndarray | None:
        if not self._shares_state:
            return None
        return np.ravel(np.asarray(env.state(), np.float32))

    def _stacked(self, parts: Sequence[Sequence[tuple[Any, ...]]]) -> ts.TimeStep:
        """Returns the steps of all agents of all environments as a batch."""
        kinds, rewards, discounts, observations = zip(
            *(step for part in parts for step in part), strict=True
        )
        return ts.TimeStep(
            np.asarray(kinds, np.int32),
            np.asarray(rewards, np.float32),
            np.asarray(discounts, np.float32),
            tree.map_structure(
                lambda spec, *each: np.stack(each).astype(spec.dtype, copy=False),
                self.observation_spec(),
                *observations,
            ),
        )


def find(environment: Any) -> AgentsPyEnvironment | None:
    """Returns the agents' environment in an environment and its wrappers, or None."""
    found = getattr(environment, "pyenv", environment)
    while found is not None and not isinstance(found, AgentsPyEnvironment):
        wrapped = getattr(found, "wrapped_env", None)
        found = wrapped() if callable(wrapped) else None
    return found
