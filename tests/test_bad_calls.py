"""Every public function with every argument wrong in turn: only our errors come out, and they name the argument.

A value that is right for an argument is listed in FINE, so that an error that goes missing is seen, too.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import jointgrad as jg

OURS = (jg.ModelError, jg.InputError, jg.SimulationError)


class Stranger:
    def __repr__(self) -> str:
        return "<a stranger>"


JUNK = {
    "None": None, "a text": "x", "NaN": float("nan"), "infinity": float("inf"), "minus five": -5, "a half": 2.5, "True": True,
    "a list": [], "a dict": {}, "a stranger": Stranger(), "texts": np.array(["a", "b"]), "NaNs": np.full((2, 2), np.nan),
}  # fmt: skip
NUMBERS = ("NaN", "infinity", "minus five", "a half", "True")


@functools.cache
def model() -> jg.Model:
    robot = jg.Description("arm")
    for k in range(2):
        robot.add_link(f"link{k}", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1)).shapes.append(jg.Shape("sphere", (0.1,)))
        robot.add_joint(
            f"joint{k}", "revolute", f"link{k - 1}" if k else None, f"link{k}", axis=(0, 1, 0), limit=(-3, 3)
        )
        robot.add_actuator(f"motor{k}", f"joint{k}")
    return jg.World().add(robot).add_ground(height=-9.0).compile()


def robot() -> jg.Description:
    found = jg.Description("r")
    found.add_link("link", 1.0, inertia=(0.1, 0.1, 0.1))
    return found


@functools.cache
def motion() -> jg.Trajectory:
    return jg.rollout(model(), model().initial_state(), np.zeros((3, 2)), outputs=("link.position",))


def calls() -> dict:
    """The function and arguments with which it works."""
    m, s, u = model(), model().initial_state(), np.zeros((3, 2))
    run = {"steps": 3, "force": None, "outputs": (), "threads": None, "memory": None, "on_nan": "raise", "keep": True}
    bars = {"q_bar": np.ones(2), "qd_bar": np.ones(2), "bars": {}, "wrt": ("state",)}
    one = {"model": m, "state": s, "u": u[0], "force": None}
    return {
        "rollout": (jg.rollout, {"model": m, "state": s, "u": u, **run}),
        "step": (jg.step, {**one, "threads": None, "on_nan": "raise"}),
        "linearize": (jg.linearize, {**one, "wrt": "state", "threads": None}),
        "inspect": (jg.inspect, one),
        "hessian_product": (
            lambda model, state, u, along, wrt, step: jg.hessian_product(
                model, state, u, lambda motion: (motion.q, None), along, wrt=wrt, step=step
            ),
            {"model": m, "state": s, "u": u, "along": {"q": np.ones(2)}, "wrt": (), "step": None},
        ),
        "backward": (motion().backward, bars),
        "tangent": (
            motion().tangent,
            {"q": np.ones(2), "qd": None, "u": None, "force": None, "params": {}, "outputs": None},
        ),
        "initial_state": (m.initial_state, {"batch": None}),
        "replace": (m.replace, {"values": {}}),
        "replace mass": (lambda mass: m.replace({"link.mass": mass}), {"mass": np.ones(3)}),
        "environment": (m.replace({"link.mass": np.ones((2, 3))}).environment, {"env": 0}),
        "is_shared": (m.is_shared, {"name": "link.mass"}),
        "link": (lambda link: m.link(link), {"link": "link0"}),
        "graft": (
            functools.partial(jg.graft, m),
            {"target": "joint.force", "inputs": ("joint.velocity",), "network": None, "rows": None, "per": "each", "sees": "own",
             "mode": "residual", "shared": False},
        ),
        "MLP": (
            lambda **k: jg.graft(m, "joint.force", ("joint.velocity",), jg.MLP(**k)),
            {"hidden": (4,), "activation": "tanh", "scale": 1.0, "seed": 0},
        ),
        "World": (
            lambda **k: jg.World(**k).add(robot()).compile(),
            {"gravity": (0, 0, -9.8), "dt": 1e-3, "integrator": "semi_implicit", "density": 0.0, "viscosity": 0.0},
        ),
        "add": (
            jg.World().add,
            {"robot": robot(), "name": None, "position": (0, 0, 0), "orientation": (1, 0, 0, 0), "base": None},
        ),
        "add_ground": (jg.World().add_ground, {"friction": None, "restitution": 0.0, "height": 0.0, "name": "ground"}),
        "pair": (
            lambda first, second, contact, friction: jg.World().pair(first, second, contact, friction=friction),
            {"first": "a", "second": "b", "contact": None, "friction": 1.0},
        ),
        "compile": (
            jg.World().add(robot()).compile,
            {"dt": 1e-3, "integrator": "semi_implicit", "unphysical": "error", "contact": None, "constraints": True,
             "max_contacts": None},
        ),
        "Impulse": (
            lambda **k: jg.World().add(robot()).compile(contact=jg.Impulse(**k)),
            {"sweeps": 50, "cone": True, "stabilisation": 0.2, "softness": 1e-5, "margin": 1e-3, "push_limit": 2.0, "form": "auto"},
        ),
        "Spring": (
            lambda **k: jg.World().add(robot()).compile(contact=jg.Spring(**k)),
            {"stiffness": 1.0, "damping": 1.0, "exponent": 1.5, "friction_law": "brown", "static_friction": 0.5, "transition": 0.1},
        ),
        "add_link": (with_part("add_link"), {"name": "a", "mass": 1.0, "com": (0, 0, 0), "inertia": (1, 1, 1)}),
        "add_joint": (
            with_part("add_joint"),
            {"name": "j", "kind": "revolute", "parent": None, "child": "link", "position": (0, 0, 0), "orientation": (1, 0, 0, 0),
             "axis": (0, 0, 1), "damping": 0.0, "stiffness": 0.0, "armature": 0.0, "rest": None, "initial": None, "friction": 0.0,
             "limit": (-1, 1), "anchor": (0, 0, 0), "mimic": None, "effort_limit": 1.0, "velocity_limit": 1.0},
        ),
        "Shape": (
            with_shape,
            {"kind": "sphere", "size": (0.1,), "position": (0, 0, 0), "orientation": (1, 0, 0, 0), "role": "both",
             "color": (1, 1, 1, 1), "friction": (1.0,)},
        ),
        "load": (jg.load, {"source": "<robot name='r'><link name='l'/></robot>"}),
        "load_world": (jg.load_world, {"source": "<mujoco><worldbody/></mujoco>"}),
        "to_urdf": (jg.to_urdf, {"robot": robot()}),
        "to_mjcf": (jg.to_mjcf, {"world": robot(), "dt": None, "integrator": None}),
    }  # fmt: skip


def with_part(add: str):
    def made(**values):
        found = robot()
        getattr(found, add)(**values)
        return found.compile()

    return made


def with_shape(**values):
    found = robot()
    found.link("link").shapes.append(jg.Shape(**values))
    return found.compile()


# what is right, or means nothing: by function and argument, or by argument alone
FINE = {
    "u": {"None"}, "force": {"None"}, "threads": {"None"}, "memory": {"None", "infinity"},
    "batch": {"None"}, "outputs": {"None", "a list"},
    "wrt": {"a list"}, "bars": {"None", "a dict"}, "params": {"None", "a dict"}, "q": {"None"}, "qd": {"None"}, "q_bar": {"None"},
    "qd_bar": {"None"}, "values": {"a dict"}, "rows": {"None"}, "network": {"None"}, "base": {"None"}, "max_contacts": {"None"},
    "gravity": set(), "mimic": {"None"}, "rest": {"None", *NUMBERS[2:4]}, "initial": {"None", *NUMBERS[2:4]}, "parent": {"None"},
    "effort_limit": {"infinity", "minus five", "a half"}, "velocity_limit": {"infinity", "minus five", "a half"},
    ("rollout", "steps"): {"None"}, ("rollout", "outputs"): {"a list"}, ("linearize", "wrt"): set(),
    ("hessian_product", "u"): set(), ("replace mass", "mass"): set(),
    ("hessian_product", "step"): {"None", "a half"}, ("hessian_product", "along"): set(),
    ("add", "name"): {"None", "a text"}, ("add_ground", "name"): {"a text"}, ("add_ground", "friction"): {"None", "a half"},
    ("pair", "contact"): {"None"}, ("compile", "contact"): {"None"}, ("compile", "dt"): {"None", "a half"},
    ("compile", "integrator"): {"None"}, ("to_mjcf", "dt"): {"None", "a half"}, ("to_mjcf", "integrator"): {"None"},
    ("add_ground", "height"): {"minus five", "a half"}, "first": {"a text"}, "second": {"a text"}, ("World", "dt"): {"a half"},
    ("add_link", "name"): {"a text"}, ("add_joint", "name"): {"a text"}, ("Shape", "friction"): {"a list"},
    ("Shape", "color"): {"a list"}, ("add_joint", "stiffness"): {"minus five", "a half"}, ("MLP", "hidden"): {"a list"},
    ("MLP", "scale"): {"a half", "minus five"}, ("graft", "mode"): set(), ("rollout", "keep"): {"True"},
    ("graft", "shared"): {"True"}, ("compile", "constraints"): {"True"}, ("Impulse", "cone"): {"True"},
}  # fmt: skip
POSITIVE = ("restitution", "density", "viscosity", "friction", "stabilisation", "softness", "margin", "push_limit", "stiffness",
            "damping", "exponent", "static_friction", "transition", "mass", "armature")  # fmt: skip


def is_fine(function: str, argument: str, junk: str) -> bool:
    found = FINE.get((function, argument), FINE.get(argument))
    if found is None:
        found = {"a half"} if argument in POSITIVE else set()
    return junk in found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("function", list(calls()))
def test_a_wrong_argument_is_named(function):
    call, arguments = calls()[function]
    call(**arguments)
    wrong = []
    for argument in arguments:
        for name, value in JUNK.items():
            try:
                call(**{**arguments, argument: value})
            except OURS as error:
                is_named = argument in str(error) or argument == "source"  # which is named by its own name
                if is_fine(function, argument, name) or not is_named or len(str(error).splitlines()) != 1:
                    wrong.append(f"{argument} = {name}: {type(error).__name__}: {error}")
            except Exception as error:
                wrong.append(f"{argument} = {name}: {type(error).__name__}: {error}")
            else:
                if not is_fine(function, argument, name):
                    wrong.append(f"{argument} = {name}: nothing is said")
    assert not wrong, "\n".join(wrong)
