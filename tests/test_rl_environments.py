"""Tasks as gymnasium environments, one and many: seeds, ways of beginning anew, randomised robots, pictures, SB3."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import jointgrad as jg
import jointgrad.rl as rl

IDS = {name: f"jointgrad/{task.__name__}-v0" for name, task in rl.TASKS.items()}
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]
# a hopper that hardly moves falls after about eighty actions: this limit ends some episodes sooner
LIMIT = 75


def actions(env, seed, scale=0.3):
    rng = np.random.default_rng(seed)
    while True:
        yield scale * rng.uniform(-1, 1, env.action_space.shape)


@pytest.mark.filterwarnings("ignore:.*A Box observation space m.*imum value is:UserWarning")  # as gymnasium's own
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_finds_nothing_wrong(name):
    check_env(gymnasium.make(IDS[name]).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", IDS)
def test_a_row_of_many_is_the_same_bits_as_one_alone(name):
    many = gymnasium.make_vec(IDS[name], num_envs=3)
    one = gymnasium.make(IDS[name])
    seen, _ = many.reset(seed=4)
    np.testing.assert_array_equal(seen[2], one.reset(seed=6)[0])
    for _, action in zip(range(6), actions(many, 0), strict=False):
        seen, reward, terminated, truncated, info = many.step(action)
        alone = one.step(action[2])
        np.testing.assert_array_equal(seen[2], alone[0])
        assert (reward[2], terminated[2], truncated[2]) == alone[1:4]
        assert {key: info[key][2] for key in alone[4]} == alone[4]


def both(mode, randomise=None):
    """Our environments, and gymnasium's way of running single ones of ours one after the other."""
    ours = gymnasium.make_vec(
        IDS["hopper"], num_envs=4, autoreset_mode=mode, max_episode_steps=LIMIT, randomise=randomise
    )

    def single():
        return gymnasium.make(IDS["hopper"], max_episode_steps=LIMIT, randomise=randomise)

    return ours, SyncVectorEnv([single] * 4, autoreset_mode=mode)


@pytest.mark.parametrize("randomise", [None, {"mass": 0.3, "gain": 0.2}], ids=["alike", "each its own"])
@pytest.mark.parametrize("mode", MODES)
def test_episodes_begin_anew_as_in_gymnasium(mode, randomise):
    ours, theirs = both(mode, randomise)
    np.testing.assert_array_equal(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    falls = limits = 0
    for _, action in zip(range(3 * LIMIT), actions(ours, 1, scale=0.05), strict=False):
        found, wanted = ours.step(action), theirs.step(action)
        for one, other in zip(found[:4], wanted[:4], strict=True):
            np.testing.assert_array_equal(one, other)
        assert_same_info(found[4], wanted[4])
        falls, limits = falls + found[2].sum(), limits + found[3].sum()
        over = found[2] | found[3]
        if mode is AutoresetMode.DISABLED and over.any():
            with pytest.raises(jg.InputError, match="are over: reset them first"):
                ours.step(action)
            again = [env.reset(options={"reset_mask": over.copy()})[0] for env in (ours, theirs)]
            np.testing.assert_array_equal(*again)
    assert falls > 0 and limits > 0


def assert_same_info(found, wanted):
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        if isinstance(value, dict):
            assert_same_info(found[key], value)
            continue
        known = wanted[key if key.startswith("_") else f"_{key}"]
        for one, other in zip(found[key][known], value[known], strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    def run(seed):
        env = gymnasium.make_vec(IDS["walker"], num_envs=2, randomise={"mass": 0.2, "friction": 0.4, "gain": 0.1})
        env.reset(seed=seed)
        return [env.step(action)[0] for _, action in zip(range(5), actions(env, 0), strict=False)][-1]

    np.testing.assert_array_equal(run(0), run(0))
    assert np.abs(run(0) - run(1)).min() > 0


def test_without_a_seed_episodes_differ():
    env = gymnasium.make_vec(IDS["hopper"], num_envs=2)
    first, again = env.reset(seed=0)[0], env.reset()[0]
    assert not np.array_equal(first, again) and not np.array_equal(first[0], first[1])


def test_only_the_environments_that_are_asked_for_begin_anew():
    env = gymnasium.make_vec(IDS["hopper"], num_envs=3)
    env.reset(seed=0)
    seen = env.step(next(actions(env, 0)))[0]
    after = env.reset(seed=5, options={"reset_mask": np.array([False, True, False])})[0]
    np.testing.assert_array_equal(after[[0, 2]], seen[[0, 2]])
    np.testing.assert_array_equal(after[1], gymnasium.make(IDS["hopper"]).reset(seed=6)[0])
    with pytest.raises(jg.InputError, match="3 booleans"):
        env.reset(options={"reset_mask": np.array([True])})
    with pytest.raises(jg.InputError, match="2 seeds for 3 environments"):
        env.reset(seed=[1, 2])


def test_an_action_is_held_for_as_long_as_the_task_says():
    task, action = rl.make_task("hopper"), np.array([[0.5, -0.3, 0.2]])
    batch = rl.Batch(task, 1)
    batch.reset(np.ones(1, dtype=bool))
    wanted = jg.rollout(task.model, jg.State(*batch.now[:2]), np.stack([action] * 4)).last
    batch.step(action)
    np.testing.assert_array_equal(batch.now.q, wanted.q)
    np.testing.assert_array_equal(batch.now.qd, wanted.qd)
    assert batch.now.age == 1


# randomised robots ---------------------------------------------------------------------------------------------------------


def test_robots_differ_within_their_shares_and_keep_what_is_not_asked_for():
    task = rl.make_task("ant")
    batch = rl.Batch(task, 200, rl.Randomisation(mass=0.3, gain=0.1))
    batch.reset(np.ones(200, dtype=bool))
    rows = task.model.params["link.mass"] > 0
    factor = batch.model.params["link.mass"][:, rows] / task.model.params["link.mass"][rows]
    assert 0.7 < factor.min() < 0.71 and 1.29 < factor.max() < 1.3
    inertia = batch.model.params["link.inertia"][:, rows, 0] / task.model.params["link.inertia"][rows, 0]
    np.testing.assert_allclose(inertia, factor, rtol=1e-12)
    gain = batch.model.params["actuator.gain"] / task.model.params["actuator.gain"]
    assert 0.9 < gain.min() < 0.91 and 1.09 < gain.max() < 1.1
    np.testing.assert_array_equal(batch.model.params["pair.friction"][7], task.model.params["pair.friction"])


def test_a_new_episode_has_a_new_robot_and_the_others_keep_theirs():
    batch = rl.Batch(rl.make_task("hopper"), 3, rl.Randomisation(mass=0.3))
    batch.reset(np.ones(3, dtype=bool))
    before = batch.model.params["link.mass"]
    batch.reset(np.array([False, True, False]))
    now = batch.model.params["link.mass"]
    np.testing.assert_array_equal(now[[0, 2]], before[[0, 2]])
    assert (now[1, 1:] != before[1, 1:]).all()
    model, moment = batch.model, batch.now
    batch.reset(np.zeros(3, dtype=bool))
    assert batch.model is model and batch.now is moment


@pytest.mark.parametrize(
    "given", [{"weight": 0.1}, {"mass": 1.0}, {"mass": -0.1}, {"gain": float("nan")}, 0.3], ids=str
)
def test_randomisation_that_makes_no_sense_is_refused(given):
    with pytest.raises(jg.InputError, match=r"randomise|Randomisation|randomised thing"):
        gymnasium.make_vec(IDS["hopper"], num_envs=2, randomise=given)


# what goes wrong -----------------------------------------------------------------------------------------------------------


def test_an_environment_that_blows_up_is_over_and_the_others_go_on():
    env = gymnasium.make_vec(IDS["cart-pole"], num_envs=2, autoreset_mode="SameStep")
    env.reset(seed=0)
    env.unwrapped.batch.now.qd[1] = 1e200
    seen, reward, terminated, _, info = env.step(np.zeros((2, 1)))
    assert terminated.tolist() == [False, True] and np.isfinite(seen).all() and np.isfinite(reward).all()


def test_actions_that_make_no_sense_are_refused_by_name():
    env = gymnasium.make_vec(IDS["hopper"], num_envs=2)
    with pytest.raises(jg.InputError, match="environment 0 has not begun: reset it"):
        env.step(np.zeros((2, 3)))
    env.reset(seed=0)
    with pytest.raises(jg.InputError, match=r"action has shape \(3,\), but must have \(2, 3\)"):
        env.step(np.zeros(3))
    with pytest.raises(jg.InputError, match=r"action contains nan at \(1, 2\)"):
        env.step(np.array([[0.0, 0, 0], [0, 0, np.nan]]))
    with pytest.raises(jg.InputError, match="max_episode_steps"):
        gymnasium.make_vec(IDS["hopper"], num_envs=2, limit=10)
    with pytest.raises(jg.InputError, match="1 environment or more"):
        gymnasium.make_vec(IDS["hopper"], num_envs=0)


def test_what_a_user_does_to_observations_and_actions_stays_with_the_user():
    @dataclasses.dataclass(frozen=True)
    class Naked(rl.TASKS["cart-pole"]):
        def observe(self, now):
            return now.q

    batch = rl.Batch(Naked(), 1)
    batch.reset(np.ones(1, dtype=bool))
    batch.observe()[:] = 7.0
    assert (batch.now.q != 7.0).all()
    action = np.zeros((1, 1))
    batch.step(action)
    action[:] = 7.0
    assert batch.now.action == 0.0


def test_a_pendulum_is_paid_at_the_limit_that_is_asked_for():
    env = gymnasium.make_vec(IDS["pendulum"], num_envs=1, max_episode_steps=3, pay="released", links=2)
    env.reset(seed=0)
    results = [env.step(np.zeros((1, 2))) for _ in range(3)]
    assert [bool(r[3][0]) for r in results] == [False, False, True]
    assert [r[4]["reward_end"][0] < 0 for r in results] == [False, False, True]


def test_a_mode_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(jg.InputError, match="human, rgb_array"):
        rl.Environment("hopper", render_mode="depth_array")


@pytest.mark.parametrize("count", [1, 2])
def test_the_browser_shows_what_happens(count):
    pytest.importorskip("viser", reason="the extra [view] is not installed")
    env = rl.Environment("cart-pole", render_mode="human")
    if count == 2:
        env = rl.VectorEnvironment("cart-pole", 2, render_mode="human", autoreset_mode="SameStep")
    env.reset(seed=0)
    viewer = env._window.viewer
    try:
        before = [links[0].position[0] for links in viewer.links]
        for _ in range(3):
            env.step(np.ones(env.action_space.shape))
        moved = [links[0].position[0] for links in viewer.links]
        assert len(moved) == count
        np.testing.assert_allclose(np.subtract(moved, viewer.offsets[:, 0]), env.batch.now.q[:, 0], atol=1e-6)
        assert np.abs(np.subtract(moved, before)).min() > 1e-4 and env.render() is None
    finally:
        env.close()
    assert viewer.is_stopped.is_set()


def test_pictures_follow_the_robot():
    env = gymnasium.make_vec(IDS["cart-pole"], num_envs=2, render_mode="rgb_array", width=64, height=48)
    env.reset(seed=0)
    pictures = env.render()
    assert len(pictures) == 2 and all(p.shape == (48, 64, 3) and p.dtype == np.uint8 for p in pictures)
    assert min(p.std() for p in pictures) > 5  # something is drawn
    env.unwrapped.batch.now.q[0] = [100.0, 0.0]
    assert env.render()[0].std() > 5
    single = gymnasium.make(IDS["cart-pole"], render_mode="rgb_array")
    single.reset(seed=0)
    assert single.render().shape == (480, 480, 3)


# stable-baselines3 ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def stable_baselines(monkeypatch):
    """The package, or where it is not installed its abstract class as far as an environment sees it."""
    try:
        import stable_baselines3  # noqa: F401
    except ModuleNotFoundError:
        stand_in = ModuleType("stable_baselines3.common.vec_env")

        class VecEnv:
            def __init__(self, num_envs, observation_space, action_space):
                self.num_envs, self.observation_space, self.action_space = num_envs, observation_space, action_space
                assert len(self.get_attr("render_mode")) == num_envs

            def step(self, actions):
                self.step_async(actions)
                return self.step_wait()

        stand_in.VecEnv = VecEnv
        for name in ("stable_baselines3", "stable_baselines3.common", stand_in.__name__):
            monkeypatch.setitem(sys.modules, name, stand_in)
        monkeypatch.delitem(sys.modules, "jointgrad.rl.stable_baselines", raising=False)
    yield rl.StableBaselinesEnvironments
    sys.modules.pop("jointgrad.rl.stable_baselines", None)


def test_stable_baselines_sees_last_observations_and_which_ends_were_of_time(stable_baselines):
    env = stable_baselines("hopper", 4, max_episode_steps=LIMIT)
    same, _ = both(AutoresetMode.SAME_STEP)
    env.seed(3)
    np.testing.assert_array_equal(env.reset(), same.reset(seed=3)[0])
    kinds = set()
    for _, action in zip(range(3 * LIMIT), actions(same, 1, scale=0.05), strict=False):
        seen, reward, done, infos = env.step(action)
        wanted = same.step(action)
        np.testing.assert_array_equal(seen, wanted[0])
        np.testing.assert_array_equal(reward, wanted[1])
        np.testing.assert_array_equal(done, wanted[2] | wanted[3])
        for k in np.flatnonzero(done):
            np.testing.assert_array_equal(infos[k]["terminal_observation"], wanted[4]["final_obs"][k])
            assert infos[k]["TimeLimit.truncated"] == (wanted[3][k] and not wanted[2][k])
            kinds.add(infos[k]["TimeLimit.truncated"])
        assert all("reward_forward" in info for info in infos)
    assert kinds == {True, False}


# the page ------------------------------------------------------------------------------------------------------------------


# blocks of the page that are run where a package is installed, by their first line
NEEDED = {"# stable-baselines3": "stable_baselines3", "# TorchRL": "torchrl", "# skrl": "skrl", "# RLlib": "ray"}


def test_the_page_runs_as_printed():
    pytest.importorskip("torch", reason="the extra [torch] is not installed")
    text = (Path(__file__).resolve().parents[1] / "docs" / "rl.md").read_text()
    blocks, known = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL), {"__name__": "page"}
    for block in blocks:
        needed = NEEDED.get(block.partition("\n")[0])
        if needed is None or importlib.util.find_spec(needed):
            exec(compile(block, "rl.md", "exec", dont_inherit=True), known)
    assert known["worth"].isfinite() and known["result"].reward.shape == (8,)
    assert all(parameter.grad.abs().max() > 0 for parameter in known["policy"].parameters())
    table = {
        name: (int(sees), int(acts))
        for name, sees, acts in re.findall(r"^\| `(\S+)` .* (\d+) \| (\d+) \|$", text, re.M)
    }
    for name, sizes in table.items():
        task = rl.make_task(name)
        assert (task.n_observations, task.model.nu) == sizes
    assert {*table, "pendulum"} == rl.TASKS.keys()
