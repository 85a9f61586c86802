"""Mistakes that run: one warning each, silenced by name. Numbers of any real kind are taken."""

import warnings

import numpy as np
import pytest

import jointgrad as jg


def said(call) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", jg.HintWarning)
        call()
    return [str(w.message) for w in seen if w.category is jg.HintWarning]


def ball(ground: bool = True, **options) -> jg.Model:
    robot = jg.Description("ball", base="free")
    robot.add_link("ball", 1.0, inertia=(0.1, 0.1, 0.1)).shapes.append(jg.Shape("sphere", (0.1,)))
    world = jg.World(**options).add(robot, position=(0, 0, 1))
    return (world.add_ground() if ground else world).compile()


def test_nothing_to_land_on():
    model = ball(ground=False)
    found = said(lambda: jg.rollout(model, model.initial_state(), steps=3))
    assert len(found) == 1 and found[0].startswith("no-ground: ") and "add_ground" in found[0]
    assert not said(lambda: jg.rollout(model, model.initial_state(), steps=3))  # once
    floating = ball(ground=False, gravity=(0, 0, 0))
    assert not said(lambda: jg.rollout(floating, floating.initial_state(), steps=3))
    alone = jg.zoo.laikago().compile(contact=None)
    assert not said(lambda: jg.rollout(alone, alone.initial_state(), steps=3))


@pytest.mark.parametrize("quaternion, is_said", [((0, 0, 0, 1), True), ((1, 0, 0, 0), False), ((0, 1, 0, 0), False)])
def test_w_comes_first(quaternion, is_said):
    model = ball()
    state = model.initial_state()
    state.q[3:] = quaternion
    found = said(lambda: jg.Simulation(model, state))
    assert [text.startswith("w-last: ") for text in found] == ([True] if is_said else [])


def test_a_hint_is_silenced_by_its_name():
    model = ball(ground=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "no-ground")
        jg.rollout(model, model.initial_state(), steps=1)


@pytest.mark.parametrize("kind", [np.float32, np.float16, int])
def test_numbers_of_any_real_kind(kind):
    model = jg.zoo.cart_pole().compile(dt=0.01)
    q, u = np.ones((3, 2), kind), np.ones((5, 3, 1), kind)
    state = jg.State(q, np.zeros((3, 2), kind))
    motion = jg.rollout(model, state, u)
    wide = jg.rollout(model, jg.State(q.astype(float), np.zeros((3, 2))), u.astype(float))
    assert motion.q.dtype == np.float64 and motion.q.tobytes() == wide.q.tobytes()
    bar = np.ones((3, 2), kind)
    assert motion.backward(q_bar=bar) == wide.backward(q_bar=bar.astype(float))
    assert jg.step(model, state, u[0]).q.tobytes() == wide.q[1].tobytes()
    assert jg.mass_matrix(model, q).tobytes() == jg.mass_matrix(model, q.astype(float)).tobytes()
