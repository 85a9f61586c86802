"""Tasks: the numbers of gymnasium's version 5 given MuJoCo's state, gradients of rewards and observations, digests."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib.util
import pickle

import jax
import mujoco
import numpy as np
import pytest
import torch
from oracles import gymnasium_v5

import jointgrad as jg
from jointgrad.rl import TASKS, Batch, Moment, make_task
from jointgrad.rl.about_centre import inertias, velocities
from jointgrad.rl.gymnasium_task import robot_file

V5 = {
    "ant": ("ant_v5", "AntEnv"), "half-cheetah": ("half_cheetah_v5", "HalfCheetahEnv"), "hopper": ("hopper_v5", "HopperEnv"),
    "walker": ("walker2d_v5", "Walker2dEnv"), "humanoid": ("humanoid_v5", "HumanoidEnv"), "reacher": ("reacher_v5", "ReacherEnv"),
}  # fmt: skip
OPTIONS = {
    "ant": {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0, "ctrl_cost_weight": 0.3},
    "humanoid": {
        "include_cinert_in_observation": False, "include_cvel_in_observation": False, "healthy_z_range": (1.2, 1.9),
        "include_qfrc_actuator_in_observation": False, "include_cfrc_ext_in_observation": False,
    },
    "hopper": {"terminate_when_unhealthy": False, "healthy_state_range": (-3.0, 3.0), "reset_noise_scale": 0.05},
    "walker": {"healthy_angle_range": (-0.1, 0.1), "healthy_reward": 0.7},
    "half-cheetah": {"exclude_current_positions_from_observation": False, "forward_reward_weight": 2.0},
    "reacher": {"reward_dist_weight": 2.0},
}  # fmt: skip
ours = functools.cache(make_task)


def cases():
    return [(name, {}) for name in V5] + list(OPTIONS.items())


@pytest.mark.parametrize(("name", "options"), cases(), ids=str)
def test_observation_and_reward_are_those_of_gymnasium(monkeypatch, name, options):
    env, task = gymnasium_v5.environment(monkeypatch, *V5[name], **options), make_task(name, **options)
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    before = gymnasium_v5.moment(env, np.zeros(env.model.nu), 0, task.n_places)
    for age in range(1, 41):
        # beyond the limits too: controls are cut there, their price is not
        action = rng.uniform(-1.5, 1.5, env.model.nu) * env.action_space.high
        seen, reward, terminated, _, info = env.step(action)
        now = gymnasium_v5.moment(env, action, age, task.n_places)
        np.testing.assert_allclose(task.observe(now)[0], seen, rtol=1e-9, atol=1e-9)
        assert task.reward(before, now)[0] == pytest.approx(reward, rel=1e-9, abs=1e-11)
        assert bool(task.fallen(now)[0]) == bool(terminated)
        for part, value in task.terms(before, now).items():
            assert value[0] == pytest.approx(info[part], rel=1e-9, abs=1e-11), part
        before = now


@pytest.mark.parametrize("name", V5)
def test_episodes_begin_as_in_gymnasium(monkeypatch, name):
    env, task = gymnasium_v5.environment(monkeypatch, *V5[name]), ours(name)
    env.reset(seed=7)
    start = task.start(np.random.Generator(np.random.PCG64(np.random.SeedSequence(7))), 1)
    np.testing.assert_array_equal(start.q[0], env.data.qpos)
    np.testing.assert_array_equal(start.qd[0], env.data.qvel)


@pytest.mark.parametrize("name", V5)
def test_pins_what_gymnasium_has(monkeypatch, name):
    env, task = gymnasium_v5.environment(monkeypatch, *V5[name]), ours(name)
    assert task.control_dt == pytest.approx(env.dt)
    assert task.n_observations == env.observation_space.shape[0]
    np.testing.assert_allclose(task.action_limits, (env.action_space.low, env.action_space.high), rtol=1e-7)
    bodies = [mujoco.mj_id2name(env.model, mujoco.mjtObj.mjOBJ_BODY, k) for k in range(env.model.nbody)]
    assert len(bodies) == task.model.n_links
    assert all(link == body for link, body in zip(task.model.link_names, bodies, strict=True) if body)


def test_inertias_and_velocities_about_the_centre_of_the_engines_own_outputs():
    task = ours("humanoid")
    m = mujoco.MjModel.from_xml_path(str(robot_file("humanoid.xml")))
    d, rng = mujoco.MjData(m), np.random.default_rng(3)
    d.qpos[:], d.qvel[:] = d.qpos + rng.uniform(-0.3, 0.3, m.nq), rng.standard_normal(m.nv)
    d.qpos[3:7] /= np.linalg.norm(d.qpos[3:7])
    mujoco.mj_forward(m, d)
    names = ("link.position", "link.rotation", "link.velocity")
    found = jg.rollout(task.model, jg.State(d.qpos[None].copy(), d.qvel[None].copy()), steps=0, outputs=names).outputs
    seen = {name: found[name][0] for name in names}
    np.testing.assert_allclose(inertias(task.model, seen)[0, 1:], d.cinert[1:], atol=1e-9)
    np.testing.assert_allclose(velocities(task.model, seen)[0, 1:], d.cvel[1:], atol=1e-9)


# functions of arrays -------------------------------------------------------------------------------------------------------


def random_moment(task, rng, batch=2, age=1):
    """Somewhere: rewards and observations are functions of all of it."""
    blank = task.blank(batch)
    q, qd, action = (x + 0.3 * rng.standard_normal(x.shape) for x in blank[:3])
    outputs = {name: value + 0.3 * rng.standard_normal(value.shape) for name, value in blank.outputs.items()}
    return Moment(q, qd, action, np.full(batch, age), outputs, task.goals(rng, batch))


def leaves(moments):
    return [x for now in moments for x in (*now[:3], *now.outputs.values(), now.goal)]


def rebuilt(moments, arrays, whole):
    """The same moments of other arrays; ages, which are whole numbers, by `whole`."""
    arrays, found = iter(arrays), []
    for now in moments:
        q, qd, action = (next(arrays) for _ in range(3))
        found.append(Moment(q, qd, action, whole(now.age), {name: next(arrays) for name in now.outputs}, next(arrays)))
    return found


def pair_of(name, **options):
    task, rng = ours(name, **options), np.random.default_rng(5)
    return task, [random_moment(task, rng, age=task.limit - 1), random_moment(task, rng, age=task.limit)]


VARIANTS = [*((name, {}) for name in TASKS), ("pendulum", {"links": 3, "pay": "released"})]


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_gradients_of_reward_and_observation(name, options):
    task, moments = pair_of(name, **options)

    def seen(*tensors):
        before, now = rebuilt(moments, tensors, torch.from_numpy)
        return task.observe(now), task.reward(before, now)

    # tasks without goals have nothing to differentiate there
    tensors = [torch.from_numpy(x).requires_grad_(x.size > 0) for x in leaves(moments)]
    # in random directions: outputs of all links are many numbers
    assert torch.autograd.gradcheck(seen, tensors, fast_mode=True, eps=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_arrays_of_all_kinds_say_the_same(name, options):
    task, moments = pair_of(name, **options)
    truth = task.observe(moments[1]), task.reward(*moments), task.fallen(moments[1])
    with jax.enable_x64(True):
        for array in (torch.from_numpy, jax.numpy.asarray):
            before, now = rebuilt(moments, map(array, leaves(moments)), array)
            found = task.observe(now), task.reward(before, now), task.fallen(now)
            for one, other in zip(found, truth, strict=True):
                np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12, atol=1e-12)


def test_a_pendulums_ends_are_where_its_links_end():
    task = make_task("pendulum", links=3)
    q = np.random.default_rng(0).uniform(-3, 3, (4, 3))
    seen = jg.rollout(task.model, jg.State(q, 0 * q), steps=0, outputs=("link.position",)).outputs["link.position"][0]
    y, z = task.ends(task.blank(4)._replace(q=q))
    for k, link in enumerate(("link1", "link2", "tip")):
        np.testing.assert_allclose(seen[:, task.model.link(link), 1:], np.stack((y, z), -1)[:, k], atol=1e-12)


@pytest.mark.parametrize("pay", ["paper", "released"])
def test_the_return_of_a_pendulum_is_that_of_table_4(pay):
    """d_0^2 - d_T^2, and in the released code d_0^2 - 2 d_T^2; n^2 / 2 at most."""
    task, rng = make_task("pendulum", links=2, pay=pay), np.random.default_rng(1)
    ages = [task.blank(1)._replace(q=rng.uniform(-3, 3, (1, 2)), age=np.array([k])) for k in range(task.limit + 1)]
    ages[0] = task.blank(1)
    total = sum(task.reward(*two)[0] for two in zip(ages, ages[1:], strict=False))
    end = task.squared_distance(ages[-1])[0]
    assert total == pytest.approx(2.0 - (1 if pay == "paper" else 2) * end)


# which task it is ----------------------------------------------------------------------------------------------------------


def test_a_digest_tells_models_apart_and_is_the_same_again():
    task = make_task("hopper")
    assert task.digest == make_task("hopper").digest
    others = {make_task("hopper", **o).digest for o in ({"law": jg.Impulse(sweeps=21)}, {"hold": 5}, {"dt": 0.001})}
    assert len(others | {task.digest}) == 4
    # what is paid for is not the model
    assert make_task("hopper", healthy_reward=2.0).digest == task.digest
    assert task.settings()["digest"] == task.digest and task.settings()["touching"] == list(task.model.pair_names)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(jg.InputError, match='did you mean "hopper"'):
        make_task("hoper")
    with pytest.raises(jg.InputError, match='did you mean "healthy_reward"'):
        make_task("ant", healthy_rewards=1.0)
    with pytest.raises(jg.InputError, match="paper, released"):
        make_task("pendulum", pay="printed")


def test_robots_of_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(jg.ModelError, match=r"ant.xml comes with the package gymnasium.*pip install jointgrad\[rl\]"):
        make_task("ant").world()


def test_tasks_are_values():
    assert make_task("ant") == make_task("ant") != make_task("ant", hold=4)
    assert dataclasses.replace(make_task("ant"), hold=4).control_dt == pytest.approx(0.04)


def test_tasks_go_to_other_processes_without_their_model():
    task = make_task("hopper", healthy_reward=2.0)
    digest = task.digest
    again = pickle.loads(pickle.dumps(task))
    assert again == task and again.digest == digest and copy.deepcopy(task) == task


# arms ----------------------------------------------------------------------------------------------------------------------


def test_a_hand_holds_its_ball_and_lets_it_fall():
    """Held still for 0.4 s; let go, it falls by g t^2 / 2."""
    task = ours("throw")
    batch = Batch(task, 1)
    batch.reset(np.ones(1, dtype=bool))
    height = batch.now.q[0, 11]
    for _ in range(20):
        batch.step(np.zeros((1, 9)))
    assert abs(batch.now.q[0, 11] - height) < 2e-3
    opened = np.zeros((1, 9))
    opened[:, 7:] = 1.0
    heights = []
    for _ in range(12):
        batch.step(opened)
        heights.append(batch.now.q[0, 11])
    # free once the fingers are apart: second differences over 20 ms are -g dt^2
    np.testing.assert_allclose(np.diff(heights, 2)[3:], -9.81 * 0.02**2, rtol=1e-6)


def test_an_arm_stands_still_in_its_pose():
    task = ours("reach", reset_noise_scale=0.0)
    batch = Batch(task, 1)
    batch.reset(np.ones(1, dtype=bool))
    for _ in range(20):
        result = batch.step(np.zeros((1, 7)))
    np.testing.assert_allclose(batch.now.q, task.model.initial_state(1).q, atol=1e-6)
    place = jg.inspect(task.model, jg.State(*(x[0] for x in batch.now[:2])))
    hand = place.link_position[task.model.link("hand")] + 0.105 * place.link_rotation[task.model.link("hand")][:, 2]
    assert result.reward[0] == pytest.approx(-np.linalg.norm(hand - batch.now.goal[0]), abs=1e-6)
