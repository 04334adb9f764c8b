"""The ROS 2 node: the only place that imports rclpy."""
