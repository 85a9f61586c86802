"""Truths for the convex law of contact that share no code with it.

`solved` minimises the dual problem, over impulses in their cones, by accelerated projected gradients on dense matrices.
`equal_mujoco` is MuJoCo with the same problem: its regulariser R is that of our softness, its reference acceleration that of our
stabilisation.
"""

from __future__ import annotations

import mujoco
import numpy as np

import jointgrad as jg

DT = 1e-3


def projected(x: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """Points (n, 3), normal first, onto the cones |t| <= friction n."""
    n, t = x[:, 0], np.hypot(x[:, 1], x[:, 2])
    onto = np.maximum((n + friction * t) / (1 + friction**2), 0.0)
    scale = np.where(t > 0, friction * onto / np.where(t > 0, t, 1.0), 0.0)
    slid = np.stack([onto, scale * x[:, 1], scale * x[:, 2]], -1)
    return np.where((t <= friction * n)[:, None], x, np.where((friction * t <= -n)[:, None], 0.0, slid))


def solved(A: np.ndarray, b: np.ndarray, friction: np.ndarray, steps: int = 40000) -> np.ndarray:
    """Impulses that minimise x A x / 2 + b x over their cones; A with the regulariser on its diagonal."""
    step = 1.0 / np.linalg.eigvalsh(A)[-1]
    x = y = np.zeros_like(b)
    t = 1.0
    for _ in range(steps):
        new = projected((y - step * (A @ y + b)).reshape(-1, 3), friction).ravel()
        following = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        # begin anew where the momentum points uphill
        if (y - new) @ (new - x) > 0:
            following = 1.0
        y, x, t = new + (t - 1) / following * (new - x), new, following
    return x


def equal_mujoco(world: jg.World, share: float = 0.97) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """MuJoCo with elliptic cones whose contacts close a fifth of their gap in a step, and give R = (1 - share) / share of its own
    measure of the bodies' response."""
    m = mujoco.MjModel.from_xml_string(jg.to_mjcf(world, dt=DT))
    m.opt.cone, m.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 1.0
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    m.geom_solref[:], m.geom_solimp[:] = (-0.2 / DT**2 * share, -share / DT), (share, share, 0.001, 0.5, 2.0)
    m.opt.iterations, m.opt.tolerance, m.opt.ls_iterations, m.opt.ls_tolerance = 200, 0.0, 200, 1e-12
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    return m, d


def as_mujoco(world: jg.World, d: mujoco.MjData, least: float) -> jg.Model:
    """Ours with the R that MuJoCo found at its present state, the same for all its contacts; `least` is what ours gives anyway."""
    law = jg.Implicit(compliance=0.0, max_push_out_speed=1e3, is_level=False)
    model = world.compile(dt=DT, contact=law)
    R = d.efc_R[0]
    assert d.nefc and np.allclose(d.efc_R, R, rtol=1e-12)
    return model.replace({"pair.softness": np.full_like(model.params["pair.softness"], R - least)})
