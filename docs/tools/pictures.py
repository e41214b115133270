"""Draws the pictures of the guide.

    python docs/tools/pictures.py          # the drawings of the concepts
    python docs/tools/pictures.py --run    # and the pictures of a run, in 30 seconds
    python docs/tools/pictures.py --regret # and the regret of bandits, in a minute

Every picture has a white ground, so that it also reads on a dark page.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
from typing import Any

import matplotlib as mpl
from matplotlib import ticker
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_FOLDER = _ROOT / "docs" / "pictures"
_INK, _BLUE, _ORANGE, _GREEN, _GREY = "#222", "#cfe3f5", "#fbe0c3", "#d5ecd4", "#ececec"


def draw_flow() -> Figure:
    """How data goes round: environment, policy, buffer and agent."""
    figure, axes = _canvas(7.2, 4.4)
    _box(axes, 0.2, 2.9, 2.4, 1.1, "environment\n`[B]` members", _GREEN)
    _box(axes, 4.0, 2.9, 2.4, 1.1, "policy\n(a network inside)", _BLUE)
    _box(axes, 4.0, 0.4, 2.4, 1.1, "agent\nloss, train step", _BLUE)
    _box(axes, 0.2, 0.4, 2.4, 1.1, "replay buffer\nor rollout", _ORANGE)
    _arrow(axes, (2.6, 3.7), (4.0, 3.7), "TimeStep")
    _arrow(axes, (4.0, 3.15), (2.6, 3.15), "action", below=True)
    _arrow(axes, (1.4, 2.9), (1.4, 1.5), "frames\n`[B, ...]`", side=True)
    _arrow(axes, (2.6, 0.95), (4.0, 0.95), "sequences\n`[B, T, ...]`")
    _arrow(axes, (5.2, 1.5), (5.2, 2.9), "new weights", side=True)
    return figure


def draw_frames() -> Figure:
    """Two episodes in a replay buffer: their frames, and the boundary between them."""
    figure, axes = _canvas(10, 3.5)
    _text(axes, 0.0, 3.1, "frames, as a buffer holds them", size=11, left=True)
    names = ["FIRST", "MID", "MID", "LAST", "FIRST", "MID"]
    for i, name in enumerate(names):
        is_boundary = name == "LAST"
        following = names[i + 1] if i + 1 < len(names) else "MID"
        _box(
            axes,
            0.1 + 1.65 * i,
            1.2,
            1.5,
            1.5,
            f"observation {i}\naction, reward\nstep_type {name}\nnext {following}",
            _ORANGE if is_boundary else _BLUE,
            size=8.5,
        )
    axes.plot([0.1, 4.9], [0.85, 0.85], color=_INK)
    _text(axes, 2.5, 0.5, "episode 1: frame 3 holds its last observation")
    axes.plot([6.7, 9.85], [0.85, 0.85], color=_INK)
    _text(axes, 8.3, 0.5, "episode 2")
    _text(axes, 5.8, 0.08, "the boundary: its action is ignored, losses mask it")
    _arrow(axes, (5.8, 0.25), (5.8, 1.2), "")
    return figure


def draw_ends() -> Figure:
    """The target of the last step at a termination and at a time limit."""
    figure, axes = _canvas(10, 3.2)
    for y, name, discount, color, target in (
        (1.8, "termination", 0, _ORANGE, "target: r + 0"),
        (0.3, "truncation", 1, _GREEN, "target: r + gamma V(s')"),
    ):
        _text(axes, 0.0, y + 0.55, name, size=12, left=True)
        for i, word in enumerate(("step t - 1", "step t", "LAST")):
            text = f"{word}\ndiscount {discount}" if word == "LAST" else word
            _box(axes, 1.9 + 1.9 * i, y, 1.5, 1.1, text, color if i == 2 else _BLUE)
            if i:
                _arrow(axes, (1.5 + 1.9 * i, y + 0.55), (1.9 + 1.9 * i, y + 0.55), "")
        _text(axes, 7.5, y + 0.55, target, size=12, left=True)
    return figure


def draw_nests() -> Figure:
    """A nest of specs, and the values that it describes, with more dimensions."""
    figure, axes = _canvas(10, 3.4)
    columns = (
        ("the spec: one step", '"position": [2]', '"camera": [84, 84, 3]', _GREY),
        ("a time step", '"position": [B, 2]', '"camera": [B, 84, 84, 3]', _BLUE),
        ("experience", '"position": [B, T, 2]', '"camera": [B, T, 84, 84, 3]', _ORANGE),
    )
    for i, (title, first, second, color) in enumerate(columns):
        x = 0.1 + 3.35 * i
        _text(axes, x + 1.5, 3.0, title, size=12)
        _box(axes, x, 1.7, 3.0, 0.8, first, color, size=10)
        _box(axes, x, 0.6, 3.0, 0.8, second, color, size=10)
        if i:
            for y in (2.1, 1.0):
                _arrow(axes, (x - 0.35, y), (x, y), "")
    _text(axes, 5.0, 0.15, "the keys stay, and so do the dtypes")
    return figure


def draw_seeds() -> Figure:
    """How one seed becomes the seeds of everything that is random."""
    figure, axes = _canvas(10, 3.6)
    _box(axes, 0.1, 1.3, 2.0, 1.0, "seed=0\nof the algorithm", _GREEN)
    parts = ("networks: first weights", "environments", "replay: draws", "loop")
    for i, name in enumerate(parts):
        y = 2.75 - 0.88 * i
        _box(axes, 3.4, y, 2.7, 0.7, name, _BLUE)
        _arrow(axes, (2.1, 1.8), (3.4, y + 0.35), "")
    for i, name in enumerate(("step 0", "step 1", "step 2, ...")):
        _box(axes, 7.3, 1.25 - 0.55 * i, 2.5, 0.45, name, _ORANGE, size=9)
        _arrow(axes, (6.1, 0.46), (7.3, 1.47 - 0.55 * i), "")
    _text(axes, 8.55, 1.95, "a seed for each step:\nexploration, losses")
    return figure


def draw_programs() -> Figure:
    """What is one program in a plain loop, in a compiled one, and with a GPU."""
    figure, axes = _canvas(10, 4.0)
    parts = ("step the\nenvironment", "add to\nthe buffer", "sample", "train")
    rows = (
        (2.75, "hand-written\nloop", (None, None, None, "one")),
        (1.5, "plain loop,\none tf.function", (None, "one", "one", "one")),
        (0.25, "compiled loop,\none XLA program", ("call", "one", "one", "one")),
    )
    for y, title, kinds in rows:
        _text(axes, 0.0, y + 0.45, title, left=True)
        colors = {None: _GREY, "one": _BLUE, "call": _GREEN}
        for i, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
            _box(axes, 2.2 + 1.95 * i, y, 1.6, 0.9, part, colors[kind])
            if i:
                x = 1.85 + 1.95 * i
                _arrow(axes, (x, y + 0.45), (x + 0.35, y + 0.45), "")
    _text(
        axes,
        6.0,
        3.85,
        "grey: Python; blue: TensorFlow; green: Python, called from the program",
    )
    return figure


# The packages by floors, from the highest. A package imports packages of lower floors,
# and those to its right.
FLOORS = (
    ("what you call", _GREEN, ("command", "migrate", "experiments", "algorithms")),
    ("what runs", _ORANGE, ("distribute", "bandits", "reports", "train", "eval")),
    ("what collects and counts", _ORANGE, ("drivers", "metrics")),
    ("what learns", _BLUE, ("agents",)),
    ("what is stored", _BLUE, ("datasets", "replay_buffers")),
    (
        "what acts, and where",
        _BLUE,
        ("policies", "networks", "keras_layers", "environments"),
    ),
    ("what flows", _GREY, ("distributions", "trajectories", "loggers")),
    ("what all share", _GREY, ("utils", "savers", "system", "specs")),
    ("what imports nothing of ours", _GREY, ("losses", "compilation")),
)


def draw_house() -> Figure:
    """The packages of tfrl: each floor stands on those below it."""
    figure, axes = _canvas(12, 6.6)
    for i, (title, color, packages) in enumerate(FLOORS):
        y = 5.75 - 0.7 * i
        _text(axes, 0.0, y + 0.26, title, left=True)
        width = 6.6 / len(packages)
        for j, package in enumerate(packages):
            _box(axes, 3.0 + width * j, y, width - 0.1, 0.54, package, color)
    _box(
        axes,
        9.75,
        3.65,
        2.2,
        2.64,
        "acme\n\nAcme's names;\nno other package\nimports it",
        _GREEN,
    )
    _box(
        axes,
        9.75,
        0.85,
        2.2,
        2.64,
        "replay_service\n\nReverb's names;\nimports only\nsystem and specs",
        _ORANGE,
    )
    return figure


DRAWINGS = {
    "house": draw_house,
    "flow": draw_flow,
    "frames": draw_frames,
    "ends": draw_ends,
    "nests": draw_nests,
    "seeds": draw_seeds,
    "programs": draw_programs,
}


def save_drawings(folder: pathlib.Path) -> None:
    """Draws the concepts."""
    folder.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
            draw().savefig(folder / f"{name}.svg", metadata={"Date": None})


def save_run(folder: pathlib.Path) -> None:
    """Trains DQN on CartPole-v1, and keeps the pictures of its run."""
    sys.path.insert(0, str(_ROOT))
    import tfrl
    from benchmarks import score_pictures

    with tempfile.TemporaryDirectory() as logdir:
        logs = pathlib.Path(logdir)
        tfrl.DQN("CartPole-v1", seed=0, logdir=logs).learn(10_000)
        (logs / "learning_curve.png").replace(folder / "learning_curve.png")
        score_pictures.save_strip(logs / "agent.mp4", folder / "episode.png")
        _draw_report(logs).savefig(folder / "report.png", dpi=110)


def _draw_report(logs: pathlib.Path) -> Figure:
    """Draws four figures of a run's report, in one."""
    from tfrl.reports import evidence, figures

    run = evidence.Evidence.of_folder(logs)
    shown = ("Returns", "Values", "Errors of the values", "Exploration")
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    for axes, title in zip(figure.subplots(2, 2).flat, shown, strict=True):
        (chosen,) = [x for x in figures.FIGURES if x.title == title]
        for name in chosen.names:
            pairs = run.column(name, "environment_steps")
            if len(pairs):
                axes.plot(*pairs.T, label=name.replace("_", " "))
        axes.set_title(title)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(5))
        axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


def draw_regret() -> Figure:
    """The regret of four agents on two problems, over the rounds."""
    sys.path.insert(0, str(_ROOT))
    import keras

    from tfrl import networks
    from tfrl.bandits import agents

    def of_network(kind: Any, **arguments: Any) -> Any:
        def make(specs: tuple[Any, Any]) -> Any:
            network = networks.QNetwork(
                specs[0].observation, specs[1], fc_layer_params=(50, 50), seed=0
            )
            return kind(*specs, network, keras.optimizers.Adam(5e-3), **arguments)

        return make

    makers = {
        "LinUCB": lambda specs: agents.LinearUCBAgent(*specs, alpha=0.1),
        "linear Thompson": lambda specs: agents.LinearThompsonSamplingAgent(
            *specs, seed=0
        ),
        "epsilon-greedy": of_network(
            agents.NeuralEpsilonGreedyAgent, epsilon=0.05, seed=0
        ),
        "FALCON": of_network(
            agents.NeuralFalconAgent, exploitation_coefficient=10.0, seed=0
        ),
    }
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    problems = ("LinearBandit-v0", "WheelBandit-v0")
    for axes, name in zip(figure.subplots(1, 2).flat, problems, strict=True):
        for label, make in makers.items():
            axes.plot(*_regret_of(name, make), label=label)
        axes.set_title(name)
        axes.set_xlabel("rounds")
        axes.set_ylabel("regret")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


def _regret_of(name: str, make: Any) -> tuple[list[int], list[float]]:
    """Returns the rounds and the regret until then of one run."""
    from tfrl import train
    from tfrl.bandits import environments, metrics

    bandit = environments.load(name, batch_size=8, seed=0)
    agent = make((bandit.time_step_spec(), bandit.action_spec()))
    regret = metrics.CumulativeRegretMetric(bandit)
    loop = train.OnPolicyLoop(
        bandit, agent, [regret], collect_steps_per_iteration=2, seed=0, jit_compile=True
    )
    rounds, found = [], []
    for _ in range(40):
        rounds.append(int(loop.run(25).environment_steps))
        found.append(float(regret.result()))
    return rounds, found


def _canvas(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width * 0.8, height * 0.8), facecolor="white")
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def _box(
    axes: Any,
    x: float,
    y: float,
    width: float,
    height: float,
    text: str,
    color: str,
    size: float = 9.5,
) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=color,
            edgecolor="#555",
        )
    )
    _text(axes, x + width / 2, y + height / 2, text.replace("`", ""), size)


def _arrow(
    axes: Any,
    start: tuple[float, float],
    end: tuple[float, float],
    text: str,
    below: bool = False,
    side: bool = False,
) -> None:
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color="#555")
    )
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    if text:
        offset = (0.62, 0.0) if side else (0.0, -0.2 if below else 0.2)
        if "\n" in text and not side:
            offset = (0.0, 0.33)
        _text(axes, x + offset[0], y + offset[1], text.replace("`", ""), 9)


def _text(
    axes: Any, x: float, y: float, text: str, size: float = 9.5, left: bool = False
) -> None:
    axes.text(
        x,
        y,
        text,
        fontsize=size,
        color=_INK,
        ha="left" if left else "center",
        va="center",
        family=["DejaVu Sans", "Arial", "sans-serif"],
    )


if __name__ == "__main__":
    save_drawings(_FOLDER)
    if "--run" in sys.argv[1:]:
        save_run(_FOLDER)
    if "--regret" in sys.argv[1:]:
        draw_regret().savefig(_FOLDER / "regret.png", dpi=110)
