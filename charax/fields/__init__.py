"""Right-hand sides: the velocity, the Jacobian, and the one equation that joins them."""

from charax.fields.balance import balance_residual
from charax.fields.base import AbstractField, check_flow_field
from charax.fields.characteristic import CharacteristicField
from charax.fields.jacobian import AbstractJacobian, FunctionJacobian, JointJacobian, SeparateJacobian
from charax.fields.plain import PlainField
from charax.fields.reading import Condition, Read, Scalar
from charax.fields.second_order import SecondOrderField
from charax.fields.structured_jacobian import MixedPartialJacobian, PotentialJacobian
from charax.fields.timed import Timed
from charax.fields.velocity import AbstractVelocity, FunctionVelocity, NetworkVelocity

__all__ = [
    "AbstractField",
    "AbstractJacobian",
    "AbstractVelocity",
    "CharacteristicField",
    "Condition",
    "FunctionJacobian",
    "FunctionVelocity",
    "JointJacobian",
    "MixedPartialJacobian",
    "NetworkVelocity",
    "PlainField",
    "PotentialJacobian",
    "Read",
    "Scalar",
    "SecondOrderField",
    "SeparateJacobian",
    "Timed",
    "balance_residual",
    "check_flow_field",
]
