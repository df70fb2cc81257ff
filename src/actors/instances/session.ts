// The actor that owns one transport, and with it one process or one connection: opens it, offers it as a link for requests, and
// reports its end. instance.machine.ts decides about health and restarts.

import {
  defer,
  filter,
  firstValueFrom,
  lastValueFrom,
  type Observable,
  takeUntil,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import { fromCallback } from 'xstate';
import { backendTimeout, backendUnavailable, notConnected } from '../../domain/error-catalogue.ts';
import { GatewayError, reasonOf } from '../../domain/errors.ts';
import { type ExchangeEvent, type ExchangeRequest, type FinalEvent, isFinal } from '../../domain/exchange.ts';
import type { InstanceDefinition, TransportKind } from '../../domain/instance.ts';
import type { JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { changedList, type ListField, type Tool } from '../../domain/mcp.ts';
import type { Open } from '../../transports/opening.ts';
import type { OmittedTool, Transport, TransportFacts, Upstream } from '../../transports/transport.ts';
import { gatherPages } from '../calls/list-pages.ts';
import { listChanges } from '../sharing/listen-client.ts';
import { closeQuietly } from './conversation.ts';
import type { Leases } from './leases.ts';
import { ToolCache } from './tool-cache.ts';

export interface SessionLink
  extends Pick<Transport, 'peer' | 'messages$' | 'facts' | 'notify' | 'openUpstream'> {
  /** The transport that the endpoint turned out to speak. Undefined: as registered. */
  readonly transport?: TransportKind | undefined;
  readonly tools: ToolCache;
  /**
   * One call, in the conversation of the instance or in a dedicated one that depends on it. Throws BACKEND_UNAVAILABLE once the
   * session is ending. The caller reports each emitted message to `noteMessage`.
   */
  exchange(request: ExchangeRequest, upstream: Upstream | undefined): Observable<ExchangeEvent>;
  noteMessage(): void;
  /** The answer to a request of the gateway itself (a probe, a list). Rejects with BACKEND_TIMEOUT after `timeoutMs`. */
  ask(request: ExchangeRequest, timeoutMs: number): Promise<FinalEvent>;
  /** Like Transport.exchange, for what stays open and is no call: neither counted nor timed. */
  listen(request: ExchangeRequest): Observable<ExchangeEvent>;
  /** Time of the last message of the backend, in ms of the gateway's monotonic clock. */
  lastMessageAtMs(): number;
}

export interface SessionInput {
  readonly definition: InstanceDefinition;
  readonly open: Open;
  readonly now: () => number;
  readonly leases: Pick<Leases, 'end' | 'room'>;
}

/** `close`: closes the transport. `end`: also the dedicated conversations. */
export type SessionCommand = { readonly type: 'close' | 'end' };

/** Why a session ended, and the last lines on standard error of its child. */
export interface SessionEnd {
  readonly reason: string;
  readonly stderr: readonly string[];
}

/**
 * `starting`: the program was started, perhaps repeatedly. `opened`: serves from now on. `lost`: no longer serves, its calls are
 * answered. `closed`: nothing is left of it. `suspected`: something failed, but no call; see Transport.suspected$. `openingMs`: the
 * duration of the opening; of a closed session only when opening failed.
 */
export type SessionChange =
  | { readonly type: 'session.starting'; readonly facts: () => TransportFacts }
  | { readonly type: 'session.opened'; readonly link: SessionLink; readonly openingMs: number }
  | ({ readonly type: 'session.lost' } & SessionEnd)
  | ({ readonly type: 'session.closed'; readonly openingMs?: number } & SessionEnd)
  | { readonly type: 'suspected' }
  | { readonly type: 'list.changed'; readonly list: ListField }
  | ({ readonly type: 'tool.omitted' } & OmittedTool);

/** Callback logic: one `session.closed` is always its last event. Stopping it closes the transport. */
export const session = fromCallback<SessionCommand, SessionInput>(({ input, sendBack, receive }) => {
  const { definition, now } = input;
  const ending = new AbortController();
  const startedAtMs = now();
  let transport: Transport | undefined;
  let endOfLeases: Promise<void> | undefined;
  let lastMessageAtMs = startedAtMs;
  const noteMessage = () => {
    lastMessageAtMs = now();
  };

  receive(({ type }) => (type === 'close' ? close() : end()));

  // Errors of an async function are not routed by the callback actor: everything is caught in here.
  void run();
  return close;

  async function run(): Promise<void> {
    let opened: Transport;
    try {
      opened = await input.open(definition, ending.signal, {
        onStarted: (facts) => sendBack({ type: 'session.starting', facts }),
        room: () => input.leases.room,
      });
    } catch (thrown) {
      const failed = ending.signal.aborted ? {} : { openingMs: now() - startedAtMs };
      if (endOfLeases !== undefined) await endOfLeases;
      return sendBack({ type: 'session.closed', ...endOf(thrown), ...failed });
    }
    transport = opened;
    const end = await untilClosed(opened);
    if (!ending.signal.aborted) sendBack({ type: 'session.lost', ...end });
    await closeQuietly(opened);
    if (endOfLeases !== undefined) await endOfLeases;
    sendBack({ type: 'session.closed', ...end });
  }

  /** Resolves with the reason of the end. */
  async function untilClosed(opened: Transport): Promise<SessionEnd> {
    try {
      if (ending.signal.aborted) void closeQuietly(opened);
      else follow(opened);
      const { reason } = await firstValueFrom(opened.closed$);
      return { reason, stderr: opened.facts().stderr };
    } catch (thrown) {
      return endOf(thrown);
    }
  }

  function follow(opened: Transport): void {
    const link = linkOf(opened);
    const changed = (list: ListField) => {
      if (list === 'tools') void link.tools.invalidate();
      sendBack({ type: 'list.changed', list });
    };
    noteMessage();
    opened.messages$.subscribe({
      next: ({ method }) => {
        noteMessage();
        const list = changedList(method);
        if (list !== undefined) changed(list);
      },
      error: () => undefined, // messages$ ends with the transport; closed$ has the reason
    });
    opened.omitted$?.pipe(takeUntil(opened.closed$)).subscribe({
      next: (omitted) => sendBack({ type: 'tool.omitted', ...omitted }),
      error: () => undefined, // as above
    });
    opened.suspected$?.pipe(takeUntil(opened.closed$)).subscribe({
      next: () => sendBack({ type: 'suspected' }),
      error: () => undefined, // as above
    });
    void link.tools.refresh();
    sendBack({ type: 'session.opened', openingMs: now() - startedAtMs, link });
    listChanges(opened.peer, { listen: link.listen, now })
      .pipe(takeUntil(opened.closed$))
      .subscribe({ next: changed, error: () => undefined }); // as above
  }

  function linkOf(opened: Transport): SessionLink {
    return {
      transport: opened.kind,
      peer: opened.peer,
      tools: new ToolCache(
        () => listTools(opened),
        now,
        () => sendBack({ type: 'list.changed', list: 'tools' }),
      ),
      messages$: opened.messages$,
      facts: () => opened.facts(),
      exchange: (request, upstream = opened) => {
        if (ending.signal.aborted) throw notConnected();
        return upstream.exchange(request);
      },
      noteMessage,
      ask: (request, timeoutMs) => answerOf(opened, request, timeoutMs),
      listen: (request) => defer(() => opened.exchange(request)).pipe(tap(noteMessage)),
      notify: (method, params) => opened.notify(method, params),
      openUpstream: (...whose) => opened.openUpstream(...whose),
      lastMessageAtMs: () => lastMessageAtMs,
    };
  }

  function close(): void {
    ending.abort();
    if (transport !== undefined) void closeQuietly(transport);
  }

  function end(): void {
    endOfLeases = input.leases.end();
    close();
  }
});

/** Every tool that the backend of a transport lists. BACKEND_UNAVAILABLE, BACKEND_TIMEOUT. */
export async function listTools(transport: Transport): Promise<Tool[]> {
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

/** One request of the gateway itself; cancelled after `timeoutMs`. */
function answerOf(transport: Transport, request: ExchangeRequest, timeoutMs: number): Promise<FinalEvent> {
  return lastValueFrom(
    transport
      .exchange(request)
      .pipe(
        filter(isFinal),
        timeout({ each: timeoutMs, with: () => throwError(() => backendTimeout(timeoutMs)) }),
      ),
  );
}

function endOf(thrown: unknown): SessionEnd {
  const stderr = thrown instanceof GatewayError ? thrown.facts.stderr : undefined;
  return { reason: reasonOf(thrown), stderr: stderr ?? [] };
}
