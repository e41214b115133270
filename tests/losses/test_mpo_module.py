"""MPO's losses: the numbers of Acme 0.4, and who gets gradients of what."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl import losses

tfd = tfp.distributions
SETTINGS = {
    "epsilon": 0.1,
    "epsilon_mean": 1e-2,
    "epsilon_stddev": 1e-3,
    "init_log_temperature": 0.5,
    "init_log_alpha_mean": 1.0,
    "init_log_alpha_stddev": 2.0,
}
# Four actions of three states, with two dimensions.
INDEX = np.arange(6).reshape(3, 2)
ACTIONS = 1.5 * np.sin(np.arange(24).reshape(4, 3, 2))
MEAN, STDDEV = np.cos(INDEX), 0.5 + 0.1 * INDEX
TARGET_MEAN, TARGET_STDDEV = 0.9 * np.cos(INDEX + 0.1), 0.8 - 0.05 * INDEX


def q_values(*objectives):
    shape = [4, 3, *objectives]
    return tf.constant(
        2 * np.cos(3 * np.arange(np.prod(shape))).reshape(shape), "float32"
    )


def evaluate(module, q=None, make=tfd.MultivariateNormalDiag):
    """Returns the loss, the statistics, and the gradients of all inputs."""
    q = q_values() if q is None else q
    parts = [
        tf.constant(x, tf.float32)
        for x in (MEAN, STDDEV, TARGET_MEAN, TARGET_STDDEV, ACTIONS)
    ]
    with tf.GradientTape() as tape:
        tape.watch([*parts, q])
        mean, stddev, target_mean, target_stddev, actions = parts
        loss, stats = module(
            make(mean, stddev), make(target_mean, target_stddev), actions, q
        )
    variables = module.trainable_variables
    gradients = tape.gradient(loss, [*parts, q, *variables])
    names = ["mean", "stddev", "target_mean", "target_stddev", "actions", "q"]
    names += [variable.name.split(":")[0] for variable in variables]
    return float(loss), stats, dict(zip(names, gradients, strict=True))


# From acme.tf.losses.MPO of dm-acme 0.4.0, run on the same numbers. Its two
# temperatures are two variables.
GRADIENT_OF_MEAN = [
    [1.589796, -0.310028],
    [-2.494188, -2.835834],
    [-0.045246, 3.661259],
]
GRADIENT_OF_STDDEV = [
    [-11.642836, -0.705425],
    [-6.04474, -2.543745],
    [0.964287, -0.895565],
]
TEMPERATURES = [-0.287023, -0.001778]


@pytest.mark.parametrize(
    ("per_dimension", "expected", "of_alpha_mean", "of_alpha_stddev"),
    [
        (True, 22.823383, [-0.001419, -0.00013], [-0.127623, -0.100385]),
        (False, 22.808125, [-0.00886], [-0.228888]),
    ],
)
def test_acmes_loss_and_gradients(
    per_dimension, expected, of_alpha_mean, of_alpha_stddev
):
    module = losses.MPO(**SETTINGS, per_dim_constraining=per_dimension)
    loss, _, gradients = evaluate(module)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    expected = {
        "mean": GRADIENT_OF_MEAN,
        "stddev": GRADIENT_OF_STDDEV,
        "log_temperature": TEMPERATURES,
        "log_alpha_mean": of_alpha_mean,
        "log_alpha_stddev": of_alpha_stddev,
    }
    for name, gradient in gradients.items():
        if name in expected:
            np.testing.assert_allclose(gradient, expected[name], rtol=1e-4, atol=2e-6)
        else:
            assert gradient is None, name


def test_no_penalty_leaves_one_temperature():
    loss, stats, gradients = evaluate(losses.MPO(**SETTINGS, action_penalization=False))
    np.testing.assert_allclose(loss, 11.811687, rtol=1e-5)
    np.testing.assert_allclose(
        gradients["log_temperature"], TEMPERATURES[:1], rtol=1e-4
    )
    assert not [name for name in stats if "penalty" in name]


def test_acmes_loss_of_two_objectives():
    settings = {k: v for k, v in SETTINGS.items() if k != "epsilon"}
    module = losses.MultiObjectiveMPO(
        [losses.KLConstraint("speed", 0.1), losses.KLConstraint("energy", 0.2)],
        **settings,
    )
    loss, stats, gradients = evaluate(module, q_values(2))
    np.testing.assert_allclose(loss, 23.868549, rtol=1e-5)
    np.testing.assert_allclose(
        gradients["log_temperature"], [-0.153153, -0.1102], rtol=1e-4
    )
    np.testing.assert_allclose(
        gradients["mean"],
        [[1.743948, -0.131285], [-2.438896, -2.832627], [-0.206843, 3.62274]],
        rtol=1e-4,
    )
    np.testing.assert_allclose(stats["energy_kl_q_rel"], 2.770399, rtol=1e-5)
    np.testing.assert_allclose(stats["energy_q_mean"], 0.149886, rtol=1e-4)
    assert module.objective_names == ("speed", "energy")


def test_duals_are_clipped_before_use_and_keep_a_gradient():
    start = {"init_log_temperature": 0.0, "init_log_alpha_mean": 0.0}
    module = losses.MPO(**{**SETTINGS, **start})
    module.create_variables(2)
    variables = {v.name.split(":")[0]: v for v in module.trainable_variables}
    variables["log_temperature"].assign([-25.0, -17.0])
    variables["log_alpha_mean"].assign([-100.0, 1.0])
    loss, stats, gradients = evaluate(module)
    np.testing.assert_array_equal(variables["log_temperature"], [-18.0, -17.0])
    np.testing.assert_array_equal(variables["log_alpha_mean"], [-18.0, 1.0])
    # softplus(-18) is 1.5e-8.
    np.testing.assert_allclose(stats["dual_temperature"], 2.523e-8, rtol=1e-3)
    # So only the best actions have weights.
    np.testing.assert_allclose(stats["kl_q_rel"], np.log(4) / 0.1, rtol=1e-5)
    assert np.isfinite(loss)
    assert all(gradients["log_alpha_mean"] != 0)


def test_parts_of_the_loss_change_nothing():
    """A policy loss alone has no gradient of a dual variable, and the other way."""
    module = losses.MPO(**SETTINGS)
    module.create_variables(2)
    module.trainable_variables[0].assign_sub([1.0] * 2)
    before = [variable.numpy() for variable in module.trainable_variables]
    online = [tf.constant(x, tf.float32) for x in (MEAN, STDDEV)]
    target = [tf.constant(x, tf.float32) for x in (TARGET_MEAN, TARGET_STDDEV)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(online)
        policy_loss, terms = module.policy_loss(
            tfd.Normal(*online), tfd.Normal(*target), ACTIONS.astype("f"), q_values()
        )
        dual_loss = module.dual_loss(terms)
    assert policy_loss.shape == dual_loss.shape == (3,)
    for variable, old in zip(module.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(variable, old)
        assert tape.gradient(policy_loss, variable) is None
        assert tape.gradient(dual_loss, variable) is not None
    assert all(tape.gradient(dual_loss, part) is None for part in online)
    np.testing.assert_allclose(
        evaluate(module)[0], np.mean(policy_loss + dual_loss), rtol=1e-5
    )


@pytest.mark.parametrize(
    "make", [tfd.Normal, lambda m, s: tfd.Independent(tfd.Normal(m, s), 1)]
)
def test_all_kinds_of_normal_distributions_are_the_same(make):
    settings = {**SETTINGS, "per_dim_constraining": False}
    loss, _, _ = evaluate(losses.MPO(**settings), make=make)
    np.testing.assert_allclose(loss, 22.808125, rtol=1e-5)


def test_the_loss_is_traced_once():
    module = losses.MPO(**SETTINGS)
    module.create_variables(2)
    loss = tf.function(lambda q: evaluate_graph(module, q), autograph=False)
    np.testing.assert_allclose(loss(q_values()), 22.823383, rtol=1e-5)
    loss(q_values() + 1)
    assert loss.experimental_get_tracing_count() == 1


def evaluate_graph(module, q):
    online = tfd.Normal(*(tf.constant(x, tf.float32) for x in (MEAN, STDDEV)))
    target = tfd.Normal(
        *(tf.constant(x, tf.float32) for x in (TARGET_MEAN, TARGET_STDDEV))
    )
    return module(online, target, ACTIONS.astype("f"), q)[0]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="epsilon_mean: got -1"):
        losses.MPO(**{**SETTINGS, "epsilon_mean": -1.0})
    with pytest.raises(ValueError, match="init_log_alpha_mean: got nan"):
        losses.MPO(**{**SETTINGS, "init_log_alpha_mean": float("nan")})
    with pytest.raises(ValueError, match=r"'speed'.*negative"):
        losses.KLConstraint("speed", -0.1)
    settings = {k: v for k, v in SETTINGS.items() if k != "epsilon"}
    twice = [losses.KLConstraint("speed", 0.1)] * 2
    with pytest.raises(ValueError, match="expected different ones"):
        losses.MultiObjectiveMPO(twice, **settings)
    with pytest.raises(ValueError, match="expected one for each"):
        losses.MultiObjectiveMPO([], **settings)
    with pytest.raises(ValueError, match="K = 1"):
        evaluate(losses.MultiObjectiveMPO(twice[:1], **settings), q_values(2))
    with pytest.raises(TypeError, match="MultivariateNormalDiagHead"):
        evaluate(losses.MPO(**SETTINGS), make=tfd.Laplace)


@pytest.mark.parametrize(
    ("actions", "values", "mean", "error"),
    [
        ([4, 3], [4, 3], [3, 2], "actions: got rank 2"),
        ([4, 3, 2], [1, 3], [3, 2], "q_values: got shape .1, 3.*expected .4, 3"),
        ([4, 3, 2], [4, 3], [1, 2], "distribution: got shape .1, 2.*expected .3, 2"),
    ],
)
def test_shapes_that_would_be_broadcast_are_errors(actions, values, mean, error):
    policy = tfd.MultivariateNormalDiag(tf.zeros(mean), tf.ones(mean))
    with pytest.raises(ValueError, match=error):
        losses.MPO(**SETTINGS)(policy, policy, tf.zeros(actions), tf.zeros(values))
