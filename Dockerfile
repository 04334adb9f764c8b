# ROS 2 Jazzy with macvo_ros in a workspace. Not built where it was written: there was no Docker; see docs/install.md.
#
#   docker build -t macvo_ros .
#   docker run --rm -it --net=host --ipc=host macvo_ros ros2 run macvo_ros macvo doctor
#   docker run --rm -it --net=host --ipc=host macvo_ros ros2 launch macvo_ros macvo.launch.py left_image:=...
#
# --ipc=host (or --shm-size=1g): images travel through shared memory. Run as the user of the camera driver (--user):
# shared memory of another user cannot be opened, and images then fall back to UDP.
FROM ros:jazzy

# pip's default is the CUDA build, gigabytes of it. For the CPU's give what the selector on pytorch.org says:
#   --build-arg TORCH="torch --index-url ..."
ARG TORCH="torch"

RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-opencv python3-pip python3-venv \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /ws
COPY package.xml src/macvo_ros/
# RViz and robot_localization are used by single launch files only: add them here if this image should have them.
RUN apt-get update \
 && rosdep update --rosdistro jazzy \
 && rosdep install --from-paths src --ignore-src -y \
      --skip-keys "python3-pytorch-pip python3-rosbags-pip rviz2 robot_localization" \
 && rm -rf /var/lib/apt/lists/*

# What apt lacks, in an environment that sees the rest. numpy below 2: apt's cv_bridge is built for numpy 1.
RUN python3 -m venv --system-site-packages venv \
 && touch venv/COLCON_IGNORE \
 && venv/bin/pip install --no-cache-dir ${TORCH} \
 && venv/bin/pip install --no-cache-dir "numpy>=1.22,<2" "pypose>=0.6.7" "evo>=1.26" "safetensors>=0.4" "rosbags>=0.11"

COPY . src/macvo_ros
RUN . /opt/ros/jazzy/setup.sh && . venv/bin/activate && colcon build --cmake-args -DBUILD_TESTING=OFF

ENV FASTRTPS_DEFAULT_PROFILES_FILE=/ws/install/macvo_ros/share/macvo_ros/config/fastdds.xml
RUN printf '#!/bin/bash\nsource /ws/venv/bin/activate\nsource /ws/install/setup.bash\nexec "$@"\n' > /entrypoint.sh \
 && chmod +x /entrypoint.sh
ENTRYPOINT ["/entrypoint.sh"]
CMD ["ros2", "launch", "macvo_ros", "macvo.launch.py"]
