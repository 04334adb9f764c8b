"""The paper's matching network, FlowFormer with a covariance decoder, as a matcher."""

from macvo_ros.matching.flowformer.network import FlowFormerCov

__all__ = ["FlowFormerCov"]
