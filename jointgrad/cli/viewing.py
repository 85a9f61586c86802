"""Commands that show something: view, replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from ..usage import require
from .scene import placed


def view(
    file: Path,
    /,
    ground: bool = True,
    height: float | None = None,
    base: Literal["free", "fixed"] | None = None,
    state: str | None = None,
    dt: float | None = None,
    port: int = 8080,
    host: str = "127.0.0.1",
    html: Path | None = None,
    search_roots: tuple[Path, ...] = (),
) -> int:
    """Look at a robot in the browser: drag its joints, let physics run, see contacts and frames. Ctrl-C ends it.

    Args:
        file: The robot, URDF or MJCF.
        ground: Put a plane under a file that has none.
        height: Let it start with its lowest point so high above z = 0 (m).
        base: Whether a URDF robot's base is free or fixed; unless said, fixed.
        state: A keyframe of the file to start from.
        dt: Time step (s); unless said, the file's own, or 1 ms.
        port: Where the page is served; another is taken if it is not free.
        host: Who may look: 127.0.0.1 is this machine alone, 0.0.0.0 is everyone on the network.
        html: Write a still scene as one HTML file instead.
        search_roots: Folders for meshes and included files, beside that of the file.
    """
    require({} if html else {"viser": "viser"}, "view")
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model, start, _ = placed(file, ground, height, base, state, 1, dt, search_roots)
    for note in dict.fromkeys(str(w.message) for w in said):
        print(f"note: {note}")
    if html is not None:
        from ..viewer.replay import html as write

        print(write(model, start, html, title=file.name))
        return 0
    from ..viewer.browser import view as look

    look(model, start, port=port, host=host, title=file.name)
    return 0


def replay(
    run: Path,
    /,
    html: Path | None = None,
    gif: Path | None = None,
    mp4: Path | None = None,
    png: Path | None = None,
    time: float = 0.0,
    speed: float = 1.0,
    size: tuple[int, int] | None = None,
    forces: bool = True,
    port: int = 8080,
    host: str = "127.0.0.1",
) -> int:
    """See a run again that `traj.save("run.npz")` wrote: in the browser, or as a file. Ctrl-C ends it.

    Args:
        run: The saved run.
        html: Write one HTML file that opens anywhere, offline.
        gif: Write a moving picture.
        mp4: Write a video; needs ffmpeg.
        png: Write one picture, of the moment --time.
        time: Of --png (s).
        speed: Of --gif and --mp4: 0.5 is half as fast as it was.
        size: Width and height of pictures and videos, in pixels.
        forces: Draw the forces of contact.
        port: Where the page is served; another is taken if it is not free.
        host: Who may look: 127.0.0.1 is this machine alone, 0.0.0.0 is everyone on the network.
    """
    require({"PIL": "pillow"} if gif or png else {} if html or mp4 else {"viser": "viser"}, "view")
    from ..viewer.replay import load_run, write_html

    film = load_run(run).film if forces else load_run(run).film.without_forces()
    if html is not None:
        print(write_html(film, html))
    if gif or mp4 or png:
        from ..viewer import video

        wide: dict[str, Any] = {} if size is None else {"width": size[0], "height": size[1]}
        if gif is not None:
            print(video.gif(film, gif, speed=speed, **wide))
        if mp4 is not None:
            print(video.mp4(film, mp4, speed=speed, **wide))
        if png is not None:
            print(video.picture(film, png, time, **wide))
    if not (html or gif or mp4 or png):
        from ..viewer.browser import view_film

        view_film(film, port=port, host=host)
    return 0
