"""The wheel holds our three packages, whole and alone, and its command runs.

Other distributions install top-level modules named `rules` and `reactor` too, so what is in ours is no detail.
"""

from __future__ import annotations

import configparser
import email
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("bus", "reactor", "rules")
DIST_INFO = f"alert_reactor-{PROJECT['version']}.dist-info"


def run(*command: str | Path, cwd: Path, pythonpath: str = "") -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd, env=os.environ | {"PYTHONPATH": pythonpath}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this working tree, built with the locked hatchling: no network."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_is_for_every_platform(wheel: Path) -> None:
    assert wheel.name == f"alert_reactor-{PROJECT['version']}-py3-none-any.whl"


def test_the_wheel_holds_the_three_packages_and_nothing_beside_them(content: dict[str, bytes]) -> None:
    assert {name.partition("/")[0] for name in content} == {*PACKAGES, DIST_INFO}


def test_the_wheel_holds_every_file_of_the_packages(content: dict[str, bytes]) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name for name in content if not name.startswith(DIST_INFO)} == files


def test_the_wheel_tells_type_checkers_that_it_is_typed(content: dict[str, bytes]) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= content.keys()


def test_the_wheel_holds_no_tests(content: dict[str, bytes]) -> None:
    names = [Path(name).name for name in content]
    assert [name for name in names if name.startswith("test_") or name == "conftest.py"] == []


def test_the_wheel_installs_the_command_reactor_and_no_other(content: dict[str, bytes]) -> None:
    entry_points = configparser.ConfigParser()
    entry_points.read_string(content[f"{DIST_INFO}/entry_points.txt"].decode())
    assert {section: dict(entry_points[section]) for section in entry_points.sections()} == {
        "console_scripts": {"reactor": "reactor.cli.main:main"}
    }


def test_the_wheel_says_whose_it_is_and_what_it_needs(content: dict[str, bytes]) -> None:
    metadata = email.message_from_bytes(content[f"{DIST_INFO}/METADATA"])
    assert metadata["Name"] == "alert-reactor"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert f"{DIST_INFO}/licenses/LICENSE" in content
    needed = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert len(needed) == len(PROJECT["dependencies"])
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


def test_the_installed_command_runs_outside_of_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps")
    run(*pip, "--target", site, wheel, cwd=tmp_path)
    assert PROJECT["version"] in run(site / "bin/reactor", "version", cwd=tmp_path, pythonpath=str(site))


def test_what_the_image_leaves_out_is_missed_by_the_demo_alone(wheel: Path, tmp_path: Path) -> None:
    [left_out] = re.findall(
        r"rm -r /opt/reactor/lib/python3\*/site-packages/(\S+)", (ROOT / "deploy/Dockerfile").read_text()
    )
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    shutil.rmtree(site / left_out)
    modules = [
        ".".join(path.relative_to(site).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in (site / package).rglob("*.py")
        if path.name != "__main__.py" and not path.is_relative_to(site / "reactor/demo")
    ]
    script = (
        f"import importlib\nfor name in {sorted(modules)} + ['reactor.demo.service']: importlib.import_module(name)"
    )
    run(sys.executable, "-c", script, cwd=tmp_path, pythonpath=str(site))
    done = subprocess.run(
        [sys.executable, "-m", "reactor.cli.main", "demo"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        1, "reactor demo: the image has no emulated clusters; install alert-reactor[embedded] with pip\n"
    )  # fmt: skip


def test_a_module_of_another_project_is_noticed_before_it_confuses(tmp_path: Path) -> None:
    stranger = tmp_path / "rules"
    stranger.mkdir()
    (stranger / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "reactor.cli.main", "version"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "rules comes from" in done.stderr
    assert "environment of its own" in done.stderr
