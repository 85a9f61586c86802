"""Films as GIF, MP4 or a single PNG, drawn without a screen."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..model.arguments import checked_count, checked_number, writing
from ..model.budget import excess
from ..model.errors import InputError
from .film import Film
from .raster import Painter

GIF_FPS, MP4_FPS = 25, 30


def _check_size(width: Any, height: Any) -> None:
    for name, value in (("width", width), ("height", height)):
        checked_count(f"{name} (size of a picture)", value, 1)


def picture(film: Film, path: Any, time: float = 0.0, width: int = 640, height: int = 400) -> Path:
    """One moment of a film as a PNG."""
    from PIL import Image

    _check_size(width, height)
    checked_number("time", time)
    frame = int(np.argmin(np.abs(film.time - time)))
    with writing(path):
        Image.fromarray(Painter(film, width, height).picture(frame)).save(path, optimize=True)
    return Path(path)


def gif(film: Film, path: Any, width: int = 480, height: int = 300, speed: float = 1.0) -> Path:
    """The film as a moving picture that repeats."""
    from PIL import Image

    count = _count(film, width, height, GIF_FPS, speed)
    if why := excess("unpacked_bytes", count * width * height):  # all pictures are in memory before they are written
        raise InputError(f"the moving picture has {why}; or take a smaller one, a larger speed, or an MP4")
    # one palette for all, so that still parts do not flicker; by coverage, or small bright things would lose their colour
    middle = next(_pictures(film, width, height, GIF_FPS, speed, count // 2))
    palette = Image.fromarray(middle).quantize(128, method=Image.Quantize.MAXCOVERAGE)
    pictures = map(Image.fromarray, _pictures(film, width, height, GIF_FPS, speed))
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    durations = [1000 // GIF_FPS] * len(others) + [800]
    with writing(path):
        first.save(path, save_all=True, append_images=others, duration=durations, loop=0)
    return Path(path)


def mp4(film: Film, path: Any, width: int = 960, height: int = 600, speed: float = 1.0) -> Path:
    """The film as a video; needs ffmpeg, installed or from the package imageio-ffmpeg."""
    _count(film, width, height, MP4_FPS, speed)  # before anything is begun
    command = [
        _ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
        "-r", str(MP4_FPS), "-i", "-", "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", str(path),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for image in _pictures(film, width, height, MP4_FPS, speed):
            process.stdin.write(image.tobytes())
        process.stdin.close()
        if process.wait():
            raise InputError(f"ffmpeg could not write {path}")
    return Path(path)


def _ffmpeg() -> str:
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        import imageio_ffmpeg
    except ImportError:
        raise InputError('videos need ffmpeg: install it, or pip install "jointgrad[view]"') from None
    return imageio_ffmpeg.get_ffmpeg_exe()


def _count(film: Film, width: int, height: int, fps: float, speed: float) -> int:
    """How many pictures a film has, if it may have so many."""
    _check_size(width, height)
    if width % 2 or height % 2 or not 16 <= min(width, height) or not speed > 0:
        raise InputError(
            f"width and height must be even and at least 16, but are {width} and {height}; speed is {speed}"
        )
    seconds = float(film.time[-1]) / speed
    if why := excess("video_seconds", seconds):
        raise InputError(f"the film has {why}; or take a larger speed")
    return max(1, int(np.floor(seconds * fps + 1e-6)) + 1)


def _pictures(film: Film, width: int, height: int, fps: float, speed: float, first: int = 0) -> Iterator[np.ndarray]:
    count = _count(film, width, height, fps, speed)
    painter = Painter(film, width, height)
    for k in range(first, count):
        yield painter.picture(int(np.argmin(np.abs(film.time - k * speed / fps))))
