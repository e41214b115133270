"""PPO on CartPole, on one page to read from top to bottom.

    python -m examples.pages.ppo
    python -m examples.pages.ppo --seed=3 --num_iterations=200

Schulman et al., "Proximal policy optimization algorithms" (2017). Environments and
updates are one program that XLA compiles; Python calls it, and prints how it goes.
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
    num_iterations: int = 390  # A rollout and its updates each.
    rollout_steps: int = 32  # Steps of each environment in a rollout.
    num_epochs: int = 10  # How often a rollout is trained on.
    num_minibatches: int = 2  # Updates in an epoch.
    hidden_units: tuple[int, ...] = (64, 64)  # Of each network's layers.
    learning_rate: float = 1e-3  # First rate of Adam; falls linearly to 0.
    gamma: float = 0.98  # Discount of a step.
    gae_lambda: float = 0.8  # 1 takes returns, 0 one-step targets.
    clip_range: float = 0.2  # Of the ratio of new and old probabilities.
    entropy_weight: float = 0.0  # Of the policy's entropy in the loss.
    value_weight: float = 0.5  # Of the squared error of the values.
    gradient_norm: float = 0.5  # Largest norm of all gradients together.


class Ppo:
    """All that training changes, and the functions that change it."""

    def __init__(self, settings: Settings) -> None:
        """Makes the networks, and starts the environments."""
        self.settings, envs, units = settings, settings.num_envs, settings.hidden_units
        # Pure functions: `initial(random) -> state`, `observation(state)`, and
        # `step(state, action, random) -> (state, reward, terminated)`.
        self.rules = native.load(settings.environment).dynamics
        (size,) = self.rules.observation_spec.shape
        keras.utils.set_random_seed(settings.seed)
        self.actor = make_network(size, units, int(self.rules.action_spec.maximum) + 1)
        self.critic = make_network(size, units, 1)
        self.variables = [*self.actor.variables, *self.critic.variables]
        self.updates = settings.num_epochs * settings.num_minibatches  # An iteration's.
        schedule = keras.optimizers.schedules.PolynomialDecay
        total = settings.num_iterations * self.updates
        rate = schedule(settings.learning_rate, total, end_learning_rate=0.0)
        self.optimizer = keras.optimizers.Adam(rate, epsilon=1e-5)
        self.optimizer.build(self.variables)
        self.steps = tf.Variable(0, dtype=tf.int64)  # Of each environment so far.
        self.state = tf.Variable(self.begin(envs, stream=-1))
        self.elapsed = tf.Variable(tf.zeros([envs]))  # Steps of the episode.
        # A row: observation, action, reward, discount, whether it ends, what followed.
        self.columns = [size, 1, 1, 1, 1, size]

    def begin(self, number: int, stream: tf.Tensor | int) -> tf.Tensor:
        """Returns random states in which episodes begin."""
        shape = [number, self.rules.num_initial_randoms]
        return self.rules.initial(self.uniform(shape, stream))

    def uniform(self, shape: list[int], stream: tf.Tensor | int) -> tf.Tensor:
        """Returns numbers in [0, 1); each stream has its own."""
        seed = [self.settings.seed, stream]
        return tf.random.stateless_uniform(shape, seed, alg="philox")

    def step(self) -> tf.Tensor:
        """Steps all environments; returns a row for each."""
        rules, state, stream = self.rules, self.state.read_value(), 3 * self.steps
        observation = rules.observation(state)
        logits = self.actor(observation)
        # The largest of logits with Gumbel noise is a sample.
        noise = -tf.math.log(-tf.math.log(self.uniform(logits.shape, stream) + 1e-9))
        action = tf.argmax(logits + noise, axis=1, output_type=tf.int32)
        reached, reward, terminated, _ = rules.step(state, action, None)
        ends = terminated | (self.elapsed + 1 >= rules.max_episode_steps)
        first = self.begin(self.settings.num_envs, stream + 1)
        self.state.assign(tf.where(ends[:, tf.newaxis], first, reached))
        self.elapsed.assign(tf.where(ends, 0.0, self.elapsed + 1))
        self.steps.assign_add(1)
        # Nothing follows a terminal state. The time limit also ends an episode, but
        # there the value of the state that was reached counts.
        discount = self.settings.gamma * tf.cast(~terminated, tf.float32)
        numbers = [tf.cast(x, tf.float32) for x in (action, reward, discount, ends)]
        parts = [observation, tf.stack(numbers, axis=1), rules.observation(reached)]
        return tf.concat(parts, axis=1)

    def rollout(self) -> list[tf.Tensor]:
        """Steps all environments; returns the tensors of the loss, `[steps, ...]`."""
        settings, width = self.settings, sum(self.columns)
        steps, envs = settings.rollout_steps, settings.num_envs
        _, rows = tf.while_loop(
            lambda t, _: t < steps,
            lambda t, rows: (t + 1, rows.write(t, self.step())),
            (0, tf.TensorArray(tf.float32, steps, element_shape=[envs, width])),
        )
        parts = tf.split(tf.reshape(rows.stack(), [-1, width]), self.columns, axis=1)
        observation, action, reward, discount, ends, reached = parts
        value, next_value = self.critic(observation), self.critic(reached)
        numbers = value, reward, discount, next_value, 1 - ends
        value, reward, discount, next_value, continues = (
            tf.reshape(x, [steps, envs]) for x in numbers
        )
        advantage = losses.generalized_advantage_estimation(
            value, reward, discount, next_value, settings.gae_lambda, continues
        )
        action, returns = action[:, 0], tf.reshape(value + advantage, [-1])
        old = losses.action_value(tf.nn.log_softmax(self.actor(observation)), action)
        return [observation, action, old, tf.reshape(advantage, [-1]), returns]

    def update(self, examples: list[tf.Tensor]) -> None:
        """Steps actor and critic down the gradient of PPO's loss."""
        observation, action, old_log_prob, advantage, returns = examples
        settings, ones = self.settings, tf.ones_like(advantage)
        advantage = losses.standardize(advantage, mask=ones)
        with tf.GradientTape() as tape:
            log_probs = tf.nn.log_softmax(self.actor(observation))
            log_ratio = losses.action_value(log_probs, action) - old_log_prob
            loss = losses.clipped_surrogate(log_ratio, advantage, settings.clip_range)
            error = losses.clipped_value_loss(self.critic(observation)[:, 0], returns)
            entropy = losses.entropy_of(log_probs)
            loss += settings.value_weight * error - settings.entropy_weight * entropy
            loss = tf.reduce_mean(loss)
        gradients = tape.gradient(loss, self.variables)
        gradients, _ = tf.clip_by_global_norm(gradients, settings.gradient_norm)
        self.optimizer.apply(gradients, self.variables)

    @tf.function(jit_compile=True, autograph=False)
    def run(self, num_iterations: tf.Tensor) -> None:
        """Does iterations: a rollout each, and some epochs of updates."""

        def iterate(i: tf.Tensor) -> list[tf.Tensor]:
            examples = self.rollout()
            # Each epoch has an order of its own, from sorted random keys.
            shape = [self.settings.num_epochs, examples[1].shape[0]]
            order = tf.argsort(self.uniform(shape, 3 * self.steps + 2), axis=1)
            batches = tf.reshape(order, [self.updates, -1])

            def update(j: tf.Tensor) -> list[tf.Tensor]:
                self.update([tf.gather(x, batches[j]) for x in examples])
                return [j + 1]

            tf.while_loop(lambda j: j < self.updates, update, [tf.constant(0)])
            return [i + 1]

        tf.while_loop(lambda i: i < num_iterations, iterate, [tf.constant(0)])

    @tf.function(jit_compile=True, autograph=False)
    def evaluate(self, num_episodes: int) -> tf.Tensor:
        """Returns the mean return of episodes in which all actions are greedy."""
        rules, longest = self.rules, self.rules.max_episode_steps

        def step(state: tf.Tensor, goes_on: tf.Tensor, returns: tf.Tensor) -> tuple:
            action = tf.argmax(self.actor(rules.observation(state)), axis=1)
            state, reward, terminated, _ = rules.step(state, action, None)
            returns += tf.where(goes_on, reward, 0.0)
            return state, goes_on & ~terminated, returns

        state = self.begin(num_episodes, stream=-2)
        start = state, tf.fill([num_episodes], True), tf.zeros([num_episodes])
        end = tf.while_loop(lambda *_: True, step, start, maximum_iterations=longest)
        return tf.reduce_mean(end[-1])


def make_network(inputs: int, units: tuple[int, ...], outputs: int) -> keras.Model:
    """Returns a network of dense layers."""
    layers = [keras.layers.Dense(number, "tanh") for number in units]
    layers.append(keras.layers.Dense(outputs))
    return keras.Sequential([keras.Input([inputs]), *layers])


def main(settings: Settings) -> None:
    """Trains, and prints the returns of the policy that does not explore."""
    ppo = Ppo(settings)
    for done in range(0, settings.num_iterations, 13):
        number, started = min(13, settings.num_iterations - done), time.time()
        ppo.run(tf.constant(number))
        speed = number / (time.time() - started)
        print(f"{done + number:,}: {ppo.evaluate(100):.1f}, {speed:,.0f} iterations/s")
    print(f"Mean return of 100 episodes: {ppo.evaluate(100):.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--num_iterations", type=int, default=Settings.num_iterations)
    main(Settings(**vars(parser.parse_args())))
