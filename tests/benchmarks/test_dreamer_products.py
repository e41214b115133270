from benchmarks.workers import dreamer_products
from tfrl.agents.dreamer import rssm

SIZES = rssm.Sizes(deter=8, units=1, hidden=1, classes=1, depth=1)


def test_products_of_an_update_are_counted_by_hand():
    """One unit everywhere, and one number in each block: 40 features."""
    core = (8 + 32 + 1) + 3 * 8 + 8 * 1 + 8 * 3
    prior, reward, going = 8 + 1 + 32, 40 + 255, 40 + 1
    deep = 40 + 1 + 1
    actor, critic = deep + 2, deep + 255
    replayed = (3 + 1 + 1) + prior + reward + going + (deep + 3) + critic
    with_gradients = core + (9 + 32) + replayed + 15 * (actor + critic)
    without = 15 * (core + prior + reward + going) + 16 * critic
    products = dreamer_products.of_update(SIZES, batch=1, length=1)
    found = sum(product.operations() for product in products)
    assert found == 2 * (3 * with_gradients + without)


def test_states_follow_one_another_and_the_rest_is_computed_at_once():
    products = dreamer_products.of_update(SIZES, batch=3, length=5)
    found = {(product.rows, product.times) for product in products}
    assert found == {(3, 5), (15, 1), (15, 15), (15, 16)}
