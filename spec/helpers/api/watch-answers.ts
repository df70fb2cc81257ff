// Checks every answer of an app in this process against the API description. The runner starts it before a spec file and
// fails the file for each difference. Answers of other servers, such as the misbehaving fixtures, are not checked: an app
// reports its requests on a diagnostics channel.

import { subscribe } from 'node:diagnostics_channel';
import { IncomingMessage, ServerResponse } from 'node:http';
import type { AnswerCheck, SeenAnswer } from './answer-check.ts';

/** Called with each difference as one line, with the request. */
export type OnIssue = (issue: string) => void;

/**
 * Starts to check answers. The document is made at the first answer, so that a process without an app has no cost.
 * Returns a function that waits for pending checks.
 */
export function watchAnswers(onIssue: OnIssue): () => Promise<void> {
  let check: AnswerCheck | undefined;
  let loading: Promise<void> | undefined;
  const waiting: SeenAnswer[] = [];
  const look = (answer: SeenAnswer): void => {
    if (check === undefined) {
      waiting.push(answer);
      loading ??= loadCheck().then((loaded) => {
        check = loaded;
        for (const early of waiting.splice(0)) look(early);
      });
      return;
    }
    for (const issue of check(answer))
      onIssue(`${answer.method} ${answer.target} ${answer.status}: ${issue}`);
  };
  subscribe('stagedoor:request', (message) => {
    if (!isArrival(message)) throw new TypeError('a message on stagedoor:request that is not a request');
    record(message, look);
  });
  return async () => {
    await loading;
  };
}

/** Larger bodies are not checked, such as long lists or tool results. */
const CHECKED_BYTES = 1024 * 1024;

interface Arrival {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

function isArrival(message: unknown): message is Arrival {
  const { request, response } = Object(message);
  return request instanceof IncomingMessage && response instanceof ServerResponse;
}

async function loadCheck(): Promise<AnswerCheck> {
  const [{ openApiDocument }, { ROUTES }, { answerCheck }] = await Promise.all([
    import('../../../src/http/openapi/openapi-document.ts'),
    import('../../../src/http/routes/index.ts'),
    import('./answer-check.ts'),
  ]);
  // Serialized and parsed, as clients receive it.
  return answerCheck(JSON.parse(JSON.stringify(openApiDocument(ROUTES))));
}

/** Calls back when the answer is complete; ignores aborted answers. */
function record({ request, response }: Arrival, look: (answer: SeenAnswer) => void): void {
  const { method = '', url: target = '' } = request;
  const headers = new Map<string, string>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const keep = ([chunk, encoding]: readonly unknown[]): void => {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) return;
    const known = typeof encoding === 'string' && Buffer.isEncoding(encoding) ? encoding : 'utf8';
    bytes += typeof chunk === 'string' ? Buffer.byteLength(chunk, known) : chunk.byteLength;
    // Not copied before: the memory of the program is measured.
    if (bytes > CHECKED_BYTES) return;
    chunks.push(typeof chunk === 'string' ? Buffer.from(chunk, known) : Buffer.from(chunk));
  };
  before(response, 'writeHead', ([, ...more]) => {
    for (const [name, value] of headerPairs(more.at(-1))) headers.set(name.toLowerCase(), value);
  });
  before(response, 'write', keep);
  before(response, 'end', (parts) => {
    keep(parts);
    response.once('finish', () => {
      for (const [name, value] of headerPairs(response.getHeaders())) {
        if (!headers.has(name)) headers.set(name, value);
      }
      const body = bytes <= CHECKED_BYTES ? Buffer.concat(chunks) : undefined;
      look({ method, target, status: response.statusCode, headers, body });
    });
  });
}

/** Observes the arguments of a method of one response, then calls the method. */
function before(
  response: ServerResponse,
  method: 'writeHead' | 'write' | 'end',
  see: (parts: readonly unknown[]) => void,
): void {
  const original = response[method];
  Reflect.defineProperty(response, method, {
    configurable: true,
    writable: true,
    value: (...parts: unknown[]): unknown => {
      see(parts);
      return Reflect.apply(original, response, parts);
    },
  });
}

/** Headers in both forms that Node takes: an object, or names and values in turn. */
function headerPairs(headers: unknown): [name: string, value: string][] {
  if (Array.isArray(headers)) {
    return headers.flatMap((name, index) =>
      index % 2 === 0 ? [[String(name), String(headers[index + 1])]] : [],
    );
  }
  return typeof headers === 'object' && headers !== null
    ? Object.entries(headers).map(([name, value]) => [name, String(value)])
    : [];
}
