"""Saved runs: .npz files of plain arrays and a scene in JSON, and replays as one HTML file that opens offline."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.run.trajectory import Gradient, Trajectory
from ..files.npz import read_npz
from ..model.arguments import checked_path, reading, writing
from ..model.arrays import Model, State
from .film import ENVIRONMENTS, FPS, Arrows, Contacts, Film, film_of
from .markup import plain
from .scene import KINDS, ROLES, SIZES, Piece, Scene, normals_of, unit

FORMAT = "jointgrad run 1"
# the most of a scene that is read; arrays keep to the budget
TEXT = 20_000_000
PIECES, ARROWS = 100_000, 16
ARRAY_NAMES = ("q", "qd", "more", "u", "time", "position", "orientation")
TABLE = {"frame": (), "env": (), "links": (2,), "point": (3,), "force": (3,)}


@dataclass
class Run:
    """A saved motion: every state, q (T+1, batch, nq) and qd, the controls u or None, its film, and further state or None."""

    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray | None
    film: Film
    more: np.ndarray | None = None


# npz ------------------------------------------------------------------------------------------------------------------


def save(
    model: Model, motion: Trajectory, path: Any, gradient: Gradient | None = None, environments: int = ENVIRONMENTS,
    fps: float = FPS, title: str = "",
) -> Path:  # fmt: skip
    """Write a motion as an .npz file: all its states exactly, and the film of its first environments."""
    path = checked_path(path)
    film = film_of(model, motion, gradient, environments, fps, title or path.stem)
    arrays, scene = _packed(film)
    arrays |= {"q": motion.q, "qd": motion.qd}
    arrays |= {name: x for name, x in (("u", motion.u), ("more", motion.more)) if x is not None}
    arrays["scene"] = np.frombuffer(json.dumps(scene).encode(), dtype=np.uint8)
    with writing(path), open(path, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    return path


def _packed(film: Film) -> tuple[dict[str, np.ndarray], dict]:
    arrays = {"time": film.time, "position": film.position, "orientation": film.orientation}
    arrays |= {f"contact.{name}": getattr(film.contacts, name) for name in TABLE}
    pieces = []
    for k, p in enumerate(film.scene.pieces):
        for what in ("vertices", "faces", "points"):
            if getattr(p, what) is not None:
                arrays[f"piece.{k}.{what}"] = getattr(p, what)
        pieces.append({w: getattr(p, w) for w in ("link", "kind", "size", "position", "orientation", "color", "role")})
    for k, a in enumerate(film.arrows):
        arrays |= {f"arrows.{k}.link": a.link, f"arrows.{k}.vector": a.vector}
    scene = {
        "format": FORMAT, "title": film.title, "links": film.scene.link_names, "is_still": film.scene.is_still,
        "notes": film.scene.notes, "pieces": pieces, "n_environments": film.n_environments,
        "arrows": [{"label": a.label, "is_start": a.is_start} for a in film.arrows],
    }  # fmt: skip
    return arrays, scene


def load_run(path: Any) -> Run:
    """Read a saved run. Nothing in it is evaluated; a file that is not what `save` writes is refused, saying why."""
    what = "a run that jointgrad saved"
    arrays = read_npz(path, what)
    with reading(path, what):
        scene = _json(arrays.pop("scene"))
        film = _unpacked(arrays, scene)
        q, qd, u = _number(arrays, "q"), _number(arrays, "qd"), arrays.get("u")
        if q.ndim not in (2, 3) or qd.ndim != q.ndim or qd.shape[:-1] != q.shape[:-1]:
            raise ValueError("q and qd do not have the same times and environments")
        more = _number(arrays, "more") if "more" in arrays else None
        return Run(q, qd, None if u is None else _number(arrays, "u"), film, more)


def _json(text: np.ndarray) -> dict:
    if text.dtype != np.uint8 or text.ndim != 1 or len(text) > TEXT:
        raise ValueError("its scene is not a short text")
    scene = json.loads(text.tobytes().decode())
    if not isinstance(scene, dict) or scene.get("format") != FORMAT:
        raise ValueError(f'its scene does not say "{FORMAT}"')
    return scene


def _number(arrays: dict, name: str, *shape: int | None, kind: Any = np.float64, finite: bool = True) -> np.ndarray:
    """An array of a file, of a shape (None: any length) and kind."""
    array = arrays[name]
    if array.dtype != kind:
        raise ValueError(f'"{name}" holds {array.dtype}, not {np.dtype(kind)}')
    if shape and (array.ndim != len(shape) or any(w not in (None, n) for w, n in zip(shape, array.shape, strict=True))):
        raise ValueError(f'"{name}" has shape {array.shape}, which does not fit the rest')
    if finite and kind == np.float64 and not np.isfinite(array).all():
        raise ValueError(f'"{name}" is not finite')
    return array


def _whole(arrays: dict, name: str, below: int, *shape: int | None, least: int = 0) -> np.ndarray:
    """Indices, all from `least` to below a bound."""
    array = _number(arrays, name, *shape, kind=np.int64)
    if array.size and not (least <= array.min() and array.max() < below):
        raise ValueError(f'"{name}" points to what is not there')
    return array


def _unpacked(arrays: dict[str, np.ndarray], scene: dict) -> Film:
    links = _texts(scene["links"], PIECES)
    time = _number(arrays, "time", None)
    frames, n = len(time), len(links)
    if frames < 1 or (np.diff(time) <= 0).any():
        raise ValueError("its moments are not in order of time")
    position = _number(arrays, "position", frames, None, n, 3)
    envs = position.shape[1]
    orientation = _number(arrays, "orientation", frames, envs, n, 4)
    if envs < 1 or (np.abs(np.linalg.norm(orientation, axis=-1) - 1) > 1e-6).any():
        raise ValueError("an orientation is not a unit quaternion, or there is no environment")
    rows = len(arrays["contact.frame"])
    contacts = Contacts(
        _whole(arrays, "contact.frame", frames, None), _whole(arrays, "contact.env", envs, rows),
        _whole(arrays, "contact.links", n, rows, 2, least=-1), _number(arrays, "contact.point", rows, 3),
        _number(arrays, "contact.force", rows, 3),
    )  # fmt: skip
    if (np.diff(contacts.frame) < 0).any():
        raise ValueError("its contacts are not in order of time")
    film = Film(_scene(arrays, scene, links), time, position, orientation, contacts)
    film.arrows = [_arrows(arrays, k, a, n, frames, envs) for k, a in enumerate(_short(scene["arrows"], ARROWS))]
    film.title, film.n_environments = str(scene["title"])[:1000], max(int(scene["n_environments"]), envs)
    return film


def _short(given: Any, most: int) -> list:
    if not isinstance(given, list) or len(given) > most:
        raise ValueError(f"a list in its scene is missing or longer than {most}")
    return given


def _texts(given: Any, most: int) -> tuple[str, ...]:
    if not all(isinstance(t, str) and len(t) < 1000 for t in _short(given, most)):
        raise ValueError("a name in its scene is not a short text")
    return tuple(given)


def _numbers(given: Any, count: int) -> tuple[float, ...]:
    values = np.array(given, dtype=np.float64)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ValueError(f"a piece has {given!r:.50} where {count} numbers belong")
    return tuple(values.tolist())


def _scene(arrays: dict, scene: dict, links: tuple[str, ...]) -> Scene:
    still = tuple(bool(s) for s in _short(scene["is_still"], PIECES))
    if len(still) != len(links):
        raise ValueError("it does not say of each link whether it moves")
    pieces = [_piece(arrays, k, p, len(links)) for k, p in enumerate(_short(scene["pieces"], PIECES))]
    return Scene(links, pieces, still, list(_texts(scene["notes"], PIECES))).within_budget()


def _piece(arrays: dict, k: int, given: dict, n_links: int) -> Piece:
    kind, role, link = given["kind"], given["role"], given["link"]
    if kind not in KINDS or role not in ROLES or type(link) is not int or not 0 <= link < n_links:
        raise ValueError(f"piece {k} is of no known kind, role or link")
    size = _numbers(given["size"], SIZES[kind])
    turn = unit(_numbers(given["orientation"], 4))
    if not np.isfinite(turn).all():
        raise ValueError(f"piece {k} has an orientation of no length")
    piece = Piece(link, kind, size, _numbers(given["position"], 3), turn, _numbers(given["color"], 4), role)
    if kind == "mesh":
        piece.vertices = _number(arrays, f"piece.{k}.vertices", None, 3)
        piece.faces = _whole(arrays, f"piece.{k}.faces", len(piece.vertices), None, 3)
    if kind == "points":
        piece.points = _number(arrays, f"piece.{k}.points", None, 3)
    return piece


def _arrows(arrays: dict, k: int, given: dict, n: int, frames: int, envs: int) -> Arrows:
    link = _whole(arrays, f"arrows.{k}.link", n, None)
    vector = _number(arrays, f"arrows.{k}.vector", None, envs, len(link), 3)
    if len(vector) not in (1, frames):
        raise ValueError(f"arrows {k} do not fit the moments")
    return Arrows(str(given["label"])[:200], link, vector, bool(given["is_start"]))


# one HTML file --------------------------------------------------------------------------------------------------------


def html(
    model: Model, motion: Trajectory | State | None, path: Any, gradient: Gradient | None = None,
    environments: int = ENVIRONMENTS, fps: float = FPS, title: str = "",
) -> Path:  # fmt: skip
    """Write a motion, or a state, as one HTML file that shows it in any browser, offline."""
    return write_html(film_of(model, motion, gradient, environments, fps, title or Path(path).stem), path)


def write_html(film: Film, path: Any) -> Path:
    """Write a film as one HTML file with the player inside."""
    page = Path(__file__).with_name("player.html").read_text(encoding="utf-8")
    # in JSON a "<" may be written otherwise, so that no name can end the script it stands in
    text = json.dumps(_film_json(film), allow_nan=False).replace("<", "\\u003c")
    head, tail = page.split("@FILM@")
    path = Path(path)
    with writing(path):
        path.write_text(head.replace("@TITLE@", plain(film.title)) + text + tail, encoding="utf-8")
    return path


def _film_json(film: Film) -> dict:
    meshes, pieces = _meshes(film.scene)
    view = film.camera()
    poses = np.concatenate([film.position, film.orientation], -1)
    moving = [j for j, still in enumerate(film.scene.is_still) if not still]
    return {
        "title": film.title, "note": film.note, "links": film.scene.link_names, "frames": film.n_frames,
        "environments": film.n_shown, "still": film.n_frames < 2, "poses": _base64(poses), "time": _base64(film.time),
        "offsets": _base64(film.offsets()), "meshes": meshes, "pieces": pieces, "planes": _planes(film),
        "middle": view.middle.tolist(), "view": [view.turn, view.rise, view.range], "reach": view.reach, "size": film.size,
        "tile": view.tile, "follow": moving[0] if moving else -1,
        "contacts": _table(film, 7, [np.column_stack(film.force_arrows(k)) for k in range(film.n_frames)]),
        "gradients": _table(film, 8, [np.column_stack(film.gradient_arrows(k)) for k in range(film.n_frames)])
        | {"labels": [a.label for a in film.arrows]},
    }  # fmt: skip


def _table(film: Film, width: int, rows: list[np.ndarray]) -> dict:
    """Rows of all moments, and where each moment's begin."""
    starts = np.cumsum([0] + [len(r) for r in rows])
    return {"starts": starts.tolist(), "rows": _base64(np.concatenate([r.reshape(-1, width) for r in rows]))}


def _base64(array: np.ndarray, kind: Any = "<f4") -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _meshes(scene: Scene) -> tuple[list[dict], list[dict]]:
    """Surfaces in their links' frames, each once, and which piece has which."""
    meshes: list[dict] = []
    numbers: dict[tuple[str, str], int] = {}
    pieces = []
    for p in scene.solids:
        vertices, faces = shaded_corners(p)
        corners = np.concatenate([vertices, normals_of(vertices, faces)], -1)
        mesh = {"corners": _base64(corners), "faces": _base64(faces, "<u4")}
        key = mesh["corners"], mesh["faces"]
        if key not in numbers:
            numbers[key] = len(meshes)
            meshes.append(mesh)
        pieces.append({"link": p.link, "mesh": numbers[key], "color": p.color, "role": p.role})
    return meshes, pieces


def shaded_corners(piece: Piece) -> tuple[np.ndarray, np.ndarray]:
    """Triangles ready for smooth shading: those of meshes get corners of their own, so that edges stay sharp."""
    vertices, faces = piece.triangles()
    if piece.kind != "mesh":
        return vertices, faces
    return vertices[faces].reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3)


def _planes(film: Film) -> list[dict]:
    """Grounds that are there, or a grid for the eye where there is none."""
    if not film.scene.planes:
        low, _ = film.extent()
        middle = film.camera().middle
        return [{"position": [middle[0], middle[1], float(low[2])], "orientation": [1.0, 0.0, 0.0, 0.0], "plain": 1}]
    found = []
    for p in film.scene.planes:
        position, turn = film.placed(p)
        found.append({"position": position.tolist(), "orientation": turn.tolist(), "plain": 0})
    return found
