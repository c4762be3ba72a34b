"""The list of equivalent mutants has only mutants that there are."""

import ast

from tests.conftest import ROOT
from tests.mutation.mutants import equivalent, mutants, name_of


def test_each_equivalent_mutant_is_one_of_the_package() -> None:
    listed = equivalent()
    modules = sorted({name.partition(":")[0] for name in listed})
    trees = {module: ast.parse((ROOT / "agent_eval_schema" / module).read_text("utf-8")) for module in modules}
    names = {name_of(module, mutant) for module, tree in trees.items() for mutant in mutants(tree)}
    assert listed <= names, f"remove from tests/mutation/equivalent.txt, or rename: {sorted(listed - names)}"
