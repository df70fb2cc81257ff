// The actor that owns one transport, and with it one process or connection: it opens the transport, offers it for
// requests, and reports its end. instance.machine.ts decides about health and restarts.

import { firstValueFrom, from, map, race } from 'rxjs';
import { fromCallback } from 'xstate';
import type { TemplatePolicy } from '../../balancing/policy.ts';
import { GatewayError, type HttpRefusal, reasonOf } from '../../domain/errors/errors.ts';
import type { ProgramEnd } from '../../domain/instances/found-instances.ts';
import type { HostDuty } from '../../domain/instances/instance.ts';
import type { ListField } from '../../domain/mcp/mcp.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import { closeQuietly } from '../../transports/close-quietly.ts';
import type { Open, WithheldTool } from '../../transports/open-options.ts';
import type { Transport, TransportDiagnostics } from '../../transports/transport.ts';
import type { DedicatedConversations } from './dedicated-conversations.ts';
import { InstanceTransport } from './instance-transport.ts';
import type { ToolCache, ToolRules } from './tool-cache.ts';

/** Longest silence after the handshake of the modern era before the legacy one is tried, once. */
const SILENT_ERA_MS = 5_000;

/** What the transport of an instance needs of its context. */
export interface TransportInput extends Timing {
  readonly toolRules: ToolRules;
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
  /** True when it is to be opened again at once: see Closed. */
  readonly opensAtOnce?: boolean;
}

/**
 * The reports of the transport to its instance. `starting`: the program was started, perhaps repeatedly. `opened`:
 * the transport serves from now on. `lost`: it serves no longer, and its calls have their answers. `closed`: nothing
 * is left of it. `openingMs`: the duration of the opening; of a closed transport only when the opening failed.
 */
export type TransportReport =
  | { readonly type: 'transport.starting'; readonly diagnostics: () => TransportDiagnostics }
  | { readonly type: 'transport.opened'; readonly opened: InstanceTransport; readonly openingMs: number }
  | ({ readonly type: 'transport.lost' } & TransportEnd)
  | ({ readonly type: 'transport.closed'; readonly openingMs?: number } & TransportEnd)
  | { readonly type: 'list.changed'; readonly list: ListField }
  | { readonly type: 'list.cut'; readonly list: ListField; readonly reason: string }
  | ({ readonly type: 'tool.withheld' } & WithheldTool)
  /** The node that runs the instance drains or renews it, or takes it back: this one does the same with it. */
  | { readonly type: 'drain' | 'renew' | 'resume' };

/**
 * Owns one transport. `transport.closed` is always its last event. Stopping the actor closes the transport, and so does
 * `close`, which calls `closed` when nothing is left of it.
 */
export const transportActor = fromCallback<
  { readonly type: 'close'; readonly closed?: () => void },
  TransportInput
>(({ input, sendBack, receive }) => {
  const run = new TransportRun(input, sendBack);
  receive(({ closed }) => {
    run.close();
    void run.ended.then(closed);
  });
  return () => run.close();
});

/** One transport, from its opening until nothing is left of it. */
class TransportRun {
  readonly #input: TransportInput;
  readonly #report: (report: TransportReport) => void;
  readonly #startedAtMs: number;
  readonly #ending = new AbortController();
  /** The open transport. Undefined before the opening, and after the end. */
  #transport: Transport | undefined;
  #tools: ToolCache | undefined;
  /** Why the transport is closed before it counts as open. */
  #leaving: string | undefined;
  /** Resolves when nothing is left of the transport; never rejects, since its actor does not see errors. */
  readonly ended: Promise<void>;

  constructor(input: TransportInput, report: (report: TransportReport) => void) {
    this.#input = input;
    this.#report = report;
    this.#startedAtMs = input.clock.now();
    this.ended = this.#run();
  }

  close(): void {
    this.#ending.abort();
    if (this.#transport !== undefined) void closeQuietly(this.#transport);
  }

  async #run(): Promise<void> {
    let started: Transport;
    try {
      started = await this.#open();
    } catch (thrown) {
      const failed = this.#isEnding ? {} : { openingMs: this.#passedMs };
      return this.#report({ type: 'transport.closed', ...endOf(thrown), ...failed });
    }
    this.#transport = started;
    const end = await this.#untilClosed(started);
    if (!this.#isEnding) this.#report({ type: 'transport.lost', ...end });
    this.#tools?.forget();
    await closeQuietly(started);
    this.#report({ type: 'transport.closed', ...end });
  }

  #open(): Promise<Transport> {
    const { open, policy, dedicated } = this.#input;
    return open(this.#ending.signal, {
      startTimeoutMs: policy.startTimeoutMs,
      onStarted: (diagnostics) => this.#report({ type: 'transport.starting', diagnostics }),
      onWithheld: (withheld) => this.#report({ type: 'tool.withheld', ...withheld }),
      relistTools: () => this.#tools?.lookUp(),
      room: () => dedicated.remainingConversations,
      onDuty: (duty) => this.#report({ type: dutyReport(duty) }),
    });
  }

  async #untilClosed(started: Transport): Promise<TransportEnd> {
    try {
      if (this.#isEnding) void closeQuietly(started);
      else this.#follow(started);
      const { isExpected, ...end } = await firstValueFrom(started.closed$);
      this.#transport = undefined;
      const { stderr } = started.diagnostics();
      return this.#leaving === undefined ? { ...end, stderr } : { reason: this.#leaving, stderr };
    } catch (thrown) {
      return endOf(thrown);
    }
  }

  #follow(started: Transport): void {
    const opened = new InstanceTransport(started, this.#input, this.#input.toolRules, this.#cutReporter());
    this.#tools = opened.tools;
    started.messages$.subscribe(opened.noteMessage);
    opened.feed.listChanges$.subscribe((list) => {
      if (list === 'tools') void opened.tools.invalidate();
      this.#report({ type: 'list.changed', list });
    });
    const listed = opened.tools.refresh();
    if (started.handshake.era !== 'modern' || started.leaveEra === undefined) this.#announce(opened);
    else void this.#announceIfAnswering(started, opened, listed);
  }

  /** Reports that a list was cut, once for each reason. */
  #cutReporter(): (reason: string) => void {
    let last: string | undefined;
    return (reason) => {
      if (reason !== last) this.#report({ type: 'list.cut', list: 'tools', reason });
      last = reason;
    };
  }

  async #announceIfAnswering(
    started: Transport,
    opened: InstanceTransport,
    listed: Promise<void>,
  ): Promise<void> {
    const answers = await answersIn(opened, listed, this.#input.clock);
    if (this.#isEnding || this.#transport !== started) return;
    if (answers || started.leaveEra?.() !== true) this.#announce(opened);
    else {
      this.#leaving = 'it announces the modern era but answers nothing in it; the legacy era is tried';
      void closeQuietly(started);
    }
  }

  #announce(opened: InstanceTransport): void {
    this.#report({ type: 'transport.opened', openingMs: this.#passedMs, opened });
  }

  get #isEnding(): boolean {
    return this.#ending.signal.aborted;
  }

  get #passedMs(): number {
    return this.#input.clock.now() - this.#startedAtMs;
  }
}

/**
 * Resolves with false when the backend has sent nothing within SILENT_ERA_MS after its tools were requested.
 * Source: ADR 10.
 */
function answersIn(opened: InstanceTransport, listed: Promise<void>, clock: Clock): Promise<boolean> {
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

function dutyReport({ isRenewing, isDraining }: HostDuty): 'drain' | 'renew' | 'resume' {
  if (isRenewing === true) return 'renew';
  return isDraining ? 'drain' : 'resume';
}
