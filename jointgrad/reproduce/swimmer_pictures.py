"""Pictures of the swimmer experiment: errors step by step and by medium, and one motion with its predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .pictures import new_figure
from .swimmer import CUT, DT, MEDIA

STYLES = {
    "LSTM": ("#e8710a", "--"),
    "MLP": ("#b07aa1", "-."),
    "vacuum": ("#999999", ":"),
    "hybrid": ("#2f6db5", "-"),
    "identified": ("#1a9641", "-"),
}
NAMES = {"vacuum": "engine in vacuum", "identified": "engine, medium identified", "hybrid": "hybrid: engine + network"}
# below this nothing can be seen of an error
FLOOR = 1e-5
EVERY = 10


def draw(parts: dict[str, Any], out: Path) -> None:
    media = [m for m in MEDIA if f"{m}/truth" in parts]
    if not media:
        return
    _curves(parts, media, out / "errors.png")
    _bars(parts, media, out / "media.png")
    for medium in media:
        _example(parts, medium, out / f"motion {medium}.png".replace(" ", "_"))


def _label(model: str) -> str:
    return NAMES.get(model, f"{model} alone")


def _curves(parts: dict[str, Any], media: list[str], path: Path) -> None:
    """Errors step by step, a panel for each medium."""
    figure = new_figure(3.1 * len(media) + 1.2, 3.9)
    panels = figure.subplots(1, len(media), sharey=True, squeeze=False)[0]
    for axes, medium in zip(panels, media, strict=True):
        for model, (colour, line) in STYLES.items():
            curve = np.maximum(parts[f"{medium}/{model}"]["curve"], FLOOR)
            axes.plot(EVERY * DT * np.arange(len(curve)), curve, line, color=colour, label=_label(model))
        axes.axvline(CUT * DT, color="#222222", linewidth=0.8)
        axes.set(yscale="log", xlabel="time (s)", ylim=(FLOOR, None))
        axes.set_title(medium, loc="left", fontsize=11)
    panels[0].set_ylabel("error / spread of the motion")
    panels[0].annotate(" training data\n end here", (CUT * DT, 0.45), xycoords=("data", "axes fraction"), fontsize=8)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    figure.savefig(path, dpi=90)


def _bars(parts: dict[str, Any], media: list[str], path: Path) -> None:
    """Errors over steps 200 to 900 by medium, written above the bars."""
    figure = new_figure(9, 3.8)
    axes = figure.subplots()
    width, floor = 0.85 / len(STYLES), 0.02
    for k, (model, (colour, _)) in enumerate(STYLES.items()):
        errors = [parts[f"{m}/{model}"]["relative"] for m in media]
        at = np.arange(len(media)) + (k - 2) * width
        bars = axes.bar(at, np.maximum(errors, floor), width, color=colour, label=_label(model))
        axes.bar_label(bars, [f"{e:.2g}" if e > FLOOR else "" for e in errors], fontsize=7, padding=1)
        axes.bar_label(bars, ["" if e > FLOOR else "< 1e-9" for e in errors], fontsize=7, padding=2, rotation=90)
    axes.set(yscale="log", ylabel="error / spread of the motion", ylim=(floor, 12))
    axes.set_xticks(range(len(media)), media)
    axes.set_title(f"Held-out motions, {CUT * DT:.1f} to 1.8 s", loc="left", fontsize=11)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.savefig(path, dpi=90)


def _example(parts: dict[str, Any], medium: str, path: Path) -> None:
    """The first held-out motion: angles and joint velocity, as in figure 9."""
    figure = new_figure(9, 3.6)
    shown = ((0, "x of the head (m)"), (2, "heading (rad)"), (3, "joint (rad)"), (7, "joint velocity (rad/s)"))
    panels = figure.subplots(1, len(shown))
    truth = np.array(parts[f"{medium}/truth"]["example"])
    time = EVERY * DT * np.arange(len(truth))
    for axes, (i, name) in zip(panels, shown, strict=True):
        axes.plot(time, truth[:, i], color="#222222", linewidth=3.5, alpha=0.35, label="MuJoCo")
        for model in ("LSTM", "vacuum", "hybrid"):
            colour, line = STYLES[model]
            axes.plot(
                time, np.array(parts[f"{medium}/{model}"]["example"])[:, i], line, color=colour, label=_label(model)
            )
        middle, half = truth[:, i].mean(), 1.2 * max(float(np.ptp(truth[:, i])), 1e-3)
        axes.set(xlabel="time (s)", ylim=(middle - half, middle + half))
        axes.set_title(name, loc="left", fontsize=10)
        axes.axvline(CUT * DT, color="#222222", linewidth=0.8)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9
    )
    figure.suptitle(f"{medium}: a held-out motion (line: where training data end)", x=0.01, ha="left", fontsize=11)
    figure.savefig(path, dpi=90)
