"""A page on which to watch a robot learn: the policy as it is, its curve, a pause, and the commands it is given."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..engine.run.rollout import rollout
from ..model.arrays import State
from .batch import Batch
from .play import Act
from .task import Task

# actions from one picture to the next; updates from one policy on the page to the next
PICTURES, POLICIES = 2, 5
# what a key adds to a command, by the name of its slider
KEYS = {
    "W": ("forward", 1), "S": ("forward", -1), "A": ("sideways", 1), "D": ("sideways", -1),
    "Q": ("turning", 1), "E": ("turning", -1),
}  # fmt: skip
WAIT = 0.2  # s from one look at the buttons to the next, while paused
PRESS = 0.25  # share of a range that a key adds


class LivePage:
    """The first environment of a task in the browser, in real time, moved by whatever policy there is; nothing at first.

    Learning goes on in the caller's thread, which calls `told` after each update; the robot has a thread of its own.
    """

    def __init__(self, task: Task, port: int | None = None, seed: int = 0) -> None:
        from ..viewer.browser import PORT, view_film
        from ..viewer.film import film_of

        self.task, self.batch = task, Batch(task, 1, threads=1)
        self.batch.generators = [np.random.default_rng(seed)]
        self.policy: Act = lambda seen: np.zeros((len(seen), task.model.nu))
        self._drawn = 0  # points of the curve
        self.cpu_seconds = 0.0  # of the robot's thread, which are none of learning
        self._begin()
        film = film_of(
            task.model, State(self.batch.now.q, self.batch.now.qd), title=f"{task.name} learns"
        ).without_forces()
        self.viewer = view_film(film, port=PORT if port is None else port, block=False)
        self._moving = [j for j, is_still in enumerate(film.scene.is_still) if not is_still]
        self._middle = film.position[0, 0, self._moving, :2].mean(0)
        self.is_stopped, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()
        self.is_ended, self._is_asked_to_save = False, threading.Event()
        self.save: Callable[[], None] = lambda: (
            None
        )  # what the button does, in the thread that learns, between two updates
        self._build()
        self._build_commands()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return self.viewer.address

    def stop(self) -> None:
        self.is_stopped.set()
        self.goes_on.set()
        self._thread.join(2.0)
        self.viewer.stop()

    # what is to be seen -------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        gui = self.viewer.server.gui
        with gui.add_folder("Learning", order=0):
            self.said = gui.add_markdown("not yet begun")
            none = np.zeros(1)
            self.curve = gui.add_uplot(
                (none, none), ({"label": "processor seconds"}, {"label": "return", "stroke": "#2f6db5", "width": 2}),
                title="return of an episode", scales={"x": {"time": False}}, aspect=1.6,
            )  # fmt: skip
            self.pause_button, self.save_button, self.end_button = map(gui.add_button, ("Pause", "Save", "End"))
        self.pause_button.on_click(lambda _: self.pause(self.goes_on.is_set()))
        self.save_button.on_click(lambda _: self.ask_to_save())
        self.end_button.on_click(lambda _: self.end())

    def _build_commands(self) -> None:
        """A slider for each part of a goal that the task has a range for, and keys that move them."""
        gui, ranges = self.viewer.server.gui, self.task.goal_ranges()
        self.commands: dict[str, Any] = {}
        if not ranges:
            return
        with gui.add_folder("Command", order=1):
            for name, (low, high) in ranges.items():
                self.commands[name] = gui.add_slider(
                    name, low, high, 0.01, 0.5 * max(high, 0.0) if not self.commands else 0.0
                )
            gui.add_markdown("keys: W S forward and back, A D sideways, Q E turn, X stop")
        for key, (name, sign) in KEYS.items():
            if name in ranges:
                self._key(key, f"{name} {'+' if sign > 0 else '-'}", functools.partial(self.press, name, sign))
        self._key("X", "stop", self.halt)

    def _key(self, key: Any, label: str, act: Callable[[], None]) -> None:
        self.viewer.server.gui.add_command(label, hotkey=key).on_trigger(lambda _: act())

    def press(self, name: str, sign: int) -> None:
        """A quarter of the range more, or less, as far as it goes."""
        slider, (low, high) = self.commands[name], self.task.goal_ranges()[name]
        slider.value = float(np.clip(slider.value + sign * PRESS * max(high, -low), low, high))

    def halt(self) -> None:
        for slider in self.commands.values():
            slider.value = 0.0

    # what learning says -------------------------------------------------------------------------------------------------

    def pause(self, is_paused: bool) -> None:
        (self.goes_on.clear if is_paused else self.goes_on.set)()
        self.pause_button.label = "Go on" if is_paused else "Pause"

    def ask_to_save(self) -> None:
        self._is_asked_to_save.set()

    def end(self) -> None:
        self.is_ended = True
        self.goes_on.set()

    def told(self, updates: int, rows: Sequence[Mapping[str, Any]], policy: Callable[[], Act]) -> bool:
        """After each update: take the policy now and then, and wait while paused. False to end."""
        if updates % POLICIES == 0:
            self.policy = policy()
        if len(rows) > self._drawn:
            self._drawn = len(rows)
            self.curve.data = tuple(np.array([one[n] for one in rows]) for n in ("cpu_seconds", "return_mean"))
            last = rows[-1]
            self.say(f"{last['env_steps']:,} actions, {last['cpu_seconds']:.0f} s of the processor")
        while True:
            if self._is_asked_to_save.is_set():
                self._is_asked_to_save.clear()
                self.save()
                self.say("saved")
            if self.goes_on.wait(WAIT):
                return not self.is_ended

    def say(self, text: str) -> None:
        from ..viewer.markup import plain

        self.said.content = plain(text)

    # the robot ----------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.batch.reset(np.ones(1, dtype=bool))

    def _run(self) -> None:
        due, count = time.monotonic(), 0
        while not self.is_stopped.wait(max(0.0, due - time.monotonic())):
            due = max(
                due + self.task.control_dt, time.monotonic() - 1.0
            )  # who cannot keep up is slow, and does not race later
            began = time.thread_time()
            self._command()
            result = self.batch.step(self.policy(self.batch.observe()))
            if result.terminated[0]:
                self._begin()
            count += 1
            if count % PICTURES == 0:
                self._draw()
            self.cpu_seconds += time.thread_time() - began

    def _command(self) -> None:
        if self.commands:
            goal = self.batch.now.goal.copy()
            goal[0, : len(self.commands)] = [slider.value for slider in self.commands.values()]
            self.batch.now = self.batch.now._replace(goal=goal)

    def _draw(self) -> None:
        """The robot stays in the middle, and the ground moves below it."""
        from ..viewer.scene import quaternion

        now, viewer = self.batch.now, self.viewer
        names = ("link.position", "link.rotation")
        found = rollout(self.task.model, State(now.q, now.qd), steps=0, outputs=names, threads=1, keep=False).outputs
        position, turn = found["link.position"][0], quaternion(found["link.rotation"][0])
        gone = np.append(position[0, self._moving, :2].mean(0) - self._middle, 0.0)
        with viewer.lock, viewer.server.atomic():
            viewer.place(position - gone, turn)
            for ground, at in zip(viewer.grids, viewer.floors, strict=True):
                ground.position = at - np.fmod(gone, ground.section_size)
