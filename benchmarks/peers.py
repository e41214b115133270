"""Makes and finds the peers' Python environments.

    python -m benchmarks.peers                  # makes all missing ones
    python -m benchmarks.peers tf_agents jax

They are in ~/.cache/tfrl-peers, or in the folder that the variable TFRL_PEERS names.
TF-Agents 0.19 needs Python 3.11.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence


class PeerError(RuntimeError):
    """A peer's environment is missing, or cannot be made."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A recipe for a Python environment.

    Attributes:
      installs: The arguments of each call of `pip install`, in order.
      python: The version it needs, such as "3.11"; None accepts any.
    """

    installs: tuple[tuple[str, ...], ...]
    python: str | None = None


RECIPES = {
    # Its extra for Gym's environments requires a conflicting version of pygame. It
    # trains in Gym's environments, and is evaluated in Gymnasium's.
    "tf_agents": Recipe(
        (
            ("tf-agents[reverb]==0.19.0", "gymnasium"),
            ("--no-deps", "gym==0.23.0"),
        ),
        "3.11",
    ),
    "torch": Recipe(
        (
            (
                "stable-baselines3>=2.9",
                "sb3-contrib>=2.9",
                "gymnasium[mujoco]",
                "ale-py",
                "opencv-python-headless",
                "mpe2",
                "supersuit",
            ),
        )
    ),
    # gymnax imports six without requiring it.
    "jax": Recipe((("jax", "flax", "optax", "gymnax", "six"),)),
    # It requires gymnasium 1.0, whose extra for Box2D is built from its source.
    "d3rlpy": Recipe((("d3rlpy>=2.8.1", "gymnasium[mujoco]", "box2d", "pygame"),)),
    # It is no package: these are what its code needs. JAX is of the version that it
    # requires.
    "dreamerv3": Recipe(
        (
            (
                *("jax==0.4.33", "numpy<2", "chex", "einops", "elements", "granular"),
                *("jaxtyping", "ninjax", "optax", "portal", "ruamel.yaml", "scope"),
            ),
        ),
        "3.11",
    ),
    # It requires tfp-nightly, which has no place beside the other packages.
    "sbx": Recipe((("sbx-rl>=0.28", "gymnasium[mujoco]"),)),
}


def folder() -> pathlib.Path:
    """Returns the folder of the environments."""
    named = os.environ.get("TFRL_PEERS")
    return pathlib.Path(named) if named else pathlib.Path.home() / ".cache/tfrl-peers"


def python(name: str) -> pathlib.Path:
    """Returns the path of a peer's interpreter, whether it exists or not."""
    where = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return folder().joinpath(name, *where)


def installed_python(name: str) -> pathlib.Path:
    """Returns the path of a peer's interpreter.

    Raises:
      PeerError: The peer's environment is missing.
    """
    path = python(name)
    if not path.exists():
        raise PeerError(
            f"no Python environment in {path.parent.parent}; make it with `python -m "
            f"benchmarks.peers {name}`"
        )
    return path


def make(name: str) -> None:
    """Makes a peer's environment.

    Raises:
      PeerError: The Python that it needs is missing, or pip fails.
    """
    recipe = RECIPES[name]
    target = folder() / name
    base = _find_python(recipe.python)
    try:
        subprocess.run([base, "-m", "venv", str(target)], check=True)
        for packages in recipe.installs:
            install = [str(python(name)), "-m", "pip", "install", "-q", *packages]
            subprocess.run(install, check=True)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise PeerError(f"{' '.join(error.cmd)} failed; see above") from None


def _find_python(version: str | None) -> str:
    if version is None or version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None:
        raise PeerError(
            f"it needs Python {version}, and there is no python{version} on the path; "
            "install one, or put it on the path"
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the missing environments; returns the number of failures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("peers", nargs="*", help=f"peers to make: {', '.join(RECIPES)}")
    names = parser.parse_args(arguments).peers or list(RECIPES)
    unknown = [name for name in names if name not in RECIPES]
    if unknown:
        parser.error(f"expected peers of {', '.join(RECIPES)}, got {unknown[0]}")
    failures = 0
    for name in names:
        if python(name).exists():
            print(f"{name}: is in {folder() / name}")
            continue
        print(f"{name}: making {folder() / name}", flush=True)
        try:
            make(name)
        except PeerError as error:
            failures += 1
            print(f"{name}: cannot be made: {error}", file=sys.stderr)
    return failures


if __name__ == "__main__":
    sys.exit(main())
