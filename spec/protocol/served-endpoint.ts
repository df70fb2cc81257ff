// A legacy endpoint on a real port, in front of one real backend: each session of a client is a conversation of its own
// where the backend's era has such, else the instance's. Only what official clients need to be tried out.

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { map } from 'rxjs';
import { ANONYMOUS } from '../../src/domain/account.ts';
import type { ClientProfile } from '../../src/domain/client.ts';
import type { ExchangeRequest } from '../../src/domain/exchange.ts';
import type { McpEvent, McpReply, McpStream } from '../../src/protocol/endpoint-types.ts';
import { LegacyEndpoint } from '../../src/protocol/legacy/legacy-endpoint.ts';
import type { Backends, McpSession, Owner } from '../../src/protocol/ports.ts';
import { failureOf } from '../../src/protocol/rpc.ts';
import type { Transport } from '../../src/transports/transport.ts';
import { steadyPace } from '../helpers/turns.ts';
import { ScriptedBackends } from './scripted-backends.ts';

export interface ServedEndpoint {
  readonly url: URL;
  readonly endpoint: LegacyEndpoint;
  /** Methods of HTTP, in order; a resuming GET is `GET after an event`. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

/** Serves one transport. Closing leaves the transport open. */
export async function serveEndpoint(transport: Transport): Promise<ServedEndpoint> {
  const endpoint = new LegacyEndpoint({ onFault: () => {}, scheduler: steadyPace() });
  const backends = new RealBackends(transport);
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    requests.push(
      request.headers['last-event-id'] ? `${request.method} after an event` : `${request.method}`,
    );
    const reply = new HttpReply(response);
    await talk(endpoint, backends, request, reply).catch((thrown: unknown) => {
      const failure = failureOf(thrown);
      reply.json(failure.status, failure.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return {
    url: new URL(`http://127.0.0.1:${address.port}/mcp`),
    endpoint,
    requests,
    async close() {
      endpoint.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all([...backends.sessions.values()].map((session) => session.close()));
    },
  };
}

async function talk(
  endpoint: LegacyEndpoint,
  backends: Backends,
  incoming: IncomingMessage,
  reply: McpReply,
): Promise<void> {
  const { method, headers } = incoming;
  const body = await buffer(incoming);
  const rest = { headers, body, template: 't', principal: ANONYMOUS, consumeRateLimit: () => {} };
  if (method === 'GET') await endpoint.get({ ...rest, method }, reply, backends);
  else if (method === 'DELETE') await endpoint.delete({ ...rest, method }, reply, backends);
  else await endpoint.post(JSON.parse(String(body)), { ...rest, method: 'POST' }, reply, backends);
}

class RealBackends extends ScriptedBackends {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    super();
    this.#transport = transport;
  }

  override async openSession(owner: Owner, profile: ClientProfile): Promise<McpSession> {
    const isShared = this.#transport.peer.era !== 'legacy';
    const { signal } = new AbortController();
    const upstream = isShared ? this.#transport : await this.#transport.openUpstream(profile, signal);
    if (upstream === undefined) throw new Error('the backend keeps no conversation for a single client');
    this.peer = upstream.peer;
    const session = this.add(randomUUID(), owner.id, profile);
    return Object.assign(session, {
      isShared,
      exchange: (request: ExchangeRequest) =>
        upstream.exchange(request).pipe(map((event) => ({ event, instanceId: 'one', serverId: 't.one' }))),
      notify: upstream.notify.bind(upstream),
      messages: upstream.messages$,
      close: async () => {
        session.isClosed = true;
        if (!isShared) await upstream.close();
      },
    });
  }
}

class HttpReply implements McpReply {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  json(status: number, body: Uint8Array | string, headers: readonly string[] = []): void {
    this.#response.writeHead(status, [...headers, 'content-type', 'application/json']).end(body);
  }

  event(data: Uint8Array | string, headers: readonly string[] = []): void {
    this.#response
      .writeHead(200, [...headers, 'content-type', 'text/event-stream'])
      .end(`data: ${Buffer.from(data)}\n\n`);
  }

  empty(status: number): void {
    this.#response.writeHead(status, ['content-length', '0']).end();
  }

  stream(): McpStream {
    const response = this.#response.writeHead(200, ['content-type', 'text/event-stream']);
    response.flushHeaders();
    return {
      send({ data, id, retryMs }: McpEvent) {
        if (id !== undefined) response.write(`id: ${id}\n`);
        if (retryMs !== undefined) response.write(`retry: ${retryMs}\n`);
        response.write('data: ');
        response.write(data);
        response.write('\n\n');
      },
      end: () => response.end(),
      get unsentBytes() {
        return response.writableLength;
      },
    };
  }

  onGone(listener: () => void): void {
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) listener();
    });
  }

  from(): void {}
  asks(): void {}
  batches(): void {}
  fails(): void {}
  opens(): void {}
}
