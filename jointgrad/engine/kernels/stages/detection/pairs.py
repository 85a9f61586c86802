"""The loops over pairs of shapes, one kernel and its reverse for every function of the table (model/pair_table.py), made from
three forms: compiled only for robots that have such a pair.

A kernel goes through the pairs first..last of a run, leaves out those whose shapes are far apart in every lane, and
notes every candidate point that is near in some lane. Its reverse works on one point that was noted, `touch.first`.
"""

from types import FunctionType
from typing import Any

from .....compiler.kernel import Kernel, Sweep, inlined, lanes_of, sweep
from .....compiler.trace import traced
from .....model.pair_table import PAIR_KINDS, POINTS
from . import boxes, capsules, points, rounds
from .boxes import (
    box_box_clip,
    box_box_clip_adjoint,
    box_box_corner,
    box_box_corner_adjoint,
    box_box_edge,
    box_box_edge_adjoint,
    box_capsule,
    box_capsule_adjoint,
    box_capsule_features,
)
from .convex import convex_contact, convex_contact_adjoint
from .convex_pairs import convex_search, form_of
from .near import bars_of, give_back, may_touch, may_touch_plane, note, shapes_of
from .rounds import corner_row, floor_of, higher, looking_down, mesh_plane, mesh_plane_adjoint, nothing_found, outer
from .terrain import terrain_search

# what the table gives in place of these, in the forms and parts below
NEAR: Any = None
SEARCH: Any = None
CONTACT: Any = None
REVERSE: Any = None
OPERATOR: Any = None
OPERATOR_ADJOINT: Any = None
PARTS = 0

# the three forms: names in capitals stand for what the table gives ---------------------------------------------------------


def simple(frame):
    """Points that need no search."""
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if NEAR(frame, p):
            for part in range(PARTS):
                A, a, B, b = shapes_of(frame, p)
                note(frame, p, part, CONTACT(A, a, B, b, part))


def simple_adjoint(frame, bar):
    i = frame.touch.first
    A, a, B, b = shapes_of(frame, frame.touch.pair[i])
    give_back(frame, bar, i, REVERSE(A, a, B, b, frame.touch.part[i], bars_of(bar, i)))


def featured(frame):
    """A search in packs finds seven numbers for all points of a pair."""
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if NEAR(frame, p):
            A, a, B, b = shapes_of(frame, p)
            features = SEARCH(A, a, B, b)
            for part in range(PARTS):
                i = note(frame, p, part, CONTACT(A, a, B, b, features, part))
                if i >= 0:
                    touch.feature[i] = features


def featured_adjoint(frame, bar):
    i, touch = frame.touch.first, frame.touch
    A, a, B, b = shapes_of(frame, touch.pair[i])
    give_back(frame, bar, i, REVERSE(A, a, B, b, touch.feature[i], touch.part[i], bars_of(bar, i)))


def searched(frame):
    """A search finds a row of geometry for every point, in packs or environment by environment."""
    touch = frame.touch
    for p in range(touch.first, touch.last):
        if NEAR(frame, p):
            first = touch.n
            SEARCH(frame, p, first, PARTS)
            for part in range(PARTS):
                i = note(frame, p, part, CONTACT(frame, p, touch.geometry[first + part]))
                if i >= 0:
                    touch.geometry[i] = touch.geometry[first + part]
                    touch.feature[i] = digest(touch.geometry[i])


def searched_adjoint(frame, bar):
    i, touch = frame.touch.first, frame.touch
    give_back(frame, bar, i, REVERSE(frame, touch.pair[i], touch.geometry[i], bars_of(bar, i)))


# parts of a pair, by number ------------------------------------------------------------------------------------------------


@inlined
def sign_of(bit):
    return 1.0 if bit != 0 else -1.0


@inlined
def one_part(A, a, B, b, part):
    return OPERATOR(A, a, B, b)


@inlined
def one_part_adjoint(A, a, B, b, part, bars):
    return OPERATOR_ADJOINT(A, a, B, b, bars)


@inlined
def two_parts(A, a, B, b, part):
    return OPERATOR(A, a, B, b, sign_of(part))


@inlined
def two_parts_adjoint(A, a, B, b, part, bars):
    return OPERATOR_ADJOINT(A, a, B, b, sign_of(part), bars)


@inlined
def eight_parts(A, a, B, b, part):
    return OPERATOR(A, a, B, b, sign_of(part & 1), sign_of(part & 2), sign_of(part & 4))


@inlined
def eight_parts_adjoint(A, a, B, b, part, bars):
    return OPERATOR_ADJOINT(A, a, B, b, sign_of(part & 1), sign_of(part & 2), sign_of(part & 4), bars)


# of a cylinder: which end (0: the lower), and where on its rim
RIM_ENDS, RIM_COSINES, RIM_SINES = (1.0, -1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0, -1.0), (0.0, 0.0, 1.0, -1.0, 0.0)


@inlined
def rim_parts(A, a, B, b, part):
    return OPERATOR(A, a, B, b, RIM_ENDS[part], RIM_COSINES[part], RIM_SINES[part])


@inlined
def rim_parts_adjoint(A, a, B, b, part, bars):
    return OPERATOR_ADJOINT(A, a, B, b, RIM_ENDS[part], RIM_COSINES[part], RIM_SINES[part], bars)


@traced
def seven(features):
    return (*features, *(0.0,) * (7 - len(features)))


@traced
def digest(row):
    """Seven numbers of a row of geometry that tell its features from others."""
    sums = [sum((k + 1.0) * x for k, x in enumerate(row[first : first + 9])) for first in (3, 12)]
    return (*row[:3], *sums, 0.0 * row[0], 0.0 * row[0])


@sweep
def box_capsule_search(A, a, B, b):
    return seven(box_capsule_features(A, a, B, b))


@inlined
def box_capsule_part(A, a, B, b, features, part):
    return box_capsule(A, a, B, b, features[:6], sign_of(part))


@inlined
def box_capsule_part_adjoint(A, a, B, b, features, part, bars):
    return box_capsule_adjoint(A, a, B, b, features[:6], sign_of(part), bars)


# parts of two boxes: where the four edges of the incident face enter the reference face, where they leave it, the four
# corners of the reference face, and the crossing of two edges
ENTERS, LEAVES, CORNERS, CROSSING = 0, 4, 8, 12


@sweep
def round_x(part):
    """Signs of the corners of a face in the order round it."""
    return 1.0 if part % 4 == 0 or part % 4 == 3 else -1.0


@sweep
def round_y(part):
    return 1.0 if part % 4 < 2 else -1.0


@sweep
def box_box_part(A, a, B, b, features, part):
    x, y = round_x(part), round_y(part)
    if part < CORNERS:
        return box_box_clip(A, a, B, b, features, x, y, -1.0 if part < LEAVES else 1.0)
    if part < CROSSING:
        return box_box_corner(A, a, B, b, features, x, y)
    return box_box_edge(A, a, B, b, features)


@sweep
def box_box_part_adjoint(A, a, B, b, features, part, bars):
    x, y = round_x(part), round_y(part)
    if part < CORNERS:
        return box_box_clip_adjoint(A, a, B, b, features, x, y, -1.0 if part < LEAVES else 1.0, bars)
    if part < CROSSING:
        return box_box_corner_adjoint(A, a, B, b, features, x, y, bars)
    return box_box_edge_adjoint(A, a, B, b, features, bars)


@sweep
def mesh_plane_search(frame, p, first, parts):
    """Corners of a mesh that lie on a plane: the deepest, and the outermost of those next to it."""
    tree, touch = frame.tree, frame.touch
    A, a, B, b = shapes_of(frame, p)
    at, count = tree.shape_data[tree.pair_a[p]], tree.shape_rows[tree.pair_a[p]]
    views, found = looking_down(A, a, B), nothing_found(a[0])
    deepest = found[4][3]
    for i in range(count):
        corner = tree.number[at + 3 * i], tree.number[at + 3 * i + 1], tree.number[at + 3 * i + 2]
        deepest = higher(deepest, corner, views[0])
    floor = floor_of(deepest, a, tree.number[at - 1])
    for i in range(count):
        corner = tree.number[at + 3 * i], tree.number[at + 3 * i + 1], tree.number[at + 3 * i + 2]
        found = outer(found, corner, views, floor)
    others = found[:4]
    touch.geometry[first] = corner_row(found[0], others, 0.0)
    touch.geometry[first + 1] = corner_row(found[1], others, 0.0)
    touch.geometry[first + 2] = corner_row(found[2], others, 0.0)
    touch.geometry[first + 3] = corner_row(found[3], others, 0.0)
    touch.geometry[first + 4] = corner_row(found[4], others, 1.0)


@inlined
def mesh_plane_part(frame, p, row):
    A, a, B, b = shapes_of(frame, p)
    return mesh_plane(A, a, B, b, row)


@inlined
def mesh_plane_part_adjoint(frame, p, row, bars):
    A, a, B, b = shapes_of(frame, p)
    return mesh_plane_adjoint(A, a, B, b, row, bars)


@sweep
def convex_pair_search(frame, p, first, parts):
    for lane in range(lanes_of(frame.touch.shape)):
        convex_search(frame, p, first, parts, lane)


@sweep
def terrain_pair_search(frame, p, first, parts):
    for lane in range(lanes_of(frame.touch.shape)):
        terrain_search(frame, p, first, parts, lane)


@inlined
def convex_part(frame, p, row):
    tree = frame.tree
    A, a, B, b = shapes_of(frame, p)
    forms = form_of(tree.shape_kind[tree.pair_a[p]]), form_of(tree.shape_kind[tree.pair_b[p]])
    return convex_contact(A, a, B, b, forms[0], forms[1], row)


@inlined
def convex_part_adjoint(frame, p, row, bars):
    tree = frame.tree
    A, a, B, b = shapes_of(frame, p)
    forms = form_of(tree.shape_kind[tree.pair_a[p]]), form_of(tree.shape_kind[tree.pair_b[p]])
    return convex_contact_adjoint(A, a, B, b, forms[0], forms[1], row, bars)


@sweep
def anywhere(frame, p):
    """A terrain is looked at cell by cell."""
    return True


# the table ---------------------------------------------------------------------------------------------------------------


def bound(function, name, **names):
    """The same function with names of its own for what stands in capitals."""
    made = FunctionType(function.__code__, {**function.__globals__, **names}, name)
    made.__qualname__, made.__doc__ = name, function.__doc__
    return made


def parted(form, module, name):
    """The parts of a pair whose operator takes them by number, and their reverse."""
    operators = {"OPERATOR": getattr(module, name), "OPERATOR_ADJOINT": getattr(module, f"{name}_adjoint")}
    return tuple(type(f)(bound(f.fn, f"{name}_{f.__name__}", **operators)) for f in form)


ONE, TWO, EIGHT = (one_part, one_part_adjoint), (two_parts, two_parts_adjoint), (eight_parts, eight_parts_adjoint)
RIMS = rim_parts, rim_parts_adjoint
SIMPLE, FEATURED, SEARCHED = (simple, simple_adjoint), (featured, featured_adjoint), (searched, searched_adjoint)
# form of the loop, which pairs are near, the search if there is one, the parts and their reverse
FUNCTIONS = {
    "sphere_plane": (SIMPLE, may_touch_plane, None, parted(ONE, points, "sphere_plane")),
    "capsule_plane": (SIMPLE, may_touch_plane, None, parted(TWO, capsules, "capsule_plane")),
    "box_plane": (SIMPLE, may_touch_plane, None, parted(EIGHT, points, "box_plane")),
    "sphere_sphere": (SIMPLE, may_touch, None, parted(ONE, points, "sphere_sphere")),
    "capsule_sphere": (SIMPLE, may_touch, None, parted(ONE, capsules, "capsule_sphere")),
    "capsule_capsule": (SIMPLE, may_touch, None, parted(TWO, capsules, "capsule_capsule")),
    "box_sphere": (SIMPLE, may_touch, None, parted(ONE, boxes, "box_sphere")),
    "box_capsule": (FEATURED, may_touch, box_capsule_search, (box_capsule_part, box_capsule_part_adjoint)),
    "box_box": (FEATURED, may_touch, boxes.box_box_features, (box_box_part, box_box_part_adjoint)),
    "cylinder_plane": (SIMPLE, may_touch_plane, None, parted(RIMS, rounds, "cylinder_plane")),
    "ellipsoid_plane": (SIMPLE, may_touch_plane, None, parted(ONE, rounds, "ellipsoid_plane")),
    "mesh_plane": (SEARCHED, may_touch_plane, mesh_plane_search, (mesh_plane_part, mesh_plane_part_adjoint)),
    "convex": (SEARCHED, may_touch, convex_pair_search, (convex_part, convex_part_adjoint)),
    "terrain": (SEARCHED, anywhere, terrain_pair_search, (convex_part, convex_part_adjoint)),
}


def kernels_of(name):
    """A kernel and its reverse."""
    (forward, back), near, search, (contact, reverse) = FUNCTIONS[name]
    names = {"NEAR": near, "PARTS": POINTS[name], "SEARCH": search, "CONTACT": contact, "REVERSE": reverse}
    made = (bound(forward, f"{name}_pairs", **names), bound(back, f"{name}_pairs_adjoint", **names))
    return tuple(Kernel(function) for function in made)


KERNELS = {k.__name__: k for name in PAIR_KINDS for k in kernels_of(name)}


def dispatch(name, arguments, suffix):
    """A sweep that calls the kernel of a kind of pair."""
    lines = [f"def {name}({arguments}, kind):"]
    for number, kind in enumerate(PAIR_KINDS):
        lines += [f"    {'el' if number else ''}if kind == {number}:", f"        {kind}_pairs{suffix}({arguments})"]
    scope = {"__name__": __name__, **KERNELS}
    exec("\n".join(lines), scope)
    return Sweep(scope[name])


search = dispatch("search", "frame", "")
search_adjoint = dispatch("search_adjoint", "frame, bar", "_adjoint")
