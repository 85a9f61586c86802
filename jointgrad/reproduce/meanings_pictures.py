"""Pictures of what gradients mean: slopes of every meaning, and how three problems were solved by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from .meanings import Curve, Task
from .meanings_slopes import SCENES, WINS, Scene
from .pictures import new_figure

INK, PALE = "#222222", "#bbbbbb"
COLOURS = {
    "exact": "#d1495b", "moving impacts": "#2f6db5", "smoothed": "#1a9641", "randomised": "#e8710a", "truncated": "#7b5ea7",
}  # fmt: skip


def draw_slopes(axes: Axes, scene: Scene, names: Sequence[str]) -> None:
    """The loss as a line, and short pieces with the slopes that meanings say."""
    p, loss = scene.line()
    axes.plot(p, loss, color=PALE, linewidth=2, zorder=1)
    height = max(float(np.ptp(loss)), 1e-9)
    for name in names:
        at, value, slope = scene.slopes(scene.meanings()[name])
        # pieces are as long in the picture whatever their slope
        steep = slope * (scene.high - scene.low) / height
        half = 0.035 * (scene.high - scene.low) / np.sqrt(1.0 + steep**2)
        ends = np.stack([value - half * slope, value + half * slope])
        axes.plot(np.stack([at - half, at + half]), ends, color=COLOURS[name], linewidth=2.4, solid_capstyle="round")
        axes.plot([], [], color=COLOURS[name], linewidth=2.4, label=name)
    axes.set(xlabel=scene.label, ylim=(loss.min() - 0.15 * height, loss.max() + 0.15 * height))
    axes.set_title(scene.words, loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw_meaning(name: str, path: Path) -> None:
    """Where it does well, and where it does not, beside the exact one."""
    figure = new_figure(10, 3.6)
    for axes, scene, words in zip(figure.subplots(1, 2), WINS[name], ("does well", "does not"), strict=True):
        others = ["exact"] if name != "exact" else ["moving impacts"] if scene == "bounce" else []
        draw_slopes(axes, SCENES[scene](), [*others, name])
        axes.set_title(f"{words}: {SCENES[scene]().words}", loc="left", fontsize=10)
    figure.savefig(path, dpi=110)


def draw_lesson(path: Path) -> None:
    """Four motions through contact, and the exact slopes."""
    figure = new_figure(10, 6.4)
    for axes, name in zip(figure.subplots(2, 2).flat, ("slide", "bounce", "stick", "reach"), strict=True):
        draw_slopes(axes, SCENES[name](), ["exact"])
    figure.savefig(path, dpi=110)


def draw_curves(tasks: Sequence[Task], curves: Sequence[Curve], path: Path) -> None:
    """Best distance so far of every start, by meaning."""
    figure = new_figure(12, 3.8)
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        for curve in (c for c in curves if c.task == task.name):
            best = np.maximum(curve.best(), 1e-4)
            said = f"{curve.meaning}: {curve.solved(task.solved)} of {best.shape[1]}"
            axes.plot(best, color=COLOURS[curve.meaning], linewidth=1, alpha=0.6)
            axes.plot([], [], color=COLOURS[curve.meaning], linewidth=2, label=said)
        axes.axhline(task.solved, color=INK, linewidth=0.8, linestyle=":")
        axes.set(yscale="log", xlabel="gradient steps", ylabel="distance from the mark, best so far (m)")
        axes.set_title(f"{task.name}: {task.words}", loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=8, loc="lower left")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def draw_all(folder: Path) -> list[Path]:
    """All but the curves."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_lesson(folder / "gradients_lesson.png")
    for name in WINS:
        draw_meaning(name, folder / f"meaning_{name.replace(' ', '_')}.png")
    return sorted(folder.glob("meaning_*.png"))
