"""Small objects of many kinds, made and dropped, some of them kept for a while."""

SIZE, WARM = 200_000, 2_000


def run(size):
    kept = []
    for number in range(size):
        pair = [number, number + 1]
        entry = (pair, number * 1000.5)
        table = {"entry": entry}
        text = f"x{number}"
        if number % 7 == 0:
            kept.append((table, text))
        if len(kept) > 20_000:
            kept.clear()
    return len(kept)
