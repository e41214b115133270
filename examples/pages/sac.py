"""SAC on Pendulum, on one page to read from top to bottom.

    python -m examples.pages.sac
    python -m examples.pages.sac --seed=3 --num_iterations=10_000

Haarnoja et al., "Soft actor-critic algorithms and applications" (2018). Environments,
replay and updates are one program that XLA compiles; Python calls it, and prints how it
goes.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time

import keras
import tensorflow as tf

from tfrl import losses
from tfrl.environments import native


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to train, and how."""

    environment: str = "Pendulum-v1"  # Or another native one with continuous actions.
    num_envs: int = 1  # Environments stepped together.
    seed: int = 0  # Seed of everything random.
    num_iterations: int = 20_000  # A step of each environment and an update each.
    initial_steps: int = 100  # Steps of each environment before the first update.
    replay_capacity: int = 20_000  # Transitions in the replay.
    hidden_units: tuple[int, ...] = (64, 64)  # Of each network's layers.
    batch_size: int = 64  # Transitions in an update.
    learning_rate: float = 1e-3  # Of Adam.
    gamma: float = 0.99  # Discount of a step.
    target_tau: float = 0.005  # Step of the target critics to the critics.


class Sac:
    """All that training changes, and the functions that change it."""

    def __init__(self, settings: Settings) -> None:
        """Makes the networks, starts the environments and empties the replay."""
        self.settings, envs, units = settings, settings.num_envs, settings.hidden_units
        # Pure functions: `initial(random) -> state`, `observation(state)`, and
        # `step(state, action, random) -> (state, reward, terminated)`.
        self.rules = native.load(settings.environment).dynamics
        (size,) = self.rules.observation_spec.shape
        (actions,) = self.rules.action_spec.shape
        keras.utils.set_random_seed(settings.seed)
        self.actor = make_network(size, units, 2 * actions)
        # Two critics in one network, which returns `[B, 2]`.
        pair = keras.Input([size + actions])
        both = [make_network(size + actions, units, 1)(pair) for _ in range(2)]
        self.critic = keras.Model(pair, keras.layers.concatenate(both))
        self.target = keras.models.clone_model(self.critic)
        self.target.set_weights(self.critic.get_weights())
        self.log_alpha = keras.Variable(0.0)  # Alpha is the temperature.
        parts = self.critic.trainable_variables, self.actor.trainable_variables
        self.parts = [*parts, [self.log_alpha]]  # Each has a loss of its own.
        self.optimizer = keras.optimizers.Adam(settings.learning_rate)
        self.optimizer.build([variable for part in self.parts for variable in part])

        self.steps = tf.Variable(0, dtype=tf.int64)  # Of each environment so far.
        self.state = tf.Variable(self.begin(envs, stream=-1))
        self.elapsed = tf.Variable(tf.zeros([envs]))  # Steps of the episode.
        # A row is a transition: observation, action, reward, discount, what followed.
        self.columns = [size, actions, 1, 1, size]
        shape = [settings.replay_capacity // envs, envs, sum(self.columns)]
        self.replay = tf.Variable(tf.zeros(shape))

    def begin(self, number: int, stream: tf.Tensor | int) -> tf.Tensor:
        """Returns random states in which episodes begin."""
        shape = [number, self.rules.num_initial_randoms]
        return self.rules.initial(self.uniform(shape, stream))

    def uniform(self, shape: list[int], stream: tf.Tensor | int) -> tf.Tensor:
        """Returns numbers in [0, 1); each stream has its own."""
        seed = [self.settings.seed, stream]
        return tf.random.stateless_uniform(shape, seed, alg="philox")

    def act(self, observation: tf.Tensor, stream: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Draws actions in [-1, 1]; returns them and their log-probabilities."""
        mean, log_std = tf.split(self.actor(observation), 2, axis=1)
        log_std = tf.clip_by_value(log_std, -20.0, 2.0)
        seed = [self.settings.seed, stream]
        noise = tf.random.stateless_normal(mean.shape, seed, alg="philox")
        x = mean + tf.exp(log_std) * noise
        log_density = -0.5 * (noise * noise + math.log(2 * math.pi)) - log_std
        # tanh(x) has the density of x, divided by 4 sigmoid(2x) sigmoid(-2x).
        log_slope = 2 * (math.log(2) - x - tf.math.softplus(-2 * x))
        return tf.tanh(x), tf.reduce_sum(log_density - log_slope, axis=1)

    def step(self) -> None:
        """Steps all environments, and writes the transitions to the replay."""
        rules, state, stream = self.rules, self.state.read_value(), 5 * self.steps
        observation = rules.observation(state)
        action, _ = self.act(observation, stream)
        torque = action * rules.action_spec.maximum
        reached, reward, terminated, _ = rules.step(state, torque, None)
        # Nothing follows a terminal state. The time limit also ends an episode, but
        # there the value of the state that was reached counts.
        discount = self.settings.gamma * tf.cast(~terminated, tf.float32)
        columns = [observation, action, reward[:, tf.newaxis], discount[:, tf.newaxis]]
        rows = tf.concat([*columns, rules.observation(reached)], axis=1)
        oldest = self.steps % self.replay.shape[0]
        self.replay.scatter_nd_update([[oldest]], rows[tf.newaxis])

        ends = terminated | (self.elapsed + 1 >= rules.max_episode_steps)
        first = self.begin(self.settings.num_envs, stream + 1)
        self.state.assign(tf.where(ends[:, tf.newaxis], first, reached))
        self.elapsed.assign(tf.where(ends, 0.0, self.elapsed + 1))
        self.steps.assign_add(1)

    def update(self) -> None:
        """Steps critics, actor and temperature down their gradients; then targets."""
        alpha, stream = tf.exp(self.log_alpha), 5 * self.steps
        rows = tf.reshape(self.replay, [-1, sum(self.columns)])
        filled = tf.minimum(self.steps * self.settings.num_envs, rows.shape[0])
        random = self.uniform([self.settings.batch_size], stream + 2)
        index = tf.cast(random * tf.cast(filled, tf.float32), tf.int32)
        batch = tf.split(tf.gather(rows, index), self.columns, axis=1)
        observation, action, reward, discount, reached = batch
        next_action, log_prob = self.act(reached, stream + 3)
        q = self.target(tf.concat([reached, next_action], axis=1))
        v = losses.soft_value(tf.reduce_min(q, axis=1), log_prob, alpha)
        goal = losses.td_target(reward, discount, v[:, tf.newaxis])
        with tf.GradientTape(persistent=True) as tape:
            q = self.critic(tf.concat([observation, action], axis=1))
            critic_loss = tf.reduce_mean(tf.reduce_sum(tf.square(goal - q), axis=1))
            action, log_prob = self.act(observation, stream + 4)
            q = self.critic(tf.concat([observation, action], axis=1))
            least = tf.reduce_min(q, axis=1)
            actor_loss = tf.reduce_mean(losses.sac_actor_loss(least, log_prob, alpha))
            entropy, target = -tf.reduce_mean(log_prob), -action.shape[1]
            alpha_loss = losses.temperature_loss(self.log_alpha, entropy, target)
        parts = zip([critic_loss, actor_loss, alpha_loss], self.parts, strict=True)
        gradients = [g for loss, part in parts for g in tape.gradient(loss, part)]
        self.optimizer.apply(gradients)  # Of the variables that it was built with.
        pairs = zip(self.target.variables, self.critic.variables, strict=True)
        for target, variable in pairs:
            target.assign_add(self.settings.target_tau * (variable - target))

    @tf.function(jit_compile=True, autograph=False)
    def run(self, num_iterations: tf.Tensor, learns: bool) -> None:
        """Does iterations: a step of each environment and, if it learns, an update."""

        def iterate(i: tf.Tensor) -> list[tf.Tensor]:
            self.step()
            if learns:
                self.update()
            return [i + 1]

        tf.while_loop(lambda i: i < num_iterations, iterate, [tf.constant(0)])

    @tf.function(jit_compile=True, autograph=False)
    def evaluate(self, num_episodes: int) -> tf.Tensor:
        """Returns the mean return of episodes in which all actions are the means."""
        rules, longest = self.rules, self.rules.max_episode_steps

        def step(state: tf.Tensor, goes_on: tf.Tensor, returns: tf.Tensor) -> tuple:
            mean, _ = tf.split(self.actor(rules.observation(state)), 2, axis=1)
            torque = tf.tanh(mean) * rules.action_spec.maximum
            state, reward, terminated, _ = rules.step(state, torque, None)
            returns += tf.where(goes_on, reward, 0.0)
            return state, goes_on & ~terminated, returns

        state = self.begin(num_episodes, stream=-2)
        start = state, tf.fill([num_episodes], True), tf.zeros([num_episodes])
        end = tf.while_loop(lambda *_: True, step, start, maximum_iterations=longest)
        return tf.reduce_mean(end[-1])


def make_network(inputs: int, units: tuple[int, ...], outputs: int) -> keras.Model:
    """Returns a network of dense layers."""
    layers = [keras.layers.Dense(number, "relu") for number in units]
    layers.append(keras.layers.Dense(outputs))
    return keras.Sequential([keras.Input([inputs]), *layers])


def main(settings: Settings) -> None:
    """Trains, and prints the returns of the policy that does not explore."""
    sac = Sac(settings)
    sac.run(tf.constant(settings.initial_steps), learns=False)
    for done in range(0, settings.num_iterations, 1_000):
        number, started = min(1_000, settings.num_iterations - done), time.time()
        sac.run(tf.constant(number), learns=True)
        speed = number / (time.time() - started)
        print(f"{done + number:,}: {sac.evaluate(100):.1f}, {speed:,.0f} iterations/s")
    print(f"Mean return of 100 episodes: {sac.evaluate(100):.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--num_iterations", type=int, default=Settings.num_iterations)
    main(Settings(**vars(parser.parse_args())))
