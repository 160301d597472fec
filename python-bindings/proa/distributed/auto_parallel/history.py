"""paddle.grad and paddle.autograd.backward of tensors on a mesh: those of each process's parts."""
from ...autograd import backward_mode
from .dispatch import is_dist
from .placement_type import Replicate


def parts_of_outputs(outputs, grads):
    """This process's parts of outputs, of which Partials become whole, and of their gradients."""
    parts, given = [], []
    for i, out in enumerate(outputs):
        if is_dist(out) and out._local is None:  # a token leads to what this process has of it
            if out._token is not None:
                parts.append(out._token)
                given.append(None)
            continue
        grad = None if grads is None else grads[i]
        if is_dist(out):
            parts.append(out._placed([Replicate() if p.is_partial() else p for p in out._placements])._local_value())
            given.append(None if grad is None else out._part_of(grad))
        else:
            parts.append(out)
            given.append(grad._whole() if is_dist(grad) else grad)
    return parts, None if grads is None else given


def grad_of_parts(outputs, inputs, grads, retain_graph, create_graph, allow_unused, no_grad_vars):
    """paddle.grad where some tensor is on a mesh."""
    parts, given = parts_of_outputs(outputs, grads)
    stops = no_grad_vars if no_grad_vars is None else [_part(t) for t in
                                                       (no_grad_vars if isinstance(no_grad_vars, (list, set, tuple)) else [no_grad_vars])]
    found = backward_mode.grad(parts, [_part(t) for t in inputs], given, retain_graph, create_graph, True, allow_unused, stops)
    return [t._like(g) if is_dist(t) and g is not None else g for t, g in zip(inputs, found)]


def _part(tensor):
    return tensor._local_value() if is_dist(tensor) else tensor
