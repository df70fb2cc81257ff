// Reads server-sent events from the body of an answer. EventSource cannot send the header that the session cookie needs.
// Source: the HTML standard, "Server-sent events".

export interface ServerEvent {
  readonly name: string;
  readonly data: string;
  readonly id: string | undefined;
}

/** The events of a body, until it ends. `onBytes` is called for each piece, comments included. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  /** The last two characters of `rest`. */
  let seam = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      const piece = decoder.decode(value, { stream: true });
      rest += piece;
      const searched = seam + piece;
      seam = searched.slice(-2);
      // Only the new piece is searched, not all of `rest` with each piece of a large event.
      if (!/\n\r?\n/.test(searched)) continue;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = eventOf(block);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    // Frees the connection when the caller stops early; a body that has ended ignores it.
    reader.cancel().catch(() => undefined);
  }
}

function eventOf(block: string): ServerEvent | undefined {
  let name = 'message';
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ''] = /^([a-z]+): ?(.*)$/s.exec(line) ?? [];
    if (field === 'event') name = value;
    else if (field === 'id') id = value;
    else if (field === 'data') data.push(value);
  }
  return data.length === 0 ? undefined : { name, id, data: data.join('\n') };
}
