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

"""The network's numbers: the authors' outputs where they are at hand, values frozen from them, and each shortcut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flowformer_weights import named_network, one_thread, waves

from macvo_ros.errors import ImageError
from macvo_ros.matching.flowformer import FlowFormerCov
from macvo_ros.matching.flowformer.cost_embedding import CostEmbedding
from macvo_ros.matching.flowformer.cost_lookup import look_up, window_offsets
from macvo_ros.matching.flowformer.gru import SeparableGRU, constant_share, input_share
from macvo_ros.matching.flowformer.latent_attention import LatentReader
from macvo_ros.matching.flowformer.network import Encoded, crop, padding
from macvo_ros.matching.flowformer.position_code import sine_code
from macvo_ros.matching.flowformer.update import upsample

__all__ = ["one_thread"]
REFERENCE = Path(__file__).resolve().parent.parent.parent / "shared" / "reference"


@pytest.fixture(scope="module")
def network() -> FlowFormerCov:
    return named_network()


@pytest.fixture(scope="module")
def reference() -> dict[str, torch.Tensor]:
    if not REFERENCE.is_dir():
        pytest.skip("put outputs of the authors' network into ../shared/reference to run this; FROZEN stands for them")
    arrays = dict(np.load(REFERENCE / "flowformercov_reference.npz"))
    for name in ("left_prev", "left", "right"):
        arrays[name] = arrays[name].transpose(2, 0, 1)[None].astype(np.float32) / 255
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.reshape(expected.shape) - expected).abs().max() / expected.abs().max())


@pytest.mark.skipif(
    not REFERENCE.is_dir(),
    reason="names and shapes are in ../shared/reference; FROZEN depends on them too",
)
def test_tensors_have_the_authors_names_and_shapes(network: FlowFormerCov) -> None:
    rows = [line.split("\t") for line in (REFERENCE / "flowformercov_keys.tsv").read_text().splitlines()[1:]]
    expected = {name: shape for name, shape, _ in rows}
    assert {name: "x".join(map(str, tensor.shape)) for name, tensor in network.state_dict().items()} == expected


def test_number_of_parameters(network: FlowFormerCov) -> None:
    assert sum(parameter.numel() for parameter in network.parameters()) == 19_157_555
    assert len(list(network.parameters())) == 427


@torch.inference_mode()
def test_stages_agree_with_the_authors(network: FlowFormerCov, reference: dict[str, torch.Tensor]) -> None:
    source, target = network.encode(reference["left_prev"]), network.encode(reference["left"])
    assert source.context is not None
    assert relative(source.context, reference["context"]) < 1e-5
    raw = [network.memory_encoder.feat_encoder(2 * reference[name] - 1) for name in ("left_prev", "left")]
    assert relative(torch.cat(raw), reference["features"]) < 1e-5
    memory, cost = network.memory_encoder(source.features, target.features, source.context)
    assert relative(cost, reference["cost_memory_1"]) < 1e-5
    assert relative(memory, reference["cost_memory_0"]) < 1e-5


TOLERANCE = {1: (1e-4, 1e-3), 4: (1e-3, 5e-3), 12: (5e-3, 2e-2)}
"""Of flow (pixels) and variance (relative) after so many iterations."""


@pytest.mark.parametrize(("pair", "first", "second"), [("stereo", "left", "right"), ("temporal", "left_prev", "left")])
@torch.inference_mode()
def test_results_agree_with_the_authors(
    network: FlowFormerCov, reference: dict[str, torch.Tensor], pair: str, first: str, second: str
) -> None:
    source, target = network.encode(reference[first]), network.encode(reference[second], with_context=False)
    for iteration, state in enumerate(network.refinements(source, target), start=1):
        if iteration in TOLERANCE:
            flow, log_sigma = network.memory_decoder.full_size(state)
            flow_error = (flow[0] - reference[f"{pair}_flow_it{iteration}"]).abs().max()
            variance_error = (torch.exp(2 * log_sigma[0]) / reference[f"{pair}_var_it{iteration}"] - 1).abs().max()
            assert flow_error < TOLERANCE[iteration][0]
            assert variance_error < TOLERANCE[iteration][1]
    assert iteration == 12


@torch.inference_mode()
def test_padded_size_agrees_with_the_authors(
    network: FlowFormerCov, reference: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "iterations", 4)
    flow, variance = network(reference["left"][..., :150, :213], reference["right"][..., :150, :213])
    assert (flow[0] - reference["odd_stereo_flow_it4"]).abs().max() < 1e-3
    assert (variance[0] / reference["odd_stereo_var_it4"] - 1).abs().max() < 5e-3


# Seven values and the standard deviation of each stage, frozen while the tests above passed.
FROZEN = {
    "features": ([2.8653, 2.56617, 0.35338, -0.0362, -0.95623, 2.83407, -3.22939], 1.960443),
    "context": ([-3.58459, -1.35902, -0.40979, -2.22139, -0.59619, -1.1029, -0.3136], 1.937471),
    "cost": ([339.95148, 217.72104, 168.8145, 71.87624, 342.2612, 384.74542, 499.81964], 216.79032),
    "memory": ([-5.02446, -3.81611, -4.03803, -3.90776, -3.5103, -3.62198, -2.77608], 4.298427),
    "flow": ([-0.27415, -0.96358, -0.53803, -0.38839, 0.3807, -0.11998, -0.38237], 0.872094),
    "variance": ([1.18248, 1.27793, 1.29978, 1.14335, 1.69876, 1.70499, 1.33836], 0.518001),
}


@torch.inference_mode()
def test_numbers_have_not_changed(network: FlowFormerCov, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "iterations", 3)
    first, second = waves(60, 91), waves(60, 91, 2.5)
    source, target = network.encode(first), network.encode(second, with_context=False)
    assert source.context is not None
    memory, cost = network.memory_encoder(source.features, target.features, source.context)
    flow, variance = network(first, second)
    stages = (source.features, source.context, cost, memory, flow, variance)
    for (name, (values, spread)), found in zip(FROZEN.items(), stages, strict=True):
        flat = found.flatten()
        picked = flat[torch.linspace(0, flat.numel() - 1, len(values)).long()]
        assert picked.tolist() == pytest.approx(values, abs=2e-4 * spread), name
        assert float(flat.double().std()) == pytest.approx(spread, rel=1e-4), name


@torch.inference_mode()
def test_a_pair_does_not_depend_on_its_batch(network: FlowFormerCov, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "iterations", 2)
    generator = torch.Generator().manual_seed(1)
    first, second = torch.rand(2, 3, 3, 56, 64, generator=generator)
    together = network(first, second)
    for i in range(3):
        alone = network(first[i : i + 1], second[i : i + 1])
        for batched, single in zip(together, alone, strict=True):
            assert (batched[i] - single[0]).abs().max() < 1e-5


@torch.inference_mode()
def test_chunks_do_not_change_the_result(network: FlowFormerCov) -> None:
    perceiver = network.memory_encoder.cost_perceiver_encoder
    cost = torch.randn(1, 80, 40, 64, generator=torch.Generator().manual_seed(0))
    whole = perceiver.patch_embed(cost[0][:, None])
    expected = perceiver.input_layer(perceiver.latent_tokens, whole)
    assert 1 * 2**20 // (4 * 48 * 40 * 64) < 80 // 4  # the smallest cap makes several chunks
    kept, perceiver.memory_mb = perceiver.memory_mb, 1
    found = perceiver.read(cost[0])
    perceiver.memory_mb = kept
    assert (found - expected).abs().max() < 1e-5


def test_cost_embedding_is_the_concatenation_it_replaces() -> None:
    torch.manual_seed(0)
    layer = CostEmbedding()
    cost = torch.randn(5, 1, 13, 22)
    maps = layer.proj(F.pad(cost, (0, 2, 0, 3)))
    rows, columns = maps.shape[-2:]
    y, x = torch.meshgrid(torch.arange(rows) * 8 + 4.0, torch.arange(columns) * 8 + 4.0, indexing="ij")
    code = sine_code(torch.stack([x, y], -1), 64).permute(2, 0, 1).expand(5, -1, -1, -1)
    expected = layer.norm(layer.ffn_with_coord(torch.cat([maps, code], 1)).flatten(2).transpose(1, 2))
    assert (layer(cost) - expected).abs().max() < 1e-5


def test_latent_reader_is_plain_attention() -> None:
    torch.manual_seed(0)
    layer = LatentReader(128, 128, 8)
    latent, memory = torch.randn(1, 8, 128), torch.randn(6, 10, 128)

    def heads(tokens: torch.Tensor) -> torch.Tensor:
        return tokens.view(*tokens.shape[:2], 8, 16).transpose(1, 2)

    query = heads(layer.q(layer.norm1(latent))).expand(6, -1, -1, -1)
    key, value = heads(layer.k(memory)), heads(layer.v(memory))
    read = (torch.softmax(query @ key.transpose(-1, -2) / 4, -1) @ value).transpose(1, 2).flatten(2)
    tokens = latent + layer.proj(read)
    expected = tokens + layer.ffn(layer.norm2(tokens))
    assert (layer(latent, memory) - expected).abs().max() < 1e-5


def test_gru_with_split_inputs_is_the_gru_on_all_of_them() -> None:
    torch.manual_seed(0)
    gru = SeparableGRU()
    hidden, inp, moving = torch.randn(1, 128, 6, 7), torch.randn(1, 128, 6, 7), torch.randn(1, 256, 6, 7)
    expected = hidden
    for number in "12":
        z, r, q = (gru.get_submodule(f"conv{gate}{number}") for gate in "zrq")
        everything = torch.cat([expected, inp, moving], 1)
        update, reset = torch.sigmoid(z(everything)), torch.sigmoid(r(everything))
        candidate = torch.tanh(q(torch.cat([reset * expected, inp, moving], 1)))
        expected = (1 - update) * expected + update * candidate
    found = gru.step(hidden, input_share(gru, moving, constant_share(gru, inp)))
    assert (found - expected).abs().max() < 1e-5


def test_look_up_reads_costs_around_the_match() -> None:
    cost = torch.randn(1, 30, 5, 6, generator=torch.Generator().manual_seed(0))
    matches = torch.zeros(1, 2, 5, 6)
    matches[0, :, 2, 3] = torch.tensor([3.25, 1.5])  # x, y of the match of pixel (3, 2)
    found = look_up(cost, matches, window_offsets())[0, :, 2, 3]
    maps = cost[0, 2 * 6 + 3]
    assert found[9 * 4 + 4] == pytest.approx(float((0.75 * maps[1:3, 3] + 0.25 * maps[1:3, 4]).mean()), abs=1e-5)
    assert found[9 * 5 + 3] == pytest.approx(float((0.75 * maps[0:2, 4] + 0.25 * maps[0:2, 5]).mean()), abs=1e-5)
    assert found[9 * 8 + 4] == 0  # x + 4 lies outside of the map


def test_upsampling_a_constant_multiplies_it_by_eight() -> None:
    maps = torch.tensor([1.5, -2.0])[None, :, None, None].expand(1, 2, 5, 4)
    fine = upsample(maps, torch.randn(1, 576, 5, 4, generator=torch.Generator().manual_seed(0)))
    inside = fine[..., 8:-8, 8:-8]
    assert torch.allclose(inside, 8 * maps[..., :1, :1].expand_as(inside), atol=1e-5)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (33, 47), (150, 213)])
def test_padding_is_even_and_undone(height: int, width: int) -> None:
    left, right, top, bottom = padding(height, width)
    assert 0 <= right - left <= 1
    assert 0 <= bottom - top <= 1
    image = torch.rand(1, 1, height, width)
    padded = F.pad(image, (left, right, top, bottom))
    assert padded.shape[-1] % 8 == padded.shape[-2] % 8 == 0
    assert torch.equal(crop(padded, height, width), image)


def test_impossible_calls_are_refused(network: FlowFormerCov) -> None:
    with pytest.raises(ImageError, match=r"24x64.*32 pixels"):
        network(torch.zeros(1, 3, 64, 24), torch.zeros(1, 3, 64, 24))
    with pytest.raises(ValueError, match="1 to 12"):
        FlowFormerCov(iterations=13)
    with pytest.raises(ValueError, match="context"):
        network.match(Encoded(torch.zeros(1, 256, 8, 8), None), Encoded(torch.zeros(1, 256, 8, 8), None))
