// A legacy endpoint with one session, and a client that talks to it.

import { mock } from 'node:test';
import type { ClientProfile } from '../../../src/domain/mcp/client.ts';
import type { JsonRpcId } from '../../../src/domain/mcp/jsonrpc.ts';
import { newSessionId } from '../../../src/domain/nodes/life.ts';
import { spreadClock, systemClock } from '../../../src/domain/time/clock.ts';
import type { McpRequest } from '../../../src/protocol/endpoint-types.ts';
import { KnownTasks } from '../../../src/protocol/known-tasks.ts';
import { LegacyEndpoint } from '../../../src/protocol/legacy/legacy-endpoint.ts';
import { RpcFailure } from '../../../src/protocol/rpc.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';
import { RecordedReply } from '../recorded-reply.ts';
import { SessionBackends } from '../scripted-backends.ts';

/** One refusal, as the HTTP room writes it. */
export interface Refusal {
  readonly status: number;
  readonly code: number;
  readonly id: JsonRpcId | null;
}

export interface Sent {
  readonly reply: RecordedReply;
  /** How it was refused; undefined when it was answered, or will be. */
  readonly done: Promise<Refusal | undefined>;
}

/** An endpoint with one session, of `ann`, and what a client says to it. `perTurn`: tasks in one turn of the event loop. */
export function legacyHarness(
  profile: Partial<ClientProfile> = {},
  id = 'one',
  onFault: (error: unknown) => void = () => {},
  perTurn = Number.POSITIVE_INFINITY,
) {
  const scheduler = untimedScheduler(perTurn);
  const endpoint = new LegacyEndpoint({
    ...{
      onFault,
      scheduler,
      tasks: new KnownTasks({ ...systemClock, now: () => harness.now() }),
      newSessionId: () => newSessionId('life-1--'),
    },
    clock: { ...spreadClock(scheduler, systemClock), now: () => harness.now() },
  });
  const backends = new SessionBackends();
  const session = backends.add(id, 'ann', profile);
  const charges: number[] = [];
  const harness = {
    endpoint,
    backends,
    session,
    charges,
    charge: (_requests: number): void | Promise<void> => {},
    /** The monotonic clock. Default: as the wall clock, which is simulated. */
    now: (): number => Date.now(),
    /** Default headers of every request. */
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-session-id': id,
      'mcp-protocol-version': session.profile.protocolVersion,
    } as Record<string, string | undefined>,
    send(
      method: McpRequest['method'],
      body: unknown,
      headers: Record<string, string | undefined> = {},
    ): Sent {
      const reply = new RecordedReply();
      return { reply, done: harness.sendTo(reply, method, body, headers) };
    },
    async sendTo(
      reply: RecordedReply,
      method: McpRequest['method'],
      body: unknown,
      headers: Record<string, string | undefined> = {},
    ): Promise<Refusal | undefined> {
      const { principal = 'ann' } = headers;
      const request: McpRequest = {
        method,
        headers: { ...harness.headers, ...headers },
        body: Buffer.alloc(0),
        pathName: 't',
        principal: { id: principal, kind: 'user', name: principal, scopes: new Set(['tools:call']) },
        report: () => ({ ended: () => {} }),
        requireRoom: () => {},
        consumeRateLimit: (requests) => {
          charges.push(requests);
          return harness.charge(requests);
        },
      };
      try {
        if (method === 'POST') await endpoint.post(body, { request, reply, backends });
        else if (method === 'GET') await endpoint.get({ request, reply, backends });
        else await endpoint.delete({ request, reply, backends });
        return undefined;
      } catch (thrown) {
        if (!(thrown instanceof RpcFailure)) throw thrown;
        return { status: thrown.status, code: thrown.error.code, id: thrown.id };
      }
    },
    /** Sends one message. */
    post: (message: unknown, headers?: Record<string, string | undefined>) =>
      harness.send('POST', message, headers),
    /** Calls a tool. */
    call: (callId: string | number = 0) => harness.post(request(callId, 'tools/call', { name: 'add' })),
    /** The sessions with traffic that the next sweep keeps. `setInterval` is simulated. */
    left: (): number => {
      pass(10_000);
      return endpoint.openTraffic;
    },
    /** Opens a stream by GET. */
    listen: (lastEventId?: string) => harness.send('GET', undefined, { 'last-event-id': lastEventId }),
  };
  return harness;
}

export function request(id: unknown, method: string, params?: unknown): Record<string, unknown> {
  return { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) };
}

export function notification(method: string, params?: unknown): Record<string, unknown> {
  return { jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) };
}

export function answer(id: unknown, result: unknown = {}): Record<string, unknown> {
  return { jsonrpc: '2.0', id, result };
}

/** Lets simulated time pass in the steps in which traffic is swept. */
export function pass(ms: number): void {
  for (let passed = 0; passed < ms; passed += 10_000) mock.timers.tick(10_000);
}
