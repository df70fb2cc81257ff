// Context, events, actions, guards and delays of the instance machine. The state table is in instance.machine.ts.

import { assign, enqueueActions, fromCallback, fromPromise, or, sendTo, setup, stateIn } from 'xstate';
import type { TemplatePolicy } from '../../balancing/policy.ts';
import { GatewayError, type HttpRefusal, reasonOf } from '../../domain/errors/errors.ts';
import type { EventName, GatewayEvent, GatewayEvents, InstanceFields } from '../../domain/events/events.ts';
import type { DedicatedBounds, InstanceDefinition } from '../../domain/instances/instance.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import { backOffMs, RESTART_FORGIVEN_MS } from '../../domain/time/back-off.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import type { Open } from '../../transports/open-options.ts';
import type { TransportDiagnostics } from '../../transports/transport.ts';
import type { CallCounter } from './call-counter.ts';
import type { DedicatedConversations } from './dedicated-conversations.ts';
import type { InstanceTransport } from './instance-transport.ts';
import { type ProbeInput, type ProbeResult, probe } from './probe.ts';
import type { ToolRules } from './tool-cache.ts';
import { refusalOf, type TransportReport, transportActor } from './transport-actor.ts';

/** Failed probes in a row that make an instance unhealthy. */
const FAILED_PROBES = 2;
/** Failed probes in a row of an unhealthy instance, after which its transport is reopened. */
const FAILED_RECHECKS = 5;
/** Shortest time between two probes because of suspicious calls. */
const PROMPTED_PROBE_MS = 1_000;

export interface InstanceActorInput extends Timing {
  readonly definition: InstanceDefinition;
  readonly policy: TemplatePolicy;
  readonly open: Open;
  /** True when another node runs the instance: `open` then opens a connection to that node. */
  readonly isElsewhere?: boolean;
  readonly random: () => number;
  readonly dedicatedBounds?: DedicatedBounds | undefined;
  readonly toolRules: ToolRules;
  /** Gets the events of dedicated conversations (`upstream.*`); all others are emitted by the machine. */
  readonly emit: (event: GatewayEvent) => void;
}

/** The context of an instance actor: all that it knows, besides the names of its states. */
export interface InstanceContext extends InstanceActorInput {
  /** The conversations that clients use. Independent ones survive the loss of the transport. */
  readonly dedicated: DedicatedConversations;
  /** The counter of calls. The handles that carry the calls write it, without a mailbox between them. */
  readonly calls: CallCounter;
  readonly opened: InstanceTransport | undefined;
  /** The output of the program that is being opened; undefined while none is. */
  readonly startingDiagnostics: (() => TransportDiagnostics) | undefined;
  readonly lastHandshake: Handshake | undefined;
  /** The names of the tools that the last transport listed; undefined when unknown. */
  readonly lastTools: readonly string[] | undefined;
  /** The number of failed probes and openings in a row. */
  readonly failures: number;
  /** The number of failed probes and openings in a row since the instance became unhealthy. */
  readonly failedRechecks: number;
  /** The number of openings in a row whose transport was short-lived. */
  readonly shortOpenings: number;
  /** The number of openings that succeeded. */
  readonly openings: number;
  /** The number of programs that were started, and ended or were stopped before their handshake. */
  readonly failedStarts: number;
  /**
   * True when the next opening has no back-off: the last transport ended by itself after an answered call, as some programs do by
   * design (ADR 113), or its end says that nothing has failed: see Closed.
   */
  readonly opensAtOnce: boolean;
  /**
   * The monotonic time of the last finished probe or opening, or of the message that replaced a probe, in ms;
   * undefined before.
   */
  readonly checkedAtMs: number | undefined;
  /** The monotonic time at which the last probe began, in ms; 0 before. */
  readonly probedAtMs: number;
  /** The monotonic time at which the present transport was opened, in ms; undefined while there is none. */
  readonly openedAtMs: number | undefined;
  readonly reason: string | null;
  /** The last lines that the program of the last transport wrote to standard error. */
  readonly stderr: readonly string[];
  readonly backOffMs: number;
  /** The HTTP refusal of the last opening or probe; undefined when there was none. */
  readonly refusal: HttpRefusal | undefined;
  /** The monotonic time of the next opening, in ms; valid only while the instance waits for one. */
  readonly opensAtMs: number;
  /** The longest wait for calls in flight when the instance restarts or leaves, in ms. */
  readonly drainLimitMs: number;
}

type InstanceEvent =
  /** The last call or reservation has ended: states that wait for this check the counter again. */
  | { readonly type: 'idle' }
  | { readonly type: 'suspected' }
  | { readonly type: 'unreachable'; readonly reason: string }
  | { readonly type: 'change'; readonly definition: InstanceDefinition }
  | { readonly type: 'setPolicy'; readonly policy: TemplatePolicy }
  | { readonly type: 'drain' }
  | { readonly type: 'resume' }
  | { readonly type: 'restart' }
  | { readonly type: 'leave'; readonly withinMs: number }
  | { readonly type: 'disconnect' }
  | { readonly type: 'end' }
  | TransportReport;

/**
 * What the machine emits besides its states, without the fields that all events share. Everything else is read from
 * the snapshot.
 */
export type InstanceEmission =
  | OwnFields<'probe.finished'>
  | OwnFields<'instance.restarting'>
  | Extract<TransportReport, { type: 'list.changed' | 'list.cut' | 'tool.withheld' }>;

type OwnFields<N extends EventName> = { readonly type: N } & Omit<GatewayEvents[N], keyof InstanceFields>;

/** True when the instance leaves: it needs no new transport, but waits for calls in independent conversations. */
const isLeaving = or([stateIn({ duty: 'leaving' }), stateIn({ duty: 'left' })]);

export const instanceSetup = setup({
  types: {
    context: {} as InstanceContext,
    events: {} as InstanceEvent,
    input: {} as InstanceActorInput,
    emitted: {} as InstanceEmission,
    children: {} as { transport: 'transport' },
  },
  actors: {
    transport: transportActor,
    probe,
    /** Ends the dedicated processes when the actor is stopped. The transport actor closes the transport itself. */
    ownership: fromCallback<InstanceEvent, DedicatedConversations>(
      ({ input }) =>
        () =>
          void input.end(),
    ),
    endDedicated: fromPromise<void, DedicatedConversations>(({ input }) => input.end()),
  },
  delays: {
    /** The time to the next probe. It is short after a failed probe, because two in a row decide. */
    nextProbe: ({
      context: {
        policy,
        failures,
        checkedAtMs,
        clock: { now },
      },
    }) => {
      const { healthIntervalMs } = policy;
      const waitMs = failures > 0 ? Math.min(healthIntervalMs, PROMPTED_PROBE_MS) : healthIntervalMs;
      return Math.max(0, (checkedAtMs ?? now()) + waitMs - now());
    },
    nextRecheck: ({ context: { failedRechecks, policy, random, refusal } }) =>
      Math.max(backOffMs(failedRechecks + 1, policy.healthIntervalMs, random()), refusal?.waitMs ?? 0),
    backOff: ({ context }) => context.backOffMs,
    drained: ({ context }) => context.drainLimitMs,
    /** The time after which a closing transport is abandoned. Transports normally bound their closing themselves. */
    abandoned: LIMITS.drainMs,
  },
  guards: {
    isIdle: ({ context }) => context.calls.isIdle,
    /** True after a message since the last probe: a backend that answers calls needs no probe. */
    hasNewMessage: ({ context }) => lastSignMs(context) > (context.checkedAtMs ?? 0),
    isLeaving,
    isLastRecheck: ({ context }) => context.failedRechecks + 1 >= FAILED_RECHECKS,
    /**
     * True when one more failure makes the instance unhealthy. A refused connection decides at once, since nothing
     * listens there.
     */
    isLastFailure: ({ context, event }) =>
      context.failures + 1 >= FAILED_PROBES ||
      ('error' in event && event.error instanceof GatewayError && event.error.facts.health === 'unreachable'),
    isProbedLongAgo: ({ context }) => context.clock.now() - (context.checkedAtMs ?? 0) >= PROMPTED_PROBE_MS,
  },
  actions: {
    /** Records the open transport. The handshake counts as the first probe. */
    open: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'transport.opened') return;
      const { opened, openingMs } = event;
      enqueue.assign({
        opened,
        startingDiagnostics: undefined,
        lastHandshake: opened.handshake,
        ...afterPass(context),
        openings: context.openings + 1,
        openedAtMs: context.clock.now(),
      });
      enqueue(() => context.calls.record(true));
      enqueue.emit({ type: 'probe.finished', passed: true, durationMs: openingMs });
    }),
    passByMessage: enqueueActions(({ context, enqueue }) => {
      enqueue.assign({ ...afterPass(context), checkedAtMs: lastSignMs(context) });
      enqueue(() => context.calls.record(true));
    }),
    closeTransport: sendTo('transport', { type: 'close' }),
    /**
     * Closes the transport, and begins to end the dedicated processes at the same time. The state `endingConversations` waits for
     * these.
     */
    endTransport: enqueueActions(({ context, enqueue }) => {
      enqueue.sendTo('transport', { type: 'close' });
      enqueue(() => void context.dedicated.end());
    }),
    recordEnd: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'transport.lost' && event.type !== 'transport.closed') return;
      const { reason, stderr, exitCode, opensAtOnce = false } = event;
      if (context.opened !== undefined)
        enqueue.assign({ opensAtOnce: opensAtOnce || (context.opened.hasAnswered && exitCode === 0) });
      enqueue.assign({ ...withoutTransport(context), reason, stderr, refusal: event.refusal });
      const openingMs = event.type === 'transport.closed' ? event.openingMs : undefined;
      if (openingMs === undefined) return;
      enqueue.assign(afterFailure(context));
      if (context.startingDiagnostics !== undefined)
        enqueue.assign({ failedStarts: context.failedStarts + 1 });
      enqueue(() => context.calls.record(false));
      enqueue.emit({ type: 'probe.finished', passed: false, durationMs: openingMs });
    }),
    /** Forgets a transport that the gateway closed. The reason of the gateway is kept. */
    forgetTransport: assign(({ context, event }) => {
      const { stderr } = event.type === 'transport.closed' ? event : context;
      return { ...withoutTransport(context), stderr };
    }),
    /**
     * Computes the wait before the next opening. A long-lived transport resets the back-off, unless its server
     * refused lastingly in the end; so does each connection to another node, because it costs nothing to open. A
     * program that ends after each call by design is opened again without a wait.
     */
    scheduleOpening: assign(({ context }) => {
      const nowMs = context.clock.now();
      if (context.opensAtOnce)
        return {
          opensAtOnce: false,
          shortOpenings: 0,
          openedAtMs: undefined,
          opened: undefined,
          backOffMs: 0,
          opensAtMs: nowMs,
        };
      const { openedAtMs, isElsewhere } = context;
      const isLong = openedAtMs !== undefined && (isElsewhere || nowMs - openedAtMs >= RESTART_FORGIVEN_MS);
      const isForgiven = isLong && !isLasting(context.refusal);
      const shortOpenings = isForgiven ? 1 : context.shortOpenings + 1;
      const waitMs = Math.max(openingWaitMs(context, shortOpenings), context.refusal?.waitMs ?? 0);
      return {
        shortOpenings,
        openedAtMs: undefined,
        opened: undefined,
        backOffMs: waitMs,
        opensAtMs: nowMs + waitMs,
      };
    }),
    passProbe: enqueueActions(({ context, enqueue }, { durationMs, isAnswered }: ProbeResult) => {
      enqueue.assign(afterPass(context));
      enqueue(() => context.calls.record(true, isAnswered ? durationMs : undefined));
      enqueue.emit({ type: 'probe.finished', passed: true, durationMs });
    }),
    failProbe: enqueueActions(({ context, event, enqueue }) => {
      const error = 'error' in event ? event.error : undefined;
      const reason = error === undefined ? 'unknown' : reasonOf(error);
      enqueue.assign({ ...afterFailure(context), reason, refusal: refusalOf(error) });
      enqueue(() => context.calls.record(false));
      const durationMs = context.clock.now() - context.probedAtMs;
      enqueue.emit({ type: 'probe.finished', passed: false, durationMs });
    }),
    noteProbe: assign({ probedAtMs: ({ context }) => context.clock.now() }),
    beginRechecks: assign({ failedRechecks: 0 }),
    /** Resets the back-off for a requested restart, which does not wait. */
    resetBackOff: assign({
      shortOpenings: 0,
      openedAtMs: undefined,
      reason: 'it is restarting',
      backOffMs: 0,
    }),
    emitRestart: enqueueActions(({ context, enqueue, check }, { isPlanned }: { isPlanned: boolean }) => {
      if (check(isLeaving)) return; // it is not opened again
      const reason = context.reason ?? 'it was restarted';
      enqueue.emit({ type: 'instance.restarting', reason, delayMs: context.backOffMs, isPlanned });
    }),
  },
});

function withoutTransport({ opened, lastTools }: InstanceContext) {
  return { opened: undefined, startingDiagnostics: undefined, lastTools: opened?.tools.names ?? lastTools };
}

/**
 * The wait before the next opening, in ms. A server that refuses for a lasting reason is asked ever more
 * rarely. Source: ADR 109.
 */
function openingWaitMs(
  { definition, policy, refusal, random, isElsewhere }: InstanceContext,
  shortOpenings: number,
): number {
  if (isElsewhere) return backOffMs(shortOpenings, ELSEWHERE_LONGEST_MS, random());
  if (runsProgram(definition)) return backOffMs(shortOpenings, LIMITS.restartLongestMs, random());
  if (!isLasting(refusal)) return backOffMs(shortOpenings, policy.healthIntervalMs, random());
  return backOffMs(shortOpenings, LIMITS.refusedLongestMs, random(), LASTING_JITTER);
}

/** The longest wait before the connection to another node is opened again, in ms: an opening costs that node nothing. */
const ELSEWHERE_LONGEST_MS = 2_000;

function isLasting(refusal: HttpRefusal | undefined): boolean {
  return refusal !== undefined && LASTING_REFUSALS.has(refusal.status);
}

/** HTTP statuses that a repeat does not change: the credentials are refused, or nothing is at this address. */
const LASTING_REFUSALS: ReadonlySet<number> = new Set([401, 403, 404, 410]);
const LASTING_JITTER = 0.1;

/**
 * The last time at which a message showed that the backend serves calls: any message while calls are under
 * way, otherwise an answer. In ms; 0 without a transport.
 */
function lastSignMs({ calls, opened }: InstanceContext): number {
  if (opened === undefined) return 0;
  return calls.underWay > 0 ? opened.lastMessageAtMs : opened.lastAnswerAtMs;
}

/** The context after a passed probe, an opening, or a message that replaced a probe. */
function afterPass({ clock: { now } }: InstanceContext) {
  return { failures: 0, checkedAtMs: now(), reason: null, refusal: undefined };
}

/** The context after a failed probe or opening. */
function afterFailure({ failures, failedRechecks, clock: { now } }: InstanceContext) {
  return { failures: failures + 1, failedRechecks: failedRechecks + 1, checkedAtMs: now() };
}

export function probeInput({ opened, policy, clock }: InstanceContext): ProbeInput {
  if (opened === undefined) throw new Error('an instance without a transport is not probed');
  return { opened, timeoutMs: policy.probeTimeoutMs, clock };
}
