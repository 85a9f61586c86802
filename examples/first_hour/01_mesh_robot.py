"""A robot with meshes, from a file with package:// names, dropped onto the ground."""

import tempfile
from pathlib import Path

import mujoco
import numpy as np
import trimesh

import jointgrad as jg

folder = Path(tempfile.mkdtemp()) / "cart_description"  # a ROS package as they are downloaded, without ROS
(folder / "meshes").mkdir(parents=True)
(folder / "urdf").mkdir()
trimesh.creation.box((0.4, 0.2, 0.1)).export(folder / "meshes" / "hull.stl")
INERTIA = '<inertial><mass value="2"/><inertia ixx=".01" iyy=".03" izz=".03" ixy="0" ixz="0" iyz="0"/></inertial>'
SEEN = '<visual><geometry><mesh filename="package://cart_description/meshes/hull.stl"/></geometry></visual>'
TOUCHES = '<collision><geometry><box size=".4 .2 .1"/></geometry></collision>'
(folder / "urdf" / "cart.urdf").write_text(
    f'<robot name="cart"><link name="hull">{INERTIA}{SEEN}{TOUCHES}</link></robot>'
)


def ours():
    robot = jg.load(folder / "urdf" / "cart.urdf", base="free")
    model = jg.World().add(robot, position=(0, 0, 0.2)).add_ground().compile(dt=2e-3)
    return jg.rollout(model, model.initial_state(), steps=500).last.q[2]


def mujoco_():
    # MuJoCo knows no packages: the mesh is handed over by name
    text = (folder / "urdf" / "cart.urdf").read_text().replace("package://cart_description/meshes/", "")
    spec = mujoco.MjSpec.from_string(text, assets={"hull.stl": (folder / "meshes" / "hull.stl").read_bytes()})
    spec.body("hull").add_freejoint()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 1])
    m = spec.compile()
    d = mujoco.MjData(m)
    d.qpos[2] = 0.2
    for _ in range(500):
        mujoco.mj_step(m, d)
    return d.qpos[2]


if __name__ != "counted":
    height, other = ours(), mujoco_()
    print("rests with its middle at", height, "m; in MuJoCo", other)
    assert np.isclose(height, 0.05, atol=1e-4) and np.isclose(other, 0.05, atol=2e-3)
