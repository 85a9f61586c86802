"""MJCF files mean here what they mean in MuJoCo: feature by feature, and over the models of the field."""

from __future__ import annotations

import csv
import inspect
import re
import time
import warnings
from collections import Counter
from pathlib import Path

import mujoco
import numpy as np
import pytest

import jointgrad as jg
from jointgrad.files.mjcf import UnsupportedError, load_mjcf, load_world
from jointgrad.files.xml import FileError, MissingFileError
from jointgrad.model.errors import ModelError, UnsupportedWarning

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
NQ = {"free": 7, "spherical": 4, "fixed": 0}
NV = {"free": 6, "spherical": 3, "fixed": 0}
OFF = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
TOLERANCE = 1e-8


def quiet(load, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsupportedWarning)
        warnings.filterwarnings("ignore", message=".*are these degrees")
        return load(*arguments, **options)


def compiled(world):
    return quiet(world.compile, dt=world.dt, integrator="semi_implicit", contact=None, constraints=False)


def assert_same_motion(model, m, states=2, tolerance=TOLERANCE):
    """Poses, mass matrix, actuator forces and accelerations at random states, constraints off."""
    assert (model.nq, model.nv, model.nu) == (m.nq, m.nv, m.nu)
    np.testing.assert_allclose(model.initial_state().q, m.qpos0, atol=1e-12)
    m.opt.disableflags |= OFF
    rng, d = np.random.default_rng(7), mujoco.MjData(m)
    own = [k for k, name in enumerate(model.link_names) if name != "world"]
    assert len(own) == m.nbody - 1
    for _ in range(states):
        d.qpos[:] = m.qpos0
        mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv) * 0.5, 1.0)
        d.qvel[:], d.ctrl[:] = rng.normal(size=m.nv), rng.normal(size=m.nu)
        mujoco.mj_forward(m, d)
        ours = jg.inspect(model, jg.State(d.qpos.copy(), d.qvel.copy()), d.ctrl.copy())
        near(ours.link_position[own], d.xpos[1:], "positions", tolerance)
        near(ours.link_rotation[own].reshape(-1, 9), d.xmat[1:], "rotations", tolerance)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        size = np.sqrt(np.diag(M))
        near(ours.mass_matrix / np.outer(size, size), M / np.outer(size, size), "mass matrix", tolerance)
        near(ours.joint_force, d.qfrc_passive - d.qfrc_fluid + d.qfrc_actuator, "joint forces", tolerance)
        near(ours.qdd, d.qacc, "accelerations", tolerance)


def near(ours, theirs, what, tolerance):
    assert ours.shape == theirs.shape
    error = np.abs(ours - theirs).max(initial=0.0) / np.abs(theirs).max(initial=1.0)
    assert error < tolerance, f"{what} differ by {error:.1e}"


# one snippet per feature ---------------------------------------------------------------------------------------------------

BALL = '<geom size=".1" mass="1"/>'
ROD = '<geom fromto="0 0 0 .3 0 .1" size=".04" type="capsule"/>'
BOX = '<geom type="box" size=".1 .2 .3" pos=".1 0 0"/>'
ARM = f'<body name="a" pos="0 0 1"><joint name="j" axis="0 1 0"/>{ROD}{{}}</body>'


def bodies(inside, before="", after=""):
    return f"<mujoco>{before}<worldbody>{inside}</worldbody>{after}</mujoco>"


def arm(before="", after="", inside=""):
    return bodies(ARM.format(inside), before, after)


def turned(attributes, compiler=""):
    return bodies(
        f'<body {attributes} pos=".1 .2 .3"><joint axis="1 2 0"/>{BOX[:-2]} {attributes}/></body>',
        f"<compiler {compiler}/>",
    )


def inertial(attributes):
    return bodies(
        f'<body><joint/><joint type="slide" axis="1 1 0"/><inertial pos=".1 .2 .3" mass="2" {attributes}/></body>'
    )


def geom(attributes):
    return bodies(
        f'<body><joint type="ball"/><joint type="slide"/><geom pos=".1 .2 -.1" euler="10 20 30" {attributes}/></body>'
    )


def joint(attributes, before=""):
    return bodies(
        f'<body pos="1 0 0" euler="0 30 0"><joint name="j" {attributes}/><geom size=".1" pos=".2 .3 .1"/></body>',
        before,
    )


def drive(element, before="", joint_type="hinge"):
    body = f'<body><joint name="j" type="{joint_type}" range="-1 2"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>'
    return bodies(body, before, f"<actuator>{element}</actuator>")


def tendon(attributes="", actuator="", before=""):
    """Two joints, one that counts from elsewhere than its spring, under one tendon."""
    body = f'<body pos="0 0 1"><joint name="j" axis="0 1 0" ref="20" springref="30"/>{ROD}<body pos=".3 0 .1">'
    body += f'<joint name="k" type="slide" axis="1 1 0" springref=".2" damping=".1"/>{BALL}</body></body>'
    fixed = f'<fixed name="t" {attributes}><joint joint="j" coef=".7"/><joint joint="k" coef="-2"/></fixed>'
    return bodies(body, before, f"<tendon>{fixed}</tendon><actuator>{actuator}</actuator>")


def spatial_tendon(attributes="", after=""):
    path = f'<tendon><spatial name="t" {attributes}><site site="s"/><site site="r"/></spatial></tendon>'
    return arm(inside='<site name="s" pos=".1 0 .1"/>', after=f'<worldbody><site name="r"/></worldbody>{path}{after}')


SNIPPETS = {
    "free joint": bodies(f'<body pos="1 2 3" quat="1 2 3 4"><freejoint/>{BOX}<site pos="0 0 1"/></body>{BALL}'),
    "free joint with class": bodies(
        f'<body><joint type="free"/>{BALL}</body>', '<default><joint damping=".3" armature=".2" stiffness="2"/></default>'
    ),
    "static bodies": bodies(f'<body pos="1 0 0">{BALL}<body euler="0 0 90" pos="0 1 0"><joint pos=".1 .2 0"/>{BALL}</body></body>'),
    "several joints": bodies(
        f'<body><joint type="slide"/><joint pos=".1 0 0" axis="1 0 0"/><joint pos="0 .2 0" axis="0 1 0" ref="20"/>{BALL}'
        f'<body pos="0 0 1"><joint type="ball" pos=".1 .2 .3" damping="1" stiffness="3"/>{BOX}</body></body>'
    ),
    "quat": turned('quat="1 2 3 4"'),
    "euler": turned('euler="10 20 30"'),
    "euler fixed axes": turned('euler=".1 .2 .3"', 'eulerseq="ZYX" angle="radian"'),
    "euler mixed": turned('euler="10 -20 130"', 'eulerseq="zXy"'),
    "axisangle": turned('axisangle="1 2 3 50"'),
    "xyaxes": turned('xyaxes="1 2 3 -1 1 0"'),
    "zaxis": turned('zaxis="1 -2 -.5"'),
    "zaxis down": turned('zaxis="0 0 -1"'),
    "diagonal inertia": inertial('diaginertia=".1 .2 .25" euler="10 20 30"'),
    "full inertia": inertial('fullinertia=".2 .3 .35 .01 .02 -.03"'),
    "inertia of geoms wins": bodies(
        f'<body><joint/><inertial pos="0 0 1" mass="3" diaginertia="1 1 1"/>{BALL}</body>', '<compiler inertiafromgeom="true"/>'
    ),
    "inertial kept without geoms": bodies(
        '<body><joint/><inertial pos="0 .1 1" mass="3" diaginertia="1 1 1"/></body>', '<compiler inertiafromgeom="true"/>'
    ),
    "balanceinertia": bodies(
        '<body><joint/><inertial pos="0 1 0" mass="1" diaginertia="1 1 3"/></body>', '<compiler balanceinertia="true"/>'
    ),
    "bounds": bodies(
        '<body pos="0 1 0"><joint pos="1 0 0"/><inertial pos="0 1 0" mass=".1" diaginertia=".1 .1 .1"/></body>',
        '<compiler boundmass="2" boundinertia=".5"/>',
    ),
    "bounds without inertia": bodies('<body pos="0 1 0"><joint/></body>', '<compiler boundmass="2" boundinertia=".5"/>'),
    "settotalmass": bodies(f'<body><joint/>{BALL}<body><joint axis="1 0 0"/>{BALL}</body></body>', '<compiler settotalmass="7"/>'),
    "inertiagrouprange": bodies(
        f'<body><joint/>{BALL}<geom size=".2" pos="1 0 0" group="3"/></body>', '<compiler inertiagrouprange="0 2"/>'
    ),
    "discardvisual": bodies(
        f'<body><joint/>{BALL}<geom size=".2" pos="1 0 0" contype="0" conaffinity="0"/></body>', '<compiler discardvisual="true"/>'
    ),
    "align": bodies(f'<body pos="1 0 0"><freejoint align="true"/>{BOX[:-2]} euler="10 20 30"/></body>'),
    "sphere": geom('size=".2" density="500"'),
    "capsule": geom('type="capsule" size=".1 .3"'),
    "cylinder": geom('type="cylinder" size=".1 .3" mass="2"'),
    "box": geom('type="box" size=".1 .2 .3"'),
    "ellipsoid": geom('type="ellipsoid" size=".1 .2 .3"'),
    **{
        f"shell {kind}": geom(f'type="{kind}" size="{size}" shellinertia="true"')
        for kind, size in (
            ("sphere", ".2"), ("capsule", ".1 .3"), ("cylinder", ".1 .3"), ("box", ".1 .2 .3"), ("ellipsoid", ".1 .2 .3")
        )
    },
    **{
        f"fromto {kind}": bodies(
            f'<body><joint axis="1 0 0"/><joint/><geom type="{kind}" fromto="0 0 0 .3 .2 -.4" size=".05"/></body>'
        )
        for kind in ("capsule", "cylinder", "box", "ellipsoid")
    },
    "mesh of corners": bodies(
        '<body><joint axis="1 0 0"/><joint/><geom type="mesh" mesh="m" pos=".1 0 0" euler="0 30 0"/></body>',
        '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1 1 1 1" scale=".1 .2 .3" refpos=".1 .2 .3" refquat="1 1 0 0"/>'
        "</asset>",
    ),
    "mesh of faces": bodies(
        '<body><joint axis="1 0 0"/><joint/><geom type="mesh" mesh="m" mass="2"/><geom type="mesh" mesh="s"/></body>',
        '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="2 0 3 0 1 3 1 2 3 1 0 2"/>'
        '<mesh name="s" inertia="shell" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="2 0 3 0 1 3 1 2 3 1 0 2"/></asset>',
    ),
    "hinge ref": joint('axis="1 1 0" pos=".1 .2 .3" ref="40" springref="20" stiffness="3" damping=".5"'),
    "slide ref": joint('type="slide" axis="1 1 0" ref=".4" springref=".2" stiffness="3" armature=".3"'),
    "radians": joint('ref=".4" springref=".2" stiffness="3" range="-1 1"', '<compiler angle="radian"/>'),
    "springdamper": joint('springdamper=".2 .7"'),
    "springdamper of a ball": joint('type="ball" springdamper=".2 .7"'),
    "limits": joint('range="-10 20" frictionloss=".3"'),
    "frame": bodies(
        '<frame pos="1 2 3" euler="10 20 30"><frame pos=".1 0 0" axisangle="0 1 0 30"><body pos="0 0 1" euler="5 0 0">'
        f'<frame euler="30 0 0" pos=".1 .2 .3"><joint pos=".1 0 0"/>{ROD}</frame></body></frame></frame>'
    ),
    "frame class": bodies(
        '<frame childclass="b"><body><joint/><geom/><body childclass="c"><joint/><geom/><geom class="b" pos="0 1 0"/></body></body>'
        "</frame>",
        '<default><geom size=".1"/><default class="b"><geom size=".2"/><joint damping="3"/><default class="c">'
        '<geom type="box" size=".1 .1 .1"/></default></default></default>',
    ),
    "partial default": bodies(
        '<body><joint/><geom type="box" size=".3"/></body>', '<default><geom size=".1 .2 .4"/></default>'
    ),
    "replicate": bodies(
        f'<replicate count="3" offset="1 0 0" euler="0 0 30"><body name="b" pos="0 0 1"><joint name="j"/>{BALL}'
        f'<replicate count="2" offset="0 .1 0" sep="-"><geom size=".05" pos="0 1 0"/></replicate></body></replicate>'
    ),
    "replicated actuators": bodies(
        f'<replicate count="11" offset="1 0 0" sep="_"><body name="b"><joint name="j"/>{BALL}</body></replicate>',
        after='<actuator><motor name="m" joint="j" gear="3"/></actuator>',
    ),
    "replicated chains": bodies(
        f'<replicate count="2" offset="1 0 0"><body name="b"><joint name="j"/>{BALL}<replicate count="3" offset="0 .1 0" sep="-">'
        f'<body name="c"><joint name="k" axis="0 1 0"/>{BALL}</body></replicate></body></replicate>'
        f'<body name="d"><joint name="l"/>{BALL}</body>',
        after='<actuator><motor name="m" joint="j"/><motor name="n" joint="k"/><motor name="o" joint="l"/></actuator>',
    ),
    "attached to itself": bodies(
        f'<body name="a" childclass="c"><joint name="j"/>{BALL}<frame name="f" pos="1 0 0"><body name="b">'
        f'<joint name="k"/>{BALL}</body></frame></body>'
        f'<frame pos="0 1 0" euler="0 0 30"><attach body="a" prefix="x-"/><attach frame="f" prefix="y-"/></frame>',
        '<default><default class="c"><joint damping="3"/></default></default>',
        '<actuator><motor name="m" joint="j"/><motor name="n" joint="k"/></actuator>',
    ),
    "motor": drive('<motor joint="j" gear="3" ctrlrange="-.1 .1"/>'),
    "motor of a slide": drive('<motor joint="j" gear="-3" forcerange="-.1 .1"/>', joint_type="slide"),
    "position": drive('<position joint="j" kp="20" kv="2" gear="3"/>'),
    "position dampratio": drive('<position joint="j" kp="20" dampratio="1.2" gear="3"/>'),
    "position dampratio in a chain": arm(
        inside=f'<body name="b" pos=".3 0 .1"><joint name="k" axis="0 1 0"/>{ROD}</body>',
        after='<actuator><position joint="j" kp="20" dampratio="1.2"/><position joint="k" kp="20" dampratio=".7"/></actuator>',
    ),
    "position inheritrange": drive('<position joint="j" kp="20" inheritrange=".5"/>'),
    "velocity": drive('<velocity joint="j" kv="20" gear="2"/>'),
    "general": drive('<general joint="j" gainprm="3" biastype="affine" biasprm="1 -2 -.5" gear="2" ctrlrange="-1 1"/>'),
    "ball motor": bodies(
        '<body><joint name="j" type="ball"/><geom type="box" size=".1 .2 .3"/></body>',
        after='<actuator><motor joint="j" gear="0 2 0"/><motor joint="j" gear="0 0 3"/></actuator>',
    ),
    "free motor": bodies(
        '<body><freejoint name="j"/><geom type="box" size=".1 .2 .3"/></body>',
        after='<actuator><motor joint="j" gear="0 2 0 0 0 0"/><motor joint="j" gear="0 0 0 0 3 0"/>'
        '<position joint="j" gear="0 0 1 0 0 0" kp="3"/></actuator>',
    ),
    "actuator classes": drive(
        '<position joint="j" class="p"/><motor joint="j" class="p"/><position joint="j"/>',
        '<default><position kp="7"/><motor gear="2"/><default class="p"><position kp="5" kv="1" ctrlrange="-.2 .2"/>'
        "</default></default>",
    ),
    "actuatorfrcrange": bodies(
        f'<body><joint name="j" actuatorfrcrange="-.3 .2"/>{BALL}</body>', after='<actuator><motor joint="j" gear="-4"/></actuator>'
    ),
    "actuator damping": drive('<motor joint="j" gear="3" damping=".2" armature=".1"/>'),
    "actuatorgroupdisable": drive('<motor joint="j" group="2"/><motor joint="j" group="1"/>', '<option actuatorgroupdisable="2"/>'),
    "damper": drive('<damper joint="j" kv="3" ctrlrange="0 2" gear="2"/>'),
    "damper with limits": drive('<damper joint="j" kv="30" ctrlrange="0 2" forcerange="-.1 .2"/>', joint_type="slide"),
    "ball motor in several directions": bodies(
        '<body><joint name="j" type="ball"/><geom type="box" size=".1 .2 .3"/></body>',
        after='<actuator><motor joint="j" gear="1 2 3"/><velocity joint="j" gear="-1 .5 0" kv="2"/></actuator>',
    ),
    "free motor in several directions": bodies(
        '<body><freejoint name="j"/><geom type="box" size=".1 .2 .3"/></body>',
        after='<actuator><motor joint="j" gear="1 2 3 4 5 6" forcerange="-.2 .2"/></actuator>',
    ),
    "tendon motor": tendon(actuator='<motor tendon="t" gear="3" ctrlrange="-.5 .5"/><motor joint="k"/><motor tendon="t"/>'),
    "tendon position": tendon(actuator='<position tendon="t" kp="20" kv="2" gear="3" forcerange="-4 5"/>'),
    "tendon dampratio": tendon(actuator='<position tendon="t" kp="20" dampratio="1.2" gear="3"/>'),
    "tendon inheritrange": tendon('range="-.3 .4"', '<position tendon="t" kp="20" inheritrange=".5"/>'),
    "tendon velocity": tendon(actuator='<velocity tendon="t" kv="3" gear="-2"/><damper tendon="t" kv="2" ctrlrange="0 1"/>'),
    "tendon spring": tendon('stiffness="30" damping="2"'),
    "tendon springlength": tendon('stiffness="30" springlength=".4"'),
    "tendon slack": tendon('stiffness="30" springlength="-.2 .5"', '<motor tendon="t"/>'),
    "tendon class": tendon(before='<default><tendon stiffness="5" damping="3"/></default>'),
    "tendon actuatorfrcrange": tendon('actuatorfrcrange="-.2 .3"', '<motor tendon="t" gear="-3"/>'),
    "tendon without springs": tendon(
        'stiffness="30" damping="2"', before='<option><flag spring="disable" damper="disable"/></option>'
    ),
    "replicated tendons": bodies(
        f'<replicate count="3" offset="1 0 0" sep="_"><body name="b"><joint name="j"/>{BALL}<body name="c" pos="0 .2 0">'
        f'<joint name="k" axis="1 0 0"/>{ROD}</body></body></replicate>',
        after='<tendon><fixed name="t" stiffness="3"><joint joint="j" coef="2"/><joint joint="k" coef="-1"/></fixed></tendon>'
        '<actuator><motor name="m" tendon="t" gear="3"/></actuator>',
    ),
    "gravity and flags": arm(
        '<option gravity="1 2 3"><flag spring="disable" damper="disable"/></option>'
        '<default><joint stiffness="2" damping="3"/></default>'
    ),
    "no gravity": arm('<option><flag gravity="disable"/></option>'),
    "clampctrl": drive('<motor joint="j" ctrlrange="-.01 .01"/>', '<option><flag clampctrl="disable"/></option>'),
    "actuation": drive('<position joint="j" kp="3"/>', '<option><flag actuation="disable"/></option>'),
    "kept constraints": arm(
        after='<equality><connect body1="a" anchor="0 0 0"/><joint joint1="j" polycoef="0 1 0 0 0"/></equality>'
        '<tendon><fixed name="t" range="-1 1"><joint joint="j" coef="2"/></fixed></tendon>'
        '<contact><exclude body1="a" body2="b"/></contact>',
        inside=f'<body name="b" pos="0 0 1"><joint/>{BALL}</body>',
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::jointgrad.UnsupportedWarning")
@pytest.mark.parametrize("name", SNIPPETS)
def test_feature_means_what_it_means_in_mujoco(name):
    world = load_world(SNIPPETS[name])
    assert_same_motion(compiled(world), mujoco.MjModel.from_xml_string(SNIPPETS[name]), states=3)


@pytest.mark.parametrize(
    "name", ["replicated actuators", "replicated chains", "attached to itself", "replicated tendons"]
)
def test_names_follow_mujoco(name):
    text = SNIPPETS[name]
    model, m = compiled(quiet(load_world, text)), mujoco.MjModel.from_xml_string(text)
    assert list(model.actuator_names) == [m.actuator(i).name for i in range(m.nu)]
    assert [n for n in model.link_names if n != "world"] == [m.body(i).name for i in range(1, m.nbody)]


def test_options_and_keyframes():
    text = arm(
        '<option timestep=".005" gravity="0 0 -1" integrator="RK4"/>',
        '<keyframe><key name="up" qpos=".5" qvel="2"/><key/></keyframe>',
    )
    world, robot = load_world(text), load_mjcf(text)
    assert (world.dt, world.integrator, tuple(world.gravity)) == (0.005, "rk4", (0, 0, -1))
    assert robot.keyframes["up"] == {"q": (0.5,), "qd": (2.0,), "u": ()}
    assert robot.keyframes["key1"]["q"] == (0.0,)
    for flag, name in (("enable", "implicit_damping"), ("disable", "semi_implicit")):
        assert load_world(arm(f'<option><flag eulerdamp="{flag}"/></option>')).integrator == name


def test_coupled_tendons_are_left_out_with_a_word():
    text = bodies(
        f'<body name="a"><joint name="j"/>{BALL}<body name="b" pos="0 0 1"><joint name="k"/>{BALL}</body></body>',
        after='<tendon><fixed name="s"><joint joint="j" coef="1"/></fixed><fixed name="t"><joint joint="k" coef="1"/></fixed>'
        '</tendon><equality><tendon tendon1="s" tendon2="t"/></equality>',
    )
    with pytest.warns(jg.UnsupportedWarning, match=r"left out: tendon equality \(1\)"):
        load_world(text).compile()


def test_contact_data_is_kept():
    text = bodies(
        f'<geom type="plane" size="1 1 1" name="floor" friction=".5"/><body name="a"><joint/>'
        f'<geom size=".1" condim="4" solref=".01 1" margin=".02" contype="2"/></body><body name="b"><joint/>{BALL}</body>',
        after='<equality><weld body1="a" body2="b" relpose="0 0 1 1 0 0 0"/></equality>'
        '<contact><exclude body1="a" body2="b"/></contact>',
    )
    robot = load_mjcf(text)
    floor, ball = robot.link("world").shapes[0], robot.link("a").shapes[0]
    assert (floor.kind, floor.name, tuple(floor.friction)) == ("plane", "floor", (0.5, 0.005, 0.0001))
    assert ball.contact == {"condim": 4.0, "solref": (0.01, 1.0), "margin": 0.02, "contype": 2.0}
    assert robot.constraints == [jg.Weld("a", "b", pose=(0, 0, 1, 1, 0, 0, 0)), jg.ContactExclusion("a", "b")]
    model = load_world(text).compile()
    assert len(model.topology.tree["constraint_kind"]) == 2  # the weld: a point and an orientation
    assert sorted(model.pair_names) == ["a:floor", "b:floor"]  # a and b are kept apart


# what is not ours --------------------------------------------------------------------------------------------------------

REFUSED = {
    "muscle": drive('<muscle joint="j"/>'),
    "integrator": drive('<general joint="j" dyntype="integrator"/>'),
    "intvelocity": drive('<intvelocity joint="j" kp="1"/>'),
    "affine gain": drive('<general joint="j" gaintype="affine" gainprm="1 0 2"/>'),
    "wind": arm('<option density="1000" wind="1 0 0"/>'),
    "gravcomp": bodies(f'<body gravcomp="1"><joint/>{BALL}</body>'),
    "armature of a fixed tendon": tendon('armature="3"'),
    "stiffness of a spatial tendon": spatial_tendon('stiffness="3"'),
    "actuator of a spatial tendon": spatial_tendon(after='<actuator><motor tendon="t"/></actuator>'),
    "fixed tendon over a ball joint": bodies(
        f'<body><joint type="ball" name="j"/>{BALL}</body>', after='<tendon><fixed><joint joint="j" coef="1"/></fixed></tendon>'
    ),
    "a joint that a tendon pulls": bodies(
        f'<body><joint name="j" actuatorfrcrange="-1 1"/>{BALL}</body>',
        after='<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon><actuator><motor tendon="t"/></actuator>',
    ),
    "actuatorfrcrange of a tendon": tendon('actuatorfrcrange="-1 1"', '<motor tendon="t"/><motor tendon="t"/>'),
    "depends on the motion": joint('damping="1 2"'),
    "position actuator of a ball joint": bodies(
        f'<body><joint type="ball" name="j"/>{BALL}</body>', after='<actuator><position joint="j" gear="1 1 0"/></actuator>'
    ),
    "<composite>": bodies('<composite type="cable" count="4 1 1" size="1"><geom size=".01"/></composite>'),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_changed_physics_is_refused_unless_allowed(name):
    with pytest.raises(UnsupportedError, match=re.escape(name)):
        load_mjcf(REFUSED[name])
    with pytest.warns(UnsupportedWarning, match=f"physics IS affected: .*{re.escape(name)}"):
        load_mjcf(REFUSED[name], allow_unsupported=True)


def test_one_warning_names_what_is_left_out():
    text = arm(
        '<visual/><asset><texture builtin="flat" type="2d" width="2" height="2"/></asset>',
        "<sensor><jointpos joint='j'/></sensor>",
    )
    with pytest.warns(UnsupportedWarning) as caught:
        load_mjcf(text)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert "physics is not affected" in said and "<texture>" in said and "jointpos" in said
    assert caught[0].filename == __file__


@pytest.mark.parametrize("load", [load_mjcf, jg.load, load_world, jg.load_world])
def test_warnings_point_to_the_line_of_the_caller(load):
    """Through whichever function the file is read, and when the robot is compiled alone or in a world."""
    text = joint('type="ball" range="0 1"', "<visual/>")
    with pytest.warns(UnsupportedWarning) as caught:
        before = inspect.currentframe().f_lineno
        found = load(text)
        found.compile()
    assert [(w.filename, w.lineno - before) for w in caught] == [(__file__, 1), (__file__, 2)]


WRONG = {
    "begins with <mujoco>": "<world/>",
    "URDF": "<robot/>",
    "not a section": "<mujoco><nonsense/></mujoco>",
    "not something that a body can have": bodies("<joints/>"),
    'class "x", which does not exist': bodies('<geom class="x" size="1"/>'),
    'joint "x", which does not exist': drive('<motor joint="x"/>'),
    'two joint elements are called "j"': bodies(f'<body><joint name="j"/><joint name="j"/>{BALL}</body>'),
    "2 sizes above zero": geom('type="capsule" size=".1"'),
    "3 numbers": bodies('<geom size=".1" pos="1 2"/>'),
    "is not a number": bodies('<geom size="big"/>'),
    "orientation twice": turned('euler="1 2 3" zaxis="0 0 1"'),
    "has no length": joint('axis="0 0 0"'),
    "only the world can carry it": bodies(f"<body>{BALL}<body><freejoint/>{BALL}</body></body>"),
    "that of no body": inertial('diaginertia="1 1 3"'),
    "autolimits is off": joint('range="0 1"', '<compiler autolimits="false"/>'),
    "dropped from MJCF": arm('<compiler coordinate="global"/>'),
    "jg.budget(parts=": bodies('<replicate count="1000000000"><geom size=".1"/></replicate>'),
    'the body "x", which does not exist': arm(after='<contact><exclude body1="a" body2="x"/></contact>'),
    'the joint "x", which does not exist': arm(after='<tendon><fixed><joint joint="x"/></fixed></tendon>'),
    "smaller to a larger number": joint('range="1 1" limited="true"'),
    "needs a count": bodies('<replicate><geom size=".1"/></replicate>'),
    "search roots": arm('<include file="other.xml"/>'),
    "nested more than 300 deep": bodies(f'<body name="a"><joint/>{BALL}<attach body="a" prefix="x"/></body>'),
    'did you mean "damping"': joint('dampng="1"'),
    'did you mean "gear"': drive('<motor joint="j" gaer="3"/>'),
    "expected degree or radian": arm('<compiler angle="gon"/>'),
    "mesh": bodies('<body><joint/><geom type="mesh" mesh="m"/></body>'),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_wrong_files_are_told_what_is_wrong(message):
    with pytest.raises(FileError, match=re.escape(message)) as caught:
        load_mjcf(WRONG[message])
    assert "<text>:" in str(caught.value)


def test_includes_stay_in_their_folder(tmp_path):
    (tmp_path / "scene" / "parts").mkdir(parents=True)
    (tmp_path / "secret.xml").write_text("<mujoco><worldbody/></mujoco>")
    (tmp_path / "scene" / "parts" / "arm.xml").write_text(f"<mujoco>{ARM.format('')}</mujoco>")
    main = tmp_path / "scene" / "main.xml"
    main.write_text('<mujoco><worldbody><include file="parts/arm.xml"/></worldbody></mujoco>')
    assert list(load_mjcf(main).links) == ["a"]
    main.write_text('<mujoco><include file="../secret.xml"/></mujoco>')
    with pytest.raises(MissingFileError, match=r"main\.xml:1: .*leads out of the folders"):
        load_mjcf(main)
    assert not load_mjcf(main, search_roots=[tmp_path]).links
    main.write_text('<mujoco><include file="main.xml"/></mujoco>')
    with pytest.raises(FileError, match="included twice"):
        load_mjcf(main)


def test_attached_models_keep_their_own_rules(tmp_path):
    """Angles, classes and actuators of the attached file are its own; its names get the prefix."""
    child = arm(
        '<compiler angle="radian"/><default><joint damping="3"/></default>',
        '<actuator><motor name="m" joint="j"/></actuator>',
        f'<body name="b" euler=".5 0 0"><joint name="k" ref=".3"/>{BALL}</body>',
    )
    (tmp_path / "child.xml").write_text(child)
    main = tmp_path / "main.xml"
    main.write_text(
        bodies(
            f'<body euler="0 20 0"><joint/>{BALL}<frame pos="1 0 0" euler="0 0 40"><attach model="c" body="a" prefix="x-"/></frame>'
            "</body>"
            f'<attach model="c" prefix="y-"/>',
            '<asset><model name="c" file="child.xml"/></asset>',
        )
    )
    m = mujoco.MjModel.from_xml_path(str(main))
    model = compiled(load_world(main))
    assert_same_motion(model, m)
    assert list(model.actuator_names) == [m.actuator(i).name for i in range(m.nu)]


def test_missing_mesh(tmp_path):
    text = bodies(
        f'<body><joint/>{BALL}<geom type="mesh" mesh="m"/></body>', '<asset><mesh name="m" file="m.stl"/></asset>'
    )
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises(MissingFileError, match=r"m\.stl"):
        load_mjcf(tmp_path / "a.xml")
    with pytest.warns(UnsupportedWarning, match="missing mesh"):
        assert load_mjcf(tmp_path / "a.xml", missing_meshes="skip").link("body0").mass == 1.0
    with pytest.raises(ModelError, match="missing_meshes"):
        load_mjcf(tmp_path / "a.xml", missing_meshes="maybe")


# the models of the field -------------------------------------------------------------------------------------------------

needs_models = pytest.mark.skipif(not (MODELS / "manifest.csv").exists(), reason=f"{MODELS} is not there")


def manifest(is_loaded):
    if not (MODELS / "manifest.csv").exists():
        return []
    with open(MODELS / "manifest.csv") as file:
        return [
            r["file"]
            for r in csv.DictReader(file)
            if r["kind"].startswith("mjcf") and (r["ref_ok"] == "1") == is_loaded
        ]


def read(file):
    """The robot or why not, and how long it took; any error that is not ours comes through."""
    start = time.process_time()
    try:
        found = quiet(load_mjcf, MODELS / file, search_roots=[MODELS])
    except ModelError as reason:
        found = reason
    return found, time.process_time() - start


def reference(file):
    try:
        return mujoco.MjModel.from_xml_path(str(MODELS / file))
    except ValueError:
        return None  # a later MuJoCo than the manifest's may refuse


@needs_models
def test_every_file_that_mujoco_loads_loads_or_says_why_not(capsys):
    files, reasons, loaded, empty, differing = manifest(True), Counter(), 0, 0, []
    for file in files:
        found, seconds = read(file)
        assert seconds < 60, f"{file} took {seconds:.0f} s of the processor"
        if isinstance(found, UnsupportedError):
            features = str(found).split("not supported yet: ")[1].split("; to load it")[0]
            reasons.update({re.sub(r" \(\d+\)", "", f) for f in re.split(r", (?![^()]*\))", features)})
            continue
        if isinstance(found, ModelError):
            differing.append(f"{file}: {found}")
            continue
        loaded, empty = loaded + 1, empty + (not found.links)
        m = reference(file)
        joints = found.joints.values()
        mass = sum(link.mass for link in found.links.values())
        ours = (sum(NQ.get(j.kind, 1) for j in joints), sum(NV.get(j.kind, 1) for j in joints))
        if m is not None and (ours != (m.nq, m.nv) or abs(mass - m.body_mass.sum()) > 1e-9 * max(mass, 1e-9)):
            differing.append(
                f"{file}: nq, nv, mass are {ours}, {mass}, but {m.nq}, {m.nv}, {m.body_mass.sum()} in MuJoCo"
            )
    with capsys.disabled():
        print(
            f"\n{loaded} of {len(files)} MJCF files load ({loaded / len(files):.1%}), {empty} of them pieces without a body;"
        )
        print("the others need:")
        for reason, count in reasons.most_common():
            print(f"{count:5} {reason}")
    assert not differing, "\n".join(differing)
    assert loaded / len(files) > 0.85


@needs_models
def test_files_that_mujoco_refuses_end_in_our_own_errors():
    for file in manifest(False):
        _, seconds = read(file)
        assert seconds < 60, f"{file} took {seconds:.0f} s of the processor"


def assert_files_move_alike(files, largest):
    compared, differing = 0, []
    for file in files:
        found, _ = read(file)
        m = None if isinstance(found, ModelError) or not found.links else reference(file)
        if m is None or m.nv > largest:
            continue
        world = quiet(load_world, MODELS / file, search_roots=[MODELS])
        try:
            assert_same_motion(compiled(world), m, states=1)
        except (AssertionError, ModelError) as reason:
            differing.append(f"{file}: {reason}")
        compared += 1
    assert not differing, "\n".join(differing)
    return compared


@needs_models
def test_loaded_files_move_as_in_mujoco():
    assert assert_files_move_alike(manifest(True)[::5], 60) > 50


@needs_models
@pytest.mark.slow
def test_all_loaded_files_move_as_in_mujoco():
    assert assert_files_move_alike(manifest(True), 700) > 300
