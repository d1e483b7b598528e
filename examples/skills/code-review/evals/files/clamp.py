def clamp(value: int, low: int, high: int) -> int:
    """Return `value`, or the nearest bound when it is outside of `low..=high`.

    Raises ValueError when `low` is greater than `high`.
    """
    if low > high:
        raise ValueError(f"low ({low}) is greater than high ({high})")
    return max(low, min(value, high))
