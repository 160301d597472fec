"""ResNet-18 on small color images: transforms, DataLoader, float32 and automatic mixed precision in bfloat16."""
import numpy as np
import paddle
import paddle.vision.transforms as T
from paddle.vision.models import resnet18

from common import say, seeded


class Shapes(paddle.io.Dataset):
    """24 × 24 images: filled squares (class 0), stripes (1), discs (2) in random colors."""

    def __init__(self, n, transform):
        rng = np.random.RandomState(0)
        grid = np.mgrid[0:24, 0:24]
        self.items, self.transform = [], transform
        for i in range(n):
            image = rng.randint(0, 60, [24, 24, 3])
            centre, color = rng.randint(8, 16, 2), rng.randint(120, 256, 3)
            inside = [abs(grid - centre[:, None, None]).max(0) < 6, grid[0] // 3 % 2 == 0,
                      ((grid - centre[:, None, None]) ** 2).sum(0) < 40][i % 3]
            image[inside] = color
            self.items.append((image.astype("uint8"), np.int64(i % 3)))

    def __getitem__(self, i):
        image, label = self.items[i]
        return self.transform(image), label

    def __len__(self):
        return len(self.items)


def main():
    transform = T.Compose([T.ToTensor(), T.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])])
    data = Shapes(24, transform)
    image = data.items[1][0]
    for name, t in [("crop", T.CenterCrop(16)), ("pad", T.Pad([1, 2, 3, 4], fill=7)), ("gray", T.Grayscale(3)),
                    ("flip", T.RandomHorizontalFlip(prob=1.0)), ("transpose", T.Transpose())]:
        out = np.asarray(t(image))
        say(name, *out.shape, out.astype("float64").mean(), out.astype("int64")[::5, ::5].sum())
    for name, out in [("brightness", T.adjust_brightness(image, 1.3)), ("contrast", T.adjust_contrast(image, 0.6)),
                      ("vflip", T.vflip(image)), ("crop at", T.crop(image, 2, 3, 10, 12))]:
        say(name, *out.shape, out.astype("float64").mean())

    loader = paddle.io.DataLoader(data, batch_size=12, shuffle=False, drop_last=True)
    net = seeded(resnet18(num_classes=3, with_pool=True), 5, scale=1.0)
    opt = paddle.optimizer.Momentum(learning_rate=0.001, momentum=0.9, parameters=net.parameters(), weight_decay=1e-4)
    loss_fn = paddle.nn.CrossEntropyLoss()
    net.train()
    for epoch in range(2):
        for images, labels in loader:
            loss = loss_fn(net(images), labels)
            loss.backward()
            opt.step()
            opt.clear_grad()
            say(f"float32 {epoch}", loss)

    scaler = paddle.amp.GradScaler(init_loss_scaling=1.0, enable=False)
    first = last = None
    for step in range(3):
        for images, labels in loader:
            with paddle.amp.auto_cast(custom_black_list={"softmax_with_cross_entropy"}, level="O1", dtype="bfloat16"):
                out = net(images)
                loss = loss_fn(out, labels)
            scaled = scaler.scale(loss)
            scaled.backward()
            scaler.minimize(opt, scaled)
            opt.clear_grad()
            first, last = loss.item() if first is None else first, loss.item()
    print("amp learns", last < first, loss.dtype, net.conv1.weight.dtype)
    net.eval()
    with paddle.no_grad():
        pred = net(paddle.stack([data[i][0] for i in range(6)])).argmax(axis=1)
    print("predicts", list(pred.shape), pred.dtype)


if __name__ == "__main__":
    main()
