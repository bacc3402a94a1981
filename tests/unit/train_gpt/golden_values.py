#!/usr/bin/env python3
"""Prints the numbers of golden_test.cpp.

A second implementation of the same network and optimizer that shares nothing with the first: plain
Python numbers, and derivatives by recording every operation and walking back (no formula for the
backward pass of any layer is written here).
"""
import math

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 7, 4, 2, 2, 6
BATCH = 2
RATE, FIRST_DECAY, SECOND_DECAY, EPSILON, WEIGHT_DECAY, CLIP = 0.01, 0.9, 0.99, 1e-8, 0.1, 0.6


class Value:
    """A number that remembers how it was made."""

    def __init__(self, number, parents=()):
        self.number, self.parents, self.gradient = number, parents, 0.0

    def __add__(self, other):
        other = lift(other)
        return Value(self.number + other.number, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        other = lift(other)
        return Value(self.number * other.number, ((self, other.number), (other, self.number)))

    def __sub__(self, other):
        return self + lift(other) * -1.0

    def power(self, exponent):
        return Value(self.number**exponent, ((self, exponent * self.number ** (exponent - 1)),))

    def exp(self):
        result = math.exp(self.number)
        return Value(result, ((self, result),))

    def log(self):
        return Value(math.log(self.number), ((self, 1.0 / self.number),))

    def tanh(self):
        result = math.tanh(self.number)
        return Value(result, ((self, 1.0 - result * result),))


def lift(value):
    return value if isinstance(value, Value) else Value(float(value))


def add_up(values):
    total = Value(0.0)
    for value in values:
        total = total + value
    return total


def walk_back(loss):
    order, seen, stack = [], set(), [(loss, False)]
    while stack:
        value, done = stack.pop()
        if done:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((parent, False) for parent, _ in value.parents)
    loss.gradient = 1.0
    for value in reversed(order):
        for parent, slope in value.parents:
            parent.gradient += slope * value.gradient


def shapes():
    """(name, rows, columns) in the order of the arena."""
    yield "token_embedding", VOCABULARY, WIDTH
    yield "position_embedding", CONTEXT, WIDTH
    for layer in range(LAYERS):
        for name, rows, columns in (
            ("norm1.gain", 1, WIDTH), ("norm1.shift", 1, WIDTH),
            ("attention.weight", 3 * WIDTH, WIDTH), ("attention.bias", 1, 3 * WIDTH),
            ("output.weight", WIDTH, WIDTH), ("output.bias", 1, WIDTH),
            ("norm2.gain", 1, WIDTH), ("norm2.shift", 1, WIDTH),
            ("expand.weight", 4 * WIDTH, WIDTH), ("expand.bias", 1, 4 * WIDTH),
            ("contract.weight", WIDTH, 4 * WIDTH), ("contract.bias", 1, WIDTH),
        ):
            yield f"block{layer}.{name}", rows, columns
    yield "final.gain", 1, WIDTH
    yield "final.shift", 1, WIDTH


def slice_arena(values):
    tensors, offset = {}, 0
    for name, rows, columns in shapes():
        flat = values[offset:offset + rows * columns]
        tensors[name] = [flat[row * columns:(row + 1) * columns] for row in range(rows)]
        offset += rows * columns
    return tensors


def linear(vector, weight, bias):
    return [add_up(w * x for w, x in zip(row, vector)) + b for row, b in zip(weight, bias)]


def norm(vector, gain, shift):
    mean = add_up(vector) * (1.0 / WIDTH)
    centred = [x - mean for x in vector]
    variance = add_up(x * x for x in centred) * (1.0 / WIDTH)
    scale = (variance + 1e-5).power(-0.5)
    return [x * scale * g + s for x, g, s in zip(centred, gain, shift)]


def gelu(x):
    inner = (x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi)
    return x * 0.5 * (inner.tanh() + 1.0)


def softmax(scores):
    top = max(score.number for score in scores)
    powers = [(score - top).exp() for score in scores]
    share = add_up(powers).power(-1.0)
    return [power * share for power in powers]


def attention(rows):
    """rows: query, key and value of each token, in one list per token."""
    size = WIDTH // HEADS
    results = []
    for position, row in enumerate(rows):
        joined = []
        for head in range(HEADS):
            at = head * size
            query = row[at:at + size]
            seen = rows[:position + 1]
            scores = [add_up(q * k for q, k in zip(query, other[WIDTH + at:WIDTH + at + size]))
                      * (1.0 / math.sqrt(size)) for other in seen]
            weights = softmax(scores)
            for i in range(size):
                joined.append(add_up(w * other[2 * WIDTH + at + i]
                                     for w, other in zip(weights, seen)))
        results.append(joined)
    return results


def network(tensors, tokens):
    stream = [[a + b for a, b in zip(tensors["token_embedding"][token],
                                     tensors["position_embedding"][position])]
              for position, token in enumerate(tokens)]
    for layer in range(LAYERS):
        def of(name):
            return tensors[f"block{layer}.{name}"]
        inputs = [norm(x, of("norm1.gain")[0], of("norm1.shift")[0]) for x in stream]
        rows = [linear(x, of("attention.weight"), of("attention.bias")[0]) for x in inputs]
        stream = [[a + b for a, b in zip(x, linear(y, of("output.weight"), of("output.bias")[0]))]
                  for x, y in zip(stream, attention(rows))]
        inputs = [norm(x, of("norm2.gain")[0], of("norm2.shift")[0]) for x in stream]
        wide = [[gelu(h) for h in linear(x, of("expand.weight"), of("expand.bias")[0])]
                for x in inputs]
        stream = [[a + b for a, b in zip(x, linear(h, of("contract.weight"),
                                                   of("contract.bias")[0]))]
                  for x, h in zip(stream, wide)]
    outputs = [norm(x, tensors["final.gain"][0], tensors["final.shift"][0]) for x in stream]
    return [[add_up(a * b for a, b in zip(x, token)) for token in tensors["token_embedding"]]
            for x in outputs]


def mean_loss(numbers):
    parameters = [Value(number) for number in numbers]
    tensors = slice_arena(parameters)
    losses = []
    for sample in range(BATCH):
        places = range(sample * CONTEXT, (sample + 1) * CONTEXT)
        logits = network(tensors, [(3 * i + 1) % VOCABULARY for i in places])
        for place, row in zip(places, logits):
            losses.append(softmax(row)[(5 * place + 2) % VOCABULARY].log() * -1.0)
    return add_up(losses) * (1.0 / len(losses)), parameters


def decays():
    return [rows > 1 for _, rows, columns in shapes() for _ in range(rows * columns)]


def main():
    count = sum(rows * columns for _, rows, columns in shapes())
    numbers = [0.5 * math.sin(0.7 * i + 0.3) for i in range(count)]
    first, second = [0.0] * count, [0.0] * count
    print("parameters", count)
    for step in range(4):
        loss, parameters = mean_loss(numbers)
        walk_back(loss)
        gradients = [parameter.gradient for parameter in parameters]
        length = math.sqrt(sum(g * g for g in gradients))
        print(f"step {step}: loss {loss.number:.15g}, gradient norm {length:.15g}")
        if step == 0:
            offset = 0
            for name, rows, columns in shapes():
                print(f'{{"{name}", {gradients[offset]:.15g}}},')
                offset += rows * columns
        for i, decay in enumerate(decays()):
            g = gradients[i] * min(1.0, CLIP / length)
            first[i] = FIRST_DECAY * first[i] + (1 - FIRST_DECAY) * g
            second[i] = SECOND_DECAY * second[i] + (1 - SECOND_DECAY) * g * g
            mean = first[i] / (1 - FIRST_DECAY ** (step + 1))
            square = second[i] / (1 - SECOND_DECAY ** (step + 1))
            numbers[i] -= RATE * (WEIGHT_DECAY * numbers[i] if decay else 0.0)
            numbers[i] -= RATE * mean / (math.sqrt(square) + EPSILON)


main()
