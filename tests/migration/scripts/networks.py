"""Networks of one's own, encoders with preprocessing, and distributions."""

import numpy as np
import tensorflow as tf
from tf_agents.environments import random_py_environment, tf_py_environment
from tf_agents.networks import (
    actor_distribution_network,
    categorical_projection_network,
    encoding_network,
    network,
    normal_projection_network,
    utils,
    value_network,
)
from tf_agents.policies import actor_policy
from tf_agents.specs import array_spec, tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.utils import common, nest_utils


class ActorNetwork(network.Network):
    def __init__(
        self,
        observation_spec,
        action_spec,
        preprocessing_layers=None,
        preprocessing_combiner=None,
        conv_layer_params=None,
        fc_layer_params=(75, 40),
        dropout_layer_params=None,
        activation_fn=tf.keras.activations.relu,
        enable_last_layer_zero_initializer=False,
        name="ActorNetwork",
    ):
        super().__init__(input_tensor_spec=observation_spec, state_spec=(), name=name)
        self._action_spec = action_spec
        flat_action_spec = tf.nest.flatten(action_spec)
        self._single_action_spec = flat_action_spec[0]
        kernel_initializer = tf.keras.initializers.VarianceScaling(
            scale=1.0 / 3.0, mode="fan_in", distribution="uniform"
        )
        self._encoder = encoding_network.EncodingNetwork(
            observation_spec,
            preprocessing_layers=preprocessing_layers,
            preprocessing_combiner=preprocessing_combiner,
            conv_layer_params=conv_layer_params,
            fc_layer_params=fc_layer_params,
            dropout_layer_params=dropout_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            batch_squash=False,
        )
        initializer = tf.keras.initializers.RandomUniform(minval=-0.003, maxval=0.003)
        self._action_projection_layer = tf.keras.layers.Dense(
            flat_action_spec[0].shape.num_elements(),
            activation=tf.keras.activations.tanh,
            kernel_initializer=initializer,
            name="action",
        )

    def call(self, observations, step_type=(), network_state=()):
        outer_rank = nest_utils.get_outer_rank(observations, self.input_tensor_spec)
        # Flattens [B, T, ...] to [B * T, ...] and back.
        batch_squash = utils.BatchSquash(outer_rank)
        observations = tf.nest.map_structure(batch_squash.flatten, observations)
        state, network_state = self._encoder(
            observations, step_type=step_type, network_state=network_state
        )
        actions = self._action_projection_layer(state)
        actions = common.scale_to_spec(actions, self._single_action_spec)
        actions = batch_squash.unflatten(actions)
        return tf.nest.pack_sequence_as(self._action_spec, [actions]), network_state


action_spec = array_spec.BoundedArraySpec((3,), np.float32, minimum=0, maximum=10)
observation_spec = {
    "image": array_spec.BoundedArraySpec((16, 16, 3), np.float32, 0, 255),
    "vector": array_spec.BoundedArraySpec((5,), np.float32, -100, 100),
}
random_env = random_py_environment.RandomPyEnvironment(
    observation_spec, action_spec=action_spec
)
tf_env = tf_py_environment.TFPyEnvironment(random_env)

preprocessing_layers = {
    "image": tf.keras.models.Sequential(
        [tf.keras.layers.Conv2D(8, 3), tf.keras.layers.Flatten()]
    ),
    "vector": tf.keras.layers.Dense(5),
}
preprocessing_combiner = tf.keras.layers.Concatenate(axis=-1)
actor = ActorNetwork(
    tf_env.observation_spec(),
    tf_env.action_spec(),
    preprocessing_layers=preprocessing_layers,
    preprocessing_combiner=preprocessing_combiner,
)
time_step = tf_env.reset()
action, _ = actor(time_step.observation, time_step.step_type)
assert action.shape == (1, 3)
assert (action.numpy() >= 0).all()
assert (action.numpy() <= 10).all()
assert len(actor.trainable_variables) > 6

policy = actor_policy.ActorPolicy(
    tf_env.time_step_spec(), tf_env.action_spec(), actor_network=actor
)
assert policy.action(time_step).action.shape == (1, 3)

# Distributions over nested actions.
observation = tensor_spec.TensorSpec([8], tf.float32)
nested_action_spec = {
    "move": tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0),
    "shoot": tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3),
}


def normal_net(spec):
    return normal_projection_network.NormalProjectionNetwork(
        spec, init_means_output_factor=0.1, std_bias_initializer_value=0.0
    )


def categorical_net(spec):
    return categorical_projection_network.CategoricalProjectionNetwork(
        spec, logits_init_output_factor=0.1
    )


distribution_net = actor_distribution_network.ActorDistributionNetwork(
    observation,
    nested_action_spec,
    fc_layer_params=(20,),
    continuous_projection_net=normal_net,
    discrete_projection_net=categorical_net,
)
distributions, _ = distribution_net(
    tf.ones([6, 8]), step_type=tf.fill([6], ts.StepType.MID), network_state=()
)
assert distributions["move"].sample().shape == (6, 2)
assert distributions["shoot"].sample().shape == (6,)
assert distributions["shoot"].logits.shape == (6, 4)

value_net = value_network.ValueNetwork(observation, fc_layer_params=(20,))
values, _ = value_net(tf.ones([6, 8]))
assert values.shape == (6,)
copied = value_net.copy(name="Another")
copied.create_variables()
assert [v.shape for v in copied.variables] == [v.shape for v in value_net.variables]
