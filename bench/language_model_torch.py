"""The model of bench/language_model.cpp in PyTorch, on one thread: trains with SGD on random tokens.

Prints tokens per second of processor time, the median of RUNS.   language_model_torch.py [RUNS]
"""

import statistics
import sys
import time

import torch
from torch import nn

BATCH, LENGTH, WIDTH, HEADS, LAYERS, VOCABULARY = 16, 64, 128, 4, 6, 65
STEPS = 20


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.register_buffer("later", torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1))

    def attention(self, x):
        qkv = self.c_attn(x).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        y = scores.masked_fill(self.later, float("-inf")).softmax(-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        return self.head(self.ln_f(self.layers(self.tokens(tokens) + self.positions.weight)))


def main():
    torch.set_num_threads(1)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    text = torch.randint(VOCABULARY, (BATCH, LENGTH + 1))
    speeds = []
    for run in range(runs + 1):  # the first warms up
        begin = time.process_time()
        for _ in range(STEPS):
            logits = model(text[:, :-1]).reshape(-1, VOCABULARY)
            loss = nn.functional.cross_entropy(logits, text[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if run > 0:
            speeds.append(STEPS * BATCH * LENGTH / (time.process_time() - begin))
    print(f"{statistics.median(speeds):.0f}")


main()
