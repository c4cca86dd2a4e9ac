"""TensorFlow as the daemon uses it: the one place where it is imported, and where types end.

Its stubs miss most of what graphs are written with (slices, gathers, loops), so the names here are
`Any`; what is made of them has types again at the backend's surface.
"""

from typing import Any, TypeAlias

import tensorflow

# There is no public name for XLA's slices; TensorFlow is pinned to 2.21.
from tensorflow.compiler.tf2xla.ops import gen_xla_ops  # type: ignore[import-not-found]  # no stub

__all__ = ["Tensor", "tf", "xla"]

Tensor: TypeAlias = Any  # see above
tf: Any = tensorflow  # see above
xla: Any = gen_xla_ops  # see above
