// The actor that owns one transport, and with it one process or one connection: opens it, carries requests over it,
// says when it is gone. It decides nothing about health or restart (instance.machine.ts).

import { filter, firstValueFrom, lastValueFrom, throwError, timeout } from 'rxjs';
import { fromCallback } from 'xstate';
import { backendTimeout, backendUnavailable, GatewayError } from '../domain/errors.ts';
import type { ExchangeRequest } from '../domain/exchange.ts';
import { reasonOf } from '../domain/failures.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import type { JsonObject } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Peer, Tool } from '../domain/mcp.ts';
import type { Transport, TransportFacts } from '../transports/transport.ts';
import type { FinalEvent } from './final-answer.ts';
import { gatherPages } from './list-pages.ts';
import type { Reply } from './reply.ts';
import { ToolCache } from './tool-cache.ts';

/** An open session as its instance sees it. */
export interface SessionLink {
  readonly peer: Peer;
  readonly tools: ToolCache;
  facts(): TransportFacts;
  /** Sends a request of the gateway's own (a probe, a list) and resolves with its answer, at the latest after
   *  `timeoutMs`: then it rejects with BACKEND_TIMEOUT. */
  ask(request: ExchangeRequest, timeoutMs: number): Promise<FinalEvent>;
  /** When the backend last gave a sign of life, in ms of the gateway's monotonic clock. */
  heardAtMs(): number;
}

export interface SessionInput {
  readonly definition: InstanceDefinition;
  readonly open: (definition: InstanceDefinition, signal: AbortSignal) => Promise<Transport>;
  readonly now: () => number;
}

export type SessionCommand =
  | { readonly type: 'request'; readonly request: ExchangeRequest; readonly reply: Reply }
  | { readonly type: 'close' };

/** Why a session ended, and what its child said last on standard error. */
export interface SessionEnd {
  readonly reason: string;
  readonly stderr: readonly string[];
}

/**
 * `opened`: serves from now on. `lost`: serves no more, its calls are answered. `closed`: nothing is left of it.
 * `openingMs` is how long opening took; of a closed session only when it could not be opened.
 */
export type SessionFact =
  | { readonly type: 'session.opened'; readonly link: SessionLink; readonly openingMs: number }
  | ({ readonly type: 'session.lost' } & SessionEnd)
  | ({ readonly type: 'session.closed'; readonly openingMs?: number } & SessionEnd)
  | { readonly type: 'tools.changed' };

/** Callback logic: one `session.closed` is the last thing it says, however it ends. */
export const session = fromCallback<SessionCommand, SessionInput>(({ input, sendBack, receive }) => {
  const { definition, now } = input;
  const ending = new AbortController();
  const startedAtMs = now();
  let transport: Transport | undefined;
  let heardAtMs = startedAtMs;
  const heard = () => {
    heardAtMs = now();
  };

  receive((command) => {
    if (command.type === 'close') return end();
    if (transport === undefined || ending.signal.aborted) return command.reply.error(notConnected());
    try {
      command.reply.follow(transport.exchange(command.request), heard);
    } catch (thrown) {
      command.reply.error(thrown); // a fault of the transport costs one call, not the session
    }
  });

  // Errors of an async function are not routed by the callback actor: everything is caught in here.
  void run();
  return end;

  async function run(): Promise<void> {
    let opened: Transport;
    try {
      opened = await input.open(definition, ending.signal);
    } catch (thrown) {
      const failed = ending.signal.aborted ? {} : { openingMs: now() - startedAtMs };
      return sendBack({ type: 'session.closed', ...endOf(thrown), ...failed });
    }
    transport = opened;
    const end = await lifeOf(opened);
    if (!ending.signal.aborted) sendBack({ type: 'session.lost', ...end });
    await letGo(opened);
    sendBack({ type: 'session.closed', ...end });
  }

  /** Resolves with why it ended. */
  async function lifeOf(opened: Transport): Promise<SessionEnd> {
    try {
      if (ending.signal.aborted) void letGo(opened);
      else begin(opened);
      const { reason } = await firstValueFrom(opened.closed$);
      return { reason, stderr: opened.facts().stderr };
    } catch (thrown) {
      return endOf(thrown);
    }
  }

  function begin(opened: Transport): void {
    const ask = (request: ExchangeRequest, timeoutMs: number) => answerOf(opened, request, timeoutMs);
    const tools = new ToolCache(() => listTools(opened), now);
    heard();
    opened.messages$.subscribe({
      next: ({ method }) => {
        heard();
        if (method !== 'notifications/tools/list_changed') return;
        void tools.drop();
        sendBack({ type: 'tools.changed' });
      },
      error: () => undefined, // messages$ ends with the transport; closed$ tells why
    });
    void tools.refresh();
    sendBack({
      type: 'session.opened',
      openingMs: now() - startedAtMs,
      link: { peer: opened.peer, tools, ask, facts: () => opened.facts(), heardAtMs: () => heardAtMs },
    });
  }

  function end(): void {
    ending.abort();
    if (transport !== undefined) void letGo(transport);
  }
});

/** The error of a request to an instance without a session: it was certainly not delivered. */
export function notConnected(): GatewayError {
  return backendUnavailable('it is not connected', { delivered: 'no' });
}

async function listTools(transport: Transport): Promise<Tool[]> {
  const { era, capabilities } = transport.peer;
  if (era !== 'bare' && capabilities.tools === undefined) return [];
  const items = await gatherPages('tools', async (request) => {
    const answer = await answerOf(transport, request, LIMITS.toolListMs);
    if (answer.kind === 'error') throw backendUnavailable('it does not list its tools', { delivered: 'yes' });
    return answer.result.value;
  });
  return items.filter(isTool);
}

function isTool(item: JsonObject): item is JsonObject & Tool {
  return typeof item.name === 'string';
}

/** One request of the gateway's own over a transport; unanswered after `timeoutMs` it is cancelled. */
function answerOf(transport: Transport, request: ExchangeRequest, timeoutMs: number): Promise<FinalEvent> {
  return lastValueFrom(
    transport.exchange(request).pipe(
      filter((event) => event.kind !== 'notification'),
      timeout({ each: timeoutMs, with: () => throwError(() => backendTimeout(timeoutMs)) }),
    ),
  );
}

/** Transports promise that closing never fails; the gateway does not stand or fall with it. */
async function letGo(transport: Transport): Promise<void> {
  try {
    await transport.close();
  } catch {
    // Whatever it could not close, there is nobody left who could close it better.
  }
}

function endOf(thrown: unknown): SessionEnd {
  const stderr = thrown instanceof GatewayError ? thrown.facts.stderr : undefined;
  return { reason: reasonOf(thrown), stderr: stderr ?? [] };
}
