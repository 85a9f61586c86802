"""MuJoCo: its step, and its finite-difference Jacobians of the step chained backwards."""

import mujoco
import numpy as np
from known import correctness
from mujoco import rollout
from mujoco_known import MuJoCoProblem
from protocol import play, version
from workload import CHECK_STEPS, STANDS_AFTER, WEIGHTS, direction, laikago, slope_error

VERSION = version("mujoco", "mujoco-core")
EPSILON = 1e-6  # of its differences


class MuJoCo:
    notes = {
        "backward": "mjd_transitionFD (one-sided, all columns of A and B) and their products; MuJoCo has no other gradient"
    }

    def __init__(self, task):
        self.version = VERSION
        self.scene, self.cores = task.json("laikago.json"), task.cores
        self.model = mujoco.MjModel.from_xml_string(task.text("laikago.xml"))
        self.data = mujoco.MjData(self.model)
        self.workers = [mujoco.MjData(self.model) for _ in range(self.cores)]

    def reset(self):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.ctrl[:] = self.scene["q"], self.scene["targets"]

    def stand(self, steps):
        self.reset()
        mujoco.mj_step(self.model, self.data, nstep=steps)
        return self.data.qpos[2], int(self.data.ncon)

    def forward(self, steps, batch):
        return self.batched(steps, batch) if batch > 1 or self.cores > 1 else lambda: self.stand(steps)

    def batched(self, steps, batch):
        self.reset()
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        state = np.zeros(mujoco.mj_stateSize(self.model, full))
        mujoco.mj_getState(self.model, self.data, state, full)
        states, controls = np.tile(state, (batch, 1)), np.tile(self.data.ctrl, (batch, steps, 1))
        crew = rollout.Rollout(nthread=self.cores if self.cores > 1 else 0)
        room = np.empty((batch, steps, len(state)))
        return lambda: crew.rollout(self.model, self.workers, states, controls, state=room)

    def gradient(self, steps, batch):
        if batch > 1:
            return None  # it has no batched Jacobians: one after the other costs what batch 1 costs
        kept = {}

        def there():
            self.reset()
            kept["states"] = states = np.empty((steps, self.model.nq + self.model.nv))
            for k in range(steps):
                states[k] = np.concatenate([self.data.qpos, self.data.qvel])
                mujoco.mj_step(self.model, self.data)

        return there, lambda: self.pulled_back(kept["states"])

    def pulled_back(self, states):
        """Gradient to all controls from stored states: one Jacobian at a time, so that nothing else is kept."""
        m, d = self.model, self.data
        A, B = np.zeros((2 * m.nv, 2 * m.nv)), np.zeros((2 * m.nv, m.nu))
        bar, found = np.zeros(2 * m.nv), np.empty((len(states), m.nu))
        bar[:3] = WEIGHTS
        for k in range(len(states) - 1, -1, -1):
            d.qpos[:], d.qvel[:] = states[k, : m.nq], states[k, m.nq :]
            mujoco.mjd_transitionFD(m, d, EPSILON, False, A, B, None, None)
            found[k], bar = B.T @ bar, A.T @ bar
        return found

    def gradient_error(self):
        u = np.tile(self.scene["targets"], (CHECK_STEPS, 1))
        states: list = []

        def loss(u):
            self.stand(STANDS_AFTER)
            states.clear()
            for row in u:
                states.append(np.concatenate([self.data.qpos, self.data.qvel]))
                self.data.ctrl[:] = row
                mujoco.mj_step(self.model, self.data)
            return float(np.dot(WEIGHTS, self.data.qpos[:3]))

        loss(u)
        gradient = self.pulled_back(np.array(states))
        return slope_error(loss, gradient, u, direction(*u.shape), 1e-5)


def robots(task, peer):
    """The suite `robots`, forward: many in one world, many steps, many worlds."""
    for part, sizes in task["parts"].items():
        for size in sizes:
            count, steps, batch = (size if x is None else x for x in task["shape"][part])
            crowd = Crowd(task, peer, count)
            if crowd.is_too_long(task, steps, batch):
                task.say(
                    status="skipped", part=part, size=size, version=peer.version,
                    reason="would take longer than one contestant is given",
                )  # fmt: skip
                continue
            run = peer.batched(steps, batch) if batch > 1 else lambda crowd=crowd, steps=steps: crowd.run(steps)
            (found,) = task.timed(run)
            work = count * steps * batch
            task.say(
                status="measured", part=part, size=size, robots=count, steps=steps, batch=batch, cores=task.cores,
                version=peer.version, forward_us=1e6 * found["best"] / work, repeats=found["repeats"],
                forward_median_us=1e6 * found["median"] / work, check=f"{crowd.contacts} contacts",
                ok=crowd.contacts == 4 * count,
            )  # fmt: skip


class Crowd:
    """So many Laikagos in one world."""

    def __init__(self, task, peer, count):
        self.scene = task.json(f"robots{count}.json")
        self.model = mujoco.MjModel.from_xml_string(task.text(f"robots{count}.xml"))
        self.data = mujoco.MjData(self.model)
        self.run(100)
        self.contacts = int(self.data.ncon)

    def run(self, steps):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.ctrl[:] = self.scene["q"], self.scene["targets"]
        mujoco.mj_step(self.model, self.data, nstep=steps)

    def is_too_long(self, task, steps, batch):
        start = task.clock()
        self.run(50)
        return (task.clock() - start) / 50 * steps * batch * 3 > max(task.seconds_left, 0)


if __name__ == "__main__":
    play({
        "laikago": lambda task: laikago(task, MuJoCo(task)), "robots": lambda task: robots(task, MuJoCo(task)),
        "correctness": lambda task: correctness(task, MuJoCoProblem, VERSION),
    })  # fmt: skip
