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

"""`macvo bag`: datasets to bags, bags to trajectories and new bags, the same poses as the node's own code path."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
import tiny_datasets
from bag_making import write_ros1, write_ros2
from scipy.spatial.transform import Rotation

from macvo_ros.bags.bag import Bag
from macvo_ros.bags.camera_tracker import camera_estimate
from macvo_ros.bags.convert import BODY_FROM_OPTICAL, FIRST_STAMP, convert_sequence
from macvo_ros.bags.static_transforms import base_from_frame
from macvo_ros.bags.status_definition import STATUS_DEFINITION
from macvo_ros.bags.writer import BagWriter
from macvo_ros.cli import main
from macvo_ros.errors import SequenceError
from macvo_ros.geometry.camera import StereoCamera
from macvo_ros.images.camera_info import CameraInfo
from macvo_ros.odometry.estimate import Estimate
from macvo_ros.odometry.message_fields import CLOUD_DTYPE, keypoint_cloud, odometry_fields
from macvo_ros.odometry.status import Status
from macvo_ros.odometry.stereo_odometry import StereoOdometry
from macvo_ros.rendering.sequence import RenderedSequence
from macvo_ros.sequences import open_sequence
from macvo_ros.sequences.bag import BagSequence
from macvo_ros.sequences.tum import read_tum
from macvo_ros.settings.config import Config

CAMERA = StereoCamera(fx=160.0, fy=160.0, cx=159.5, cy=99.5, baseline=0.12, width=320, height=200)
FRAMES = 5


@pytest.fixture(scope="module")
def rendered(tmp_path_factory) -> Path:
    """A bag of a rendered walk."""
    path = tmp_path_factory.mktemp("bags") / "walk"
    convert_sequence(RenderedSequence("room", FRAMES, 1, camera=CAMERA, texels=256), path)
    return path


@pytest.fixture(scope="module")
def processed(rendered, tmp_path_factory) -> tuple[Path, Path]:
    """What `macvo bag` leaves: its folder and its new bag."""
    folder = tmp_path_factory.mktemp("run")
    arguments = ["--matcher", "classic", "--out", str(folder / "out"), "--output", str(folder / "new")]
    assert main(["bag", str(rendered), *arguments]) == 0
    return folder / "out", folder / "new"


def read(path: Path) -> dict[str, list]:
    """Every message of a bag by topic (ours of Status aside: rosbags does not know it by itself)."""
    with Bag(path) as bag:
        topics = bag.topics
        found: dict[str, list] = {name: [] for name in topics}
        for message in bag.messages(list(topics)):
            known = topics[message.topic].type != "macvo_ros/msg/Status"
            found[message.topic].append(bag.deserialize(message.raw, topics[message.topic].type) if known else message)
        return found


def stamp_of(message) -> int:
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


@pytest.mark.parametrize("layout", ["tartanair", "kitti", "euroc", "folder"])
@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_converted_datasets_are_the_same_sequence(tmp_path, layout, storage):
    getattr(tiny_datasets, layout)(tmp_path / "data")
    arguments = ["--sequence", "00"] if layout == "kitti" else []
    new = tmp_path / "new"
    assert main(["bag", "--convert", str(tmp_path / "data"), str(new), "--storage", storage, *arguments]) == 0
    source = open_sequence(tmp_path / "data", sequence="00" if layout == "kitti" else None)
    with BagSequence(new) as bag:
        assert bag.notes == []
        shift = FIRST_STAMP if source.stamps[0] < FIRST_STAMP else 0
        np.testing.assert_array_equal(bag.stamps, source.stamps + shift)
        assert bag.camera == source.camera
        np.testing.assert_allclose(bag.ground_truth, source.ground_truth, atol=1e-9)
        for index in range(len(source)):
            np.testing.assert_array_equal(bag[index].left, source[index].left)
            np.testing.assert_array_equal(bag[index].right, source[index].right)
        np.testing.assert_allclose(base_from_frame(bag.bag, "base_link", bag.frame_id), BODY_FROM_OPTICAL, atol=1e-12)


def test_trajectory_and_report_are_written(processed):
    out, _ = processed
    assert {"trajectory.txt", "result.json", "report.html"} <= {path.name for path in out.iterdir()}
    assert len(read_tum(out / "trajectory.txt")) == FRAMES
    assert json.loads((out / "result.json").read_text())["frames"] == FRAMES


def test_the_new_bag_holds_the_cores_numbers(rendered, processed):
    """Odometry, pose, transform and cloud, field by field, for a base frame that is not the camera."""
    messages = read(processed[1])
    odometry = StereoOdometry(Config(matcher="classic"), BODY_FROM_OPTICAL)
    with BagSequence(rendered) as sequence:
        estimates = [odometry.track(sequence[index]) for index in range(FRAMES)]
    assert all(estimate.status in (Status.INITIALIZING, Status.TRACKING, Status.DEGRADED) for estimate in estimates)
    assert len(messages["/macvo/odometry"]) == len(messages["/macvo/status"]) == FRAMES
    rows = zip(
        estimates,
        *(messages[f"/macvo/{name}"] for name in ("odometry", "pose", "keypoints")),
        messages["/tf"],
        strict=True,
    )
    for estimate, message, pose, cloud, transforms in rows:
        fields = odometry_fields(estimate)
        assert stamp_of(message) == stamp_of(pose) == stamp_of(cloud) == estimate.frame.stamp
        assert (message.header.frame_id, message.child_frame_id) == ("odom", "base_link")
        position, turn = message.pose.pose.position, message.pose.pose.orientation
        np.testing.assert_array_equal([position.x, position.y, position.z], fields.position)
        np.testing.assert_array_equal([turn.x, turn.y, turn.z, turn.w], fields.orientation)
        np.testing.assert_array_equal(message.pose.covariance, fields.pose_covariance)
        np.testing.assert_array_equal(pose.pose.covariance, fields.pose_covariance)
        np.testing.assert_array_equal(message.twist.covariance, fields.twist_covariance)
        assert message.twist.twist.linear.x == fields.linear[0]
        assert message.twist.twist.angular.z == fields.angular[2]
        (transform,) = transforms.transforms
        assert (transform.header.frame_id, transform.child_frame_id) == ("odom", "base_link")
        assert transform.transform.translation.y == fields.position[1]
        assert cloud.header.frame_id == "left_camera_optical_frame"
        expected = keypoint_cloud(estimate.landmarks, estimate.frame.left)
        assert cloud.width == len(expected)
        assert bytes(cloud.data) == expected.tobytes()
        assert [field.name for field in cloud.fields] == list(CLOUD_DTYPE.names)
    (path,) = messages["/macvo/path"]
    assert len(path.poses) == FRAMES
    assert path.poses[-1].pose.position.x == estimates[-1].pose[0, 3]


def test_status_in_the_bag_is_our_message(processed):
    """A reader that knows only what the bag itself says of the type gets our fields back."""
    from rosbags.highlevel import AnyReader

    with AnyReader([processed[1]]) as reader:
        connections = [connection for connection in reader.connections if connection.topic == "/macvo/status"]
        states = [reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(connections)]
    assert [status.state for status in states[:2]] == [Status.INITIALIZING, Status.TRACKING]
    assert states[-1].inliers > 20
    assert states[-1].position_sigma > 0
    assert states[-1].core_time > 0
    assert [status.received for status in states] == [status.processed for status in states] == [1, 2, 3, 4, 5]
    for name, state in (("lost", Status.LOST), ("degraded", Status.DEGRADED)):
        counted = np.cumsum([status.state == state for status in states])
        assert [getattr(status, name) for status in states] == list(counted)


def test_late_joiners_get_every_static_transform(rendered, processed):
    """A latched topic of depth 1 keeps its last message: there must be one, with all of them, in both kinds of bag."""
    for bag in (rendered, processed[1]):
        (message,) = read(bag)["/tf_static"]
        frames = [(item.header.frame_id, item.child_frame_id) for item in message.transforms]
        assert frames == [
            ("base_link", "left_camera_optical_frame"),
            ("left_camera_optical_frame", "right_camera_optical_frame"),
        ]
        with Bag(bag) as stored:
            right = base_from_frame(stored, "base_link", "right_camera_optical_frame")
        np.testing.assert_allclose(right[:3, 3], [0, -CAMERA.baseline, 0], atol=1e-12)


def test_lost_and_unpaired_are_counted(tmp_path):
    """Noise: the first frame begins, the others are lost; the right image of one is missing."""
    bag = write_ros2(tmp_path / "rec", count=5, skip_right=(2,))
    arguments = ["--matcher", "classic", "--out", str(tmp_path / "out"), "--output", str(tmp_path / "new")]
    main(["bag", str(bag), *arguments])
    from rosbags.highlevel import AnyReader

    with AnyReader([tmp_path / "new"]) as reader:
        connections = [connection for connection in reader.connections if connection.topic == "/macvo/status"]
        states = [reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(connections)]
    assert [(s.received, s.lost, s.unpaired) for s in states] == [(1, 0, 0), (2, 1, 0), (3, 2, 1), (4, 3, 1)]


@pytest.mark.parametrize("type", ["tf2_msgs/msg/TFMessage", "tf/msg/tfMessage"])
def test_the_base_of_a_ros1_bag(tmp_path, capsys, type):
    """/tf_static of a ROS 1 bag is found without being asked for, and stands in the new bag."""
    mast = np.eye(4)
    mast[:3, 3] = [0.3, 0.0, 1.2]
    bag = write_ros1(tmp_path / "rec.bag", static=(type, "base_link", "/left_optical", mast))
    with Bag(bag) as stored:
        np.testing.assert_allclose(base_from_frame(stored, "base_link", "left_optical"), mast)
    new = tmp_path / "new"
    main(["bag", str(bag), "--matcher", "classic", "--out", str(tmp_path / "out"), "--output", str(new)])
    assert "warning" not in capsys.readouterr().err
    messages = read(new)
    assert messages["/macvo/odometry"][0].child_frame_id == "base_link"
    (static,) = messages["/tf_static"]
    assert static.transforms[0].transform.translation.z == 1.2


def test_the_camera_as_base_is_warned_of(tmp_path, capsys):
    bag = write_ros1(tmp_path / "rec.bag")
    main(["bag", str(bag), "--matcher", "classic", "--out", str(tmp_path / "out"), "--output", str(tmp_path / "new")])
    error = capsys.readouterr().err
    assert "warning:" in error
    assert "does not connect 'left_optical' to 'base_link'" in error
    assert "in its optical axes (x right, y down, z forward)" in error
    assert read(tmp_path / "new")["/macvo/odometry"][0].child_frame_id == "left_optical"


def test_status_definition_is_that_of_the_package():
    assert (Path(__file__).parents[1] / "msg" / "Status.msg").read_text() == STATUS_DEFINITION


def test_the_same_poses_as_the_node(rendered, processed):
    """The node's own decoding, calibration, placement and core on the bag's messages give the offline poses exactly."""
    from macvo_ros.ros.parameters import NodeConfig
    from macvo_ros.ros.stereo_messages import StereoMessages
    from macvo_ros.ros.tracking import Tracking

    stored = read(rendered)
    with Bag(rendered) as bag:
        base = base_from_frame(bag, "base_link", "left_camera_optical_frame")
    config = NodeConfig(matcher="classic")
    tracking = Tracking(config, StereoOdometry(config), lambda frame: base)
    infos = [CameraInfo.from_message(stored[f"/stereo/{side}/camera_info"][0]) for side in ("left", "right")]
    pairs = zip(stored["/stereo/left/image_rect"], stored["/stereo/right/image_rect"], strict=True)
    for left, right in pairs:
        tracking.track(StereoMessages(left, right, *infos, arrived=0.0))
    live = [tracked.estimate for tracked in tracking.finished()]
    for estimate, message in zip(live, read(processed[1])["/macvo/odometry"], strict=True):
        fields = odometry_fields(estimate)
        position = message.pose.pose.position
        np.testing.assert_array_equal([position.x, position.y, position.z], fields.position)
        np.testing.assert_array_equal(message.pose.covariance, fields.pose_covariance)
        np.testing.assert_array_equal(message.twist.covariance, fields.twist_covariance)


def test_a_second_run_gives_the_same_bytes(rendered, processed, tmp_path):
    assert main(["bag", str(rendered), "--matcher", "classic", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "trajectory.txt").read_bytes() == (processed[0] / "trajectory.txt").read_bytes()


def test_camera_estimate_moves_the_covariance_by_the_lever_arm():
    """The covariance at the camera is that of camera positions simulated from base errors."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(6, 6)) * 0.01
    base_from_camera = np.eye(4)
    base_from_camera[:3, 3] = [0.8, -0.3, 1.1]
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0.5, -0.2, 1.0]).as_matrix()
    frame = RenderedSequence("room", 1, 1, camera=CAMERA, texels=64)[0]
    estimate = Estimate(frame, Status.TRACKING, pose, root @ root.T)
    seen = camera_estimate(estimate, base_from_camera)
    draws = rng.multivariate_normal(np.zeros(6), estimate.covariance, 20_000)
    turned = Rotation.from_rotvec(draws[:, 3:]).as_matrix() @ pose[:3, :3]
    moved = pose[:3, 3] + draws[:, :3] + turned @ base_from_camera[:3, 3]
    error = np.hstack([moved - seen.pose[:3, 3], draws[:, 3:]])
    nees = np.einsum("ni,ij,nj->n", error, np.linalg.inv(seen.covariance), error)
    assert nees.mean() == pytest.approx(6.0, abs=0.2)


def test_frames_without_a_way_to_base_link(tmp_path):
    with Bag(write_ros2(tmp_path / "rec")) as bag:
        np.testing.assert_array_equal(base_from_frame(bag, "left_optical", "/left_optical"), np.eye(4))
        with pytest.raises(SequenceError, match=r"does not connect 'left_optical' to 'base_link'.*none"):
            base_from_frame(bag, "base_link", "left_optical")


def test_static_transforms_chain_both_ways(tmp_path):
    """base <- mast -> camera, published child by child, the last one upwards."""
    mast, camera = np.eye(4), np.eye(4)
    mast[:3, :3], mast[:3, 3] = Rotation.from_rotvec([0, 0, 0.5]).as_matrix(), [1, 2, 3]
    camera[:3, :3], camera[:3, 3] = Rotation.from_rotvec([0.3, 0, 0]).as_matrix(), [0, 0, 0.1]
    with BagWriter(tmp_path / "tf") as bag:
        bag.write("/tf_static", 1, bag.transforms(1, [("base_link", "mast", mast)]), latched=True)
        bag.write("/tf_static", 2, bag.transforms(2, [("camera", "mast", np.linalg.inv(camera))]), latched=True)
    with Bag(tmp_path / "tf") as stored:
        np.testing.assert_allclose(base_from_frame(stored, "base_link", "camera"), mast @ camera, atol=1e-12)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_bag_appears_whole_or_not_at_all(tmp_path, storage):
    with contextlib.suppress(KeyError), BagWriter(tmp_path / "new", storage) as bag:
        bag.write("/tf", 1, bag.transforms(1, [("a", "b", np.eye(4))]))
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    with pytest.raises(SequenceError, match="exists already"):
        BagWriter(tmp_path / "there", storage)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either a BAG"),
        (["nowhere.bag"], "does not exist"),
        (["nowhere", "--convert", "a", "b"], "either a BAG"),
        (["{bag}", "--left", "/nope"], "no topic /nope"),
        (["{bag}", "--output", "{bag}"], "exists already"),
        (["{bag}", "--base-frame", "gripper"], "does not connect"),
        (["{bag}", "--approximate-sync", "-3"], "milliseconds of at least 0"),
        (["{bag}", "--set", "keypoints.cuont=3"], "did you mean keypoints.count"),
        (["--convert", "{bag}/nothing", "new"], "is not a folder"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(rendered, tmp_path, capsys, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["bag", *(word.replace("{bag}", str(rendered)) for word in arguments)])
    except SystemExit as stop:
        code = stop.code
    error = capsys.readouterr().err
    assert code == 2
    assert words in error.splitlines()[-1]
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_run_and_eval_take_a_bag_as_well(rendered, tmp_path):
    assert len(open_sequence(rendered, frames=(0, 3))) == 3
    assert (
        main(["eval", str(rendered), "--matcher", "classic", "--frames", "0:2", "--json", str(tmp_path / "x.json")])
        == 0
    )
    assert json.loads((tmp_path / "x.json").read_text())["frames"] == 2
