"""What OpenAI's route of chats accepts, by the names that its clients know. Knows JSON types; what
a message asks for is known to openai_prompt."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, FailFast, Field

from dragoman.server.request_schema import Text, example

_MAX_MESSAGES = 1_000
_MAX_TOOLS = 20


def _joined(content: Any) -> Any:
    """Return the text of a message that consists of parts."""
    if not isinstance(content, list):
        return content
    texts = []
    for part in content:
        is_text = isinstance(part, dict) and part.get("type") in ("text", "input_text")
        if not is_text or not isinstance(part.get("text"), str):
            raise ValueError("has a part that is no text; send text alone")
        texts.append(part["text"])
    return "\n".join(texts)


class Message(BaseModel):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[Text | None, BeforeValidator(_joined)] = None


class Function(BaseModel):
    """A function that a client offers."""

    name: Text = Field(max_length=100)
    parameters: dict[str, Any] = Field({}, description="a JSON schema of its arguments")


class Tool(BaseModel):
    """A tool that a client offers."""

    type: Literal["function"] = "function"
    function: Function


class StreamOptions(BaseModel):
    """What a stream is to have besides the text."""

    include_usage: bool = False


class ChatBody(BaseModel):
    """A chat whose last message of the user is to be translated."""

    model: Text = Field(
        max_length=100, description="the languages, such as en-de, dragoman:en-de or auto-de"
    )
    messages: Annotated[list[Message], FailFast()] = Field(
        min_length=1,
        max_length=_MAX_MESSAGES,
        description="the last one of the user is the text; a system message may name the languages",
    )
    n: int = Field(1, ge=1, le=16, description="translations to return")
    stream: bool = Field(False, description="send the translation sentence by sentence")
    stream_options: StreamOptions | None = Field(
        None, description="include_usage: count the tokens at the end of a stream"
    )
    tools: Annotated[list[Tool], FailFast()] = Field(
        [],
        max_length=_MAX_TOOLS,
        description="a function named translate gets the translation as a call",
    )

    model_config = example(
        model="en-de", messages=[{"role": "user", "content": "Good morning."}], stream=False
    )
