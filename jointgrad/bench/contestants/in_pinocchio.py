"""Pinocchio: the articulated-body algorithm and its derivatives; it does not step, and nothing touches."""

import numpy as np
import pinocchio as pin
from protocol import play, version
from workload import laikago


class Pinocchio:
    has_ground = False
    notes = {
        "forward": "aba and integrate per step, in the air: no contact",
        "backward": "computeABADerivatives per step and their products, in the air: no contact",
    }

    def __init__(self, task):
        self.version = version("pin")
        self.scene = task.json("laikago.json")
        # its continuous joints carry a cosine and a sine, which costs time that the workload does not need
        text = task.text("laikago.urdf").replace('"continuous"', '"revolute"')
        self.model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
        self.data, self.dt = self.model.createData(), self.scene["dt"]
        rows = [self.model.joints[self.model.getJointId(n)] for n in self.scene["joints"]]
        self.in_q, self.in_v = [r.idx_q for r in rows], [r.idx_v for r in rows]
        self.targets = np.array(self.scene["targets"])

    def start(self):
        q = pin.neutral(self.model)
        q[:3], q[self.in_q] = self.scene["q"][:3], self.targets
        return q, np.zeros(self.model.nv)

    def torque(self, q, v):
        tau = np.zeros(self.model.nv)
        tau[self.in_v] = self.scene["stiffness"] * (self.targets - q[self.in_q]) - self.scene["damping"] * v[self.in_v]
        return tau

    def step(self, q, v, tau):
        v = v + self.dt * pin.aba(self.model, self.data, q, v, tau)
        return pin.integrate(self.model, q, self.dt * v), v

    def forward(self, steps, batch):
        if batch > 1:
            return None

        def run():
            q, v = self.start()
            for _ in range(steps):
                q, v = self.step(q, v, self.torque(q, v))
            return q, v

        return run

    def gradient(self, steps, batch):
        if batch > 1:
            return None
        kept: list = []

        def there():
            kept.clear()
            q, v = self.start()
            for _ in range(steps):
                kept.append((q, v))
                q, v = self.step(q, v, self.torque(q, v))

        return there, lambda: self.pulled_back(kept)

    def pulled_back(self, states):
        """Cotangents of torques; servos are left out, and so is the small turn of the frame within a step."""
        q_bar, v_bar = np.zeros(self.model.nv), np.zeros(self.model.nv)
        q_bar[:3] = 1.0
        found = np.empty((len(states), self.model.nv))
        for k in range(len(states) - 1, -1, -1):
            q, v = states[k]
            by_q, by_v, by_tau = pin.computeABADerivatives(self.model, self.data, q, v, self.torque(q, v))
            a_bar = self.dt * (v_bar + self.dt * q_bar)
            found[k] = by_tau.T @ a_bar
            q_bar, v_bar = q_bar + by_q.T @ a_bar, v_bar + self.dt * q_bar + by_v.T @ a_bar
        return found

    def gradient_error(self):
        """Of the derivatives of aba by the torque, along one direction."""
        q, v = self.start()
        tau, step = np.ones(self.model.nv), 1e-4
        by_tau = pin.computeABADerivatives(self.model, self.data, q, v, tau)[2].copy()
        found = by_tau @ tau
        ahead, behind = (pin.aba(self.model, self.data, q, v, tau * (1 + s)).copy() for s in (step, -step))
        expected = (ahead - behind) / (2 * step)
        return float(np.abs(found - expected).max() / np.abs(expected).max())


if __name__ == "__main__":
    play({"laikago": lambda task: laikago(task, Pinocchio(task))})
