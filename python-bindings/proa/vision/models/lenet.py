"""LeNet for 28×28 digits (LeCun et al., 1998)."""
from ... import nn
from ...tensor import flatten


class LeNet(nn.Layer):
    """Two convolutions and three linear layers; num_classes <= 0 leaves the linear layers out."""

    def __init__(self, num_classes=10):
        super().__init__()
        self.num_classes = num_classes
        self.features = nn.Sequential(nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
                                      nn.Conv2D(6, 16, 5), nn.ReLU(), nn.MaxPool2D(2, 2))
        if num_classes > 0:
            self.fc = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, num_classes))

    def forward(self, inputs):
        x = self.features(inputs)
        return self.fc(flatten(x, 1)) if self.num_classes > 0 else x
