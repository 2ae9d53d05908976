"""A numeric loop: a call for every 10,000 or so instructions of bytecode."""

SIZE, WARM = 550, 5


def column(real, height, limit):
    inside = 0
    for step in range(height):
        imaginary = step / height
        x = y = 0.0
        for _ in range(limit):
            xx, yy = x * x, y * y
            if xx + yy > 4.0:
                break
            x, y = xx - yy + real, 2.0 * x * y + imaginary
        else:
            inside += 1
    return inside


def run(size):
    inside = 0
    for number in range(size):
        inside += column(-2.0 + 2.5 * (number % 97) / 97, 200, 60)
    return inside
