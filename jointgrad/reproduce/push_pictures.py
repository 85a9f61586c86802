"""The picture of `jointgrad reproduce push`: held-out pushes before, after and predicted, and bars of errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .push_data import LOGS, Pushes, turned
from .push_world import CORNERS

COLOURS = {"untuned": "#d98c3f", "fitted": "#3f7fd9", "augmented": "#2f9e5f"}


def draw(pushes: Pushes, found: dict[str, Any], path: Path) -> None:
    """Four pushes on the left: those in which the block moved most, one per set of supports. Bars on the right."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(2, 3, figsize=(11, 6.6), width_ratios=(1, 1, 1.15), dpi=80)
    for k, ax in enumerate(axes[:, :2].ravel()):
        rows = np.flatnonzero(pushes.condition % (len(LOGS) // 2) == k)
        _push(ax, pushes, found, rows[np.abs(pushes.moved[rows, 2]).argmax()])
    lines, names = axes[0, 0].get_legend_handles_labels()
    fig.legend(lines, names, loc="lower left", ncols=len(names), fontsize=9, frameon=False)
    for ax, key, unit in ((axes[0, 2], "mm", "position, mm"), (axes[1, 2], "degrees", "angle, degrees")):
        _bars(ax, found, key, unit)
    fig.suptitle(f"A finger pushes a block on three supports: {len(pushes)} held-out pushes, after 16 mm", fontsize=11)
    fig.tight_layout(rect=(0, 0.05, 1, 1))
    fig.savefig(path)
    plt.close(fig)


def _push(ax: Any, pushes: Pushes, found: dict[str, Any], i: int) -> None:
    lines = (
        ("before", pushes.before[i], {"color": "0.7", "lw": 1.2}),
        ("after, measured", pushes.after[i], {"color": "k", "lw": 2.2}),
        ("untuned", found["untuned"]["pose"][i], {"color": COLOURS["untuned"], "lw": 1.1, "ls": ":"}),
        ("fitted", found["fitted"]["pose"][i], {"color": COLOURS["fitted"], "lw": 1.3, "ls": "--"}),
        ("augmented", found["augmented"]["pose"][i], {"color": COLOURS["augmented"], "lw": 1.3}),
    )
    for name, pose, style in lines:
        corners = _placed(CORNERS, np.array(pose))
        ax.plot(*(1e3 * corners[[0, 1, 2, 0]]).T, label=name, **style)
    ax.plot(*(1e3 * _placed(pushes.supports[i], pushes.after[i])).T, "k.", ms=5)
    start, end = 1e3 * pushes.first[i], 1e3 * pushes.last[i]
    ax.annotate("", end, start - 1.5 * (end - start), arrowprops={"arrowstyle": "->", "color": "#b03030", "lw": 1.8})
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    wood = "plywood" if pushes.is_wood[i] else "hardboard"
    off = (
        f"{name} off by {found[name]['mm'][i]:.1f} mm, {found[name]['degrees'][i]:.1f}°"
        for name in ("fitted", "augmented")
    )
    ax.set_title(f"{wood}; turned by {abs(np.rad2deg(pushes.moved[i, 2])):.0f}°\n" + "\n".join(off), fontsize=8)


def _placed(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    return turned(points, np.full(len(points), pose[2])) + pose[:2]


def _bars(ax: Any, found: dict[str, Any], key: str, unit: str) -> None:
    for k, (name, colour) in enumerate(COLOURS.items()):
        mean, median = np.mean(found[name][key]), np.median(found[name][key])
        ax.barh(-k, mean, color=colour, height=0.62)
        ax.plot([median, median], [-k - 0.31, -k + 0.31], color="k", lw=1.5)
        ax.text(mean, -k, f" {mean:.2f}", va="center", fontsize=9)
    ax.set_yticks([-k for k in range(len(COLOURS))], list(COLOURS), fontsize=9)
    ax.set_xlim(0, 1.15 * np.mean(found["untuned"][key]))
    still = np.mean(found["does not move"][key])
    ax.set_title(f"error in {unit}: mean, median as a stroke\n({still:.1f} if the block did not move)", fontsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
