"""Makes modules that moved in this release importable under their old names.

A finder at the end of `sys.meta_path` resolves an old name to the module of the new
name, and emits a DeprecationWarning. The next release deletes this file.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Sequence

# Maps an old and a new package to the modules' old and new names.
_MOVES = {
    ("tfrl.agents.reinforce", "tfrl.trajectories"): {"episodes": "episodes"},
    ("tfrl.environments", "tfrl.environments.boundary"): {
        "action_arrays": "action_arrays",
        "action_tensors": "action_tensors",
        "members": "members",
        "time_step_checker": "time_step_checker",
    },
    ("tfrl.environments", "tfrl.environments.gymnasium"): {
        "gymnasium_wrapper": "wrapper",
        "headless": "headless",
        "vector_autoreset": "autoreset",
    },
    ("tfrl.environments.wrappers", "tfrl.environments.wrappers"): {
        "action_forms": "actions",
        "action_values": "actions",
    },
    ("tfrl.environments", "tfrl.environments.workers"): {
        "process_arrays": "process_arrays",
        "process_py_environment": "process_py_environment",
        "process_worker": "process_worker",
    },
    ("tfrl.policies", "tfrl.policies.saving"): {
        "saved_model": "saved_model",
        "tflite_export": "tflite_export",
    },
    ("tfrl.replay_buffers", "tfrl.replay_buffers.episodic"): {
        "episodic_arguments": "episodic_arguments",
        "episodic_reader": "episodic_reader",
        "episodic_store": "episodic_store",
    },
    ("tfrl.replay_buffers", "tfrl.compilation"): {
        "ordered_calls": "ordered_calls",
    },
    ("tfrl.replay_buffers", "tfrl.replay_buffers.ring"): {
        "packed_table": "packed_table",
        "ring_replay_buffer": "ring_replay_buffer",
        "sum_tree": "sum_tree",
    },
    ("tfrl.replay_buffers", "tfrl.replay_buffers.reverb"): {
        "reverb_contents": "reverb_contents",
        "reverb_dataset": "reverb_dataset",
        "reverb_observer": "reverb_observer",
        "reverb_rows": "reverb_rows",
    },
    ("tfrl.replay_service", "tfrl.specs"): {"specs_json": "spec_json"},
    ("tfrl.utils", "tfrl.losses"): {
        "discounting": "discounting",
        "loss_aggregation": "aggregation",
    },
    ("tfrl.utils", "tfrl.savers"): {
        "checkpointing": "checkpointing",
    },
    ("tfrl.utils", "tfrl.compilation"): {
        "host_calls": "host_calls",
        "lean_dataset": "fast_dataset",
        "lean_function": "fast_function",
        "python_threads": "python_threads",
        "substitution": "variable_substitution",
        "vectorization": "vectorized_map_converters",
        "xla_ffi": "xla_ffi",
    },
    ("tfrl.utils", "tfrl.utils.nests"): {
        "nest_batching": "batching",
        "nest_checks": "checks",
        "nest_structure": "structure",
    },
    ("tfrl.utils", "tfrl.system"): {
        "quiet": "quiet",
    },
    ("tfrl.utils.nests", "tfrl.savers"): {
        "serialization": "serialization",
    },
    ("tfrl.utils", "tfrl.specs"): {
        "spec_files": "files",
    },
}
MODULES = {
    f"{old_package}.{old}": f"{new_package}.{new}"
    for (old_package, new_package), names in _MOVES.items()
    for old, new in names.items()
}


def install() -> None:
    """Makes the old names importable; a second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds moved modules by their old names, if no other finder knows the name."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        new_name = MODULES.get(fullname)
        if new_name is None:
            return None
        warnings.warn(
            f"{fullname} is now {new_name}; import that instead. The old name goes "
            "with the next release.",
            DeprecationWarning,
            stacklevel=2,
        )
        module = importlib.import_module(new_name)
        return importlib.machinery.ModuleSpec(fullname, _Loader(module))


class _Loader(importlib.abc.Loader):
    """Returns a module that is already imported under its new name."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system has just set the module's spec to that of the old name.
        module.__spec__ = self._spec
