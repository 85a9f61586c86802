"""Makes dog.gif: a dog goes where it is told. python docs/pictures/dog.py FOLDER, which `jointgrad train go2` wrote."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from jointgrad.rl import Batch
from jointgrad.rl.picture import Camera
from jointgrad.rl.policy_file import load_policy

# seconds, and what it is told meanwhile: forward and sideways (m/s), turning (rad/s)
TOLD = ((2.4, (0.8, 0.0, 0.0)), (2.0, (0.4, 0.0, 0.8)), (1.6, (0.0, 0.3, 0.0)))
EVERY, SIZE = 3, (420, 260)


def main(folder: Path, out: Path) -> None:
    policy, camera, frames = load_policy(folder), Camera(*SIZE), []
    batch = Batch(policy.task, 1, threads=1)
    batch.generators = [np.random.default_rng(0)]
    batch.reset(np.ones(1, dtype=bool))
    for seconds, command in TOLD:
        goal = batch.now.goal.copy()
        goal[0, :3] = command
        batch.now = batch.now._replace(goal=goal)
        for k in range(round(seconds / policy.task.control_dt)):
            if k % EVERY == 0:
                frames.append(Image.fromarray(camera.picture(batch, 0)).quantize(64))
            batch.step(policy(batch.observe()))
    dt = 1000 * EVERY * policy.task.control_dt
    frames[0].save(out, save_all=True, append_images=frames[1:], duration=dt, loop=0, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).with_name("dog.gif"))
