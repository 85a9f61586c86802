"""Recorded pushes of a triangular block (Zhou et al. 2016): where block and finger were, in metres and radians, and a fixed split.

The block is a right triangle of 150 mm that stands on three points. The tracked frame sits in the corner with the right angle,
its axes along the two sides; ours is parallel to it, in the middle of the triangle. The finger follows a straight line at 2.5 mm/s.
Its force sensor says when it touches, more sharply than cameras and robot agree on where things are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .recordings import recording

FILE = "cmu_pushing_icra2016.npz"
SIDE = 0.15  # m
MIDDLE = np.array([SIDE / 3, SIDE / 3])  # of the triangle, in the tracked frame
ARM = SIDE / 3 * np.sqrt(2)  # m: turns an angle into a length, as the authors do
OUTLIER = 0.04  # m: a block that went farther than this in a push of 16 mm was lost by the cameras
TABLE = np.array([0.6, 0.0])  # m: where the pushes are, in the robot's frame; our x and y begin there
# The logs that the authors evaluate: 50 pushes each, one after the other, at one speed. Of the other logs some hold the same
# pushes once more, and some were made at other speeds.
LOGS = (
    "10_130_10_10_10_130/exp_08_17_50.txt",
    "10_90_10_10_30_130/exp_08_15_50.txt",
    "30_63.33_43.33_30_43.33_63.33/exp_08_17_50.txt",
    "30_90_30_30_30_90/exp_08_11_50_mixed.txt",
    "wood_10_130_10_10_10_130/exp_08_17_50.txt",
    "wood_10_90_10_10_30_130/exp_08_18_1100_50.txt",
    "wood_30_63.33_43.33_30_43.33_63.33/exp_08_18_1330_50.txt",
    "wood_30_90_30_30_30_90/exp_08_17_0922_50.txt",
)
QUIET = 30  # readings of the force before anything can touch
SEED = 2021  # of the split, which was drawn once, before any fit
SHARES = {"training": 0.6, "validation": 0.2, "held_out": 0.2}


@dataclass(frozen=True)
class Pushes:
    """One row per push. Poses are x, y, heading of the block's middle; the finger goes from `first` towards `last`, which is
    the last place in the log."""

    before: np.ndarray  # (n, 3)
    after: np.ndarray  # (n, 3)
    first: np.ndarray  # (n, 2)
    last: np.ndarray  # (n, 2)
    onset: np.ndarray  # (n, 2): where it was when the force began
    supports: np.ndarray  # (n, 3, 2) in the block's frame
    is_wood: np.ndarray  # (n,): plywood, else hardboard
    condition: np.ndarray  # (n,) index of LOGS

    def __len__(self) -> int:
        return len(self.before)

    def __getitem__(self, rows: np.ndarray) -> Pushes:
        return Pushes(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    @property
    def heading(self) -> np.ndarray:
        """(n, 2): the finger's direction."""
        along = self.last - self.first
        return along / np.linalg.norm(along, axis=1, keepdims=True)

    @property
    def moved(self) -> np.ndarray:
        """(n, 3): what the block did."""
        return difference(self.after, self.before)


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of poses: metres, metres, and the turn between -pi and pi."""
    d = a - b
    d[..., 2] = (d[..., 2] + np.pi) % (2 * np.pi) - np.pi
    return d


def middle_pose(tracked: np.ndarray) -> np.ndarray:
    """(n, 3) from what the cameras saw, (n, 7): mm, quaternion w x y z. The block lies flat to 0.06 rad, which is theirs."""
    heading = (2 * np.arctan2(tracked[:, 6], tracked[:, 3]) + np.pi) % (2 * np.pi) - np.pi
    c, s = np.cos(heading), np.sin(heading)
    turned = np.stack([c * MIDDLE[0] - s * MIDDLE[1], s * MIDDLE[0] + c * MIDDLE[1]], axis=1)
    return np.column_stack([tracked[:, :2] / 1e3 + turned - TABLE, heading])


def support_points(folder: str) -> np.ndarray:
    """(3, 2) in the block's frame, from the folder's name: three x and then three y in mm, in the tracked frame."""
    numbers = [float(x) for x in re.findall(r"[0-9.]+", folder)]
    if len(numbers) != 6:
        raise ValueError(f'the folder "{folder}" does not name three support points')
    return np.array(numbers).reshape(2, 3).T / 1e3 - MIDDLE


def _onset(record: dict[str, np.ndarray], push: int) -> np.ndarray:
    """(2,): the finger's place when the force first exceeds a third of what it will be. It gets there within 40 ms, or 0.1 mm."""
    force = record["ft"][slice(*record["ft_offsets"][push : push + 2])].astype(np.float64)
    finger = record["robot"][slice(*record["robot_offsets"][push : push + 2])].astype(np.float64)
    size = np.linalg.norm(force[:, 1:] - force[:QUIET, 1:].mean(axis=0), axis=1)
    time = force[np.argmax(size > np.median(size[-len(size) // 3 :]) / 3), 0]
    return np.array([np.interp(time, finger[:, 0], finger[:, k]) for k in (1, 2)]) / 1e3 - TABLE


def load(data: Path | None = None) -> Pushes:
    """All pushes of the eight logs that the cameras did not lose."""
    record = recording(FILE, data)
    names = [str(name) for name in record["logs"]]
    first, ends = record["robot_offsets"][:-1], record["robot_offsets"][1:]
    parts = []
    for k, log in enumerate(LOGS):
        rows = np.flatnonzero(
            record["log_index"] == next(i for i, name in enumerate(names) if name.endswith("/" + log))
        )
        poses, n = record["pre_post_pose"][rows].astype(np.float64), len(rows)
        folder = log.partition("/")[0]
        onsets = np.stack([_onset(record, i) for i in rows])  # type: ignore[arg-type]
        finger = [record["robot"][at, 1:3].astype(np.float64) / 1e3 - TABLE for at in (first[rows], ends[rows] - 1)]
        supports = np.broadcast_to(support_points(folder), (n, 3, 2))
        wood = np.full(n, folder.startswith("wood"))
        parts.append(
            Pushes(middle_pose(poses[:, :7]), middle_pose(poses[:, 7:]), *finger, onsets, supports, wood, np.full(n, k))  # type: ignore[call-arg]
        )
    whole = Pushes(*(np.concatenate([getattr(p, f) for p in parts]) for f in Pushes.__dataclass_fields__))
    return whole[np.linalg.norm(whole.moved[:, :2], axis=1) < OUTLIER]


def split(pushes: Pushes) -> dict[str, np.ndarray]:
    """Rows of each part, drawn within each log."""
    rng = np.random.default_rng(SEED)
    parts: dict[str, list[int]] = {name: [] for name in SHARES}
    for k in range(len(LOGS)):
        rows = rng.permutation(np.flatnonzero(pushes.condition == k))
        cuts = np.round(np.cumsum(list(SHARES.values())) * len(rows)).astype(int)[:-1]
        for name, some in zip(SHARES, np.split(rows, cuts), strict=True):
            parts[name].extend(int(i) for i in some)
    return {name: np.array(sorted(rows)) for name, rows in parts.items()}


# where the finger meets the block --------------------------------------------------------------------------------------------

# outward normals of the sides: along x, across the corner, along y
NORMALS = np.array([[0.0, -1.0], [np.sqrt(0.5), np.sqrt(0.5)], [-1.0, 0.0]])


def turned(vectors: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """(n, 2) vectors, each turned by its angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * vectors[:, 0] - s * vectors[:, 1], s * vectors[:, 0] + c * vectors[:, 1]], axis=1)


def meeting(pushes: Pushes) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2), (n,): the outward normal of the side that is pushed, in the world, and how far outside of it the finger's log is
    when the force begins."""
    local = turned(pushes.onset - pushes.before[:, :2], -pushes.before[:, 2])
    outside = local @ NORMALS.T - np.array([SIDE / 3, SIDE / 3 / np.sqrt(2), SIDE / 3])
    side = outside.argmax(axis=1)
    return turned(NORMALS[side], pushes.before[:, 2]), outside.max(axis=1)
