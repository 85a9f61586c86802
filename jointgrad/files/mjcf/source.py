"""One MJCF file made whole: includes spliced in, compiler settings read, default classes resolved."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ...model.budget import excess
from ..xml import Element, FileError, Folders, confined, folder_of, parse, roots_of
from .drive import Drive, taught
from .pose import ALTERNATIVES
from .words import checked

NESTED = 16  # files inside files
DRIVES = (
    "general", "motor", "position", "velocity", "damper", "intvelocity", "orientation", "pid",
    "cylinder", "muscle", "adhesion", "dcmotor", "plugin",
)  # fmt: skip
# an element that gives fewer numbers than its class keeps the others of the class
PARTIAL = (
    "size", "friction", "solref", "solimp", "solreflimit", "solimplimit",
    "solreffriction", "solimpfriction", "surfacevel", "fluidcoef",
)  # fmt: skip


@dataclass
class Compiler:
    """What <compiler> says about the reading of everything else."""

    degrees: bool = True
    sequence: str = "xyz"
    autolimits: bool = True
    inertia_from_geoms: bool | None = None  # None: where a body has no <inertial>
    balance_inertia: bool = False
    least_mass: float = 0.0
    least_inertia: float = 0.0
    total_mass: float = -1.0
    groups: tuple[float, float] = (0, 5)
    align_free: bool = False
    mesh_folder: str = ""
    strip_path: bool = False
    discard_visual: bool = False
    conflict: str = "warning"  # between options of files that are attached; so warned, those of the main file win


@dataclass
class Defaults:
    """Default classes: per class the attributes of each tag, and what an actuator of it starts from."""

    attributes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {"main": {}})
    drives: dict[str, Drive] = field(default_factory=lambda: {"main": Drive()})

    def find(self, name: str, element: Element) -> str:
        if name not in self.attributes:
            raise element.error(f'<{element.tag}> refers to the default class "{name}", which does not exist')
        return name

    def resolved(self, element: Element, name: str, tag: str = "") -> Element:
        """The element with what its class adds to it."""
        own = element.attributes
        base = self.attributes[self.find(own.get("class", name), element)].get(tag or element.tag)
        if not base:
            return element
        return Element(element.tag, merged(base, own), element.children, element.text, element.line, element.file)


def merged(base: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    result = dict(base)
    if any(name in own for name in ALTERNATIVES):
        for name in ALTERNATIVES:
            result.pop(name, None)
    for name, value in own.items():
        if name in PARTIAL and name in base:
            value = " ".join([*value.split(), *base[name].split()[len(value.split()) :]])
        result[name] = value
    return result


@dataclass(eq=False)
class Source:
    """A file with its includes, compiler settings and default classes."""

    root: Element
    folder: Path | None
    roots: Sequence[Path]
    compiler: Compiler = field(default_factory=Compiler)
    defaults: Defaults = field(default_factory=Defaults)
    depth: int = 0
    models: dict[str, Source] = field(default_factory=dict)  # that were attached

    def sections(self, tag: str) -> list[Element]:
        return self.root.all(tag)

    def items(self, section: str) -> list[Element]:
        return [item for part in self.root.all(section) for item in part.children]

    @functools.cached_property
    def mesh_assets(self) -> dict[str, Element]:
        """Meshes by name, the first of each; one without a name is called as its file is."""
        found: dict[str, Element] = {}
        for asset in (a for a in self.items("asset") if a.tag == "mesh"):
            asset = self.defaults.resolved(asset, "main")
            file = asset.get("file", "").replace("\\", "/")
            found.setdefault(asset.get("name", PurePosixPath(file).stem), asset)
        return found

    def path(self, name: str, element: Element, below: str = "") -> Path:
        """A file that this one refers to."""
        try:
            return confined(Path(below) / name, self.roots)
        except FileError as reason:
            raise type(reason)(f"{element.file}:{element.line}: <{element.tag}>: {reason}") from None

    def model(self, element: Element) -> Source:
        """The other file that an <attach> takes something from."""
        if "model" not in element.attributes:
            if "body" not in element.attributes and "frame" not in element.attributes:
                raise element.error("<attach> needs a model, or a body or frame of this file")
            return self
        name = element.attributes["model"]
        for asset in self.items("asset"):
            if name not in self.models and asset.tag == "model":
                path = self.path(asset.require("file"), asset)
                if self.depth >= NESTED:
                    raise element.error("models are attached to each other too deep")
                other = read(path, self.roots)
                other.depth = self.depth + 1
                self.models[asset.get("name", other.root.get("model", path.stem))] = other
        if name not in self.models:
            raise element.error(f'there is no model "{name}" in <asset>')
        return self.models[name]


def read(source: Any, search_roots: Folders) -> Source:
    root = parse(source)
    if root.tag == "robot":
        raise root.error("this is a URDF file; load it with jointgrad.load or load_urdf")
    if root.tag != "mujoco":
        raise root.error(f"an MJCF file begins with <mujoco>, but this one with <{root.tag}>")
    folder, roots = folder_of(source), roots_of(source, search_roots)
    found = Source(root, folder, roots)
    root.children = _with_includes(root.children, folder, roots, set(), 0)
    for section in found.sections("compiler"):
        _read_compiler(section, found.compiler)
    for section in found.sections("default"):
        _read_default(section, found, None)
    return found


def _with_includes(
    children: list[Element], folder: Path | None, roots: Sequence[Path], included: set[Path], depth: int
) -> list[Element]:
    """The children with every <include> replaced by what is in its file, at any depth."""
    result: list[Element] = []
    for child in children:
        if child.tag == "include":
            result += _included(child, folder, roots, included, depth)
        else:
            child.children = _with_includes(child.children, folder, roots, included, depth)
            result.append(child)
    return result


def _included(
    element: Element, folder: Path | None, roots: Sequence[Path], included: set[Path], depth: int
) -> list[Element]:
    if element.children:
        raise element.error("<include> cannot have anything inside it")
    try:
        # the folder of the first file comes first, then that of the file which includes
        path = confined(element.require("file"), [*roots, *([folder] if folder is not None else [])])
    except FileError as reason:
        raise type(reason)(f"{element.file}:{element.line}: <include>: {reason}") from None
    if path in included or depth >= NESTED:
        raise element.error(f'"{element.get("file")}" is included twice, or files include each other too deep')
    included.add(path)
    return _with_includes(parse(path).children, path.parent, roots, included, depth + 1)


def _read_compiler(section: Element, c: Compiler) -> None:
    checked(section)
    if section.get("coordinate", "local") != "local":
        raise section.error(
            'coordinate="global" was dropped from MJCF; save the file with MuJoCo 2.3.3 or older to convert it'
        )
    c.degrees = _choice(section, "angle", {"degree": True, "radian": False}, c.degrees)
    c.sequence = section.get("eulerseq", c.sequence)
    if len(c.sequence) != 3 or set(c.sequence) - set("xyzXYZ"):
        raise section.error(f'eulerseq="{c.sequence}" must be three of the letters x y z X Y Z')
    c.autolimits = section.flag("autolimits", c.autolimits)
    c.inertia_from_geoms = _choice(
        section, "inertiafromgeom", {"false": False, "true": True, "auto": None}, c.inertia_from_geoms
    )
    c.balance_inertia = section.flag("balanceinertia", c.balance_inertia)
    c.least_mass = section.number("boundmass", c.least_mass)
    c.least_inertia = section.number("boundinertia", c.least_inertia)
    c.total_mass = section.number("settotalmass", c.total_mass)
    c.groups = section.floats("inertiagrouprange", 2, c.groups)
    c.align_free = section.flag("alignfree", c.align_free)
    c.mesh_folder = section.get("meshdir", section.get("assetdir", c.mesh_folder))
    c.strip_path = section.flag("strippath", c.strip_path)
    c.conflict = section.get("conflict", c.conflict)
    c.discard_visual = section.flag("discardvisual", c.discard_visual)


def _choice(element: Element, name: str, words: dict[str, Any], default: Any) -> Any:
    if name not in element.attributes:
        return default
    if element.attributes[name] not in words:
        raise element.error(f'<{element.tag} {name}="{element.attributes[name]}">: expected {" or ".join(words)}')
    return words[element.attributes[name]]


def _read_default(section: Element, source: Source, parent: str | None) -> None:
    d = source.defaults
    name = section.get("class", "")
    if parent is None:
        name = name or "main"
        if name != "main":
            raise section.error(f'the outermost default class is "main" and cannot be called "{name}"')
    else:
        if not name:
            raise section.error("a <default> inside another needs a class")
        if name in d.attributes:
            raise section.error(f'there are two default classes called "{name}"; give one another name')
        if why := excess("classes", len(d.attributes) + 1):
            raise section.error(f"there are at least {why}")
        # attributes are not changed once they are there, so that classes may share them
        d.attributes[name] = dict(d.attributes[parent])
        d.drives[name] = d.drives[parent].copy()
    for item in section.children:
        checked(item)
        if item.tag in DRIVES:
            taught(d.drives[name], item)
        elif item.tag != "default":
            d.attributes[name][item.tag] = merged(d.attributes[name].get(item.tag, {}), item.attributes)
    for item in section.all("default"):
        _read_default(item, source, name)
