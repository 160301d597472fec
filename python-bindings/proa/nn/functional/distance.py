"""pairwise_distance: the p-norm of differences of rows."""
from ... import _core
from ..._asks import asks


@asks("eager:epsilon:number,bool,Tensor,str,list,tuple,array!ValueError")
def pairwise_distance(x, y, p=2.0, epsilon=1e-6, keepdim=False, name=None):
    """The p-norm of x - y + epsilon along the last axis."""
    gap = _core.subtract(x, y)
    return _core.p_norm(gap + epsilon if epsilon != 0.0 else gap, p, -1, 0.0, keepdim)
