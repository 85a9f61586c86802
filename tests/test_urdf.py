"""URDF: the files of the field against Pinocchio, the round trip, and one clear sentence for what cannot be read."""

from __future__ import annotations

import csv
import functools
import re
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import jointgrad as jg
from jointgrad.files import load, load_urdf, to_urdf
from jointgrad.files.urdf.quantities import quaternion_from_rpy, rpy_from_quaternion
from jointgrad.files.xml import FileError, MissingFileError
from jointgrad.model.arrays import FIXED

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
needs_models = pytest.mark.skipif(not (MODELS / "manifest.csv").exists(), reason=f"the robot files are not in {MODELS}")
N_DOF = {"fixed": 0, "revolute": 1, "continuous": 1, "prismatic": 1, "spherical": 3, "planar": 3, "free": 6}

# Why a file that Pinocchio loads may be refused: each rule is a reason that a person would accept.
ACCEPTED = {
    r"expected .* got \d+": "a row with a wrong count of numbers; Pinocchio's reader drops the shape",
    r"only below the root can a link float": "a floating joint inside the tree: not simulable here",
}


def quiet_load(source, **options) -> jg.Description:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jg.UnsupportedWarning)
        return load_urdf(source, **{"missing_meshes": "skip", **options})


def quiet_compile(robot: jg.Description) -> jg.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jg.UnsupportedWarning)
        return robot.compile()


@functools.cache
def listed(kind: str = "urdf") -> list[dict]:
    with open(MODELS / "manifest.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if row["kind"] == kind]


def text_of(row: dict) -> str:
    return (MODELS / row["file"]).read_text(encoding="utf-8", errors="replace")


# against Pinocchio -------------------------------------------------------------------------------------------------------


@needs_models
def test_every_file_of_the_field_loads_or_says_why_not(capsys):
    """nv and mass as Pinocchio's (1e-9), fixed base: mimic joints count as free ones there and here; mass counts the
    links that are welded to the world. The manifest's masses have six digits; Pinocchio itself gives the others."""
    table, wrong, n_loaded, n_reference = Counter(), [], 0, 0
    for row in listed():
        is_reference = row["ref_ok"] == "1"
        n_reference += is_reference
        start = time.process_time()
        try:
            robot = quiet_load(MODELS / row["file"])
        except jg.ModelError as error:
            rule = next((why for what, why in ACCEPTED.items() if re.search(what, str(error))), None)
            table[f"refused, and by Pinocchio not: {rule}" if is_reference else "refused, and by Pinocchio, too"] += 1
            if is_reference and rule is None:
                wrong.append(f"{row['file']}: {error}")
            continue
        finally:
            assert time.process_time() - start < 60, f"{row['file']} took more than a minute"
        if not is_reference:
            table["loaded, and by Pinocchio not"] += 1
            continue
        n_loaded += 1
        table["loaded"] += 1
        wrong += differences(row, robot)
    with capsys.disabled():
        print(f"\n{n_loaded} of {n_reference} URDF files that Pinocchio loads ({100 * n_loaded / n_reference:.1f} %)")
        for what, count in table.most_common():
            print(f"{count:6d}  {what}")
    assert not wrong, "\n".join(wrong)
    assert n_loaded >= 0.98 * n_reference


def differences(row: dict, robot: jg.Description) -> list[str]:
    nv = sum(N_DOF[joint.kind] for joint in robot.joints.values())
    mass = sum(link.mass for link in robot.links.values())
    found = []
    if nv != int(row["ref_nv"]):
        found.append(f"{row['file']}: nv is {nv}, for Pinocchio {row['ref_nv']}")
    if abs(mass - float(row["ref_mass"])) > 1e-5 * abs(float(row["ref_mass"])):
        found.append(f"{row['file']}: mass is {mass}, for Pinocchio {row['ref_mass']}")
    exact = pinocchio_mass(pin.buildModelFromXML(text_of(row)))
    if abs(mass - exact) > 1e-9 * abs(exact):
        found.append(f"{row['file']}: mass is {mass!r}, for Pinocchio {exact!r}")
    return found


def pinocchio_mass(model: pin.Model) -> float:
    """Of all links: computeTotalMass leaves out what is welded to the world, which is the inertia of its joint 0."""
    return sum(inertia.mass for inertia in model.inertias)


@functools.cache
def sample(count: int) -> list[tuple[str, jg.Description]]:
    """Files all over the collection whose joints are scalar and whose links have the mass to move."""
    rows = [r for r in listed() if r["ref_ok"] == "1" and 1 <= int(r["ref_nv"]) <= 60]
    found = []
    for row in rows[:: max(1, len(rows) // (3 * count))]:
        try:
            robot = quiet_load(MODELS / row["file"])
            quiet_compile(robot)
        except jg.ModelError:
            continue
        if all(N_DOF[j.kind] <= 1 for j in robot.joints.values()) and len(found) < count:
            found.append((row["file"], robot))
    return found


def pinocchio_state(model: jg.Model, reference: pin.Model, q: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Its q for ours, and for each of its rates the place of ours."""
    tree, names = model.topology.tree, model.joint_names
    place = {
        names[frame]: (tree["q"][b], tree["dof"][b])
        for b, frame in enumerate(tree["frame"])
        if tree["frame_kind"][frame] != FIXED
    }
    p, order = pin.neutral(reference), []
    for j in range(1, reference.njoints):
        joint = reference.joints[j]
        i, d = place[reference.names[j]]
        p[joint.idx_q : joint.idx_q + joint.nq] = q[i] if joint.nq == 1 else (np.cos(q[i]), np.sin(q[i]))
        order.append(d)
    return p, order


@needs_models
def test_motion_is_that_of_pinocchio():
    """Link poses, mass matrix and accelerations at random states; its model is built from the file, not from ours.

    Planar and floating joints have other coordinates there; tests of the dynamics cover them.
    """
    rng = np.random.default_rng(0)
    robots = sample(40)
    assert len(robots) >= 35
    for file, robot in robots:
        reference = pin.buildModelFromXML((MODELS / file).read_text(encoding="utf-8", errors="replace"))
        model, data = quiet_compile(robot), reference.createData()
        q, qd, u = rng.uniform(-1, 1, model.nq), rng.normal(size=model.nv), np.zeros(model.nu)
        p, order = pinocchio_state(model, reference, q)
        seen = jg.inspect(model, jg.State(q, qd), u)
        tau = seen.joint_force[order]
        damping = {name: joint.damping for name, joint in robot.joints.items()}
        assert np.allclose(tau, [-damping[n] * qd[d] for n, d in zip(list(reference.names)[1:], order, strict=True)])
        pin.framesForwardKinematics(reference, data, p)
        for i, name in enumerate(model.link_names):
            if not reference.existFrame(name, pin.FrameType.BODY):
                continue
            pose = data.oMf[reference.getFrameId(name, pin.FrameType.BODY)]
            assert np.abs(seen.link_position[i] - pose.translation).max() < 1e-8 * max(1, np.abs(p).max()), (file, name)
            assert np.abs(seen.link_rotation[i] - pose.rotation).max() < 1e-8, (file, name)
        M = pin.crba(reference, data, p)
        M = np.triu(M) + np.triu(M, 1).T
        assert np.abs(seen.mass_matrix[np.ix_(order, order)] - M).max() <= 1e-8 * np.abs(M).max(), file
        # forces decide where accelerations are those of near-massless links, and large
        qdd = seen.qdd[order]
        bias = pin.nonLinearEffects(reference, data, p, qd[order])
        assert np.abs(M @ qdd + bias - tau).max() <= 1e-8 * max(1.0, np.abs(bias).max(), np.abs(tau).max()), file
        if np.linalg.cond(M) < 1e6:
            expected = pin.aba(reference, data, p, qd[order], tau)
            assert np.abs(qdd - expected).max() <= 1e-8 * max(1.0, np.abs(expected).max()), file


# what a file says --------------------------------------------------------------------------------------------------------

ARM = """<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0.1 0 0" rpy="0 0 1.5707963267948966"/><mass value="2"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="2" iyz="0" izz="2.5"/></inertial>
    <visual><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>
    <collision><geometry><box size="1 2 3"/></geometry></collision>
    <collision name="rod"><origin xyz="0 0 1"/><geometry><cylinder radius="0.1" length="0.8"/></geometry></collision>
    <collision><geometry><capsule radius="0.2" length="0.6"/></geometry></collision>
  </link>
  <link name="fore"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <limit lower="-1" upper="2" effort="30" velocity="4"/><dynamics damping="0.5" friction="0.1"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/>
    <origin xyz="1 0 0" rpy="0.1 0.2 0.3"/><mimic joint="shoulder" multiplier="-2" offset="0.5"/></joint>
</robot>"""


def edited(old: str, new: str) -> str:
    assert old in ARM
    return ARM.replace(old, new)


def test_a_file_means_what_it_says():
    robot = load(ARM)
    upper, shoulder, elbow = robot.link("upper"), robot.joint("shoulder"), robot.joint("elbow")
    assert (robot.name, robot.base, list(robot.links)) == ("arm", "fixed", ["base", "upper", "fore"])
    assert upper.mass == 2 and tuple(upper.com) == (0.1, 0, 0)
    assert np.allclose(upper.inertia, (2, 0, 0, 1, 0, 2.5), atol=1e-15)  # a quarter turn about z swaps x and y
    assert [(s.kind, tuple(s.size), s.role) for s in upper.shapes] == [
        ("box", (0.5, 1.0, 1.5), "both"), ("cylinder", (0.1, 0.4), "collision"), ("capsule", (0.2, 0.3), "collision"),
    ]  # fmt: skip
    assert tuple(upper.shapes[0].color) == (1, 0, 0, 1) and upper.shapes[1].name == "rod"
    assert tuple(shoulder.axis) == (1, 0, 0) and tuple(shoulder.limit) == (-1, 2)
    assert (shoulder.damping, shoulder.friction, shoulder.effort_limit, shoulder.velocity_limit) == (0.5, 0.1, 30, 4)
    assert elbow.mimic == ("shoulder", -2.0, 0.5) and elbow.kind == "continuous"
    assert list(robot.actuators) == ["shoulder"]  # a mimic joint follows, it is not driven
    assert robot.actuator("shoulder").force_limit == (-30, 30)


def test_extensions_are_reported_once_with_what_they_change():
    text = edited(
        "</robot>", "<gazebo><mu1>1</mu1></gazebo><gazebo><plugin/></gazebo><transmission/><mystery/></robot>"
    )
    with pytest.warns(jg.UnsupportedWarning) as caught:
        load(text)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert "physics is affected where these matter: gazebo/mu1 (1)" in said
    assert "unknown effect on physics: mystery (1)" in said
    assert "physics is not affected: gazebo (1), transmission (1)" in said


@pytest.mark.parametrize(
    "text, said",
    [
        (edited('<link name="fore"/>', '<link name="upper"/>'), '12: there are two links called "upper", the first in line 4'),
        (edited('<link name="fore"/>', ""), 'the child of joint "elbow" is link "fore", which is not in the file'),
        (edited('<link name="fore"/>', '<link name="fore"/><link name="lost"/>'), '2 roots ("base", "lost")'),
        (edited('<parent link="base"/>', '<parent link="fore"/>'), 'link "upper" is in a cycle'),
        (edited('<child link="fore"/>', '<child link="upper"/>'), "a tree has one parent per link"),
        (edited('lower="-1"', 'lower="nan"'), '<limit lower="nan">: nan is not a finite number'),
        (edited('xyz="1 0 0"', 'xyz="1 inf 0"'), '<origin xyz="1 inf 0">: inf is not a finite number'),
        (edited('xyz="1 0 0"', 'xyz="1 0"'), "expected 3 numbers, got 2"),
        (edited('value="2"', 'value="two"'), '"two" is not a number'),
        (edited('xyz="0 1 0"', 'xyz="0 0 0"'), 'the axis of joint "elbow" has zero length'),
        (edited('type="continuous"', 'type="screw"'), 'joint "elbow" has type "screw"; the types are'),
        (edited('type="continuous"', 'type="floating"'), 'floating joint "elbow" hangs on link "upper"'),
        (edited('joint="shoulder"', 'joint="hip"'), 'mimics joint "hip", which is not in the file'),
        (edited('joint="shoulder"', 'joint="elbow"'), "mimics itself"),
        (edited('size="1 2 3"', 'size="1 -2 3"'), "a <box> has a negative size"),
        (edited("<child", "<kid"), 'joint "shoulder" has no <child>'),
        (edited("</link>", "</lin>"), "this is not XML: mismatched tag"),
        ("<sdf/>", "begins with <robot>"),
        ("<robot/>", "the robot has no <link>"),
        ('<robot><xacro:macro name="a"/></robot>', "run `xacro FILE"),
        ("", "there is no such file"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence(text, said):
    with pytest.raises(FileError) as caught:
        load(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_bare_world_link_is_the_world():
    text = ARM.replace('"base"', '"world"')
    robot = load(text)
    assert list(robot.links) == ["upper", "fore"] and robot.joint("shoulder").parent is None
    assert load(text.replace('<link name="world"/>', "")).links == robot.links  # some files leave it out
    floating = load(text.replace('type="revolute"', 'type="floating"'))
    assert floating.joint("shoulder").kind == "free"
    floating.link("fore").mass, floating.joint("elbow").mimic = 1.0, None
    assert quiet_compile(floating).nv == 7


def test_a_massless_moving_link_loads_and_does_not_compile():
    with pytest.raises(jg.ModelError, match='joint "elbow" moves link "fore", which has no mass'):
        quiet_compile(load(ARM))


def test_meshes_are_found_or_named(tmp_path):
    def text(file):
        return edited(
            '<box size="1 2 3"/></geometry></coll', f'<mesh filename="{file}" scale="2 2 2"/></geometry></coll'
        )

    folder = tmp_path / "robots" / "arm"
    (folder / "urdf").mkdir(parents=True)
    (folder / "meshes").mkdir()
    (folder / "meshes" / "a.stl").write_text("")
    urdf = folder / "urdf" / "arm.urdf"
    for file, root in [
        ("package://arm/meshes/a.stl", tmp_path / "robots"), ("package://arm/meshes/a.stl", folder),
        ("../meshes/a.stl", folder), (f"file://{folder}/meshes/a.stl", folder), ("meshes/a.stl", folder),
    ]:  # fmt: skip
        urdf.write_text(text(file))
        shape = load(urdf, search_roots=[root]).link("upper").shapes[-3]
        assert Path(shape.mesh) == (folder / "meshes" / "a.stl").resolve() and tuple(shape.size) == (2, 2, 2)
        if file.startswith("package"):  # the package is above the file
            assert Path(load(urdf).link("upper").shapes[-3].mesh).name == "a.stl"
            continue
        with pytest.raises(MissingFileError, match=re.escape(str((folder / "urdf").resolve()))):
            load(urdf)
        with pytest.warns(jg.UnsupportedWarning, match="1 meshes not found in"):
            shape = load(urdf, missing_meshes="skip").link("upper").shapes[-3]
        assert (shape.mesh, shape.reference) == ("", file)
        assert Path(load(urdf, search_roots=str(root)).link("upper").shapes[-3].mesh).name == "a.stl"
    with pytest.raises(MissingFileError, match="is not fetched"):
        load(text("https://example.org/a.stl"))


def test_sources_of_every_kind(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    with open(path) as text, open(path, "rb") as data:
        robots = [load(path), load(str(path)), load(ARM), load("\n " + ARM + "\n\0"), load(text), load(data)]
    path.write_text(ARM, encoding="utf-16")
    robots.append(load(path))
    assert all(r.links == robots[0].links and r.joints == robots[0].joints for r in robots)
    assert load(ARM, base="free").base == "free" and not load(ARM, actuators=False).actuators
    with pytest.raises(FileError, match="a source is a path"):
        load(7)


# and back ----------------------------------------------------------------------------------------------------------------


def assert_same(a: jg.Description, b: jg.Description) -> None:
    assert (a.name, a.base) == (b.name, b.base)
    for what in ("links", "joints", "actuators"):
        old, new = getattr(a, what), getattr(b, what)
        assert list(old) == list(new)
        for name in old:
            assert old[name] == new[name]


def expressible(seed: int) -> jg.Description:
    rng = np.random.default_rng(seed)
    base = ("free", "fixed")[seed % 2]
    kinds = ("fixed", "revolute", "continuous", "prismatic", "planar")
    options = dict(passive=False, actuators=False, several=False)
    trees = 1 + (seed % 3 if base == "fixed" else 0)
    robot = jg.zoo.random_tree(trees + seed % 9, seed=seed, kinds=kinds, base=base, trees=trees, **options)
    for joint in robot.joints.values():
        joint.second_axis = (0.0, 1.0, 0.0)
        if joint.parent is None and rng.random() < 0.5:
            joint.kind = "free"
        if joint.kind == "fixed":
            continue
        joint.damping, joint.friction = rng.uniform(0, 1, 2) * (rng.random(2) < 0.7)
        if joint.kind in ("revolute", "prismatic") and rng.random() < 0.7:
            joint.limit = (-rng.uniform(), rng.uniform() if rng.random() < 0.7 else float("inf"))
        if rng.random() < 0.7:
            joint.effort_limit, joint.velocity_limit = rng.uniform(1, 9, 2)
        if joint.kind in ("revolute", "continuous", "prismatic"):
            limit = (-joint.effort_limit, joint.effort_limit)
            robot.add_actuator(joint.name, joint.name, force_limit=limit)
    for link in robot.links.values():
        for kind, n in (("box", 3), ("sphere", 1), ("cylinder", 2), ("capsule", 2)):
            shape = dict(
                position=tuple(rng.normal(size=3)), orientation=tuple(rng.normal(size=4)), name=f"<&\"'\n{kind}>"
            )
            role = "visual" if kind == "box" else str(rng.choice(["both", "visual"]))
            color = tuple(rng.choice([0.25, 0.5], 3)) + (1.0,)
            link.shapes.append(
                jg.model.description.Shape(kind, tuple(rng.uniform(size=n)), role=role, color=color, **shape)
            )
        link.shapes.append(jg.model.description.Shape("sphere", (0.1,), role="collision"))
    return robot


@pytest.mark.parametrize("seed", range(40))
def test_a_round_trip_keeps_every_bit(seed):
    robot = expressible(seed)
    text = to_urdf(robot)
    again = load(text, base=robot.base)
    assert_same(robot, again)
    assert to_urdf(again) == text


@needs_models
def test_a_round_trip_of_files_keeps_every_bit():
    for row in listed()[::7]:
        try:
            robot = quiet_load(MODELS / row["file"])
            text = to_urdf(robot)
        except FileError:
            continue
        except jg.ModelError as refusal:
            assert re.search("the kind spherical|the shape plane", str(refusal)), refusal
            continue
        assert_same(robot, quiet_load(text))


@needs_models
def test_pinocchio_reads_what_we_write():
    for _, robot in sample(40):
        reference = pin.buildModelFromXML(to_urdf(robot))
        assert reference.nv == sum(N_DOF[j.kind] for j in robot.joints.values())
        mass = sum(link.mass for link in robot.links.values())
        assert abs(pinocchio_mass(reference) - mass) <= 1e-9 * mass


def test_angles_edited_by_hand_win_over_the_exact_quaternion():
    robot = expressible(3)
    name = next(iter(robot.joints))
    text = re.sub(r'rpy="[^"]*"', 'rpy="0 0 1"', to_urdf(robot))
    assert np.allclose(load(text).joint(name).orientation, (np.cos(0.5), 0, 0, np.sin(0.5)), atol=1e-15)


def test_angles_are_found_at_the_poles_too():
    rng = np.random.default_rng(1)
    quarter = np.pi / 2
    for angles in [*rng.uniform(-7, 7, (300, 3)), *rng.choice([0, quarter, -quarter, np.pi, 1.5708, 1e-9], (300, 3))]:
        q = quaternion_from_rpy(*angles)
        assert np.allclose(quaternion_from_rpy(*rpy_from_quaternion(q)), q, rtol=0, atol=2e-15) or np.allclose(
            quaternion_from_rpy(*rpy_from_quaternion(q)), np.negative(q), rtol=0, atol=2e-15
        )
        expected = pin.rpy.rpyToMatrix(*angles)
        assert np.abs(pin.Quaternion(*q).toRotationMatrix() - expected).max() < 1e-14


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda r: setattr(r.joint("elbow"), "armature", 1.0), 'armature of joint "elbow"'),
        (lambda r: setattr(r.joint("elbow"), "stiffness", 1.0), 'stiffness of joint "elbow"'),
        (lambda r: setattr(r.joint("elbow"), "kind", "spherical"), "the kind spherical"),
        (lambda r: setattr(r.joint("elbow"), "kind", "universal"), "the kind universal"),
        (lambda r: setattr(r.joint("elbow"), "initial", 1.0), "a value initial="),
        (lambda r: setattr(r.joint("elbow"), "anchor", (0, 0, 1)), "the anchor"),
        (lambda r: setattr(r.joint("elbow"), "limit", (0, 1)), "the limit (the kind is continuous)"),
        (lambda r: setattr(r.actuator("shoulder"), "kind", "position"), "kind = position of actuator"),
        (lambda r: setattr(r.actuator("shoulder"), "force_limit", (-1, 2)), "force_limit = (-1, 2)"),
        (lambda r: r.add_joint("again", "prismatic", "base", "upper"), 'several joints of link "upper"'),
        (lambda r: r.add_link("alone"), 'several roots ("base", "alone")'),
        (lambda r: r.link("upper").sites.append(("tip", (0, 0, 0), (1, 0, 0, 0))), 'the sites of link "upper"'),
        (lambda r: setattr(r.link("upper").shapes[0], "kind", "ellipsoid"), "the shape ellipsoid"),
        (lambda r: setattr(r.link("upper").shapes[0], "friction", (1.0,)), "friction or contact"),
        (lambda r: r.keyframes.update(home={}), "keyframes"),
        (lambda r: setattr(r.link("upper"), "mass", float("inf")), "not finite"),
    ],
)
def test_what_urdf_cannot_say_is_named(change, said):
    robot = load(ARM)
    change(robot)
    with pytest.raises(jg.ModelError) as caught:
        to_urdf(robot)
    assert said in str(caught.value)
