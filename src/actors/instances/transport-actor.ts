// The actor that owns one transport, and with it one process or connection: it opens the transport, offers it for
// requests, and reports its end. instance.machine.ts decides about health and restarts.

import { firstValueFrom, from, map, race } from 'rxjs';
import { fromCallback } from 'xstate';
import type { TemplatePolicy } from '../../balancing/policy.ts';
import { GatewayError, type HttpRefusal, reasonOf } from '../../domain/errors/errors.ts';
import type { ProgramEnd } from '../../domain/instances/found-instances.ts';
import type { ListField } from '../../domain/mcp/mcp.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import { closeQuietly } from '../../transports/close-quietly.ts';
import type { Open, WithheldTool } from '../../transports/open-options.ts';
import type { Transport, TransportDiagnostics } from '../../transports/transport.ts';
import type { DedicatedConversations } from './dedicated-conversations.ts';
import { OpenedTransport, type OpenedTransportDeps } from './opened-transport.ts';
import type { ToolCache } from './tool-cache.ts';

/** Longest silence after the handshake of the modern era before the legacy one is tried, once. */
const SILENT_ERA_MS = 5_000;

export interface TransportInput extends OpenedTransportDeps {
  readonly open: Open;
  readonly dedicated: Pick<DedicatedConversations, 'remainingConversations'>;
  readonly policy: Pick<TemplatePolicy, 'startTimeoutMs'>;
}

/** Why a transport ended. */
interface TransportEnd extends ProgramEnd {
  /** The last lines that its program wrote to standard error. */
  readonly stderr: readonly string[];
  /** The response by which a server refused the opening over HTTP. Default: it did not. */
  readonly refusal?: HttpRefusal | undefined;
}

/**
 * The reports of the transport to its instance. `starting`: the program was started, perhaps repeatedly. `opened`:
 * the transport serves from now on. `lost`: it serves no longer, and its calls have their answers. `closed`: nothing
 * is left of it. `openingMs`: the duration of the opening; of a closed transport only when the opening failed.
 */
export type TransportReport =
  | { readonly type: 'transport.starting'; readonly diagnostics: () => TransportDiagnostics }
  | { readonly type: 'transport.opened'; readonly opened: OpenedTransport; readonly openingMs: number }
  | ({ readonly type: 'transport.lost' } & TransportEnd)
  | ({ readonly type: 'transport.closed'; readonly openingMs?: number } & TransportEnd)
  | { readonly type: 'list.changed'; readonly list: ListField }
  | { readonly type: 'list.cut'; readonly list: ListField; readonly reason: string }
  | ({ readonly type: 'tool.withheld' } & WithheldTool)
  /** The node that runs the instance drains it, or takes it back: this one does the same with it. */
  | { readonly type: 'drain' | 'resume' };

/**
 * Owns one transport. `transport.closed` is always its last event. Stopping the actor closes the transport, and so does
 * `close`, which calls `closed` when nothing is left of it.
 */
export const transportActor = fromCallback<
  { readonly type: 'close'; readonly closed?: () => void },
  TransportInput
>(({ input, sendBack, receive }) => {
  const { dedicated, policy, clock } = input;
  const ending = new AbortController();
  const startedAtMs = clock.now();
  let transport: Transport | undefined;
  let tools: ToolCache | undefined;
  /** Why the transport is closed before it counts as open. */
  let leaving: string | undefined;

  // The callback actor does not see errors of an async function, which therefore catches all.
  const ended = run();

  receive(({ closed }) => {
    close();
    void ended.then(closed);
  });
  return close;

  async function run(): Promise<void> {
    let started: Transport;
    try {
      started = await input.open(ending.signal, {
        startTimeoutMs: policy.startTimeoutMs,
        onStarted: (diagnostics) => sendBack({ type: 'transport.starting', diagnostics }),
        onWithheld: (withheld) => sendBack({ type: 'tool.withheld', ...withheld }),
        relistTools: () => tools?.lookUp(),
        room: () => dedicated.remainingConversations,
        onDraining: (isDraining) => sendBack({ type: isDraining ? 'drain' : 'resume' }),
      });
    } catch (thrown) {
      const failed = ending.signal.aborted ? {} : { openingMs: clock.now() - startedAtMs };
      return sendBack({ type: 'transport.closed', ...endOf(thrown), ...failed });
    }
    transport = started;
    const end = await untilClosed(started);
    if (!ending.signal.aborted) sendBack({ type: 'transport.lost', ...end });
    tools?.forget();
    await closeQuietly(started);
    sendBack({ type: 'transport.closed', ...end });
  }

  async function untilClosed(started: Transport): Promise<TransportEnd> {
    try {
      if (ending.signal.aborted) void closeQuietly(started);
      else follow(started);
      const { expected, ...end } = await firstValueFrom(started.closed$);
      transport = undefined;
      const { stderr } = started.diagnostics();
      return leaving === undefined ? { ...end, stderr } : { reason: leaving, stderr };
    } catch (thrown) {
      return endOf(thrown);
    }
  }

  function follow(started: Transport): void {
    let lastCut: string | undefined;
    const onCut = (reason: string): void => {
      if (reason !== lastCut) sendBack({ type: 'list.cut', list: 'tools', reason });
      lastCut = reason;
    };
    const opened = new OpenedTransport(started, input, onCut);
    tools = opened.tools;
    started.messages$.subscribe(opened.noteMessage);
    opened.feed.listChanges$.subscribe((list) => {
      if (list === 'tools') void opened.tools.invalidate();
      sendBack({ type: 'list.changed', list });
    });
    const listed = opened.tools.refresh();
    if (started.handshake.era !== 'modern' || started.leaveEra === undefined) announce(opened);
    else
      void answersIn(opened, listed, input.clock).then((answers) => {
        if (ending.signal.aborted || transport !== started) return;
        if (answers || started.leaveEra?.() !== true) announce(opened);
        else {
          leaving = 'it announces the modern era but answers nothing in it; the legacy era is tried';
          void closeQuietly(started);
        }
      });
  }

  function announce(opened: OpenedTransport): void {
    sendBack({ type: 'transport.opened', openingMs: clock.now() - startedAtMs, opened });
  }

  function close(): void {
    ending.abort();
    if (transport !== undefined) void closeQuietly(transport);
  }
});

/**
 * Resolves with false when the backend has sent nothing within SILENT_ERA_MS after its tools were requested.
 * Source: ADR 121.
 */
function answersIn(opened: OpenedTransport, listed: Promise<void>, clock: Clock): Promise<boolean> {
  const { lastMessageAtMs } = opened;
  const listed$ = from(listed).pipe(map(() => true));
  const silent$ = timer$(clock, SILENT_ERA_MS).pipe(map(() => opened.lastMessageAtMs > lastMessageAtMs));
  return firstValueFrom(race(listed$, silent$));
}

function endOf(thrown: unknown): TransportEnd {
  const stderr = thrown instanceof GatewayError ? thrown.facts.stderr : undefined;
  return { reason: reasonOf(thrown), stderr: stderr ?? [], refusal: refusalOf(thrown) };
}

/** The response by which a server refused a request over HTTP; undefined when it did not. */
export function refusalOf(thrown: unknown): HttpRefusal | undefined {
  return thrown instanceof GatewayError ? thrown.facts.refusal : undefined;
}
