// What specs of the first contact with an HTTP backend share: a server that treats each method as the spec says, what an
// opening asked of it, and what came of that.

import type { ServerResponse } from 'node:http';
import { GatewayError } from '../../../src/domain/errors.ts';
import { openHttp } from '../../../src/transports/http/http.ts';
import type { OpeningMemory } from '../../../src/transports/transport.ts';
import { answerJson, messageOf, withRawServer } from '../raw-server.ts';
import { httpDefinition, openOptions } from './open-http.ts';

/** What a server does with one request. */
export type Answer = (response: ServerResponse, id: unknown) => void;

const LEGACY = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  serverInfo: { name: 'legacy', version: '1' },
};
const MODERN = { supportedVersions: ['2026-07-28'], capabilities: {}, resultType: 'complete' };

const result =
  (value: object, headers: object = {}): Answer =>
  (response, id) =>
    answerJson(response, 200, { jsonrpc: '2.0', id, result: value }, headers);

/** Answers to `initialize`, to `server/discover`, and to both. */
export const initialized = result(LEGACY);
export const initializedInSession = result(LEGACY, { 'mcp-session-id': 'given' });
export const discovered = result(MODERN);
export const refused =
  (status = 200, code = -32601): Answer =>
  (response, id) =>
    answerJson(response, status, { jsonrpc: '2.0', id, error: { code, message: 'no' } });
export const status =
  (code: number, body = ''): Answer =>
  (response) =>
    void response.writeHead(code, { location: '/elsewhere', 'content-type': 'text/html' }).end(body);
export const silence: Answer = () => {};
/** An event stream on which nothing ever comes. */
export const emptyStream: Answer = (response) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
export const cut: Answer = (response) => void response.socket?.resetAndDestroy();

/** The answers of one server, by method; `otherwise` for methods without one. */
export interface Manners {
  readonly [method: string]: Answer;
  readonly otherwise: Answer;
}

/** A server under test. */
export interface Contact {
  /** What came of one more opening, and what was asked meanwhile, session deletes included. */
  open(more?: Opening): Promise<{ readonly outcome: string; readonly asked: readonly string[] }>;
  /** It treats methods so from now on. */
  behave(manners: Manners): void;
  /** Questions so far. */
  readonly asked: readonly string[];
}

interface Opening {
  readonly memory?: OpeningMemory;
  readonly discoverTimeoutMs?: number | undefined;
  readonly handshakeTimeoutMs?: number | undefined;
  /** What happens before it is closed. */
  readonly meanwhile?: () => Promise<void>;
}

/** Runs the body against such a server. Everything but the listening stream, which there is none of, is counted. */
export async function withContact(
  manners: Manners,
  body: (contact: Contact) => Promise<void>,
  path = '/mcp',
): Promise<void> {
  const asked: string[] = [];
  let present = manners;
  const listener = async (...[request, response]: Parameters<Parameters<typeof withRawServer>[0]>) => {
    if (request.method === 'GET') return void response.writeHead(405).end();
    const { id, method } = await messageOf(request);
    asked.push(request.method === 'DELETE' ? 'DELETE' : String(method));
    if (id === undefined) return void response.writeHead(202).end();
    (present[String(method)] ?? present.otherwise)(response, id);
  };
  await withRawServer(listener, ({ url }) =>
    body({
      asked,
      behave: (others) => {
        present = others;
      },
      open: async ({ memory, discoverTimeoutMs, handshakeTimeoutMs = 20_000, meanwhile } = {}) => {
        const before = asked.length;
        const options = openOptions({ memory, handshakeTimeoutMs });
        const definition = httpDefinition(String(new URL(path, url)));
        const outcome = await openHttp(definition, options, { discoverTimeoutMs }).then(
          async (transport) => {
            await meanwhile?.();
            await transport.close();
            return transport.peer.era;
          },
          (thrown: unknown) => (thrown instanceof GatewayError ? thrown.facts.reason : String(thrown)),
        );
        return { outcome: outcome ?? '', asked: asked.slice(before) };
      },
    }),
  );
}
