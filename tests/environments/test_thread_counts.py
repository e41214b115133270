from tfrl.environments import thread_counts


def numbers_chosen(counts, seconds_of, steps):
    """Returns the numbers of threads of some steps, whose times are a function's."""
    made, numbers = thread_counts.ThreadCounts(counts), []
    for step in range(steps):
        numbers.append(made.next())
        made.took(seconds_of(numbers[-1], step))
    return numbers


def test_the_number_with_the_least_median_time_is_chosen():
    def seconds(count, step):
        # The first steps of two threads are slow, and their median is the least.
        return 100.0 if step < 9 else {1: 3.0, 2: 2.0, 8: 5.0}[count]

    numbers = numbers_chosen([1, 2, 8], seconds, 200)
    assert numbers[:27] == [1, 2, 8] * 9
    assert numbers[27:] == [2] * 173


def test_numbers_are_compared_again_later():
    numbers = numbers_chosen([1, 4], lambda n, step: n if step < 100 else -n, 5_100)
    assert numbers[18:5_000] == [1] * 4_982
    assert numbers[5_000:5_018] == [1, 4] * 9
    assert numbers[5_018:] == [4] * 82


def test_of_equal_numbers_the_first_is_chosen():
    assert numbers_chosen([1, 1, 1], lambda n, step: 1.0, 30) == [1] * 30
    assert numbers_chosen([1, 2], lambda n, step: 1.0, 30)[18:] == [1] * 12
