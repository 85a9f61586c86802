"""Where the meshes of a URDF file are: in its folder, in folders that were named, and in ROS packages.

`package://name/file` is looked for as ROS does, and, since most files are opened where there is no ROS, in the folders above the
file. What a stranger's file may open stays narrow: a folder above it counts where it has the package's name, one beside those
where it says by a package.xml that it is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from .xml import FileError, MissingFileError, confined

# folders above a file in which its package is looked for
UPWARDS = 6


def found_mesh(reference: str, roots: Sequence[Path]) -> Path:
    """The file that a reference means; file:// is a path. `roots`: the robot's own folder, and those that were named."""
    scheme, separator, rest = reference.partition("://")
    if not separator:
        return confined(reference, roots)
    if scheme == "file":
        return confined(rest, roots)
    if scheme not in ("package", "model"):
        raise MissingFileError(f'"{reference}" is not fetched: meshes are read from folders only')
    package, _, inside = rest.partition("/")
    if not package:  # package:///file: of no package
        return confined(inside, roots)
    return _in_package(reference, package, inside, roots)


def _in_package(reference: str, package: str, inside: str, roots: Sequence[Path]) -> Path:
    tried = []
    for folder in folders_of_package(package, roots):
        tried.append(str(folder))
        try:
            return confined(folder / inside, [folder, *roots])
        except FileError:
            continue
    where = ", ".join(f'"{folder}"' for folder in dict.fromkeys(tried)) or "none"
    near = ", ".join(f'"{root}"' for root in roots) or "no folder"
    raise MissingFileError(
        f'the file "{inside}" of "{reference}" was not found; folders of package "{package}" that were tried: {where} (looked for '
        f"in {near}, in the folders above, and by ROS_PACKAGE_PATH and AMENT_PREFIX_PATH); pass the package's folder, or the one "
        "that holds it, as search_roots="
    )


def folders_of_package(package: str, roots: Sequence[Path]) -> Iterator[Path]:
    """Folders that may be a package, the likeliest first."""
    if package in (".", "..") or "\\" in package or "\0" in package:
        return
    for root in roots:
        yield from (f for f in (_if_named(root.resolve(), package), root.resolve() / package) if f and f.is_dir())
    for root in roots[:1]:
        yield from _above(root.resolve(), package)
    for prefix in _paths("AMENT_PREFIX_PATH"):
        yield from (f for f in (prefix / "share" / package,) if f.is_dir())
    for root in _paths("ROS_PACKAGE_PATH"):
        known = (_if_named(root, package), root / package, *sorted(root.glob(f"*/{package}")))
        yield from (f for f in known if f and f.is_dir())


def _above(folder: Path, package: str) -> Iterator[Path]:
    """Of the folders above, neither the outermost nor those that hold everything a user has."""
    for above in folder.parents[:UPWARDS]:
        if len(above.parts) < 3 or above == Path.home():
            return
        if above.name == package:
            yield above
        elif (above / package / "package.xml").is_file():
            yield above / package


def _if_named(folder: Path, package: str) -> Path | None:
    return folder if folder.name == package else None


def _paths(variable: str) -> list[Path]:
    """Of the environment, which the user has set."""
    return [Path(p).resolve() for p in os.environ.get(variable, "").split(os.pathsep) if p and os.path.isabs(p)]
