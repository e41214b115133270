"""Transfer of global state to new processes, which do not inherit it."""

from __future__ import annotations

import abc
import pickle
import sys
from typing import Any

import cloudpickle


class StateSaver(abc.ABC):
    """Transfers one piece of global state from a parent process to its children."""

    @abc.abstractmethod
    def collect_state(self) -> Any:
        """Returns the state, in the parent; None if there is none."""

    @abc.abstractmethod
    def restore_state(self, state: Any) -> None:
        """Restores the state, in the child."""


class RegistryStateSaver(StateSaver):
    """Transfers the user's registrations, except for entries that cannot be pickled."""

    def collect_state(self) -> bytes | None:
        """Returns the pickled entries, in the parent; None if there are none."""
        entries = self.entries()
        if not entries:
            return None
        return _pickle(entries) or _pickle(
            {name: entry for name, entry in entries.items() if _pickle(entry)}
        )

    def restore_state(self, state: bytes) -> None:
        """Registers the entries, in the child."""
        self.register(pickle.loads(state))

    @abc.abstractmethod
    def entries(self) -> dict[str, Any]:
        """Returns the user's registrations, by name."""

    @abc.abstractmethod
    def register(self, entries: dict[str, Any]) -> None:
        """Registers entries."""


class GymnasiumStateSaver(RegistryStateSaver):
    """Transfers the environments that the user has registered with Gymnasium."""

    def entries(self) -> dict[str, Any]:
        """Returns the specs of environments outside of Gymnasium."""
        if "gymnasium" not in sys.modules:
            return {}
        registry = sys.modules["gymnasium"].envs.registration.registry
        return {
            name: spec
            for name, spec in registry.items()
            if not _module_of(spec.entry_point).startswith("gymnasium.")
        }

    def register(self, entries: dict[str, Any]) -> None:
        """Registers the specs."""
        import gymnasium

        gymnasium.registry.update(entries)


_savers: list[StateSaver] = [GymnasiumStateSaver()]


def add_state_savers(savers: Any) -> None:
    """Adds savers, whose state is sent to all children that are started later."""
    _savers.extend(saver for saver in savers or () if saver not in _savers)


def collect_states() -> list[tuple[StateSaver, Any]]:
    """Returns all savers that have a state, each with its state."""
    states = [(saver, saver.collect_state()) for saver in _savers]
    return [(saver, state) for saver, state in states if state is not None]


def restore_states(states: list[tuple[StateSaver, Any]]) -> None:
    """Restores in a child the states that `collect_states` returned in its parent."""
    for saver, state in states:
        saver.restore_state(state)


def _module_of(entry_point: Any) -> str:
    if isinstance(entry_point, str):
        return entry_point
    return getattr(entry_point, "__module__", None) or ""


def _pickle(value: Any) -> bytes | None:
    try:
        return cloudpickle.dumps(value)
    except Exception:
        return None
