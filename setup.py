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

"""pip install: the core, the command `macvo` and the node. `colcon build` uses CMakeLists.txt instead."""

from pathlib import Path

from setuptools import Extension, find_packages, setup

KERNELS = Path("macvo_ros", "matching", "native")

setup(
    name="macvo_ros",
    version="0.1.0",
    description="Stereo visual odometry with an honest covariance (MAC-VO) for ROS 2",
    long_description=Path(__file__).with_name("README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["macvo_ros", "macvo_ros.*"]),
    package_data={"macvo_ros": ["py.typed", "**/*.safetensors", "**/*.json"]},
    # Called through ctypes. Optional: without a C compiler the package installs all the same, and is slower.
    ext_modules=[
        Extension(
            "macvo_ros.matching.native._kernels",
            sources=sorted(str(file) for file in KERNELS.glob("*.c")),
            depends=sorted(str(file) for file in KERNELS.glob("*.h")),
            extra_compile_args=["-O3", "-std=gnu11", "-fopenmp-simd", "-fno-math-errno"],
            libraries=["m"],
            optional=True,
        )
    ],
    install_requires=[
        "numpy>=1.22",
        "torch>=2.1",
        "pypose>=0.6.7",
        "opencv-python-headless>=4.6",
        "PyYAML>=5.4",
        "evo>=1.26",
        "matplotlib>=3.5",
        "tqdm>=4.60",
        "safetensors>=0.4",
        "rosbags>=0.11",
    ],
    extras_require={
        "onnx": ["onnx>=1.15", "onnxruntime>=1.16"],
        "view": ["rerun-sdk>=0.23"],
        "train": ["tensorboard>=2.12"],
        "dev": ["pytest>=7", "hypothesis>=6", "ruff", "mypy", "types-PyYAML", "scipy"],
    },
    entry_points={"console_scripts": ["macvo = macvo_ros.cli:main", "macvo_node = macvo_ros.ros.main:main"]},
)
