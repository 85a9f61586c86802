"""jointgrad: articulated robots in motion, with exact gradients through the whole of it.

    import jointgrad as jg

    robot = jg.load("robot.urdf")  # or jg.zoo.laikago(), or jg.Description() and robot.add_link(...)
    model = jg.World().add(robot, position=(0, 0, 0.5)).add_ground().compile(dt=1e-3)
    motion = jg.rollout(model, model.initial_state(batch=64), steps=500)  # motion.q (501, 64, nq)
    gradient = motion.backward(q_bar=...)  # to the start, controls, forces and every parameter

Robots and worlds: Description, World, Shape, load, load_world, zoo. Running: rollout, step, Simulation. What a state holds:
inspect, mass_matrix, jacobian, site_pose, inverse_kinematics, ... Derivatives: Trajectory.backward, .tangent, linearize. To see it:
view. Also jointgrad.torch, .jax, .casadi, .optimize, .rl, .grafts. Units are SI; states are those of MuJoCo (docs/conventions.md).

Names are imported on first use, so that `import jointgrad` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Description": "model.description",
    "World": "model.world",
    "Implicit": "model.laws",
    "Impulse": "model.laws",
    "Spring": "model.laws",
    "Shape": "model.description",
    "Connect": "model.constraints",
    "ContactExclusion": "model.constraints",
    "ContactPair": "model.constraints",
    "JointCoupling": "model.constraints",
    "Weld": "model.constraints",
    "Model": "model.arrays",
    "State": "model.arrays",
    "budget": "model.budget",
    "ModelError": "model.errors",
    "InputError": "model.errors",
    "SimulationError": "model.errors",
    "HintWarning": "model.errors",
    "UnsupportedWarning": "model.errors",
    "UnphysicalWarning": "model.errors",
    "UnsettledWarning": "model.errors",
    "UnstableWarning": "model.errors",
    "load": "files",
    "load_world": "files",
    "load_model": "grafts.model_file",
    "to_urdf": "files",
    "to_mjcf": "files.write_mjcf",
    "Simulation": "engine.run.simulation",
    "step": "engine.run.single_steps",
    "rollout": "engine.run.rollout",
    "Trajectory": "engine.run.trajectory",
    "Gradient": "engine.run.trajectory",
    "linearize": "engine.looks.linearize",
    "Exact": "engine.gradients",
    "Meaning": "engine.gradients",
    "MovingImpacts": "engine.gradients",
    "Randomised": "engine.gradients",
    "Smoothed": "engine.gradients",
    "Truncated": "engine.gradients",
    "hessian_product": "engine.looks.curvature",
    "inspect": "engine.looks.inspect",
    "mass_matrix": "engine.looks.quantities",
    "inverse_dynamics": "engine.looks.quantities",
    "bias_force": "engine.looks.quantities",
    "gravity_force": "engine.looks.quantities",
    "centre_of_mass": "engine.looks.quantities",
    "centroidal_momentum": "engine.looks.quantities",
    "centroidal_momentum_matrix": "engine.looks.quantities",
    "torque_regressor": "engine.looks.quantities",
    "regressor_numbers": "engine.looks.quantities",
    "site_pose": "engine.looks.quantities",
    "site_velocity": "engine.looks.quantities",
    "jacobian": "engine.looks.quantities",
    "jacobian_rate": "engine.looks.quantities",
    "inverse_kinematics": "engine.looks.inverse_kinematics",
    "distance": "engine.looks.distances",
    "plain": "engine.run.plain",
    "zoo": "zoo",
    "terrain": "terrain",
    "view": "viewer.browser",
    "graft": "grafts.blueprint",
    "MLP": "grafts.blueprint",
}
__all__ = [*_HOME]

if TYPE_CHECKING:
    from . import terrain as terrain
    from . import zoo as zoo
    from .engine.gradients import Exact as Exact
    from .engine.gradients import Meaning as Meaning
    from .engine.gradients import MovingImpacts as MovingImpacts
    from .engine.gradients import Randomised as Randomised
    from .engine.gradients import Smoothed as Smoothed
    from .engine.gradients import Truncated as Truncated
    from .engine.looks.curvature import hessian_product as hessian_product
    from .engine.looks.distances import distance as distance
    from .engine.looks.inspect import inspect as inspect
    from .engine.looks.inverse_kinematics import inverse_kinematics as inverse_kinematics
    from .engine.looks.linearize import linearize as linearize
    from .engine.looks.quantities import bias_force as bias_force
    from .engine.looks.quantities import centre_of_mass as centre_of_mass
    from .engine.looks.quantities import centroidal_momentum as centroidal_momentum
    from .engine.looks.quantities import centroidal_momentum_matrix as centroidal_momentum_matrix
    from .engine.looks.quantities import gravity_force as gravity_force
    from .engine.looks.quantities import inverse_dynamics as inverse_dynamics
    from .engine.looks.quantities import jacobian as jacobian
    from .engine.looks.quantities import jacobian_rate as jacobian_rate
    from .engine.looks.quantities import mass_matrix as mass_matrix
    from .engine.looks.quantities import regressor_numbers as regressor_numbers
    from .engine.looks.quantities import site_pose as site_pose
    from .engine.looks.quantities import site_velocity as site_velocity
    from .engine.looks.quantities import torque_regressor as torque_regressor
    from .engine.run import plain as plain
    from .engine.run.rollout import rollout as rollout
    from .engine.run.simulation import Simulation as Simulation
    from .engine.run.single_steps import step as step
    from .engine.run.trajectory import Gradient as Gradient
    from .engine.run.trajectory import Trajectory as Trajectory
    from .files import load as load
    from .files import load_world as load_world
    from .files import to_urdf as to_urdf
    from .files.write_mjcf import to_mjcf as to_mjcf
    from .grafts.blueprint import MLP as MLP
    from .grafts.blueprint import graft as graft
    from .grafts.model_file import load_model as load_model
    from .model.arrays import Model as Model
    from .model.arrays import State as State
    from .model.budget import budget as budget
    from .model.constraints import Connect as Connect
    from .model.constraints import ContactExclusion as ContactExclusion
    from .model.constraints import ContactPair as ContactPair
    from .model.constraints import JointCoupling as JointCoupling
    from .model.constraints import Weld as Weld
    from .model.description import Description as Description
    from .model.description import Shape as Shape
    from .model.errors import HintWarning as HintWarning
    from .model.errors import InputError as InputError
    from .model.errors import ModelError as ModelError
    from .model.errors import SimulationError as SimulationError
    from .model.errors import UnphysicalWarning as UnphysicalWarning
    from .model.errors import UnsettledWarning as UnsettledWarning
    from .model.errors import UnstableWarning as UnstableWarning
    from .model.errors import UnsupportedWarning as UnsupportedWarning
    from .model.laws import Implicit as Implicit
    from .model.laws import Impulse as Impulse
    from .model.laws import Spring as Spring
    from .model.world import World as World
    from .viewer.browser import view as view


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'jointgrad' has no attribute {name!r}")
    home = importlib.import_module(f".{_HOME[name]}", __name__)
    value = home if name in ("plain", "terrain", "zoo") else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "__doc__"])
