"""Our own physics without our compiler, number by number in PyTorch or JAX and differentiated by them: the kind of baseline
that Qiao 2021 measured."""

from collections.abc import Callable

import numpy as np
from known import correctness, not_asked, start_of
from ours_known import OurProblem
from plain_gradients import in_jax, in_torch
from protocol import play, version
from workload import WEIGHTS, laikago

import jointgrad as jg
from jointgrad.bench.scene import DT, world_of

SWEEPS = 10  # of problems with known derivatives: enough for them, and each takes long here


class Plain:
    """Subclasses say what their numbers are and how they are differentiated."""

    number: Callable
    gradient_of: Callable
    notes = {"forward": "one step at a time, operator by operator", "backward": "its own automatic differentiation"}

    def __init__(self, task):
        self.scene = task.json("laikago.json")
        self.model = world_of().compile(dt=DT)
        self.start = np.array(self.scene["standing_q"]), np.zeros(18)

    def rolled(self, u):
        """The loss after so many steps, from where the robot stands: in this mode the air costs as much as the ground."""
        q, qd = map(self.number, self.start)
        for row in u:
            q, qd = jg.plain.step(self.model, q, qd, row)
        return q

    def controls(self, steps):
        return np.tile(self.scene["targets"], (steps, 1))

    def stand(self, steps):
        return float(self.rolled(self.number(self.controls(1)))[2]), 4

    def forward(self, steps, batch):
        u = self.number(self.controls(steps))
        return lambda: self.rolled(u)

    def gradient_error(self):
        u = self.controls(1)
        motion = jg.rollout(self.model, jg.State(*self.start), u)
        bar = np.zeros(19)
        bar[:3] = WEIGHTS
        found = self.gradient_of(u)
        expected = motion.backward(bar, wrt=("u",)).u
        return float(np.abs(found - expected).max() / np.abs(expected).max())


class InTorch(Plain):
    def __init__(self, task):
        import torch

        torch.set_num_threads(1)
        self.torch, self.version = torch, version("torch")
        super().__init__(task)

    def number(self, values):
        return self.torch.tensor(values, dtype=self.torch.float64)

    def loss(self, u):
        return (self.rolled(u)[:3] * self.number(WEIGHTS)).sum()

    def gradient_of(self, u):
        u = self.number(u).requires_grad_()
        self.loss(u).backward()
        return u.grad.numpy()

    def gradient(self, steps, batch):
        kept, u = {}, self.number(self.controls(steps)).requires_grad_()

        def there():
            kept["loss"] = self.loss(u)

        return there, lambda: kept["loss"].backward(retain_graph=True)


class InJax(Plain):
    def __init__(self, task):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.version = jax, version("jax")
        super().__init__(task)

    def number(self, values):
        return self.jax.numpy.asarray(values)

    def loss(self, u):
        return (self.rolled(u)[:3] * self.number(WEIGHTS)).sum()

    def gradient_of(self, u):
        return np.asarray(self.jax.grad(self.loss)(self.number(u)))

    def gradient(self, steps, batch):
        kept, u = {}, self.number(self.controls(steps))

        def there():
            kept["pull"] = self.jax.vjp(self.loss, u)[1]

        return there, lambda: self.jax.block_until_ready(kept["pull"](self.number(1.0)))


class PlainProblem(OurProblem):
    """Problems with known derivatives, differentiated by PyTorch."""

    note = f"impulses, {SWEEPS} sweeps, differentiated by PyTorch"

    def compiled(self):
        return self.given.bouncing_world().compile(contact=jg.Impulse(sweeps=SWEEPS)), self.problem["steps"]

    def jacobian(self):
        import torch

        start, u = self.state(start_of(self.problem))
        q, qd, u = (torch.tensor(x, requires_grad=True) for x in (start.q, start.qd, u))
        given, now = {"q": q, "qd": qd, "u": u}, (q, qd)
        for _ in range(self.steps):
            now = jg.plain.step(self.model, *now, u if self.model.nu else None)
        rows = []
        for kind, name in self.problem["outputs"]:
            last = now[0][self.in_q[name]] if kind == "q" else now[1][self.in_v[name]]
            bars = torch.autograd.grad(last, list(given.values()), retain_graph=True, allow_unused=True)
            found = dict(zip(given, bars, strict=True))
            rows.append([self.picked(found, kind, name) for kind, name in self.problem["inputs"]])
        return rows

    def picked(self, found, kind, name):
        place = {"q": self.in_q, "qd": self.in_v}.get(kind, {name: 0})[name]
        return float(found[kind][place])


def gradients(task):
    if task["framework"] == "torch":
        in_torch(task, version("torch"))
    else:
        in_jax(task, version("jax"))


def known(task):
    if task["framework"] == "torch":
        correctness(task, PlainProblem, version("torch"))
    else:
        words = "the same physics as in PyTorch; a step with contact is more than XLA compiles in reasonable time"
        not_asked(task, version("jax"), lambda problem: ("not asked", words))


if __name__ == "__main__":
    play({
        "laikago": lambda task: laikago(task, {"torch": InTorch, "jax": InJax}[task["framework"]](task)),
        "gradients": gradients,
        "correctness": known,
    })  # fmt: skip
