"""The pictures of docs/viewer.md, replays first: python docs/pictures/viewer.py [folder]."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import jointgrad as jg
from jointgrad.viewer import film_of, picture, plots
from jointgrad.viewer.replay import write_html


def ants() -> tuple[jg.Model, jg.Trajectory]:
    """Four ants that fall, and move their legs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = jg.World().add(jg.zoo.ant()).add_ground(friction=1.0).compile(dt=2e-3)
    start = model.initial_state(batch=4)
    start.q[:, 2] += np.linspace(0.0, 0.6, 4)
    phase = 2 * np.pi * np.random.default_rng(1).uniform(size=(4, model.nu))
    u = 0.4 * np.sin(2 * np.pi * 2e-3 * np.arange(750)[:, None, None] * 1.5 + phase)
    return model, jg.rollout(model, start, u)


def main(folder: Path) -> None:
    model, traj = ants()
    film = film_of(model, traj, title="Four ants")
    write_html(film, folder / "ants.html")
    picture(film, folder / "film.png", time=1.1, width=720, height=420)
    plots.contact_timeline(traj, folder / "contacts.png")
    print(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
