"""Names of other libraries that have moved or are gone, by their canonical names."""

from __future__ import annotations

from tfrl.migrate import names


def _pairs(text: str, old: str, new: str = "") -> dict[str, str]:
    """Returns a table from words such as old=new, and the patterns of the full names.

    Without another pattern the new names have that of the old ones.
    """
    pairs = (word.partition("=") for word in text.split())
    return {old.format(x): (new or old).format(y or x) for x, _, y in pairs}


KERAS = {
    **_pairs(
        "mean_squared_error=MSE mean_absolute_error=MAE kl_divergence=KLD "
        "mean_absolute_percentage_error=MAPE mean_squared_logarithmic_error=MSLE "
        "log_cosh=logcosh",
        "keras.losses.{}",
    ),
    **_pairs(
        "AUTO=sum_over_batch_size SUM_OVER_BATCH_SIZE=sum_over_batch_size SUM=sum "
        "NONE=none",
        "keras.losses.Reduction.{}",
        '"{}"',
    ),
    "keras.optimizers.legacy": "keras.optimizers",
    "keras.layers.experimental.preprocessing": "keras.layers",
    "keras.layers.core": "keras.layers",
}
TENSORFLOW = {
    # What tf.compat.v1 still has of TensorFlow 1, and works without sessions.
    **_pairs(
        "train.AdamOptimizer train.GradientDescentOptimizer train.RMSPropOptimizer "
        "train.MomentumOptimizer train.AdagradOptimizer train.AdadeltaOptimizer "
        "train.get_or_create_global_step train.get_global_step app flags logging gfile "
        "train.create_global_step train.exponential_decay train.piecewise_constant "
        "enable_v2_behavior enable_eager_execution enable_resource_variables to_float "
        "to_int32 to_int64 assign assign_add assign_sub div",
        "tensorflow.{}",
        "tensorflow.compat.v1.{}",
    ),
    **_pairs(
        "log=math.log ceil=math.ceil erf=math.erf lgamma=math.lgamma mul=multiply "
        "count_nonzero=math.count_nonzero is_nan=math.is_nan mod=math.floormod "
        "set_random_seed=random.set_seed random_uniform=random.uniform "
        "random_normal=random.normal check_numerics=debugging.check_numerics "
        "matrix_diag=linalg.diag",
        "tensorflow.{}",
    ),
    "keras.losses.huber_loss": "tensorflow.compat.v1.losses.huber_loss",
}
NUMPY = {
    **_pairs("float int object str complex unicode=str", "numpy.{}", "builtins.{}"),
    **_pairs(
        "float_=float64 complex_=complex128 product=prod cumproduct=cumprod "
        "alltrue=all sometrue=any in1d=isin trapz=trapezoid round_=round mat=asmatrix "
        "Inf=inf Infinity=inf infty=inf PINF=inf NaN=nan NAN=nan string_=bytes_ "
        "unicode_=str_ bool8=bool_ object0=object_ int0=intp uint0=uintp",
        "numpy.{}",
    ),
    "numpy.NINF": "-numpy.inf",
}
GYM = _pairs(
    "wrappers.FrameStack=wrappers.FrameStackObservation "
    "wrappers.GrayScaleObservation=wrappers.GrayscaleObservation "
    "envs.registry.env_specs=envs.registry "
    "envs.registration.registry.env_specs=envs.registration.registry",
    "gymnasium.{}",
)
# Packages that came with TF-Agents or Acme, and are not those of tfrl.
PACKAGES = {"gin": "gin-config", "sonnet": "dm-sonnet", "trfl": "trfl"}
_SESSIONS = "TensorFlow 2 has no sessions: call functions eagerly, or as a tf.function."
_NOT_IN_V2 = (
    "Session InteractiveSession placeholder global_variables_initializer "
    "local_variables_initializer disable_v2_behavior disable_eager_execution "
    "disable_resource_variables get_default_session ConfigProto "
    "train.MonitoredSession train.MonitoredTrainingSession"
)
# What a person must write otherwise, by canonical names or what they begin with.
_REMARKS = {
    **{
        f"tensorflow.{prefix}{name}": f"tf.{prefix}{name}: {_SESSIONS}"
        for name in _NOT_IN_V2.split()
        for prefix in ("", "compat.v1.")
    },
    "tensorflow.contrib": "tf.contrib is gone: use the layers and losses of Keras.",
    "tensorflow.layers": "tf.layers is gone: use keras.layers.",
    "tensorflow.compat.v1.layers": "tf.compat.v1.layers is gone: use keras.layers.",
    "tensorflow.estimator": "tf.estimator is gone: train in a loop of tfrl.train.",
    "keras.layers.DenseFeatures": (
        "DenseFeatures is gone from Keras 3: use keras.layers.StringLookup and "
        "keras.layers.CategoryEncoding, or keras.utils.FeatureSpace."
    ),
    "keras.backend.set_session": f"set_session is gone: {_SESSIONS}",
    "keras.backend.get_session": f"get_session is gone: {_SESSIONS}",
    "keras.backend.function": "K.function is gone: use a keras.Model of the outputs.",
    "gymnasium.wrappers.Monitor": (
        "gym.wrappers.Monitor is gone: use gymnasium.wrappers.RecordVideo, and "
        'render_mode="rgb_array" in gym.make.'
    ),
    "gymnasium.wrappers.monitoring": (
        "gym.wrappers.monitoring is gone: use gymnasium.wrappers.RecordVideo."
    ),
    "gymnasium.GoalEnv": "gym.GoalEnv is gone: use gymnasium_robotics.core.GoalEnv.",
    "gymnasium.vector.make": "gym.vector.make is gone: use gymnasium.make_vec.",
    "gymnasium.spaces.prng": "gym.spaces.prng is gone: seed each space, space.seed(0).",
    "gymnasium.envs.classic_control.rendering": (
        "gym's viewer is gone: draw with pygame, and return the frame."
    ),
    "gymnasium.envs.toy_text.discrete": (
        "gym's DiscreteEnv is gone: write the environment as a gymnasium.Env."
    ),
    "gymnasium.utils.seeding.hash_seed": (
        "hash_seed is gone: seeding.np_random(seed) needs no hash."
    ),
    "gymnasium.logger.set_level": (
        "set_level is gone: set gymnasium.logger.min_level."
    ),
    "numpy.math": "np.math is gone: import math.",
    "numpy.asfarray": "np.asfarray is gone: use np.asarray(x, dtype=float).",
    "numpy.find_common_type": "np.find_common_type is gone: use np.result_type.",
    "numpy.asscalar": "np.asscalar is gone: use x.item().",
    "numpy.msort": "np.msort is gone: use np.sort(x, axis=0).",
    "numpy.sctypes": "np.sctypes is gone: write the dtypes.",
    "numpy.cast": "np.cast is gone: use np.asarray(x, dtype=...).",
    "gin.tf.external_configurables": "gin.tf needs tf.estimator: delete this import.",
    "mujoco_py": "mujoco_py is gone: Gymnasium's environments use mujoco.",
    "launchpad": "Launchpad's programs: tfrl.distribute runs actors and a learner.",
}


def remark(name: str) -> str | None:
    """Returns what a person must write otherwise for a canonical name, or None."""
    found = (_REMARKS[part] for part in names.prefixes(name) if part in _REMARKS)
    return next(found, None)
