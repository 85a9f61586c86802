"""A robot that walks in the browser as it is told: sliders and keys for the command, a push, and a plot of what its feet bear."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..model.arrays import Model, State
from .browser import PERIOD, PORT, Viewer
from .film import film_of, pose_of
from .markup import plain

POINTS = 90  # of the plot: three seconds
EYE, MIDDLE = (1.2, -1.6, 0.9), (0.0, 0.0, 0.2)  # of the first look at a robot of half a metre
COLORS = ("#d1495b", "#edae49", "#00798c", "#30638e")
# key, label, which part of the command, which way
KEYS = (
    ("W", "forward", 0, 1), ("S", "back", 0, -1), ("A", "left", 1, 1), ("D", "right", 1, -1), ("Q", "turn left", 2, 1),
    ("E", "turn right", 2, -1),
)  # fmt: skip


class Shown(NamedTuple):
    """What a page shows of a moment: time (s), the state, the force on each foot (N), and a line of text."""

    time: float
    state: State
    forces: np.ndarray
    text: str


class Steered(Protocol):
    """What a page steers."""

    def advance(self, seconds: float, command: np.ndarray) -> Shown:
        """Move on by so much under a command: speeds forward, sideways (m/s) and turning (rad/s)."""

    def push(self) -> None:
        """Give it a shove."""

    def reset(self) -> None:
        """Begin anew."""


class SteeredView(Viewer):
    """A running page. limits: the largest command, (3,)."""

    def __init__(
        self, model: Model, robot: Steered, feet: tuple[str, ...], limits: tuple[float, float, float], title: str,
        port: int = PORT, host: str = "127.0.0.1",
    ) -> None:  # fmt: skip
        self.robot, self.model_shown, self.feet, self.limits = robot, model, feet, limits
        self._wants = deque[Callable[[], None]]()
        self._times, self._forces = deque[float](maxlen=POINTS), deque[np.ndarray](maxlen=POINTS)
        self._drawn = -1.0
        super().__init__(film_of(model, model.initial_state(), title=title), None, None, port, host)

        @self.server.on_client_connect
        def _(client: Any) -> None:
            client.camera.position, client.camera.look_at = EYE, MIDDLE

    def _build_options(self) -> None:
        gui = self.server.gui
        with gui.add_folder("Command", order=0):
            self.sliders = [
                gui.add_slider(name, -limit, limit, 0.05, 0.0)
                for name, limit in zip(("forward (m/s)", "sideways (m/s)", "turning (rad/s)"), self.limits, strict=True)
            ]
            ways = gui.add_button_group("keys W S A D Q E", tuple(label for _, label, _, _ in KEYS))
            ways.on_click(lambda _: self.steer(*next(k[2:] for k in KEYS if k[1] == ways.value)))
            doings = gui.add_button_group("keys X P R", ("stop", "push", "reset"))
            doings.on_click(lambda _: self.do(doings.value))
            self.said = gui.add_markdown("")
        for key, label, part, way in KEYS:
            gui.add_command(label, hotkey=key).on_trigger(lambda _, part=part, way=way: self.steer(part, way))
        for key, name in (("X", "stop"), ("P", "push"), ("R", "reset")):
            gui.add_command(name, hotkey=key).on_trigger(lambda _, name=name: self.do(name))
        self._build_plot()
        super()._build_options()
        self.follows = gui.add_checkbox("follow the robot", True, order=9)

    def _build_plot(self) -> None:
        series: list[Any] = [{"label": "time (s)"}]
        series += [{"label": name, "stroke": c, "width": 2} for name, c in zip(self.feet, COLORS, strict=False)]
        axes: Any = ({"label": "s"}, {"label": "N"})
        data = tuple(np.zeros(2) for _ in series)
        with self.server.gui.add_folder("Force on each foot", order=1):
            self.plot = self.server.gui.add_uplot(
                data, tuple(series), axes=axes, aspect=1.6, scales={"x": {"time": False}, "y": {"auto": True}}
            )

    # what hands do ------------------------------------------------------------------------------------------------------

    @property
    def command(self) -> np.ndarray:
        return np.array([s.value for s in self.sliders])

    def steer(self, part: int, way: int) -> None:
        """A tenth of the range more or less of one part of the command."""
        limit, slider = self.limits[part], self.sliders[part]
        slider.value = float(np.clip(round(slider.value + 0.1 * way * max(limit, 0.5), 3), -limit, limit))

    def do(self, name: str) -> None:
        if name == "stop":
            for slider in self.sliders:
                slider.value = 0.0
        else:
            self._wants.append(self.robot.push if name == "push" else self._begin_anew)

    def _begin_anew(self) -> None:
        self.do("stop")
        self.robot.reset()
        self._times.clear()
        self._forces.clear()

    # what time does -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """In real time: as much as the clock on the wall went on, and at most a tenth of a second at once."""
        before = time.perf_counter()
        while not self.is_stopped.wait(max(0.0, PERIOD - (time.perf_counter() - before))):
            now = time.perf_counter()
            elapsed, before = min(now - before, 0.1), now
            while self._wants:
                self._wants.popleft()()
            self.draw(self.robot.advance(elapsed, self.command))

    def draw(self, shown: Shown) -> None:
        """Show one moment, and the plot five times a second."""
        position, orientation, self.film.contacts = pose_of(self.model_shown, shown.state)
        self.film.position[0, 0], self.film.orientation[0, 0] = position[0, 0], orientation[0, 0]
        self._centre(shown.state.q[:3])
        self.show(0)
        self._times.append(shown.time)
        self._forces.append(shown.forces)
        if abs(shown.time - self._drawn) > 0.2:
            self._drawn = shown.time
            self.plot.data = (np.array(self._times), *np.array(self._forces).T)
            self.said.content = plain(shown.text)

    def _centre(self, place: np.ndarray) -> None:
        """The robot stays in the middle, and the world moves under it: cameras belong to who looks."""
        moved = -place * [1.0, 1.0, 0.0] * self.follows.value
        self.offsets[0] = moved
        section = 4 * self.film.camera().tile
        for grid, floor in zip(self.grids, self.floors, strict=True):
            grid.position = floor + np.fmod(moved, section)
