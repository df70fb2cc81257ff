// JSON as values and as text that is forwarded without being read.
// It knows nothing of JSON-RPC (jsonrpc.ts).

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
/** A JSON object as JSON.parse returns it. */
export interface JsonObject {
  [key: string]: JsonValue | undefined;
}

/** True for a plain JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** JSON of the value: the same text for equal ones, whatever the order of their keys. */
export function canonicalText(value: JsonValue | undefined): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key])}`).join()}}`;
}

/**
 * One JSON value, kept as the UTF-8 bytes it arrived in or as the value it was made from; the other form is made
 * on first use. A result on its way from a backend to a client is never parsed unless somebody asks for its value.
 */
export class JsonText {
  #bytes: Uint8Array | undefined;
  #value: unknown;
  #parsed: boolean;

  private constructor(bytes: Uint8Array | undefined, value: unknown, parsed: boolean) {
    this.#bytes = bytes;
    this.#value = value;
    this.#parsed = parsed;
  }

  /** Wraps bytes that hold exactly one JSON value. They are not copied: do not reuse the buffer. */
  static ofBytes(bytes: Uint8Array): JsonText {
    return new JsonText(bytes, undefined, false);
  }

  /** Wraps a value; `bytes` may be given when they are at hand. */
  static ofValue(value: unknown, bytes?: Uint8Array): JsonText {
    return new JsonText(bytes, value, true);
  }

  /** UTF-8 bytes of the JSON text. */
  get bytes(): Uint8Array {
    this.#bytes ??= Buffer.from(JSON.stringify(this.#value ?? null));
    return this.#bytes;
  }

  /** The parsed value. Throws SyntaxError when a large answer, trusted by its shape, was not JSON after all. */
  get value(): unknown {
    if (!this.#parsed) {
      this.#value = JSON.parse(Buffer.from(this.bytes).toString('utf8'));
      this.#parsed = true;
    }
    return this.#value;
  }
}
