"""Pairs of convex bodies: the search for features against MuJoCo, and the reverse of contacts against differences of both."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import trimesh

import jointgrad as jg
from jointgrad.engine.kernels.stages.detection.candidates import FOUND, ROW, candidate_row, spread
from jointgrad.engine.kernels.stages.detection.convex import convex_contact, convex_contact_adjoint
from jointgrad.engine.kernels.stages.detection.convex_pairs import form_of
from jointgrad.engine.kernels.stages.detection.manifold import convex_manifold
from jointgrad.engine.kernels.stages.detection.pairs import KERNELS
from jointgrad.engine.kernels.stages.detection.points import displaced
from jointgrad.engine.kernels.workspace import SCRATCH
from jointgrad.model.arrays import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE
from jointgrad.model.bodies import mesh_data
from jointgrad.model.pair_table import CONVEX, PAIR_KINDS, SHAPES, function_of, matrix

NUMBERS = {
    "sphere": SPHERE, "capsule": CAPSULE, "box": BOX, "cylinder": CYLINDER, "ellipsoid": ELLIPSOID, "mesh": MESH,
}  # fmt: skip
GEOMS = {"sphere": ".1", "capsule": ".1 .1", "box": ".1 .1 .1", "cylinder": ".1 .1", "ellipsoid": ".1 .1 .1"}
PAIRS = [(b, a) for a, b in itertools.combinations_with_replacement(NUMBERS, 2) if function_of(b, a) == CONVEX]
CORNERS = np.float32(trimesh.creation.icosphere(1).vertices[:30] * (0.2, 0.15, 0.1)).astype(float)
DATA = mesh_data("a mesh", CORNERS)
MARGIN = 0.5


def drawn(rng, pair, spread_=0.15):
    """Sizes and poses of two bodies at random, some apart and some overlapping."""
    sizes = [tuple(rng.uniform(0.8, 1.2, 3) if kind == "mesh" else rng.uniform(0.05, 0.3, 3)) for kind in pair]
    poses = []
    for _ in pair:
        R = np.zeros(9)
        q = rng.normal(size=4)
        mujoco.mju_quat2Mat(R, q / np.linalg.norm(q))
        poses.append((*R, *(rng.normal(size=3) * spread_)))
    return sizes, poses


def contacts(pair, sizes, poses):
    """Rows of features, contacts (point, normal, gap) of two bodies."""
    frame = SimpleNamespace(
        tree=SimpleNamespace(number=DATA.numbers.tolist()), touch=SimpleNamespace(scratch=[0.0] * SCRATCH)
    )
    bodies, radii = [], []
    for kind, size, pose in zip(pair, sizes, poses, strict=True):
        f = form_of(NUMBERS[kind])
        scale = (f[0] * size[0], f[1] * size[1] + f[2] * size[0], f[3] * size[2] + f[4] * size[1])
        count = DATA.rows if kind == "mesh" else 8 if kind == "box" else 2
        bodies.append((NUMBERS[kind], DATA.offset, count, scale, pose))
        radii.append(size[0] if kind in ("sphere", "capsule") else 0.0)
    count = spread(frame, 0, convex_manifold(frame, 0, *bodies, tuple(radii), MARGIN), 4)
    rows = [candidate_row(frame, FOUND + ROW * k, 1.0) for k in range(count)]
    return rows, [contact(pair, sizes, poses, row) for row in rows]


def contact(pair, sizes, poses, row):
    forms = [form_of(NUMBERS[kind]) for kind in pair]
    return convex_contact(poses[0], sizes[0], poses[1], sizes[1], *forms, row)


class MuJoCo:
    """Distances of two geoms whose sizes and poses are overwritten."""

    def __init__(self, pair):
        forms = [f'mesh="m{k}"' if kind == "mesh" else f'size="{GEOMS[kind]}"' for k, kind in enumerate(pair)]
        bodies = "".join(
            f'<body><freejoint/><geom type="{kind}" {form} mass="1"/></body>'
            for kind, form in zip(pair, forms, strict=True)
        )
        self.pair, self.bodies = pair, bodies

    def distance(self, sizes, poses):
        meshes = "".join(
            f'<mesh name="m{k}" vertex="{" ".join(map(repr, (CORNERS * size).ravel().tolist()))}"/>'
            for k, (kind, size) in enumerate(zip(self.pair, sizes, strict=True))
            if kind == "mesh"
        )
        m = mujoco.MjModel.from_xml_string(
            f'<mujoco><asset>{meshes}</asset><option ccd_tolerance="1e-12" ccd_iterations="200"/>'
            f"<worldbody>{self.bodies}</worldbody></mujoco>"
        )
        d = mujoco.MjData(m)
        for k, (kind, size, pose) in enumerate(zip(self.pair, sizes, poses, strict=True)):
            R, p = np.array(pose[:9]).reshape(3, 3), np.array(pose[9:])
            if kind == "mesh":
                own, which = np.zeros(9), m.geom_dataid[k]
                mujoco.mju_quat2Mat(own, m.mesh_quat[which])
                R, p = R @ own.reshape(3, 3), p + R @ m.mesh_pos[which]
            else:
                m.geom_size[k] = (*size[: len(GEOMS[kind].split())], 0.0, 0.0)[:3]
            m.geom_rbound[k] = 10.0
            d.geom_xmat[k], d.geom_xpos[k] = R.ravel(), p
        return mujoco.mj_geomDistance(m, d, 0, 1, 10.0, np.zeros(6))


def test_the_documented_table_is_the_table():
    text = (Path(__file__).parents[1] / "docs" / "contact.md").read_text()
    assert matrix() in text
    assert set(KERNELS) == {f"{kind}_pairs{suffix}" for kind in PAIR_KINDS for suffix in ("", "_adjoint")}
    never = {frozenset(pair) for pair in itertools.combinations_with_replacement(SHAPES, 2) if _serves(*pair) is None}
    assert never == {frozenset(("plane",)), frozenset(("plane", "terrain")), frozenset(("terrain",))}


def _serves(a, b):
    order = list(SHAPES)
    return function_of(*sorted((a, b), key=order.index, reverse=True))


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_distances_are_those_of_mujoco(pair):
    rng, theirs, seen = np.random.default_rng(1), MuJoCo(pair), 0
    for _ in range(12):
        sizes, poses = drawn(rng, pair)
        expected = theirs.distance(sizes, poses)
        if expected < MARGIN:
            found = min(gap for _, _, gap in contacts(pair, sizes, poses)[1])
            # MuJoCo keeps the corners of meshes in single precision; of round bodies deep in each other, two ways out that
            # are as long to within 1e-4 of their size are not told apart
            is_deep = expected < -0.05 and {"cylinder", "ellipsoid"} & set(pair)
            assert abs(found - expected) < (3e-5 if is_deep else 1e-6)
            seen += 1
    assert seen > 6


def features(row):
    """What tells a row's features from others: all but the direction."""
    return tuple(np.round(row[:21], 9))


def moved(sizes, poses, change):
    """Bodies after small motions (12 numbers) and changes of their sizes (6)."""
    new = [tuple(float(x) for x in displaced(pose, tuple(change[6 * k : 6 * k + 6]))) for k, pose in enumerate(poses)]
    return [tuple(np.add(size, change[12 + 3 * k : 15 + 3 * k])) for k, size in enumerate(sizes)], new


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_contacts_have_the_derivatives_of_search_and_operator(pair):
    """Differences go through the search as well: only where it finds other features do they say nothing."""
    rng, checked, step = np.random.default_rng(2), 0, 1e-6
    while checked < 3:
        sizes, poses = drawn(rng, pair, 0.12)
        rows, found = contacts(pair, sizes, poses)
        nearest = min(range(len(found)), key=lambda k: found[k][2], default=None)
        if nearest is None or found[nearest][2] > 0.1:
            continue
        row, bars = rows[nearest], (tuple(rng.normal(size=3)), tuple(rng.normal(size=3)), rng.normal())
        forms = [form_of(NUMBERS[kind]) for kind in pair]
        back = convex_contact_adjoint(poses[0], sizes[0], poses[1], sizes[1], *forms, row, bars)
        gradient = np.concatenate([np.asarray(part, float) for part in back])
        direction = rng.normal(size=18)
        values = []
        for sign in (1.0, -1.0):
            again = moved(sizes, poses, sign * step * direction)
            alike = [c for r, c in zip(*contacts(pair, *again), strict=True) if features(r) == features(row)]
            if alike:
                point, normal, gap = alike[0]
                values.append(np.dot(bars[0], point) + np.dot(bars[1], normal) + bars[2] * gap)
        if len(values) == 2:
            slope = (values[0] - values[1]) / (2 * step)
            assert abs(gradient @ direction - slope) < 1e-6 * max(1.0, abs(slope), np.abs(gradient).max())
            checked += 1


def test_gradient_of_a_cylinder_that_stands_nearly_upright():
    """The deepest point of its rim goes round with the tilt: taken for a point of the body, it would give a wrong derivative."""
    table, can = jg.Description("table", base="fixed"), jg.Description("can", base="free")
    table.add_link("table").shapes.append(jg.Shape("box", (0.5, 0.4, 0.2)))
    can.add_link("can", 1.0, inertia=(0.01, 0.012, 0.011)).shapes.append(jg.Shape("cylinder", (0.1, 0.15)))
    model = jg.World().add(table).add(can).compile(dt=1e-3)
    tilt, h = 1e-4, 1e-7
    q = np.array([0.03, 0.02, 0.35 - 9e-5, 1.0, tilt / 2 * np.cos(0.7), tilt / 2 * np.sin(0.7), 0.0])
    qd, qd_bar = np.array([0.1, -0.05, -0.1, 0.02, 0.03, -0.1]), np.array([0.3, -0.2, 0.5, 1.0, -0.7, 0.4])
    gradient = jg.rollout(model, jg.State(q, qd), steps=1).backward(qd_bar=qd_bar).q
    for k in range(6):
        way = np.eye(7)[k] if k < 3 else np.concatenate((np.zeros(4), 0.5 * np.eye(3)[k - 3]))
        ends = [qd_bar @ jg.rollout(model, jg.State(q + s * h * way, qd), steps=1).last.qd for s in (1, -1)]
        assert gradient @ way == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=3e-3)  # rounding over h
