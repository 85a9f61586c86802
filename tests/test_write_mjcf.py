"""What goes out as MJCF means the same in MuJoCo, or is refused with the reason."""

import mujoco
import numpy as np
import pytest
from oracles.differences import random_state
from test_mjcf import MODELS, manifest, needs_models, quiet, read, reference

import jointgrad as jg
from jointgrad.files.mjcf import load_world
from jointgrad.files.mjcf.inertia import inertia_box
from jointgrad.files.write_mjcf import to_mjcf
from jointgrad.files.write_mjcf.pairs import damping_ratio
from jointgrad.model.description import Shape
from jointgrad.model.rotations import rotation

SOLID = ("fixed", "revolute", "continuous", "prismatic", "spherical", "planar", "universal")
# what the twin is told to leave out
FREE = {"contact": None, "constraints": False}


def compared(world, model, dt=2e-3, integrator="semi_implicit"):
    """Largest relative error of mass matrix, acceleration and next state against MuJoCo's reading of the text."""
    m = mujoco.MjModel.from_xml_string(to_mjcf(world, dt, integrator))
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    d = mujoco.MjData(m)
    assert (m.nq, m.nv, m.nu) == (model.nq, model.nv, model.nu)
    np.testing.assert_allclose(m.key_qpos[0], model.initial_state().q, atol=1e-15)
    rng = np.random.default_rng(0)
    state, u = random_state(model, rng), rng.normal(size=model.nu)
    d.qpos[:], d.qvel[:], d.ctrl[:] = state.q, state.qd, u
    mujoco.mj_forward(m, d)
    info = jg.inspect(model, state, u)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    pairs = [(info.mass_matrix, M), (info.qdd, d.qacc.copy())]
    mujoco.mj_step(m, d)
    after = jg.step(model, state, u)
    pairs += [(after.q, d.qpos), (after.qd, d.qvel)]
    return max(np.abs(a - b).max() / max(np.abs(b).max(), 1e-9) for a, b in pairs)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
@pytest.mark.parametrize("robot", ["laikago", "cart_pole", "pendulum"])
def test_zoo(robot, integrator):
    description = getattr(jg.zoo, robot)()
    assert (
        compared(description, description.compile(dt=2e-3, integrator=integrator, **FREE), integrator=integrator) < 1e-9
    )


@pytest.mark.filterwarnings("ignore::jointgrad.UnsupportedWarning")
@pytest.mark.parametrize("robot", ["ant", "humanoid", "a1", "go2", "franka_arm", "racecar", "golf", "swimmer"])
def test_the_rest_of_the_zoo(robot):
    """Shapes and their contact settings included; nothing of them acts without contact."""
    description = getattr(jg.zoo, robot)()
    assert compared(description, description.compile(dt=2e-3, **FREE)) < 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(seed):
    """Every joint kind, drives with gears and biases, springs, dampers, armature."""
    robot = jg.zoo.random_tree(6, seed, kinds=SOLID, base=("free", "fixed")[seed % 2], several=False)
    assert compared(robot, robot.compile(dt=2e-3, **FREE)) < 1e-9


def test_two_robots_in_one_world():
    world = jg.World(gravity=(0.5, 0, -9)).add(
        jg.zoo.laikago(touch="feet"), "dog", position=(1, 2, 3), orientation=(1, 0, 0, 1)
    )
    world.add(jg.zoo.cart_pole(), "cart", position=(0, 1, 0), orientation=(1, 1, 0, 0))
    assert compared(world, world.compile(dt=2e-3, **FREE)) < 1e-9


# round trips: what comes back is what went out ---------------------------------------------------------------------------

SCENE = """<mujoco>
<option timestep=".004" gravity="0 1 -9" density="1.2" viscosity=".1" integrator="RK4"/>
<worldbody>
  <geom name="floor" type="plane" size="1 1 1" friction=".7"/><site name="here" pos="1 0 0"/>
  <body name="a" pos="0 0 1" euler="10 20 30"><joint name="j" axis="0 1 0" range="-50 50" damping=".2"/>
    <geom name="rod" type="capsule" fromto="0 0 0 .3 0 .1" size=".04" condim="4" solref=".01 1" priority="2" gap=".01"/>
    <site name="tip" pos=".3 0 .1"/>
    <body name="b" pos=".3 0 .1"><joint name="k" type="slide" axis="1 1 0" springref=".2" stiffness="3"/>
      <geom name="ball" size=".1" contype="2"/></body></body>
  <body name="c" pos="1 1 1"><joint name="socket" type="ball" range="0 40" armature=".1"/><geom type="box" size=".1 .2 .3"/></body>
</worldbody>
<tendon>
  <fixed name="t" stiffness="3" damping=".2" springlength="-.1 .2" range="-1 2" frictionloss=".3">
    <joint joint="j" coef=".7"/><joint joint="k" coef="-2"/></fixed>
  <fixed name="free"><joint joint="k" coef="2"/></fixed>
  <spatial name="rope" range="0 2"><site site="here"/><site site="tip"/></spatial>
</tendon>
<equality>
  <connect body1="a" anchor="0 0 1" solref=".1 1"/>
  <weld body1="a" body2="c" relpose="0 0 0 1 0 0 0" active="false" name="w"/>
  <connect site1="here" site2="tip"/>
  <joint joint1="j" joint2="k" polycoef="0 1 0 .2 0" solimp=".9 .95 .001 .5 2"/>
  <tendon tendon1="t" tendon2="free" polycoef=".1 1 0 0 0"/>
</equality>
<contact><pair geom1="rod" geom2="ball" condim="3" friction="1 1 .01 .001 .001"/><exclude body1="a" body2="b"/></contact>
<actuator>
  <motor name="m" tendon="t" gear="3" ctrlrange="-1 1"/><position name="p" joint="k" kp="20" kv="2"/>
  <damper name="d" joint="j" kv="3" ctrlrange="0 2"/><motor name="twist" joint="socket" gear="1 2 3"/>
</actuator>
<keyframe><key name="up" qpos=".5 .1 1 0 0 0" qvel="1 2 3 4 5" ctrl="1 2 3 4"/></keyframe>
</mujoco>"""


@pytest.mark.filterwarnings("ignore::jointgrad.UnsupportedWarning")
def test_a_scene_comes_back_as_it_went_out():
    world = load_world(SCENE)
    back = load_world(to_mjcf(world))
    ours, theirs = world.placed[0].robot, back.placed[0].robot
    assert (back.dt, back.integrator, tuple(back.gravity)) == (0.004, "rk4", (0, 1, -9))
    assert (back.density, back.viscosity) == (1.2, 0.1)
    for table in ("tendons", "actuators", "joints"):
        assert getattr(theirs, table).keys() == getattr(ours, table).keys()
    assert theirs.tendons["t"] == ours.tendons["t"]
    said, again = ([(c, sorted(c.file_settings.items())) for c in one.constraints] for one in (ours, theirs))
    assert len(said) == 9 and sorted(again, key=str) == sorted(said, key=str)
    assert theirs.keyframes["up"] == ours.keyframes["up"]
    for mine, other in zip(ours.links["a"].shapes, theirs.links["a"].shapes, strict=True):
        assert (other.name, other.kind, other.friction) == (mine.name, mine.kind, mine.friction)
        assert other.contact | {"friction": other.friction} == mine.contact | {"friction": mine.friction}
    one, two = world.compile(), back.compile()
    assert one.link_names == two.link_names
    for name, value in one.params.items():
        np.testing.assert_allclose(two.params[name], value, rtol=1e-12, atol=1e-14, err_msg=name)


@pytest.mark.filterwarnings("ignore::jointgrad.UnsupportedWarning")
def test_mujoco_reads_the_same_constraints_from_both():
    """Kinds, data and softness of constraints, tendons, pairs, and a step with all of them acting."""
    theirs, ours = mujoco.MjModel.from_xml_string(SCENE), mujoco.MjModel.from_xml_string(to_mjcf(load_world(SCENE)))
    for name in (
        "eq_type", "eq_obj1id", "eq_obj2id", "eq_data", "eq_solref", "eq_solimp", "eq_active0", "pair_geom1", "pair_geom2",
        "pair_friction", "exclude_signature", "tendon_range", "tendon_stiffness", "tendon_damping", "tendon_lengthspring",
        "tendon_frictionloss", "jnt_range", "jnt_limited", "geom_contype", "geom_condim", "geom_solref",
        "geom_friction", "geom_priority",
        "geom_gap", "actuator_gear",
        "actuator_gainprm", "actuator_biasprm",
    ):  # fmt: skip
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-14, err_msg=name)
    results = []
    for m in (theirs, ours):
        d = mujoco.MjData(m)
        m.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        d.ctrl[:] = (0.5, 0.2, 1.0, -0.3)
        for _ in range(20):
            mujoco.mj_step(m, d)
        results.append(d.qpos.copy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9, atol=1e-12)
    assert np.abs(results[0] - theirs.qpos0).max() > 1e-3


@pytest.mark.filterwarnings("ignore::jointgrad.UnsupportedWarning")
def test_joints_start_where_they_started():
    """A hinge off its link's origin and a slide, neither at zero: the pose and the coordinates come back."""
    robot = jg.Description("started")
    for k, kind in enumerate(("revolute", "prismatic", "continuous")):
        robot.add_link(f"link{k}", 1.0, (0.1, 0.2, 0.3), (0.1, 0.12, 0.15))
        parent = f"link{k - 1}" if k else None
        place = dict(position=(0.1, 0.2, 0.3), orientation=(0.8, 0.0, 0.6, 0.0), axis=(1.0, 2.0, 2.0))
        robot.add_joint(
            f"joint{k}", kind, parent, f"link{k}", initial=0.3 + k, anchor=(0.3, 0.1, 0.0), rest=0.2, **place
        )
    model, text = robot.compile(), to_mjcf(robot)
    back = load_world(text).compile()
    np.testing.assert_allclose(back.initial_state().q, (0.3, 1.3, 2.3))
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    ours, again = (jg.inspect(x, x.initial_state()).link_position for x in (model, back))
    np.testing.assert_allclose(d.xpos[1:], ours, atol=1e-12)
    np.testing.assert_allclose(again, ours, atol=1e-12)


def test_free_joint_with_spring_and_damper():
    robot = jg.Description("floating")
    robot.add_link("ball", 2.0, (0.1, 0.0, 0.0), (0.1, 0.12, 0.15))
    options = dict(damping=0.3, stiffness=2.0, armature=0.1)
    robot.add_joint(
        "float", "free", None, "ball", position=(0.1, 0.2, 0.3), orientation=(0.8, 0.0, 0.6, 0.0), **options
    )
    assert compared(robot, robot.compile(dt=2e-3)) < 1e-9


def test_meshes_are_where_they_were(tmp_path):
    """One file in two scales, placed and turned: MuJoCo has its corners where the shapes put them."""
    trimesh = pytest.importorskip("trimesh", reason="meshes are read by trimesh (extra [mesh])")
    corners = trimesh.creation.box((0.2, 0.4, 0.6))
    corners.export(tmp_path / "box.stl")
    robot, place = jg.Description("meshes"), dict(position=(0.1, 0.2, 0.3), orientation=(0.8, 0.0, 0.6, 0.0))
    link = robot.add_link("a", 1.0, inertia=(0.1, 0.1, 0.1))
    robot.add_joint("j", "revolute", None, "a")
    for scale in ((1.0, 1.0, 1.0), (1.0, 2.0, 0.5)):
        link.shapes.append(Shape("mesh", scale, mesh=str(tmp_path / "box.stl"), **place))
    text = to_mjcf(robot)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    turn = rotation(place["orientation"])
    for g, shape in enumerate(link.shapes):
        first, count = m.mesh_vertadr[m.geom_dataid[g]], m.mesh_vertnum[m.geom_dataid[g]]
        theirs = m.mesh_vert[first : first + count] @ d.geom_xmat[g].reshape(3, 3).T + d.geom_xpos[g]
        ours = corners.vertices * shape.size @ np.array(turn).T + place["position"]
        assert np.abs(theirs[:, None] - ours).max(-1).min(0).max() < 1e-6
    back = load_world(text, search_roots=[tmp_path]).placed[0].robot.links["a"].shapes
    assert [(s.kind, s.size, s.mesh) for s in back] == [(s.kind, s.size, s.mesh) for s in link.shapes]


def test_tendons_of_random_trees():
    robot = jg.zoo.random_tree(6, 3, kinds=SOLID, several=False, tendons=True)
    assert compared(robot, robot.compile(dt=2e-3)) < 1e-9


def test_drag():
    world = jg.World(density=1000.0, viscosity=0.1).add(drag_robot())
    assert compared(world, world.compile(dt=2e-3)) < 1e-9


def drag_robot():
    """A random tree whose drag boxes are those that MuJoCo works out."""
    robot = jg.zoo.random_tree(5, 4, kinds=("revolute", "spherical"), several=False)
    for name, link in robot.links.items():
        robot.links[name] = inertia_box(link)
    return robot


def other_box():
    robot = drag_robot()
    robot.links["link2"].drag_size = (0.1, 0.2, 0.3)
    return jg.World(density=2.0).add(robot)


def collada():
    robot = jg.zoo.cart_pole()
    robot.link("cart").shapes.append(Shape("mesh", mesh="cart.dae"))
    return robot


def point_mass():
    robot = jg.Description("point")
    robot.add_link("link0", 1.0, (0.0, 0.0, 1.0))
    robot.add_joint("joint0", "revolute", None, "link0", axis=(1, 0, 0))
    return robot


def other_contact():
    robot = jg.zoo.laikago(touch="feet")
    next(k for k in robot.links.values() if k.shapes).shapes[0].contact["restitution"] = 0.5
    return robot


def one_sided():
    robot = jg.zoo.cart_pole()
    next(iter(robot.joints.values())).limit = (-1.0, float("inf"))
    return robot


def kept_alone():
    robot = jg.zoo.cart_pole()
    robot.keyframes["up"] = {"q": (0.0, 0.0), "qd": (0.0, 0.0), "u": (0.0,)}
    return jg.World().add(robot, "a").add(jg.zoo.pendulum(), "b")


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        (other_box(), ["link2", "drag box"]),
        (other_contact(), ["restitution"]),
        (one_sided(), ["limit on one side"]),
        (kept_alone(), ["keyframe"]),
        (collada(), ["cart.dae", "convert"]),
        (point_mass(), ["link0", "inertia"]),
        (jg.zoo.random_tree(12, 2, several=True, kinds=("revolute", "fixed")), ["joint", "apart from the first"]),
    ],
)
def test_refuses_what_mjcf_cannot_say(robot, words):
    with pytest.raises(jg.ModelError) as caught:
        to_mjcf(robot)
    assert all(word in str(caught.value) for word in words)


def test_refuses_explicit_euler():
    with pytest.raises(jg.ModelError, match="explicit"):
        to_mjcf(jg.zoo.cart_pole(), integrator="explicit")


# the models of the field -------------------------------------------------------------------------------------------------

SAID = ("apart from the first joint", "mesh", "hfield", "MuJoCo wants both above 1e-15")


@needs_models
def test_files_of_the_field_come_back_as_they_went_out():
    """Every parameter of the model, and MuJoCo's counts of all it has; what is refused is refused for a known reason."""
    exact, differing = 0, []
    for file in manifest(True)[::12]:
        found, _ = read(file)
        if isinstance(found, jg.ModelError) or not found.links or len(found.joints) > 60:
            continue
        world = quiet(load_world, MODELS / file, search_roots=[MODELS])
        try:
            text = to_mjcf(world)
        except jg.ModelError as refusal:
            assert any(words in str(refusal) for words in SAID), refusal
            continue
        m, again = reference(file), mujoco.MjModel.from_xml_string(text)
        counts = ("nq", "nv", "nu", "neq", "npair", "nexclude", "nsite", "ngeom")
        if m is not None and [getattr(m, c) for c in counts] != [getattr(again, c) for c in counts]:
            differing.append(f"{file}: {[(c, getattr(m, c), getattr(again, c)) for c in counts]}")
        one, two = (quiet(w.compile) for w in (world, quiet(load_world, text, search_roots=[MODELS])))
        # a placement may come back as the same one in other numbers, where joints do not start at zero
        names = [n for n in one.params if not n.endswith("placement")]
        differing += [f"{file}: {n}" for n in names if not np.allclose(one.params[n], two.params[n], 1e-9, 1e-11)]
        exact += 1
    assert not differing, "\n".join(differing)
    assert exact > 25


# pairs ---------------------------------------------------------------------------------------------------------------------


def balls() -> jg.World:
    world = jg.World(dt=1e-4)
    for k in range(3):
        robot = jg.Description(f"b{k}", base="free")
        robot.add_link("ball", 1.0, inertia=(0.01,) * 3).shapes.append(Shape("sphere", (0.1,)))
        world.add(robot, f"b{k}", position=(k, 0, 0.3))
    return world.add_ground(friction=0.4)


def test_pairs_are_spelt_out():
    """Which shapes touch, and how, is what the compiled world says: the last word of World.pair counts."""
    world = (
        balls()
        .pair("*", "*", contact=None)
        .pair("b*/ball", "ground", contact=jg.Impulse(), friction=0.3, restitution=0.5)
    )
    world.pair("b1/ball", "ground", contact=None).pair(
        "b2/ball", "ground", contact=jg.Impulse(), friction=0.7, rolling=0.02
    )
    m = mujoco.MjModel.from_xml_string(to_mjcf(world))
    names = [{m.geom(g).name for g in (a, b)} for a, b in zip(m.pair_geom1, m.pair_geom2, strict=True)]
    assert names == [{"b0/ball", "ground"}, {"b2/ball", "ground"}]
    np.testing.assert_allclose(m.pair_friction[:, 0], [0.3, 0.7])
    assert m.pair_dim.tolist() == [3, 6] and m.pair_friction[1, 3] == 0.02
    assert not m.geom_contype.any() and not m.geom_conaffinity.any()


def test_a_world_in_which_nothing_touches():
    m = mujoco.MjModel.from_xml_string(to_mjcf(balls().pair("*", "*", contact=None)))
    assert m.npair == 0 and not m.geom_contype.any()


@pytest.mark.parametrize("restitution", [0.9, 0.5, 0.3, 0.0])
def test_bounces_give_back_their_share(restitution):
    world = balls().pair("b0/ball", "ground", restitution=restitution)
    m = mujoco.MjModel.from_xml_string(to_mjcf(world))
    m.pair_solimp[:, :2] = 0.999
    ratio = damping_ratio(restitution)
    m.pair_solref[:] = max(2e-4, 1e-3 / ratio), ratio
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    speeds = []
    for _ in range(4000):
        mujoco.mj_step(m, d)
        speeds.append(d.qvel[2])
    assert max(speeds) / -min(speeds) == pytest.approx(restitution, abs=0.03)
