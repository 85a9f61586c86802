"""Plots that a person reads at a glance: bars on a logarithmic axis, and lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

COLOURS = {"ours": "#e8710a", "peer": "#2f6db5", "printed": "#b8b8b8", "wrong": "#d9a0a0"}
MEANING = {"ours": "jointgrad", "peer": "measured here", "printed": "printed in the paper", "wrong": "failed its check"}
INK = "#222222"
DPI = 110
Bar = tuple[str, float, str]  # label, value, kind
Line = tuple[str, Sequence[float], Sequence[float], str, str]  # label, x, y, style, colour
OURS, SECOND, THIRD, THEORY = COLOURS["ours"], "#b3520a", "#1a9641", "#222222"


def new_figure(width: float, height: float, title: str) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure


def draw_bars(panels: Sequence[tuple[str, list[Bar], Callable[[float], str]]], path: Path, title: str) -> Path:
    """Horizontal bars, the shortest on top, each with its figure at its end; panels without any are left out."""
    panels = [panel for panel in panels if panel[1]]
    most = max(len(bars) for _, bars, _ in panels)
    figure = new_figure(5.2 * len(panels), 0.9 + 0.27 * most, title)
    for axes, (words, bars, shown) in zip(np.ravel(figure.subplots(1, len(panels))), panels, strict=True):
        _bars(axes, sorted(bars, key=lambda bar: -bar[1]), shown, most)
        axes.set_title(words, loc="left", fontsize=10)
    kinds = list(dict.fromkeys(bar[2] for _, bars, _ in panels for bar in bars))
    handles = [figure.axes[0].barh([0], [0], color=COLOURS[k], label=MEANING[k]) for k in kinds]
    figure.legend(handles=handles, loc="outside lower right", ncols=len(kinds), frameon=False, fontsize=9)
    return saved(figure, path)


def _bars(axes: Axes, bars: list[Bar], shown: Callable[[float], str], most: int) -> None:
    values = [value for _, value, _ in bars]
    left = min(values) / 3
    places = range(len(bars))
    axes.barh(places, [v - left for v in values], left=left, color=[COLOURS[k] for _, _, k in bars], height=0.72)
    for place, value in zip(places, values, strict=True):
        axes.text(value * 1.15, place, shown(value), va="center", fontsize=8, color=INK)
    axes.set_yticks(list(places), [label for label, _, _ in bars], fontsize=8)
    axes.set(xscale="log", xlim=(left, max(values) * 12), ylim=(len(bars) - most - 0.6, len(bars) - 0.4))
    for tick, (_, _, kind) in zip(axes.get_yticklabels(), bars, strict=True):
        tick.set_fontweight("bold" if kind == "ours" else "normal")
    axes.tick_params(axis="x", labelbottom=False, length=2)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([10.0**k for k in range(int(np.ceil(np.log10(left))), int(np.log10(max(values) * 12)) + 1)])
    axes.minorticks_off()
    axes.grid(axis="x", color="#eeeeee", zorder=0)
    axes.set_axisbelow(True)


def draw_lines(panels: Sequence[tuple[str, str, str, list[Line]]], path: Path, title: str) -> Path:
    """Panels (title, x label, y label, lines), both axes logarithmic."""
    figure = new_figure(4.6 * len(panels), 3.8, title)
    for axes, (words, x_label, y_label, lines) in zip(np.ravel(figure.subplots(1, len(panels))), panels, strict=True):
        for label, x, y, style, colour in lines:
            axes.plot(x, y, style, label=label, color=colour, linewidth=1.8, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel=x_label, ylabel=y_label)
        _plain_ticks(axes)
        axes.set_title(words, loc="left", fontsize=10)
        axes.grid(color="#eeeeee")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return saved(figure, path)


def _plain_ticks(axes: Axes) -> None:
    """Plain numbers instead of powers of ten, and 2 and 5 between them where there is room."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_data_interval()
        axis.set_major_locator(LogLocator(subs=(1.0,) if high > 500 * low else (1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=8)


def saved(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
    return path


def draw_verdicts(
    columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float | None]]], limits: tuple[float, float], path: Path
) -> Path:
    """A field for each answer: green below the first limit, yellow below the second, red above, grey for none."""
    figure = new_figure(
        1.6 + 1.15 * len(columns), 0.9 + 0.4 * len(rows), "Derivatives with known answers: relative error"
    )
    axes = figure.subplots()
    for i, (_, errors) in enumerate(rows):
        for j, error in enumerate(errors):
            colour = "#e4e4e4" if error is None else "#8cc98c" if error < limits[0] else "#f2d37a"
            colour = "#e39a9a" if error is not None and error >= limits[1] else colour
            axes.add_patch(Rectangle((j, i), 0.96, 0.92, color=colour))
            text = "none" if error is None else f"{error:.0e}"
            axes.text(j + 0.48, i + 0.46, text, ha="center", va="center", fontsize=8, color=INK)
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    axes.set_xticks([j + 0.48 for j in range(len(columns))], columns, fontsize=9)
    axes.set_yticks([i + 0.46 for i in range(len(rows))], [title for title, _ in rows], fontsize=9)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    return saved(figure, path)
