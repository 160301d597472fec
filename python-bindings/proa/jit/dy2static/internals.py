"""Names of Paddle's own AST transformation. Proa converts functions by rules of its own: the names can be imported, as
programs do beside others, and using one is an error that says so."""
import importlib
import sys
import types

_NAMES = {"ast_transformer": "DygraphToStaticAst", "basic_api_transformer": "BasicApiTransformer",
          "break_continue_transformer": "BreakContinueTransformer", "call_transformer": "CallTransformer",
          "ifelse_transformer": "IfElseTransformer get_name_ids", "logical_transformer": "LogicalTransformer cmpop_node_to_str",
          "loop_transformer": "LoopTransformer NameVisitor", "partial_program": "PartialProgramLayer partial_program_from",
          "return_transformer": "ReturnTransformer", "static_analysis": "AstNodeWrapper NodeVarType StaticAnalysisVisitor",
          "utils": "is_control_flow_to_transform is_dygraph_api", "variable_trans_func":
          "create_fill_constant_node create_static_variable_gast_node data_layer_not_check to_static_variable"}


class Internal:
    """A function or class of Paddle's AST transformation."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{self.__name__} is part of Paddle's AST transformation; paddle.jit.to_static converts "
                                  "functions by rules of Proa's own, which have no such part")

    def __getattr__(self, attribute):
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return self()


def install(package, space):
    """Gives the package these names, and the modules that Paddle has them in."""
    for module, names in _NAMES.items():
        full = f"{package}.{module}"
        at = importlib.import_module(full) if module == "utils" else sys.modules.setdefault(full, types.ModuleType(full))
        space[module] = at
        for name in names.split():
            setattr(at, name, Internal(name))
            space.setdefault(name, getattr(at, name))
