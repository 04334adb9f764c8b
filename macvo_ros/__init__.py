"""macvo_ros: stereo visual odometry with a covariance you can trust (MAC-VO, ROS 2)."""

from pkgutil import extend_path

# `colcon build` puts the generated `msg` and `srv` modules in an installed package of the same name;
# extending the path keeps a source tree from shadowing them.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"
