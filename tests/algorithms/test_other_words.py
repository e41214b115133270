"""Words of other libraries are answered by the line to write here."""

import inspect
import re

import pytest

import tfrl
from tests.forks import REPOSITORY
from tfrl.algorithms import other_words, registry
from tfrl.command import train, tune

CLASSES = [registry.find(name) for name in registry.CLASSES]


def test_what_the_table_names_is_here():
    known = {"trials"}
    for kind in CLASSES:
        known |= {*inspect.signature(kind).parameters, *train.define_flags(kind)}
        given = train.define_flags(kind)
        train.add_actor_flags(given, kind.name)
        known |= {*given}
    for method in (tfrl.DQN.learn, tfrl.DQN.predict, tfrl.DQN.evaluate):
        known |= {*inspect.signature(method).parameters}
    named = {x for same in other_words.SAME.values() for x in same}
    assert named - known == set()
    assert "trials" in tune._define_flags(tfrl.DQN)


def test_no_word_of_the_table_is_known_everywhere():
    everywhere = set.intersection(*({*kind.setting_fields()} for kind in CLASSES))
    assert everywhere & other_words.SAME.keys() == set()


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("PPO", {"n_steps": 128}, "'n_steps'; write collect_steps_per_iteration=128."),
        ("PPO", {"ent_coef": 0.01}, "'ent_coef'; write entropy_regularization=0.01."),
        (
            "SAC",
            {"ent_coef": "auto"},
            "'ent_coef'; the temperature is learned, from in",
        ),
        ("SAC", {"learning_rate": 0.1}, "write actor_learning_rate=..., critic_learn"),
        ("SAC", {"q_lr": 0.1}, "write critic_learning_rate=0.1."),
        ("SAC", {"gradient_steps": -1}, "of which -1 elsewhere is collect_steps_per_"),
        ("DQN", {"target_update_interval": 9}, "which counts updates, not steps."),
        ("PPO", {"train_batch_size": 4000}, "write collect_steps_per_iteration=..., w"),
        ("IQL", {"train_batch_size": 64}, "write batch_size=64."),
        ("PPO", {"eval_freq": 9}, "write eval_interval=..., in iterations."),
        ("PPO", {"anneal_lr": True}, "write final_learning_rate=0.0, or None for a"),
        (
            "PPO",
            {"policy_kwargs": {}},
            "; write fc_layer_params=(64, 64) for net_arch,",
        ),
        ("PPO", {"net_arch": [32]}, "'net_arch'; write fc_layer_params=(32,)."),
        ("PPO", {"tensorboard_log": "x"}, "; write logdir='logs/run': TensorBoard's"),
        ("DQN", {"buffer_size": 9}, "'buffer_size'; write replay_capacity=9."),
        ("PPO", {"env": "CartPole-v1"}, "'env'; write environment='CartPole-v1'."),
        ("PPO", {"policy": "MlpPolicy"}, "'policy'; write PPO(environment): the obs"),
        ("PPO", {"gama": 0.9}, "'gama'; did you mean gamma."),
        ("PPO", {"framework": "torch"}, "'framework'; leave it out: there is Tens"),
        ("PPO", {"config": {}}, "as PPO(environment, gamma=0.99)."),
        ("PPO", {"env_config": {}}, "environment, PPO(lambda: MyEnv(env_config))."),
        (
            "DQN",
            {"observation_and_action_constraint_splitter": None},
            "; write agent_arguments={'observation_and_action_constraint_splitter': ..",
        ),
        ("PPO", {"zzz": 0.9}, "'zzz'; PPO.defaults() has those that it knows."),
    ],
)
def test_a_constructor_names_what_to_write(kind, arguments, message):
    with pytest.raises(TypeError, match=re.escape(message)) as error:
        getattr(tfrl, kind)(**arguments)
    assert str(error.value).startswith(f"{kind}: got an unknown setting ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("MlpPolicy", "Acrobot-v1"),
            'MlpPolicy, Acrobot-v1, .*: write PPO."Acrobot-v',
        ),
        (("CnnPolicy",), r"got CnnPolicy, expected .*: write PPO\(environment\), who"),
        (("MlpPolicy", object()), r"write PPO\(environment\), whose observations"),
        (("CartPole-v1", 3e-4), r'all else by name: write PPO\("CartPole-v1"\)\.'),
        ((None,), "PPO: got None as the environment; give its name"),
    ],
)
def test_arguments_by_position_are_explained(arguments, message):
    with pytest.raises(TypeError, match=message):
        tfrl.PPO(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda ppo: ppo.learn(total_timesteps=9),
            r"'total_timesteps'; write learn\(9",
        ),
        (lambda ppo: ppo.learn(9, callback=print), r"write callbacks=\[\.\.\.\]"),
        (lambda ppo: ppo.learn(9, progress_bar=True), "write progress=True"),
        (lambda ppo: ppo.learn(9, zzz=1), "expected some of num_environment_steps, to"),
        (lambda ppo: ppo.predict(0, deterministic=True), "; write greedy=True"),
        (lambda ppo: ppo.evaluate(n_eval_episodes=5), r"write evaluate\(5\)"),
        (lambda ppo: ppo.learn("1000"), "num_environment_steps: expected an integer"),
        (lambda ppo: ppo.learn(0.5), "num_environment_steps: expected an integer"),
    ],
)
def test_a_method_names_what_to_write(call, message):
    with pytest.raises(TypeError, match=message):
        call(tfrl.PPO("CartPole-v1"))


def test_methods_that_are_elsewhere_name_those_here():
    ppo = tfrl.PPO("CartPole-v1")
    with pytest.raises(AttributeError, match=r'write tfrl\.load\("folder"\)'):
        tfrl.PPO.load("model")
    with pytest.raises(AttributeError, match=r"'train'; write PPO\(\.\.\.\)\.learn"):
        ppo.train(1000)
    with pytest.raises(AttributeError, match=r"^'PPO' object has no attribute 'zzz'$"):
        _ = ppo.zzz
    assert not hasattr(tfrl.PPO, "load")


def test_an_error_in_a_property_is_not_hidden():
    class Broken(tfrl.PPO):
        @property
        def environment(self):
            raise AttributeError("from the property")

    with pytest.raises(AttributeError, match="from the property"):
        _ = Broken("CartPole-v1").environment


def test_a_rate_that_is_a_function_is_refused_by_its_name():
    with pytest.raises(
        TypeError, match=r"^learning_rate: .* got a function; .* final_l"
    ):
        tfrl.PPO("CartPole-v1", learning_rate=lambda progress: progress * 1e-3)


def test_the_pages_for_users_of_other_libraries_have_each_word():
    pages = ("stable_baselines3", "cleanrl", "rllib", "rl_zoo3")
    paths = [REPOSITORY / "docs" / f"from_{page}.md" for page in pages]
    text = "\n".join(path.read_text() for path in paths if path.exists())
    words = {*re.findall(r"[A-Za-z_0-9]+", text.replace("-", "_"))}
    words |= {*re.findall(r"[A-Za-z_0-9]+", text)}
    table = {*other_words.SAME, *other_words.METHODS, "load"}
    assert table - words == set()
