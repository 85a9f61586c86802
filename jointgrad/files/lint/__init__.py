"""Everything suspicious in a robot file: with place, figure and remedy. Nothing here changes a robot.

findings = lint("robot.urdf")
for finding in findings:
    print(finding, finding.remedy)
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ...model.description import Description
from ...model.errors import ModelError, UnsupportedWarning
from ..urdf import load_urdf
from ..xml import Element, FileError, Folders, MissingFileError, parse, path_or_text
from . import mjcf, urdf
from .bodies import check_bodies
from .finding import Finding, Notebook, counts, listed
from .overlap import check_overlaps
from .tree import Tree

__all__ = ["Finding", "exit_code", "fix", "lint", "report"]

REPORT_US = "this is a fault of jointgrad: please report it with the file"


def lint(source: Any, *, search_roots: Folders = ()) -> list[Finding]:
    """What is suspicious about a URDF or MJCF file (a path, an open file, or the text), in the order of the file; or about a
    Description, whose places have no lines.

    A file that cannot be read is a finding, too; nothing is raised for it.
    """
    notes = Notebook(_name(source))
    try:
        with np.errstate(all="ignore"):  # numbers that overflow are told by what is found, not by NumPy
            if isinstance(source, Description):
                _check_robot(source, notes)
            else:
                _lint(_read(source) if hasattr(source, "read") else source, search_roots, notes)
    except ModelError as reason:
        _add_refusal(reason, notes)
    except Exception as reason:  # a linter is run on files that nobody has tried before
        notes.add("internal", "error", None, "", f"{type(reason).__name__}: {reason}", REPORT_US)
    return notes.in_order()


def _lint(source: Any, search_roots: Folders, notes: Notebook) -> None:
    root = parse(source)
    notes.file = root.file
    if root.tag == "robot":
        urdf.check_elements(root, notes)
        refused = urdf.STRUCTURE
    elif root.tag == "mujoco":
        from ..mjcf.source import read

        root = read(source, search_roots).root
        mjcf.check_elements(root, notes)
        refused = ("duplicate-name",)
    else:
        raise root.error(
            f"the outermost element is <{root.tag}>; a URDF file begins with <robot>, an MJCF file with <mujoco>"
        )
    try:
        robot = _load(source, root, search_roots, notes)
    except ModelError as reason:
        if not any(f.severity == "error" and f.code in refused for _, f in notes.entries):
            _add_refusal(reason, notes)
        return
    _check_robot(robot, notes)


def _check_robot(robot: Description, notes: Notebook) -> None:
    tree = Tree(robot)
    check_bodies(robot, tree, notes)
    check_overlaps(robot, tree, notes)


def _load(source: Any, root: Element, search_roots: Folders, notes: Notebook) -> Description:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnsupportedWarning)
        if root.tag == "robot":
            robot = load_urdf(source, search_roots=search_roots, missing_meshes="skip")
            _add_missing_meshes(robot, notes)
            return robot
        robot = _load_mjcf(source, search_roots, notes)
    for warning in caught:
        if issubclass(warning.category, UnsupportedWarning):
            text = str(warning.message).removeprefix(f"{root.file}: ")
            severity = "warning" if "IS affected" in text else "note"
            notes.add(
                "unsupported", severity, None, "", text, "simulate without, or see the documentation of load_mjcf"
            )
    return robot


def _load_mjcf(source: Any, search_roots: Folders, notes: Notebook) -> Description:
    from ..mjcf import load_mjcf

    try:
        return load_mjcf(source, search_roots=search_roots, allow_unsupported=True)
    except MissingFileError as reason:
        notes.lacks_meshes = True
        message = f"{reason}; what bodies weigh by their meshes is not known"
        notes.add("mesh-missing", "note", None, "", message, "put meshes where the file says, or pass search_roots")
    return load_mjcf(source, search_roots=search_roots, missing_meshes="skip", allow_unsupported=True)


def _add_missing_meshes(robot: Description, notes: Notebook) -> None:
    meshes = {s.reference for link in robot.links.values() for s in link.shapes if s.kind == "mesh" and not s.mesh}
    if missing := sorted(meshes):
        message = f"{len(missing)} meshes are not found: {listed(missing, 3)}; inertias are not compared with them"
        notes.add("mesh-missing", "note", None, "", message, "put them beside the file, or pass search_roots")


def _add_refusal(reason: ModelError, notes: Notebook) -> None:
    """The sentence of the reader, which begins with file and line."""
    remedy = "correct this first; nothing below it was looked at"
    found = re.match(r"(.+?):(\d+): (.*)", str(reason), re.DOTALL)
    if found and (found[1] == notes.file or os.path.isfile(found[1])):  # the file itself, or one that it includes
        where = Element("", line=int(found[2]), file=found[1])
        notes.add("not-readable", "error", where, "", found[3], remedy)
    else:
        notes.add("not-readable", "error", None, "", str(reason).removeprefix(f"{notes.file}: "), remedy)


def _name(source: Any) -> str:
    if isinstance(source, Description):
        return source.name
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return "<text>"
    return str(os.fspath(source)) if isinstance(source, str | os.PathLike) else str(getattr(source, "name", "<text>"))


def _read(file: Any) -> Any:
    """The path or text of an open file; an empty one is said to be so."""
    found = path_or_text(file)
    if isinstance(found, str) and not found.strip():
        raise FileError(f"{getattr(file, 'name', None) or '<file>'}: the file is empty")
    return found


def fix(path: str | Path, out: str | Path) -> list[str]:
    """Write a copy of a URDF file with all safe repairs; returns one sentence for each of them.

    Safe are: the inertia of the shape, or of a small ball, for a link that has none; lower and upper limit exchanged; a chain
    of mimics followed to its end. The input is overwritten only if `out` is the same path.
    """
    from .repair import repaired

    path, out = Path(path), Path(out)
    if out != path and out.exists() and path.exists() and os.path.samefile(path, out):
        raise ModelError(f"{out} is the input itself under another name; to overwrite it give its own path, {path}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsupportedWarning)
        data, said = repaired(path)
    try:
        out.write_bytes(data)
    except OSError as reason:
        raise ModelError(f"{out} cannot be written: {reason}") from None
    return said


def report(file: str | Path, findings: list[Finding]) -> str:
    """Two lines per finding, by place, and a line of counts."""
    lines = [line for finding in findings for line in (str(finding), f"    -> {finding.remedy}")]
    found = [f"{n} {severity}{'s' * (n != 1)}" for severity, n in counts(findings).items() if n]
    return "\n".join([*lines, f"{file}: {', '.join(found) or 'nothing suspicious'}"])


def exit_code(findings: list[Finding]) -> int:
    """2 where there are errors, 1 where there are warnings, else 0."""
    found = counts(findings)
    return 2 if found["error"] else 1 if found["warning"] else 0
