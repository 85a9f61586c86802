"""Everything that can be wrong with what comes in: one clear error each, naming the thing and what would be right."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import tangled

import jointgrad as jg
from jointgrad.model.arrays import PARAMS
from jointgrad.model.ranges import number_rules

NAN, INF = float("nan"), float("inf")


def arm() -> jg.Description:
    """Two links: an upper one on a hinge, a lower one on a ball."""
    robot = jg.Description("arm")
    robot.add_link("upper", 1.0, (0, 0, -0.2), (0.1, 0.1, 0.1))
    robot.add_link("lower", 0.5, (0, 0, -0.2), (0.1, 0.1, 0.1))
    robot.add_joint("shoulder", "revolute", None, "upper")
    robot.add_joint("elbow", "spherical", "upper", "lower", position=(0, 0, -0.4))
    robot.add_actuator("motor", "shoulder")
    return robot


@pytest.fixture(scope="module")
def model():
    return arm().compile()


def message(error: type[Exception], call, *words: str) -> str:
    """Calls, and returns the one clear sentence; every word must be in it, and it must be one line."""
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    missing = [word for word in words if word not in text]
    assert not missing, f"{missing} not in: {text}"
    assert "\n" not in text
    return text


# robots -----------------------------------------------------------------------------------------------------------


def with_cycle(robot):
    for name in ("a", "b"):
        robot.add_link(name, 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    robot.add_joint("ab", "revolute", "a", "b")
    robot.add_joint("ba", "revolute", "b", "a")


def with_joint(robot, kind, mass=1.0, **options):
    robot.add_link("extra", mass, (0, 0, 0), (0.1, 0.1, 0.1) if mass else (0, 0, 0))
    robot.add_joint("more", kind, "lower", "extra", **options)


def change(part, name, **values):
    def edit(robot):
        for key, value in values.items():
            setattr(getattr(robot, part)(name), key, value)

    return edit


def tendon(terms=(("shoulder", 1.0),), actuator=None, **options):
    """A robot with a tendon, and an actuator of it if its options are given."""

    def edit(robot):
        robot.add_tendon("cord", terms, **options)
        if actuator is not None:
            robot.add_actuator("winch", **{"tendon": "cord"} | actuator)

    return edit


def shaped(**values):
    """A robot whose lower link has a ball with these values, given after it was made."""

    def edit(robot):
        ball = jg.Shape("sphere", (0.1,))
        robot.link("lower").shapes.append(ball)
        for name, value in values.items():
            setattr(ball, name, value)

    return edit


ROBOTS = {
    "tendon over nothing": (tendon(()), ['tendon "cord"', "no terms"]),
    "tendon over an unknown joint": (tendon([("hip", 1.0)]), ['tendon "cord"', '"hip"', "does not exist"]),
    "tendon with a bare term": (tendon(["shoulder"]), ['tendon "cord"', "(joint, coefficient)"]),
    "tendon coefficient NaN": (tendon([("shoulder", NAN)]), ['tendon "cord"', '"shoulder"', "finite"]),
    "tendon component": (tendon([("shoulder", 1.0, 1)]), ['tendon "cord"', "component 1", "1 degrees of freedom"]),
    "tendon damping": (tendon(damping=-1.0), ["damping", 'tendon "cord"', "negative"]),
    "tendon rest": (tendon(rest=(1.0, 0.0)), ["rest", 'tendon "cord"', "lower end"]),
    "spring over a turn": (tendon([("elbow", 1.0, 0)], stiffness=1.0), ['tendon "cord"', "turn"]),
    "servo over a turn": (
        tendon([("elbow", 1.0, 0)], {"kind": "position"}),
        ['actuator "winch"', 'tendon "cord"', "no such coordinate"],
    ),
    "unknown tendon": (tendon(actuator={"tendon": "rope"}), ['actuator "winch"', '"rope"', "does not exist"]),
    "joint and tendon": (tendon(actuator={"joint": "shoulder"}), ['actuator "winch"', "one of them"]),
    "negative mass": (change("link", "upper", mass=-1.0), ['link "upper"', "negative", "zero or more"]),
    "mass NaN": (change("link", "upper", mass=NAN), ["mass", 'link "upper"', "finite"]),
    "centre of mass NaN": (change("link", "lower", com=(0, NAN, 0)), ["com", 'link "lower"', "finite"]),
    "centre of mass of two numbers": (change("link", "lower", com=(0, 1)), ["com", 'link "lower"', "3"]),
    "mass in words": (change("link", "lower", mass="heavy"), ["mass", 'link "lower"', "number"]),
    "triangle inequality": (
        change("link", "upper", inertia=(0.1, 0, 0, 0.1, 0, 0.5)),
        ['inertia of link "upper"', "principal moments 0.1, 0.1, 0.5", "sum of the other two"],
    ),
    "negative inertia": (change("link", "upper", inertia=(-0.1, 0, 0, -0.1, 0, -0.1)), ['"upper"', "positive"]),
    "inertia of four numbers": (change("link", "upper", inertia=(1, 2, 3, 4)), ["inertia", 'link "upper"', "6"]),
    "cycle": (with_cycle, ["cycle", 'link "a"', "remove one joint"]),
    "link that carries itself": (change("joint", "elbow", parent="lower"), ["cycle", 'link "lower"']),
    "two parents": (
        lambda r: r.add_joint("x", "revolute", None, "lower"),
        ['link "lower"', "several parents", "one parent"],
    ),
    "massless moving link": (
        lambda r: with_joint(r, "revolute", mass=0.0),
        ['joint "more"', 'link "extra"', "no mass", "give the link a mass", "armature"],
    ),
    "free joint inside a robot": (lambda r: with_joint(r, "free"), ['free joint "more"', "only the world"]),
    "quaternion of zero length": (
        change("joint", "elbow", orientation=(0, 0, 0, 0)),
        ['joint "elbow"', "quaternion of zero length", "(1, 0, 0, 0)"],
    ),
    "start at a zero quaternion": (change("joint", "elbow", initial=(0, 0, 0, 0)), ["quaternion", "not all are zero"]),
    "rest at a zero quaternion": (change("joint", "elbow", rest=(0, 0, 0, 0)), ["quaternion", "not all are zero"]),
    "quaternion of three numbers": (change("joint", "elbow", orientation=(1, 0, 0)), ["quaternion", "four numbers"]),
    "axis of zero length": (change("joint", "shoulder", axis=(0, 0, 0)), ['axis of joint "shoulder"', "zero length"]),
    "axis of two numbers": (change("joint", "shoulder", axis=(0, 1)), ["axis", 'joint "shoulder"', "3"]),
    "second axis of zero length": (
        lambda r: with_joint(r, "universal", second_axis=(0, 0, 0)),
        ["second_axis", 'joint "more"', "zero length"],
    ),
    "position NaN": (change("joint", "shoulder", position=(0, NAN, 0)), ["position", 'joint "shoulder"', "finite"]),
    "rest NaN": (change("joint", "shoulder", rest=NAN), ["rest", 'joint "shoulder"', "finite"]),
    "start NaN": (change("joint", "shoulder", initial=NAN), ["initial", 'joint "shoulder"', "finite"]),
    "start of two numbers": (change("joint", "shoulder", initial=(1, 2)), ['joint "shoulder"', "2 numbers", "has 1"]),
    "negative damping": (change("joint", "shoulder", damping=-1.0), ["damping", 'joint "shoulder"', "negative"]),
    "mass as a text": (change("link", "upper", mass="1.0"), ["mass", 'link "upper"', "not a number"]),
    "mass as a truth value": (change("link", "upper", mass=True), ["mass", 'link "upper"', "not a number"]),
    "negative dry friction": (change("joint", "shoulder", friction=-1.0), ["friction", 'joint "shoulder"', "negative"]),
    "dry friction NaN": (change("joint", "shoulder", friction=NAN), ["friction", 'joint "shoulder"', "finite"]),
    "joint limit NaN": (change("joint", "shoulder", limit=(NAN, 1.0)), ["limit", 'joint "shoulder"', "finite"]),
    "joint limit exchanged": (change("joint", "shoulder", limit=(1.0, -1.0)), ["limit", '"shoulder"', "lower end"]),
    "joint limit of no place": (change("joint", "shoulder", limit=(INF, INF)), ["limit", '"shoulder"', "lower end"]),
    "mimic NaN": (change("joint", "shoulder", mimic=("elbow", NAN, 0.0)), ["mimic", '"shoulder"', "finite"]),
    "mimic of one number": (change("joint", "shoulder", mimic=("elbow", 1.0)), ["mimic", '"shoulder"', "offset"]),
    "component no number": (change("actuator", "motor", component="x"), ["component", '"motor"', "whole number"]),
    "negative friction of a shape": (shaped(friction=(-0.1,)), ["friction", "lower", "negative"]),
    "friction of a shape NaN": (shaped(friction=(NAN,)), ["friction", "lower", "finite"]),
    "shape of another kind": (shaped(kind="bal"), ["kind", '"bal"', "sphere, capsule"]),
    "shape in another role": (shaped(role="collison"), ["role", '"collison"', 'did you mean "collision"']),
    "shape at NaN": (shaped(position=(0, 0, NAN)), ["position", "lower", "finite"]),
    "shape of no orientation": (shaped(orientation=(0, 0, 0, 0)), ["orientation", "quaternion of zero length"]),
    "dimensions of contact": (shaped(contact={"condim": NAN}), ["condim", "nan", "1, 3, 4, 6"]),
    "no shape": (lambda r: r.link("lower").shapes.append("sphere"), ["'sphere'", "jg.Shape"]),
    "equality NaN": (
        lambda r: r.constraints.append(jg.JointCoupling("shoulder", polynomial=(NAN, 1.0))),
        ["polynomial", "joint equality", "finite"],
    ),
    "constraint as a mapping": (
        lambda r: r.constraints.append({"kind": "weld"}),
        ["a constraint must be one of", "Weld", "{'kind': 'weld'}"],
    ),
    "negative armature": (change("joint", "shoulder", armature=-1.0), ["armature", 'joint "shoulder"', "negative"]),
    "unknown parent": (change("joint", "elbow", parent="uper"), ['joint "elbow"', '"uper"', "no such link"]),
    "kind changed to an unknown one": (change("joint", "elbow", kind="ball"), ['"elbow"', '"ball"', "spherical"]),
    "actuator of an unknown joint": (change("actuator", "motor", joint="hip"), ['"motor"', '"hip"', "does not exist"]),
    "component out of range": (
        change("actuator", "motor", component=1),
        ['"motor"', "component 1", 'joint "shoulder"', "1 degrees"],
    ),
    "position servo on a ball": (
        change("actuator", "motor", joint="elbow", kind="position"),
        ['"motor"', 'joint "elbow"', "use torque or velocity"],
    ),
    "gain NaN": (change("actuator", "motor", gain=NAN), ["gain", 'actuator "motor"', "finite"]),
    "limits in the wrong order": (change("actuator", "motor", force_limit=(1, -1)), ["force_limit", '"motor"']),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_robot(name):
    """A robot that cannot be simulated as described."""
    edit, words = ROBOTS[name]
    robot = arm()
    edit(robot)
    message(jg.ModelError, robot.compile, *words)


PARTS = {
    "two links of one name": (lambda r: r.add_link("upper"), ["two links", '"upper"', "another name"]),
    "two joints of one name": (
        lambda r: r.add_joint("elbow", "revolute", "upper", "lower"),
        ["two joints", '"elbow"', "another name"],
    ),
    "two actuators of one name": (
        lambda r: r.add_actuator("motor", "elbow"),
        ["two actuators", '"motor"', "another name"],
    ),
    "link without a name": (lambda r: r.add_link(""), ["link", "name"]),
    "unknown link": (lambda r: r.link("uper"), ['no link "uper"', 'did you mean "upper"']),
    "unknown joint": (lambda r: r.joint("knee"), ['no joint "knee"', "shoulder, elbow"]),
    "unknown actuator": (lambda r: r.actuator("moter"), ['no actuator "moter"', '"motor"']),
    "unknown kind of joint": (
        lambda r: r.add_joint("j", "hinge", "upper", "lower"),
        ['joint "j"', '"hinge"', "revolute"],
    ),
    "unknown kind of actuator": (
        lambda r: r.add_actuator("a", "elbow", "motor"),
        ['actuator "a"', '"motor"', "torque, position, velocity"],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_part(name):
    """What a description refuses at once."""
    edit, words = PARTS[name]
    robot = arm()
    message(jg.ModelError, lambda: edit(robot), *words)


WORLDS = {
    "negative friction of the ground": (
        lambda: jg.World().add_ground(friction=-1.0),
        ["friction", '"ground"', "negative"],
    ),
    "friction of the ground NaN": (lambda: jg.World().add_ground(friction=NAN), ["friction", '"ground"', "finite"]),
    "height of the ground NaN": (lambda: jg.World().add_ground(height=NAN), ["height", '"ground"', "finite"]),
    "restitution below zero": (lambda: jg.World().add_ground(restitution=-1), ["restitution", '"ground"', "negative"]),
    "ground without a name": (lambda: jg.World().add_ground(name=""), ["name", "ground"]),
    "no room for contacts": (lambda: arm().compile(max_contacts=-5), ["max_contacts", "whole number from 1", "-5"]),
    "constraints as a text": (lambda: arm().compile(constraints="no"), ["constraints", "True or False", "'no'"]),
    "sweeps of a half": (lambda: arm().compile(contact=jg.Impulse(sweeps=2.5)), ["sweeps", "whole number", "2.5"]),
    "unknown law of friction": (
        lambda: arm().compile(contact=jg.Spring(friction_law="colomb")),
        ["friction_law", '"colomb"', 'did you mean "coulomb"'],
    ),
    "exponent of zero": (
        lambda: arm().compile(contact=jg.Spring(exponent=0.0)),
        ["exponent", "Spring", "more than zero"],
    ),
    "pair without names": (lambda: jg.World().pair(None, "b"), ["first of a pair", "None"]),
    "kind of a shape": (lambda: jg.Shape("ball"), ['"ball"', "sphere, capsule"]),
    "role of a shape": (
        lambda: jg.Shape("box", (1, 1, 1), role="collison"),
        ['"collison"', 'did you mean "collision"'],
    ),
    "base of a robot": (lambda: jg.Description("r", base="fre"), ['"fre"', 'did you mean "free"']),
    "unknown integrator": (lambda: arm().compile(integrator="euler"), ['"euler"', "semi_implicit, explicit, rk4"]),
    "no time step": (lambda: arm().compile(dt=0.0), ["dt", "more than zero", "0"]),
    "time step NaN": (lambda: arm().compile(dt=NAN), ["dt", "nan"]),
    "time step without end": (lambda: arm().compile(dt=INF), ["dt", "inf"]),
    "gravity of two numbers": (lambda: arm().compile(gravity=(0, -9.81)), ["gravity", "3"]),
    "gravity NaN": (lambda: arm().compile(gravity=(0, 0, NAN)), ["gravity", "finite"]),
    "empty": (lambda: jg.World().compile(), ["empty", "add a robot"]),
    "two robots of one name": (
        lambda: jg.World().add(arm()).add(arm()).compile(),
        ["two links", '"lower"', "name="],
    ),
    "unknown base": (lambda: jg.World().add(arm(), base="loose"), ["free, fixed", '"loose"']),
    "orientation of zero length": (
        lambda: jg.World().add(arm(), orientation=(0, 0, 0, 0)).compile(),
        ["quaternion", "not all are zero"],
    ),
    "position NaN": (lambda: jg.World().add(arm(), position=(0, 0, NAN)).compile(), ["position", "finite"]),
}


@pytest.mark.parametrize("name", WORLDS)
def test_world(name):
    call, words = WORLDS[name]
    message(jg.ModelError, call, *words)


# parameters -------------------------------------------------------------------------------------------------------


def entry(name, row, value):
    """The model's own array with one row changed."""

    def values(model):
        array = np.array(model.params[name])
        array[row] = value
        return {name: array}

    return values


VALUES = {
    "unknown name": (lambda m: {"link.weight": 1.0}, ['no parameter "link.weight"', "link.mass"]),
    "wrong shape": (lambda m: {"link.mass": np.ones(3)}, ['"link.mass"', "(2,)", "(3,)"]),
    "text": (lambda m: {"link.mass": np.array(["a", "b"])}, ['"link.mass"', "real numbers", "<U1"]),
    "complex numbers": (lambda m: {"link.mass": np.array([1j, 1])}, ['"link.mass"', "real numbers", "complex128"]),
    "NaN": (entry("link.com", (1, 2), NAN), ['"link.com"', "not finite", "(1, 2)"]),
    "limit NaN": (entry("actuator.force_limit", (0, 1), NAN), ['"actuator.force_limit"', "(0, 1)"]),
    "negative mass": (entry("link.mass", 1, -1.0), ["link.mass", '"lower"', "negative (-1)", "zero or more"]),
    "negative mass in one environment": (
        lambda m: {"link.mass": [[1.0, 1.0], [1.0, -2.0]]},
        ["link.mass", '"lower"', "negative (-2)"],
    ),
    "triangle inequality": (
        entry("link.inertia", 1, (0.1, 0, 0, 0.1, 0, 0.5)),
        ['link "lower"', "principal moments", "sum of the other two"],
    ),
    "quaternion of zero length": (
        entry("joint.placement", 2, (0, 0, 0, 0, 0, 0, 0)),
        ['joint "elbow"', "quaternion of zero length", "(1, 0, 0, 0)"],
    ),
    "rest at a zero quaternion": (entry("joint.rest", slice(1, 5), 0.0), ["joint.rest", "quaternion of zero length"]),
    "axis of zero length": (entry("joint.axis", 1, 0.0), ['axis of joint "shoulder"', "zero length"]),
    "negative damping": (entry("joint.damping", 1, -1.0), ["joint.damping", '"shoulder"', "negative (-1)"]),
    "dry friction without a row": (
        entry("joint.friction", 1, 0.1),
        ["joint.friction", '"shoulder"', "without dry friction"],
    ),
    "limit without a row": (entry("joint.limit", (1, 0), -0.5), ["joint.limit", '"shoulder"', "without limit"]),
    "no time step": (lambda m: {"world.dt": 0.0}, ["world.dt", "more than zero"]),
    "negative margin": (lambda m: {"world.limit_margin": -1.0}, ["world.limit_margin", "negative"]),
    "margin without end": (lambda m: {"world.limit_margin": INF}, ["world.limit_margin", "not finite"]),
    "force limit exchanged": (entry("actuator.force_limit", 0, (1.0, -1.0)), ["force_limit", '"motor"', "lower end"]),
    "quaternion without end": (entry("joint.placement", (2, 3), 1e200), ["joint.placement", '"elbow"', "quaternion"]),
    "axis without end": (entry("joint.axis", (1, 1), 1e200), ["joint.axis", '"shoulder"', "axis"]),
    "two batches": (
        lambda m: {"link.mass": np.ones((3, 2)), "link.com": np.zeros((4, 2, 3))},
        ['"link.com"', "4 environments", "3"],
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_parameter(model, name):
    """Values that `replace` refuses."""
    values, words = VALUES[name]
    message(jg.InputError, lambda: model.replace(values(model)), *words)


# states, controls, forces -----------------------------------------------------------------------------------------

STEPS, BATCH = 3, 4


def changed(array, where, value):
    array = np.array(array)
    array[where] = value
    return array


CALLS = {
    "q of the wrong shape": (
        lambda m, s, u: jg.rollout(m, jg.State(s.q[:, :4], s.qd), u),
        ["state.q", "(4, 4)", "(batch, 5)", "nq=5"],
    ),
    "qd of the wrong shape": (
        lambda m, s, u: jg.rollout(m, jg.State(s.q, s.qd[:3]), u),
        ["state.qd", "(3, 4)", "(4, 4)"],
    ),
    "q of texts": (lambda m, s, u: jg.rollout(m, jg.State(s.q.astype(str), s.qd), u), ["state.q", "real numbers"]),
    "q NaN": (
        lambda m, s, u: jg.rollout(m, jg.State(changed(s.q, (2, 1), NAN), s.qd), u),
        ["state.q", "nan", "(2, 1)"],
    ),
    "qd infinite": (
        lambda m, s, u: jg.rollout(m, jg.State(s.q, changed(s.qd, (3, 0), INF)), u),
        ["state.qd", "inf", "(3, 0)"],
    ),
    "quaternion of zero length": (
        lambda m, s, u: jg.rollout(m, jg.State(changed(s.q, (1, slice(1, 5)), 0.0), s.qd), u),
        ["state.q", "quaternion of zero length", "1 to 4"],
    ),
    "quaternion without end": (
        lambda m, s, u: jg.rollout(m, jg.State(changed(s.q, (1, 1), 1e200), s.qd), u),
        ["state.q", "quaternion", "1 to 4"],
    ),
    "quaternion of next to nothing": (
        lambda m, s, u: jg.step(m, jg.State(1e-200 * s.q, s.qd), u[0]),
        ["state.q", "quaternion", "1 to 4"],
    ),
    "no State": (lambda m, s, u: jg.rollout(m, (s.q, s.qd), u), ["State(q, qd)", "tuple"]),
    "u of the wrong shape": (
        lambda m, s, u: jg.rollout(m, s, np.zeros((STEPS, BATCH, 2))),
        ["u has", "(3, 4, 2)", "(steps, 4, 1)", "2 entries", "actuators"],
    ),
    "u of another batch": (lambda m, s, u: jg.rollout(m, s, u[:, :2]), ["u has", "(3, 2, 1)", "(steps, 4, 1)"]),
    "u for other steps": (lambda m, s, u: jg.rollout(m, s, u, steps=2), ["u has", "(3, 4, 1)", "(2, 4, 1)"]),
    "u of complex numbers": (lambda m, s, u: jg.rollout(m, s, u.astype(complex)), ["u has dtype complex128", "real"]),
    "u ragged": (lambda m, s, u: jg.rollout(m, s, [[1.0], [1.0, 2.0]]), ["u "]),
    "u NaN": (lambda m, s, u: jg.rollout(m, s, changed(u, (1, 2, 0), NAN)), ["u contains nan", "(1, 2, 0)", "finite"]),
    "neither u nor steps": (lambda m, s, u: jg.rollout(m, s), ["u", "steps="]),
    "fewer than no steps": (lambda m, s, u: jg.rollout(m, s, steps=-1), ["steps", "-1"]),
    "force of the wrong shape": (
        lambda m, s, u: jg.rollout(m, s, u, force=np.zeros((BATCH, 3, 6))),
        ["force has", "(4, 3, 6)", "(4, 2, 6)"],
    ),
    "force NaN": (
        lambda m, s, u: jg.rollout(m, s, u, force=changed(np.zeros((BATCH, 2, 6)), (0, 1, 5), NAN)),
        ["force contains nan", "(0, 1, 5)"],
    ),
    "unknown output": (
        lambda m, s, u: jg.rollout(m, s, u, outputs=("link.pos",)),
        ['no output "link.pos"', "link.position"],
    ),
    "memory in unknown words": (
        lambda m, s, u: jg.rollout(m, s, u, memory="64 parsecs"),
        ['"64 parsecs"', '"64 MB"'],
    ),
    "memory without a unit": (lambda m, s, u: jg.rollout(m, s, u, memory="64"), ['"64"', '"64 MB"']),
    "too little memory": (lambda m, s, u: jg.rollout(m, s, u, memory=100), ["memory=100", "at least"]),
    "unknown on_nan": (lambda m, s, u: jg.rollout(m, s, u, on_nan="ignore"), ["on_nan", '"raise"', "'ignore'"]),
    "parameters of another batch": (
        lambda m, s, u: jg.rollout(m.replace({"link.mass": np.ones((3, 2))}), s, u),
        ["state.q", "(4, 5)", "(3, 5)"],
    ),
    "parameters per environment, state without batch": (
        lambda m, s, u: jg.step(m.replace({"link.mass": np.ones((3, 2))}), m.initial_state(), np.zeros(1)),
        ["3 environments", "no batch axis"],
    ),
    "unknown link": (lambda m, s, u: m.link("uper"), ['no link "uper"', 'did you mean "upper"']),
    "unknown joint": (lambda m, s, u: m.joint("knee"), ['no joint "knee"', "elbow"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_rollout(model, name):
    """Arguments of `rollout` and `step`."""
    call, words = CALLS[name]
    state, u = model.initial_state(BATCH), np.zeros((STEPS, BATCH, model.nu))
    message(jg.InputError, lambda: call(model, state, u), *words)


def test_missing_control_is_named():
    """Too few controls: the first actuator without one is named."""
    model = jg.zoo.laikago(touch="feet").compile()
    state = model.initial_state()
    message(jg.InputError, lambda: jg.step(model, state, np.zeros(11)), "11 entries", "12 actuators", '"RL_lower"')


BARS = {
    "q_bar of the wrong shape": ({"q_bar": np.zeros((BATCH, 4))}, ["q_bar", "(4, 4)", "(4, 5)"]),
    "qd_bar NaN": ({"qd_bar": np.full((BATCH, 4), NAN)}, ["qd_bar", "nan", "(0, 0)"]),
    "cotangent of an unknown output": ({"bars": {"link.pose": 0.0}}, ['"link.pose"', "link.position"]),
    "cotangent of an output of the wrong shape": (
        {"bars": {"link.position": np.zeros((BATCH, 2, 3))}},
        ["link.position", "(4, 2, 3)", "(4, 4, 2, 3)"],
    ),
    "gradient by something unknown": ({"wrt": ("mass",)}, ['"mass"', "state, u, force, params"]),
}


@pytest.mark.parametrize("name", BARS)
def test_backward(model, name):
    """Arguments of `backward`."""
    options, words = BARS[name]
    trajectory = jg.rollout(model, model.initial_state(BATCH), np.zeros((STEPS, BATCH, model.nu)))
    message(jg.InputError, lambda: trajectory.backward(**options), *words)


def test_backward_of_what_was_not_kept(model):
    trajectory = jg.rollout(model, model.initial_state(), steps=2, keep=False)
    message(jg.InputError, lambda: trajectory.backward(q_bar=np.zeros(5)), "kept no states", "keep=True")


def test_world_in_which_nothing_moves():
    """Not an error: a step leaves it as it is."""
    robot = jg.Description("rock")
    robot.add_link("rock", 1.0)
    model = robot.compile()
    after = jg.step(model, model.initial_state(3))
    assert after.q.shape == (3, 0) and after.qd.shape == (3, 0)


def test_unphysical_inertia_may_be_let_through():
    """Real files hold such inertias: with a warning, and only when asked."""
    robot = arm()
    robot.link("upper").inertia = (0.1, 0, 0, 0.1, 0, 0.5)
    with pytest.warns(jg.UnphysicalWarning, match='link "upper"'):
        model = robot.compile(unphysical="warn")
    assert np.isfinite(jg.step(model, model.initial_state()).qd).all()
    message(jg.ModelError, lambda: robot.compile(unphysical="ignore"), 'unphysical "ignore"', "error, warn")


@pytest.mark.parametrize("length", [1e200, 1e-200, 1e308, 5e-324])
def test_quaternions_of_any_length(length):
    """A quaternion (0, l, 0, 0), or an axis, is that of length 1 for every l that is not zero."""
    for place in ("joint", "base", "axis"):
        found, wanted = oriented(place, length), oriented(place, 1.0)
        np.testing.assert_array_equal(found.initial_state().q, wanted.initial_state().q)
        for name in ("joint.placement", "joint.axis", "shape.placement"):
            np.testing.assert_array_equal(found.params[name], wanted.params[name])


def oriented(place: str, length: float) -> jg.Model:
    turn = (0.0, length, 0.0, 0.0)
    robot = jg.Description("one", base="free")
    robot.add_link("body", 1.0, inertia=(0.1, 0.1, 0.1)).shapes.append(jg.Shape("sphere", (0.1,), orientation=turn))
    robot.add_link("more", 1.0, inertia=(0.1, 0.1, 0.1))
    options = {"orientation": turn} if place == "joint" else {"axis": turn[:3]} if place == "axis" else {}
    robot.add_joint("turn", "revolute", "body", "more", **options)
    return jg.World().add(robot, orientation=turn if place == "base" else (1, 0, 0, 0)).compile()


def test_numbers_in_another_unit_are_told_once():
    """A step of a second, and hinges that turn by whole numbers far beyond a turn."""
    with pytest.warns(jg.UnstableWarning, match="dt is 1 s.* or 0.001 if milliseconds") as said:
        arm().compile(dt=1.0)
    assert len(said) == 1
    robot = arm()
    robot.joint("shoulder").limit = (-90.0, 90.0)
    with pytest.warns(jg.UnphysicalWarning, match='"shoulder" is \\(-90, 90\\) rad.*degrees') as said:
        robot.compile()
    assert len(said) == 1
    robot.joint("shoulder").limit = (-2 * np.pi, 7.0)
    robot.compile(dt=0.1)


def test_friction_of_a_file():
    """A geom whose friction is negative is refused when its world is compiled."""
    text = '<mujoco><worldbody><body><freejoint/><geom size="1" friction="-1"/></body></worldbody></mujoco>'
    message(jg.ModelError, lambda: jg.load_world(text).compile(), "friction", "negative")


def test_negative_damping_of_a_tendon():
    robot = arm()
    robot.add_tendon("cord", [("shoulder", 1.0)])
    message(
        jg.InputError,
        lambda: robot.compile().replace({"tendon.damping": [-1.0]}),
        "tendon.damping",
        '"cord"',
        "negative",
    )


@pytest.mark.parametrize("side", ["below", "above"])
def test_replace_refuses_what_descriptions_refuse(side):
    """Just beyond the lowest or highest number that the table of descriptions has for a parameter."""
    model, tried = tangled(3, "free"), []
    for name, rule in number_rules().items():
        edge = rule.low if side == "below" else rule.high
        if name in PARAMS and np.isfinite(edge):
            value = model.params[name].copy()
            value.flat[:1] = np.nextafter(edge, np.inf if side == "above" else -np.inf)
            message(jg.InputError, lambda name=name, value=value: model.replace({name: value}), name)
            tried.append(name)
    known = {"link.drag_size", "world.density", "pair.friction"} if side == "below" else {"pair.restitution"}
    assert known <= set(tried)


def test_a_bounce_gives_back_no_more_than_came():
    world = jg.World().add(arm()).add_ground(restitution=1.0)
    message(jg.ModelError, lambda: world.add_ground(restitution=1.5, name="more"), "restitution", "1 or less")
    message(jg.ModelError, lambda: world.pair("*", "ground", restitution=1.5), "restitution", "1 or less")
