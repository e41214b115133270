"""No function of `losses` broadcasts: it refuses each argument of another shape.

A table has the right shape of every argument of every function. Each is changed in
turn: one dimension more or less, a size of one, or one more than there is.
"""

import collections
import inspect

import pytest
import tensorflow as tf

from tfrl import losses

# The sizes of dimensions, which differ: no shape tells [T] from [B] where T equals B.
SIZES = {"T": 4, "B": 3, "A": 5, "N": 6, "M": 7, "D": 2, "K": 8}
Atoms = collections.namedtuple("Atoms", ["values", "logits"])


class Case:
    """A function, the right shapes of its arguments, and what else it takes or allows.

    Args:
      shapes: The dimensions of each tensor; "" is a scalar.
      call: Calls the function with the tensors, if it does not take them by name.
      given: Other arguments.
      also: Shapes that are right, too, for each argument.
      wrong: Shapes of an argument that are wrong, instead of the changed ones, where
        the argument alone decides what is right.
    """

    def __init__(self, shapes, call=None, given=None, also=None, wrong=None):
        self.shapes = shapes
        self.call = call
        self.given = given or {}
        self.also = also or {}
        self.wrong = wrong or {}


SEQUENCES = {"r_t": "TB", "discount_t": "TB", "v_t": "TB", "continues_t": "TB"}
VALUES = {"v_tm1": "TB", **SEQUENCES}
RATES = {"lambda_": "TB"}
CASES = {
    "action_value": Case(
        {"q": "TBA", "a": "TB"}, also={"q": ["TBAA", "TBA1", "TBN", "TB1"], "a": ["T"]}
    ),
    "adapted_kl_beta": Case({"beta": "", "mean_kl": "", "target": "", "tolerance": ""}),
    "advantage_weighted_loss": Case(
        {"log_prob": "B", "advantage": "B", "inverse_temperature": "", "max_weight": ""}
    ),
    "aggregate_losses": Case(
        {"per_example_loss": "BT", "sample_weight": "BT", "global_batch_size": ""},
        also={"sample_weight": ["B", ""], "per_example_loss": ["BT1"]},
    ),
    "approx_kl": Case({"log_ratio": "BT"}, wrong={"log_ratio": ["", "BTA"]}),
    "balanced_kl": Case({"posterior": "BNK", "prior": "BNK", "free_nats": ""}),
    "best_action_value": Case({"q_t": "TBA", "q_t_selector": "TBA"}),
    "categorical": Case(
        {"z_tm1": "N", "q_tm1": "BN", "r_t": "B", "d_t": "B", "z_t": "N", "q_t": "BN"},
        lambda z_tm1, q_tm1, r_t, d_t, z_t, q_t: losses.categorical(
            Atoms(z_tm1, q_tm1), r_t, d_t, Atoms(z_t, q_t)
        ),
    ),
    "categorical_kl": Case({"logits": "BNK", "other": "BNK"}),
    "categorical_target": Case(
        {"r_t": "BT", "d_t": "BT", "z_t": "N", "q_t": "BTN"},
        lambda r_t, d_t, z_t, q_t: losses.categorical_target(r_t, d_t, Atoms(z_t, q_t)),
        # Sizes of one broadcast here, as the docstring says.
        also={"r_t": ["1T", "B1"], "d_t": ["1T", "B1"], "z_t": ["1N"]},
    ),
    "clip_fraction": Case({"log_ratio": "BT", "clip_range": "", "mask": "BT"}),
    "clipped_cross_entropy": Case(
        {"target": "BN", "logits": "BN"}, given={"least": 0.1}
    ),
    "clipped_double_q": Case(
        {"first": "B", "other": "B"},
        lambda first, other: losses.clipped_double_q([first, other]),
    ),
    "clipped_surrogate": Case(
        {"log_ratio": "BT", "advantages": "BT", "clip_range": ""}
    ),
    "clipped_value_loss": Case(
        {"values": "BT", "returns": "BT", "old_values": "BT", "clip_range": ""}
    ),
    "cloned_policy_gradient": Case(
        {"value": "B", "distance": "B", "mean_size": "", "alpha": ""}
    ),
    "conservative_penalty": Case(
        {"data_q": "B", "sampled_q": "KB", "log_densities": "KB", "temperature": ""}
    ),
    "deterministic_policy_gradient": Case(
        {"q": "BT", "action": "BTD", "dqda": "BTD", "dqda_clipping": ""},
        # Actions may be single numbers.
        also={"q": ["B", "BTD"]},
    ),
    "discounted_future_sum": Case(
        {"values": "BT", "gamma": "", "num_steps": ""}, wrong={"values": ["B", "BT1"]}
    ),
    "discounted_future_sum_masked": Case(
        {"values": "BT", "gamma": "", "num_steps": "", "episode_lengths": "B"},
        also={"values": ["B1", "BA"]},
    ),
    "discounted_return": Case(
        {"r_t": "TB", "discount_t": "TB", "v_final": "B"},
    ),
    "discounted_returns": Case({"r_t": "TB", "discount_t": "TB", "v_final": "B"}),
    "double_q_learning": Case(
        {
            "q_tm1": "TBA",
            "a_tm1": "TB",
            "r_t": "TB",
            "discount_t": "TB",
            "q_t_value": "TBA",
            "q_t_selector": "TBA",
        }
    ),
    # Functions of single elements alone.
    "dual_of": None,
    "entropy_of": None,
    "expand_weights": Case(
        {"weights": "BT", "like": "BTA"},
        also={"weights": ["B", ""], "like": ["BT", "BT1", "BTN", "BTA1"]},
    ),
    "expected_soft_value": Case({"q": "BA", "log_probs": "BA", "alpha": ""}),
    "expectile_loss": Case({"error": "B", "expectile": ""}, wrong={"error": []}),
    "distillation_error": Case({"predicted": "BTN", "fixed": "BTN"}),
    "explained_variance": Case({"values": "BT", "returns": "BT", "mask": "BT"}),
    "gradient_similarity": Case(
        {"gradients": "NBA"}, wrong={"gradients": ["BA", "NBAA"]}
    ),
    "generalized_advantage_estimation": Case(
        {**VALUES, **RATES}, also={"lambda_": [""]}
    ),
    "half_squared_difference": Case({"x": "BT", "y": "BT"}),
    "huber": Case(
        {"inputs": "B"}, given={"quadratic_linear_boundary": 1.0}, wrong={"inputs": []}
    ),
    "huber_loss": Case({"error": "B", "delta": ""}, wrong={"error": []}),
    "imagined_actor_loss": Case(
        {
            "log_prob": "TB",
            "advantage": "TB",
            "entropy": "TB",
            "entropy_regularization": "",
        }
    ),
    "kl_cutoff_penalty": Case({"mean_kl": "", "cutoff": "", "coefficient": ""}),
    "kl_dual_loss": Case(
        {"kl": "BD", "alpha": "D", "epsilon": ""}, also={"kl": ["1D", "TD"]}
    ),
    "kl_of_means": Case(
        {"target_mean": "BD", "target_stddev": "BD", "online_mean": "BD"}
    ),
    "kl_of_stddevs": Case({"target_stddev": "BD", "online_stddev": "BD"}),
    "kl_penalty": Case({"kl": "BD", "alpha": "D"}, also={"kl": ["1D", "TD"]}),
    "l2_project": Case(
        {"z_p": "BM", "p": "BM", "z_q": "N"},
        also={"z_p": ["1M"], "z_q": ["1", "M", "1N"]},
    ),
    "lap_priorities": Case({"td_errors": "B"}, wrong={"td_errors": ["", "BT"]}),
    "latent_rollout_losses": Case(
        {
            "predicted_states": "BTD",
            "one_logit": "BTK",
            "predicted_ends": "BT",
            "states": "BTD",
            "rewards": "BT",
            "ends": "BT",
        },
        lambda predicted_states, one_logit, predicted_ends, states, rewards, ends: (
            losses.latent_rollout_losses(
                (predicted_states, one_logit, predicted_ends),
                (states, rewards, ends),
                losses.TwoHot(-2.0, 2.0, SIZES["K"]),
            )
        ),
        # tests/losses/test_two_hot.py has another number of bins.
        wrong={"one_logit": ["BK", "BTKK"]},
    ),
    "leaky_vtrace": Case(
        {**VALUES, "log_rhos": "TB", **RATES, "clip_rho": "", "alpha": ""},
        also={"lambda_": [""]},
    ),
    "lambda_returns": Case({**SEQUENCES, **RATES}, also={"lambda_": [""]}),
    "largest_error": Case(
        {"first": "B", "other": "B"},
        lambda first, other: losses.largest_error([first, other]),
    ),
    "masked_mean": Case({"values": "BT", "mask": "BT"}),
    "minimum_of_subset": Case(
        {"q": "NB", "noise": "N"},
        given={"size": 2},
        also={"q": ["N", "NB1", "N1", "NT"]},
    ),
    "mixed_with_uniform": Case(
        # Logits of any shape.
        {"logits": "BNK", "share": ""},
        wrong={"logits": []},
    ),
    "mpo_temperature_loss": Case(
        {"values": "NBK", "temperature": "K", "epsilon": "K"},
        also={
            "values": ["1BK", "N1K", "MBK", "NTK"],
            "temperature": [""],
            "epsilon": [""],
        },
    ),
    "mpo_weights": Case(
        {"values": "NBK", "temperature": "K"},
        also={"values": ["1BK", "N1K", "MBK", "NTK"], "temperature": [""]},
    ),
    "multiaxis_categorical": Case(
        {
            "z_tm1": "TN",
            "q_tm1": "BTN",
            "r_t": "BT",
            "d_t": "BT",
            "z_t": "TN",
            "q_t": "BTN",
        },
        lambda z_tm1, q_tm1, r_t, d_t, z_t, q_t: losses.multiaxis_categorical(
            Atoms(z_tm1, q_tm1), r_t, d_t, Atoms(z_t, q_t)
        ),
        also={"r_t": ["B1"], "d_t": ["B1"]},
    ),
    "munchausen_bonus": Case(
        {"q_tm1": "BA", "a_tm1": "B", "alpha": "", "temperature": "", "lowest": ""},
        also={"q_tm1": ["B1", "BN"]},
    ),
    "munchausen_value": Case(
        {"q_t": "BAM", "judge": "BA", "temperature": ""},
        also={"q_t": ["BA", "BA1", "BAK"], "judge": ["BAM"]},
    ),
    "n_step_returns": Case(
        {**SEQUENCES, **RATES}, given={"n": 2}, also={"lambda_": [""]}
    ),
    "out_of_bounds_value": Case({"actions": "NBD"}, wrong={"actions": ["BD", "NBD1"]}),
    "penalized_value": Case({"value": "B", "distance": "B", "penalty": ""}),
    "percentile_range": Case({"values": "TB"}, wrong={"values": []}),
    "quantile": Case(
        {
            "q_tm1": "BN",
            "tau_q_tm1": "BN",
            "r_t": "B",
            "d_t": "B",
            "q_t": "BM",
        },
        given={"huber_param": 1.0},
        also={"tau_q_tm1": ["N"], "q_t": ["B1", "BK"]},
    ),
    "quantile_huber_loss": Case(
        {"predictions": "TBN", "targets": "TBM", "levels": "N"},
        also={
            "predictions": ["1TBN"],
            "targets": ["BM", "1BM", "T1M", "TB1", "TBK"],
            "levels": ["TBN"],
        },
    ),
    "retrace": Case(
        {
            "q_tm1": "TBA",
            "q_t": "TBA",
            "a_tm1": "TB",
            "a_t": "TB",
            "r_t": "TB",
            "discount_t": "TB",
            "pi_t": "TBA",
            "mu_t": "TB",
            **RATES,
            "continues_t": "TB",
        },
        also={"lambda_": [""]},
    ),
    "retrace_continuous": Case(
        {"q_tm1": "TB", "q_t": "TB", **SEQUENCES, "log_rhos": "TB", **RATES},
        also={"lambda_": [""]},
    ),
    "sac_actor_loss": Case({"q": "BT", "log_prob": "BT", "alpha": ""}),
    "sequence_priorities": Case(
        {"td_errors": "BT", "eta": ""}, wrong={"td_errors": ["", "BTA"]}
    ),
    "shift_values": Case(
        {"values": "BT", "gamma": "", "num_steps": "", "final_values": "B"},
        also={"values": ["B1", "BA"]},
    ),
    "signed_expm1": None,
    "signed_logp1": None,
    "signed_hyperbolic": Case({"x": "B", "eps": ""}, wrong={"x": []}),
    "signed_parabolic": Case({"x": "B", "eps": ""}, wrong={"x": []}),
    "smoothed_action": Case(
        {
            "action": "BD",
            "noise": "BD",
            "noise_clip": "BD",
            "minimum": "BD",
            "maximum": "BD",
        },
        also={name: ["D", "1D", "B1"] for name in ("noise_clip", "minimum", "maximum")},
    ),
    "soft_value": Case({"q": "BT", "log_prob": "BT", "alpha": ""}),
    "squared_loss": None,
    "standardize": Case({"values": "BT", "mask": "BT"}),
    "symlog_loss": Case({"prediction": "BN", "target": "BN"}),
    "td_error": Case({"v_tm1": "TB", "r_t": "TB", "discount_t": "TB", "v_t": "TB"}),
    "td_target": Case({"r_t": "TB", "discount_t": "TB", "v_t": "TB"}),
    "temperature_loss": Case(
        {"log_alpha": "", "entropy": "B", "target_entropy": ""}, wrong={"entropy": []}
    ),
    "transformed_n_step_loss": Case(
        {
            "qs": "MBA",
            "targnet_qs": "MBA",
            "actions": "MB",
            "rewards": "NB",
            "pcontinues": "NB",
            "target_policy_probs": "MBA",
        },
        given={"bootstrap_n": 2},
    ),
    "truncated_mixture": Case(
        {"quantiles": "NBM"}, given={"num_dropped": 1}, wrong={"quantiles": ["BM", ""]}
    ),
    "vtrace": Case(
        {**VALUES, "log_rhos": "TB", **RATES, "clip_rho": "", "clip_pg_rho": ""},
        also={"lambda_": [""]},
    ),
    "weighted_cross_entropy": Case(
        {"actions": "NBD", "weights": "NB", "mean": "BD", "stddev": "BD"}
    ),
    "weights_kl": Case({"weights": "NBK"}, wrong={"weights": ["N", "NBKD"]}),
}
TABLE = {name: case for name, case in CASES.items() if case is not None}


def sizes(dimensions):
    return [SIZES.get(dimension, 1) for dimension in dimensions]


def numbers(name, shape):
    dtype = tf.float32
    if name in ("a", "a_tm1", "a_t", "actions") and shape != sizes("NBD"):
        dtype = tf.int32
    if name in ("num_steps", "episode_lengths"):
        dtype = tf.int32
    if name.startswith("z_"):  # Atoms rise.
        return tf.broadcast_to(tf.range(1.0, shape[-1] + 1), shape) if shape else 1.0
    return tf.ones(shape, dtype)


def changed(shape):
    """The shapes that differ from `shape` in one dimension."""
    yield [*shape, 1]
    yield [1, *shape]
    for i, size in enumerate(shape):
        yield [*shape[:i], *shape[i + 1 :]]
        yield [*shape[:i], size + 1, *shape[i + 1 :]]
        yield [*shape[:i], 1, *shape[i + 1 :]]


def evaluate(name, tensors):
    case = TABLE[name]
    if "mask" in tensors and name != "standardize":
        tensors = {**tensors, "mask": tf.cast(tensors["mask"], tf.bool)}
    return (case.call or getattr(losses, name))(**tensors, **case.given)


def right(name):
    shapes = TABLE[name].shapes
    return {key: numbers(key, sizes(shape)) for key, shape in shapes.items()}


def test_the_table_has_every_function():
    functions = {n for n in dir(losses) if inspect.isfunction(getattr(losses, n))}
    # `dpg` has a test of its own, because it takes a tape.
    assert set(CASES) == functions - {"dpg"}


@pytest.mark.parametrize("name", TABLE)
def test_an_argument_of_another_shape_is_an_error_that_names_one(name):
    case, tensors = TABLE[name], right(name)
    evaluate(name, tensors)
    for argument, shape in case.shapes.items():
        also = [sizes(allowed) for allowed in case.also.get(argument, [])]
        for allowed in also:
            evaluate(name, {**tensors, argument: numbers(argument, allowed)})
        wrong = changed(sizes(shape))
        if argument in case.wrong:
            wrong = map(sizes, case.wrong[argument])
        for other in wrong:
            if other in [sizes(shape), *also]:
                continue
            arguments = {**tensors, argument: numbers(argument, other)}
            try:
                evaluate(name, arguments)
            except ValueError as error:
                named = str(error).split(": ")[0]
            else:
                named = "no error"
            names = [*case.shapes, "values", "weights"]
            assert any(key in named for key in names), (argument, other, named)


@pytest.mark.parametrize("name", TABLE)
def test_sizes_that_are_not_known_pass_and_the_graph_asserts_nothing(name):
    batch = {SIZES[dimension] for dimension in "TBNM"} - {SIZES["M"], SIZES["N"]}
    signature = {
        key: tf.TensorSpec(
            [None if size in batch else size for size in tensor.shape], tensor.dtype
        )
        for key, tensor in right(name).items()
    }
    function = tf.function(lambda tensors: evaluate(name, tensors), autograph=False)
    graph = function.get_concrete_function(signature).graph
    assert "Assert" not in {op.type for op in graph.get_operations()}


def test_columns_of_values_are_not_broadcast_by_acmes_gradient():
    actions = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def loss(keepdims):
        with tf.GradientTape() as tape:
            tape.watch(actions)
            values = tf.reduce_sum(actions**2, axis=1, keepdims=keepdims)
        return losses.dpg(values, actions, tape)

    assert loss(keepdims=True).shape == [3]
    assert loss(keepdims=True).numpy().tolist() == loss(keepdims=False).numpy().tolist()
    with tf.GradientTape() as tape:
        tape.watch(actions)
        wide = actions**2
    with pytest.raises(ValueError, match=r"q_max: got rank 2"):
        losses.dpg(wide, actions, tape)
