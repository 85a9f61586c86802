"""The same robot for Pinocchio, and converters between its conventions and ours.

Ours, as MuJoCo's: quaternions w x y z; a free joint's rates and forces are linear in world axes, angular in body axes.
Pinocchio's: quaternions x y z w; a free flyer's are linear and angular in body axes. Tangent vectors of q follow the
rates: a free joint's are a shift in world axes (ours) or body axes (Pinocchio's), then a turn in body axes.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from oracles.mujoco_model import links_in_order, primitives

from jointgrad.model.description import Description

JOINTS = {"revolute": pin.JointModelRevoluteUnaligned, "continuous": pin.JointModelRevoluteUnaligned}
JOINTS |= {"prismatic": pin.JointModelPrismaticUnaligned}
WHOLE = {"spherical": pin.JointModelSpherical, "free": pin.JointModelFreeFlyer}


class Twin:
    """A Pinocchio model of a robot. All arguments and results of its methods are in our conventions."""

    def __init__(self, robot: Description, gravity=(0.0, 0.0, -9.81), base: str | None = None) -> None:
        self.robot = robot
        self.model = pin.Model()
        self.model.gravity.linear = np.array(gravity, dtype=float)
        self.free: list[tuple[int, int]] = []  # first q and first rate of every free joint
        self.balls: list[int] = []  # first entry of every quaternion in q
        self.passive: list[tuple] = []  # per moving joint: kind, first q, first rate, damping, stiffness, rest
        self.start: dict[str, tuple[int, int, list[int]]] = {}  # per named joint: first q, first rate, its rates
        self.links: list[tuple[int, pin.SE3]] = []  # joint and centre of mass of every link
        self._build(base or robot.base)
        self.data = self.model.createData()

    def _build(self, base: str) -> None:
        frame_of: dict[str | None, tuple[int, pin.SE3]] = {None: (0, pin.SE3.Identity())}
        armature: list[float] = []
        for link, joints in links_in_order(self.robot):
            at, place = frame_of[joints[0].parent if joints else None]
            if not joints and base == "free":
                at = self._add("free", np.zeros(3), at, place, f"{link.name}.base", 0.0, 0.0, None)
                armature += [0.0] * 6
            for joint in joints:
                place = place * pin.XYZQUATToSE3(np.r_[joint.position, np.roll(_unit(joint.orientation), -1)])
                rates: list[int] = []
                self.start[joint.name] = (self.model.nq, self.model.nv, rates)
                for k, (name, kind, axis) in enumerate(primitives(joint)):
                    rest = joint.rest if kind in WHOLE or joint.rest is None else np.atleast_1d(joint.rest)[k]
                    first = self.model.nv
                    if kind == "free":
                        rest = pin.SE3ToXYZQUAT(place)[[0, 1, 2, 6, 3, 4, 5]] if rest is None else rest
                        place = pin.SE3.Identity()  # its coordinates are the pose in the world
                    at = self._add(kind, axis, at, place, name, joint.damping, joint.stiffness, rest)
                    place = pin.SE3.Identity()
                    rates += range(first, self.model.nv)
                    armature += [joint.armature] * (self.model.nv - first)
            frame_of[link.name] = at, place
            self._add_mass(link, at, place)
        self.model.armature = np.array(armature)

    def _add(self, kind, axis, parent, place, name, damping, stiffness, rest) -> int:
        q, v = self.model.nq, self.model.nv
        if kind == "free":
            self.free.append((q, v))
        if kind in WHOLE:
            self.balls.append(q + 3 * (kind == "free"))
        self.passive.append((kind, q, v, damping, stiffness, rest))
        return self.model.addJoint(parent, WHOLE[kind]() if kind in WHOLE else JOINTS[kind](axis), place, name)

    def _add_mass(self, link, at, place) -> None:
        xx, xy, xz, yy, yz, zz = link.inertia
        about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float)
        com = np.array(link.com, dtype=float)
        self.links.append((at, place * pin.SE3(np.eye(3), com)))
        if at:
            self.model.appendBodyToJoint(at, pin.Inertia(float(link.mass), com, about_com), place)

    # coordinates ---------------------------------------------------------------------------------------------------

    def pin_q(self, q: np.ndarray) -> np.ndarray:
        q = np.array(q, dtype=float)
        for i in self.balls:
            q[i : i + 4] = np.roll(q[i : i + 4], -1) / np.linalg.norm(q[i : i + 4])
        return q

    def turns(self, q: np.ndarray) -> np.ndarray:
        """The matrix R^T that takes rates and forces of ours to Pinocchio's (and shifts of q likewise)."""
        R = np.eye(self.model.nv)
        for i, d in self.free:
            R[d : d + 3, d : d + 3] = _matrix(q[i + 3 : i + 7]).T
        return R

    def pin_rates(self, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return self.turns(q) @ rates

    def pin_qdd(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Body-frame rates turn with the body: a_body = R^T a - w x (R^T v)."""
        v, a = self.pin_rates(q, qd), self.pin_rates(q, qdd)
        for _, d in self.free:
            a[d : d + 3] -= np.cross(v[d + 3 : d + 6], v[d : d + 3])
        return a

    def our_qdd(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        v, a = self.pin_rates(q, qd), np.array(qdd)
        for _, d in self.free:
            a[d : d + 3] += np.cross(v[d + 3 : d + 6], v[d : d + 3])
        return self.turns(q).T @ a

    def our_jacobians(self, q, qd, tau, by_q, by_qd, by_tau) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives of qdd by tangent q, qd, tau: Pinocchio's, in our coordinates.

        With R the free joint's rotation and t a turn in body axes: v = R^T ours changes by R^T dv + v x t when the body
        turns, forces likewise, and ours a = R (a + w x v) changes by R (t x (a + w x v) + da + dw x v + w x dv).
        """
        T, v, f = self.turns(q), self.pin_rates(q, qd), self.pin_rates(q, tau)
        a = self.turns(q) @ self.acceleration(q, qd, tau)  # a + w x v
        by_turn_v, by_turn_f = np.zeros_like(T), np.zeros_like(T)
        a_by_v, a_by_turn = np.zeros_like(T), np.zeros_like(T)
        for _, d in self.free:
            linear, angular = slice(d, d + 3), slice(d + 3, d + 6)
            by_turn_v[linear, angular] = pin.skew(v[linear])
            by_turn_f[linear, angular] = pin.skew(f[linear])
            a_by_turn[linear, angular] = -pin.skew(a[linear])
            a_by_v[linear, angular] = -pin.skew(v[linear])
            a_by_v[linear, linear] = pin.skew(v[angular])
        whole_by_qd = by_qd + a_by_v
        our_by_q = T.T @ (by_q @ T + whole_by_qd @ by_turn_v + by_tau @ by_turn_f + a_by_turn)
        return our_by_q, T.T @ whole_by_qd @ T, T.T @ by_tau @ T

    # dynamics ------------------------------------------------------------------------------------------------------

    def joint_forces(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """Springs, dampers and actuators, per rate."""
        tau = np.zeros(self.model.nv)
        for kind, i, d, damping, stiffness, rest in self.passive:
            n = {"free": 6, "spherical": 3}.get(kind, 1)
            tau[d : d + n] -= damping * qd[d : d + n]
            if kind == "free" and stiffness:
                tau[d : d + 3] -= stiffness * (q[i : i + 3] - rest[:3])
                i, d, rest = i + 3, d + 3, rest[3:]
            if kind in WHOLE and stiffness:
                away = _matrix((1, 0, 0, 0) if rest is None else rest).T @ _matrix(q[i : i + 4])
                tau[d : d + 3] -= stiffness * pin.log3(away)
            elif kind not in WHOLE:
                tau[d] -= stiffness * (q[i] - (rest or 0.0))
        for k, actuator in enumerate(self.robot.actuators.values() if u is not None else ()):
            first_q, first_v, rates = self.start[actuator.joint]
            d = rates[actuator.component]
            at = actuator.gear * (q[first_q + d - first_v] if len(rates) == 1 else 0.0)
            speed = actuator.gear * qd[d]
            served = {"torque": 0.0, "position": at, "velocity": speed}[actuator.kind]
            force = actuator.gain * (np.clip(u[k], *actuator.control_limit) - served) - actuator.damping * speed
            force += actuator.bias[0] + actuator.bias[1] * at + actuator.bias[2] * speed
            tau[d] += actuator.gear * np.clip(force, *actuator.force_limit)
        return tau

    def acceleration(self, q, qd, tau, force=None) -> np.ndarray:
        """qdd under joint forces tau and forces on links (force, torque in world axes at the centre of mass)."""
        p, v, f = self.pin_q(q), self.pin_rates(q, qd), self.pin_rates(q, tau)
        pushes = [pin.Force.Zero() for _ in range(self.model.njoints)]
        if force is not None:
            pin.forwardKinematics(self.model, self.data, p)
            for (at, com), pushed in zip(self.links, force, strict=True):
                turn = pin.SE3((self.data.oMi[at] * com).rotation.T, np.zeros(3))
                pushes[at] += com.act(turn.act(pin.Force(np.array(pushed))))
        return self.our_qdd(q, qd, pin.aba(self.model, self.data, p, v, f, pushes))

    def derivatives(self, q, qd, tau) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """d qdd / d (tangent of q, qd, tau)."""
        p, v, f = self.pin_q(q), self.pin_rates(q, qd), self.pin_rates(q, tau)
        pin.computeABADerivatives(self.model, self.data, p, v, f)
        by_tau = np.triu(self.data.Minv) + np.triu(self.data.Minv, 1).T
        return self.our_jacobians(q, qd, tau, self.data.ddq_dq.copy(), self.data.ddq_dv.copy(), by_tau)

    def mass_matrix(self, q) -> np.ndarray:
        M = pin.crba(self.model, self.data, self.pin_q(q))
        T = self.turns(q)
        return T.T @ (np.triu(M) + np.triu(M, 1).T) @ T

    def bias(self, q, qd) -> np.ndarray:
        """The joint forces that keep qdd at zero."""
        rest = self.pin_qdd(q, qd, np.zeros(self.model.nv))
        return self.turns(q).T @ pin.rnea(self.model, self.data, self.pin_q(q), self.pin_rates(q, qd), rest)

    def momentum(self, q, qd) -> np.ndarray:
        """Linear, then angular about the centre of mass, of all moving bodies, in world axes."""
        return pin.computeCentroidalMomentum(self.model, self.data, self.pin_q(q), self.pin_rates(q, qd)).vector.copy()

    def momentum_rate(self, q, qd, qdd) -> np.ndarray:
        p, v, a = self.pin_q(q), self.pin_rates(q, qd), self.pin_qdd(q, qd, qdd)
        pin.computeCentroidalMomentumTimeVariation(self.model, self.data, p, v, a)
        return self.data.dhg.vector.copy()

    def energy(self, q, qd) -> float:
        """Kinetic and potential energy of the moving bodies."""
        return pin.computeMechanicalEnergy(self.model, self.data, self.pin_q(q), self.pin_rates(q, qd))


def _unit(quaternion) -> np.ndarray:
    return np.array(quaternion, dtype=float) / np.linalg.norm(quaternion)


def _matrix(quaternion) -> np.ndarray:
    w, x, y, z = _unit(quaternion)
    return pin.Quaternion(w, x, y, z).toRotationMatrix()
