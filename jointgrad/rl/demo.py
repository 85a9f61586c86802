"""The dog's demonstration: it learns to walk while one watches in the browser, then goes where one tells it by the keyboard."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from .catalogue import make_task
from .live import LivePage
from .policy_file import load_policy
from .train import train

# updates over which the rate of learning falls: the demonstration is shorter than a whole learning
SETTINGS = {"decay": 600, "ease": 100}


def demonstrate(
    out: Path, seed: int, seconds: float, port: int | None = None, say: Callable[[str], None] = print
) -> int:
    """Learn for so many seconds of the processor; then the page stays until Ctrl-C. What a folder holds is gone on with."""
    page = LivePage(make_task("go2"), port, seed)
    try:
        said = train("go2", "shac", seconds, None, seed, out, SETTINGS, {}, count=16, say=say, page=page)
        page.policy = load_policy(out)
        page.say("It has learned: W S A D Q E X, or the sliders, tell it where to go.")
        error = said["measures"]["speed_error"]
        say(
            f"{said['falls']} of {said['episodes']} dogs fell in 20 s; they miss the speed they are told by {error:.2f} m/s"
        )
        say(
            f"tell it where to go at {page.address}: W S A D Q E, X stops it (click into the picture first); Ctrl-C ends"
        )
        while not said["interrupted"]:
            time.sleep(0.5)
    except KeyboardInterrupt:
        return 0
    finally:
        page.stop()
    return 130
