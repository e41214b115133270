"""Functions that build the configs of a structured writer.

`structured_writer` exports them too, as in Reverb.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.replay_service.patterns import configs as patterns

Config = patterns.Config
ConditionProto = patterns.Condition
Pattern = Any  # A nest of `patterns.PatternNode`.
ReferenceStep = Any
PatternTransform = Callable[[ReferenceStep], Pattern]


def create_reference_step(step_structure: Any) -> ReferenceStep:
    """Returns a reference step, whose leaves are indexed to make a pattern.

    Args:
      step_structure: A nest in the structure of the steps, with any leaves.

    Returns:
      A nest in the structure of the steps. Index each leaf like a list of the leaf's
      values so far: `[-1]` is the newest value, `[-3:]` are the last three values, and
      `[-5::2]` is every second of the last five values.
    """
    leaves = tree.flatten_with_path(step_structure)
    return tree.unflatten_as(
        step_structure, [_RefNode(i, path) for i, (path, _) in enumerate(leaves)]
    )


def pattern_from_transform(step_structure: Any, transform: PatternTransform) -> Pattern:
    """Returns the pattern that `transform` makes from a reference step.

    Args:
      step_structure: As for `create_reference_step`.
      transform: Takes a reference step and returns a pattern.
    """
    return transform(create_reference_step(step_structure))


def create_config(
    pattern: Pattern,
    table: str,
    conditions: Sequence[ConditionProto] = (),
    priority: patterns.Priority | None = None,
) -> Config:
    """Returns a config: a pattern of items, with their table, conditions and priority.

    Args:
      pattern: A nest whose leaves are indexed leaves of a reference step, such as
        `reference["a"][-3:]`.
      table: The name of the table.
      conditions: The conditions for creating an item, which must all hold; see
        `Condition`.
      priority: A result of `constant_priority_fn` or `td_error`; None for priority 1.

    Raises:
      TypeError: If a leaf of the pattern or a condition is of another type.
    """
    for path, node in tree.flatten_with_path(pattern):
        if not isinstance(node, patterns.PatternNode):
            raise TypeError(
                f"pattern: got {node!r} at path {path}, expected steps of a reference "
                "step's leaf, such as `reference['a'][-1]`."
            )
    for condition in conditions:
        if not isinstance(condition, ConditionProto):
            raise TypeError(
                f"conditions: got {condition!r}, expected a comparison, such as "
                "`Condition.step_index() >= 2`."
            )
    return Config(
        flat=tree.flatten(pattern),
        pattern_structure=tree.map_structure(lambda _: None, pattern),
        table=table,
        priority=constant_priority_fn(1.0) if priority is None else priority,
        conditions=list(conditions),
    )


def unpack_pattern(config: Config) -> Pattern:
    """Returns the pattern of a config."""
    return tree.unflatten_as(config.pattern_structure, config.flat)


def infer_signature(configs: Sequence[Config], step_spec: Any) -> Any:
    """Returns the signature of the table that `configs` write to.

    Args:
      configs: All configs of the table.
      step_spec: A nest of arrays or specs, in the structure of the steps.

    Returns:
      A nest of `tf.TensorSpec` with the structure of the pattern. The first dimension
      of a leaf is None if the configs have different numbers of steps for this leaf.

    Raises:
      ValueError: If there is no config, the configs differ in other ways, or they do
        not fit the steps.
    """
    if not configs:
        raise ValueError("At least one config must be provided.")
    first = configs[0]
    if any(c.pattern_structure != first.pattern_structure for c in configs):
        raise ValueError("All configs must have exactly the same pattern_structure.")
    if any(config.table != first.table for config in configs):
        tables = ", ".join(sorted({config.table for config in configs}))
        raise ValueError(
            "All configs must target the same table but provided configs included "
            f"{tables}."
        )
    leaves = tree.flatten(step_spec)
    last = max(node.flat_source_index for config in configs for node in config.flat)
    if last >= len(leaves):
        raise ValueError(
            f"step_spec: got {len(leaves)} leaves, but the configs use leaf {last} "
            "(from 0); make their patterns from a structure like step_spec's."
        )

    def merge(path: tuple[Any, ...], *nodes: patterns.PatternNode) -> Any:
        return _merged_spec(path, nodes, leaves)

    return tree.map_structure_with_path(merge, *map(unpack_pattern, configs))


class Condition:
    """Values that are compared with a number to create a condition.

    The operators `==`, `!=`, `<`, `<=`, `>` and `>=` create a condition. After
    `% number`, only `==` and `!=` do: `Condition.step_index() % 3 == 0`.
    """

    @staticmethod
    def step_index() -> _ConditionBuilder:
        """Returns the number of the newest step in its episode, from 0."""
        return _ConditionBuilder(step_index=True)

    @staticmethod
    def steps_since_applied() -> _ConditionBuilder:
        """Returns the number of steps since the config's last item, or of all steps."""
        return _ConditionBuilder(steps_since_applied=True)

    @staticmethod
    def is_end_episode() -> ConditionProto:
        """Returns a condition that holds when `end_episode` is called."""
        return ConditionProto(is_end_episode=True, eq=1)

    @staticmethod
    def data(step_structure: Any) -> Any:
        """Returns the newest step's leaves; integers and booleans can be compared.

        Args:
          step_structure: As for `create_reference_step`.

        Returns:
          A nest in the structure of the steps. A comparison is false if the leaf has no
          value in the newest step.
        """
        builders = [
            _ConditionBuilder(flat_source_index=i)
            for i in range(len(tree.flatten(step_structure)))
        ]
        return tree.unflatten_as(step_structure, builders)


def constant_priority_fn(value: float) -> patterns.Priority:
    """Returns a constant priority for all items.

    Args:
      value: The priority.

    Raises:
      ValueError: If the priority is below 0 or not finite.
    """
    return patterns.Priority(constant_fn=patterns.ConstantPriorityFn(value))


def td_error(
    max_priority_weight: float,
    step_structure: Any,
    get_field_from_step_fn: Callable[[Any], Any],
) -> patterns.Priority:
    """Returns a priority that is computed from the errors of an item's steps.

    The priority is `w max(|error|) + (1 - w) mean(|error|)`, as in R2D2 (Kapturowski et
    al. 2019, https://openreview.net/pdf?id=r1lyTjAqYX, section 2.3).

    Args:
      max_priority_weight: The weight `w` of the maximum.
      step_structure: As for `create_reference_step`.
      get_field_from_step_fn: Takes a nest in the structure of the steps, and returns
        the leaf that holds the error, which is one number per step. The pattern must
        contain this leaf. If it contains the leaf several times, the last one is used.

    Raises:
      ValueError: If the weight is below 0 or not finite.
    """
    num_leaves = len(tree.flatten(step_structure))
    indices = tree.unflatten_as(step_structure, list(range(num_leaves)))
    return patterns.Priority(
        td_error=patterns.TDError(max_priority_weight, get_field_from_step_fn(indices))
    )


class _RefNode:
    """A leaf of a reference step. Indexing it returns a node of a pattern."""

    def __init__(self, index: int, path: tuple[Any, ...]) -> None:
        self._index = index
        self._path = path

    def __getitem__(self, key: int | slice) -> patterns.PatternNode:
        """Returns the steps that `key` selects, counted back from the newest."""
        if isinstance(key, int | np.integer):
            key = slice(int(key))
        elif not isinstance(key, slice):
            raise ValueError(f"Key must be int or slice but got {key} ({type(key)}).")
        try:
            return patterns.PatternNode(
                self._index,
                *(
                    None if part is None else operator.index(part)
                    for part in (key.start, key.stop, key.step)
                ),
            )
        except ValueError as error:
            raise ValueError(f"At path {self._path}: {error}") from None


def _merged_spec(
    path: tuple[Any, ...],
    nodes: Sequence[patterns.PatternNode],
    leaves: Sequence[Any],
) -> Any:
    import tensorflow as tf

    dtypes = [leaves[node.flat_source_index].dtype for node in nodes]
    if any(dtype != dtypes[0] for dtype in dtypes):
        raise ValueError(
            f"Configs produce trajectories with multiple dtypes at {path}. Got "
            f"{dtypes}."
        )
    shapes = [
        tf.TensorShape([] if node.is_squeezed else [len(node.ages)]).concatenate(
            leaves[node.flat_source_index].shape
        )
        for node in nodes
    ]
    shape = shapes[0]
    if any(s.rank != shape.rank or s[1:] != shape[1:] for s in shapes[1:]):
        raise ValueError(
            f"Configs produce trajectories with incompatible shapes at {path}. Got "
            f"{shapes}."
        )
    if any(other != shape for other in shapes[1:]):
        shape = tf.TensorShape([None]).concatenate(shape[1:])
    return tf.TensorSpec(shape, dtypes[0], name="/".join(str(part) for part in path))


class _ConditionBuilder:
    """A value whose comparison creates a condition, optionally modulo a number."""

    __hash__ = None  # type: ignore[assignment]  # `==` creates a condition.

    def __init__(self, mod: int | None = None, **value: Any) -> None:
        self._mod = mod
        self._value = value

    def __mod__(self, number: int) -> _ConditionBuilder:
        return _ConditionBuilder(operator.index(number), **self._value)

    def __eq__(self, number: int) -> ConditionProto:  # type: ignore[override]
        return self._equals(number, inverse=False)

    def __ne__(self, number: int) -> ConditionProto:  # type: ignore[override]
        return self._equals(number, inverse=True)

    def __ge__(self, number: int) -> ConditionProto:
        return self._at_least(operator.index(number), inverse=False)

    def __gt__(self, number: int) -> ConditionProto:
        return self._at_least(operator.index(number) + 1, inverse=False)

    def __lt__(self, number: int) -> ConditionProto:
        return self._at_least(operator.index(number), inverse=True)

    def __le__(self, number: int) -> ConditionProto:
        return self._at_least(operator.index(number) + 1, inverse=True)

    def _equals(self, number: int, inverse: bool) -> ConditionProto:
        number = operator.index(number)
        if self._mod is None:
            return ConditionProto(eq=number, inverse=inverse, **self._value)
        mod_eq = patterns.ModuloEq(mod=self._mod, eq=number)
        return ConditionProto(mod_eq=mod_eq, inverse=inverse, **self._value)

    def _at_least(self, number: int, inverse: bool) -> ConditionProto:
        if self._mod is not None:
            raise ValueError(
                f"A value modulo {self._mod} was compared with <, <=, > or >=; use == "
                "or !=, in several configs if necessary."
            )
        return ConditionProto(ge=number, inverse=inverse, **self._value)
