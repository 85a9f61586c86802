"""Sample enhancement (Qiao 2021, section 5): samples about one that was tried, by the slopes of the simulation there.

a_k = a + da, s'_k = s' + ds'/dx dx + ds'/da da, r_k likewise, where x is the state before. Beyond the paper: the state may
deviate too, deviations may be carried on over several actions, and every sample is held against the simulator, which costs a step
without gradients. Those whose contacts are others than those of the sample they are made about are left out, and the radius of
the deviations is led to where slopes err by a given share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...engine.run.outputs import LOADS
from ...engine.run.tangent_coordinates import coordinates, turn_basis
from ...model.errors import InputError
from ..differentiable import DifferentiableTask
from ..differentiable_batch import Outcome
from ..slopes import repeated, slopes
from ..task import Moment, Task

CLIP = 10.0  # of slopes, in the released code
PACE, LEAST, MOST = 1.02, 1e-4, 0.5  # of the radius: its change after an action, and its bounds


class Known(NamedTuple):
    """What the simulator says of deviations, (environments, extra, ...): observations, rewards, whether contacts are the same."""

    after: Tensor
    reward: Tensor
    is_same: Tensor


class Neighbours:
    """Makes them; carries the radius, and deviations (environments, extra, ...) of state and observation to the next action."""

    def __init__(self, task: Task, settings: Any, layer: DifferentiableTask) -> None:
        self.task, self.settings, self.layer = task, settings, layer
        if settings.extra_state and any(name in LOADS for name in task.outputs):
            raise InputError("extra_state needs a task that sees no contact forces: a state alone does not have them")
        self.radius = torch.tensor(settings.radius)
        shape = settings.environments, settings.extra
        self.deviation = torch.zeros(*shape, task.model.nq + task.model.nv, dtype=torch.float64)
        self.seen_deviation = torch.zeros(*shape, task.n_observations, dtype=torch.float64)
        self.carried = torch.zeros(settings.environments, dtype=torch.int64)
        self._counts = torch.zeros(4)  # samples made, left out, sums of errors, actions

    def numbers(self) -> dict[str, float]:
        """Of all that was made since this was last asked."""
        made, out, errors, actions = self._counts.tolist()
        self._counts = torch.zeros(4)
        return {"radius": self.radius.item(), "left_out": out / max(made, 1), "error": errors / max(actions, 1)}

    @torch.no_grad()
    def made(
        self, before: Moment, outcome: Outcome, share: Tensor, action: Tensor, ended: Tensor, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Rows for a pool."""
        s = self.settings
        low, high = (torch.tensor(x) for x in self.task.action_limits)
        drawn = 2.0 * torch.rand(*self.deviation.shape[:2], share.shape[-1], generator=generator) - 1.0
        near = (share[:, None] + self.radius * drawn).clamp(-1.0, 1.0)
        by = (near - share[:, None]).double() * 0.5 * (high - low)
        if s.extra_kind == "row":
            after, reward = self._by_row(before, outcome, action, by, generator)
            seen, keeps = self._copied(self.task.observe(before)), torch.ones(reward.shape, dtype=torch.bool)
        else:
            seen, after, reward, keeps = self._by_slopes(before, outcome, action, by, generator)
        self._counts += torch.tensor([keeps.numel(), (~keeps).sum(), 0.0, 0.0])
        row = {
            "seen": seen,
            "share": near,
            "reward": reward,
            "after": after,
            "ended": ended[:, None].expand(*keeps.shape),
        }
        return {name: x[keeps] for name, x in row.items()}

    def _copied(self, x: Tensor) -> Tensor:
        return x[:, None].expand(-1, self.settings.extra, -1)

    # as released --------------------------------------------------------------------------------------------------------

    def _by_row(
        self, before: Moment, outcome: Outcome, action: Tensor, by: Tensor, generator: Any
    ) -> tuple[Tensor, Tensor]:
        """One coordinate of the observation moves, by its row of the Jacobian times the number of rows."""
        found, n = slopes(self.layer, before, action).by_action, self.task.n_observations
        row = torch.randint(n, by.shape[:2], generator=generator)
        picked = (n * found[torch.arange(len(row))[:, None], row]).clamp(-CLIP, CLIP)
        moved = torch.zeros(*row.shape, n, dtype=by.dtype).scatter_(
            2, row[..., None], (picked * by).sum(-1, keepdim=True)
        )
        reward = outcome.reward[:, None] + (by * found[:, -1].clamp(-CLIP, CLIP)[:, None]).sum(-1)
        return self._copied(outcome.observation) + moved, reward

    # by the whole Jacobian ----------------------------------------------------------------------------------------------

    def _by_slopes(
        self, before: Moment, outcome: Outcome, action: Tensor, by: Tensor, generator: Any
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Observations before and after, rewards, and which of them to keep."""
        s, n = self.settings, self.task.n_observations
        seen = self._begun(before, generator)
        known = self._known(before, action, by)
        is_linear, carries = s.extra_kind == "full", s.extra_steps > 1
        moved = torch.zeros(*by.shape[:2], n + 1, dtype=by.dtype)
        if is_linear or carries:
            found = slopes(self.layer, before, action, carries)
            moved = torch.einsum("erx,ekx->ekr", found.by_state, self.deviation)
            moved = moved + torch.einsum("eru,eku->ekr", found.by_action, by)
        after = self._copied(outcome.observation) + moved[..., :n]
        reward = outcome.reward[:, None] + moved[..., n]
        if is_linear:
            self._measure(after, known, outcome)
        else:
            after, reward = known.after, known.reward
        if carries:
            self._carry(moved[..., n + 1 :], after - self._copied(outcome.observation), known.is_same, outcome.over)
        return seen, after, reward, known.is_same

    def _begun(self, before: Moment, generator: Any) -> Tensor:
        """Observations of deviating states; where nothing is carried on, states deviate anew."""
        seen = self._copied(self.task.observe(before)) + self.seen_deviation
        fresh = self.carried == 0
        if not self.settings.extra_state or not fresh.any():
            return seen
        self.deviation = torch.where(fresh[:, None, None], self._drawn_state(before, generator), self.deviation)
        copies = self._moved(before)
        placed = self.layer.repeated(self.settings.extra).moment(copies.q, copies.qd, copies.goal)
        exact = self.task.observe(placed._replace(action=copies.action, age=copies.age)).reshape(seen.shape)
        return torch.where(fresh[:, None, None], exact, seen)

    def _drawn_state(self, before: Moment, generator: Any) -> Tensor:
        """Deviations up to the radius, in rad, m and their rates; of a quaternion, those of a small turn."""
        model, shape = self.task.model, self.deviation.shape[:2]
        drawn = self.radius * (2.0 * torch.rand(*shape, 2 * model.nv, generator=generator, dtype=torch.float64) - 1.0)
        plain_q, plain_dof, turns = coordinates(model)
        found = torch.zeros_like(self.deviation)
        found[..., plain_q] = drawn[..., plain_dof]
        for i, dof in turns:
            basis = torch.from_numpy(turn_basis(before.q[:, i : i + 4].numpy()))
            found[..., i : i + 4] = 0.5 * torch.einsum("ekd,edj->ekj", drawn[..., dof : dof + 3], basis)
        found[..., model.nq :] = drawn[..., model.nv :]
        return found

    def _moved(self, before: Moment) -> Moment:
        """Copies of moments in their deviating states."""
        copies, model = repeated(before, self.settings.extra), self.task.model
        x = torch.cat((copies.q, copies.qd), -1) + self.deviation.flatten(0, 1)
        return copies._replace(q=_with_unit_turns(model, x[:, : model.nq]), qd=x[:, model.nq :])

    def _known(self, before: Moment, action: Tensor, by: Tensor) -> Known:
        """Deviations in the simulator itself."""
        task, names = self.task, self.task.outputs if self.task.law is None else (*self.task.outputs, "contact.force")
        copies, extra = self._moved(before), self.settings.extra
        near = (action[:, None] + by).flatten(0, 1)
        now, touches = self._simulated(self.layer.repeated(extra), copies, near, names)
        reward = task.reward(copies, now).reshape(by.shape[:2])
        after, is_same = task.observe(now).reshape(*by.shape[:2], -1), torch.isfinite(reward)
        _, own = (None, None) if touches is None else self._simulated(self.layer, before, action, names)
        if touches is not None and own is not None:
            is_same &= (touches == own.repeat_interleave(extra, 0)).flatten(1).all(1).reshape(by.shape[:2])
        return Known(after, reward, is_same)

    def _simulated(
        self, layer: DifferentiableTask, before: Moment, action: Tensor, names: tuple[str, ...]
    ) -> tuple[Moment, Tensor | None]:
        """The moment after an action, and which links touched something in which of its steps, (batch, steps, links)."""
        u = action.to(before.q.dtype)
        motion = layer.simulator.rollout(
            before.q, before.qd, u[None], hold=self.task.hold, params=layer.params, outputs=names
        )
        outputs = {name: motion.outputs[name][-1] for name in self.task.outputs}
        now = Moment(motion.q[-1], motion.qd[-1], u, before.age + 1, outputs, before.goal)
        touches = motion.outputs["contact.force"].any(-1).transpose(0, 1)[:, 1:] if self.task.law is not None else None
        return now, touches

    def _measure(self, after: Tensor, known: Known, outcome: Outcome) -> None:
        """Lead the radius to where slopes err by the tolerance."""
        change = torch.linalg.vector_norm(known.after - self._copied(outcome.observation), dim=-1)
        error = torch.linalg.vector_norm(known.after - after, dim=-1) / change.clamp_min(1e-12)
        if not known.is_same.any():
            return
        error = error[known.is_same].median()
        self._counts += torch.tensor([0.0, 0.0, error, 1.0])
        if self.settings.tolerance is not None:
            pace = PACE if error < self.settings.tolerance else 1.0 / PACE
            self.radius = (self.radius * pace).clamp(LEAST, MOST)

    def _carry(self, state: Tensor, seen: Tensor, is_same: Tensor, over: Tensor) -> None:
        """Deviations go on to the next action, but from episodes that are over and samples that are left out."""
        self.carried = torch.where(over, 0, (self.carried + 1) % self.settings.extra_steps)
        goes_on = (is_same & (self.carried > 0)[:, None])[..., None]
        self.deviation, self.seen_deviation = torch.where(goes_on, state, 0.0), torch.where(goes_on, seen, 0.0)

    # to go on another day -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in ("radius", "deviation", "seen_deviation", "carried", "_counts")}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name in self.state():
            setattr(self, name, tensors[name].clone())


def _with_unit_turns(model: Any, q: Tensor) -> Tensor:
    found = q.clone()
    for i, _ in coordinates(model)[2]:
        found[:, i : i + 4] = torch.nn.functional.normalize(q[:, i : i + 4], dim=-1)
    return found
