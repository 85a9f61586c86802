"""Learning: the same bits for the same seed, also resumed; policies as files; and that something is learned."""

from __future__ import annotations

import dataclasses
import json
import time

import numpy as np
import pytest
import torch

import jointgrad as jg
import jointgrad.rl as rl
from jointgrad import cli
from jointgrad.model.errors import InputError
from jointgrad.rl.differentiable_batch import DifferentiableBatch
from jointgrad.rl.methods.shac import Learner, Shac
from jointgrad.rl.policy_file import load_policy
from jointgrad.rl.train import prepared, train

SMALL = {"environments": 8, "horizon": 4, "actor": (16, 8), "critic": (16,), "decay": 20}
SILENT = {"say": lambda text: None}


def learned(out, steps, seed=1, **changes):
    """A short run on the cart-pole; the bytes of its policy."""
    train("cart-pole", "shac", None, steps, seed, out, SMALL | changes, {"limit": 30}, count=2, **SILENT)
    return (out / "policy.safetensors").read_bytes()


# the same bits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"critics": 2, "entropy": -0.5}], ids=["shac", "sapo"])
def test_the_same_seed_gives_the_same_bits_also_resumed(tmp_path, changes):
    whole = learned(tmp_path / "whole", 640, **changes)
    assert learned(tmp_path / "again", 640, **changes) == whole
    assert learned(tmp_path / "other", 640, seed=2, **changes) != whole
    half = learned(tmp_path / "parts", 320, **changes)
    assert half != whole and learned(tmp_path / "parts", 640, **changes) == whole


def test_robots_that_differ_are_resumed_too():
    def after(updates, batch=None):
        task = rl.make_task("hopper", limit=10)
        found = DifferentiableBatch(task, 4, np.random.default_rng(3), rl.Randomisation(mass=0.2, gain=0.1))
        if batch is not None:
            found.restore(*batch.state())
        for _ in range(updates):
            found.step(torch.full((4, 3), 0.2))
        return found

    whole, parts = after(25), after(12, after(13))
    assert torch.equal(whole.now.q, parts.now.q) and torch.equal(whole.seen, parts.seen)


def test_another_run_in_the_folder_is_not_overwritten(tmp_path):
    learned(tmp_path, 64)
    with pytest.raises(InputError, match="another seed: choose another --out"):
        learned(tmp_path, 64, seed=5)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("checkpoint.safetensors", b"noise"),
        ("checkpoint.json", b"{}"),
        ("checkpoint.json", b"[1]"),
        ("checkpoint.json", b"x"),
    ],
)
def test_a_broken_checkpoint_is_refused_by_name(tmp_path, file, content):
    learned(tmp_path, 64)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=file):
        learned(tmp_path, 128)


# environments that begin anew ----------------------------------------------------------------------------------------------


def test_gradients_stop_where_an_episode_ends():
    task = rl.make_task("cart-pole", limit=3)
    batch = DifferentiableBatch(task, 2, np.random.default_rng(0), carry=0.0)
    batch.now = batch.now._replace(age=torch.tensor([2, 0]))
    push = torch.full((2, 1), 0.5, dtype=torch.float64, requires_grad=True)
    outcome = batch.step(push)
    assert outcome.over.tolist() == [True, False] and batch.now.age.tolist() == [0, 1]
    (gradient,) = torch.autograd.grad(batch.seen.sum(), push, retain_graph=True)
    assert gradient[0] == 0 and gradient[1] != 0
    # what the action was worth still knows it
    assert (torch.autograd.grad(outcome.observation.sum(), push)[0] != 0).all()


def test_a_robot_that_goes_on_keeps_its_state_and_gets_another_goal():
    task = rl.make_task("go2", limit=3)
    batch = DifferentiableBatch(task, 4, np.random.default_rng(0), carry=1.0)
    batch.now = batch.now._replace(age=torch.tensor([2, 0, 0, 0]))
    goal = batch.now.goal.clone()
    last = batch.step(torch.zeros(4, 12)).observation
    assert (batch.now.goal[0] != goal[0]).any() and torch.equal(batch.now.goal[1:], goal[1:])
    assert torch.equal(batch.seen[0, :9], last[0, :9]) and batch.now.age.tolist() == [0, 1, 1, 1]


def test_pushes_change_velocities_of_a_free_base_alone():
    task, rng = rl.make_task("ant"), np.random.default_rng(0)
    kicks = rl.Randomisation(push=0.5).kick(rng, task.model, 3000)
    pushed = kicks.any(1)
    assert 8 < pushed.sum() < 40 and np.abs(kicks).max() <= 0.5
    assert not kicks[:, 6:].any() and not kicks[:, 2].any()
    assert not rl.Randomisation(push=0.5).kick(rng, rl.make_task("hopper").model, 3000).any()
    with pytest.raises(InputError, match="push of Randomisation"):
        rl.Randomisation(push=-1.0)


# what is learned -----------------------------------------------------------------------------------------------------------


def test_an_ant_learns_to_run(tmp_path):
    """Doing nothing goes nowhere; 41 k actions are about five seconds of one core."""
    said = train("ant", "shac", None, 40 * 1024, 0, tmp_path, {}, {}, count=16, **SILENT)
    assert said["distance_mean"] > 10.0 and said["falls"] <= 2
    rows = (tmp_path / "curve.csv").read_text().splitlines()
    assert rows[0].startswith("update,env_steps,cpu_seconds") and (tmp_path / "curve.png").stat().st_size > 1000


def test_critics_learn_what_rewards_sum_to():
    """Of a task that always pays 1 it is known."""

    class Paid(rl.TASKS["cart-pole"]):
        def terms(self, before, now):
            return {"one": 0 * now.q[..., 0] + 1.0}

    task = Paid(limit=10_000)
    settings = dataclasses.replace(Shac(**SMALL), discount=0.9, decay=400, fits=8)
    learner = Learner(task, settings, 0)
    for _ in range(150):
        learner.update()
    worth = learner._value(learner.batch.seen.float()).detach()
    # 1 / (1 - 0.9)
    np.testing.assert_allclose(worth.numpy(), 10.0, rtol=0.1)


def test_whole_episodes_without_a_critic_are_a_special_case():
    training = prepared("pendulum", "apg", 0, {"environments": 4, "actor": (16,)}, {"limit": 20})
    assert training.settings.critics == 0 and training.settings.horizon == 20 and training.settings.discount == 1.0
    for _ in range(2):
        training.learner.update()
        # all at the end of one episode, none in the midst of another
        assert training.learner.batch.now.age.tolist() == [0, 0, 0, 0]


# files ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("learned")
    learned(out, 64)
    return out


def test_a_policy_is_the_same_without_torch(tmp_path):
    training = prepared("cart-pole", "shac", 0, SMALL, {})
    for _ in range(3):
        training.learner.update()
    from jointgrad.rl.policy_file import save_policy

    policy = training.learner.policy
    save_policy(tmp_path, training.task, {n: x.numpy() for n, x in policy.state_dict().items()}, (16, 8))
    seen = 3.0 * np.random.default_rng(0).standard_normal((50, 5))
    plain = load_policy(tmp_path)
    with torch.no_grad():
        np.testing.assert_allclose(plain(seen), policy(torch.from_numpy(seen)).numpy(), atol=2e-6)
    assert plain.differences == () and plain.task == training.task


def test_a_policy_is_the_same_in_onnx(folder):
    import onnxruntime

    policy, rng = load_policy(folder), np.random.default_rng(4)
    session = onnxruntime.InferenceSession(folder / "policy.onnx")
    # also farther from the mean than statistics are believed, and one environment alone
    for batch, wide in ((5, 1.0), (64, 30.0), (1, 0.0)):
        seen = wide * rng.standard_normal((batch, policy.task.n_observations))
        (found,) = session.run(None, {"observation": seen.astype(np.float32)})
        np.testing.assert_allclose(found, policy(seen), atol=1e-5)


def test_onnx_that_says_something_else_is_not_written(folder):
    from jointgrad.rl.onnx_file import as_onnx, check_equal

    policy = load_policy(folder)
    other = dataclasses.replace(
        policy, weights=dict(policy.weights) | {"statistics.mean": policy.weights["statistics.mean"] + 1}
    )
    with pytest.raises(ArithmeticError, match="is off by"):
        check_equal(policy, as_onnx(other))


def test_options_that_are_not_finite_come_back(tmp_path):
    from jointgrad.rl.policy_file import save_policy, shapes

    task = rl.make_task("hopper", healthy_z_range=(0.5, np.inf), limit=7)
    weights = {name: np.zeros(shape) for name, shape in shapes(task.n_observations, (4,), task.model.nu).items()}
    save_policy(tmp_path, task, weights, (4,))
    assert load_policy(tmp_path).task == task


def copied(folder, to, **about):
    said = json.loads((folder / "policy.json").read_text()) | about
    (to / "policy.json").write_text(json.dumps(said))
    (to / "policy.safetensors").write_bytes((folder / "policy.safetensors").read_bytes())
    return to


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"format": "jointgrad policy 9"}, "does not say"),
        ({"task": "fly"}, "fly"),
        ({"task": 3}, "task"),
        ({"options": {"wings": 2}}, "wings"),
        ({"task": "pendulum", "options": {"links": 10**9}}, "links"),
        ({"options": {"limit": {"a": 1}}}, "limit"),
        ({"hidden": [10**9]}, "hidden layers"),
        ({"hidden": ["__import__('os')"]}, "hidden layers"),
        ({"hidden": [16, 9]}, "must be floats of shape"),
        ({"n_observations": 7}, "sees and acts"),
        ({"settings": None}, "settings"),
    ],
    ids=str,
)
def test_policies_of_strangers_are_refused_in_one_sentence(folder, tmp_path, about, said):
    with pytest.raises(InputError, match=said):
        load_policy(copied(folder, tmp_path, **about))


@pytest.mark.parametrize("weights", [b"", b"\xff" * 64, b"\x80\x04\x95pickle"], ids=["empty", "noise", "pickle"])
def test_weights_of_strangers_are_refused(folder, tmp_path, weights):
    copied(folder, tmp_path)
    (tmp_path / "policy.safetensors").write_bytes(weights)
    with pytest.raises(InputError, match="no safetensors file"):
        load_policy(tmp_path)


def test_weights_that_are_not_numbers_are_refused(folder, tmp_path):
    from safetensors.numpy import load_file, save_file

    copied(folder, tmp_path)
    arrays = load_file(folder / "policy.safetensors")
    arrays["layers.0.weight"][0, 0] = np.nan
    save_file(arrays, tmp_path / "policy.safetensors")
    with pytest.raises(InputError, match="not finite"):
        load_policy(tmp_path)


# the command line ----------------------------------------------------------------------------------------------------------


def test_a_policy_is_played_and_can_be_seen_again(folder, capsys):
    assert cli.main(["play", str(folder), "--episodes", "3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["task"] == "cart-pole" and said["episodes"] == 3 and said["differences"] == []
    from jointgrad.viewer.replay import load_run

    assert load_run(said["replay"]).q.shape[1] == 3


def test_it_is_said_where_the_task_is_another_one(folder, tmp_path, capsys):
    settings = json.loads((folder / "policy.json").read_text())["settings"] | {"dt": 0.004, "digest": "0"}
    assert cli.main(["play", str(copied(folder, tmp_path, settings=settings)), "--episodes", "1"]) == 0
    out = capsys.readouterr().out
    assert "not what the policy learned with: dt was 0.004, and is 0.005" in out and "digest" in out


def test_a_summary_has_what_was_promised(tmp_path, capsys):
    small = ["environments=8", "horizon=4", "actor=[16,8]", "critic=[16]"]
    command = ["train", "cart-pole", "--steps", "64", "--seed", "3", "--out", str(tmp_path), "--json"]
    assert cli.main([*command, "--set", *small, "--options", "limit=20"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads((tmp_path / "summary.json").read_text())
    keys = {"task", "method", "seed", "env_steps", "seconds", "cpu_seconds", "return_mean", "distance_mean", "episodes"}
    assert keys | {"falls"} <= said.keys() and said["env_steps"] == 64 and said["options"] == {"limit": 20}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "cart-pole"], "--seconds or --steps"),
        (["train", "cart", "--steps", "8"], "cart-pole"),
        (["train", "cart-pole", "--steps", "8", "--set", "horizn=4"], "horizon"),
        (["train", "cart-pole", "--steps", "8", "--set", "horizon"], "NAME=VALUE"),
        (["train", "cart-pole", "--seconds", "-1"], "--seconds"),
    ],
    ids=str,
)
def test_what_cannot_be_learned_is_said_in_one_line(tmp_path, capsys, arguments, said):
    assert cli.main([*arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_folder_without_a_policy(tmp_path, capsys):
    assert cli.main(["play", str(tmp_path)]) == 2
    assert "there is no policy" in capsys.readouterr().err


# the page ------------------------------------------------------------------------------------------------------------------


def test_a_page_moves_the_robot_takes_commands_saves_and_ends(tmp_path):
    from jointgrad.rl.live import LivePage

    training, saved = prepared("go2", "shac", 0, SMALL, {}), []
    page = LivePage(training.task, port=8190)
    try:
        page.save = lambda: saved.append(training.learner.updates)
        page.press("forward", 1)
        page.press("turning", -1)
        assert (page.commands["forward"].value, page.commands["turning"].value) == (0.75, -0.2)
        for _ in range(10):
            page.press("sideways", 1)
        assert page.commands["sideways"].value == 0.3  # the end of its range
        is_on = page.told(5, [{"cpu_seconds": 1.0, "return_mean": 2.0, "env_steps": 32}], training.plain_policy)
        assert is_on and page.policy.task is training.task and "32 actions" in page.said.content
        while page.batch.now.age[0] < 5:
            time.sleep(0.05)
        assert page.batch.now.goal[0, :3].tolist() == [0.75, 0.3, -0.2]
        page.ask_to_save()
        page.end()
        assert not page.told(6, [], training.plain_policy) and saved == [0]
    finally:
        page.stop()
    assert page.cpu_seconds > 0


def test_robots_of_their_own_come_several_times():
    task = rl.make_task("hopper")
    batch = DifferentiableBatch(task, 2, np.random.default_rng(3), rl.Randomisation(mass=0.4))
    now = batch.now._replace(
        **{n: getattr(batch.now, n).repeat_interleave(3, 0) for n in ("q", "qd", "action", "age", "goal")}
    )
    several = batch.layer.repeated(3).moved(now, torch.full((6, 3), 0.5))
    once = batch.layer.moved(batch.now, torch.full((2, 3), 0.5))
    assert torch.equal(several.q, once.q.repeat_interleave(3, 0)) and not torch.equal(once.qd[0], once.qd[1])


def test_actions_arrive_late_and_alike_in_both_batches():
    task, randomise = rl.make_task("hopper"), rl.Randomisation(latency=0.9)
    ours = rl.Batch(task, 5, randomise, threads=1)
    ours.generators = [np.random.default_rng(k) for k in range(5)]
    ours.reset(np.ones(5, dtype=bool))
    assert len(set(ours._delays.tolist())) > 2 and ours._delays.max() <= task.hold
    before = ours.now._replace(action=np.full((5, 3), -0.5))
    ours.now = before
    ours.step(np.full((5, 3), 0.5))
    # the same by hand: so many steps under the action before, the rest under the new one
    for k, delay in enumerate(ours._delays):
        u = np.repeat([[-0.5] * 3, [0.5] * 3], [delay, task.hold - delay], 0)
        last = jg.rollout(task.model, jg.State(before.q[k], before.qd[k]), u).last
        np.testing.assert_allclose(ours.now.q[k], last.q, rtol=1e-12, atol=1e-12)
    layer = rl.DifferentiableTask(task)
    now = before._replace(**{n: torch.tensor(getattr(before, n)) for n in ("q", "qd", "action", "age", "goal")})
    action = torch.full((5, 3), 0.5, dtype=torch.float64, requires_grad=True)
    moved = layer.moved(now, action, torch.from_numpy(ours._delays))
    np.testing.assert_allclose(moved.q.detach(), ours.now.q, rtol=1e-12, atol=1e-12)
    slope = torch.autograd.grad(moved.qd.sum(), action)[0]
    assert (slope.any(1).numpy() == (ours._delays < task.hold)).all()
