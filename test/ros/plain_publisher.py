"""A camera driver without our DDS profile, 1280x720 bgra8 at 30 Hz: `plain_publisher.py NAMESPACE PAIRS`."""

import sys
import time

import numpy as np
import rclpy
from camera_messages import image_message
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image

rclpy.init()
node = rclpy.create_node("plain_camera", namespace=f"/{sys.argv[1]}")
publishers = [node.create_publisher(Image, f"{side}/image_rect", qos_profile_sensor_data) for side in ("left", "right")]
while not all(publisher.get_subscription_count() for publisher in publishers):
    time.sleep(0.02)
message = image_message(np.zeros((720, 1280, 3), np.uint8), 0)
for i in range(int(sys.argv[2])):
    message.header.stamp.sec = i + 1
    for publisher in publishers:
        publisher.publish(message)
    time.sleep(1 / 30)
