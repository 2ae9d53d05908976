# How much do prices move together? The weighted variance of their changes.
input prices, before, weights

def ratio(part, whole) = part / whole
def change(now, then) = ratio(now - then, then)
def mean(x, weights) = ratio(sum(x * weights), sum(weights))
def square(x) = x * x

let changes = change(prices, before)
let middle = mean(changes, weights)
return mean(square(changes - middle), weights)
