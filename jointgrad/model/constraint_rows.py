"""Blocks of the contact problem that are always there: joint limits, dry friction, mimic joints, and closed loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import (
    CONNECT,
    FRICTION_ROW,
    HIGH_ROW,
    JOINT_CONSTRAINT,
    LOW_ROW,
    MIMIC_ROW,
    NO_ROW,
    PRISMATIC,
    REVOLUTE,
    STOP_ROW,
    WELD,
    is_narrow,
)
from .laws import Impulse
from .trees import visits


@dataclass(frozen=True)
class Row:
    """One equation of a joint: its kind, the joint's frame, coordinate and degree of freedom, and those of a joint it follows."""

    kind: int = NO_ROW
    frame: int = 0
    dof: int = -1
    q: int = 0
    body: int = -1
    dof2: int = -1
    q2: int = 0
    body2: int = -1


@dataclass
class Block:
    """Up to three equations that are solved together: between bodies a and b of joints, or between two marks of a loop."""

    kind: int
    a: int
    b: int
    rows: list[Row] = field(default_factory=list)


def joint_blocks(
    frames: list, frame_body: list[int], first_q: Any, first_dof: Any, tree: dict, mimics: dict
) -> list[Block]:
    """Limits, dry friction and mimic rows; neighbours on a path share a block."""
    blocks: list[Block] = []
    n, (enter, leave) = tree["n_bodies"], visits(tree["parent"])
    for row in _joint_rows(frames, frame_body, first_q, first_dof, mimics):
        if row.kind == MIMIC_ROW:
            blocks.append(Block(JOINT_CONSTRAINT, row.body, row.body2, [row]))
            continue
        last = blocks[-1] if blocks else None
        is_on_path = last and last.b == n and enter[last.a] <= enter[row.body] < leave[last.a]
        if last and is_on_path and len(last.rows) < 3:
            last.a = row.body
            last.rows.append(row)
        else:
            blocks.append(Block(JOINT_CONSTRAINT, row.body, n, [row]))
    return blocks


def _joint_rows(frames: list, frame_body: list[int], first_q: Any, first_dof: Any, mimics: dict) -> list[Row]:
    rows = []
    for i, f in enumerate(frames):
        if f.joint is None or f.kind not in (REVOLUTE, PRISMATIC):
            continue
        own = (i, int(first_dof[i]), int(first_q[i]), frame_body[i])
        if f.joint.friction:
            rows.append(Row(FRICTION_ROW, *own))
        if f.joint.kind in ("revolute", "prismatic") and np.isfinite(f.joint.limit).any():
            ends = (LOW_ROW, HIGH_ROW) if is_narrow(f.joint.limit, Impulse.margin) else (STOP_ROW,)
            rows += [Row(kind, *own) for kind in ends]
        if i in mimics:
            j = mimics[i]
            rows.append(Row(MIMIC_ROW, *own, int(first_dof[j]), int(first_q[j]), frame_body[j]))
    return rows


def loop_blocks(is_weld: bool, a: int, b: int) -> list[Block]:
    """Blocks that hold two marks together."""
    return [Block(CONNECT, a, b), *([Block(WELD, a, b)] if is_weld else [])]


def block_arrays(blocks: list[Block]) -> dict[str, list[int]]:
    """Their integers, three rows a block."""
    rows = [row for block in blocks for row in (*block.rows, Row(), Row(), Row())[:3]]
    return {
        **{f"constraint_{what}": [getattr(block, what) for block in blocks] for what in ("kind", "a", "b")},
        "constraint_row": [row.kind for row in rows],
        **{f"constraint_{what}": [getattr(row, what) for row in rows] for what in ("frame", "dof", "q", "dof2", "q2")},
    }
