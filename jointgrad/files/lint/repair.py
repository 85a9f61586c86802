"""Safe repairs of a URDF file, made in its text so that everything else stays as it was, comments included."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from xml.parsers import expat

import numpy as np

from ...model.description import Link
from ...model.errors import ModelError
from ...model.massless import DENSITY, given_mass, massless_joints
from ...model.meshes import with_pieces
from ..urdf import load_urdf
from ..xml import Element, FileError, parse
from .bodies import POINT
from .finding import Notebook
from .solids import solid_of, tensor
from .tree import Tree
from .urdf import check_elements, number

WATER = 1000.0  # kg/m^3: the density of the ball that stands for a link without a shape
NAMES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
# what one repair needs: the element, and the attributes it gets
Change = tuple[Element, dict]


def repaired(path: Path) -> tuple[bytes, list[str]]:
    """The text of a URDF file after all safe repairs, and one sentence for each of them."""
    root = parse(path)
    if root.tag != "robot":
        raise ModelError(f"{path}: only URDF files are repaired; this one begins with <{root.tag}>")
    data = path.read_bytes()
    if b"\0" in data:
        raise FileError(f"{path}: only files in UTF-8 (or another encoding that contains ASCII) are repaired")
    notes = Notebook(str(path))
    check_elements(root, notes)
    said: list[str] = []
    changes: list[Change] = []
    for element, values, what in [*_limits(notes), *_mimics(notes), *_inertias(path, notes), *_masses(path, notes)]:
        changes.append((element, values))
        said.append(f"{path}:{element.line} {what}")
    return _edited(data, root, changes), said


def _limits(notes: Notebook) -> list[tuple[Element, dict[str, float], str]]:
    found = []
    for name, joint in notes.joints.items():
        limit = joint.first("limit")
        low, high = number(limit, "lower") or 0.0, number(limit, "upper") or 0.0
        if joint.get("type") in ("revolute", "prismatic") and limit is not None and low > high:
            what = f'joint "{name}": lower and upper limit exchanged, now {high:g} to {low:g}'
            found.append((limit, {"lower": high, "upper": low}, what))
    return found


def _mimics(notes: Notebook) -> list[tuple[Element, dict, str]]:
    """A joint that follows a follower follows the first leader itself: the same motion."""
    leads = {name: mimic for name, joint in notes.joints.items() if (mimic := joint.first("mimic")) is not None}
    found = []
    for name, mimic in leads.items():
        leader, factor, shift, seen = mimic.get("joint", ""), *_line(mimic), {name}
        while leader in leads and leader not in seen:
            seen.add(leader)
            m, o = _line(leads[leader])
            leader, factor, shift = leads[leader].get("joint", ""), factor * m, factor * o + shift
        if len(seen) > 1 and leader in notes.joints and leader not in seen:
            values = {"joint": leader, "multiplier": factor, "offset": shift}
            what = f'joint "{name}": mimics "{leader}" itself now, multiplier {factor:g}, offset {shift:g}'
            found.append((mimic, values, what))
    return found


def _line(mimic: Element) -> tuple[float, float]:
    multiplier, offset = number(mimic, "multiplier"), number(mimic, "offset")
    return 1.0 if multiplier is None else multiplier, offset or 0.0


def _inertias(path: Path, notes: Notebook) -> list[tuple[Element, dict[str, float], str]]:
    try:
        robot = load_urdf(path, missing_meshes="skip")
    except ModelError:
        return []  # what cannot be read has no masses to go by
    tree, found = Tree(robot), []
    for link in robot.links.values():
        if link.mass <= 0 or tree.group_of[link.name] is None or np.abs(link.inertia).max() > POINT * link.mass:
            continue
        inertial = notes.links[link.name].first("inertial")
        if inertial is None:
            continue
        inertia, of = _estimate(link)
        origin = inertial.first("origin")
        rpy = (0.0, 0.0, 0.0) if origin is None else origin.floats("rpy", 3, (0.0, 0.0, 0.0))
        R = _turn(*rpy)
        I = R.T @ inertia @ R
        values = dict(zip(NAMES, I[np.triu_indices(3)].tolist(), strict=True))
        place = inertial.first("inertia") or inertial
        found.append((place, values, f'link "{link.name}": zero inertia replaced by that of {of}'))
    return found


def _masses(path: Path, notes: Notebook) -> list[tuple[Element, dict, str]]:
    """Links below joints that move no mass get that of their shapes; joints that move none even then are fixed."""
    try:
        robot = load_urdf(path, missing_meshes="skip")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with_pieces([robot], "hull", "all")
    except ModelError:
        return []
    found: list[tuple[Element, dict, str]] = []
    light = massless_joints(robot)
    for name in given_mass(robot, light):
        link, element = robot.links[name], notes.links[name]
        said = f'link "{name}": given {link.mass:.3g} kg, that of its shapes at {DENSITY:g} kg/m^3'
        inertial = element.first("inertial")
        if inertial is not None and (mass := inertial.first("mass")) is not None:
            found.append((mass, {"value": link.mass}, said))
        elif inertial is None:
            found.append((element, {"mass": link.mass, "com": link.com, "inertia": link.inertia}, said))
    for joint in massless_joints(robot):
        found.append(
            (notes.joints[joint.name], {"type": "fixed"}, f'joint "{joint.name}": fixed, for it carries no mass')
        )
    return found


def _inertial_text(values: dict) -> bytes:
    inertia = " ".join(f'{name}="{float(v)!r}"' for name, v in zip(NAMES, values["inertia"], strict=True))
    place = " ".join(repr(float(x)) for x in values["com"])
    return f'<inertial><origin xyz="{place}"/><mass value="{float(values["mass"])!r}"/><inertia {inertia}/></inertial>'.encode()


def _turn(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """About the fixed axes x, then y, then z."""
    (a, b, c), (s, t, u) = np.cos((roll, pitch, yaw)), np.sin((roll, pitch, yaw))
    return np.array([
        [c * b, c * t * s - u * a, c * t * a + u * s],
        [u * b, u * t * s + c * a, u * t * a - c * s],
        [-t, b * s, b * a],
    ])  # fmt: skip


def _estimate(link: Link) -> tuple[np.ndarray, str]:
    solid = solid_of(link)
    if solid is not None and not solid.is_partial:
        return link.mass * solid.inertia, f"its shape, solid, of {link.mass:.4g} kg"
    radius = (3 * link.mass / (4 * math.pi * WATER)) ** (1 / 3)
    moment = 0.4 * link.mass * radius**2
    return tensor(
        (moment, 0, 0, moment, 0, moment)
    ), f"a ball of {link.mass:.4g} kg and {radius:.3g} m radius (an estimate)"


# editing -----------------------------------------------------------------------------------------------------------------


def _edited(data: bytes, root: Element, changes: list[Change]) -> bytes:
    """Attributes set in the bytes of the file; from its end to its beginning, so that offsets stay true."""
    starts, ends = _offsets(data)
    index = {id(element): k for k, element in enumerate(root.walk())}
    edits = []
    for element, values in changes:
        k = index[id(element)]
        if element.tag == "link":
            edits.append((ends[k], ends[k], _inertial_text(values)))
            continue
        texts = {name: value if isinstance(value, str) else repr(float(value)) for name, value in values.items()}
        if element.tag == "inertial":
            row = " ".join(f'{name}="{text}"' for name, text in texts.items())
            edits.append((ends[k], ends[k], f"<inertia {row}/>".encode()))
        else:
            stop = _end_of_tag(data, starts[k])
            edits.append((starts[k], stop, _with_attributes(data[starts[k] : stop], texts)))
    for start, stop, text in sorted(edits, reverse=True):
        data = data[:start] + text + data[stop:]
    return data


def _offsets(data: bytes) -> tuple[list[int], list[int]]:
    """Where each start tag begins, in the order of the file, and where its end tag does."""
    skipped = len(data) - len(data.lstrip())
    starts: list[int] = []
    ends: dict[int, int] = {}
    open_tags: list[int] = []
    parser = expat.ParserCreate()

    def begin(tag: str, attributes: dict) -> None:
        open_tags.append(len(starts))
        starts.append(parser.CurrentByteIndex + skipped)

    def end(tag: str) -> None:
        ends[open_tags.pop()] = parser.CurrentByteIndex + skipped

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.Parse(data[skipped:], True)  # `parse` has read the same bytes within its bounds before
    return starts, [ends[k] for k in range(len(starts))]


def _end_of_tag(data: bytes, start: int) -> int:
    quote = None
    for at in range(start, len(data)):
        c = data[at : at + 1]
        if quote is not None:
            quote = None if c == quote else quote
        elif c in (b'"', b"'"):
            quote = c
        elif c == b">":
            return at + 1
    return len(data)


def _with_attributes(tag: bytes, texts: dict[str, str]) -> bytes:
    for name, text in texts.items():
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
        pair = f'{name}="{escaped}"'.encode()
        pattern = rb"(?<=\s)" + name.encode() + rb"\s*=\s*(\"[^\"]*\"|'[^']*')"
        if found := re.search(pattern, tag):
            tag = tag[: found.start()] + pair + tag[found.end() :]
        else:
            stop = len(tag) - (2 if tag.endswith(b"/>") else 1)
            tag = tag[:stop].rstrip() + b" " + pair + tag[stop:]
    return tag
