// Between a suite and `/mcp`, where names begin with that of their template: the suite sees and uses the names of the fixture. Everything
// else passes as it is, so that the checks compare what the gateway does and not how it names things.

import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Transform, type TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Methods whose parameter is the name of a tool or prompt, or a reference to one. */
const NAMED = new Set(['tools/call', 'prompts/get', 'completion/complete']);

export interface OwnNames {
  readonly url: string;
  close(): Promise<void>;
}

/** Opens the endpoint in front of a gateway. The caller closes it. */
export async function openOwnNames(gateway: string, prefix: string): Promise<OwnNames> {
  const server = createServer((incoming, response) => {
    // Whichever side ends first, the other one ends too: what is lost then is a check that fails.
    forward(incoming, response, gateway, prefix).catch(() => response.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

async function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  gateway: string,
  prefix: string,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const sent = Buffer.concat(chunks);
  const body = withPrefix(sent, prefix);
  const headers = { ...incoming.headers };
  if (body !== sent) headers['content-length'] = String(body.length);
  if (body !== sent && headers['mcp-name'] !== undefined) headers['mcp-name'] = prefix + headers['mcp-name'];
  const outgoing = request(gateway + incoming.url, {
    method: incoming.method ?? 'GET',
    headers,
    agent: false,
  });
  response.once('close', () => outgoing.destroy());
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const { 'content-length': _, ...others } = answer.headers;
  response.writeHead(answer.statusCode ?? 500, others).flushHeaders();
  await pipeline(answer, withoutPrefix(prefix), response);
}

/** The request with the name that it has at `/mcp`; the same bytes when it names nothing. */
function withPrefix(sent: Buffer, prefix: string): Buffer {
  try {
    const message = JSON.parse(sent.toString());
    if (!NAMED.has(message.method)) return sent;
    const named = message.params.ref ?? message.params;
    if (typeof named.name !== 'string') return sent;
    named.name = prefix + named.name;
    return Buffer.from(JSON.stringify(message));
  } catch {
    return sent; // suites send malformed messages on purpose
  }
}

/** Removes the prefix, also where two chunks have a part of it each. */
function withoutPrefix(prefix: string): Transform {
  const quoted = `"${prefix}`;
  let kept = '';
  const transform = (chunk: Buffer, _encoding: string, done: TransformCallback): void => {
    const text = kept + chunk.toString('latin1');
    const last = text.lastIndexOf('"');
    const isOpen = last >= 0 && quoted.length > text.length - last && quoted.startsWith(text.slice(last));
    kept = isOpen ? text.slice(last) : '';
    const whole = isOpen ? text.slice(0, last) : text;
    done(null, Buffer.from(whole.replaceAll(quoted, '"'), 'latin1'));
  };
  return new Transform({ transform, flush: (done) => done(null, Buffer.from(kept, 'latin1')) });
}
