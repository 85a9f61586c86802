"""The command line without tyro: what `pip install jointgrad` alone brings."""

import importlib.util
from pathlib import Path

import pytest

import jointgrad
from jointgrad import cli

URDF = """<robot name="a"><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>"""


@pytest.fixture(autouse=True)
def without_extras(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in ("tyro", "viser") else real(name, *rest)
    )


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0 and all(name in capsys.readouterr().out for name in ("lint",))


@pytest.mark.parametrize("command", sorted(cli.COMMANDS))
def test_every_command_explains_itself(command, capsys):
    if command == "reproduce":
        return
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0 and "usage: jointgrad" in capsys.readouterr().out


def test_lint_and_a_page(tmp_path, capsys):
    robot, page = tmp_path / "robot.urdf", tmp_path / "page.html"
    robot.write_text(URDF)
    assert cli.main(["lint", str(robot)]) == 0
    assert cli.main(["view", str(robot), "--html", str(page), "--no-ground", "--base", "free", "--height", "0.5"]) == 0
    assert page.stat().st_size > 1000
    assert cli.main(["view", str(robot)]) == 2 and "jointgrad[view]" in capsys.readouterr().err


def test_types_are_announced():
    assert (Path(jointgrad.__file__).parent / "py.typed").is_file()
