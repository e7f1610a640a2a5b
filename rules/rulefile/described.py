"""The docstrings under the fields of a model, for editors: a JSON Schema has them as descriptions.

Only a schema reads the source for it. pydantic's `use_attribute_docstrings` does so for every class at each start.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler


class Described(BaseModel):
    """Docstrings under its fields are their descriptions."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        schema = super().__get_pydantic_json_schema__(core_schema, handler)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        texts = _texts(cls)
        for name, field in cls.model_fields.items():
            key = field.alias or name
            if name in texts and key in properties:
                properties[key].setdefault("description", texts[name])
        if "const" in (kind := properties.get("kind", {})):  # it names the model, and so says what the model says
            kind.setdefault("description", inspect.getdoc(cls) or "")
        return schema


def _texts(cls: type[BaseModel]) -> Mapping[str, str]:
    """Of each field; one that a class declares again has the docstring there, or none."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Described) and base is not Described:
            kept = {name: text for name, text in texts.items() if name not in base.__annotations__}
            texts = {**kept, **own_texts(base)}
    return texts


@cache
def own_texts(cls: type[BaseModel]) -> Mapping[str, str]:
    """The docstrings under the fields that this class itself declares, by the name of the field."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    statements = body.body if isinstance(body, ast.ClassDef) else []
    texts: dict[str, str] = {}
    for statement, after in pairwise(statements):
        match statement, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
            case _:
                pass
    return texts
