"""Contact points of pairs of shapes: against MuJoCo, against clipping and distances of our own, and their reverse."""

import itertools
from functools import cache as memoized

import mujoco
import numpy as np
import pytest

from jointgrad.compiler.field import INTEGERS, SCALAR, Frame, Schema
from jointgrad.compiler.kernel import Library, kernel
from jointgrad.compiler.reverse import tangent
from jointgrad.compiler.trace import flatten, shaped_like
from jointgrad.engine.kernels.stages.detection import boxes, capsules, points
from jointgrad.engine.kernels.stages.detection.points import FAR, displaced

ENDS = ((-1.0,), (1.0,))
ROUND = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))
CORNERS = tuple(itertools.product((-1.0, 1.0), repeat=3))


def of(module, name, extras=((),)):
    return [(getattr(module, name), getattr(module, f"{name}_adjoint"), extra) for extra in extras]


BOX_BOX = [
    *of(boxes, "box_box_clip", [(*corner, leaves) for corner in ROUND for leaves in (-1.0, 1.0)]),
    *of(boxes, "box_box_corner", ROUND),
    *of(boxes, "box_box_edge"),
]
# kinds of A and B, the points of the pair (operator, adjoint, further arguments), and the search before them
PAIRS = {
    "sphere plane": (of(points, "sphere_plane"), None),
    "capsule plane": (of(capsules, "capsule_plane", ENDS), None),
    "box plane": (of(points, "box_plane", CORNERS), None),
    "sphere sphere": (of(points, "sphere_sphere"), None),
    "capsule sphere": (of(capsules, "capsule_sphere"), None),
    "capsule capsule": (of(capsules, "capsule_capsule", ENDS), None),
    "box sphere": (of(boxes, "box_sphere"), None),
    "box capsule": (of(boxes, "box_capsule", ENDS), boxes.box_capsule_features),
    "box box": (BOX_BOX, boxes.box_box_features),
}


def features_of(pair, shapes):
    search = PAIRS[pair][1]
    return () if search is None else (search(*shapes),)


def stacked(values, count):
    return np.stack([np.broadcast_to(np.asarray(x, float), count) for x in flatten(values)], axis=-1)


def contacts(pair, A, a, B, b):
    """Points (j, n, 3), normals (j, n, 3) and gaps (j, n) of n pairs of shapes."""
    found = features_of(pair, (A, a, B, b))
    rows = np.stack([stacked(op(A, a, B, b, *found, *extra), len(A[0])) for op, _, extra in PAIRS[pair][0]])
    return rows[..., :3], rows[..., 3:6], rows[..., 6]


# poses and sizes ------------------------------------------------------------------------------------------------------


def turns(rng, count):
    Q, R = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    Q = Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    return Q


def posed(R, p):
    """Poses as the operators take them, from matrices (n, 3, 3) and positions (n, 3)."""
    return (*R.reshape(-1, 9).T.copy(), *np.asarray(p, float).T.copy())


def matrices(pose):
    return np.stack(pose[:9], axis=-1).reshape(-1, 3, 3), np.stack(pose[9:], axis=-1)


def drawn(count, seed=0, spread=0.25, rotation=None):
    """Two shapes of sizes 0.05 to 0.3 at random, some apart and some overlapping."""
    rng = np.random.default_rng(seed)
    sizes = [tuple(rng.uniform(0.05, 0.3, size=(3, count))) for _ in range(2)]
    Rs = [turns(rng, count) if rotation is None else rotation(rng, count) for _ in range(2)]
    ps = [rng.normal(size=(count, 3)) * spread for _ in range(2)]
    return posed(Rs[0], ps[0]), sizes[0], posed(Rs[1], ps[1]), sizes[1]


def taken(shapes, which):
    return tuple(tuple(np.asarray(x)[which] for x in part) for part in shapes)


def rotation_about(axis, angle):
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def one(R, p, size):
    """A single shape: its pose and size, each number an array of one."""
    return posed(np.asarray(R, float)[None], np.asarray(p, float)[None]), tuple(np.array([float(x)]) for x in size)


# MuJoCo ---------------------------------------------------------------------------------------------------------------

GEOMS = {"plane": "0 0 1", "sphere": ".1", "capsule": ".1 .1", "box": ".1 .1 .1"}


class MuJoCo:
    """A model of two shapes whose sizes and poses are overwritten: distances, and contacts within a margin."""

    def __init__(self, pair, margin=0.5):
        kinds = pair.split()[::-1]  # B first: MuJoCo orders by kind, and its normal points from the first to the second
        bodies = "".join(
            f'<body><freejoint/><geom name="g{k}" type="{kind}" size="{GEOMS[kind]}" mass="1"/></body>'
            if kind != "plane"
            else f'<geom name="g{k}" type="plane" size="{GEOMS[kind]}"/>'
            for k, kind in enumerate(kinds)
        )
        pairs = f'<contact><pair geom1="g0" geom2="g1" margin="{margin}"/></contact>'
        self.model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody>{pairs}</mujoco>")
        self.data = mujoco.MjData(self.model)
        self.kinds = kinds

    def place(self, A, a, B, b):
        mujoco.mj_forward(self.model, self.data)
        for k, (pose, size) in enumerate(((B, b), (A, a))):
            if self.kinds[k] != "plane":
                self.model.geom_size[k] = [float(x) for x in size]
                self.model.geom_rbound[k] = 3.0
            self.data.geom_xmat[k] = [float(x) for x in pose[:9]]
            self.data.geom_xpos[k] = [float(x) for x in pose[9:]]

    def distance(self, shapes):
        """(distance, place on B, place on A)"""
        self.place(*shapes)
        ends = np.zeros(6)
        distance = mujoco.mj_geomDistance(self.model, self.data, 0, 1, 10.0, ends)
        return distance, ends[:3], ends[3:]

    def contacts(self, shapes):
        self.place(*shapes)
        mujoco.mj_collision(self.model, self.data)
        found = self.data.contact
        return np.array(found.pos), np.array(found.frame)[:, :3], np.array(found.dist)


def mujoco_distances(pair, shapes):
    oracle, count = MuJoCo(pair), len(shapes[0][0])
    rows = [oracle.distance(taken(shapes, k)) for k in range(count)]
    return np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), np.array([r[2] for r in rows])


def nearest(pair, shapes):
    """The contact with the least gap."""
    point, normal, gap = contacts(pair, *shapes)
    best, k = gap.argmin(axis=0), np.arange(gap.shape[1])
    return point[best, k], normal[best, k], gap[best, k]


@pytest.mark.parametrize("pair", [p for p in PAIRS if p not in ("box capsule", "box box")])
def test_distance_like_mujoco(pair):
    shapes = drawn(400, seed=1)
    point, normal, gap = nearest(pair, shapes)
    distance, on_B, on_A = mujoco_distances(pair, shapes)
    assert (gap < -0.02).sum() > 40 and (gap > 0.02).sum() > 40
    np.testing.assert_allclose(gap, distance, atol=2e-6)
    clear = np.abs(distance) > 0.01
    way = (on_A - on_B)[clear] / distance[clear, None]
    np.testing.assert_allclose(normal[clear], way, atol=2e-3)
    np.testing.assert_allclose(point[clear], (0.5 * (on_A + on_B))[clear], atol=1e-3)


@pytest.mark.parametrize("pair", ["sphere plane", "capsule plane", "sphere sphere", "capsule sphere", "box sphere"])
def test_contacts_like_mujoco(pair):
    """As many points as MuJoCo makes, in the same places."""
    shapes, oracle = drawn(200, seed=2, spread=0.15), MuJoCo(pair)
    ours = contacts(pair, *shapes)
    seen = 0
    for k in range(200):
        theirs = oracle.contacts(taken(shapes, k))
        near = np.flatnonzero(ours[2][:, k] < 0.5)
        order = [near[np.abs(ours[0][near, k] - p).sum(axis=1).argmin()] for p in theirs[0]]
        assert sorted(order) == list(near)
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine[order, k], other, atol=1e-9)
        seen += len(order)
    assert seen > 100


def test_corners_on_a_plane_like_mujoco():
    """MuJoCo keeps four corners at most; each is one of ours, and the lowest is among them."""
    shapes, oracle = drawn(200, seed=3), MuJoCo("box plane", margin=0.0)
    point, normal, gap = contacts("box plane", *shapes)
    for k in range(200):
        place, across, distance = oracle.contacts(taken(shapes, k))
        assert len(place) == min(4, (gap[:, k] < 0).sum())
        for p, n, d in zip(place, across, distance, strict=True):
            j = np.abs(point[:, k] - p).sum(axis=1).argmin()
            np.testing.assert_allclose((*point[j, k], *normal[j, k], gap[j, k]), (*p, *n, d), atol=1e-9)


# distances of our own -------------------------------------------------------------------------------------------------


def height(kind, pose, size, x):
    """Distance of places x (n, 3) from the surface of a shape, negative inside."""
    R, p = matrices(pose)
    y, size = np.einsum("nji,nj->ni", R, x - p), np.stack(size, axis=-1)
    if kind == "plane":
        return y[:, 2]
    if kind == "sphere":
        return np.linalg.norm(y, axis=1) - size[:, 0]
    if kind == "capsule":
        y[:, 2] -= np.clip(y[:, 2], -size[:, 1], size[:, 1])
        return np.linalg.norm(y, axis=1) - size[:, 0]
    q = np.abs(y) - size
    return np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(axis=1), 0)


def slack(pair):
    """How far off a surface a contact may be: box faces are widened by a hundred-thousandth before they are cut."""
    return 2e-5 if pair == "box box" else 1e-9


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("spread", [0.1, 0.25])
def test_contacts_join_the_surfaces(pair, spread):
    """Half a gap from each point, along the normal, lies the surface of A, and the other way that of B."""
    shapes = drawn(500, seed=4, spread=spread)
    kinds = pair.split()
    for (operator, _, _), point, normal, gap in zip(PAIRS[pair][0], *contacts(pair, *shapes), strict=True):
        which = gap < FAR
        if operator is boxes.box_box_edge:
            which &= gap < 0.0  # boxes apart need not be nearest where their edges are
        here = taken(shapes, which)
        np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-12)
        way = normal[which] * gap[which, None] * 0.5
        for kind, shape, x in ((kinds[0], here[:2], point[which] + way), (kinds[1], here[2:], point[which] - way)):
            above = height(kind, *shape, x)
            # the sphere at an end may touch with what is inside the capsule; the other end then touches first
            is_end = kind == "capsule" and operator in (capsules.capsule_plane, boxes.box_capsule)
            np.testing.assert_array_less(above, slack(pair))
            np.testing.assert_array_less(-1.0 if is_end else -slack(pair), above)


@pytest.mark.parametrize("pair", ["sphere sphere", "capsule capsule", "box box"])
def test_exchange_of_the_shapes(pair):
    """The same pair the other way round: same least gap, opposite normal."""
    A, a, B, b = drawn(500, seed=5)
    point, normal, gap = nearest(pair, (A, a, B, b))
    point_, normal_, gap_ = nearest(pair, (B, b, A, a))
    # among faces that separate equally well to within the margin, the first box's is taken
    same = (gap < FAR) & (np.abs(gap - gap_) < 1e-9)
    assert same.mean() > 0.75 if pair == "box box" else same.all()
    np.testing.assert_allclose(normal[same], -normal_[same], atol=1e-7)
    np.testing.assert_allclose(point[same], point_[same], atol=1e-5)


# capsules -------------------------------------------------------------------------------------------------------------


def upright(rng, count):
    return np.broadcast_to(np.eye(3), (count, 3, 3))


def test_parallel_capsules_touch_at_both_ends_of_their_overlap():
    A, a, B, b = drawn(300, seed=6, rotation=upright)
    point, normal, gap = contacts("capsule capsule", A, a, B, b)
    low, high = np.maximum(A[11] - a[1], B[11] - b[1]), np.minimum(A[11] + a[1], B[11] + b[1])
    beside = high > low
    assert 100 < beside.sum() < 290
    np.testing.assert_allclose(point[0, beside, 2], low[beside], atol=1e-12)
    np.testing.assert_allclose(point[1, beside, 2], high[beside], atol=1e-12)
    apart = np.hypot(A[9] - B[9], A[10] - B[10]) - a[0] - b[0]
    np.testing.assert_allclose(gap[:, beside], np.stack([apart, apart])[:, beside], atol=1e-12)
    assert (gap[0, ~beside] == FAR).all() and (gap[1, ~beside] < FAR).all()


def test_the_switch_to_parallel_is_small():
    """Crossing capsules a little more and a little less than parallel: the least gap changes by micrometres."""
    B, b = one(np.eye(3), (0, 0, 0), (0.05, 0.2, 0))
    least = []
    for angle in (0.99, 1.01):
        A, a = one(rotation_about((1, 0, 0), angle * capsules.PARALLEL**0.5), (0.11, 0.0, 0.03), (0.05, 0.2, 0))
        least.append(contacts("capsule capsule", A, a, B, b)[2].min())
    assert 0.0 < abs(least[1] - least[0]) < 3e-6


def axis_samples(B, b, count=801):
    R, p = matrices(B)
    s = np.linspace(-1, 1, count)
    return p[:, None] + s[None, :, None] * (R[:, None, :, 2] * b[1][:, None, None])


def segment_height(A, a, B, b):
    """The least height of a capsule's axis above a box, by sampling."""
    x = axis_samples(B, b)
    return np.stack([height("box", A, a, x[:, k]) for k in range(x.shape[1])]).min(axis=0)


def test_box_and_capsule_apart():
    """While its axis is outside the box, the nearer of a capsule's two contacts is the distance."""
    shapes = drawn(1500, seed=7, spread=0.3)
    outside = segment_height(*shapes) > 0.0
    shapes = taken(shapes, outside)
    point, normal, gap = nearest("box capsule", shapes)
    distance, on_B, on_A = mujoco_distances("box capsule", shapes)
    assert len(gap) > 500 and (gap < -0.01).sum() > 100
    np.testing.assert_allclose(gap, segment_height(*shapes) - shapes[3][0], atol=2e-3)
    np.testing.assert_allclose(gap, distance, atol=2e-6)
    kinds = (np.stack(boxes.box_capsule_features(*shapes)).reshape(2, 3, -1) ** 2).sum(axis=1)
    assert {0.0, 2.0, 3.0} == set(kinds.ravel())


def separations(corners_A, axes_A, corners_B, axes_B):
    """Signed distances of two convex sets along the axes of both and their cross products: (axes, separations)."""
    axes = np.concatenate([axes_A, axes_B, np.cross(axes_A[:, None], axes_B[None]).reshape(-1, 3)])
    length = np.linalg.norm(axes, axis=1)
    axes = axes[length > 1e-3] / length[length > 1e-3, None]
    up, down = corners_A @ axes.T, corners_B @ axes.T
    apart = np.stack([up.min(axis=0) - down.max(axis=0), down.min(axis=0) - up.max(axis=0)])
    return axes * np.where(apart[0] > apart[1], 1.0, -1.0)[:, None], apart.max(axis=0)


def corners_of(pose, size):
    R, p = matrices(pose)
    return p[0] + (np.array(CORNERS) * np.array([x[0] for x in size])) @ R[0].T


def test_capsule_through_a_box():
    """With its axis inside, a capsule leaves along the axis that separates best; an edge's is a contact.

    MuJoCo is no measure here: most of its depths are smaller than any separating axis allows.
    """
    shapes = drawn(1000, seed=8, spread=0.15)
    shapes = taken(shapes, segment_height(*shapes) < -1e-3)
    by_edge = 0
    _, normals, gaps = contacts("box capsule", *shapes)
    features = np.stack(boxes.box_capsule_features(*shapes)).reshape(2, 3, -1)
    for k in range(gaps.shape[1]):
        A, a, B, b = taken(shapes, [k])
        normal, gap = normals[:, k], gaps[:, k]
        (R,), (Q,) = matrices(A)[0], matrices(B)[0]
        axes, apart = separations(corners_of(A, a), R.T, axis_samples(B, b, 2)[0], Q[:, 2:].T)
        for side in np.flatnonzero((features[:, :, k] ** 2).sum(axis=1) == 2):
            assert gap[side] + b[0][0] > apart.max() - 0.051 * abs(apart.max())
        if apart[3:].max() > apart[:3].max() + 1e-6:
            by_edge += 1
            side = np.abs(gap + b[0] - apart.max()).argmin()
            np.testing.assert_allclose(gap[side] + b[0], apart.max(), atol=1e-12)
            np.testing.assert_allclose(normal[side], axes[apart.argmax()], atol=1e-9)
    assert by_edge > 30


LYING = rotation_about((0, 1, 0), np.pi / 2)  # a capsule along x


@pytest.mark.parametrize(
    ("x", "half", "expected"),
    [(0.0, 0.05, (-0.05, 0.05)), (0.1, 0.05, (0.05, 0.1)), (0.02, 0.3, (-0.1, 0.1)), (-0.08, 0.1, (-0.1, 0.02))],
    ids=["on the face", "over one edge", "over both edges", "over the other edge"],
)
@pytest.mark.parametrize("tilt", [0.0, 1e-9, -1e-6, 1e-3])
@pytest.mark.parametrize("turn", [0.0, 0.3])
def test_capsule_lying_on_a_box(x, half, expected, tilt, turn):
    spin = rotation_about((0, 0, 1), turn)
    A, a = one(np.eye(3), (0, 0, 0), (0.1, 0.4, 0.2))
    B, b = one(
        spin @ rotation_about((0, 1, 0), tilt) @ LYING,
        spin @ (x / np.cos(turn), 0, 0.249),
        (0.05, half / np.cos(turn), 0),
    )
    point, normal, gap = contacts("box capsule", A, a, B, b)
    np.testing.assert_allclose(point[:, 0, 0], expected, atol=1e-12 + 0.3 * abs(tilt))
    np.testing.assert_allclose(gap, -0.001, atol=1e-12 + 0.5 * abs(tilt))
    np.testing.assert_allclose(normal[:, 0], [(0, 0, -1)] * 2, atol=1e-12 + 2 * abs(tilt))


SLIDER = (0.05, 0.15, 0.0)


def repeated(values, count):
    return tuple(np.broadcast_to(x, count) for x in values)


def test_a_capsule_slides_over_the_edge_of_a_box_without_a_jump():
    """An end hands over to an edge, and an edge to an end, where they coincide."""
    A, a = one(np.eye(3), (0, 0, 0), (0.1, 0.4, 0.2))
    x, step = np.arange(-0.2, 0.2, 1e-4), 1e-4
    places = np.stack([x, np.full_like(x, 0.01), np.full_like(x, 0.24)], axis=1)
    B = posed(np.broadcast_to(rotation_about((0, 0, 1), 0.2) @ LYING, (len(x), 3, 3)), places)
    point, normal, gap = contacts("box capsule", repeated(A, len(x)), repeated(a, len(x)), B, repeated(SLIDER, len(x)))
    for part in (point, normal, gap):
        assert np.abs(np.diff(part, axis=1)).max() < 1.1 * step
    assert all(len(np.unique(np.round(side[:, 0], 4))) > 1000 for side in point)


# two boxes ------------------------------------------------------------------------------------------------------------


def test_boxes_that_overlap_like_mujoco():
    """The deepest point is the least way out (of EPA), or a twentieth deeper where a face was preferred to an edge."""
    shapes = drawn(1000, seed=9, spread=0.2)
    distance, on_B, on_A = mujoco_distances("box box", shapes)
    point, normal, gap = nearest("box box", shapes)
    over = distance < -1e-3
    assert over.sum() > 300
    excess = ((gap - distance) / -distance)[over]
    assert excess.max() < 1e-6 and excess.min() > -0.053
    exact = over & (np.abs(gap - distance) < 1e-9)
    way = (on_A - on_B)[exact] / distance[exact, None]
    assert exact.sum() > 0.8 * over.sum()
    np.testing.assert_allclose(normal[exact], way, atol=1e-6)
    holder = boxes.box_box_features(*shapes)[0]
    assert all((holder[exact] == k).sum() > 30 for k in (-1, 0, 1))


def test_boxes_apart_do_not_touch():
    shapes = drawn(1000, seed=10, spread=0.4)
    distance = mujoco_distances("box box", shapes)[0]
    gap = nearest("box box", shapes)[2]
    assert (distance > 0).sum() > 500
    assert (gap[distance > 1e-5] > 0.0).all()


def clipped(polygon, planes):
    """Sutherland and Hodgman: the part of a polygon where normal . x <= offset for all planes."""
    for normal, offset in planes:
        out = []
        for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True):
            hp, hq = normal @ p - offset, normal @ q - offset
            if hp <= 0:
                out.append(p)
            if (hp <= 0) != (hq <= 0):
                out.append(p + (q - p) * hp / (hp - hq))
        polygon = out
    return polygon


def face_polygon(pose, size, face):
    """Corners of a face in order, its normal, and the planes of the four sides of the face, widened."""
    (R,), (p,) = matrices(pose)
    size, k = np.array([x[0] for x in size]), int(np.abs(face).argmax())
    i, j = (k + 1) % 3, (k + 2) % 3
    middle = p + R[:, k] * face[k] * size[k]
    corners = [middle + sx * size[i] * R[:, i] + sy * size[j] * R[:, j] for sx, sy in ROUND]
    planes = [
        (sign * R[:, n], sign * (R[:, n] @ p) + size[n] * (1 + boxes.SLACK)) for n in (i, j) for sign in (-1.0, 1.0)
    ]
    return corners, R[:, k] * face[k], planes, middle


def independent_manifold(shapes, features):
    A, a, B, b = shapes
    reference, incident = ((A, a), (B, b)) if features[0] > 0 else ((B, b), (A, a))
    _, normal, planes, middle = face_polygon(*reference, features[1:4])
    corners = face_polygon(*incident, features[4:7])[0]
    polygon = clipped(corners, planes)
    gaps = np.array([normal @ (p - middle) for p in polygon])
    points_ = [p - 0.5 * g * normal for p, g in zip(polygon, gaps, strict=True)]
    return np.array(points_).reshape(-1, 3), gaps, -features[0] * normal


def test_boxes_meet_in_the_clipped_polygon():
    shapes = drawn(600, seed=11, spread=0.12)
    counts = []
    all_features, everything = np.stack(boxes.box_box_features(*shapes)), contacts("box box", *shapes)
    for k in np.flatnonzero(all_features[0] != 0):
        point, normal, gap = (x[:, k] for x in everything)
        exist = gap < FAR
        points_, gaps, across = independent_manifold(taken(shapes, [k]), all_features[:, k])
        counts.append(exist.sum())
        assert exist.sum() == len(points_)
        order = [np.abs(point[exist] - p).sum(axis=1).argmin() for p in points_]
        assert sorted(order) == list(range(len(points_)))
        np.testing.assert_allclose(point[exist][order], points_, atol=1e-9)
        np.testing.assert_allclose(gap[exist][order], gaps, atol=1e-9)
        np.testing.assert_allclose(normal[exist], np.tile(across, (len(points_), 1)), atol=1e-12)
    assert len(counts) > 200 and set(counts) >= {3, 4, 5, 6}


def test_features_separate_best():
    """The axis of the features found separates as well as any of the fifteen, within the margin."""
    shapes = drawn(500, seed=12, spread=0.2)
    features = boxes.box_box_features(*shapes)
    by_edge = boxes.box_box_edge(*shapes, features)[2]
    for k in range(500):
        A, a, B, b = taken(shapes, [k])
        (R,), (Q,) = matrices(A)[0], matrices(B)[0]
        _, apart = separations(corners_of(A, a), R.T, corners_of(B, b), Q.T)
        holder, *signs = (x[k] for x in features)
        if holder == 0:
            found = by_edge[k]
            assert found > apart[:6].max()
        else:
            found = apart[np.abs(signs[:3]).argmax() + (0 if holder > 0 else 3)]
            assert (np.abs(signs) == 1).sum() == 2
        # B's face must beat A's by a twentieth, then an edge must beat that
        assert apart.max() <= found + 0.11 * abs(found) + 1e-5


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-9, 1e-7])
@pytest.mark.parametrize(
    ("place", "size", "corners"),
    [
        ((0, 0, 0.199), (0.1, 0.1, 0.1), [(x, y) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]),
        ((0.05, 0.02, 0.199), (0.1, 0.1, 0.1), [(x, y) for x in (-0.05, 0.1) for y in (-0.08, 0.1)]),
        ((0.05, 0.0, 0.149), (0.02, 0.03, 0.05), [(x, y) for x in (0.03, 0.07) for y in (-0.03, 0.03)]),
        ((0.1, 0.0, 0.149), (0.3, 0.3, 0.05), [(x, y) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]),
        ((0.0, 0.0, 0.149), (0.3, 0.05, 0.05), [(x, y) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]),
        ((0.2, 0.0, 0.149), (0.1, 0.1, 0.05), []),
    ],
    ids=["same size", "shifted", "smaller", "larger", "a cross", "side by side"],
)
def test_box_resting_on_a_box(place, size, corners, noise):
    """Four points at the corners of the overlap, whatever the rounding of the poses."""
    rng, count = np.random.default_rng(13), 20
    wobble = np.stack([rotation_about(rng.normal(size=3), noise) for _ in range(count)])
    shift = (
        rng.normal(size=(count, 3)) * noise * np.array([0.02, 1.0] * (count // 2))[:, None]
    )  # less, more than the turn
    A, a = posed(wobble, place + shift), repeated(size, count)
    B, b = posed(np.broadcast_to(np.eye(3), (count, 3, 3)), np.zeros((count, 3))), repeated((0.1, 0.1, 0.1), count)
    for shapes, up in (((A, a, B, b), 1), ((B, b, A, a), -1)):
        points_, normals, gaps = contacts("box box", *shapes)
        if not corners:
            assert (gaps > -1e-5).all()
            continue
        for k in range(count):
            exist = gaps[:, k] < 0.1
            assert exist.sum() == 4
            for x, y in corners:
                near = np.abs(points_[exist, k] - (x, y, place[2] - size[2] + 0.0005)).sum(axis=1)
                assert near.min() < 1e-5
            np.testing.assert_allclose(gaps[exist, k], -0.001, atol=1e-6)
            np.testing.assert_allclose(normals[exist, k], [(0, 0, up)] * 4, atol=1e-6)


def test_turned_box_on_a_box_has_eight_points():
    """Like MuJoCo's, in the same places."""
    for angle in (0.3, np.pi / 4, 1.0):
        A, a = one(rotation_about((0, 0, 1), angle), (0.01, 0.005, 0.199), (0.1, 0.1, 0.1))
        B, b = one(np.eye(3), (0, 0, 0), (0.1, 0.1, 0.1))
        point, normal, gap = (x[:, 0] for x in contacts("box box", A, a, B, b))
        exist = gap < FAR
        places, across, distance = MuJoCo("box box", margin=0.0).contacts(taken((A, a, B, b), 0))
        assert exist.sum() == len(places) == 8
        for p in places:
            assert np.abs(point[exist] - p).sum(axis=1).min() < 1e-5
        np.testing.assert_allclose(gap[exist], -0.001, atol=1e-9)
        np.testing.assert_allclose(normal[exist], across, atol=1e-9)


# the reverse ----------------------------------------------------------------------------------------------------------


def turned(pose, turn):
    """Poses (12 arrays) turned about their positions by rotation vectors (3 numbers)."""
    R, p = matrices(pose)
    angle = np.linalg.norm(turn)
    return posed((rotation_about(turn, angle) if angle > 0 else np.eye(3)) @ R, p)


def varied(shapes, direction, h):
    """The shapes after one small change: 0 to 5 moves A, 6 to 11 moves B, 12 to 17 change their sizes."""
    A, a, B, b = shapes
    which, k = divmod(direction, 6)
    if which == 2:
        sizes = [*a, *b]
        sizes[k] = sizes[k] + h
        return A, tuple(sizes[:3]), B, tuple(sizes[3:])
    pose = (A, B)[which]
    step = h * np.eye(3)[k % 3]
    pose = turned(pose, step) if k < 3 else (*pose[:9], *(x + d for x, d in zip(pose[9:], step, strict=True)))
    return (pose, a, B, b) if which == 0 else (A, a, pose, b)


def differences(value, shapes, h):
    """Fourth-order central differences along all eighteen changes, (18, n)."""

    def at(direction, step):
        return value(*varied(shapes, direction, step))

    return np.stack([(8 * (at(d, h) - at(d, -h)) - (at(d, 2 * h) - at(d, -2 * h))) / (12 * h) for d in range(18)])


def bars_for(count, seed=14):
    bars = tuple(np.random.default_rng(seed).normal(size=(7, count)))
    return bars[:3], bars[3:6], bars[6]


def reverse_error(pair, shapes, h=2e-4):
    """Largest error of each adjoint, and how often its contact exists and is smooth, by operator and arguments."""
    found, count = features_of(pair, shapes), len(shapes[0][0])
    bars = bars_for(count)
    for operator, reverse, extra in PAIRS[pair][0]:

        def value(A, a, B, b, operator=operator, extra=extra):
            rows = stacked(operator(A, a, B, b, *found, *extra), count)
            return (rows * stacked(bars, count)).sum(axis=1)

        expected, again = differences(value, shapes, h), differences(value, shapes, h / 2)
        mine = stacked(reverse(*shapes, *found, *extra, bars), count).T
        scale = 1.0 + np.abs(expected).max(axis=0)
        # where two step lengths disagree, the case changes within the step, or the point moves too fast for it
        smooth = (np.abs(expected - again) < 2e-8 * scale).all(axis=0)
        exists = stacked(operator(*shapes, *found, *extra), count)[:, 6] < FAR
        error = (np.abs(mine - expected) / scale).max(axis=0)
        yield (operator.__name__, extra), error[smooth].max(initial=0.0), (smooth & exists).sum(), smooth.mean()


def stacks(count, seed=15):
    """Boxes that rest on boxes, tilted a little and turned at will."""
    rng = np.random.default_rng(seed)
    a, b = (tuple(rng.uniform(0.1, 0.3, size=(3, count))) for _ in range(2))
    tilt = np.stack([rotation_about(rng.normal(size=3) * (0.05, 0.05, 1), rng.uniform(0, 1)) for _ in range(count)])
    place = rng.uniform(-0.2, 0.2, size=(count, 3))
    place[:, 2] = a[2] + b[2] - 0.01
    return posed(tilt, place), a, posed(np.stack([np.eye(3)] * count), np.zeros((count, 3))), b


def parallels(count, seed=16, tilt=1e-3):
    """Capsules that are parallel to within less than what counts as parallel."""
    rng = np.random.default_rng(seed)
    A, a, B, b = drawn(count, seed=seed)
    R = matrices(A)[0]
    Q = np.stack([rotation_about(rng.normal(size=3), tilt * rng.uniform(0.1, 1)) for _ in range(count)]) @ R
    return A, a, posed(Q, matrices(B)[1]), b


def lying(count, seed=17):
    """Boxes, and capsules flat on the upper face, over one edge, over two, over none."""
    rng = np.random.default_rng(seed)
    A, a, B, b = drawn(count, seed=seed)
    flat = np.stack(
        [
            rotation_about((0, 0, 1), rng.uniform(-3, 3)) @ rotation_about((0, 1, 0), rng.normal() * 5e-4)
            for _ in range(count)
        ]
    )
    place = rng.uniform(-0.2, 0.2, size=(count, 3))
    place[:, 2] = a[2] + b[0] * rng.uniform(0.5, 1.2, size=count)
    R, p = matrices(A)
    return A, a, posed(R @ flat @ LYING, p + np.einsum("nij,nj->ni", R, place)), b


FAMILIES = [(pair, drawn, 0.1) for pair in PAIRS] + [(pair, drawn, 0.25) for pair in PAIRS]
FAMILIES += [("box box", stacks, None), ("capsule capsule", parallels, None), ("box capsule", lying, None)]


@pytest.mark.parametrize(("pair", "family", "spread"), FAMILIES)
def test_adjoints(pair, family, spread):
    """Against central differences, in all cases, wherever the case is the same on both sides."""
    shapes = family(200) if spread is None else drawn(200, seed=18, spread=spread)
    n_used = 0
    for name, error, used, smooth in reverse_error(pair, shapes):
        assert error < 1e-7, name
        assert smooth > 0.5, name
        n_used += used
    assert n_used > 100


def test_adjoints_are_seen_in_every_case():
    """The random families hold every kind of feature: faces of both, edges; ends, edges, corners; one and two sides."""
    kinds = np.stack(boxes.box_capsule_features(*drawn(200, seed=18))).reshape(2, 3, -1)
    assert {0.0, 2.0, 3.0} == set((kinds**2).sum(axis=1).ravel())
    assert ((np.stack(boxes.box_capsule_features(*lying(200))).reshape(2, 3, -1) ** 2).sum(axis=1) > 0).all(
        axis=0
    ).sum() > 10
    assert {-1.0, 0.0, 1.0} == set(boxes.box_box_features(*drawn(200, seed=18)[:4])[0])
    both = contacts("capsule capsule", *parallels(200))[2] < FAR
    assert both.all(axis=0).sum() > 50
    exist = contacts("box box", *stacks(200))[2] < FAR
    assert (exist.sum(axis=1)[:12] > 0).all()


# degenerate configurations --------------------------------------------------------------------------------------------

SIZES = ((0.1, 0.1, 0.1), (0.1, 0.2, 0.3), (0.0, 0.2, 0.1), (0.1, 0.0, 0.0), (0.0, 0.0, 0.0))
ROTATIONS = [
    np.eye(3),
    rotation_about((0, 1, 0), np.pi / 2),
    rotation_about((1, 0, 0), np.pi),
    rotation_about((0, 0, 1), np.pi / 4),
    rotation_about((1, 0, 0), np.pi / 4),
    rotation_about((1, 1, 1), 2 * np.pi / 3),
    rotation_about((1, 2, 3), 1e-12),
    rotation_about((1, 2, 3), 1e-6),
    rotation_about((1, -1, 0), np.arctan(2**0.5)),  # a corner up
]
STEPS = (0.0, 0.1, -0.2, 0.2, 0.3, 1e-13, 3e-12)


def degenerate():
    """Special places, turns and sizes in every combination: coincident, on faces, edges, corners, parallel, flat."""
    places = list(itertools.product(STEPS, STEPS, (0.0, 0.1, 0.3, 1e-7, -0.4)))
    cases = list(itertools.product(range(len(ROTATIONS)), SIZES, SIZES, places))
    R = np.stack([ROTATIONS[c[0]] for c in cases])
    a, b = (tuple(np.array([c[k] for c in cases]).T.copy()) for k in (1, 2))
    upright_ = posed(np.broadcast_to(np.eye(3), R.shape), np.zeros((len(cases), 3)))
    return posed(R, np.array([c[3] for c in cases])), a, upright_, b


@pytest.mark.parametrize("pair", PAIRS)
def test_degenerate_configurations_are_finite(pair):
    """Values and cotangents, and the tangents of both; nothing divides by zero or overflows, even if unused."""
    shapes = degenerate()
    count = len(shapes[0][0])
    bars = tuple(np.ones((7, count)))
    bars = (bars[:3], bars[3:6], bars[6])
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        found = features_of(pair, shapes)
        for operator, reverse, extra in PAIRS[pair][0]:
            point, normal, gap = operator(*shapes, *found, *extra)
            assert np.isfinite(stacked((point, normal, gap), count)).all()
            np.testing.assert_allclose(sum(np.asarray(x) ** 2 for x in normal), 1.0, atol=1e-6)
            assert np.isfinite(stacked(reverse(*shapes, *found, *extra, bars), count)).all()
        last_calls = {operator: (reverse, extra) for operator, reverse, extra in PAIRS[pair][0]}
        for reverse, extra in last_calls.values():
            args = (*shapes, *found, *(np.full(count, x) for x in extra), bars)
            dots = shaped_like(args, [np.ones(count) for _ in flatten(args)])
            assert np.isfinite(stacked(tangent(reverse)(*args, dots), count)).all()


@pytest.mark.parametrize("pair", PAIRS)
def test_degenerate_configurations_on_floats(pair):
    """The no-compiler mode, where a division by zero raises."""
    shapes = degenerate()
    for k in np.random.default_rng(19).choice(len(shapes[0][0]), 100, replace=False):
        here = tuple(tuple(float(x) for x in part) for part in taken(shapes, k))
        found = features_of(pair, here)
        for operator, reverse, extra in PAIRS[pair][0]:
            assert np.isfinite(flatten(operator(*here, *found, *extra))).all()
            bars = ((1.0, 2.0, 3.0), (0.5, -1.0, 2.0), 1.0)
            assert np.isfinite(flatten(reverse(*here, *found, *extra, bars))).all()


def test_coincident_centres_still_push_apart():
    """The gap falls along the normal that was put in: d gap = normal . (displacement of A less that of B)."""
    A, a = one(np.eye(3), (0.3, 0.2, 0.1), (0.1, 0.0, 0.0))
    for operator, reverse in (
        (points.sphere_sphere, points.sphere_sphere_adjoint),
        (capsules.capsule_sphere, capsules.capsule_sphere_adjoint),
        (boxes.box_sphere, boxes.box_sphere_adjoint),
    ):
        _, normal, gap = operator(A, a, A, a)
        zero = (np.zeros(1),) * 3
        on_A, on_B, _, _ = reverse(A, a, A, a, (zero, zero, np.ones(1)))
        np.testing.assert_allclose(stacked(on_A[3:], 1), stacked(normal, 1), atol=1e-12)
        np.testing.assert_allclose(stacked(on_B[3:], 1), -stacked(normal, 1), atol=1e-12)


# compiled -------------------------------------------------------------------------------------------------------------

sphere_plane, box_plane, sphere_sphere = points.sphere_plane, points.box_plane, points.sphere_sphere
capsule_plane, capsule_sphere, capsule_capsule = (
    capsules.capsule_plane,
    capsules.capsule_sphere,
    capsules.capsule_capsule,
)
box_sphere, box_capsule, box_capsule_features = boxes.box_sphere, boxes.box_capsule, boxes.box_capsule_features
box_box_features, box_box_clip, box_box_corner = boxes.box_box_features, boxes.box_box_clip, boxes.box_box_corner
box_box_edge = boxes.box_box_edge
capsule_capsule_adjoint, box_capsule_adjoint = capsules.capsule_capsule_adjoint, boxes.box_capsule_adjoint
box_sphere_adjoint, box_plane_adjoint = boxes.box_sphere_adjoint, points.box_plane_adjoint
box_box_clip_adjoint, box_box_corner_adjoint = boxes.box_box_clip_adjoint, boxes.box_box_corner_adjoint
box_box_edge_adjoint, capsule_plane_adjoint = boxes.box_box_edge_adjoint, capsules.capsule_plane_adjoint
sphere_plane_adjoint, sphere_sphere_adjoint = points.sphere_plane_adjoint, points.sphere_sphere_adjoint
capsule_sphere_adjoint = capsules.capsule_sphere_adjoint


@kernel
def all_contacts(frame):
    work = frame.work
    for i in range(frame.tree.n):
        A, a, B, b = work.A[i], work.a[i], work.B[i], work.b[i]
        work.row[8 * i] = sphere_plane(A, a, B, b)
        work.row[8 * i + 1] = sphere_sphere(A, a, B, b)
        work.row[8 * i + 2] = capsule_sphere(A, a, B, b)
        work.row[8 * i + 3] = box_sphere(A, a, B, b)
        for e in range(2):
            end = 2.0 * e - 1.0
            work.row[8 * i + 4 + e] = capsule_plane(A, a, B, b, end)
            work.row[8 * i + 6 + e] = capsule_capsule(A, a, B, b, end)
        work.six[i] = box_capsule_features(A, a, B, b)
        work.seven[i] = box_box_features(A, a, B, b)
        work.more[7 * i] = box_plane(A, a, B, b, -1.0, 1.0, -1.0)
        work.more[7 * i + 1] = box_capsule(A, a, B, b, work.six[i], -1.0)
        work.more[7 * i + 2] = box_capsule(A, a, B, b, work.six[i], 1.0)
        work.more[7 * i + 3] = box_box_clip(A, a, B, b, work.seven[i], 1.0, -1.0, -1.0)
        work.more[7 * i + 4] = box_box_clip(A, a, B, b, work.seven[i], 1.0, -1.0, 1.0)
        work.more[7 * i + 5] = box_box_corner(A, a, B, b, work.seven[i], -1.0, 1.0)
        work.more[7 * i + 6] = box_box_edge(A, a, B, b, work.seven[i])


@kernel
def all_adjoints(frame):
    work = frame.work
    for i in range(frame.tree.n):
        A, a, B, b, bars = work.A[i], work.a[i], work.B[i], work.b[i], work.bars[i]
        work.reverse[11 * i] = box_plane_adjoint(A, a, B, b, -1.0, 1.0, -1.0, bars)
        work.reverse[11 * i + 1] = capsule_capsule_adjoint(A, a, B, b, 1.0, bars)
        work.reverse[11 * i + 2] = box_sphere_adjoint(A, a, B, b, bars)
        work.reverse[11 * i + 3] = box_capsule_adjoint(A, a, B, b, work.six[i], -1.0, bars)
        work.reverse[11 * i + 4] = box_box_clip_adjoint(A, a, B, b, work.seven[i], 1.0, -1.0, -1.0, bars)
        work.reverse[11 * i + 5] = box_box_corner_adjoint(A, a, B, b, work.seven[i], -1.0, 1.0, bars)
        work.reverse[11 * i + 6] = box_box_edge_adjoint(A, a, B, b, work.seven[i], bars)
        work.reverse[11 * i + 7] = sphere_plane_adjoint(A, a, B, b, bars)
        work.reverse[11 * i + 8] = sphere_sphere_adjoint(A, a, B, b, bars)
        work.reverse[11 * i + 9] = capsule_plane_adjoint(A, a, B, b, -1.0, bars)
        work.reverse[11 * i + 10] = capsule_sphere_adjoint(A, a, B, b, bars)


WORK = dict(A=12, a=3, B=12, b=3, six=6, seven=7, row=7, more=7, bars=7, reverse=18)
TABLES = dict(tree=dict(n=SCALAR, none=INTEGERS), work=WORK)
SCHEMA = Schema("shapes_test", TABLES, ("all_contacts", "all_adjoints"))
ROWS, LANES = 32, 4
PER_ROW = dict(row=8, more=7, reverse=11)


@memoized
def library():
    return Library(SCHEMA, (all_contacts, all_adjoints), LANES)


def expected_contacts(A, a, B, b):
    shapes = (A, a, B, b)
    six, seven = box_capsule_features(*shapes), box_box_features(*shapes)
    row = [sphere_plane(*shapes), sphere_sphere(*shapes), capsule_sphere(*shapes), box_sphere(*shapes)]
    row += [op(*shapes, end) for op in (capsule_plane, capsule_capsule) for end in (-1.0, 1.0)]
    more = [box_plane(*shapes, -1.0, 1.0, -1.0), box_capsule(*shapes, six, -1.0), box_capsule(*shapes, six, 1.0)]
    more += [box_box_clip(*shapes, seven, 1.0, -1.0, leaves) for leaves in (-1.0, 1.0)]
    return row, [*more, box_box_corner(*shapes, seven, -1.0, 1.0), box_box_edge(*shapes, seven)], six, seven


def expected_adjoints(A, a, B, b, six, seven, bars):
    shapes = (A, a, B, b)
    return [
        box_plane_adjoint(*shapes, -1.0, 1.0, -1.0, bars),
        capsule_capsule_adjoint(*shapes, 1.0, bars),
        box_sphere_adjoint(*shapes, bars),
        box_capsule_adjoint(*shapes, six, -1.0, bars),
        box_box_clip_adjoint(*shapes, seven, 1.0, -1.0, -1.0, bars),
        box_box_corner_adjoint(*shapes, seven, -1.0, 1.0, bars),
        box_box_edge_adjoint(*shapes, seven, bars),
        sphere_plane_adjoint(*shapes, bars),
        sphere_sphere_adjoint(*shapes, bars),
        capsule_plane_adjoint(*shapes, -1.0, bars),
        capsule_sphere_adjoint(*shapes, bars),
    ]


def test_compiled_operators_are_the_same():
    """Lanes in different cases, against the same operators on arrays."""
    count = ROWS * LANES
    shapes, bars = drawn(count, seed=20, spread=0.12), tuple(np.random.default_rng(21).normal(size=(7, count)))
    rows = {f"work.{f}": ROWS * PER_ROW.get(f, 1) for f in WORK}
    frame = Frame(SCHEMA, rows, {"tree.n": ROWS, "tree.none": [0]}, LANES)
    for name, values in zip(("A", "a", "B", "b", "bars"), (*shapes, bars), strict=True):
        frame.table(f"work.{name}")[:, :, 0] = np.stack(values, axis=-1).reshape(ROWS, LANES, -1).swapaxes(1, 2)
    for name in ("all_contacts", "all_adjoints"):
        library().attach(frame, name)()

    def read(name):
        per, width = PER_ROW.get(name, 1), WORK[name]
        table = frame.table(f"work.{name}")[:, :, 0].reshape(ROWS, per, width, LANES)
        return table.transpose(1, 0, 3, 2).reshape(per, count, width)

    row, more, six, seven = expected_contacts(*shapes)
    for name, expected in (("row", row), ("more", more), ("six", [six]), ("seven", [seven])):
        np.testing.assert_allclose(read(name), np.stack([stacked(x, count) for x in expected]), atol=1e-11)
    expected = expected_adjoints(*shapes, six, seven, (bars[:3], bars[3:6], bars[6]))
    expected = np.stack([stacked(x, count) for x in expected])
    np.testing.assert_allclose(read("reverse"), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_displaced_is_the_first_order_of_a_motion():
    pose = drawn(5, seed=22)[0]
    delta = np.random.default_rng(23).normal(size=6) * 1e-6
    moved = displaced(pose, tuple(delta))
    exact = turned(pose, delta[:3])
    np.testing.assert_allclose(stacked(moved[:9], 5), stacked(exact[:9], 5), atol=1e-11)
    np.testing.assert_allclose(stacked(moved[9:], 5), stacked(pose[9:], 5) + delta[3:], atol=1e-15)
