"""How a step was clamped: which points touched by which features, and which impulses met their bounds in which sweep.

Within one signature a step is smooth; across a change of it a difference says nothing of a derivative.
"""

from __future__ import annotations

import numpy as np

import jointgrad as jg
from jointgrad.engine.kernels.stages.contact.paths import POINT, SPIN
from jointgrad.engine.run.runtime import address, lanes, worker
from jointgrad.model.arrays import JOINT_CONSTRAINT
from jointgrad.model.pair_table import FIRST_WITH_FEATURES, PAIR_KINDS

WITH_FEATURES = range(FIRST_WITH_FEATURES, len(PAIR_KINDS))


def signatures(model: jg.Model, q, qd, u=None, force=None) -> list[bytes]:
    """One per environment: q (batch, nq), qd, u, force (batch, n_links, 6) as a step takes them."""
    q, qd = np.ascontiguousarray(q), np.ascontiguousarray(qd)
    u = None if u is None or not model.nu else np.ascontiguousarray(u)
    force = None if force is None else np.ascontiguousarray(force)
    found: list[bytes] = []
    with worker(model) as one:
        for first in range(0, len(q), lanes()):
            one.assembled_for = None
            one.take_params(model)
            last = min(first + lanes(), len(q))
            one.set(
                first=first, last=last, batch=len(q), steps=1, q0=address(q), qd0=address(qd), u=address(u),
                force=address(force), force_step=0, q0_dot=0, qd0_dot=0, u_dot=0, force_dot=0,
            )  # fmt: skip
            one.run("evaluation")
            found += _of_pack(one, last - first)
        one.assembled_for = None
    return found


def gaps(model: jg.Model, state: jg.State) -> np.ndarray:
    """Distances of all points that are near, in one state."""
    with worker(model) as one:
        one.assembled_for = None
        one.take_params(model)
        q, qd = np.ascontiguousarray(state.q), np.ascontiguousarray(state.qd)
        one.set(
            first=0, last=1, batch=1, steps=1, q0=address(q), qd0=address(qd), u=0, force=0, force_step=0, q0_dot=0,
            qd0_dot=0, u_dot=0, force_dot=0,
        )  # fmt: skip
        one.run("evaluation")
        one.assembled_for = None
        return one.frame.table("touch.gap")[: _number(one, "touch.n"), 0, 0, 0].copy()


def _number(one, field: str) -> int:
    return int(one.frame.integers[one.frame.schema.slots[field]])


def _list(one, field: str, count: int) -> np.ndarray:
    start = _number(one, field)
    return one.frame.integers[start : start + count]


def _of_pack(one, count: int) -> list[bytes]:
    tree, table = one.model.topology.tree, one.frame.table
    n = _number(one, "touch.n") if tree["n_shapes"] else 0
    pair, part = _list(one, "touch.pair", n), _list(one, "touch.part", n)
    rows, kinds = np.array(tree["pair_row"], int)[pair], np.array(tree["pair_kind"], int)[pair]
    touches = table("touch.gap")[:n, 0, 0] < table("params.pair_margin")[rows, 0, 0]
    has_features = np.isin(kinds, WITH_FEATURES)[:, None, None]
    features = np.where(has_features, table("touch.feature")[:n, :, 0], 0.0).astype(np.int64)
    has_impulses = tree["has_impulses"] and _number(one, "block.n")
    clamped, active, names = (
        _clamps(one) if has_impulses else (np.zeros((0, 0, 3, count)), np.zeros((0, count), bool), np.zeros(0))
    )
    found = []
    for lane in range(count):
        near, acts = touches[:, lane], active[:, lane]
        own = (pair[near], part[near], features[near, :, lane], names[acts], clamped[:, acts, :, lane])
        found.append(b";".join(np.ascontiguousarray(a).tobytes() for a in own))
    return found


def _clamps(one) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How every row of every block was clamped in every sweep, (sweeps, blocks, 3, lanes); which count; their names."""
    tree, table = one.model.topology.tree, one.frame.table
    n = _number(one, "block.n")
    kind, source = _list(one, "block.kind", n), _list(one, "block.source", n)
    is_implicit = tree["is_implicit"]  # which has one outcome, and no sweeps
    history = table("block.x")[: (tree["sweeps"] + 1) * n, :, 0].reshape(tree["sweeps"] + 1, n, 4, -1)
    x = history[1 - is_implicit :].copy()
    friction, active = table("block.friction")[:n, :, 0], table("block.active")[:n, :, 0]
    low, high, weight = (table(f"block.{what}")[:n, :, 0] for what in ("low", "high", "weight"))
    clamped = np.zeros((*x.shape[:2], 3, x.shape[3]), dtype=np.int8)
    point, spin = kind == POINT, kind == SPIN
    bounded = ~(point | spin)
    most = friction[point, :1] * x[:, point, :1]
    clamped[:, point, :1] = x[:, point, :1] > 0
    clamped[:, point, 1:] = x[:, point, 3:] < 1 if tree["is_cone"] else most <= np.abs(x[:, point, 1:3])
    normal = x[:, np.flatnonzero(spin) - 1, :1]
    clamped[:, spin] = np.abs(x[:, spin, :3]) >= friction[spin][:, [1, 2, 2]] * normal
    if is_implicit:
        clamped[:, spin] = x[:, spin, 3:] < 1
        # how the slip to be expected was found
        b, slip = (
            table("block.b")[:n][point, 0, 0],
            np.hypot(*np.moveaxis(table("block.closing")[:n][point, 1:, 0], 1, 0)),
        )
        # and whether a point bounces, or parts faster
        rows = [tree["pair_row"][_list(one, "touch.pair", i + 1)[i]] for i in source[point]]
        bounce = -table("params.pair_restitution")[rows, 0, 0] * table("block.approach")[:n][point, 0, 0]
        clamped[:, point, 1] += (2 * (table("block.closing")[:n][point, 0, 0] - b > bounce + 1e-13)).astype(np.int8)
        clamped[:, point, 2] += (2 * (b < 0) + 4 * (slip > friction[point, 0] * np.maximum(-b, 0))).astype(np.int8)
    # what was asked of a point: it bounces or parts, from below the surface or above; bounces that were restrained
    gap, approach = table("touch.gap")[source[point], 0, 0], table("block.approach")[:n][point, 0, 0]
    share = table("block.share")[0, 0, 0] < 1 if _number(one, "block.restrained") else np.zeros(x.shape[3], bool)
    clamped[:, point, 0] += (2 * (gap < 0) + 4 * (approach < 0) + 8 * share).astype(np.int8)
    # and whether what stabilisation may do is that of all masses
    before, demand = (table(f"block.{what}")[:n][point, 0, 0] for what in ("closing", "b"))
    speed, mass = before - demand, table("work.I")[: tree["n_bodies"], 9, 0].sum(0)
    is_capped = x[-1, point, 0] > mass * (speed + np.maximum(approach - before, 0))
    clamped[:, point, 0] += (16 * share * is_capped * (1 + (approach > before))).astype(np.int8)
    limits = (x[:, bounded, :3] <= low[bounded]) + 2 * (x[:, bounded, :3] >= high[bounded])
    is_joint = np.array([tree["constraint_kind"][t] == JOINT_CONSTRAINT for t in source[bounded]], bool)
    side = 8 * (weight[bounded] > 0) * is_joint[:, None, None]
    clamped[:, bounded] = limits + 4 * (active[bounded] > 0) + side
    return clamped, active.any(1), np.where(bounded, source, -1 - kind)
