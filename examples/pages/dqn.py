"""Double DQN on CartPole, on one page to read from top to bottom.

    python -m examples.pages.dqn
    python -m examples.pages.dqn --seed=3 --num_iterations=20_000

Mnih et al., "Human-level control through deep reinforcement learning" (2015); van
Hasselt, Guez and Silver, "Deep reinforcement learning with double Q-learning" (2016).

Environments, replay and updates are one program that XLA compiles; Python calls it, and
prints how it goes.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import keras
import tensorflow as tf

from tfrl import losses
from tfrl.environments import native


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to train, and how."""

    environment: str = "CartPole-v1"  # Or another native one with discrete actions.
    num_envs: int = 8  # Environments stepped together.
    seed: int = 0  # Seed of everything random.
    num_iterations: int = 30_000  # A step of each environment and an update each.
    initial_steps: int = 200  # Steps of each environment before the first update.
    replay_capacity: int = 100_000  # Transitions in the replay.
    hidden_units: tuple[int, ...] = (100, 100)  # Of the Q-network's layers.
    batch_size: int = 64  # Transitions in an update.
    learning_rate: float = 2e-3  # First rate of Adam; falls linearly to 0.
    gamma: float = 0.99  # Discount of a step.
    target_tau: float = 0.005  # Step of the target network to the Q-network.
    last_epsilon: float = 0.05  # Probability of a random action; falls from 1.
    epsilon_steps: int = 5_000  # Steps of each environment in which it falls.


class Dqn:
    """All that training changes, and the functions that change it."""

    def __init__(self, settings: Settings) -> None:
        """Makes the networks, starts the environments and empties the replay."""
        self.settings, envs = settings, settings.num_envs
        # Pure functions: `initial(random) -> state`, `observation(state)`, and
        # `step(state, action, random) -> (state, reward, terminated)`.
        self.rules = native.load(settings.environment).dynamics
        size = self.rules.observation_spec.shape[0]
        num_actions = int(self.rules.action_spec.maximum) + 1
        keras.utils.set_random_seed(settings.seed)
        self.network = make_network(size, settings.hidden_units, num_actions)
        self.target = keras.models.clone_model(self.network)
        self.target.set_weights(self.network.get_weights())
        decay = keras.optimizers.schedules.PolynomialDecay
        rate = decay(settings.learning_rate, settings.num_iterations, 0.0)
        self.optimizer = keras.optimizers.Adam(rate)
        self.optimizer.build(self.network.trainable_variables)
        self.epsilon = decay(1.0, settings.epsilon_steps, settings.last_epsilon)

        self.steps = tf.Variable(0, dtype=tf.int64)  # Of each environment so far.
        self.state = tf.Variable(self.begin(envs, stream=-1))
        self.elapsed = tf.Variable(tf.zeros([envs]))  # Steps of the episode.
        # A row is a transition: observation, action, reward, discount, what followed.
        self.columns = [size, 1, 1, 1, size]
        rows = settings.replay_capacity // envs
        self.replay = tf.Variable(tf.zeros([rows, envs, sum(self.columns)]))

    def begin(self, number: int, stream: tf.Tensor | int) -> tf.Tensor:
        """Returns random states in which episodes begin."""
        shape = [number, self.rules.num_initial_randoms]
        return self.rules.initial(self.uniform(shape, stream))

    def uniform(self, shape: list[int], stream: tf.Tensor | int) -> tf.Tensor:
        """Returns numbers in [0, 1); each stream has its own."""
        seed = [self.settings.seed, stream]
        return tf.random.stateless_uniform(shape, seed, alg="philox")

    def step(self) -> None:
        """Steps all environments, and writes the transitions to the replay."""
        rules, state, stream = self.rules, self.state.read_value(), 3 * self.steps
        observation = rules.observation(state)
        q = self.network(observation)
        random = self.uniform([q.shape[0], 2], stream)
        action = tf.where(
            random[:, 0] < self.epsilon(self.steps),
            tf.cast(random[:, 1] * q.shape[1], tf.int32),
            tf.argmax(q, axis=1, output_type=tf.int32),
        )
        reached, reward, terminated, _ = rules.step(state, action, None)
        # Nothing follows a terminal state. The time limit also ends an episode, but
        # there the value of the state that was reached counts.
        discount = self.settings.gamma * tf.cast(~terminated, tf.float32)
        columns = tf.stack([tf.cast(action, tf.float32), reward, discount], axis=1)
        rows = tf.concat([observation, columns, rules.observation(reached)], axis=1)
        oldest = self.steps % self.replay.shape[0]
        self.replay.scatter_nd_update([[oldest]], rows[tf.newaxis])

        ends = terminated | (self.elapsed + 1 >= rules.max_episode_steps)
        first = self.begin(self.settings.num_envs, stream + 1)
        self.state.assign(tf.where(ends[:, tf.newaxis], first, reached))
        self.elapsed.assign(tf.where(ends, 0.0, self.elapsed + 1))
        self.steps.assign_add(1)

    def update(self) -> None:
        """Steps the Q-network down the gradient, and the target towards it."""
        rows = tf.reshape(self.replay, [-1, sum(self.columns)])
        filled = tf.minimum(self.steps * self.settings.num_envs, rows.shape[0])
        random = self.uniform([self.settings.batch_size], 3 * self.steps + 2)
        index = tf.cast(random * tf.cast(filled, tf.float32), tf.int32)
        batch = tf.split(tf.gather(rows, index), self.columns, axis=1)
        observation, action, reward, discount, reached = batch
        with tf.GradientTape() as tape:
            errors = losses.double_q_learning(
                self.network(observation),
                action[:, 0],
                reward[:, 0],
                discount[:, 0],
                q_t_value=self.target(reached),
                q_t_selector=self.network(reached),
            )
            loss = tf.reduce_mean(tf.square(errors))
        variables = self.network.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        pairs = zip(self.target.variables, self.network.variables, strict=True)
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
        """Returns the mean return of episodes in which all actions are greedy."""
        rules, longest = self.rules, self.rules.max_episode_steps

        def step(state: tf.Tensor, goes_on: tf.Tensor, returns: tf.Tensor) -> tuple:
            q = self.network(rules.observation(state))
            state, reward, terminated, _ = rules.step(state, tf.argmax(q, axis=1), None)
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
    dqn = Dqn(settings)
    dqn.run(tf.constant(settings.initial_steps), learns=False)
    for done in range(0, settings.num_iterations, 1_000):
        number, started = min(1_000, settings.num_iterations - done), time.time()
        dqn.run(tf.constant(number), learns=True)
        speed = number / (time.time() - started)
        print(f"{done + number:,}: {dqn.evaluate(100):.1f}, {speed:,.0f} iterations/s")
    print(f"Mean return of 100 episodes: {dqn.evaluate(100):.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--num_iterations", type=int, default=Settings.num_iterations)
    main(Settings(**vars(parser.parse_args())))
