"""Pictures of swinging pendulums: how fast they learn, and the motions they found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image

from .pendulum import CONTROL_DT, LENGTH, Swing

INK, PALE, LINK, TIP, GOAL = "#222222", "#dddddd", "#2f6db5", "#e8710a", "#1a9641"
GOAL_MARK: dict[str, Any] = dict(
    marker="o", color=GOAL, fillstyle="none", markersize=13, markeredgewidth=2, linestyle=""
)
START_MARK: dict[str, Any] = dict(marker="o", color=PALE, linewidth=3, markersize=4)
TIP_MARK = dict(marker="o", color=TIP, markersize=8, linewidth=2)
# of the animation: every second control step, shown for 70 ms (GIF counts in tens), is half the true speed; the last
# pose stays a while
EVERY, FRAME_MS, LAST_MS = 2, 70, 2500
# how many control steps the bright part of the tip's trail goes back
TRAIL = 24


def new_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def colour(n: int) -> tuple[float, ...]:
    """From light (one link) to dark (seven)."""
    return colormaps["viridis_r"](0.1 + 0.9 * (n - 1) / 6)


# learning curves ------------------------------------------------------------------------------------------------------


def draw_learning_curves(swings: Sequence[Swing], path: Path) -> None:
    """Left: the tip comes closer to the top. Right: how much of what there is to get was got, beside the paper."""
    figure = new_figure(11, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_tip_errors(left, swings)
    _draw_shares(right, swings)
    figure.savefig(path, dpi=130)


def _draw_tip_errors(axes: Axes, swings: Sequence[Swing]) -> None:
    for s in swings:
        axes.plot(np.arange(1, s.iterations + 1), s.curve, color=colour(s.n), linewidth=2)
        axes.plot(s.iterations, s.curve[-1], "o", color=colour(s.n), label=f"{s.n} link{'s' * (s.n > 1)}")
    axes.set(yscale="log", xlabel="gradient steps", ylabel="distance of the tip from the top (m)")
    axes.set_title("Learning to reach the top: best of all starts so far", loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=9)
    axes.grid(axis="y", color="#eeeeee")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_shares(axes: Axes, swings: Sequence[Swing]) -> None:
    numbers, ours, paper = zip(*((s.n, 100 * s.ratio, 100 * s.paper / s.maximum) for s in swings), strict=True)
    axes.axhline(100, color=PALE, linewidth=1)
    axes.plot(numbers, ours, "o-", color=LINK, label="jointgrad, torques by gradient descent")
    axes.plot(numbers, paper, "s--", color="#999999", label="Qiao 2021, table 4, learned policy")
    axes.set(xlabel="links", ylabel="return / maximum (%)", xticks=numbers)
    axes.set_xlim(min(numbers) - 0.4, max(numbers) + 0.4)
    lowest = min(*paper, *ours)
    axes.set_ylim(lowest - 0.3 * (100 - lowest), 100 + 0.08 * (100 - lowest))  # room for the legend below
    axes.set_title("How much of the maximum n²/2 is reached", loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)


# animation ------------------------------------------------------------------------------------------------------------


def draw_animation(swings: Sequence[Swing], path: Path) -> None:
    """All pendulums side by side, in step, with the goal and the trail of the tip."""
    n_columns = min(4, len(swings) + 1)
    n_rows = -(-(len(swings) + 1) // n_columns)
    figure = new_figure(2.4 * n_columns, 0.4 + 2.9 * n_rows)
    figure.suptitle(
        f"To the top in {len(swings[0].torques) * CONTROL_DT:.2f} s, by gradient descent on the torques", color=INK
    )
    cells = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes in cells:
        axes.axis("off")
    panels = [Panel(axes, swing) for axes, swing in zip(cells, swings, strict=False)]
    clock = draw_key(cells[len(swings)])
    frames = [*range(0, len(swings[0].joints) - 1, EVERY), len(swings[0].joints) - 1]
    pictures = list(_pictures(figure, panels, clock, frames))
    # one palette for all, so that still parts do not flicker
    palette = pictures[-1].quantize(128, method=Image.Quantize.FASTOCTREE)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    durations = [FRAME_MS] * len(others) + [LAST_MS]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=False)


def _pictures(figure: Figure, panels: Sequence[Panel], clock: Any, frames: Sequence[int]):
    """Draws what stays once, then only what moves on top of it."""
    canvas: Any = figure.canvas
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)
    for k in frames:
        canvas.restore_region(still)
        for panel in panels:
            panel.draw(k)
        clock.set_text(f"{k * CONTROL_DT:.2f} s")
        clock.axes.draw_artist(clock)
        yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


class Panel:
    """One pendulum, seen along its axes: y to the right, z up."""

    def __init__(self, axes: Axes, swing: Swing) -> None:
        self.axes, self.path = axes, swing.joints[..., 1:]
        reach = LENGTH * swing.n
        axes.set(xlim=(-1.15 * reach, 1.15 * reach), ylim=(-1.15 * reach, 1.15 * reach), aspect="equal")
        axes.set_title(f"{swing.n} link{'s' * (swing.n > 1)}, {reach:g} m", fontsize=11, color=INK)
        axes.add_patch(Circle((0, 0), reach, fill=False, edgecolor="#e6e6e6"))
        axes.plot(*self.path[0].T, **START_MARK)
        axes.plot(0, reach, **GOAL_MARK)
        self.trail = LineCollection([], linewidths=2, animated=True)
        axes.add_collection(self.trail)
        (self.links,) = axes.plot([], [], "o-", color=LINK, linewidth=3.5, markersize=5, animated=True)
        (self.pivot,) = axes.plot(0, 0, "s", color=INK, markersize=7, animated=True)
        (self.tip,) = axes.plot([], [], "o", color=TIP, markersize=8, animated=True)
        self.distance = axes.text(
            0.5, 0.0, "", transform=axes.transAxes, ha="center", fontsize=9, color=INK, animated=True
        )
        self.top = np.array([0.0, reach])

    def draw(self, k: int) -> None:
        tips = self.path[: k + 1, -1]
        self.trail.set_segments(np.stack([tips[:-1], tips[1:]], axis=1))  # type: ignore[arg-type]
        age = np.arange(len(tips) - 1, 0, -1)
        self.trail.set_color([(*_rgb(TIP), max(0.2, 1 - a / TRAIL)) for a in age])  # type: ignore[misc]
        self.links.set_data(*self.path[k].T)
        self.tip.set_data(*self.path[k, -1:].T)
        self.distance.set_text(_distance(float(np.linalg.norm(self.path[k, -1] - self.top))))
        for artist in (self.trail, self.links, self.pivot, self.tip, self.distance):
            self.axes.draw_artist(artist)


def draw_key(axes: Axes) -> Artist:
    """What the marks mean; returns the clock, which moves."""
    axes.set(xlim=(-0.12, 1), ylim=(0, 1))
    rows = (
        ("goal: the highest point", GOAL_MARK),
        ("tip and its trail", TIP_MARK),
        ("start: horizontal, at rest", START_MARK),
    )
    for row, (text, style) in enumerate(rows):
        height = 0.93 - 0.15 * row
        axes.plot([0.0, -0.1], [height, height], markevery=[0], **style)
        axes.text(0.1, height, text, va="center", fontsize=9, color=INK)
    said = "A motor at every joint,\nat most 10 N m.\nAll drawn to the same size."
    axes.text(-0.1, 0.37, said, va="center", fontsize=9, color=INK, linespacing=1.4)
    axes.text(-0.1, 0.1, "half speed", va="center", fontsize=9, color="#777777")
    return axes.text(0.97, 0.1, "", va="center", ha="right", fontsize=14, color=INK, animated=True)


def _distance(metres: float) -> str:
    return f"{metres:.2f} m from the top" if metres >= 0.1 else f"{1000 * metres:.1f} mm from the top"


def _rgb(code: str) -> tuple[float, ...]:
    return tuple(int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))
