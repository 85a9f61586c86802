"""Networks inside the step: nothing changes where they say nothing, and their gradients are those of differences."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from test_contact_gradients import ContactCase, check, contact_case, standing

import jointgrad as jg
from jointgrad.engine.run import plain
from jointgrad.grafts.blueprint import ABOUT, layers, load_weights, save_weights, table, with_layers
from jointgrad.model.grafts import ACTIVATIONS, MODES, TARGETS

BATCH = 5
FLAT, FLOOR = (1.55, 0.0, 0.0), -0.1975  # joint angles, and a height that the tip has just reached with them
AT_POINT = ["contact.depth", "contact.velocity", "contact.place", "contact.normal", "joint.velocity"]
SPRINGS = (
    "pair.stiffness", "pair.damping", "contact.stiffness", "contact.damping", "contact.normal_force", "contact.friction_force",
)  # fmt: skip
SEEN = {
    "link.force": ["link.velocity"], "link.mass": ["link.velocity"], "control": ["control", "joint.velocity"],
    "actuator.gain": ["control"], "actuator.damping": ["control", "joint.velocity"],
}  # fmt: skip


def arm(friction: float = 0.05, restitution: float = 0.2, **options) -> jg.Model:
    """Three links that swing in a medium, the tip of the last on the ground where they lie flat; all that a graft may change."""
    robot = jg.Description("arm")
    parent = None
    for k in range(3):
        link = robot.add_link(f"link{k}", 1.0 + 0.2 * k, (0.1, 0.0, -0.3), (0.03, 0.002, 0.001, 0.04, 0.003, 0.05))
        robot.add_joint(
            f"joint{k}", "revolute", parent, f"link{k}", position=(0.0, 0.0, -0.6 if k else 0.0), axis=(0.1 * k, 1.0, 0.2),
            damping=0.3, stiffness=0.2, armature=0.02, friction=friction,
        )  # fmt: skip
        robot.add_actuator(f"motor{k}", f"joint{k}", gain=1.5, damping=0.1)
        link.drag_size = (0.1, 0.2, 0.5)
        parent = f"link{k}"
    link.shapes.append(jg.Shape("sphere", (0.1,), (0.0, 0.0, -0.5), name="tip"))
    world = (
        jg.World(density=20.0, viscosity=0.3).add(robot).add_ground(height=FLOOR, friction=0.4, restitution=restitution)
    )
    return world.compile(dt=5e-3, **options)


@functools.cache
def model_for(target: str) -> jg.Model:
    """Contact by springs where a spring's parameter is changed; no bounce, in which depth has no say, where depth is."""
    soft = target in SPRINGS
    return arm(
        restitution=0.0 if target == "contact.depth" else 0.2,
        contact=jg.Spring(3e3, 2e3, 1.3, "brown", 0.8, 0.5) if soft else jg.Impulse(sweeps=10),
    )


def states() -> tuple[np.ndarray, np.ndarray]:
    """Above the ground; two with the tip in it."""
    rng = np.random.default_rng(3)
    q, qd = FLAT + 0.2 * rng.normal(size=(BATCH, 3)) + (0.8, 0.0, 0.0), rng.normal(size=(BATCH, 3))
    q[:2] = FLAT + 1e-3 * rng.normal(size=(2, 3))
    qd[:2, 0] = -0.5
    return q, qd


def test_two_tips_touch():
    """Or the tests below would not see what contact parameters do."""
    found = jg.inspect(model_for("pair.friction"), jg.State(*states())).contacts
    assert [len(one) for one in found] == [1, 1, 0, 0, 0]


def grafted(
    model: jg.Model, target: str, mode: str = "residual", activation: str = "tanh", scale: float = 0.3, **options
):
    seen = AT_POINT if target.startswith("contact.") else SEEN.get(target, ["joint.position", "joint.velocity"])
    if target == "contact.depth":  # millimetres, lest a point be thrown out of contact
        scale *= 1e-3
    model = jg.graft(model, target, seen, jg.MLP((5, 6), activation, scale, seed=1), mode=mode, **options)
    if mode == "replace":  # by something that is not negative, and a point that still touches
        more = 2e-3 if target == "contact.depth" else 0.8
        for network in range(len(model.topology.grafts[-1].first_weights)):
            *others, (weight, bias) = layers(model, len(model.topology.grafts) - 1, network)
            model = with_layers(model, [*others, (weight, bias + more)], len(model.topology.grafts) - 1, network)
    return model


def checked(model: jg.Model, steps: int = 3) -> ContactCase:
    case = contact_case(model, *states(), steps)
    check(case, most=4)
    return case


def modes_of(target: str) -> list[str]:
    if target == "link.force":
        return ["residual"]
    return [m for m in MODES if m != "dissipate" or target == "joint.force"]


@pytest.mark.parametrize(("target", "mode"), [(t, m) for t in TARGETS for m in modes_of(t)])
def test_gradient_of_every_target(target, mode):
    """To weights, to what the networks see, and to everything else, three steps."""
    model = grafted(model_for(target), target, mode)
    case = checked(model)
    assert np.abs(case.backward(case.rollout())["graft.weight"]).max() > 0


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradient_of_every_activation(activation):
    checked(grafted(model_for("joint.force"), "joint.force", activation=activation))


@pytest.mark.parametrize(
    "target", ["joint.force", "joint.acceleration", "link.mass", "control", "contact.normal_force"]
)
def test_gradient_of_runge_kutta(target):
    spring = jg.Spring(3e3, 2e3, 1.3, "brown", 0.8, 0.5)
    checked(grafted(arm(friction=0.0, contact=spring, integrator="rk4"), target))


def test_a_signal_feeds_later_networks():
    """One network speaks to two others, one of them at points that touch; gradients go back through all of them."""
    model = jg.graft(model_for("joint.force"), "signal", ["joint.position", "control"], jg.MLP((4,), outputs=3))
    model = jg.graft(model, "joint.force", ["signal", "joint.velocity"], jg.MLP((5,), scale=0.3), per="whole")
    model = jg.graft(model, "contact.friction", ["signal", "contact.velocity"], jg.MLP((3,), scale=0.3))
    assert [len(g.seen[0]) for g in model.topology.grafts] == [6, 6, 7]
    case = checked(model)
    weights = case.backward(case.rollout())["graft.weight"]
    assert (np.abs(weights).max(0) > 0)[: model.topology.grafts[0].n_weights].sum() > 20


def test_each_graft_sees_what_those_before_it_changed():
    """Controls are doubled, then halved by a network that sees the doubled ones: a force of u, where each alone gives another."""
    model = model_for("control")
    model = jg.graft(model, "control", ["control"], jg.MLP((), scale=0.0), mode="residual")
    model = with_layers(model, [(np.ones((1, 1)), np.zeros(1))], 0, 0)  # u + u
    model = jg.graft(model, "control", ["control"], jg.MLP((), scale=0.0), mode="replace")
    for k in range(3):
        model = with_layers(model, [(np.full((1, 1), 0.5), np.zeros(1))], 1, k)  # half of what it sees
    state, u = jg.State(*(x[3] for x in states())), np.array([0.7, 0.0, 0.0])
    plain = jg.step(model_for("control"), state, u)
    assert np.array_equal(jg.step(model, state, u).qd, plain.qd)


def test_several_grafts():
    """One for the whole robot that sees everything, one with weights in common, one on what another has changed."""
    everything = ["joint.position", "joint.velocity", "control", "link.velocity"]
    model = jg.graft(model_for("joint.force"), "joint.force", everything, jg.MLP((7,)), per="whole")
    model = jg.graft(model, "joint.damping", ["joint.velocity"], jg.MLP((4,)), shared=True, mode="scale")
    model = jg.graft(model, "joint.damping", ["joint.position"], jg.MLP((3,), scale=0.2), rows=["joint[12]"])
    assert [len(g.first_weights) for g in model.topology.grafts] == [1, 3, 2]
    checked(model)


@pytest.mark.parametrize(("target", "mode"), [(t, m) for t in TARGETS for m in modes_of(t) if m != "replace"])
def test_a_network_that_says_nothing_changes_no_bit(target, mode):
    model = model_for(target)
    (q, qd), u = states(), np.random.default_rng(0).normal(size=(20, BATCH, 3))
    bare, silent = (jg.rollout(m, jg.State(q, qd), u) for m in (model, grafted(model, target, mode, scale=0.0)))
    assert np.array_equal(bare.q, silent.q) and np.array_equal(bare.qd, silent.qd)


def test_standing_robot():
    """Friction from a network, in contact, with lanes that differ."""
    model, q, qd = standing()
    model = jg.graft(model, "pair.friction", ["joint.velocity"], jg.MLP((4,), scale=0.1), per="whole")
    case = contact_case(model, q, qd, 2)
    gradient = case.backward(case.rollout())
    wrong, skipped = case.compare(
        {name: gradient[name] for name in ("q", "qd", "u", "pair.friction", "graft.weight")}, most=6
    )
    assert wrong == {} and skipped < 0.1


def test_tangent_is_the_transpose():
    """<bar, tangent> is the same both ways, for directions of weights, rates and a parameter that is changed."""
    model = grafted(grafted(model_for("joint.force"), "joint.force"), "joint.damping", "scale")
    rng, (q, qd) = np.random.default_rng(5), states()
    u = rng.normal(size=(10, BATCH, 3))
    motion = jg.rollout(model, jg.State(q, qd), u)
    dots = {name: rng.normal(size=model.params[name].shape) for name in ("graft.weight", "joint.damping")}
    qd_dot, q_bar = rng.normal(size=qd.shape), rng.normal(size=q.shape)
    forward = motion.tangent(qd=qd_dot, params=dots)
    back = motion.backward(q_bar)
    one = (forward[0][-1] * q_bar).sum()
    other = (back.qd * qd_dot).sum() + sum((back.params[name] * dots[name]).sum() for name in dots)
    assert abs(one - other) < 1e-11 * abs(one)


def test_a_brake_takes_energy():
    """However the network is drawn, without gravity and friction the energy of a swinging arm only falls."""
    robot = jg.zoo.pendulum(3)
    model = jg.World(gravity=(0, 0, 0)).add(robot).compile(dt=1e-4)
    model = jg.graft(
        model, "joint.force", ["joint.position", "joint.velocity"], jg.MLP((8,), scale=2.0), mode="dissipate"
    )
    rng = np.random.default_rng(0)
    motion = jg.rollout(model, jg.State(rng.normal(size=3), 3.0 * rng.normal(size=3)), steps=2000)
    energy = jg.inspect(model, jg.State(motion.q, motion.qd)).kinetic_energy
    assert energy[-1] < 0.9 * energy[0] and np.diff(energy).max() < 1e-3 * energy[0]


def test_without_the_compiler():
    model = grafted(model_for("joint.force"), "joint.force")
    model = grafted(model, "joint.damping", "scale")
    (q, qd), u = states(), np.ones(3)
    compiled = jg.step(model, jg.State(q[0], qd[0]), u)
    q_next, qd_next = plain.step(model, q[0], qd[0], u)
    np.testing.assert_allclose(q_next, compiled.q, atol=1e-14)
    np.testing.assert_allclose(qd_next, compiled.qd, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_acceleration_without_the_compiler(target):
    """Networks act on it as in the compiled engine, wherever they change something smooth."""
    bare, state, u = model_for(target), jg.State(*(x[0] for x in states())), np.ones(3)
    model = grafted(bare, target)
    found, plain_of_bare = (plain.acceleration(m, state.q, state.qd, u) for m in (model, bare))
    np.testing.assert_allclose(found, jg.inspect(model, state, u).qdd, rtol=1e-12, atol=1e-11)
    acts_by_impulses = (
        "joint.friction", "pair.friction", "pair.restitution", "contact.friction", "contact.restitution", "contact.depth",
    )  # fmt: skip
    assert np.array_equal(found, plain_of_bare) == (target in acts_by_impulses)


def test_inspect_sees_what_the_network_does():
    model = model_for("joint.force")
    state = jg.State(*(x[3] for x in states()))
    bare = jg.inspect(model, state).joint_force
    pushed = jg.inspect(grafted(model, "joint.force"), state).joint_force
    W = layers(grafted(model, "joint.force"), 0, 1)
    x = np.array([state.q[1], state.qd[1]])
    for k, (weight, bias) in enumerate(W):
        x = weight @ x + bias
        x = np.tanh(x) if k < len(W) - 1 else x
    np.testing.assert_allclose(pushed[1] - bare[1], x[0], atol=1e-12)


# weights ------------------------------------------------------------------------------------------------------------------


def test_weights_go_out_and_come_back(tmp_path):
    model = grafted(model_for("joint.force"), "joint.force")
    save_weights(model, tmp_path / "weights.npz")
    silent = grafted(model_for("joint.force"), "joint.force", scale=0.0)
    assert np.array_equal(
        load_weights(silent, tmp_path / "weights.npz").params["graft.weight"], model.params["graft.weight"]
    )
    with pytest.raises(jg.InputError, match="other grafts"):
        load_weights(grafted(model, "control"), tmp_path / "weights.npz")
    with pytest.raises(jg.InputError, match="layer 0 has weights"):
        with_layers(model, [(W.T, b) for W, b in layers(model)])


def test_torch_computes_the_same():
    torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
    model = grafted(model_for("joint.force"), "joint.force", activation="elu")
    modules = []
    for weight, bias in layers(model, 0, 2):
        linear = torch.nn.Linear(*weight.shape[::-1]).double()
        linear.weight.data, linear.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
        modules += [linear, torch.nn.ELU()]
    network = torch.nn.Sequential(*modules[:-1])
    state = jg.State(*(x[3] for x in states()))
    force = [jg.inspect(m, state).joint_force[2] for m in (model_for("joint.force"), model)]
    expected = network(torch.tensor([state.q[2], state.qd[2]])).item()
    assert abs(force[1] - force[0] - expected) < 1e-12
    again = with_layers(model, [(m.weight.detach(), m.bias.detach()) for m in modules[::2]], 0, 2)
    assert np.array_equal(again.params["graft.weight"], model.params["graft.weight"])


# bad input ----------------------------------------------------------------------------------------------------------------

WRONG = {
    'target "joint.colour"': dict(target="joint.colour", inputs=["control"]),
    'input "taste"': dict(target="joint.force", inputs=["taste"]),
    'activation "step"': dict(target="joint.force", inputs=["control"], network=jg.MLP((3,), "step")),
    "at least one input": dict(target="joint.force", inputs=[]),
    "matches no row": dict(target="joint.force", inputs=["control"], rows=["knee"]),
    'mode "dissipate" brakes': dict(target="control", inputs=["control"], mode="dissipate"),
    'mode "louder"': dict(target="control", inputs=["control"], mode="louder"),
    "only be residual": dict(target="link.force", inputs=["link.velocity"], mode="scale"),
    "only networks on contact": dict(target="joint.force", inputs=["contact.depth"]),
    "one point at a time": dict(target="contact.friction", inputs=["contact.depth"], per="whole"),
    "nothing for a graft": dict(target="contact.normal_force", inputs=["contact.depth"]),
    'has no "signal" to see': dict(target="joint.force", inputs=["signal"]),
    "says itself how many": dict(target="joint.force", inputs=["control"], network=jg.MLP((3,), outputs=2)),
    "whole numbers": dict(target="control", inputs=["control"], network=jg.MLP((0,))),
}


@pytest.mark.parametrize("words", WRONG)
def test_bad_grafts(words):
    with pytest.raises(jg.InputError, match=words):
        jg.graft(model_for("joint.force"), **WRONG[words])


def test_a_free_base_has_no_joint_position():
    dog = jg.zoo.laikago(touch="feet").compile()
    with pytest.raises(jg.InputError, match='"chassis" has no "joint.position"'):
        jg.graft(dog, "link.force", ["joint.position"])


def test_the_documented_table_is_that_of_the_code():
    text = (Path(__file__).resolve().parents[1] / "docs" / "grafts.md").read_text()
    assert table() in text
    assert set(ABOUT) == {*TARGETS, "signal"}
