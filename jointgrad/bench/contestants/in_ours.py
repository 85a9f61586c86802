"""jointgrad itself, measured like everyone else."""

import numpy as np
from known import correctness
from ours_checkpoint import checkpoint
from ours_gradients import gradients
from ours_known import OurProblem, WithMeaning, WithSprings
from ours_robots import robots
from protocol import play
from workload import CHECK_STEPS, WEIGHTS, direction, laikago, slope_error

import jointgrad as jg
from jointgrad.bench.scene import DT, released, world_of

WRT = ("state", "u")
VERSION = f"jointgrad {jg.__version__}"


class Ours:
    notes = {"backward": "to the start and all controls; forward run again on the way"}

    def __init__(self, task):
        self.version = VERSION
        self.task, self.threads = task, task.cores
        self.has_ground = task.get("contact", True)
        self.model = world_of().compile(dt=DT, contact=jg.Impulse() if self.has_ground else None)
        self.q, self.targets = released(self.model)

    def start(self, batch):
        return jg.State(np.tile(self.q, (batch, 1)), np.zeros((batch, self.model.nv)))

    def controls(self, steps, batch):
        return np.tile(self.targets, (steps, batch, 1))

    def bar(self, batch):
        bar = np.zeros((batch, self.model.nq))
        bar[:, :3] = WEIGHTS
        return bar

    def stand(self, steps):
        last = jg.rollout(self.model, self.start(1), self.controls(steps, 1)).last
        contacts = jg.inspect(self.model, jg.State(last.q[0], last.qd[0]), self.targets).contacts
        return last.q[0, 2], len(contacts)

    def forward(self, steps, batch):
        start, u = self.start(batch), self.controls(steps, batch)
        return lambda: jg.rollout(self.model, start, u, threads=self.threads)

    def gradient(self, steps, batch):
        run, bar, kept = self.forward(steps, batch), self.bar(batch), {}

        def there():
            kept["motion"] = run()

        return there, lambda: kept["motion"].backward(bar, wrt=WRT)

    def gradient_error(self):
        start = jg.State(np.array(self.task.json("laikago.json")["standing_q"]), np.zeros(self.model.nv))
        u = np.tile(self.targets, (CHECK_STEPS, 1))

        def loss(u):
            return float(np.dot(WEIGHTS, jg.rollout(self.model, start, u).last.q[:3]))

        gradient = jg.rollout(self.model, start, u).backward(self.bar(1)[0], wrt=WRT).u
        return slope_error(loss, gradient, u, direction(*u.shape), 1e-5)


def known(task):
    correctness(task, WithSprings if task.get("springs") else WithMeaning if task.get("named") else OurProblem, VERSION)


if __name__ == "__main__":
    play({
        "laikago": lambda task: laikago(task, Ours(task)), "robots": lambda task: robots(task, VERSION),
        "checkpoint": lambda task: checkpoint(task, VERSION),
        "gradients": lambda task: gradients(task, VERSION), "correctness": known,
    })  # fmt: skip
