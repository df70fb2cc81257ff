// Context, events, actions, guards and delays of the instance machine. The state table is in instance.machine.ts.

import { assign, emit, enqueueActions, fromCallback, fromPromise, or, sendTo, setup, stateIn } from 'xstate';
import type { TemplatePolicy } from '../../balancing/policy.ts';
import type { HttpRefusal } from '../../domain/calls/exchange-event.ts';
import { GatewayError, reasonOf } from '../../domain/errors/errors.ts';
import type { EventName, GatewayEvent, GatewayEvents, InstanceFields } from '../../domain/events.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { type DedicatedBounds, LIMITS } from '../../domain/limits.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import type { ByteBudget } from '../../domain/memory/held-bytes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Open } from '../../transports/open-options.ts';
import { EXITED_CLEANLY, type TransportDiagnostics } from '../../transports/transport.ts';
import { backOffMs } from '../back-off.ts';
import type { SubscriptionDeps } from '../subscriptions/resource-subscriptions.ts';
import type { CallCounter } from './call-counter.ts';
import type { Leases } from './leases.ts';
import type { OpenedTransport } from './opened-transport.ts';
import { type ProbeInput, type ProbeResult, probe } from './probe.ts';
import type { HintsByTool } from './tool-cache.ts';
import type { TrustOf } from './tool-trust.ts';
import { refusalOf, type TransportReport, transportActor } from './transport-actor.ts';

/** What an instance actor is made of. */
export interface InstanceActorInput extends Clock, SubscriptionDeps {
  readonly definition: InstanceDefinition;
  readonly policy: TemplatePolicy;
  readonly open: Open;
  /** Another node runs it: what is opened is the way there. */
  readonly isElsewhere?: boolean;
  readonly random: () => number;
  readonly dedicatedBounds?: DedicatedBounds | undefined;
  /** Counts the lists of tools that are kept, by server id. Default: not counted. */
  readonly toolLists?: ByteBudget | undefined;
  /** Default: every definition of a tool is used. */
  readonly trustOf?: TrustOf | undefined;
  /** Default: no annotations of tools but those of the server. */
  readonly hints?: HintsByTool | undefined;
  /** Gets events; of the actor itself those of leased conversations, `upstream.*`. */
  readonly emit: (event: GatewayEvent) => void;
}

/** What an instance actor knows, besides the names of its states. */
export interface InstanceContext extends InstanceActorInput {
  /** The conversations that clients lease. Independent ones survive the loss of the transport. */
  readonly leases: Leases;
  /** Counted by the handles that carry the calls, past the mailbox. */
  readonly calls: CallCounter;
  readonly opened: OpenedTransport | undefined;
  /** The output of the program that is being opened; undefined while none is. */
  readonly starting: (() => TransportDiagnostics) | undefined;
  readonly lastHandshake: Handshake | undefined;
  /** The names of the tools that its last transport listed. */
  readonly lastTools: readonly string[] | undefined;
  /** Failed probes and openings in a row. */
  readonly failures: number;
  /** Failed ones in a row since it became unhealthy. */
  readonly failedRecoveries: number;
  /** Openings in a row whose transport was short-lived. */
  readonly shortOpenings: number;
  /** Openings that succeeded. */
  readonly openings: number;
  /** Programs that were started and ended, or were stopped, before their handshake. */
  readonly failedStarts: number;
  /** The last transport ended by itself after an answered call, as some programs do: it is opened again at once (ADR 115). */
  readonly endedAfterCall: boolean;
  /** Monotonic ms of the last finished probe or opening, or of the message that replaced a probe. */
  readonly checkedAtMs: number | undefined;
  /** Monotonic ms of the opening of the present transport; undefined while there is none. */
  readonly openedAtMs: number | undefined;
  readonly reason: string | null;
  /** The last lines on standard error of the child of the last transport. */
  readonly stderr: readonly string[];
  readonly backOffMs: number;
  /** How its server refused the last opening. */
  readonly refusal: HttpRefusal | undefined;
  /** Monotonic ms of the next opening; only while it waits for one. */
  readonly opensAtMs: number;
  /** Longest wait for calls in flight when it restarts or leaves. */
  readonly drainMs: number;
}

type InstanceEvent =
  /** The last call or reservation has ended: states that wait for that check the counter again. */
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

/** Events besides states, without the fields of every event. Everything else is read from the snapshot. */
export type InstanceEmission =
  | OwnFields<'probe.finished'>
  | OwnFields<'instance.restarting'>
  | Extract<TransportReport, { type: 'list.changed' | 'list.cut' | 'tool.withheld' }>;

type OwnFields<N extends EventName> = { readonly type: N } & Omit<GatewayEvents[N], keyof InstanceFields>;

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
    /** A stop of the actor ends the conversations, too. The actor of the transport closes it itself. */
    ownership: fromCallback<InstanceEvent, Leases>(
      ({ input }) =>
        () =>
          void input.end(),
    ),
    endLeases: fromPromise<void, Leases>(({ input }) => input.end()),
  },
  delays: {
    /** After a failed probe the next one follows soon: two in a row decide. */
    nextProbe: ({ context: { policy, failures, checkedAtMs, now } }) => {
      const { healthIntervalMs } = policy;
      const waitMs = failures > 0 ? Math.min(healthIntervalMs, LIMITS.promptedProbeMs) : healthIntervalMs;
      return Math.max(0, (checkedAtMs ?? now()) + waitMs - now());
    },
    nextRecovery: ({ context: { failedRecoveries, policy, random, refusal } }) =>
      Math.max(backOffMs(failedRecoveries + 1, policy.healthIntervalMs, random()), refusal?.waitMs ?? 0),
    backOff: ({ context }) => context.backOffMs,
    drained: ({ context }) => context.drainMs,
    /** Transports bound their closing themselves; one that does not is abandoned. */
    abandoned: LIMITS.drainMs,
  },
  guards: {
    isIdle: ({ context }) => context.calls.isIdle,
    /** A backend that answers calls needs no probe; a message from before the last probe proves nothing. */
    hasNewMessage: ({ context }) => lastSignMs(context) > (context.checkedAtMs ?? 0),
    /** A leaving instance waits for calls in independent conversations, and needs no new transport. */
    isLeaving: or([stateIn({ duty: 'leaving' }), stateIn({ duty: 'left' })]),
    isLastRecovery: ({ context }) => context.failedRecoveries + 1 >= LIMITS.failedRecoveries,
    /** Nothing listens where a connection is refused: one probe is enough. */
    isLastFailure: ({ context, event }) =>
      context.failures + 1 >= LIMITS.failedProbes ||
      ('error' in event && event.error instanceof GatewayError && event.error.facts.unreachable === true),
    isProbedLongAgo: ({ context }) => context.now() - (context.checkedAtMs ?? 0) >= LIMITS.promptedProbeMs,
  },
  actions: {
    /** The handshake is the first probe. */
    open: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'transport.opened') return;
      const { opened, openingMs } = event;
      enqueue.assign({
        opened,
        starting: undefined,
        lastHandshake: opened.handshake,
        ...afterPass(context),
        openings: context.openings + 1,
        openedAtMs: context.now(),
      });
      enqueue(() => context.calls.record(true));
      enqueue.emit({ type: 'probe.finished', passed: true, durationMs: openingMs });
    }),
    passByMessage: enqueueActions(({ context, enqueue }) => {
      enqueue.assign({ ...afterPass(context), checkedAtMs: lastSignMs(context) });
      enqueue(() => context.calls.record(true));
    }),
    closeTransport: sendTo('transport', { type: 'close' }),
    /** The dedicated conversations end at the same time; the state `clearing` waits for them. */
    endTransport: enqueueActions(({ context, enqueue }) => {
      enqueue.sendTo('transport', { type: 'close' });
      enqueue(() => void context.leases.end());
    }),
    recordEnd: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'transport.lost' && event.type !== 'transport.closed') return;
      const { reason, stderr } = event;
      if (context.opened !== undefined)
        enqueue.assign({ endedAfterCall: context.opened.hasAnswered && reason === EXITED_CLEANLY });
      enqueue.assign({ ...withoutTransport(context), reason, stderr, refusal: event.refusal });
      const openingMs = event.type === 'transport.closed' ? event.openingMs : undefined;
      if (openingMs === undefined) return;
      enqueue.assign(afterFailure(context));
      if (context.starting !== undefined) enqueue.assign({ failedStarts: context.failedStarts + 1 });
      enqueue(() => context.calls.record(false));
      enqueue.emit({ type: 'probe.finished', passed: false, durationMs: openingMs });
    }),
    /** After a close by the gateway, whose own reason is kept. */
    forgetTransport: assign(({ context, event }) => {
      const { stderr } = event.type === 'transport.closed' ? event : context;
      return { ...withoutTransport(context), stderr };
    }),
    /**
     * A long-lived transport resets the back-off, unless its server refused lastingly in the end; so does each way
     * to another node, which costs nothing to open. A program that ends after each call, by design, needs none.
     */
    scheduleOpening: assign(({ context }) => {
      const nowMs = context.now();
      if (context.endedAfterCall)
        return {
          endedAfterCall: false,
          shortOpenings: 0,
          openedAtMs: undefined,
          opened: undefined,
          backOffMs: 0,
          opensAtMs: nowMs,
        };
      const { openedAtMs, isElsewhere } = context;
      const isLong =
        openedAtMs !== undefined && (isElsewhere || nowMs - openedAtMs >= LIMITS.restartForgivenMs);
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
      enqueue.emit({ type: 'probe.finished', passed: false, durationMs: context.policy.probeTimeoutMs });
    }),
    beginRecovery: assign({ failedRecoveries: 0 }),
    /** A requested restart does not wait. */
    resetBackOff: assign({
      shortOpenings: 0,
      openedAtMs: undefined,
      reason: 'it is restarting',
      backOffMs: 0,
    }),
    emitRestart: emit(({ context }, { isPlanned }: { isPlanned: boolean }) => ({
      type: 'instance.restarting',
      reason: context.reason ?? 'it was restarted',
      delayMs: context.backOffMs,
      isPlanned,
    })),
  },
});

function withoutTransport({ opened, lastTools }: InstanceContext) {
  return { opened: undefined, starting: undefined, lastTools: opened?.tools.names ?? lastTools };
}

/** A server that refuses for a reason that a repeat does not change is asked ever more rarely. Source: ADR 109. */
function openingWaitMs(
  { definition, policy, refusal, random, isElsewhere }: InstanceContext,
  shortOpenings: number,
): number {
  if (isElsewhere) return backOffMs(shortOpenings, ELSEWHERE_LONGEST_MS, random());
  if (definition.command !== undefined) return backOffMs(shortOpenings, LIMITS.restartLongestMs, random());
  if (!isLasting(refusal)) return backOffMs(shortOpenings, policy.healthIntervalMs, random());
  return backOffMs(shortOpenings, LIMITS.refusedLongestMs, random(), LASTING_JITTER);
}

/** An opening costs the other node nothing, and it may be back. */
const ELSEWHERE_LONGEST_MS = 2_000;

function isLasting(refusal: HttpRefusal | undefined): boolean {
  return refusal !== undefined && LASTING_REFUSALS.has(refusal.status);
}

/** The credentials are refused, or nothing is there. */
const LASTING_REFUSALS: ReadonlySet<number> = new Set([401, 403, 404, 410]);
const LASTING_JITTER = 0.1;

/**
 * The last time at which a message showed that the backend serves calls: any message while a call is under way,
 * else an answer.
 */
function lastSignMs({ calls, opened }: InstanceContext): number {
  if (opened === undefined) return 0;
  return calls.underWay > 0 ? opened.lastMessageAtMs : opened.lastAnswerAtMs;
}

/** After a passed probe, an opening, or a message that replaced a probe. */
function afterPass({ now }: InstanceContext) {
  return { failures: 0, checkedAtMs: now(), reason: null, refusal: undefined };
}

/** After a failed probe or opening. */
function afterFailure({ failures, failedRecoveries, now }: InstanceContext) {
  return { failures: failures + 1, failedRecoveries: failedRecoveries + 1, checkedAtMs: now() };
}

export function probeInput({ opened, policy, now, alarm }: InstanceContext): ProbeInput {
  if (opened === undefined) throw new Error('an instance without a transport is not probed');
  return { opened, timeoutMs: policy.probeTimeoutMs, now, alarm };
}
