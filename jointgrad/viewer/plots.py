"""Plots of motions and of optimisation: loss curves, phase plots, contact timelines, loss landscapes.

Each returns a matplotlib figure, and saves it as a PNG where a path is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ..engine.run.trajectory import Trajectory
from ..model.errors import InputError
from .film import film_of
from .markup import untyped

COLORS = ("#2f6db5", "#e8710a", "#1a9641", "#b5304a", "#7b52ab", "#2a9fa8", "#8c6d31", "#666666")
PALE = "#eeeeee"


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _finished(figure: Figure, path: Any) -> Figure:
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=PALE)
    axes.set_axisbelow(True)


def loss_curves(
    losses: Mapping[str, Any] | Any, path: Any = None, x: Mapping[str, Any] | None = None, xlabel: str = "iterations",
    ylabel: str = "loss", title: str = "Loss",
) -> Figure:  # fmt: skip
    """Losses against iterations, a curve per name; a second axis of a curve (runs, iterations) is drawn as median and
    range. x: other abscissae by name, such as seconds. The scale is logarithmic where all losses are positive."""
    named = losses if isinstance(losses, Mapping) else {"": losses}
    if not named:
        raise InputError("there are no losses to plot")
    figure = _figure(6.4, 4.0)
    axes = figure.subplots()
    for k, (name, values) in enumerate(named.items()):
        runs = np.atleast_2d(np.asarray(values, dtype=np.float64))
        at = np.arange(runs.shape[1]) if x is None else np.asarray(x[name])
        color = COLORS[k % len(COLORS)]
        if len(runs) > 1:
            axes.fill_between(at, runs.min(0), runs.max(0), color=color, alpha=0.15, linewidth=0)
        axes.plot(at, np.median(runs, 0), color=color, linewidth=2, label=name)
    is_positive = all((np.asarray(v) > 0).all() for v in named.values())
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log" if is_positive else "linear")
    _plain(axes, title)
    if any(named):
        axes.legend(frameon=False)
    return _finished(figure, path)


def phase(traj: Trajectory, joints: Sequence[str] | None = None, path: Any = None, env: int = 0) -> Figure:
    """Position against rate of scalar joints (by default the first six), with start and end marked."""
    model, tree = traj.model, traj.model.topology.tree
    scalar = {
        model.joint_names[f]: (q, d)
        for f, q, d, n in zip(tree["frame"], tree["q"], tree["dof"], tree["n_dof"], strict=True)
        if n == 1
    }
    names = list(scalar)[:6] if joints is None else list(joints)
    for name in names:
        if name not in scalar:
            raise InputError(f'there is no joint "{name}" with one coordinate; there are {", ".join(scalar)}')
    if not names:
        raise InputError("the model has no joint with one coordinate")
    q, qd = (a if a.ndim == 2 else a[:, env] for a in (traj.q, traj.qd))
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = _figure(0.6 + 3.2 * columns, 0.4 + 2.7 * rows)
    for k, (axes, name) in enumerate(zip(figure.subplots(rows, columns, squeeze=False).ravel(), names, strict=False)):
        i, d = scalar[name]
        axes.plot(q[:, i], qd[:, d], color=COLORS[k % len(COLORS)], linewidth=1.5)
        axes.plot(q[0, i], qd[0, d], "o", color="#222222", label="start", markersize=5)
        axes.plot(q[-1, i], qd[-1, d], "s", color="#222222", fillstyle="none", label="end", markersize=6)
        axes.set(xlabel="position", ylabel="rate" if k % columns == 0 else "")
        _plain(axes, untyped(name))
    figure.axes[0].legend(frameon=False, fontsize=8)
    for axes in figure.axes[len(names) :]:
        axes.set_visible(False)
    return _finished(figure, path)


def contact_timeline(traj: Trajectory, path: Any = None, env: int = 0, fps: float = 200.0) -> Figure:
    """Which links touch when: a line per link, darker where the force is larger (N)."""
    film = film_of(traj.model, traj, environments=env + 1, fps=fps)
    force = np.zeros((len(film.scene.link_names), film.n_frames))
    own = film.contacts.env == env
    strength = np.linalg.norm(film.contacts.force[own], axis=-1)
    for side in (0, 1):
        link = film.contacts.links[own, side]
        np.add.at(force, (link[link >= 0], film.contacts.frame[own][link >= 0]), strength[link >= 0])
    rows = [j for j in range(len(force)) if force[j].any() and not film.scene.is_still[j]]
    figure = _figure(7.5, 1.6 + 0.3 * max(len(rows), 1))
    axes = figure.subplots()
    _plain(axes, "Which links touch when")
    axes.set(xlabel="time (s)", xlim=(film.time[0], max(film.time[-1], 1e-9)))
    axes.set_yticks(range(len(rows)), [untyped(film.scene.link_names[j]) for j in rows])
    if not rows:
        axes.text(0.5, 0.5, "nothing touches", transform=axes.transAxes, ha="center")
        return _finished(figure, path)
    edges = np.append(film.time, film.time[-1] + (film.time[-1] - film.time[-2] if film.n_frames > 1 else 1.0))
    shown = np.ma.masked_less_equal(force[rows], 0.0)
    usual = float(np.quantile(shown.compressed(), 0.95))
    mesh = axes.pcolormesh(edges, np.arange(len(rows) + 1) - 0.5, shown, cmap="YlOrRd", vmin=0.0, vmax=usual)
    axes.invert_yaxis()
    figure.colorbar(mesh, ax=axes, label="force (N)", extend="max")
    return _finished(figure, path)


def loss_landscape(
    loss: Callable[[np.ndarray], Any], centre: Any, directions: tuple[Any, Any], span: float = 1.0, n: int = 41,
    path: Any = None, labels: tuple[str, str] = ("first direction", "second direction"), title: str = "Loss around the point",
) -> Figure:  # fmt: skip
    """A slice of a loss through a point along two directions. loss takes all points at once, (n * n, size) -> (n * n,)."""
    centre = np.asarray(centre, dtype=np.float64)
    first, second = (np.asarray(d, dtype=np.float64) for d in directions)
    if first.shape != centre.shape or second.shape != centre.shape:
        raise InputError(
            f"directions must have the shape of the centre, {centre.shape}, not {first.shape}, {second.shape}"
        )
    ticks = np.linspace(-span, span, n)
    a, b = np.meshgrid(ticks, ticks)
    flat = centre.ravel() + a.reshape(-1, 1) * first.ravel() + b.reshape(-1, 1) * second.ravel()
    values = np.asarray(loss(flat.reshape(-1, *centre.shape)), dtype=np.float64).reshape(n, n)
    figure = _figure(5.6, 4.4)
    axes = figure.subplots()
    low, high = np.nanmin(values), np.nanmax(values)
    is_wide = low > 0 and high > 50 * low
    levels = np.geomspace(low, high, 24) if is_wide else np.linspace(low, high + (high == low), 24)
    filled = axes.contourf(a, b, values, levels, cmap="viridis", norm=LogNorm() if is_wide else None, extend="both")
    axes.contour(a, b, values, levels[::3], colors="white", linewidths=0.4)
    axes.plot(0, 0, "o", color="#e8710a", markeredgecolor="white", label="the point")
    row, column = np.unravel_index(np.nanargmin(values), values.shape)
    axes.plot(
        ticks[column], ticks[row], "*", color="white", markeredgecolor="#222222", markersize=11, label="lowest here"
    )
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=True, fontsize=8, loc="upper right")
    figure.colorbar(filled, ax=axes, label="loss", format="%.3g")
    return _finished(figure, path)
