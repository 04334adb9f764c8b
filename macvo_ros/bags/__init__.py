"""Recorded bags, read and written without a ROS installation."""
