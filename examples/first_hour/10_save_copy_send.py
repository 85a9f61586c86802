"""A model in a file, as a copy, and in another process."""

import copy
import multiprocessing
import pickle
import tempfile
from pathlib import Path

import mujoco
import numpy as np

import jointgrad as jg

FOLDER = Path(tempfile.gettempdir())


def end(model, steps=100):
    return jg.rollout(model, model.initial_state(), steps=steps).last.q


def ours():
    model = jg.World().add(jg.zoo.ant(), position=(0, 0, 0.75)).add_ground().compile(dt=2e-3)
    model.save(FOLDER / "ant.npz")
    others = [jg.load_model(FOLDER / "ant.npz"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        sent = pool.apply(jg.rollout, (model, model.initial_state()), {"steps": 100})
    return [end(model), *map(end, others), sent.last.q]


def mujoco_end(m, steps=100):
    d = mujoco.MjData(m)
    for _ in range(steps):
        mujoco.mj_step(m, d)
    return d.qpos


def mujoco_():
    m = mujoco.MjModel.from_xml_string(
        jg.to_mjcf(jg.World().add(jg.zoo.ant(), position=(0, 0, 0.75)).add_ground(), dt=2e-3)
    )
    mujoco.mj_saveModel(m, str(FOLDER / "ant.mjb"), None)
    others = [mujoco.MjModel.from_binary_path(str(FOLDER / "ant.mjb")), copy.deepcopy(m), pickle.loads(pickle.dumps(m))]
    return [mujoco_end(m), *map(mujoco_end, others)]  # to another process by pickle, too


if __name__ not in ("counted", "__mp_main__"):
    for found in (ours(), mujoco_()):
        print(len(found), "alike, to the last bit:", all(np.array_equal(x, found[0]) for x in found))
        assert all(np.array_equal(x, found[0]) for x in found)
