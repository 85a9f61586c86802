"""What every field of the workspace is: unit, frame of reference, one row per what. A test asks for every field of stages.

Frames: "world" is world axes about the world's origin; "tree" is world axes about the reference point of the body's tree (spatial
vectors: angular part first, then linear); "body", "link" and "joint" are their own axes about their own origin; "normal" is along
the normal and two tangents of a point; "-" where a number has none. Units of rows that may turn or slide are given for sliding.
Cotangents have the rows of what they belong to; that of a pose is a force (6: torque, force) about the point that its frame says.
"""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    rows: str
    unit: str
    frame: str
    what: str


_TABLE = """
state.q | coordinate | m, rad, 1 | joint | coordinates; ball joint: quaternion w, x, y, z; free body: position, quaternion
state.qd | dof | m/s, rad/s | joint | rates; of a free body linear in world axes, angular in its own
state.more | number of the further state | as its field says | - | further fields (model/state_fields.py), integrated ones first
rate.more | number of the further state | the same per s | - | time derivatives of what is integrated
state.u | actuator | as the actuator says | - | controls
state.force | 6 per link | N, N m | world | outside force and torque on a link, at its centre of mass
assembly.frame_pose | frame, world | m | body | pose of a joint's frame in its body: rotation row by row, position
assembly.placement | body | m | parent body | pose of a body's joint in its parent, z along the axis
assembly.inertia | body | kg m^2, kg m, kg | body | rotational inertia (6), first moment (3), mass
assembly.com | link | m | body | centre of mass of a link
assembly.drag | link | m | body | pose of a link's drag box
assembly.shape | shape | m | body | pose of a shape
work.pose | body, world | m | world | rotation row by row, position
work.arm | body, world | m | world | from the reference point of the tree to the body
work.S | dof | 1, m | tree | motion of the bodies beyond for a unit rate
work.v | body, world | rad/s, m/s | tree | velocity
work.c | body, world | rad/s^2, m/s^2 | tree | acceleration, less gravity, if no joint accelerated
work.touch | body, world | N m, N | tree | force of compliant contact
work.length | tendon | m, rad | - | length
work.speed | tendon | m/s, rad/s | - | rate of the length
work.pull | tendon | N, N m | - | tension
work.armature | dof | kg, kg m^2 | joint | inertia that the joint itself adds, with implicit damping
work.tau | dof | N, N m | joint | force of springs, dampers, drives and tendons
work.f | body, world | N m, N | tree | outside force, drag and compliant contact
work.I | body, world | kg m^2, kg m, kg | tree | rigid inertia
work.IA | body, world | kg m^2, kg m, kg | tree | articulated inertia (Featherstone 2008, eq. 7.25), its upper half
work.pA | body, world | N m, N | tree | articulated bias force
work.U | dof | kg m, kg | tree | IA S
work.D_inv | dof | 1/kg, 1/(kg m^2) | joint | 1 / (S^T U + armature)
work.u | dof | N, N m | joint | tau less what the articulated bias takes
work.factor | body, world | - | tree | Cholesky factor of a free body's articulated inertia
work.a_joints | body, world | rad/s^2, m/s^2 | tree | what accelerating joints add to c
work.qdd | dof | m/s^2, rad/s^2 | joint | acceleration
work.qd_jump | dof | m/s, rad/s | joint | what impulses add to the rates
next.q | coordinate | m, rad, 1 | joint | coordinates after the step
next.qd | dof | m/s, rad/s | joint | rates after the step
next.more | number of the further state | as its field says | - | further state after the step
touch.shape | shape | m | world | pose of a shape
touch.extent | tree | m | - | how far a tree reaches from its reference point
touch.point | point | m | world | where it touches
touch.normal | point | 1 | world | from shape b to shape a
touch.gap | point | m | - | distance; negative where shapes overlap
touch.feature | point | - | - | which parts of two shapes touch, as their pair numbers them
touch.geometry | point, of pairs that are searched | m, 1 | shape | holder, kinds and points of both elements, direction
touch.force | point | N | world | of a spring, on shape a
touch.friction | point, with networks there | 1 | - | its own coefficient of friction
touch.restitution | point, with networks there | 1 | - | its own restitution
touch.stiffness | point, with networks there | N/m^n | - | its own stiffness
touch.damping | point, with networks there | N s/m^(n+1) | - | its own damping
block.rows | side | 1, m | tree | forces of unit impulses along three rows
block.effort | side, joint of its path | 1, m | joint | what a row leaves at a joint on its way to the root
block.at_root | side | 1, m | tree | what of the rows reaches a free root
block.answer | side | 1/kg | tree | motion of the free root for unit impulses
block.weight | block | 1 | - | coefficients of three rows of joints
block.weight2 | block | 1 | - | the same of the joint that a row follows
block.closing | block | m/s | normal | velocity along the rows if there were no impulse
block.approach | block | m/s | normal | along the normal before anything pushed
block.A | coupling | 1/kg | normal | how one block's impulses move another
block.b | block | m/s | normal | what impulses must undo
block.give | block | 1, 1/kg, 1/kg | - | compliance, softness, answer of trees that nothing holds
block.lightness | tree, world | 1/kg | - | what a tree's mass adds to the answer of its points
block.soft | block | 1/kg | normal | what a block gives, on the diagonal of A
block.low | block | N s | - | lower bounds of rows
block.high | block | N s | - | upper bounds of rows
block.friction | block | 1, m, m | - | sliding, torsion, rolling
block.active | block | 1 | - | 1 where a row takes part
block.D | block | kg | normal | step sizes of a sweep
block.G | coupling | 1 | normal | -D A, and of a block on itself I - D A
block.start | block | N s | normal | -D b
block.x | sweep + 1, block | N s | normal | impulses after every sweep, and what the cone left of the trial tangents
block.impulse | block | N s | normal | impulses of the step
block.sticks | block | 1 | - | 1 where the friction of a point holds
block.side | sweep, block | 1 | normal | on which side of a bound of zero a trial value was
block.pushed | dof | N s | joint | sum of the impulses' efforts
block.motion | body, world | rad/s, m/s | tree | motion that impulses give
block.share | one | 1 | - | which share of the impulses does no work (energy.py)
block.whole | block | N s | normal | impulses before they were restrained
block.balance | one | J, J, 1 | - | what impulses may do, what they do to themselves, the largest restitution
block.unsettled | one | 1 | - | how far sweeps were from settled: worst, present, and which pair
block.column | column of J | 1, m | tree | rows of a block along one degree of freedom (joint_space.py)
block.gained | column of J | kg | tree | the same times the gains
block.composite | body, world | kg m^2, kg m, kg | tree | inertia of all that a body carries
block.mass | place in a chain | kg, kg m^2 | joint | M off its diagonal
block.own_mass | dof | kg, kg m^2 | joint | diagonal of M
block.H | dof x dof | kg, kg m^2 | joint | M + J^T D J, and its factor
block.u | block | m/s | normal | velocities along rows
block.du | block | m/s | normal | the same along a step of Newton's method
block.gain | block | kg | normal | -dx/du
block.cross | block | kg | normal | the same between a point and its turning
block.level | block | m/s | normal | what sliding takes off the parting velocity
block.y | dof | m/s, rad/s | joint | what impulses add to the velocities; of a free root its motion
block.mass_y | dof | N s | joint | M y
block.gradient | dof | N s | joint | of the convex problem
block.step | dof | m/s, rad/s | joint | of Newton's method
block.mass_step | dof | N s | joint | M times that
block.excess | one | 1 | - | squared gradient that is left, in what is small enough
work.node | node of a network | as it is used | - | inputs, hidden values, outputs
work.pre | node of a network | as it is used | - | what goes into an activation
work.kept | what networks change | its own | - | the value without the network
work.kept_inertia | mass that networks change | kg m^2, kg m, kg | body | the inertia without the network
output.position | link | m | world | of its frame
output.rotation | link | 1 | world | of its frame, row by row
output.velocity | link | m/s, rad/s | world | of its frame's origin
output.force | link | N | world | of contact
output.torque | link | N m | world | of contact, about the centre of mass
"""


def _parsed() -> dict[str, Field]:
    rows = [[word.strip() for word in line.split("|")] for line in _TABLE.strip().splitlines()]
    return {name: Field(*rest) for name, *rest in rows}


FIELDS = _parsed()
