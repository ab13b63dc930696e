"""The fields of a request, whichever way a client sends them: as JSON, as a form, or in the address
alone. Knows requests and schemas; no route."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel

_MEDIA_TYPES = ("application/json", "application/x-www-form-urlencoded")
_Body = TypeVar("_Body", bound=BaseModel)


async def read_fields(request: Request, kind: type[_Body], repeated: Iterable[str] = ()) -> _Body:
    """Return the fields of a request; those `repeated` may come several times in a form."""
    if "form" in request.headers.get("content-type", ""):
        return kind.model_validate(_values(await request.form(), repeated))
    body = await request.body()
    if body:
        return kind.model_validate_json(body)
    return kind.model_validate(_values(request.query_params, repeated))


def either_way(kind: type[BaseModel]) -> dict[str, Any]:
    """Return what the API's document says of a body that `read_fields` reads."""
    content = {"schema": kind.model_json_schema(ref_template="#/components/schemas/{model}")}
    return {"requestBody": {"required": True, "content": dict.fromkeys(_MEDIA_TYPES, content)}}


def _values(given: Any, repeated: Iterable[str]) -> dict[str, Any]:
    """Return one value for each field of a form, or a list where several may come and do."""
    values = dict(given)
    for name in repeated:
        several = given.getlist(name)
        if len(several) > 1:
            values[name] = several
    return values
