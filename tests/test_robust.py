"""Robots dropped with random controls stay finite and gain no energy from nowhere; what is bound to fail says why.

benchmarks/robust.py does the same with 200 robots for 10 s.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import jointgrad as jg
from jointgrad.model import inertias
from jointgrad.model.elimination import Elimination, largest_eigenpair
from jointgrad.model.parts import WorldParts, add_robot

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT.parent / "shared" / "models"
sys.path.insert(0, str(ROOT / "benchmarks"))
robust = __import__("robust")

ZOO = ("a1", "ant", "humanoid", "laikago", "racecar")
FILES = (
    "mjcf/pypi/gymnasium-1.4.0/gymnasium/envs/mujoco/assets/half_cheetah.xml",
    "mjcf/pypi/gymnasium-1.4.0/gymnasium/envs/mujoco/assets/humanoid.xml",
    "urdf/github/unitreerobotics+unitree_ros/robots/a2_description/urdf/a2.urdf",  # starts outside its limits
    "urdf/github/unitreerobotics+unitree_ros/robots/b2_description/urdf/b2_description.urdf",
)


@pytest.mark.parametrize("name", ZOO)
def test_dropped_zoo(name):
    out = robust.dropped(name, 2.0, 0)
    assert out.verdict == "fine", f"{out.reason} (excess {out.excess})"
    assert out.steps == 2000


@pytest.mark.parametrize("name", FILES, ids=lambda name: Path(name).stem)
def test_dropped_files(name):
    if not (MODELS / name).is_file():
        pytest.skip(f"the collection of robot files is not here: {MODELS / name}")
    out = robust.dropped(MODELS / name, 2.0, 0)
    assert out.verdict == "fine", f"{out.reason} (excess {out.excess})"


@pytest.mark.parametrize("rate", [1e2, 1e3, 1e7, 1e19])
def test_a_body_that_spins_too_fast_for_its_step_diverges(rate):
    """And is told so, whatever its last numbers were."""
    robot = jg.Description("plate", base="free")
    robot.add_link("plate", 1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 2.0, 0.0, 3.0))
    model = robot.compile(dt=1e-2)
    state = model.initial_state()
    state.qd[3:] = rate, rate / 2, rate / 3
    with pytest.raises(jg.SimulationError, match="fastest joint"):
        jg.rollout(model, state, steps=50)


@pytest.mark.parametrize("name", ["swimmer", "a1"])
def test_dropped_and_bouncing(name):
    out = robust.dropped(name, 2.0, 0, restitution=0.9)
    assert out.verdict == "fine", f"{out.reason} (excess {out.excess})"


def test_the_account_notices_energy_from_nowhere():
    """The same motion, with every velocity from the middle on raised by a tenth."""
    model = jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.6)).add_ground().compile()
    motion = jg.rollout(model, model.initial_state(), np.zeros((400, 12)))
    honest, cheated = (robust.Account(model, model.initial_state()) for _ in range(2))
    honest.add(motion.q, motion.qd, np.zeros((400, 12)))
    faster = motion.qd * np.where(np.arange(401) < 100, 1.0, 1.1)[:, None]
    cheated.add(motion.q, faster, np.zeros((400, 12)))
    assert honest.worst < robust.TOLERANCE < cheated.worst


# overlaps at the start ----------------------------------------------------------------------------------------------------


def chain(offset: float) -> jg.Description:
    """Three balls in a row; the outer two, no neighbours, are `offset` apart."""
    robot = jg.Description("chain", base="free")
    for k, x in enumerate((0.0, 0.5 * offset, offset)):
        robot.add_link(f"ball{k}", 1.0, inertia=(0.01,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
        if k:
            robot.add_joint(
                f"hinge{k}", "revolute", f"ball{k - 1}", f"ball{k}", position=(0.5 * offset, 0, 0), limit=(-1, 1)
            )
        assert x >= 0
    return robot


def test_pairs_that_overlap_at_the_start_do_not_touch():
    with pytest.warns(jg.UnsupportedWarning, match='"ball0" and "ball2"'):
        model = jg.World(gravity=(0, 0, 0)).add(chain(0.15)).compile()
    assert model.topology.tree["n_pairs"] == 0
    last = jg.rollout(model, model.initial_state(), steps=100).last
    assert np.abs(last.qd).max() == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jg.World().add(chain(0.25)).compile().topology.tree["n_pairs"] == 1
        # a rule that names them has the last word
        assert jg.World().add(chain(0.15)).pair("ball0", "ball2").compile().topology.tree["n_pairs"] == 1


def test_a_pattern_leaves_neighbours_and_overlaps_apart():
    """World.pair with a pattern speaks of pairs that may touch; with names, of any."""
    with pytest.warns(jg.UnsupportedWarning, match='"ball0" and "ball2"'):
        model = jg.World().add(chain(0.15)).pair("ball*", "*", friction=0.3).compile()
    assert model.topology.tree["n_pairs"] == 0
    assert jg.World().add(chain(0.25)).pair("ball*", "*", friction=0.3).compile().topology.tree["n_pairs"] == 1
    assert jg.World().add(chain(0.25)).pair("ball0", "ball1").compile().topology.tree["n_pairs"] == 2
    # overridden is not unheard
    world = jg.World().add(chain(0.25)).pair("ball0", "ball2", friction=0.1).pair("ball*", "ball*", friction=0.2)
    assert world.compile().params["pair.friction"] == 0.2
    with pytest.raises(jg.ModelError, match='"knee" and "\\*", nor "toe" and "\\*"'):
        jg.World().add(chain(0.25)).pair("knee", "*").pair("toe", "*").compile()


def arm_on_a_base(offset: float) -> jg.Description:
    """Three balls in a row, the first of them fixed."""
    robot = chain(offset)
    robot.base = "fixed"
    return robot


def test_a_base_that_overlaps_with_its_own_robot_does_not_touch_it():
    with pytest.warns(jg.UnsupportedWarning, match='"ball0" and "ball2"'):
        model = jg.World().add(arm_on_a_base(0.15)).compile()
    assert model.topology.tree["n_pairs"] == 0
    assert jg.World().add(arm_on_a_base(0.5)).compile().topology.tree["n_pairs"] == 2


def test_robots_that_overlap_are_pushed_apart():
    """Only pairs of one robot are left out: two robots in each other, or in the ground, are not meant."""
    world = jg.World(gravity=(0, 0, 0))
    for name, x in (("a", 0.0), ("b", 0.15)):
        ball = jg.Description("ball", base="free")
        ball.add_link("ball", 1.0, inertia=(0.01,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
        world.add(ball, name=name, position=(x, 0, 0))
    model = world.compile()
    q = jg.rollout(model, model.initial_state(), steps=200).last.q
    assert q[7] - q[0] > 0.199


@pytest.mark.parametrize("seed", range(40))
def test_overlap_is_what_mujoco_measures(seed):
    """Two links of one robot, anywhere and turned anyhow: left out if they overlap by more than 2 % of the smaller."""
    rng = np.random.default_rng(seed)
    robot = jg.Description("two", base="free")
    robot.add_link("root", 1.0, inertia=(0.01,) * 3)
    kinds = [("sphere", (0.1,)), ("capsule", (0.05, 0.15)), ("box", (0.05, 0.1, 0.15))]
    reach = []
    for k in range(2):
        kind, size = kinds[rng.integers(3)]
        turns = rng.normal(size=(2, 4))
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        link = robot.add_link(f"part{k}", 1.0, inertia=(0.01,) * 3)
        place = rng.uniform(-0.1, 0.1, 3)
        link.shapes.append(jg.Shape(kind, size, rng.uniform(-0.05, 0.05, 3), turns[0]))
        robot.add_joint(
            f"hinge{k}", "continuous", "root", f"part{k}", position=place, orientation=turns[1], initial=1.0
        )
        reach.append({"sphere": 0.1, "capsule": 0.2, "box": np.linalg.norm(size)}[kind])
    world = jg.World().add(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        is_left_out = world.compile().topology.tree["n_pairs"] == 0
    m = mujoco.MjModel.from_xml_string(jg.to_mjcf(world))
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    mujoco.mj_forward(m, d)
    depth = -mujoco.mj_geomDistance(m, d, 0, 1, 1.0, None)
    if abs(depth - 0.02 * min(reach)) < 1e-3:
        pytest.skip("too close to the threshold to tell")
    assert is_left_out == (depth > 0.02 * min(reach))


def eliminated(model, world, number):
    """What compile works out of one tree's masses."""
    parts, tree = WorldParts(), model.topology.tree
    for placed in world.placed:
        add_robot(placed, parts)
    members = tree["tree_body"][tree["tree_first"][number] : tree["tree_first"][number + 1]]
    bodies = inertias._body_inertias(parts, tree, model.params)
    return Elimination(members, tree, bodies, parts.poses, model.params)


@pytest.mark.parametrize("name", ("laikago", "franka_arm", "swimmer", "pendulum"))
def test_the_masses_of_the_checks_are_those_that_move(name):
    """M^-1 as compile knows it is the inverse of the matrix that the engine moves with, and so is its largest eigenvalue."""
    world = jg.World().add(getattr(jg.zoo, name)(*([7] if name == "pendulum" else [])), base="fixed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = world.compile(contact=None)
    whole, tree = jg.inspect(model, model.initial_state()).mass_matrix, model.topology.tree
    for number, root in enumerate(tree["tree_root"]):
        if root >= 0:  # which moves in other coordinates
            continue
        mass, dofs = eliminated(model, world, number), slice(*tree["tree_dof"][number : number + 2])
        expected = whole[dofs, dofs]
        n = len(expected)
        assert np.array([mass.solve(e) for e in np.eye(n)]) @ expected == pytest.approx(np.eye(n), abs=1e-8)
        scale = np.random.default_rng(1).uniform(0.1, 1.0, n)
        value, _ = largest_eigenpair(lambda x, m=mass, s=scale: s * m.solve(s * x), n, mass.n_bodies)
        dense = np.linalg.eigvalsh(scale[:, None] * np.linalg.inv(expected) * scale)
        assert value == pytest.approx(dense[-1], rel=1e-8)


# stabilisation that does not throw -------------------------------------------------------------------------------------------


def test_a_joint_that_starts_outside_its_limits_is_brought_back_gently():
    robot = jg.Description("arm")
    robot.add_link("post")
    robot.add_link("arm", 1.0, inertia=(0.01,) * 3)
    robot.add_joint("hinge", "revolute", "post", "arm", limit=(-1.0, 0.5), initial=2.0)
    model = jg.World(gravity=(0, 0, 0)).add(robot).compile()
    motion = jg.rollout(model, model.initial_state(), steps=2000)
    assert np.abs(motion.qd).max() <= jg.Impulse.max_push_out_speed * (1 + 1e-9)
    assert motion.last.q[0] <= 0.5 + 2e-3
    # within the speed limit it is Baumgarte's exponential: a fifth of the error is left out per step
    near = jg.State(np.array([0.501]), np.zeros(1))
    assert jg.step(model, near).qd[0] == pytest.approx(-0.2 * 0.001 / 1e-3, rel=1e-3)


# what is bound to fail says so ---------------------------------------------------------------------------------------------


def cart(mass: float) -> jg.Description:
    robot = jg.Description("cart", base="free")
    robot.add_link("rail", mass, inertia=(mass,) * 3)
    robot.add_link("cart", 1.0, inertia=(0.1,) * 3)
    robot.add_joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0))
    return robot


def test_a_free_root_that_nothing_resists_is_refused():
    with pytest.raises(jg.ModelError, match='free link "rail"'):
        jg.World().add(cart(0.0)).compile()
    jg.World().add(cart(0.1)).compile()
    # three joints whose axes leave no direction open: the masses they carry are enough
    robot = jg.Description("hub", base="free")
    robot.add_link("hub")
    for k, axis in enumerate(np.eye(3)):
        robot.add_link(f"arm{k}", 1.0, inertia=(0.1,) * 3)
        robot.add_joint(f"hinge{k}", "revolute", "hub", f"arm{k}", axis=axis, position=0.3 * axis)
    model = jg.World().add(robot).compile()
    assert np.isfinite(jg.rollout(model, model.initial_state(), steps=10).last.qd).all()


@pytest.mark.parametrize("stiff", [0.9, 1.1])
def test_damping_too_stiff_for_the_step_is_warned_of(stiff):
    """A damper d on inertia I is stable in explicit steps up to d = 2 I / dt, and grows beyond: so the warning is right."""
    robot = jg.Description("wheel")
    robot.add_link("post")
    robot.add_link("wheel", 1.0, inertia=(0.01,) * 3)
    robot.add_joint("axle", "continuous", "post", "wheel", damping=stiff * 2 * 0.01 / 1e-3)
    world = jg.World(gravity=(0, 0, 0)).add(robot)
    start = jg.State(np.zeros(1), np.ones(1))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = world.compile(dt=1e-3)
    is_warned = any(issubclass(w.category, jg.UnstableWarning) and '"axle"' in str(w.message) for w in heard)
    grows = abs(jg.rollout(model, start, steps=100).last.qd[0]) > 1.0
    assert is_warned == grows == (stiff > 1)
    implicit = world.compile(dt=1e-3, integrator="implicit_damping")
    assert abs(jg.rollout(implicit, start, steps=100).last.qd[0]) < 1e-6


def test_an_error_names_link_contact_and_step():
    ball = jg.Description("ball", base="free")
    ball.add_link("ball", 1.0, inertia=(0.01,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
    model = jg.World().add(ball, position=(0, 0, 0.1)).add_ground().compile()
    force = np.zeros((20, 1, 2, 6))
    force[3, 0, model.link("ball"), 0] = 1e308
    with pytest.raises(jg.SimulationError, match=r'environment 0 .* step \d.*link: "ball".*"ball" on "ground"'):
        jg.rollout(model, model.initial_state(batch=1), steps=20, force=force)


def test_too_many_contacts_are_counted_and_named():
    box = jg.Description("box", base="free")
    box.add_link("box", 1.0, inertia=(0.01,) * 3).shapes.append(jg.Shape("box", (0.1,) * 3))
    world = jg.World().add(box, position=(0, 0, 0.1)).add_ground()
    with pytest.raises(jg.SimulationError, match='"box" and "ground"'):
        model = world.compile(max_contacts=2)
        jg.rollout(model, model.initial_state(), steps=2)
    # wholly below the ground all eight corners touch, for which a world has room on its own
    model = world.compile()
    deep = jg.State(np.array([0, 0, -0.5, 1.0, 0, 0, 0]), np.zeros(6))
    assert np.isfinite(jg.rollout(model, deep, steps=10).last.q).all()
