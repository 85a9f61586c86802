"""The viewer in a browser, served by viser: joints to drag, physics to run, motions to play."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from typing import Any

import numpy as np

from ..engine.looks.inspect import inspect
from ..engine.run.single_steps import step
from ..engine.run.trajectory import Gradient, Trajectory
from ..model.arrays import FREE, PRISMATIC, SPHERICAL, Model, State
from ..model.errors import InputError, SimulationError
from .film import ENVIRONMENTS, Film, film_of, pose_of
from .guard import only_our_pages
from .markup import plain

PORT = 8080
RED, TINTS, HULL = (219, 41, 51), ((26, 158, 115), (148, 77, 199)), (242, 140, 38)
SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")
PERIOD = 1 / 30  # of pictures sent to the browser (s)


def view(
    model: Model,
    traj: Trajectory | State | None = None,
    gradient: Gradient | None = None,
    port: int = PORT,
    block: bool = True,
    host: str = "127.0.0.1",
    environments: int = ENVIRONMENTS,
    title: str = "",
) -> Viewer:
    """Open a viewer of a model, or of a motion, and print its address; Ctrl-C ends it.

    Without a motion, joints can be dragged and physics can run. block=False returns at once; `.stop()` ends it. The page
    is served to this machine alone; over a remote shell, forward the port: ssh -L 8080:localhost:8080 host.
    """
    film = film_of(model, traj, gradient, environments, title=title)
    state = None if isinstance(traj, Trajectory) else (traj or model.initial_state(model.batch))
    viewer = Viewer(film, model if state is not None else None, state, port, host)
    return viewer.announced(block)


def view_film(film: Film, port: int = PORT, block: bool = True, host: str = "127.0.0.1") -> Viewer:
    """The same of a film, such as that of a saved run."""
    return Viewer(film, None, None, port, host).announced(block)


def _viser() -> Any:
    try:
        import viser
    except ImportError:
        raise InputError('the viewer needs the package viser: pip install "jointgrad[view]"') from None
    return viser


class Viewer:
    """A running viewer: the page, what it shows, and the thread that moves it."""

    def __init__(self, film: Film, model: Model | None, state: State | None, port: int, host: str) -> None:
        self.film, self.model, self.offsets = film, model, film.offsets()
        with only_our_pages(host), contextlib.redirect_stdout(io.StringIO()):  # the address is printed once, by us
            self.server = _viser().ViserServer(host=host, port=port, label=film.title or "jointgrad", verbose=False)
        self.frame, self.clock, self.is_playing, self.is_stopped = 0, 0.0, False, threading.Event()
        self.lock = threading.RLock()
        self._build_scene()
        self._build_options()
        self.pose: _Posing | None = None
        if model is not None and state is not None:
            self.pose = _Posing(self, model, state)
        elif film.n_frames > 1:
            self._build_player()
        self.show(0)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"http://localhost:{self.server.get_port()}"

    def announced(self, block: bool) -> Viewer:
        port = self.server.get_port()
        print(f"jointgrad viewer: {self.address}  (Ctrl-C ends it; from afar: ssh -L {port}:localhost:{port} host)")
        if self.film.note:
            print(f"note: {self.film.note}")
        if block:
            try:
                while not self.is_stopped.wait(0.5):
                    pass
            except KeyboardInterrupt:
                print()
            finally:
                self.stop()
        return self

    def stop(self) -> None:
        """End the viewer and free its port."""
        self.is_stopped.set()
        self.thread.join(2.0)
        self.server.stop()

    # what stands there --------------------------------------------------------------------------------------------------

    def _build_scene(self) -> None:
        film, scene = self.film, self.server.scene
        camera, size = film.camera(), film.size
        scene.set_up_direction("+z")
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)
        self.server.gui.main_panel.dock_right()
        self._build_ground()
        self.links: list[list[Any]] = []
        self.skins: list[Any] = []
        self.hulls: list[Any] = []
        for env in range(film.n_shown):
            names = [f"/env{env}/{j}" for j in range(len(film.scene.link_names))]
            axes = dict(axes_length=0.1 * size, axes_radius=0.004 * size, show_axes=False)
            self.links.append([scene.add_frame(name, **axes) for name in names])
            for k, piece in enumerate(film.scene.solids):
                self._add_piece(f"{names[piece.link]}/{k}", piece)

        @self.server.on_client_connect
        def _(client: Any) -> None:
            client.camera.position, client.camera.look_at = camera.eye, camera.middle

    def _build_ground(self) -> None:
        camera = self.film.camera()
        floors = [self.film.placed(p) for p in self.film.scene.planes]
        if not floors:
            floors = [(np.array([0.0, 0.0, self.film.extent()[0][2]]), np.array([1.0, 0.0, 0.0, 0.0]))]
        self.floors = [position for position, _ in floors]
        self.grids = [
            self.server.scene.add_grid(
                f"/ground{k}",
                infinite_grid=True,
                cell_size=camera.tile,
                section_size=4 * camera.tile,
                fade_distance=12 * camera.reach,
                position=position,
                wxyz=turn,
                shadow_opacity=0.35,
                plane_color=(225, 230, 235),
                plane_opacity=0.9 if self.film.scene.planes else 0.0,
            )  # fmt: skip
            for k, (position, turn) in enumerate(floors)
        ]

    def _add_piece(self, name: str, piece: Any) -> None:
        vertices, faces = piece.triangles()
        if not len(faces):
            return
        look = dict(vertices=vertices.astype(np.float32), faces=faces.astype(np.uint32))
        look["flat_shading"] = piece.kind in ("mesh", "box", "cylinder")
        if piece.is_visual:
            color, alpha = tuple(int(255 * c) for c in piece.color[:3]), float(piece.color[3])
            self.skins.append(
                self.server.scene.add_mesh_simple(name, color=color, opacity=alpha if alpha < 1 else None, **look)
            )
        if piece.is_collision:
            self.hulls.append(
                self.server.scene.add_mesh_simple(
                    f"{name}c", color=HULL, opacity=0.4, visible=False, scale=1.001, cast_shadow=False, **look
                )
            )

    def _build_options(self) -> None:
        gui = self.server.gui
        if self.film.note:
            gui.add_markdown(plain(self.film.note))
        with gui.add_folder("Show", order=10):
            self.visual, self.collision = gui.add_checkbox("shapes", True), gui.add_checkbox("collision shapes", False)
            self.contacts, self.frames = gui.add_checkbox("contact forces", True), gui.add_checkbox("frames", False)
            self.gradients = gui.add_checkbox("gradients", True, visible=bool(self.film.arrows))
            for a, color in zip(self.film.arrows, ("green", "violet"), strict=False):
                gui.add_markdown(plain(f"{color}: {a.label}, longest {a.largest:.3g}"))
        for box in (self.visual, self.collision, self.contacts, self.frames, self.gradients):
            box.on_update(lambda _: self._choose())

    def _choose(self) -> None:
        with self.lock, self.server.atomic():
            for handle in self.skins:
                handle.visible = self.visual.value
            for handle in self.hulls:
                handle.visible = self.collision.value
            for handle in (link for links in self.links for link in links):
                handle.show_axes = self.frames.value
            self._draw_arrows()

    # what moves ---------------------------------------------------------------------------------------------------------

    def show(self, frame: int) -> None:
        """Draw one picture of the film."""
        with self.lock, self.server.atomic():
            self.frame = frame
            self.place(self.film.position[frame], self.film.orientation[frame])
            self._draw_arrows()

    def place(self, position: np.ndarray, orientation: np.ndarray) -> None:
        """Put all links, (environments, n, 3) and (..., 4), where they belong."""
        for env, links in enumerate(self.links):
            for j, link in enumerate(links):
                link.position, link.wxyz = position[env, j] + self.offsets[env], orientation[env, j]

    def _draw_arrows(self) -> None:
        if self.contacts.value:
            env, at, vector = self.film.force_arrows(self.frame)
            self.arrows("forces", at + self.offsets[env], vector, np.array(RED))
        else:
            self.arrows("forces", np.zeros((0, 3)), np.zeros((0, 3)), np.array(RED))
        env, at, vector, which = self.film.gradient_arrows(self.frame)
        many = len(env) if self.gradients.value else 0
        colors = np.array(TINTS)[which[:many] % 2]
        self.arrows("gradients", (at + self.offsets[env])[:many], vector[:many], colors)

    def arrows(self, name: str, at: np.ndarray, vector: np.ndarray, color: np.ndarray) -> None:
        """Replace the arrows of a name; there may be none."""
        keep = np.linalg.norm(vector, axis=-1) > 1e-6
        at, vector = at[keep], vector[keep]
        if not len(at):
            # viser has no empty arrows: one of no length, out of sight
            at, vector, color = np.zeros((1, 3)), np.full((1, 3), 1e-9), np.array(RED)
        shade = np.broadcast_to(color[keep] if color.ndim == 2 else color, (len(at), 3))
        width = 0.008 * self.film.size
        self.server.scene.add_arrows(
            f"/{name}", np.stack([at, at + vector], 1).astype(np.float32), shade.astype(np.uint8),
            shaft_radius=width, head_radius=2.4 * width, head_length=6 * width, visible=bool(keep.any()),
        )  # fmt: skip

    def _build_player(self) -> None:
        gui, last = self.server.gui, self.film.n_frames - 1
        with gui.add_folder("Motion", order=1):
            self.play_button = gui.add_button("Play", icon=None)
            self.steps = gui.add_button_group("one picture", ("back", "on"))
            self.slider = gui.add_slider("time (s)", 0.0, float(self.film.time[-1]), 1e-3, 0.0)
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        self.play_button.on_click(lambda _: self.play(not self.is_playing))

        @self.slider.on_update
        def _(event: Any) -> None:
            if event.client is not None:  # dragged by a hand, not moved by the clock
                self.play(False)
                self.clock = float(self.slider.value)
                self.show(self._frame_at(self.clock))

        @self.steps.on_click
        def _(_: Any) -> None:
            self.play(False)
            frame = min(max(self.frame + (1 if self.steps.value == "on" else -1), 0), last)
            self.clock = self.slider.value = float(self.film.time[frame])
            self.show(frame)

    def play(self, on: bool) -> None:
        self.is_playing = on
        if hasattr(self, "play_button"):
            self.play_button.label = "Pause" if on else "Play"

    def _frame_at(self, clock: float) -> int:
        return int(np.searchsorted(self.film.time, clock + 1e-9, side="right") - 1)

    def _run(self) -> None:
        """Move on, as fast as the clock on the wall says."""
        before = time.perf_counter()
        while not self.is_stopped.wait(PERIOD):
            now = time.perf_counter()
            elapsed, before = now - before, now
            if self.pose is not None:
                self.pose.advance(elapsed)
            elif self.is_playing:
                self.clock += elapsed * float(self.speed.value)
                if self.clock > self.film.time[-1] + 0.5:
                    self.clock = 0.0
                frame = self._frame_at(min(self.clock, float(self.film.time[-1])))
                self.slider.value = float(self.film.time[frame])
                self.show(frame)


class _Posing:
    """A model without a motion: its joints follow sliders, or physics."""

    def __init__(self, viewer: Viewer, model: Model, state: State) -> None:
        self.viewer, self.model, self.start = viewer, model.environment(0), State(*(np.atleast_2d(a)[0] for a in state))
        self.state, self.u = State(*(a.copy() for a in self.start)), np.zeros(model.nu)
        self.is_running, self.is_ours, self.dt = False, False, float(np.ravel(model.params["world.dt"])[0])
        self.behind = 0.0
        viewer.film.force_scale = 0.3 * viewer.film.size / self._weight()
        self._build_physics()
        self._build_controls()
        self._build_joints()

    def _build_physics(self) -> None:
        gui = self.viewer.server.gui
        with gui.add_folder("Physics", order=1):
            self.run_button = gui.add_button("Play")
            self.buttons = gui.add_button_group("", ("step", "reset"))
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
            self.said = gui.add_markdown("")
        self.run_button.on_click(lambda _: self.run(not self.is_running))

        @self.buttons.on_click
        def _(_: Any) -> None:
            self.run(False)
            if self.buttons.value == "step":
                self.advance_steps(1)
            else:
                self.set_state(State(*(a.copy() for a in self.start)))

    def _build_controls(self) -> None:
        if not self.model.nu:
            return
        gui, limits = self.viewer.server.gui, np.asarray(self.model.params["actuator.control_limit"])
        with gui.add_folder("Controls", order=2, expand_by_default=self.model.nu <= 8):
            for k, name in enumerate(self.model.actuator_names):
                low, high = _range(limits[k], 10.0)
                slider = gui.add_slider(name, low, high, (high - low) / 500, min(max(0.0, low), high))
                self.u[k] = slider.value
                slider.on_update(lambda _, k=k, slider=slider: self.u.__setitem__(k, slider.value))

    def _build_joints(self) -> None:
        """Sliders for scalar joints, a gizmo for free bodies; a ball joint gets three sliders of a turn about x, y, z."""
        self.sliders: list[tuple[Any, int]] = []
        self.gizmos: list[tuple[Any, int]] = []
        tree, gui = self.model.topology.tree, self.viewer.server.gui
        limits = np.asarray(self.model.params["joint.limit"])
        scalars = [(f, q, k) for k, q, f in zip(tree["kind"], tree["q"], tree["frame"], strict=True) if k != FREE]
        with gui.add_folder("Joints", order=3, expand_by_default=len(scalars) <= 14):
            for frame, q, kind in sorted(scalars):
                name = self.model.joint_names[frame]
                if kind == SPHERICAL:
                    self._add_ball(gui, name, q)
                    continue
                low, high = _range(limits[frame], 1.0 if kind == PRISMATIC else np.pi)
                value = float(np.clip(self.state.q[q], low, high))
                slider = gui.add_slider(name, low, high, (high - low) / 1000, value)
                slider.on_update(lambda event, q=q, slider=slider: self._dragged(event, q, slider.value))
                self.sliders.append((slider, q))
        for kind, q in zip(tree["kind"], tree["q"], strict=True):
            if kind == FREE:
                self._add_gizmo(q)

    def _add_ball(self, gui: Any, name: str, q: int) -> None:
        axes = [gui.add_slider(f"{name} {axis}", -3.1, 3.1, 0.01, 0.0) for axis in "xyz"]

        def turned(event: Any) -> None:
            if event.client is not None:
                turn = np.array([s.value for s in axes])
                angle = float(np.linalg.norm(turn))
                part = turn * (np.sin(angle / 2) / angle if angle > 1e-9 else 0.5)
                self._dragged(event, slice(q, q + 4), np.array([np.cos(angle / 2), *part]))

        for slider in axes:
            slider.on_update(turned)

    def _add_gizmo(self, q: int) -> None:
        at, turn = self.state.q[q : q + 3] + self.viewer.offsets[0], self.state.q[q + 3 : q + 7]
        size = 0.3 * self.viewer.film.size
        gizmo = self.viewer.server.scene.add_transform_controls(f"/gizmo{q}", scale=size, position=at, wxyz=turn)
        self.gizmos.append((gizmo, q))

        @gizmo.on_update
        def _(event: Any) -> None:
            if not self.is_ours:
                pose = np.concatenate([gizmo.position - self.viewer.offsets[0], gizmo.wxyz])
                self._dragged(event, slice(q, q + 7), pose)

    def _dragged(self, event: Any, where: Any, value: Any) -> None:
        if event.client is None:  # moved by physics
            return
        with self.viewer.lock:
            self.state.q[where] = value
            self.state.qd[:] = 0.0
            self.draw()

    # physics ------------------------------------------------------------------------------------------------------------

    def run(self, on: bool) -> None:
        self.is_running, self.behind = on, 0.0
        self.run_button.label = "Pause" if on else "Play"

    def advance(self, elapsed: float) -> None:
        """As many steps as the time that went by; what cannot be caught up is let go."""
        if not self.is_running:
            return
        self.behind = min(self.behind + elapsed * float(self.speed.value), 0.1)
        count = int(self.behind / self.dt)
        self.behind -= count * self.dt
        self.advance_steps(count)

    def advance_steps(self, count: int) -> None:
        with self.viewer.lock:
            state = self.state
            try:
                for _ in range(count):
                    state = step(self.model, state, self.u if self.model.nu else None)
                self.set_state(state)
            except (SimulationError, InputError) as error:
                self.run(False)
                self.said.content = plain(f"stopped: {error}")

    def set_state(self, state: State) -> None:
        with self.viewer.lock:
            self.state = State(state.q.copy(), state.qd.copy())
            self.is_ours = True
            for slider, q in self.sliders:
                slider.value = float(np.clip(self.state.q[q], slider.min, slider.max))
            for gizmo, q in self.gizmos:
                gizmo.position, gizmo.wxyz = (
                    self.state.q[q : q + 3] + self.viewer.offsets[0],
                    self.state.q[q + 3 : q + 7],
                )
            self.is_ours = False
            self.draw()

    def draw(self) -> None:
        film, u = self.viewer.film, self.u if self.model.nu else None
        position, orientation, film.contacts = pose_of(self.model, self.state, u)
        film.position[0, 0], film.orientation[0, 0] = position[0, 0], orientation[0, 0]
        seen = inspect(self.model, self.state, u)
        self.viewer.show(0)
        energy = float(seen.kinetic_energy + seen.potential_energy)
        self.said.content = plain(f"energy {energy:.4g} J, {len(film.contacts)} contacts")

    def _weight(self) -> float:
        """A force to measure others by: a quarter of what all links weigh."""
        mass = float(np.sum(self.model.params["link.mass"]))
        return 0.25 * mass * float(np.linalg.norm(self.model.params["world.gravity"])) or 1.0


def _range(limit: np.ndarray, usual: float) -> tuple[float, float]:
    """Ends of a slider: the limits, or what is usual where there are none."""
    low, high = (float(x) if np.isfinite(x) else side * usual for x, side in zip(limit, (-1, 1), strict=True))
    return (low, high) if high > low else (low - usual, low + usual)
