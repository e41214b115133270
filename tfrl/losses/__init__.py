"""The mathematics of the algorithms: pure functions on tensors.

Names carry time as in rlax: `v_tm1` is the value of the state at `t - 1`, `r_t` and
`discount_t` are received on the way to the state at `t`, and `v_t` is that one's value.
The discount is an input at each step (gamma times the environment's), so termination is
decided upstream, once. Shapes are `[B]` or, time-major, `[T, B]`; nothing is reduced
over the batch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
