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

"""Loading the authors' checkpoint, and refusing everything that is not one.

Allowed differences, all of them in files the authors publish: a leading `module.` on all names, tensors that their own
network never uses, and the window of look-up offsets left out. Any other difference is an error that names the tensor;
the authors load with strict=False, where a wrong file goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from macvo_ros.errors import WeightsError
from macvo_ros.matching.flowformer.network import FlowFormerCov
from macvo_ros.matching.weights_file import listed, read_tensors

UNUSED = frozenset(
    f"{encoder}.svt.norm.{part}"
    for encoder in ("memory_encoder.feat_encoder", "context_encoder")
    for part in ("weight", "bias")
) | frozenset(f"memory_decoder.att.pos_emb.{part}" for part in ("rel_ind", "rel_height.weight", "rel_width.weight"))
OFFSETS = "memory_decoder.delta"
COVARIANCE = "memory_decoder.cov_update."
DOCS = "docs/flowformer.md says where the authors publish their checkpoint"


def clean_state(tensors: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """`tensors` as a state dict like `expected` (one of FlowFormerCov), float32, or a WeightsError that says why."""
    prefixed = bool(tensors) and all(name.startswith("module.") for name in tensors)
    state = {name.removeprefix("module.") if prefixed else name: tensor for name, tensor in tensors.items()}
    state = {name: tensor for name, tensor in state.items() if name not in UNUSED}
    state.setdefault(OFFSETS, expected[OFFSETS])
    missing = [name for name in expected if name not in state]
    extra = [name for name in state if name not in expected]
    if missing and all(name.startswith(COVARIANCE) for name in missing) and not extra:
        raise WeightsError(
            f"a FlowFormer without the covariance branch: {listed(missing)} missing; use the authors' MAC-VO "
            "checkpoint, or train the branch with macvo train flowformer"
        )
    if missing or extra:
        parts = [f"missing {listed(missing)}"] if missing else []
        parts += [f"unknown {listed(extra)}"] if extra else []
        raise WeightsError(f"not a FlowFormerCov checkpoint: {'; '.join(parts)}; {DOCS}")
    for name, tensor in state.items():
        if tensor.shape != expected[name].shape:
            raise WeightsError(
                f"not a FlowFormerCov checkpoint: {name} should have the shape {tuple(expected[name].shape)}, it has "
                f"{tuple(tensor.shape)}; {DOCS}"
            )
    for name, tensor in state.items():
        if not tensor.is_floating_point():
            raise WeightsError(f"{name} should be floating point, it is {tensor.dtype}; {DOCS}")
        if not torch.isfinite(tensor).all():
            raise WeightsError(f"{name} holds values that are not finite; the file is damaged, download it again")
    if not torch.equal(state[OFFSETS].float(), expected[OFFSETS].float().cpu()):
        raise WeightsError(f"{OFFSETS} should be the 9x9 window of look-up offsets; this is another network; {DOCS}")
    return {name: state[name].float() for name in expected}


def load_checkpoint(path: str | Path, iterations: int = 12) -> FlowFormerCov:
    """The network with the weights of a checkpoint, on the CPU, ready for inference."""
    tensors = read_tensors(path)
    network = FlowFormerCov(iterations)
    try:
        network.load_state_dict(clean_state(tensors, network.state_dict()))
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from None
    return network.eval().requires_grad_(False)


def load_backbone(path: str | Path, iterations: int = 12) -> FlowFormerCov:
    """For training: as `load_checkpoint`, but a FlowFormer without the covariance branch starts with a fresh one."""
    tensors = read_tensors(path)
    network = FlowFormerCov(iterations)
    expected = network.state_dict()
    if not any(COVARIANCE in name for name in tensors):
        prefix = "module." if tensors and all(name.startswith("module.") for name in tensors) else ""
        fresh = {prefix + name: value for name, value in expected.items() if name.startswith(COVARIANCE)}
        tensors = {**tensors, **fresh}
    try:
        network.load_state_dict(clean_state(tensors, expected))
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from None
    return network
