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

"""The definition of our Status message as text: bags carry it, and a machine without a built package needs it."""

STATUS_TYPE = "macvo_ros/msg/Status"

# A copy of msg/Status.msg (a test keeps them equal), which is not installed by pip.
STATUS_DEFINITION = """\
# How the odometry stands after one stereo pair.

uint8 INITIALIZING = 0  # first pair: a reference was taken, there is no motion yet
uint8 TRACKING = 1      # the motion was measured; its covariance is as measured
uint8 DEGRADED = 2      # measured, but a check is unusual or the evidence is thin; the covariance covers that
uint8 LOST = 3          # nothing was measured (blind, too few points, or a fault is likelier than not): silence

std_msgs/Header header  # stamp of the images, odom frame
uint8 state
string reason           # why the state is not TRACKING; empty otherwise

uint32 keypoints        # keypoints matched into this frame
uint32 inliers          # of these, those the pose agrees with
float32 median_match_sigma  # of the inliers: standard deviation of the match, pixels
float32 median_point_sigma  # of the inliers: root of the largest eigenvalue of the 3x3 covariance, metres
float64 chi2            # squared Mahalanobis residual per degree of freedom; 1 is perfect, nan without a motion
float64 position_sigma  # root of the largest eigenvalue of the pose covariance's position block, metres
float64 rotation_sigma  # the same of its rotation block, radians

# Time, seconds.
float32 match_time
float32 select_time
float32 covariance_time
float32 pose_time
float32 core_time       # the whole odometry core
float32 latency         # from arrival of the second image of the pair to publication
float32 overhead        # latency without the core and waiting for it: decoding, rectifying and publishing
float32 age             # from the stamp of the image to publication, by the node's clock; nan while that has no time

# Counters since the node was configured. received = processed + refused + dropped + waiting, always.
uint64 received         # stereo pairs
uint64 processed        # pairs that were tracked, lost ones included
uint64 dropped          # pairs replaced by a newer one before the worker was free
uint8 waiting           # pairs waiting or being worked on when this was counted
uint64 refused          # unusable pairs (see /diagnostics for each reason)
uint64 unpaired         # images that never found a partner
uint64 lost             # of the processed: pairs without a motion
uint64 degraded         # of the processed: pairs with a motion from little evidence
uint64 resets           # restarts of the tracking, whoever asked for them
"""
