"""Wrappers: dm_env environments that change another environment's steps.

`GymWrapper` and `GymAtariAdapter` turn Gymnasium's environments into dm_env
environments; `tfrl.environments.PyToDMWrapper` does so for a `PyEnvironment`.
`AtariWrapper` has the usual preprocessing of Atari games. All wrappers begin their
episodes themselves, and keep dm_env's contract: a step after a LAST step is a FIRST
step without reward and discount.

`tfrl.environments.wrappers` has the wrappers of `PyEnvironment`s, which the training
loops take; `tfrl.environments.DmEnvWrapper` turns a dm_env environment into a
`PyEnvironment`.

>>> import gymnasium
>>> from tfrl.acme import make_environment_spec, wrappers
>>> environment = wrappers.wrap_all(
...     wrappers.GymWrapper(gymnasium.make("Pendulum-v1")),
...     [
...         wrappers.CanonicalSpecWrapper,
...         lambda e: wrappers.StepLimitWrapper(e, step_limit=3),
...         wrappers.SinglePrecisionWrapper,
...     ],
... )
>>> spec = make_environment_spec(environment)
>>> spec.actions.minimum, spec.actions.maximum
(array([-1.], dtype=float32), array([1.], dtype=float32))
>>> timestep = environment.reset()
>>> for _ in range(3):
...     timestep = environment.step([0.5])
>>> timestep.step_type, float(timestep.discount)
(<StepType.LAST: 2>, 1.0)
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
