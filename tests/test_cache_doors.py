"""The code cache runs what lies in it, and compiling starts Python: neither may run what somebody else has put there."""

import os
import sys
from pathlib import Path

import pytest

from jointgrad.compiler import cache, kernel, own_folder

ROOT = Path(__file__).resolve().parents[1]
CODE = cache.Code("symbol", b"machine code")
pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are those of POSIX")


@pytest.fixture(autouse=True)
def _own_place(tmp_path, monkeypatch):
    monkeypatch.setenv("JOINTGRAD_CACHE", str(tmp_path / "cache"))
    own_folder._private.cache_clear()
    yield
    own_folder._private.cache_clear()


def kept(place: Path) -> Path:
    cache.save("name", b"made of", CODE)
    (found,) = place.glob("*.code")
    return found


def test_what_is_saved_is_for_us_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        found = kept(tmp_path / "cache")
        with cache.alone("name", b"made of"):
            (lock,) = (tmp_path / "cache").glob("*.lock")
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (tmp_path / "cache", found, lock)] == [0o700, 0o600, 0o600]
    assert cache.load("name", b"made of") == CODE


def test_a_folder_that_others_can_write_is_not_used(tmp_path):
    found = kept(tmp_path / "cache")
    (tmp_path / "cache").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="written by, somebody else") as said:
        assert cache.load("name", b"made of") is None
        cache.save("name", b"made of", CODE)
        assert cache.load("name", b"made of") == CODE
    assert len(said) == 1  # and from then on in a private folder
    private = cache.folder()
    assert private != tmp_path / "cache" and private.stat().st_mode & 0o777 == 0o700
    found.unlink()
    assert cache.load("name", b"made of") == CODE


def test_a_folder_in_one_that_others_can_write_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv("JOINTGRAD_CACHE", str(tmp_path / "shared" / "cache"))
    kept(tmp_path / "shared" / "cache")
    (tmp_path / "shared").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="shared, which"):
        assert cache.load("name", b"made of") is None
    (tmp_path / "shared").chmod(0o1777)  # as /tmp is: nobody can rename what is another's
    assert cache.load("name", b"made of") == CODE


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give files away")
def test_what_belongs_to_somebody_else_is_not_used(tmp_path):
    os.chown(kept(tmp_path / "cache"), 12345, -1)
    assert cache.load("name", b"made of") is None
    os.chown(tmp_path / "cache", 12345, -1)
    with pytest.warns(RuntimeWarning, match="belongs to"):
        assert cache.folder() != tmp_path / "cache"


def test_a_file_that_others_can_write_or_that_is_a_link_is_not_run(tmp_path):
    found = kept(tmp_path / "cache")
    found.chmod(0o666)
    assert cache.load("name", b"made of") is None
    found.chmod(0o600)
    found.rename(tmp_path / "elsewhere")
    found.symlink_to(tmp_path / "elsewhere")
    assert cache.load("name", b"made of") is None


def test_a_lock_that_is_a_link_leaves_its_target_alone(tmp_path):
    target = tmp_path / "precious"
    target.write_text("mine")
    kept(tmp_path / "cache").with_suffix(".lock").symlink_to(target)
    with cache.alone("name", b"made of"):
        pass
    assert target.read_text() == "mine"


def test_a_lock_is_not_emptied(tmp_path):
    lock = kept(tmp_path / "cache").with_suffix(".lock")
    lock.write_text("mine")
    with cache.alone("name", b"made of"):
        pass
    assert lock.read_text() == "mine"


def test_a_relative_folder_is_nobodys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOINTGRAD_CACHE", "given")
    with pytest.warns(RuntimeWarning, match="not an absolute path"):
        assert cache.folder().parent != tmp_path
    monkeypatch.delenv("JOINTGRAD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "given")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.folder() == tmp_path / "home" / ".cache" / "jointgrad"
    assert not (tmp_path / "given").exists()


def test_without_a_home_there_is_a_private_folder(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    for name in ("JOINTGRAD_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    with pytest.warns(RuntimeWarning, match="no home folder"):
        kept(cache.folder())


def test_what_numba_is_told_is_part_of_the_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache.save("name", b"made of", CODE)
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert cache.load("name", b"made of") is None
    monkeypatch.delenv("NUMBA_OPT")
    assert cache.load("name", b"made of") == CODE
    (tmp_path / ".numba_config.yaml").write_text("opt: 1")
    assert cache.load("name", b"made of") is None


def test_the_operating_system_is_part_of_the_key(monkeypatch):
    import llvmlite.binding as llvm

    cache.save("name", b"made of", CODE)
    cache._machine_digest.cache_clear()
    monkeypatch.setattr(llvm, "get_default_triple", lambda: "x86_64-pc-windows-msvc")
    assert cache.load("name", b"made of") is None
    cache._machine_digest.cache_clear()


@pytest.mark.parametrize("name", ["numpy", "importlib", "jointgrad"])
def test_a_module_in_the_current_folder_is_not_run(tmp_path, monkeypatch, name):
    (tmp_path / f"{name}.py").write_text("open('was_run', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(ROOT), *(p for p in sys.path if p)])
    started = kernel.Library.__new__(kernel.Library)
    started.maker, started.lanes, started.parts, started._loaded = ("jointgrad.engine.run.runtime", "library"), 4, 1, {}
    monkeypatch.setattr(kernel.Library, "_key", lambda self, name: (name, b""))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(kernel, "HELP", "import numpy, importlib, jointgrad.engine.run.runtime")
    helper = started._helper([f"kernel {k}" for k in range(kernel.WORTH_HELP)])
    assert helper is not None and helper.wait(60) == 0
    assert not (tmp_path / "was_run").exists()


def test_no_part_of_the_package_starts_python_with_the_current_folder_on_its_path():
    """`-c` and `-m` put it there; a script puts its own folder."""
    for path in [*(ROOT / "jointgrad").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        for line in path.read_text().splitlines():
            if '"-c",' in line or '"-m", "' in line:
                assert '"-P"' in line or "pip, " in line, f"{path.name}: {line.strip()}"
