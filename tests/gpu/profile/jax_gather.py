"""JAX: a gather that XLA fuses with arithmetic, and a scatter of integers."""
import os

import results

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.1")
try:
    import jax
    import jax.numpy as jnp
    import numpy
except ImportError as missing:
    results.skip(str(missing))
if jax.default_backend() != "gpu":
    results.skip("JAX finds no GPU")


@jax.jit
def step(table, index):
    rows = table.at[index].get(mode="promise_in_bounds")
    counts = jnp.zeros(table.shape[0], jnp.int32).at[index].add(1)
    return rows * 2 + 1, counts


keys = jax.random.split(jax.random.key(1))
table = jax.random.normal(keys[0], (1 << 20, 64))
index = jax.random.randint(keys[1], (1 << 18,), 0, table.shape[0])
for _ in range(20):
    found = step(table, index)
results.show(*map(numpy.asarray, found))
