"""Reinforcement learning by hand: a walk on a line, REINFORCE with a baseline, Categorical actions from NumPy."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.distribution import Categorical, Normal

from common import say, seeded

PLACES, GOAL = 7, 6


class Policy(nn.Layer):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(PLACES, 16)
        self.action_head, self.value_head, self.scale = nn.Linear(16, 2), nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.affine(x))
        return self.action_head(x), self.value_head(x).squeeze(-1), F.softplus(self.scale(x)).squeeze(-1) + 0.1


def episode(policy, rng, limit=12):
    """One walk: states, actions and rewards; the action is drawn with NumPy from the policy's probabilities."""
    place, states, actions, rewards = 3, [], [], []
    for _ in range(limit):
        state = np.eye(PLACES, dtype="float32")[place]
        logits, _, _ = policy(paddle.to_tensor(state).unsqueeze(0))
        probability = F.softmax(logits).numpy()[0]
        action = int(rng.rand() < probability[1])
        place = min(max(place + (1 if action else -1), 0), GOAL)
        states.append(state), actions.append(action), rewards.append(1.0 if place == GOAL else -0.05)
        if place == GOAL:
            break
    return states, actions, rewards


def main():
    rng = np.random.RandomState(12)
    policy = seeded(Policy(), 15)
    optimizer = paddle.optimizer.RMSProp(learning_rate=0.01, parameters=policy.parameters(), epsilon=1e-3)
    for i in range(12):
        with paddle.no_grad():
            states, actions, rewards = episode(policy, rng)
        returns, total = [], 0.0
        for r in rewards[::-1]:
            total = r + 0.9 * total
            returns.insert(0, total)
        returns = paddle.to_tensor(returns, dtype="float32")
        logits, value, scale = policy(paddle.to_tensor(np.stack(states)))
        log_prob = paddle.take_along_axis(F.log_softmax(logits), paddle.to_tensor(actions).unsqueeze(1), 1).squeeze(1)
        advantage = (returns - value).detach()
        critic = -Normal(value, scale).log_prob(returns).mean()
        entropy = -(F.softmax(logits) * F.log_softmax(logits)).sum(-1).mean()
        loss = -(log_prob * advantage).mean() + 0.5 * critic - 0.01 * entropy
        optimizer.clear_grad()
        loss.backward()
        optimizer.step()
        if i % 3 == 2:
            say(f"episode {i}", loss, len(rewards), returns[0], entropy, critic)
    logits, _, _ = policy(paddle.eye(PLACES))
    actions = Categorical(paddle.exp(logits))
    other = Categorical(paddle.ones([PLACES, 2]))
    say("entropy", *actions.entropy().tolist())
    say("kl", *actions.kl_divergence(other).tolist())
    say("right", *actions.probs(paddle.to_tensor([1])).flatten().tolist())
    say("normal", Normal(0.0, 2.0).entropy(), Normal(paddle.to_tensor([0.5]), paddle.to_tensor([1.5])).kl_divergence(
        Normal(paddle.to_tensor([0.0]), paddle.to_tensor([1.0]))))


if __name__ == "__main__":
    main()
