"""What a notebook shows of a world, a model, a motion, its gradient and a state: tables (MuJoCo shows addresses)."""

import numpy as np

import jointgrad as jg


def ours():
    world = jg.World().add(jg.zoo.ant(), name="ant", position=(0, 0, 0.75)).add_ground()
    model = world.compile(dt=2e-3)
    motion = jg.rollout(model, model.initial_state(batch=4), steps=100)
    gradient = motion.backward(q_bar=np.ones((4, model.nq)))
    return [x._repr_html_() for x in (world, model, motion, gradient, jg.inspect(model, model.initial_state()))]


if __name__ != "counted":
    tables = ours()
    print(tables[2])
    assert all(text.startswith("<table>") for text in tables) and "ant/torso" in tables[1]
