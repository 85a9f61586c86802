"""Quantities by request, against Pinocchio, MuJoCo and differences; inverse kinematics."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from oracles.differences import random_state, tangent_basis
from oracles.mujoco_model import mujoco_data, mujoco_model
from oracles.pinocchio_model import Twin

import jointgrad as jg

ROBOTS = {
    "dog": lambda: jg.zoo.laikago(touch="feet"), "tree": lambda: jg.zoo.random_tree(8, 5), "a1": jg.zoo.a1,
    "cart_pole": jg.zoo.cart_pole,
}  # fmt: skip
POINT = (0.1, -0.2, 0.3)


class Case:
    """A robot, Pinocchio's twin of it, and states."""

    def __init__(self, name: str) -> None:
        self.robot = ROBOTS[name]()
        for k, joint in enumerate(self.robot.joints.values()):
            if joint.kind != "fixed":
                joint.armature = 0.01 * (k + 1)
        self.model, self.twin = self.robot.compile(contact=None), Twin(self.robot)
        rng = np.random.default_rng(7)
        self.states = random_state(self.model, rng, batch=9)
        self.qdd = rng.normal(size=self.states.qd.shape)

    def each(self, what) -> np.ndarray:
        return np.array([what(q, qd, a) for q, qd, a in zip(self.states.q, self.states.qd, self.qdd, strict=True)])


@pytest.fixture(scope="module", params=ROBOTS)
def case(request):
    return Case(request.param)


def close(found, expected):
    expected = np.asarray(expected)
    assert np.abs(found - expected).max() < 1e-10 * max(np.abs(expected).max(), 1.0)


QUANTITIES = {
    "mass_matrix": (lambda m, s, a: jg.mass_matrix(m, s), lambda t, q, qd, a: t.mass_matrix(q)),
    "bias": (lambda m, s, a: jg.bias_force(m, s), lambda t, q, qd, a: t.bias(q, qd)),
    "gravity": (lambda m, s, a: jg.gravity_force(m, s.q), lambda t, q, qd, a: t.bias(q, 0 * qd)),
    "inverse_dynamics": (lambda m, s, a: jg.inverse_dynamics(m, s, a), lambda t, q, qd, a: t.mass_matrix(q) @ a + t.bias(q, qd)),
    "momentum": (lambda m, s, a: jg.centroidal_momentum(m, s), lambda t, q, qd, a: t.momentum(q, qd)),
    "momentum_matrix": (
        lambda m, s, a: jg.centroidal_momentum_matrix(m, s),
        lambda t, q, qd, a: pin.computeCentroidalMap(t.model, t.data, t.pin_q(q)) @ t.turns(q),
    ),
    "centre_of_mass": (
        lambda m, s, a: jg.centre_of_mass(m, s),
        lambda t, q, qd, a: pin.centerOfMass(t.model, t.data, t.pin_q(q)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTITIES)
def test_against_pinocchio(case, name):
    ours, theirs = QUANTITIES[name]
    expected = case.each(lambda q, qd, a: theirs(case.twin, q, qd, a))
    close(ours(case.model, case.states, case.qdd), expected)
    one = jg.State(case.states.q[2], case.states.qd[2])
    alone = ours(case.model, one, case.qdd[2])
    assert alone.shape == expected[2].shape
    assert alone.tobytes() == np.ascontiguousarray(ours(case.model, case.states, case.qdd)[2]).tobytes()


def test_the_regressor_makes_inverse_dynamics(case):
    Y = jg.torque_regressor(case.model, case.states, case.qdd)
    armature = np.diagonal(jg.mass_matrix(case.model, case.states), axis1=1, axis2=2) - np.diagonal(
        jg.mass_matrix(case.model.replace({"joint.armature": 0 * case.model.params["joint.armature"]}), case.states),
        axis1=1,
        axis2=2,
    )
    close(
        Y @ jg.regressor_numbers(case.model) + armature * case.qdd,
        jg.inverse_dynamics(case.model, case.states, case.qdd),
    )


def test_sites_against_mujoco(case):
    m = mujoco_model(case.robot)
    link = case.model.link_names[-1]
    body = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, link)
    for k in range(3):
        q, qd = case.states.q[k], case.states.qd[k]
        d = mujoco_data(m, q, qd)
        mujoco.mj_forward(m, d)
        at = d.xpos[body] + d.xmat[body].reshape(3, 3) @ POINT
        linear, angular, rate = np.zeros((3, m.nv)), np.zeros((3, m.nv)), np.zeros((2, 3, m.nv))
        mujoco.mj_jac(m, d, linear, angular, at, body)
        mujoco.mj_jacDot(m, d, rate[0], rate[1], at, body)
        state = jg.State(q, qd)
        position, rotation = jg.site_pose(case.model, state, link, POINT)
        close(position, at)
        close(rotation, d.xmat[body].reshape(3, 3))
        J = jg.jacobian(case.model, q, link, POINT)
        close(J, np.concatenate([linear, angular]))
        close(jg.site_velocity(case.model, state, link, POINT), J @ qd)
        close(jg.jacobian_rate(case.model, state, link, POINT), np.concatenate([rate[0] @ qd, rate[1] @ qd]))


def test_the_rate_of_a_jacobian_by_differences(case):
    """Along the motion q' = basis qd with constant rates."""
    model, h, k = case.model, 1e-6, 4
    q, qd, link = case.states.q[k], case.states.qd[k], case.model.link_names[-1]
    J = [jg.jacobian(model, q + s * h * (tangent_basis(model, q) @ qd), link, POINT) for s in (1, -1)]
    found = jg.jacobian_rate(model, jg.State(q, qd), link, POINT)
    assert np.abs(found - (J[0] - J[1]) @ qd / (2 * h)).max() < 1e-6 * max(np.abs(found).max(), 1.0)


def test_each_environment_has_its_own_numbers():
    model = jg.zoo.pendulum(3).compile()
    mass = model.params["link.mass"] * np.linspace(1, 2, 20)[:, None]
    many, states = model.replace({"link.mass": mass}), random_state(model, np.random.default_rng(0), 20)
    found = jg.mass_matrix(many, states)
    for k in (0, 7, 19):
        assert found[k].tobytes() == jg.mass_matrix(many.environment(k), states.q[k]).tobytes()
    points = np.random.default_rng(1).normal(size=(20, 3))
    J = jg.jacobian(model, states, "link1", points)
    close(J[5], jg.jacobian(model, states.q[5], "link1", points[5]))
    with pytest.raises(jg.InputError, match="no batch axis"):
        jg.mass_matrix(many, states.q[0])


def test_what_was_asked_before_is_not_written_to():
    """A kernel that is asked for less than another writes nothing where that one's result was."""
    model = jg.zoo.cart_pole().compile()
    states = random_state(model, np.random.default_rng(0), 30)
    matrix, momentum = jg.centroidal_momentum_matrix(model, states), jg.centroidal_momentum(model, states)
    before = matrix.copy(), momentum.copy()
    other = random_state(model, np.random.default_rng(1), 30)
    jg.centre_of_mass(model, other)
    jg.site_pose(model, other, model.link_names[0])
    jg.jacobian(model, other, model.link_names[0])
    assert np.array_equal(matrix, before[0]) and np.array_equal(momentum, before[1])


def test_an_empty_batch():
    model = jg.zoo.cart_pole().compile()
    none = model.initial_state(0)
    assert jg.mass_matrix(model, none).shape == (0, 2, 2)
    assert jg.jacobian(model, none, model.link_names[0]).shape == (0, 6, 2)


def test_networks_that_change_masses_are_not_overlooked():
    model = jg.graft(jg.zoo.pendulum(2).compile(), "link.mass", ["joint.position"], jg.MLP((4,)), per="whole")
    state = random_state(model, np.random.default_rng(0))
    with pytest.raises(jg.InputError, match="inspect"):
        jg.mass_matrix(model, state)
    plain = jg.inspect(jg.zoo.pendulum(2).compile(), state).mass_matrix
    assert np.abs(jg.inspect(model, state).mass_matrix - plain).max() > 1e-6


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda m, s: jg.mass_matrix(None, s), "model must be a Model"),
        (lambda m, s: jg.mass_matrix(m, np.zeros(3)), "q has shape"),
        (lambda m, s: jg.mass_matrix(m, jg.State(np.array([np.nan, 0]), s.qd)), "q contains nan"),
        (lambda m, s: jg.bias_force(m, s.q), "needs rates"),
        (lambda m, s: jg.inverse_dynamics(m, s, np.zeros(3)), "qdd has shape"),
        (lambda m, s: jg.inverse_dynamics(m, s, np.array([np.nan, 0])), "qdd contains nan"),
        (lambda m, s: jg.jacobian(m, s, "hand"), 'no link or site "hand"'),
        (lambda m, s: jg.jacobian(m, s, "pole", (1.0, 2.0)), "point must have shape"),
        (lambda m, s: jg.jacobian(m, s, "pole", np.zeros((4, 3))), "4 rows"),
    ],
)
def test_what_cannot_be(call, said):
    model = jg.zoo.cart_pole().compile()
    with pytest.raises(jg.InputError, match=said):
        call(model, model.initial_state())


def test_sites_of_a_file():
    text = """<mujoco><worldbody><body name="arm"><joint axis="0 1 0"/><geom size=".1"/>
    <site name="tip" pos="0 0 -0.5" euler="0 0 90"/></body></worldbody></mujoco>"""
    model = jg.load(text).compile(contact=None)
    position, rotation = jg.site_pose(model, np.array([np.pi / 2]), "tip")
    close(position, (-0.5, 0, 0))
    close(rotation, [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    assert jg.site_pose(model, np.array([0.0]), "tip", (1.0, 0, 0))[0] == pytest.approx((0, 1, -0.5))


# inverse kinematics --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arm():
    return jg.zoo.franka_arm().compile(contact=None)


def somewhere(arm, n):
    """Poses that the hand can have."""
    q = arm.initial_state(n).q
    limits = arm.params["joint.limit"][[arm.joint(f"joint{k}") for k in range(1, 8)]]
    q[:, :7] = np.random.default_rng(3).uniform(*limits.T, (n, 7))
    return jg.site_pose(arm, q, "hand")


def test_a_hand_goes_where_it_can(arm):
    position, rotation = somewhere(arm, 60)
    found = jg.inverse_kinematics(arm, "hand", position, rotation)
    assert found.is_reached.mean() > 0.9
    there = jg.site_pose(arm, found.q, "hand")
    assert np.abs(there[0] - position)[found.is_reached].max() < 1e-6
    assert np.abs(there[1] - rotation)[found.is_reached].max() < 2e-6
    limits = arm.params["joint.limit"][[arm.joint(f"joint{k}") for k in range(1, 8)]]
    assert (found.q[:, :7] >= limits[:, 0]).all() and (found.q[:, :7] <= limits[:, 1]).all()
    # what does not carry the hand has not moved
    assert np.array_equal(found.q[:, 7:], arm.initial_state(60).q[:, 7:])


def test_position_alone_and_joints_that_may_move(arm):
    position, rotation = somewhere(arm, 1)
    free = jg.inverse_kinematics(arm, "hand", position[0], point=(0.0, 0.0, 0.1))
    assert free.is_reached and free.q.shape == (arm.nq,)
    assert np.abs(jg.site_pose(arm, free.q, "hand", (0.0, 0.0, 0.1))[0] - position[0]).max() < 1e-6
    few = jg.inverse_kinematics(arm, "hand", position[0], joints=["joint2", "joint4"])
    assert np.array_equal(few.q[[0, 2, 4, 5, 6]], arm.initial_state().q[[0, 2, 4, 5, 6]])
    turned = jg.inverse_kinematics(arm, "hand", rotation=rotation[0])
    assert turned.is_reached and turned.position_error == 0.0


def test_out_of_reach_is_said(arm):
    found = jg.inverse_kinematics(arm, "hand", [[5.0, 0, 0], [0.4, 0.1, 0.5]], restarts=2)
    assert found.is_reached.tolist() == [False, True]
    assert 3.5 < found.position_error[0] < 4.6


@pytest.mark.parametrize(
    "options, said",
    [
        ({}, "position or the rotation"),
        ({"position": (0, 0)}, "position must have shape"),
        ({"rotation": np.ones((3, 3))}, "rotation matrix"),
        ({"position": (0, 0, 1), "joints": ["elbow"]}, "turns or slides"),
        ({"position": (0, 0, np.inf)}, "position contains inf"),
        ({"position": np.zeros((3, 3)), "start": np.zeros((2, 16))}, "start has 2 rows"),
    ],
)
def test_bad_goals(arm, options, said):
    with pytest.raises(jg.InputError, match=said):
        jg.inverse_kinematics(arm, "hand", **options)
