"""jointgrad walk: a quadruped that a controller moves, in the browser or without one."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any, Literal

from ..usage import UsageError, require


def walk(
    robot: Literal["laikago", "a1", "go2"] = "laikago",
    controller: Literal["qp", "osqp", "network"] = "qp",
    command: tuple[float, float, float] = (0.5, 0.0, 0.0),
    seconds: float = 20.0,
    gait: Literal["trot", "pace", "bound", "walk", "stand"] = "trot",
    ground: Literal["flat", "slope", "steps", "rough"] = "flat",
    friction: float = 0.8,
    payload: float = 0.0,
    push: float = 0.0,
    estimate: bool = False,
    engine: Literal["jointgrad", "mujoco"] = "jointgrad",
    seed: int = 0,
    network: Path | None = None,
    headless: bool = False,
    replay: Path | None = None,
    port: int = 8080,
    json: bool = False,
) -> int:
    """Let a quadruped walk by model-predictive control. Without --headless it opens in the browser, in real time, steered by keys.

    Args:
        robot: Which one.
        controller: qp (proxsuite, predicted contacts) or osqp (as NeuralSim's released code: OSQP, contacts frozen
            over the plan), or network (a file that `jointgrad reproduce mpc-imitation` wrote, for the same robot).
        command: Speeds forward, sideways (m/s) and turning (rad/s).
        seconds: How long, without a browser.
        gait: The order of its steps.
        ground: What it walks on; slope: 15 degrees, steps: 0.1 m, rough: tiles of up to 0.05 m.
        friction: Of the ground; the controller counts on 0.45.
        payload: On its body, kg; the controller does not know of it.
        push: A shove sideways every two seconds, m/s; with a browser, that of its button (at least 0.5).
        estimate: The controller knows only what IMU, encoders and feet tell.
        engine: Which simulator moves the robot; mujoco without a browser only.
        seed: Of rough ground and of the sensors' noise.
        network: The file of the controller network.
        headless: Without a browser: walk, and print how it went.
        replay: Without a browser: write the walk as a page that plays it.
        port: Of the page.
        json: Print the result as one JSON object; means --headless.
    """
    require({"proxsuite": "proxsuite", "osqp": "osqp", "scipy": "scipy"}, "mpc")
    from ..optimize.mpc.session import Settings, shown, walked

    settings = Settings(robot, controller, gait, ground, friction, payload, push, estimate, engine, seed, network)
    if not (headless or json or replay):
        if engine != "jointgrad":
            raise UsageError("the browser shows this engine: add --headless for --engine mujoco")
        require({"viser": "viser"}, "view")
        return shown(settings, command, port)
    said = walked(settings, command, seconds, replay)
    print(dumps(said, indent=2) if json else _told(said))
    return 0


def _told(said: dict[str, Any]) -> str:
    """The result in words."""
    end = f"fell after {said['seconds']:.1f} s" if said["fell"] else f"walked {said['seconds']:.1f} s without falling"
    off = "too short to tell its errors"
    if said["velocity_error"] is not None:
        off = f"off by {said['velocity_error']:.3f} m/s and {said['turn_error']:.3f} rad/s"
    plans = f"plans took {said['p50_ms']:.2f} ms (99 %: {said['p99_ms']:.2f} ms)"
    return f"{said['robot']} {end}: {said['distance']:.2f} m; {off}; {said['power']:.0f} W; {plans}"
