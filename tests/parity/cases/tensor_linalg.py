"""Products, norms and decompositions."""
import paddle
from parity import case, rand


@case("paddle.matmul", "paddle.mm", "paddle.bmm", "paddle.mv", "paddle.dot", "paddle.addmm", "paddle.Tensor.matmul",
      "paddle.Tensor.mm", "paddle.Tensor.bmm", "paddle.Tensor.mv", "paddle.Tensor.dot", "paddle.Tensor.addmm")
def products():
    a, b, v = rand(3, 4), rand(4, 5), rand(4)
    p, q, c = rand(2, 3, 4), rand(2, 4, 5), rand(3, 5)
    return [paddle.matmul(a, b), a.matmul(rand(5, 4), transpose_y=True), paddle.matmul(p, b), paddle.matmul(v, b),
            paddle.mm(a, b), a.mm(b), paddle.bmm(p, q), p.bmm(q), paddle.mv(a, v), a.mv(v), paddle.dot(v, rand(4)),
            v.dot(v), paddle.dot(rand(2, 3), rand(2, 3)), paddle.addmm(c, a, b, beta=0.5, alpha=2.0), c.addmm(a, b)]


@case("paddle.norm", "paddle.dist", "paddle.linalg.norm", "paddle.Tensor.norm", "paddle.Tensor.dist")
def norms():
    x, y = rand(3, 4), rand(3, 4)
    inf = float("inf")
    return [paddle.norm(x), x.norm(p=1), paddle.norm(x, 2, 1), paddle.norm(x, inf), paddle.norm(x, axis=[0, 1]),
            paddle.norm(x, 3, [0, 1], True), paddle.norm(x, -inf, 0, keepdim=True), paddle.linalg.norm(x, axis=-1),
            paddle.dist(x, y), paddle.dist(x, y, 1), x.dist(y, inf), paddle.norm(x, inf, [0, 1])]


@case("paddle.tensordot", "paddle.einsum", "paddle.linalg.multi_dot", "paddle.linalg.cov", "paddle.linalg.corrcoef")
def contractions():
    x, y, m = rand(2, 3, 4), rand(3, 4, 5), rand(3, 3)
    e = paddle.einsum
    return [paddle.tensordot(x, y), paddle.tensordot(x, y, [[1, 2], [0, 1]]), paddle.tensordot(x[0], y[0], 1),
            e("ijk,jkl->il", x, y), e("ij,ij->", m, m), e("ij->ji", m), e("bij,bjk->bik", x, rand(2, 4, 5)),
            e("i,j->ij", rand(2), rand(3)), e("...ij,...jk->...ik", x, rand(2, 4, 2)), e("ij,jk,kl", m, m, m),
            paddle.linalg.multi_dot([rand(2, 3), m, rand(3, 4)]), paddle.linalg.cov(m), paddle.linalg.corrcoef(m)]


@case("paddle.kron")
def products_of_real_and_complex():
    x, z = rand(2, 3), paddle.complex(rand(3, 2), rand(3, 2))
    return [paddle.kron(x, z), paddle.kron(z, x), paddle.kron(x.astype("float64"), z.astype("complex128"))]
