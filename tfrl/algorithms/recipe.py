"""What a run is made by, as a value that commands, processes and folders hand on."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from tfrl.algorithms import presets, registry
from tfrl.train.runs import run_length

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder

# The fields of its JSON that are no settings, and what they are.
_KINDS: dict[str, tuple[type, str]] = {
    "algorithm": (str, "a name"),
    "env": (str, "a name"),
    "num_environment_steps": (int, "a number"),
    "schedule_iterations": (int, "a number"),
    "env_options": (dict, "options"),
    "initial_run": (str, "a folder"),
    "own_parts": (str, "names"),
    "actors": (dict, "settings"),
}
FIELDS = tuple(_KINDS)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """An algorithm, its environment and settings, and the length of its run.

    ```python
    recipe = Recipe.of(tfrl.DQN, "CartPole-v1").changed(gamma=0.9)
    recipe.make().learn()
    ```

    Attributes:
      algorithm: The class.
      environment: The environment's name; empty if it has none.
      settings: The values of all settings, by name, and of the environment's options
        that are not at their defaults.
      num_environment_steps: The length of the run; None for `num_iterations`.
      schedule_iterations: The iterations that schedules span; None for those of the
        run.
      initial_run: The folder of the run with whose last weights this one begins.
      own_parts: The names of a program's own parts; see `Algorithm.own_parts`.
      actors: For a run with actors in processes, its `experiments.actors.ActorSettings`
        with its `num_shards` and `schedule`; None for a run in one process.
    """

    algorithm: type[Builder]
    environment: str
    settings: Mapping[str, Any]
    num_environment_steps: int | None = None
    schedule_iterations: int | None = None
    initial_run: str | None = None
    own_parts: str = ""
    actors: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls,
        algorithm: type[Builder],
        environment: str = "",
        preset: str = "",
        *,
        has_actors: bool = False,
    ) -> Self:
        """Returns the recipe of a preset, or of an environment's usual settings.

        Args:
          algorithm: The class.
          environment: The environment; empty for that of the preset or the algorithm.
          preset: The preset's name; empty for the environment's preset.
          has_actors: Whether to look for a preset for runs with actors, too.

        Raises:
          ValueError: There is no such preset, or it is for another algorithm.
        """
        if preset and not environment:
            row = presets.named(preset, algorithm.name, algorithm.relative)
            environment = row.environment
        environment = environment or algorithm.environment_name
        if has_actors and not preset:
            found = presets.find_with_actors(algorithm.name, environment)
            preset = found.name if found else ""
        made = algorithm(environment, preset=preset)
        usual = made.preset and made.preset.actors
        return dataclasses.replace(cls.of_algorithm(made), actors=usual or None)

    @classmethod
    def of_algorithm(cls, made: Builder) -> Self:
        """Returns the recipe of an algorithm, with its length so far."""
        length, schedule = made.length, made.schedule_iterations
        iterations = length.num_iterations or schedule
        initial = made.initial_run
        return cls(
            type(made),
            made.world.name,
            {**made.settings, "num_iterations": iterations},
            length.num_environment_steps,
            schedule if iterations != schedule else None,
            str(initial) if initial else None,
            made.own_parts(),
        )

    @classmethod
    def from_json(
        cls, fields: Mapping[str, Any], algorithm: type[Builder] | None = None
    ) -> Self:
        """Returns the recipe of the fields of a JSON object; see `to_json`.

        Fields that are no settings of the algorithm are ignored, and settings that are
        missing have their defaults. `make` checks the values.

        Args:
          fields: The fields.
          algorithm: The class; None for that of the name `algorithm`.

        Raises:
          ValueError: There is no algorithm of this name, or a field that is no setting
            has another type.
        """
        kind = algorithm or registry.find(registry.name_of(fields))
        for name, (of, text) in _KINDS.items():
            if not isinstance(value := fields.get(name), of | None):
                raise ValueError(f"{name}: expected {text}, got {value!r}; restore it.")
        known = kind.run_fields().keys() & fields.keys()
        return cls(
            kind,
            fields.get("env") or "",
            {
                **kind.defaults(),
                **{name: fields[name] for name in known},
                **(fields.get("env_options") or {}),
            },
            fields.get("num_environment_steps"),
            fields.get("schedule_iterations"),
            fields.get("initial_run") or None,
            fields.get("own_parts") or "",
            fields.get("actors"),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns its fields, valid in JSON, as the config.json of a run holds them."""
        initial = self.initial_run
        own = self.algorithm.setting_fields()
        settings = {name: x for name, x in self.settings.items() if name in own}
        # Apart, since a reader may know no suite with such options.
        options = {name: x for name, x in self.settings.items() if name not in own}
        further = {
            "env_options": options or None,
            "num_environment_steps": self.num_environment_steps,
            "schedule_iterations": self.schedule_iterations,
            # It is the same folder wherever the program is started again.
            "initial_run": str(pathlib.Path(initial).resolve()) if initial else None,
            "actors": None if self.actors is None else dict(self.actors),
        }
        return {
            "algorithm": self.algorithm.name,
            "env": self.environment,
            **settings,
            "own_parts": self.own_parts,
            **{name: x for name, x in further.items() if x is not None},
        }

    @property
    def length(self) -> run_length.RunLength:
        """The length of the run."""
        steps = self.num_environment_steps
        iterations = None if steps else self.settings["num_iterations"]
        return run_length.RunLength(iterations, steps)

    def with_length_of(self, other: Recipe) -> Self:
        """Returns the recipe of a run as long as another one."""
        iterations = other.settings["num_iterations"]
        return dataclasses.replace(
            self,
            settings={**self.settings, "num_iterations": iterations},
            num_environment_steps=other.num_environment_steps,
            schedule_iterations=other.schedule_iterations,
        )

    def changed(
        self,
        *,
        environment: str | None = None,
        initial_run: str | None = None,
        num_environment_steps: int | None = None,
        **settings: Any,
    ) -> Self:
        """Returns the recipe with other values, checked; logs those that do nothing.

        Args:
          environment: Another environment; None for this one.
          initial_run: Another initial run; None for this one.
          num_environment_steps: Another length; None for this one, or for the
            `num_iterations` among the settings.
          **settings: Other values of settings.

        Raises:
          TypeError: A value is not a number.
          ValueError: A value is out of its range, or values cannot be combined.
        """
        base, steps = self, num_environment_steps
        if "num_iterations" in settings:
            if steps is not None:
                raise ValueError(
                    f"num_environment_steps: got {steps}, and "
                    f"{settings['num_iterations']} num_iterations; give one of them."
                )
            base = dataclasses.replace(
                base, num_environment_steps=None, schedule_iterations=None
            )
        elif steps is None:
            steps = self.num_environment_steps
        name = environment or self.environment or self.algorithm.environment_name
        given = {} if initial_run is None else {"initial_run": initial_run}
        made = base.make(name, environment_name=name, **given, **settings)
        if steps is not None:
            made.train_for(steps)
        return dataclasses.replace(self.of_algorithm(made), actors=self.actors)

    def make(self, environment: Any = None, **arguments: Any) -> Builder:
        """Makes the algorithm, and checks its settings.

        Args:
          environment: The environment to train in; None for the one of the name.
          **arguments: Further arguments of the algorithm.

        Raises:
          TypeError: A value is not a number.
          ValueError: There is no environment, or a value is out of its range, or values
            cannot be combined.
        """
        if environment is None and not self.environment:
            raise ValueError(
                "environment: got none, and the run trained in one without a name; "
                "give the environment."
            )
        given: dict[str, Any] = {
            "environment_name": self.environment,
            "initial_run": self.initial_run,
            "settings": self.settings,
            **arguments,
        }
        made = self.algorithm(
            self.environment if environment is None else environment, **given
        )
        made.schedule_over(self.schedule_iterations)
        if self.num_environment_steps is not None or self.schedule_iterations:
            made.length = self.length
        return made
