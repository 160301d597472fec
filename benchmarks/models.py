"""The networks of the benchmarks, each written once over an adapter of frameworks.py (`fw`). Sizes are arguments, so
that the smoke test can ask for small ones."""


def lenet(fw):
    nn = fw.nn
    return nn.Sequential(fw.conv(1, 6, 3, 1, 1), nn.ReLU(), fw.max_pool(2, 2), fw.conv(6, 16, 5), nn.ReLU(),
                         fw.max_pool(2, 2), nn.Flatten(), nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))


def mlp(fw, sizes=(64, 256, 256, 256, 10)):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [fw.nn.Linear(a, b), fw.nn.GELU()]
    return fw.nn.Sequential(*layers[:-1])


def conv_bn(fw, inputs, outputs, kernel, stride=1, groups=1, activation=None):
    layers = [fw.conv(inputs, outputs, kernel, stride, kernel // 2, groups, bias=False), fw.batch_norm_layer(outputs)]
    return fw.nn.Sequential(*layers, *([activation()] if activation else []))


def resnet(fw, depth, classes=10, blocks=None, width=64, stem=(7, 2)):
    """stem: the first kernel and its stride; max pooling follows where it strides."""
    nn, relu = fw.nn, fw.nn.ReLU
    expansion = 1 if depth < 50 else 4

    class Block(fw.Module):
        def __init__(self, inputs, middle, stride):
            super().__init__()
            outputs = middle * expansion
            if expansion == 1:
                self.body = nn.Sequential(conv_bn(fw, inputs, middle, 3, stride, activation=relu),
                                          conv_bn(fw, middle, middle, 3))
            else:
                self.body = nn.Sequential(conv_bn(fw, inputs, middle, 1, activation=relu),
                                          conv_bn(fw, middle, middle, 3, stride, activation=relu),
                                          conv_bn(fw, middle, outputs, 1))
            same = stride == 1 and inputs == outputs
            self.shortcut = nn.Sequential() if same else conv_bn(fw, inputs, outputs, 1, stride)
            self.relu = relu()

        def forward(self, x):
            return self.relu(self.body(x) + self.shortcut(x))

    layers = [conv_bn(fw, 3, width, *stem, activation=relu), *([fw.max_pool(3, 2, 1)] if stem[1] > 1 else [])]
    inputs = width
    for stage, count in enumerate(blocks or {18: [2, 2, 2, 2], 50: [3, 4, 6, 3]}[depth]):
        for i in range(count):
            layers.append(Block(inputs, width << stage, 2 if stage and i == 0 else 1))
            inputs = (width << stage) * expansion
    return nn.Sequential(*layers, fw.average_pool(), nn.Flatten(), nn.Linear(inputs, classes))


def mobilenet_v2(fw, classes=1000, settings=None):
    nn, relu6 = fw.nn, fw.nn.ReLU6

    class Inverted(fw.Module):
        def __init__(self, inputs, outputs, stride, expand):
            super().__init__()
            middle = inputs * expand
            self.same = stride == 1 and inputs == outputs
            widen = [conv_bn(fw, inputs, middle, 1, activation=relu6)] if expand != 1 else []
            self.body = nn.Sequential(*widen, conv_bn(fw, middle, middle, 3, stride, middle, relu6),
                                      conv_bn(fw, middle, outputs, 1))

        def forward(self, x):
            return x + self.body(x) if self.same else self.body(x)

    layers, inputs = [conv_bn(fw, 3, 32, 3, 2, activation=relu6)], 32
    for expand, outputs, count, stride in settings or ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                       (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            layers.append(Inverted(inputs, outputs, stride if i == 0 else 1, expand))
            inputs = outputs
    last = 4 * inputs
    return nn.Sequential(*layers, conv_bn(fw, inputs, last, 1, activation=relu6), fw.average_pool(), nn.Flatten(),
                         nn.Linear(last, classes))


def encoder(fw, width=256, layers=4, heads=4, dropout=0.1):
    return fw.nn.Sequential(*[fw.encoder_layer(width, heads, 4 * width, dropout) for _ in range(layers)])


def bert(fw, vocabulary=30522, width=768, layers=12, heads=12, length=128):
    """Embeddings, encoder, and the first token's vector through a linear layer."""
    nn = fw.nn

    class Bert(fw.Module):
        def __init__(self):
            super().__init__()
            self.fw = fw  # real Paddle's to_static loses what a method closes over
            self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.norm, self.body = nn.LayerNorm(width), encoder(fw, width, layers, heads)
            self.head = nn.Linear(width, width)

        def forward(self, tokens):
            x = self.norm(self.words(tokens) + self.positions(self.fw.t.arange(0, tokens.shape[1])))
            return self.fw.t.tanh(self.head(self.body(x)[:, 0]))

    return Bert()


def decoder(fw, vocabulary=65, width=384, layers=6, heads=6, length=256):
    """A GPT: causal self-attention and an MLP, each behind a layer norm. Called with a cache, one token at a time."""
    nn = fw.nn

    class Block(fw.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, cache=None):
            b, n = x.shape[0], x.shape[1]
            q, k, v = (part.reshape([b, n, heads, width // heads])
                       for part in fw.t.split(self.qkv(self.norm1(x)), *fw.thirds(width), -1))
            if cache is not None:
                if cache:
                    k, v = fw.concat([cache[0], k], 1), fw.concat([cache[1], v], 1)
                cache[:] = [k, v]
            y = fw.attention(q, k, v, causal=n > 1)
            x = x + self.out(y.reshape([b, n, width]))
            return x + self.mlp(self.norm2(x))

    class Decoder(fw.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = fw.modules([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, tokens, caches=None):
            at = caches[0][0].shape[1] if caches and caches[0] else 0
            x = self.words(tokens) + self.positions(fw.t.arange(at, at + tokens.shape[1]))
            for i, block in enumerate(self.blocks):
                x = block(x, caches[i] if caches is not None else None)
            return self.head(self.norm(x))

    return Decoder()


def lstm(fw, vocabulary=1000, width=256, hidden=512, layers=2):
    nn = fw.nn

    class Tagger(fw.Module):
        def __init__(self):
            super().__init__()
            self.words, self.body = nn.Embedding(vocabulary, width), fw.lstm(width, hidden, layers)
            self.head = nn.Linear(hidden, vocabulary)

        def forward(self, tokens):
            return self.head(self.body(self.words(tokens))[0])

    return Tagger()
