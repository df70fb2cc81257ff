// Writes requests to one endpoint: the first line, the headers that all requests have, those of this request, and
// its body. It refuses names and values that would end a header or begin another one. Source: RFC 9110, 5.5; RFC
// 9112, 3.

/** The parts of a request. */
export interface WrittenRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** Headers of this request, without the cookies of the jar; the sender adds its own. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

type HeaderFields = WrittenRequest['headers'];

/** Makes the text of the requests to one endpoint. Their common part is written once. */
export class RequestWriter {
  /** The header fields by name in lower case. */
  readonly fields: HeaderFields;
  readonly #host: string;
  #lines: string | undefined;
  /** The last head, up to the length of the body: all requests of a session have the same object of headers. */
  #last: (Omit<WrittenRequest, 'body'> & { readonly head: string }) | undefined;

  /** `host`: with the port, unless that is the usual one. */
  constructor(host: string, fields: HeaderFields) {
    this.#host = host;
    this.fields = fields;
  }

  /** A string has only characters up to U+00FF, one byte each. Throws for an invalid header, with a code. */
  textOf(request: WrittenRequest, cookie: string | undefined): string | Buffer {
    const { body } = request;
    const begun = cookie === undefined ? this.#headOf(request) : this.#newHead(request, cookie);
    if (body === null) return `${begun}\r\n`;
    const bodyBytes = Buffer.byteLength(body);
    const head = `${begun}content-length: ${bodyBytes}\r\n\r\n`;
    if (bodyBytes === body.length) return head + body;
    const text = Buffer.allocUnsafe(head.length + bodyBytes);
    text.write(head, 0, 'latin1');
    text.write(body, head.length, 'utf8');
    return text;
  }

  #headOf(request: WrittenRequest): string {
    const { method, path, headers } = request;
    const last = this.#last;
    if (last?.headers === headers && last.method === method && last.path === path) return last.head;
    const head = this.#newHead(request);
    this.#last = { method, path, headers, head };
    return head;
  }

  #newHead({ method, path, headers }: WrittenRequest, cookie?: string): string {
    const lines = this.#linesWith(headers, cookie);
    return `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\nconnection: keep-alive\r\n${lines}`;
  }

  #linesWith(headers: HeaderFields, cookie: string | undefined): string {
    const added = cookie === undefined ? headers : { ...headers, cookie };
    for (const name in added) if (name in this.fields) return linesOf({ ...this.fields, ...added });
    this.#lines ??= linesOf(this.fields);
    return this.#lines + linesOf(added);
  }
}

function linesOf(fields: HeaderFields): string {
  let lines = '';
  for (const name in fields) {
    const value = fields[name] ?? '';
    if (!NAME.test(name) || !VALUE.test(value)) throw invalidHeader(name);
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

function invalidHeader(name: string): Error {
  return Object.assign(new Error(`the header ${JSON.stringify(name)} is invalid`), {
    code: 'ERR_INVALID_CHAR',
  });
}
