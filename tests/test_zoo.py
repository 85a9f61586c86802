"""The zoo: every robot is a body that can be, has the mass its source says, and moves as its source moves in MuJoCo."""

from __future__ import annotations

import math
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np
import pytest

import jointgrad as jg
from jointgrad.files.lint import lint
from jointgrad.model.checks import triangle_violation
from jointgrad.model.description import Shape
from jointgrad.model.errors import UnsupportedWarning
from jointgrad.model.zoo import primitives

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
GYMNASIUM = MODELS / "mjcf/pypi/gymnasium-1.4.0/gymnasium/envs/mujoco/assets"
SWIMMER = MODELS / "mjcf/github/google-research+tiny-differentiable-simulator/data/swimmer/swimmer05/model.xml"
UNITREE = MODELS / "urdf/github/unitreerobotics+unitree_ros/robots"

# robot, total mass (kg): facts/robots.md, for a1, go2, ant and humanoid their files
ROBOTS = {
    "pendulum7": (lambda: jg.zoo.pendulum(7), 13.97),
    "double_pendulum": (jg.zoo.double_pendulum, 2.0),
    "cart_pole": (jg.zoo.cart_pole, 1.1),
    "golf": (jg.zoo.golf, 4.16 + 0.5),
    "franka_arm": (jg.zoo.franka_arm, 23.76 + 0.05),
    "laikago": (lambda: jg.zoo.laikago(touch="feet"), 25.567),
    "laikago_touching": (jg.zoo.laikago, 25.567),
    "a1": (jg.zoo.a1, 13.741 - 0.001),
    "go2": (jg.zoo.go2, 16.087 - 0.002),
    "ant": (jg.zoo.ant, 0.91088008),
    "humanoid": (jg.zoo.humanoid, 42.11603049),
    "racecar": (jg.zoo.racecar, 5.89223),
    "swimmer": (jg.zoo.swimmer, 0.05),
    "swimmer2": (lambda: jg.zoo.swimmer(2), 0.02),
}
# their mass is at the end of a light rod, which is what the shape shows
MASS_NOT_IN_SHAPE = {"golf": {"link1"}}


@pytest.fixture(params=ROBOTS)
def name(request):
    return request.param


@pytest.fixture
def robot(name):
    return ROBOTS[name][0]()


def compiled(robot, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsupportedWarning)
        return robot.compile(**options)


def matrix(inertia):
    xx, xy, xz, yy, yz, zz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def test_mass_is_that_of_the_source(robot, name):
    assert sum(link.mass for link in robot.links.values()) == pytest.approx(ROBOTS[name][1], abs=1e-6)


def test_links_are_bodies_that_can_be(robot, name):
    for link in robot.links.values():
        assert link.mass > 0, link.name
        assert triangle_violation(np.array(link.inertia)) == 0, link.name
        assert np.linalg.eigvalsh(matrix(link.inertia)).min() > 0, link.name


def test_inertia_fits_the_shapes(robot, name):
    """The largest moment, which zero, swapped or millimetre figures miss by orders of magnitude."""
    for link in robot.links.values():
        solids = [s for s in link.shapes if s.role != "visual"]
        if not solids or link.name in MASS_NOT_IN_SHAPE.get(name, ()) or (name, link.name) == ("racecar", "base_link"):
            continue  # the racecar's collision shape is its camera only
        found = np.linalg.eigvalsh(matrix(link.inertia)).max()
        expected = np.linalg.eigvalsh(matrix(primitives.combined(solids, mass=link.mass)[2])).max()
        assert 1 / 5 < found / expected < 5, (link.name, found, expected)


# gymnasium's ant has an armature of 1 kg m^2 on legs of 0.001: it is its definition, and the linter is right to say so
NOTED = {"ant": {"armature"}}


def test_the_linter_finds_nothing(robot, name):
    """Neither in the robot nor in the MJCF file that it is written to."""
    noted = NOTED.get(name, set())
    assert {f.code for f in lint(robot)} == noted
    assert {f.code for f in lint(jg.to_mjcf(robot))} == noted


def test_the_calf_of_a1_is_one_that_can_be():
    """Half its mass at either end of it would be the most inertia it can have; the released file has more."""
    calf = jg.zoo.a1().link("FR_calf")
    half_length = calf.shapes[0].size[2]
    filed = 0.002997972
    assert calf.inertia[0] < calf.mass * half_length**2 < filed


def test_a_rod_has_its_small_moment_along_itself():
    """Which axis is small: what swapped figures get wrong."""
    for robot, links in ((jg.zoo.swimmer(), "head segment"), (jg.zoo.ant(), "leg aux foot"), (jg.zoo.a1(), "calf")):
        rods = [k for k in robot.links.values() if any(word in k.name for word in links.split())]
        rods = [k for k in rods if k.shapes[0].kind in ("box", "capsule")]
        assert rods
        for link in rods:
            shape = link.shapes[0]
            along = primitives.rotation(shape.orientation)[:, np.argmax(shape.size) if shape.kind == "box" else 2]
            moments, axes = np.linalg.eigh(matrix(link.inertia))
            assert abs(axes[:, 0] @ along) > 0.99, link.name
            assert moments[1] > 1.5 * moments[0], link.name


def test_starts_within_limits_and_knows_its_sizes(robot):
    for joint in robot.joints.values():
        low, high = joint.limit
        assert low < high
        if joint.kind in ("revolute", "prismatic", "continuous"):
            assert low - 1e-12 <= (joint.initial or 0.0) <= high + 1e-12, joint.name
    sizes = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
    for shape in (s for link in robot.links.values() for s in link.shapes):
        assert len(shape.size) == sizes[shape.kind] and min(shape.size) > 0
        assert np.linalg.norm(shape.orientation) == pytest.approx(1.0)


def test_shapes_share_nothing(robot):
    """Editing one shape leaves the others as they were."""
    shapes = [s for link in robot.links.values() for s in link.shapes]
    assert len({id(s) for s in shapes}) == len(shapes)
    assert len({id(s.contact) for s in shapes}) == len(shapes)


def test_runs(robot):
    model = compiled(robot, dt=1e-3)
    trajectory = jg.rollout(model, model.initial_state(), np.full((100, model.nu), 1e-3))
    assert np.isfinite(trajectory.q).all() and np.isfinite(trajectory.qd).all()
    # nothing but gravity and small forces: nobody is flung away in a tenth of a second
    assert np.abs(trajectory.q[-1] - trajectory.q[0]).max() < 3.0


def test_every_shape_touches():
    """Cylinders too: nothing is announced as left out (warnings are errors here)."""
    jg.zoo.go2().compile()


@pytest.mark.parametrize("touch, lowest", [("all", -0.01), ("feet", -0.1)])
def test_a_laikago_without_torque_lies_on_the_ground(touch, lowest):
    """It folds its legs under itself; where feet alone touch, the rest of it goes through."""
    model = jg.World().add(jg.zoo.laikago(touch=touch), position=(0, 0, 0.5)).add_ground().compile(dt=2e-3)
    heights = jg.rollout(model, model.initial_state(), steps=600, outputs=("link.position",)).outputs["link.position"][
        ..., 2
    ]
    assert (heights[-1].min() > lowest) == (touch == "all")


def test_swimmer_needs_a_head():
    with pytest.raises(ValueError, match="n is 0"):
        jg.zoo.swimmer(0)


# stances ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, height", [("a1", 0.27), ("go2", 0.29), ("racecar", 0.0), ("laikago", None)])
def test_stands_level_at_the_height_of_its_docstring(name, height):
    robot = ROBOTS[name][0]()
    model = compiled(robot)
    seen = jg.inspect(model, model.initial_state())
    lowest = []
    for link in robot.links.values():
        for shape in (s for s in link.shapes if s.kind == "sphere" and s.role != "visual" and not s.position[0] > 0.1):
            i = model.link(link.name)
            centre = seen.link_position[i] + seen.link_rotation[i] @ np.asarray(shape.position)
            lowest.append(centre[2] - shape.size[0])
    assert len(lowest) == 4
    assert np.ptp(lowest) < 1e-4
    if height is not None:
        assert -lowest[0] == pytest.approx(height, abs=5e-3)


def test_fingers_hold_the_ball():
    robot = jg.zoo.franka_arm()
    model = compiled(robot)
    seen = jg.inspect(model, model.initial_state())
    hand, ball = model.link("hand"), model.link("ball")
    in_hand = seen.link_rotation[hand].T @ (seen.link_position[ball] - seen.link_position[hand])
    assert in_hand[1] == pytest.approx(0.0, abs=1e-9)
    grasp = dict((k, p) for k, p, _ in robot.link("hand").sites)["grasp"]
    assert in_hand == pytest.approx(grasp, abs=0.02)


def test_the_racecar_rolls_straight_and_steers():
    model = compiled(jg.zoo.racecar())
    seen = jg.inspect(model, model.initial_state())
    wheels = np.array(
        [seen.link_position[model.link(f"{s}_{e}_wheel")] for e in ("rear", "front") for s in ("left", "right")]
    )
    np.testing.assert_allclose(wheels, [(0, 0.1, 0.05), (0, -0.1, 0.05), (0.325, 0.1, 0.05), (0.325, -0.1, 0.05)])


# solids -----------------------------------------------------------------------------------------------------------------


def test_solids_against_closed_forms():
    m, r, h = 3.0, 0.2, 0.5
    assert primitives.volume("sphere", (r,)) == pytest.approx(4 / 3 * math.pi * r**3)
    assert primitives.volume("cylinder", (r, h)) == pytest.approx(math.pi * r**2 * 2 * h)
    assert primitives.volume("capsule", (r, h)) == pytest.approx(math.pi * r**2 * 2 * h + 4 / 3 * math.pi * r**3)
    assert primitives.volume("box", (0.1, 0.2, 0.3)) == pytest.approx(0.2 * 0.4 * 0.6)
    assert primitives.moments("sphere", (r,), m) == pytest.approx((2 / 5 * m * r**2,) * 3)
    across = m / 12 * (3 * r**2 + (2 * h) ** 2)
    assert primitives.moments("cylinder", (r, h), m) == pytest.approx((across, across, m * r**2 / 2))
    x, y, z = 0.2, 0.4, 0.6
    expected = m / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    assert primitives.moments("box", (x / 2, y / 2, z / 2), m) == pytest.approx(expected)
    assert primitives.moments("capsule", (r, 1e-12), m) == pytest.approx(primitives.moments("sphere", (r,), m))


@pytest.mark.parametrize("kind, size", [("capsule", (0.2, 0.5)), ("cylinder", (0.3, 0.1)), ("box", (0.1, 0.3, 0.2))])
def test_solids_against_a_sum_over_slices(kind, size):
    """Moments about x and z from the cross-sections along z: their areas and second moments of area."""
    ends = {"capsule": size[-1] + size[0]}.get(kind, size[-1])
    z = (np.arange(200_000) + 0.5) / 200_000 * 2 * ends - ends
    if kind == "box":
        area, second_x, second_y = 4 * size[0] * size[1], 4 / 3 * size[0] ** 3 * size[1], 4 / 3 * size[0] * size[1] ** 3
        area, second_x, second_y = (np.full_like(z, v) for v in (area, second_x, second_y))
    else:
        radius2 = size[0] ** 2 - (np.maximum(np.abs(z) - size[1], 0.0) ** 2 if kind == "capsule" else 0.0) + 0 * z
        area, second_x, second_y = math.pi * radius2, math.pi / 4 * radius2**2, math.pi / 4 * radius2**2
    dz = z[1] - z[0]
    volume = area.sum() * dz
    expected = np.array([second_y + area * z * z, second_x + area * z * z, second_x + second_y]).sum(1) * dz / volume
    assert primitives.volume(kind, size) == pytest.approx(volume, rel=1e-8)
    assert primitives.moments(kind, size, 1.0) == pytest.approx(expected, rel=1e-8)


def test_solids_put_together_as_mujoco_does():
    rng = np.random.default_rng(3)
    shapes, text = [], ""
    for kind, size in (("sphere", (0.1,)), ("capsule", (0.1, 0.3)), ("cylinder", (0.2, 0.1)), ("box", (0.1, 0.2, 0.3))):
        position, turn = rng.normal(size=3), rng.normal(size=4)
        shapes.append(Shape(kind, size, tuple(position), tuple(turn / np.linalg.norm(turn))))
        row = (" ".join(map(repr, map(float, v))) for v in (size, position, turn))
        text += '<geom type="{}" size="{}" pos="{}" quat="{}" density="7"/>'.format(kind, *row)
    m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body><freejoint/>{text}</body></worldbody></mujoco>")
    mass, com, inertia = primitives.combined(shapes, density=7.0)
    assert mass == pytest.approx(m.body_mass[1])
    assert com == pytest.approx(m.body_ipos[1])
    turn = primitives.rotation(m.body_iquat[1])
    np.testing.assert_allclose(matrix(inertia), turn @ np.diag(m.body_inertia[1]) @ turn.T, atol=1e-9 * mass)
    by_mass = primitives.combined(shapes, mass=mass)
    np.testing.assert_allclose(by_mass[2], inertia)


@pytest.mark.parametrize("end", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0.3, -0.4, -0.9), (1e-9, 0, -1)])
def test_rods_run_from_end_to_end(end):
    shape = primitives.rod("capsule", (1, 2, 3), np.add((1, 2, 3), end), 0.1)
    half = primitives.rotation(shape.orientation)[:, 2] * shape.size[1]
    np.testing.assert_allclose(np.asarray(shape.position) + half, np.add((1, 2, 3), end), atol=1e-8)


def test_solids_refuse_what_they_cannot_weigh():
    with pytest.raises(ValueError, match="mesh"):
        primitives.volume("mesh", (1, 1, 1))
    with pytest.raises(ValueError, match="plane"):
        primitives.moments("plane", (1, 1), 1.0)
    with pytest.raises(ValueError, match="density or the mass"):
        primitives.combined([Shape("sphere", (1,))])


# the originals ----------------------------------------------------------------------------------------------------------


def original(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"the original is not on this machine: {path}")
    return path


@pytest.mark.parametrize(
    "name, path", [("ant", GYMNASIUM / "ant.xml"), ("humanoid", GYMNASIUM / "humanoid.xml"), ("swimmer", SWIMMER)]
)
def test_equals_its_original_in_mujoco(name, path):
    m = mujoco.MjModel.from_xml_path(str(original(path)))
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    robot = ROBOTS[name][0]()
    model = compiled(robot)
    assert (model.nq, model.nv, model.nu) == (m.nq, m.nv, m.nu)
    assert model.n_links == m.nbody - 1
    for i, link in enumerate(model.link_names, start=1):
        ours, turn = robot.link(link), primitives.rotation(m.body_iquat[i])
        assert m.body(i).name in ("", link)
        assert ours.mass == pytest.approx(m.body_mass[i], abs=1e-9)
        np.testing.assert_allclose(ours.com, m.body_ipos[i], atol=1e-9)
        np.testing.assert_allclose(matrix(ours.inertia), turn @ np.diag(m.body_inertia[i]) @ turn.T, atol=1e-9)
    for joint in (m.joint(j) for j in range(m.njnt) if m.jnt_limited[j]):
        np.testing.assert_allclose(robot.joint(joint.name).limit, joint.range, atol=1e-9)
    for k, actuator in enumerate(robot.actuators.values()):
        assert actuator.joint == m.joint(m.actuator_trnid[k, 0]).name
        np.testing.assert_allclose(actuator.control_limit, m.actuator_ctrlrange[k])
    rng = np.random.default_rng(5)
    for _ in range(3):
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:], d.ctrl[:] = rng.normal(size=m.nq), rng.normal(size=m.nv), rng.uniform(-1.5, 1.5, m.nu)
        mujoco.mj_normalizeQuat(m, d.qpos)
        mujoco.mj_forward(m, d)
        seen = jg.inspect(model, jg.State(d.qpos.copy(), d.qvel.copy()), d.ctrl.copy())
        np.testing.assert_allclose(seen.link_position, d.xpos[1:], atol=1e-9)
        np.testing.assert_allclose(seen.qdd, d.qacc, rtol=1e-6, atol=1e-6 * np.abs(d.qacc).max())


@pytest.mark.parametrize(
    "name, path", [("a1", "a1_description/urdf/a1.urdf"), ("go2", "go2_description/urdf/go2_description.urdf")]
)
def test_has_the_figures_of_its_urdf(name, path):
    root = ET.parse(original(UNITREE / path)).getroot()
    robot, seen = ROBOTS[name][0](), 0
    for element in root.findall("link"):
        link, inertial = robot.links.get(element.get("name")), element.find("inertial")
        if link is None:
            assert inertial is None or float(inertial.find("mass").get("value")) <= 0.001
            continue
        seen += 1
        origin = inertial.find("origin")
        com = [float(v) for v in origin.get("xyz").split()] if origin is not None else [0.0] * 3
        assert link.mass == float(inertial.find("mass").get("value"))
        np.testing.assert_allclose(link.com, com, atol=1e-12)
        figures = [float(inertial.find("inertia").get(k)) for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        if name == "a1" and link.name[3:] in ("thigh", "calf"):  # about the joint there, products with the other sign
            at_joint = matrix(link.inertia) + link.mass * (np.dot(com, com) * np.eye(3) - np.outer(com, com))
            flipped = matrix(figures) * (2 * np.eye(3) - 1)
            np.testing.assert_allclose(at_joint, flipped, rtol=1e-9, atol=1e-15)
        else:
            np.testing.assert_allclose(link.inertia, figures, rtol=1e-12, atol=0)
    assert seen == len(robot.links)
    for element in root.findall("joint"):
        joint = robot.joints.get(element.get("name"))
        if joint is None or joint.kind == "fixed" and "foot" not in joint.name and "rotor" not in joint.name:
            continue
        assert element.find("child").get("link") == joint.child and element.find("parent").get("link") == joint.parent
        np.testing.assert_allclose(joint.position, [float(v) for v in element.find("origin").get("xyz").split()])
        if joint.kind == "revolute":
            limit = {k: float(v) for k, v in element.find("limit").attrib.items()}
            assert (*joint.limit, joint.effort_limit, joint.velocity_limit) == tuple(
                limit[k] for k in ("lower", "upper", "effort", "velocity")
            )
            np.testing.assert_array_equal(joint.axis, [float(v) for v in element.find("axis").get("xyz").split()])
