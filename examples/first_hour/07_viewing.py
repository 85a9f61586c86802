"""A motion as one HTML page that opens offline, and as a file to replay. (MuJoCo's viewer needs a window.)"""

import tempfile
from pathlib import Path

import jointgrad as jg
from jointgrad.viewer.replay import html


def ours():
    folder = Path(tempfile.mkdtemp())
    model = jg.World().add(jg.zoo.ant(), position=(0, 0, 0.75)).add_ground().compile(dt=2e-3)
    motion = jg.rollout(model, model.initial_state(), steps=300)
    motion.save(folder / "run.npz")  # jointgrad replay run.npz, also --gif and --mp4
    return html(model, motion, folder / "run.html")  # or jg.view(model, motion), live in the browser


if __name__ != "counted":
    page = Path(ours())
    print("written to", page, page.stat().st_size, "bytes")
    assert "<html" in page.read_text()[:500].lower()
