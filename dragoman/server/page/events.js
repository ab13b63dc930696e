// Server-sent events out of the answer to a request, which an EventSource could not have sent.

// Yields {name, data}; the data of an event is JSON.
export async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) yield eventOf(block);
  }
}

function eventOf(block) {
  const lines = block.split("\n").map((line) => line.split(/: (.*)/s));
  const fields = Object.fromEntries(lines);
  return {name: fields.event ?? "message", data: JSON.parse(fields.data)};
}
