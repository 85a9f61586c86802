"""The robots that gymnasium and dm_control come with, out of the installed packages: each moves here as in MuJoCo.

Their Python is not imported. A package that is not there is skipped: `pip install gymnasium`, and
`pip install --no-deps dm_control` for the files alone.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import mujoco
import pytest
from test_mjcf import TOLERANCE, assert_same_motion, compiled, quiet

from jointgrad.files.mjcf import UnsupportedError, load_mjcf, load_world

PACKAGES = ("gymnasium", "dm_control")
# what a file may need that is not simulated; every other reason to refuse one of these files is a fault
MISSING = {
    "actuator with dynamics (filter)": "an actuator with a state of its own",
    "actuator with dynamics (integrator)": "an actuator with a state of its own",
    "cylinder actuator": "an actuator with a state of its own",
    "adhesion actuator": "a pull that acts through contacts alone",
}
# the fruit fly's mass and centres agree to 1e-14, its principal axes to 2e-6 rad only; we think because MuJoCo keeps the
# corners of meshes in single precision, which has not been shown
MESH_TOLERANCE = 1e-7
# models whose mass matrix takes MuJoCo and us long to fill; those below are compared in every way
LARGEST = 200


def folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def installed() -> list:
    """Files with <mujoco> on top, and for a package that is absent a test that is skipped with the reason."""
    found: list = []
    for package in PACKAGES:
        root = folder(package)
        if root is None:
            skip = pytest.mark.skip(reason=f"{package} is not installed")
            found.append(pytest.param(package, "", id=package, marks=skip))
            continue
        files = [f for f in sorted(root.rglob("*.xml")) if "<mujoco" in f.read_text(errors="replace")]
        found += [pytest.param(package, str(f.relative_to(root)), id=f"{package}/{f.relative_to(root)}") for f in files]
    return found


def reference(path: Path) -> mujoco.MjModel | None:
    """None where MuJoCo itself refuses the file: a piece of another, or one that is meant to be wrong."""
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return None


@pytest.mark.parametrize(("package", "name"), installed())
def test_moves_as_in_mujoco(package, name):
    root = folder(package)
    assert root is not None
    m = reference(root / name)
    if m is None:
        pytest.skip("MuJoCo does not load it either")
    try:
        robot = quiet(load_mjcf, root / name, search_roots=[root])
    except UnsupportedError as refusal:
        said = str(refusal).split("not supported yet: ")[1].split("; to load it")[0]
        features = {re.sub(r" \(\d+\)$", "", f) for f in re.split(r", (?![^()]*\))", said)}
        assert features <= MISSING.keys(), f"refused for {features}"
        pytest.skip(f"refused by name: {', '.join(sorted(features))}")
    assert sum(link.mass for link in robot.links.values()) == pytest.approx(m.body_mass.sum(), rel=1e-9)
    if robot.links and m.nv < LARGEST:
        world = quiet(load_world, root / name, search_roots=[root])
        assert_same_motion(compiled(world), m, states=1, tolerance=MESH_TOLERANCE if m.nmesh else TOLERANCE)


@pytest.mark.parametrize("package", PACKAGES)
def test_all_of_gymnasium_and_most_of_dm_control_load(package):
    root = folder(package)
    if root is None:
        pytest.skip(f"{package} is not installed")
    files = [root / p.values[1] for p in installed() if p.values[0] == package]
    files = [f for f in files if reference(f) is not None]
    refused = []
    for file in files:
        try:
            quiet(load_mjcf, file, search_roots=[root])
        except UnsupportedError:
            refused.append(file.name)
    most = {"gymnasium": 0, "dm_control": 7}[package]
    assert len(files) > 10 and len(refused) <= most, f"{len(refused)} of {len(files)}: {refused}"
