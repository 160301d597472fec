"""Films for users: embeddings with sparse gradients, feature crosses, cosine similarity, top k."""
import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import say, seeded

USERS, FILMS, GENRES = 30, 40, 6


class Recommender(nn.Layer):
    def __init__(self, size=8):
        super().__init__()
        self.user = nn.Embedding(USERS, size, sparse=True)
        self.film = nn.Embedding(num_embeddings=FILMS, embedding_dim=size, sparse=True,
                                 weight_attr=paddle.ParamAttr(name="film_table"))
        self.genre = nn.Embedding(GENRES, size, padding_idx=0)
        self.user_fc, self.film_fc = nn.Linear(size, size), nn.Linear(2 * size, size)
        self.bias = self.create_parameter([FILMS, 1], is_bias=True)

    def vectors(self, user, film, genres):
        u = F.relu(self.user_fc(self.user(user)))
        g = paddle.sum(self.genre(genres), axis=1)
        f = self.film_fc(paddle.concat([self.film(film), g], axis=-1))
        return u, f

    def forward(self, user, film, genres):
        u, f = self.vectors(user, film, genres)
        score = F.cosine_similarity(u, f, axis=1).reshape([-1, 1]) * 5
        return paddle.scale(score, scale=0.8, bias=1.0) + F.embedding(film, self.bias, sparse=False)


def main():
    rng = np.random.RandomState(2)
    user, film = rng.randint(0, USERS, 256), rng.randint(0, FILMS, 256)
    table = rng.randint(0, GENRES, [FILMS, 3])
    rating = (1 + (user * 7 + film * 3) % 5).astype("float32")[:, None]
    data = paddle.io.TensorDataset([paddle.to_tensor(v) for v in (user, film, table[film], rating)])
    loader = paddle.io.DataLoader(data, batch_size=64, shuffle=False)
    model = seeded(Recommender(), 3)
    optimizer = paddle.optimizer.Adagrad(learning_rate=0.2, parameters=model.parameters())
    for epoch in range(5):
        total = 0.0
        for u, f, g, r in loader():
            avg = F.square_error_cost(model(u, f, g), r).mean()
            avg.backward()
            optimizer.step()
            optimizer.clear_grad()
            total += float(avg)
        say(f"epoch {epoch}", total / len(loader))
    model.eval()
    with paddle.no_grad():
        films = paddle.arange(FILMS)
        scores = model(paddle.full([FILMS], 4, dtype="int64"), films, paddle.to_tensor(table)).squeeze(-1)
        best, which = paddle.topk(scores, k=5)
        say("best", *best.tolist())
        print("which", which.tolist())
        order = paddle.argsort(scores, descending=True)
        print("sorted", order.numpy()[:8], paddle.sort(which).numpy())
    sgd = paddle.optimizer.SGD(learning_rate=0.5, parameters=model.parameters())
    loss = model(paddle.to_tensor([1, 1, 2]), paddle.to_tensor([5, 6, 5]), paddle.to_tensor(table[[5, 6, 5]])).sum()
    before = model.film.weight.numpy().copy()
    loss.backward()
    sgd.step()
    changed = np.abs(model.film.weight.numpy() - before).sum(1)
    print("rows changed", np.nonzero(changed > 0)[0].tolist())
    say("changes", *changed[[5, 6]])


if __name__ == "__main__":
    main()
