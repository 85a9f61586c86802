"""One quantity of a state each, alone: mass matrix, inverse dynamics, a site and its Jacobian, centroidal momentum, regressor.

They share assembly and kinematics with the step, but have tables of their own: a frame holds nothing of contact and is small, and
nothing of the step is compiled for who only asks for these. Networks inside a model are not looked at (quantities.py).
"""

from ...algebra import inertia
from ...algebra.spatial import add, composed, scale, sub
from ...algebra.spatial import work as motion_work
from ...algebra.vector import cross, times
from ...compiler.elementary import inverse
from ...compiler.field import SCALAR, Schema
from ...compiler.kernel import accumulate, gather, kernel, lanes_of, scatter, sweep
from ...compiler.trace import traced
from ...model.arrays import FREE
from .operators import plus, zero, zero6
from .stages.articulated import inertia_in_world, net_force
from .stages.kinematics import kinematics
from .time_loop import EACH_PACK, NUMBER, ONCE, assemble, empty, fill, take_pack
from .workspace import ASSEMBLY, AXIS_REFERENCE, CALL, PARAMS, STATE, TREE, WORK

# axes of all degrees of freedom, those of free bodies included; inertias of bodies, or of all that they carry; accelerations that
# joints add, and forces; forces that a link's inertia asks for, number by number; what is handed out
LOOK = {
    "S": 6,
    "I": 10,
    "a": 6,
    "f": 6,
    "qdd": 1,
    "tau": 1,
    "point": 3,
    "basis": 6,
    "whole": 10,
    "value": 1,
    "site": 12,
    "six": 6,
}
N_BASIS = 10

# arrays of the caller: accelerations, points; what is asked for, 0 where it is not
ASKED = ("qdd", "point", "point_stride", "link", "matrix", "vector", "pose", "velocity", "centre")

LOOKS_SCHEMA = Schema(
    "looks",
    {
        "tree": TREE, "params": PARAMS | {"all": 1}, "axis_reference": AXIS_REFERENCE, "assembly": ASSEMBLY, "state": STATE,
        "work": {name: WORK[name] for name in ("pose", "arm", "S", "v", "c")}, "look": LOOK,
        "call": CALL | {"q0": SCALAR, "qd0": SCALAR} | {f"look_{name}": SCALAR for name in ASKED},
        "at": {"step": -2, "env": -2, "count": -2, "is_stopped": -2},
    },
    kernels=(
        "assembly_stage", "assemble", "kinematics", "mass_matrix", "inverse_dynamics", "site", "centroidal", "regressor",
    ),
)  # fmt: skip


@traced
def free_axes(pose, arm):
    """A free joint's: linear in world axes, angular in body axes."""
    o, columns = (0.0, 0.0, 0.0), [pose[k:9:3] for k in range(3)]
    slides = ((*o, 1.0, 0.0, 0.0), (*o, 0.0, 1.0, 0.0), (*o, 0.0, 0.0, 1.0))
    zero_ = 0.0 * pose[0]
    return (*(tuple(zero_ + x for x in s) for s in slides), *((*c, *cross(arm, c)) for c in columns))


@traced
def scaled(S, x):
    return scale(S, x)


@traced
def dot6(S, f):
    return motion_work(S, f)


@traced
def plus_product(x, a, b):
    return x + a * b


@traced
def momentum_of(I, v):
    return inertia.momentum(I, v)


@sweep
def stand(frame, env):
    """The next pack of states: where their bodies are and along which axes they can move."""
    tree, state, work, look, call = frame.tree, frame.state, frame.work, frame.look, frame.call
    take_pack(frame, env)
    if call.assemble == EACH_PACK or (call.assemble == ONCE and env == call.first):
        assemble(frame)
    fill(frame, state.q, tree.n_q, call.q0, 0)
    if call.qd0 != 0:
        fill(frame, state.qd, tree.n_dofs, call.qd0, 0)
    else:
        for d in range(tree.n_dofs):
            state.qd[d] = zero(frame.params.world_dt[0])
    kinematics(frame)
    for b in range(tree.n_bodies):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            look.S[d], look.S[d + 1], look.S[d + 2], look.S[d + 3], look.S[d + 4], look.S[d + 5] = free_axes(
                work.pose[b], work.arm[b]
            )
        else:
            for e in range(d, d + tree.n_dof[b]):
                look.S[e] = work.S[e]


@sweep
def inertias(frame, is_composite):
    """Of every body about its tree's reference point, or of it and all that it carries."""
    tree, work, look = frame.tree, frame.work, frame.look
    n = tree.n_bodies
    for b in range(n):
        look.I[b] = inertia_in_world(work.pose[b], work.arm[b], frame.assembly.inertia[b])
    if is_composite != 0:
        for b in range(n - 1, -1, -1):
            if tree.parent[b] < n:
                accumulate(look.I, tree.parent[b], look.I[b])


@sweep
def put(frame, row, column, rows, columns):
    """A number of every environment into place (row, column) of its matrix."""
    call, at = frame.call, frame.at
    size = rows * columns * NUMBER
    place = call.look_matrix + at.env * size + (row * columns + column) * NUMBER
    scatter(frame.look.value, 0, 1, place, 0, size, at.count)


@sweep
def put_column(frame, six, column, columns):
    """Linear part above, angular part below."""
    for k in range(3):
        frame.look.value[0] = six[3 + k]
        put(frame, k, column, 6, columns)
        frame.look.value[0] = six[k]
        put(frame, 3 + k, column, 6, columns)


@kernel
def mass_matrix(frame):
    """By composite inertias (Featherstone 2008, sec. 6.2). Places that no path joins are left alone."""
    tree, look, call = frame.tree, frame.look, frame.call
    n, nv = tree.n_bodies, tree.n_dofs
    for env in range(call.first, call.last, lanes_of(frame.state.q)):
        stand(frame, env)
        inertias(frame, 1)
        for b in range(n):
            for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                force = momentum_of(look.I[b], look.S[d])
                at = b
                while at < n:
                    for e in range(tree.dof[at], tree.dof[at] + tree.n_dof[at]):
                        value = dot6(look.S[e], force)
                        if e == d:
                            value = plus(value, frame.params.joint_armature[tree.frame[b]])
                        look.value[0] = value
                        put(frame, d, e, nv, nv)
                        put(frame, e, d, nv, nv)
                    at = tree.parent[at]


@sweep
def accelerated(frame):
    """Accelerations that joints give their bodies, from those of the caller."""
    tree, look, call = frame.tree, frame.look, frame.call
    n = tree.n_bodies
    if call.look_qdd != 0:
        fill(frame, look.qdd, tree.n_dofs, call.look_qdd, 0)
    else:
        for d in range(tree.n_dofs):
            look.qdd[d] = zero(frame.params.world_dt[0])
    look.a[n] = zero6(frame.params.world_dt[0])
    for b in range(n):
        a = look.a[tree.parent[b]]
        for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
            a = plus(a, scaled(look.S[d], look.qdd[d]))
        look.a[b] = a


@kernel
def inverse_dynamics(frame):
    """By recursion (Featherstone 2008, sec. 5.3)."""
    tree, work, look, call = frame.tree, frame.work, frame.look, frame.call
    n = tree.n_bodies
    for env in range(call.first, call.last, lanes_of(frame.state.q)):
        stand(frame, env)
        inertias(frame, 0)
        accelerated(frame)
        for b in range(n):
            look.f[b] = net_force(look.I[b], work.v[b], plus(work.c[b], look.a[b]))
        for b in range(n - 1, -1, -1):
            armature = frame.params.joint_armature[tree.frame[b]]
            for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                look.tau[d] = plus_product(dot6(look.S[d], look.f[b]), armature, look.qdd[d])
            if tree.parent[b] < n:
                accumulate(look.f, tree.parent[b], look.f[b])
        empty(frame, look.tau, tree.n_dofs, call.look_vector, 0)


# sites --------------------------------------------------------------------------------------------------------------------


@traced
def site_pose(pose, frame_pose, point):
    """Position and rotation of a point of a link, with the link's axes."""
    link = composed(pose, frame_pose)
    return (*add(link[9:], times(link[:9], point)), *link[:9])


@traced
def site_motion(place, reference, v, c, world):
    """Velocity of a site, and its acceleration if no joint accelerated; both linear, angular."""
    arm = sub(place[:3], reference[9:])
    a, turn = sub(c, world), v[:3]
    speed = add(v[3:], cross(turn, arm))
    return (*speed, *turn), (*add(add(a[3:], cross(a[:3], arm)), cross(turn, speed)), *a[:3])


@traced
def column_at(S, place, reference):
    """What a degree of freedom does to a site: a motion about the site."""
    return (*S[:3], *add(S[3:], cross(S[:3], sub(place[:3], reference[9:]))))


@sweep
def put_jacobian(frame, link):
    tree, look = frame.tree, frame.look
    b = tree.link_body[link]
    reference = frame.work.pose[tree.reference[b]]
    while b < tree.n_bodies:
        for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
            put_column(frame, column_at(look.S[d], look.site[0], reference), d, tree.n_dofs)
        b = tree.parent[b]


@kernel
def site(frame):
    """A point fixed in a link: its pose, velocity, Jacobian, and what is left of its acceleration without qdd."""
    tree, work, look, call, at = frame.tree, frame.work, frame.look, frame.call, frame.at
    link = call.look_link
    b, i = tree.link_body[link], tree.link_frame[link]
    for env in range(call.first, call.last, lanes_of(frame.state.q)):
        stand(frame, env)
        stride = call.look_point_stride
        gather(look.point, 0, 3, call.look_point + at.env * stride, 0, stride, at.count)
        look.site[0] = site_pose(work.pose[b], frame.assembly.frame_pose[i], look.point[0])
        if call.look_pose != 0:
            empty(frame, look.site, 12, call.look_pose, 0)
        velocity, rest = site_motion(
            look.site[0], work.pose[tree.reference[b]], work.v[b], work.c[b], work.c[tree.n_bodies]
        )
        if call.look_velocity != 0:
            look.six[0] = velocity
            empty(frame, look.six, 6, call.look_velocity, 0)
        if call.look_vector != 0:
            look.six[0] = rest
            empty(frame, look.six, 6, call.look_vector, 0)
        if call.look_matrix != 0:
            put_jacobian(frame, link)


# sums over bodies ---------------------------------------------------------------------------------------------------------


@traced
def about_world(I, reference):
    """Mass and first moment of a tree about the world's origin; the rest is left."""
    return (*I[:6], *add(I[6:9], scale(reference[9:], I[9])), I[9])


@traced
def centre_of(whole):
    return scale(whole[6:9], inverse(whole[9]))


@traced
def momentum_about(I, S, reference, centre):
    """What a unit rate gives all that it carries, about a point."""
    h = inertia.momentum(I, S)
    return (*add(h[:3], cross(sub(reference[9:], centre), h[3:])), *h[3:])


@traced
def linear_first(h):
    return (*h[3:], *h[:3])


@kernel
def centroidal(frame):
    """Centre of mass, momentum about it, and the matrix that makes it of the rates (Orin, Goswami and Lee 2013)."""
    tree, state, work, look, call = frame.tree, frame.state, frame.work, frame.look, frame.call
    n = tree.n_bodies
    for env in range(call.first, call.last, lanes_of(state.q)):
        stand(frame, env)
        inertias(frame, 1)
        nothing = zero6(frame.params.world_dt[0])
        is_first = 1
        for b in range(n):
            if tree.parent[b] == n:
                own = about_world(look.I[b], work.pose[tree.reference[b]])
                look.whole[0] = own if is_first != 0 else plus(look.whole[0], own)
                is_first = 0
        look.point[0] = centre_of(look.whole[0])
        total = nothing
        for b in range(n):
            for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                h = momentum_about(look.I[b], look.S[d], work.pose[tree.reference[b]], look.point[0])
                total = plus(total, scaled(h, state.qd[d]))
                if call.look_matrix != 0:
                    put_column(frame, h, d, tree.n_dofs)
        if call.look_centre != 0:
            empty(frame, look.point, 3, call.look_centre, 0)
        if call.look_vector != 0:
            look.six[0] = linear_first(total)
            empty(frame, look.six, 6, call.look_vector, 0)


@traced
def basis_forces(pose, frame_pose, reference, v, a):
    """Forces that move a link whose inertia is one of ten units: mass, first moment, and inertia about its own origin."""
    link = composed(pose, frame_pose)
    place = (*link[:9], *sub(link[9:], reference[9:]))
    zero_ = 0.0 * v[0]
    units = [tuple(zero_ + (1.0 if i == k else 0.0) for i in range(10)) for k in (9, 6, 7, 8, 0, 1, 2, 3, 4, 5)]
    return tuple(net_force.fn(inertia.carried(place, unit), v, a) for unit in units)


@kernel
def regressor(frame):
    """Joint forces of inverse dynamics as a matrix times ten numbers of every link."""
    tree, work, look, call = frame.tree, frame.work, frame.look, frame.call
    n, columns = tree.n_bodies, N_BASIS * tree.n_links
    for env in range(call.first, call.last, lanes_of(frame.state.q)):
        stand(frame, env)
        accelerated(frame)
        for j in range(tree.n_links):
            b = tree.link_body[j]
            if b < n:
                g = look.basis
                g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9] = basis_forces(
                    work.pose[b], frame.assembly.frame_pose[tree.link_frame[j]], work.pose[tree.reference[b]], work.v[b],
                    plus(work.c[b], look.a[b]),
                )  # fmt: skip
                at = b
                while at < n:
                    for d in range(tree.dof[at], tree.dof[at] + tree.n_dof[at]):
                        for k in range(N_BASIS):
                            look.value[0] = dot6(look.S[d], g[k])
                            put(frame, d, N_BASIS * j + k, tree.n_dofs, columns)
                    at = tree.parent[at]


LOOKS = (mass_matrix, inverse_dynamics, site, centroidal, regressor)
