"""Soft actor-critic, its model and its two enhancements: pieces against formulas written by hand, bits, learning."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import jointgrad.rl as rl
from jointgrad.model.errors import InputError
from jointgrad.rl.methods import METHODS, checkpoint
from jointgrad.rl.methods.ensemble import Ensemble, Fitting
from jointgrad.rl.methods.mbpo import Mbpo
from jointgrad.rl.methods.networks import GaussianPolicy, Stacked
from jointgrad.rl.methods.pool import Pool
from jointgrad.rl.methods.sac import Sac
from jointgrad.rl.slopes import repeated, slopes
from jointgrad.rl.train import prepared

SMALL = {
    "actor": (16, 16), "critic": (16, 16), "batch": 16, "first": 20, "period": 10, "repeats": 1, "every": 2, "tried": 1,
}  # fmt: skip
MODEL = {"members": 3, "elites": 2, "model": (16,), "passes": 2, "starts": 40, "refit": 20, "lengths": (0, 40, 1, 3)}


def settings_of(name, **changes):
    return METHODS[name].made(
        rl.make_task("pendulum"), {}, {**SMALL, **(MODEL if name.startswith("mbpo") else {}), **changes}
    )


def learner_of(name, task=None, seed=0, **changes):
    return METHODS[name].learner_class()(task or rl.make_task("pendulum", links=2), settings_of(name, **changes), seed)


def after(learner, updates):
    for _ in range(updates):
        learner.update()
    return learner


# networks ------------------------------------------------------------------------------------------------------------------


def test_stacked_networks_are_networks_side_by_side():
    torch.manual_seed(0)
    stacked, x = Stacked(3, (4, 8, 2)), torch.randn(5, 4)
    for k in range(3):
        (w0, w1), (b0, b1) = ([p[k] for p in parts] for parts in (stacked.weights, stacked.biases))
        torch.testing.assert_close(stacked(x)[k], torch.relu(x @ w0 + b0) @ w1 + b1)
    own = torch.randn(3, 5, 4)
    torch.testing.assert_close(stacked(own)[1], stacked(own[1])[1])


def test_likelihood_of_squeezed_actions_is_that_of_torch():
    from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

    torch.manual_seed(0)
    policy = GaussianPolicy(3, (8,), -torch.ones(2), torch.ones(2)).double()
    seen, noise = torch.randn(50, 3).double(), torch.randn(50, 2).double()
    share, likely = policy(seen, noise)
    mean, log_deviation = policy.layers(seen).chunk(2, -1)
    truth = TransformedDistribution(Normal(mean, log_deviation.clamp(-5, 2).exp()), TanhTransform(cache_size=0))
    torch.testing.assert_close(likely, Independent(truth, 1).log_prob(share))
    torch.testing.assert_close(policy.played((8,)).double()(seen), torch.tanh(mean), rtol=1e-5, atol=1e-6)


def test_a_pool_forgets_the_oldest_and_comes_back():
    pool = Pool(5, {"x": (2,), "y": ()})
    for k in range(7):
        pool.add(x=torch.full((1, 2), float(k)), y=torch.tensor([float(k)]))
    assert len(pool) == 5 and sorted(pool.all()["y"].tolist()) == [2, 3, 4, 5, 6]
    pool.add(x=torch.zeros(12, 2), y=torch.arange(12.0))
    assert sorted(pool.all()["y"].tolist()) == [7, 8, 9, 10, 11]
    other = Pool(5, {"x": (2,), "y": ()})
    other.restore(pool.state())
    assert torch.equal(other.all()["y"], pool.all()["y"]) and other.added == pool.added
    other.add(x=torch.ones(0, 2), y=torch.ones(0))
    assert len(other) == 5


# the model -----------------------------------------------------------------------------------------------------------------


def test_a_model_learns_means_and_widths():
    """y = 2 x + noise whose deviation is 0.1 on one side and 0.5 on the other."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    x = 2.0 * torch.rand(2000, 1, generator=generator) - 1.0
    y = 2.0 * x + torch.where(x > 0, 0.5, 0.1) * torch.randn(2000, 1, generator=generator)
    model = Ensemble(4, 1, (32, 32), 1)
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    model.fit(x, y, optimiser, generator, Fitting(128, 20, 60))
    mean, width = (v.detach()[model.order[:2]].mean(0) for v in model(torch.tensor([[-0.5], [0.5]])))
    np.testing.assert_allclose(mean[:, 0], [-1.0, 1.0], atol=0.12)
    np.testing.assert_allclose((0.5 * width[:, 0]).exp(), [0.1, 0.5], rtol=0.35)
    drawn = model.drawn(torch.full((4000, 1), 0.5), 2, generator)
    assert drawn.std().item() == pytest.approx(0.5, rel=0.3)
    errors = model.errors(x, y)
    assert errors[model.order[0]] <= 1.05 * errors.min()


def test_loss_of_the_model_is_the_likelihood_with_its_prices():
    torch.manual_seed(1)
    model, x, y = Ensemble(2, 3, (4,), 2), torch.randn(2, 6, 3), torch.randn(2, 6, 2)
    mean, width = model(x)
    truth = -2 * torch.distributions.Normal(mean, (0.5 * width).exp()).log_prob(y) - np.log(2 * np.pi)
    size = sum(0.5 * p * (w * w).sum() for p, w in zip((2.5e-5, 1e-4), model.layers.weights, strict=True))
    prices = 0.01 * (model.widest.sum() - model.narrowest.sum()) + size
    torch.testing.assert_close(model.loss(x, y), truth.mean((1, 2)).sum() + prices)


def test_motions_of_the_model_grow_and_end():
    task = rl.make_task("pendulum", limit=30)
    learner = after(learner_of("mbpo", task, limit_ends=True), 6)
    assert learner.length() == 3
    rows = learner.imagined.all()
    assert len(learner.imagined) > 40 and torch.isfinite(rows["after"]).all()
    over = rows["seen"][:, -1] > 1.0
    assert not over.any() and (rows["ended"] == (rows["after"][:, -1] > 1 - 0.5 / 30)).all()
    with pytest.raises(InputError, match="over_as_seen"):
        rl.make_task("hopper").over_as_seen(np.zeros((2, 11)))


# soft actor-critic ---------------------------------------------------------------------------------------------------------


def written_by_hand(learner, rows, noise):
    """Critic loss of the paper, network by network."""
    s, (w, b) = learner.settings, (learner.asked.weights, learner.asked.biases)
    share, likely = learner.actor(rows["after"], noise)
    x = torch.cat((rows["after"], share), 1)
    both = [
        (torch.relu(torch.relu(x @ w[0][k] + b[0][k]) @ w[1][k] + b[1][k]) @ w[2][k] + b[2][k])[:, 0] for k in (0, 1)
    ]
    worth = torch.minimum(*both) - learner.log_price.exp() * likely
    worth = (rows["reward"] + s.discount * (1 - rows["ended"]) * worth).detach()
    now = learner.critics(torch.cat((rows["seen"], rows["share"]), 1))[..., 0]
    return sum(torch.nn.functional.mse_loss(q, worth) for q in now) / 2


def test_losses_are_those_written_by_hand():
    learner = after(learner_of("sac", discount=0.9), 3)
    rows, state = learner.real.at(torch.arange(12)), learner.generator.get_state()
    rows["ended"][::3] = 1.0
    found, _ = learner.critic_loss(rows)
    learner.generator.set_state(state)
    torch.testing.assert_close(found, written_by_hand(learner, rows, learner._noise(12)))
    learner.generator.set_state(state)
    loss, likely = learner.actor_loss(rows)
    learner.generator.set_state(state)
    share, again = learner.actor(rows["seen"], learner._noise(12))
    worth = learner.critics(torch.cat((rows["seen"], share), 1))[..., 0].amin(0)
    torch.testing.assert_close(loss, (learner.log_price.exp() * again - worth).mean().detach() + 0 * loss)
    torch.testing.assert_close(likely, again.detach())


def test_the_price_of_entropy_rises_where_there_is_too_little():
    for wanted, sign in ((5.0, 1), (-50.0, -1)):
        learner = learner_of("sac", entropy=wanted)
        before = learner.log_price.item()
        after(learner, 4)
        assert sign * (learner.log_price.item() - before) > 0


# slopes --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pendulum", "ant"])
def test_slopes_are_those_of_differences(name):
    options = {"ant": {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0}, "pendulum": {"links": 2}}[
        name
    ]
    task = rl.make_task(name, **options)
    layer, rng = rl.DifferentiableTask(task), np.random.default_rng(0)
    now = layer.start(rng, 2)
    for _ in range(20 if name == "ant" else 2):
        now = layer.step(now, torch.zeros(2, task.model.nu)).now
    action = torch.from_numpy(0.3 * rng.uniform(-1, 1, (2, task.model.nu)))
    found = slopes(layer, now, action, with_state=True)
    n, nq = task.n_observations, task.model.nq

    def outcome(q, qd, action):
        step = layer.step(now._replace(q=q, qd=qd), action)
        return torch.cat((step.observation, step.reward[:, None], step.now.q, step.now.qd), 1)

    assert found.by_action.shape == (2, n + 1 + nq + task.model.nv, task.model.nu)
    for _ in range(3):
        u, dv = (torch.from_numpy(rng.standard_normal(x.shape)) for x in (action, now.qd))
        e = 1e-6
        by_u = (outcome(now.q, now.qd, action + e * u) - outcome(now.q, now.qd, action - e * u)) / (2 * e)
        torch.testing.assert_close(torch.einsum("eru,eu->er", found.by_action, u), by_u, rtol=1e-4, atol=1e-4)
        by_v = (outcome(now.q, now.qd + e * dv, action) - outcome(now.q, now.qd - e * dv, action)) / (2 * e)
        torch.testing.assert_close(torch.einsum("erx,ex->er", found.by_state[..., nq:], dv), by_v, rtol=1e-4, atol=1e-4)


def test_the_enhanced_actor_follows_the_simulation(monkeypatch):
    """Equation 13 against differences: dQ/da of Q(s, a) = r(s, a) + discount V(s'(s, a)), simulated and judged by the critics."""
    task = rl.make_task("pendulum", links=2)
    learner = after(learner_of("sac-policy", task, discount=0.9), 4)
    for network in (learner.actor, learner.asked):
        network.double()
    monkeypatch.setattr(learner, "_noise", lambda n: torch.zeros(n, 2, dtype=torch.float64))
    layer = rl.DifferentiableTask(task)
    now = layer.start(np.random.default_rng(0), 3)
    action = torch.from_numpy(np.random.default_rng(1).uniform(-0.8, 0.8, (3, 2)))

    def worth(action):
        step = layer.step(now, action)
        return step.reward + 0.9 * learner.to_come(step.observation, learner._noise(3)).detach()

    learner.batch.layer = layer
    rows = {"after": layer.step(now, action).observation, "ended": torch.zeros(3), **learner._slopes(now, action)}
    found = learner.slope(rows)
    for k in range(2):
        e = torch.zeros(3, 2, dtype=torch.float64)
        e[:, k] = 1e-5
        truth = (worth(action + e) - worth(action - e)) / 2e-5
        torch.testing.assert_close(found[:, k], truth, rtol=1e-4, atol=1e-5)
    rows["ended"] = torch.ones(3)
    torch.testing.assert_close(learner.slope(rows), rows["reward_by_action"])


def test_the_enhanced_loss_pulls_actions_along_slopes():
    """Equations 14 and 16: the gradient by the action is -w dQ/da, with w = exp(-|a - a0|) a constant."""
    learner = after(learner_of("mbpo-policy"), 4)
    rows = learner.real.draw(torch.Generator().manual_seed(0), 8)
    state = learner.generator.get_state()
    learner.log_price.data.fill_(-50.0)  # entropy for nothing
    loss, _ = learner.enhanced_loss(rows)
    got = torch.autograd.grad(loss, list(learner.actor.parameters()))
    learner.generator.set_state(state)
    slope = learner.slope(rows)
    drawn = learner.actor(rows["seen"], learner._same_noise(rows["noise"]))
    weight = torch.exp(-(drawn.share - rows["share"]).norm(dim=1)).detach()
    pull = -(weight[:, None] * slope) / 8
    truth = torch.autograd.grad(drawn.share, list(learner.actor.parameters()), pull)
    for a, b in zip(got, truth, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-7)


# neighbours ----------------------------------------------------------------------------------------------------------------


def made(name, radius, task=None, **changes):
    """A learner, and the rows that neighbours of its next action give."""
    learner = learner_of("sac", task, extra=64, radius=radius, tolerance=None, **changes)
    after(learner, 1)
    before = repeated(learner.batch.now, 1)
    learner.real.clear()
    learner._try()
    rows = learner.real.all()
    return learner, before, {n: x[1:] for n, x in rows.items()}, {n: x[0] for n, x in rows.items()}


@pytest.mark.parametrize("changes", [{}, {"extra_state": True}], ids=["action", "state"])
def test_neighbours_are_what_the_simulator_says_to_first_order(changes):
    """A tenth of the radius makes a hundredth of the error."""
    errors = []
    for radius in (0.3, 0.03):
        learner, before, rows, _ = made("sac", radius, **changes)
        layer, copies = learner.batch.layer.repeated(64), repeated(before, 64)
        if changes:
            copies = learner.neighbours._moved(before)
            torch.testing.assert_close(rows["seen"], learner.task.observe(copies).float(), rtol=1e-5, atol=1e-5)
        truth = layer.step(copies, rows["share"].double())
        errors.append((truth.observation - rows["after"]).norm(dim=1).median().item())
        assert (rows["share"].abs() <= 1).all() and (rows["share"] != rows["share"][0]).any()
    assert errors[1] < 0.03 * errors[0]


def test_neighbours_as_released_move_one_coordinate():
    learner, before, rows, own = made("sac", 0.01, extra_kind="row")
    moved = (rows["after"] != own["after"]).sum(1)
    assert (moved <= 1).all() and moved.float().mean() > 0.5
    J = slopes(learner.batch.layer, before, own["share"][None]).by_action[0].float()
    n = learner.task.n_observations
    by = rows["share"] - own["share"]
    truth = (n * J[:-1]).clamp(-10, 10) @ by.T
    change = rows["after"] - own["after"]
    row = change.abs().argmax(1)
    some = moved > 0
    got, wanted = change[some, row[some]], truth[row[some], torch.arange(len(row))[some]]
    torch.testing.assert_close(got, wanted, rtol=1e-2, atol=2e-6)


def test_neighbours_with_other_contacts_are_left_out():
    """An ant that is about to land: with deviations of 0.3 m/s some of its feet touch earlier, some later."""
    task = rl.make_task("ant", include_cfrc_ext_in_observation=False, contact_cost_weight=0.0)
    learner = learner_of("sac", task, extra=32, extra_state=True, radius=0.3, tolerance=None, first=1000)
    left_out = [learner.update()["left_out"] for _ in range(2)]
    assert 0.05 < max(left_out) < 1.0
    smaller = learner_of("sac", task, extra=32, extra_state=True, radius=1e-4, tolerance=None, first=1000)
    assert max(smaller.update()["left_out"] for _ in range(2)) < 0.5 * max(left_out)


def test_the_radius_goes_where_slopes_err_as_much_as_they_may():
    learner = learner_of(
        "sac", rl.make_task("pendulum", links=3), extra=8, extra_state=True, tolerance=0.02, first=10_000
    )
    said = [learner.update() for _ in range(30)]
    assert said[-1]["error"] == pytest.approx(0.02, rel=0.5) and 1e-3 < said[-1]["radius"] < 0.5


def test_deviations_are_carried_on():
    """The second sample of a chain starts where the first ended."""
    learner = learner_of("sac", extra=4, extra_steps=3, radius=0.05, tolerance=None, first=1000, period=1)
    after(learner, 1)
    first = learner.real.all()
    after(learner, 1)
    second = {n: x[5:] for n, x in learner.real.all().items()}
    torch.testing.assert_close(second["seen"][1:], first["after"][1:5])
    assert (second["seen"][1:] != second["seen"][0]).any()
    after(learner, 1)
    assert learner.neighbours.carried.item() == 0 and not learner.neighbours.deviation.any()


# bits, and learning --------------------------------------------------------------------------------------------------------

VARIANTS = {
    "sac": {}, "sac-policy": {}, "mbpo": {}, "mbpo-policy": {}, "mbpo-row": {},
    "mbpo-samples": {"extra_steps": 2, "extra_state": True},
}  # fmt: skip


@pytest.mark.parametrize(("name", "changes"), VARIANTS.items(), ids=list(VARIANTS))
def test_the_same_bits_also_resumed(name, changes):
    def learner(seed=0):
        return learner_of(name, rl.make_task("pendulum", limit=15), seed, limit_ends=True, **changes)

    def bits(learner):
        return torch.cat([x.flatten() for x in learner.policy.state_dict().values()])

    half, other = after(learner(), 4), learner()
    checkpoint.restore(other, *checkpoint.state_of(half))
    whole = bits(after(learner(), 7))
    assert torch.equal(bits(after(other, 3)), whole)
    assert not torch.equal(bits(after(learner(1), 7)), whole) and torch.isfinite(whole).all()


def test_both_enhancements_at_once_are_refused():
    with pytest.raises(InputError, match="choose one"):
        Sac(gradient="simulation", extra=9)
    with pytest.raises(InputError, match="gradient must be one of"):
        Mbpo(gradient="simulator")


def test_whole_episodes_bring_a_pendulum_to_the_top():
    """0.5 is the most there is (table 4, n = 1)."""
    from jointgrad.rl.play import episodes

    training = prepared("pendulum", "apg", 0, {"environments": 4, "rate": 2e-3, "noise": 0.05, "actor": (32, 32)}, {})
    for _ in range(40):
        training.learner.update()
    assert episodes(training.task, training.learner.policy, 1, 0).returns[0] > 0.99 * 0.5


# options of the short horizon ----------------------------------------------------------------------------------------------


def short(**changes):
    from jointgrad.rl.methods.shac import Learner, Shac

    settings = Shac(**{"environments": 16, "horizon": 8, "actor": (16,), "critic": (16,), "decay": 50, **changes})
    return Learner(rl.make_task("cart-pole", limit=40), settings, 0)


def test_signs_of_slopes_are_right_over_small_changes():
    from jointgrad.rl.methods.horizons import longest, right_signs

    learner = short()
    start = repeated(learner.batch.now, 1)
    way = torch.from_numpy(np.random.default_rng(0).choice([-1.0, 1.0], (16, 1)))
    small = right_signs(learner.batch.layer, start, learner.actor, (2, 8), 1e-4 * way)
    assert min(small.values()) >= 0.9
    assert longest({2: 0.99, 8: 0.95, 16: 0.6}, 0.9) == 8 and longest({2: 0.5, 8: 0.4}, 0.9) == 2


def test_the_horizon_is_chosen_and_said():
    learner = short(measured=(2, 4, 8), again=3)
    said = [learner.update() for _ in range(4)]
    assert {row["horizon"] for row in said} <= {2.0, 4.0, 8.0}
    for bound, grows in ((1e9, True), (1e-3, False)):
        learner = short(stiffest=bound)
        learner.reach = torch.tensor(5.0)
        said = [learner.update()["horizon"] for _ in range(3)]
        assert said == ([5.0, 6.0, 7.0] if grows else [2.0, 2.0, 2.0]) or (grows and said[-1] > 5.0)


def test_stiffness_is_the_largest_stretch_of_a_step():
    from jointgrad.rl.methods.horizons import stiffness

    learner = short()
    before, action = repeated(learner.batch.now, 1), torch.zeros(16, 1)
    found = stiffness(learner.batch.layer, before, action)
    e, stretched = 1e-6, []
    for direction in torch.eye(4, dtype=torch.float64):
        moved = before._replace(q=before.q + e * direction[:2], qd=before.qd + e * direction[2:])
        two = [learner.batch.layer.step(m, action).now for m in (before, moved)]
        stretched.append(torch.cat((two[1].q - two[0].q, two[1].qd - two[0].qd), 1) / e)
    truth = torch.linalg.matrix_norm(torch.stack(stretched, 2), 2).mean().item()
    assert found == pytest.approx(truth, rel=1e-4)


def test_gradients_end_where_the_horizon_does():
    """Without discount and critic the loss is the sum of rewards however it is cut; its gradient is not."""
    losses, grads = [], []
    for reach in (8.0, 1.0):
        learner = short(critics=0, discount=1.0)
        learner.reach = torch.tensor(reach)
        losses.append(learner._tried()[0])
        grads.append(torch.autograd.grad(losses[-1], list(learner.actor.parameters())[-1])[0])
    torch.testing.assert_close(losses[0], losses[1])
    assert not torch.allclose(grads[0], grads[1], rtol=1e-3) and grads[1].abs().max() > 0


@pytest.mark.parametrize(
    "changes", [{"mixed": True, "spread": False}, {"regress": 2, "critics": 0}], ids=["mixed", "pods"]
)
def test_options_of_the_actor_keep_bits_and_learn(changes):
    one, two, other = short(**changes), short(**changes), short(**changes)
    after(one, 2)
    checkpoint.restore(two, *checkpoint.state_of(after(other, 1)))
    after(two, 1)
    assert all(torch.equal(a, b) for a, b in zip(one.actor.parameters(), two.actor.parameters(), strict=True))


def test_mixing_follows_noise_where_slopes_are_wild():
    learner = short(mixed=True, spread=False, critics=1)
    _, horizon, _ = learner._tried()
    trace, worth = learner._traces[0], learner._worth(horizon)
    bar = 1e9 * torch.randn(16, 1)
    (got,) = torch.autograd.grad(trace.raw, trace.raw, bar, retain_graph=True)
    by_noise = -(worth[0] - worth[0].mean())[:, None] * trace.drawn / trace.deviation / learner.settings.steps()
    torch.testing.assert_close(got, by_noise, rtol=1e-3, atol=1e-6)
    (got,) = torch.autograd.grad(trace.raw, trace.raw, torch.full((16, 1), 3.0), retain_graph=True)
    torch.testing.assert_close(got, torch.full((16, 1), 3.0))


def test_actions_that_are_bettered_are_learned():
    """Whole episodes by regression bring the pendulum up, too."""
    from jointgrad.rl.play import episodes

    training = prepared("pendulum", "pods", 0, {"environments": 4, "actor": (32, 32), "decay": 60}, {})
    before = episodes(training.task, training.learner.policy, 1, 0).returns[0]
    for _ in range(30):
        training.learner.update()
    assert before < 0.1 and episodes(training.task, training.learner.policy, 1, 0).returns[0] > 0.4


@pytest.mark.parametrize("changes", [{"mixed": True}, {"measured": (4, 64)}], ids=str)
def test_options_that_do_not_go_together_are_refused(changes):
    with pytest.raises(InputError, match=next(iter(changes))):
        short(**changes)
