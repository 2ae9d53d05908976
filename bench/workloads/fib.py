"""Nothing but calls: the worst case for a tracer."""

SIZE, WARM = 31, 12  # 4.4 M calls: as many as VizTracer can save in 4 GB


def fib(number):
    return number if number < 2 else fib(number - 1) + fib(number - 2)


def run(size):
    return fib(size)
