// The session of one legacy client: what it is (domain/sessions/session-value.ts), its present binding, and its
// states, while the session is in use. client-session.ts sends the events, does the work of each state, and follows what the
// machine emits.
//
//   entering ─┬─ has a binding ─────────────► serving ── requested, upgrade ──► searching ── bound ──► serving
//             ├─ had one, and was read again ─► unbound                             └─ failed ──► unbound
//             └─ new ─────────────────────────► searching       unbound ── requested, listened, retryDelay ──► searching
//
//   requested: a request, or a stream, has no usable binding: the conversation is over, or the instance may not be used.
//              The first of these that applies:
//              it may move: it looks for another instance, or is unbound for a while if it has just moved
//              only the link to the instance was lost: it is bound again there, or its requests wait while it is opened
//              no other instance could serve its client: it keeps its binding, and what waits is refused
//              it is a part of an aggregate session: it begins again
//              calls are under way at its instance: it is finishing; else it ends
//   listened:  the client has opened its first message stream, for which an unbound session may need a binding
//   upgrade:   a dedicated conversation is needed
//   started:   the instance that it waits for is there, or does not come soon
//   failed:    a binding that is still usable is kept; a session without a first binding ends
//   callEnded: from finishing to serving, when the instance may be used again, or to ended
//   end:       from everywhere to ended
//   setIdle:   from everywhere to idle, where the actor ends and its value and binding remain
//   in every state: unsafeCallNoted, levelSet, subscribed, unsubscribed and abandon change the value or the binding only
//
// serving: requests may use the binding, if that is usable. awaitingInstance: the link to its instance, the only one, is being
// opened, until started. unbound: no instance took the session, or it has just moved. finishing: the session may
// not move; its calls continue where they are, and it takes no new ones.

import { type Actor, assign, emit, fromCallback, raise, setup } from 'xstate';
import { timeoutFor } from '../../balancing/policy.ts';
import { backendTimeout } from '../../domain/errors/backend-errors.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors/errors.ts';
import { hasProcesses } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { SessionValue, StoredBinding } from '../../domain/sessions/session-value.ts';
import { noHealthyError } from '../fleet/no-instance.ts';
import type { Binding } from './binding/binding.ts';
import type { SessionCore } from './session-core.ts';
import { hasOtherCandidates, mayMove } from './session-rules.ts';
import { type ClientSessionEvent, valueAfter } from './session-transitions.ts';

/**
 * The state of a session that has an actor, besides the name of that state. One without an actor keeps only the value and
 * the binding.
 */
export interface ClientSessionContext {
  readonly value: SessionValue;
  readonly binding: Binding | undefined;
  /** The session: the facts that decide about its states, and the search for a binding. */
  readonly session: Pick<
    SessionCore,
    | ('value' | 'binding' | 'deps' | 'group' | 'isPart')
    | ('needsBindingForStream' | 'isCalling' | 'hasBindingWaits' | 'findBinding')
  >;
  /** True when the session gives up a usable binding, because its instance fails calls. */
  readonly isAbandoned: boolean;
  /** The time of the last move, in whole ms of the monotonic clock (a fraction would be a heap object of its own). */
  readonly movedAtMs: number;
  /** The time limit of the search or the wait that is under way, in ms. */
  readonly limitMs: number;
  /** Why the session has no usable binding: the error of the next refusal. */
  readonly failure: GatewayError | undefined;
  /** The number of calls under way that are not safe to repeat; counted only until one of them has arrived. */
  readonly unsettledCalls: number;
}

/** What the machine emits, after each change is in its snapshot. */
export type ClientSessionEmission =
  /** The session has a new binding. `from`, `stored`: the binding before, and that of the value before. */
  | { readonly type: 'bound'; readonly from: Binding | undefined; readonly stored: StoredBinding | undefined }
  /** Waiting requests may use the binding. `failure`: the error of a search that found no better one. */
  | { readonly type: 'serving'; readonly binding: Binding; readonly failure: GatewayError | undefined }
  /** Waiting requests fail: with `failure`, or without one for the reason in `why`. */
  | {
      readonly type: 'refused';
      readonly why: 'noneHealthy' | 'finishing';
      readonly failure: GatewayError | undefined;
    }
  /** The session has ended. `isLost`: by a failure, not by an `end` event. */
  | { readonly type: 'ended'; readonly isLost: boolean; readonly failure: GatewayError | undefined };

/** Wait between two searches for an instance, for an unbound session whose client listens. */
const RETRY_DELAY_MS = 5_000;

/** True for a part of an aggregate session: instead of ending, it may begin again. */
function mayBeginAnew({ session: { isPart, group } }: ClientSessionContext): boolean {
  return isPart && !group.isDeleted;
}

/** True when requests may use the binding now. */
export function isServed({ binding, isAbandoned }: ClientSessionContext): boolean {
  return binding?.isIntact === true && !isAbandoned && binding.ref.acceptsCalls(binding.conversation);
}

/**
 * True when the session may not move, and its instance can be reached again: the session is then bound there
 * again.
 */
export function isReturning(context: ClientSessionContext): boolean {
  const { binding } = context;
  const isBack =
    binding?.isIntact === false && binding.isOnlyUnreachable && binding.ref.handshake !== undefined;
  return isBack && !mayMove(context.value, context.session.group);
}

/**
 * The time limit of a search for a binding, in ms. The first one may start a program for the session, which has its own
 * limit: one that was ended earlier would never be ready (ADR 113).
 */
export function bindTimeoutMs({ binding, session: { group } }: ClientSessionContext): number {
  const { policy, pool } = group;
  const timeoutMs = timeoutFor(policy);
  if (binding !== undefined) return timeoutMs;
  const mayStart = pool.candidates.some(({ definition }) => hasProcesses(definition));
  return Math.max(LIMITS.handshakeMs, timeoutMs, mayStart ? policy.startTimeoutMs : 0);
}

/** The transitions after a search that found no binding in time. */
const FAILED = [
  { guard: 'isServed', target: 'serving', actions: 'fail' },
  { guard: 'wasBound', target: 'unbound', actions: 'fail' },
  { target: 'ended', actions: 'fail' },
] as const;

/** The transitions when the binding cannot be used. */
const LOST = [
  { guard: 'mayMove', target: 'searching' },
  { guard: 'isReturning', target: 'searching' },
  { guard: 'mayAwaitStart', target: 'awaitingInstance' },
  { guard: 'mustKeepBinding', actions: ['refuse', 'forgetFailure'] },
  { guard: 'mayBeginAnew', target: 'searching', actions: 'beginAnew' },
  { guard: 'mayFinish', target: 'finishing' },
  { target: 'ended' },
] as const;

/** The transitions when the instance can be reached again, or is not expected any more. */
const STARTED = [
  { guard: 'isServed', target: 'serving' },
  { guard: 'mayMove', target: 'searching' },
  { guard: 'isReturning', target: 'searching' },
  { guard: 'mustKeepBinding', target: 'unbound' },
  { guard: 'mayBeginAnew', target: 'searching', actions: 'beginAnew' },
  { target: 'ended' },
] as const;

export type ClientSessionActor = Actor<typeof clientSessionMachine>;

export const clientSessionMachine = setup({
  types: {
    context: {} as ClientSessionContext,
    input: {} as ClientSessionContext['session'],
    events: {} as ClientSessionEvent,
    emitted: {} as ClientSessionEmission,
  },
  actors: {
    /**
     * Searches for a binding. A callback and not a promise actor: the result of a stopped promise actor is ignored,
     * and its binding would never be closed.
     */
    search: fromCallback<ClientSessionEvent, ClientSessionContext['session']>(({ input, sendBack }) => {
      const over = new AbortController();
      let isFound = false;
      const found = (binding: Binding): void => {
        isFound = true;
        if (over.signal.aborted) void binding.close();
        else sendBack({ type: 'bound', binding });
      };
      const failed = (error: unknown): void => sendBack({ type: 'failed', error });
      input.findBinding(over.signal).then(found, failed);
      // After a success a slow opening beside it may continue: it is closed when it has succeeded.
      return () => isFound || over.abort();
    }),
    /** Waits until the instance of the binding is not starting any more; fails when too many requests wait for it. */
    start: fromCallback<ClientSessionEvent, ClientSessionContext>(({ input, sendBack }) => {
      const { value, binding, session } = input;
      const over = (): void => sendBack({ type: 'started' });
      const waiting = session.group.untilStarted(value.ownerId, undefined, binding?.ref)?.subscribe({
        next: over,
        error: (error: unknown) => sendBack({ type: 'failed', error }),
      });
      if (waiting === undefined) over();
      return () => waiting?.unsubscribe();
    }),
  },
  delays: {
    longest: ({ context }) => context.limitMs,
    retryDelay: RETRY_DELAY_MS,
  },
  guards: {
    hasBinding: ({ context }) => context.binding !== undefined,
    wasBound: ({ context }) => context.value.binding !== undefined,
    isServed: ({ context }) => isServed(context),
    needsBindingForStream: ({ context }) => context.session.needsBindingForStream,
    mayMove: ({ context: { value, session } }) => mayMove(value, session.group),
    isReturning: ({ context }) => isReturning(context),
    mayBeginAnew: ({ context }) => mayBeginAnew(context),
    /**
     * True when the session has just moved, and no request waits: a backend that always fails is then not opened
     * again at once.
     */
    mustAwaitRequest: ({ context }) => {
      const { value, session, movedAtMs } = context;
      return (
        (mayMove(value, session.group) || mayBeginAnew(context)) &&
        session.deps.clock.now() - movedAtMs < RETRY_DELAY_MS &&
        !session.hasBindingWaits
      );
    },
    /**
     * True when ending the session would not help, since no other instance could serve its client. False when its
     * instance was removed or replaced: that serves no more.
     */
    mustKeepBinding: ({ context }) => {
      const { binding, session } = context;
      if (binding === undefined || hasOtherCandidates(session.group, binding.ref)) return false;
      if (!session.group.has(binding.ref)) return false;
      return binding.isIntact || binding.isOnlyUnreachable;
    },
    /**
     * Like `mustKeepBinding`, while the connection to the instance is being opened. Only with waiting requests:
     * otherwise the session takes no place among those that wait.
     */
    mayAwaitStart: ({ context }) => {
      const { binding, session } = context;
      if (!session.hasBindingWaits || binding === undefined || binding.isIntact) return false;
      if (hasOtherCandidates(session.group, binding.ref)) return false;
      return binding.isOnlyUnreachable && session.group.isStarting(undefined, binding.ref);
    },
    /** True when the conversation is intact, and calls are under way in it. */
    mayFinish: ({ context }) => context.binding?.isIntact === true && context.session.isCalling,
  },
  actions: {
    bind: assign(({ context, event }) => {
      if (event.type !== 'bound') return {};
      const isFirst = context.value.binding === undefined;
      const movedAtMs = isFirst ? context.movedAtMs : Math.round(context.session.deps.clock.now());
      const { binding } = event;
      return { value: valueAfter(context.value, event), binding, movedAtMs, isAbandoned: false };
    }),
    /** Records the error of the failed search. An event without an error is that of the time limit. */
    fail: assign(({ context, event }) => {
      const { group } = context.session;
      const late = () => (group.isStarting() ? noHealthyError(group) : backendTimeout(context.limitMs, 'no'));
      return { failure: event.type === 'failed' ? asGatewayError(event.error) : late(), isAbandoned: false };
    }),
    setLimit: assign({ limitMs: ({ context }) => bindTimeoutMs(context) }),
    forgetFailure: assign({ failure: undefined }),
    abandon: assign({ isAbandoned: true }),
    /** Forgets earlier calls that were not safe to repeat, so that the session may be bound elsewhere. */
    beginAnew: assign(({ context: { value, unsettledCalls } }) => ({
      value: { ...value, unsafe: unsettledCalls > 0 ? 'unknown' : 'no' },
    })),
    noteUnsafe: assign(({ context: { value, unsettledCalls: before }, event }) => {
      if (event.type !== 'unsafeCallNoted') return {};
      const { delivered } = event;
      const unsettledCalls = before + (delivered === 'unknown' ? 1 : -1);
      const others = unsettledCalls > 0 ? 'unknown' : 'no';
      const hasArrived = delivered === 'yes' || value.unsafe === 'yes';
      return { unsettledCalls, value: { ...value, unsafe: hasArrived ? 'yes' : others } };
    }),
    change: assign({ value: ({ context: { value }, event }) => valueAfter(value, event) }),
    end: assign({
      value: ({ context: { value }, event }) =>
        valueAfter(value, event.type === 'end' ? event : { type: 'end', reason: 'instanceGone' }),
    }),
    serve: emit(({ context: { binding, failure } }) => {
      if (binding === undefined) throw new Error('a session without a binding serves nothing');
      return { type: 'serving', binding, failure };
    }),
    refuse: emit(({ context: { failure } }) => ({ type: 'refused', why: 'noneHealthy', failure })),
    refuseNew: emit(({ context: { failure } }) => ({ type: 'refused', why: 'finishing', failure })),
    emitBound: emit(({ context: { value, binding } }) => ({
      type: 'bound',
      from: binding,
      stored: value.binding,
    })),
    emitEnded: emit(({ context: { failure }, event }) => ({
      type: 'ended',
      isLost: event.type !== 'end',
      failure,
    })),
  },
}).createMachine({
  id: 'client-session',
  context: ({ input: session }) => ({
    value: session.value,
    binding: session.binding,
    session,
    isAbandoned: false,
    movedAtMs: -RETRY_DELAY_MS,
    limitMs: 0,
    failure: undefined,
    unsettledCalls: 0,
  }),
  initial: 'entering',
  on: {
    end: '.ended',
    setIdle: '.idle',
    abandon: { actions: 'abandon' },
    unsafeCallNoted: { actions: 'noteUnsafe' },
    levelSet: { actions: 'change' },
    subscribed: { actions: 'change' },
    unsubscribed: { actions: 'change' },
  },
  states: {
    entering: {
      always: [
        { guard: 'hasBinding', target: 'serving' },
        { guard: 'wasBound', target: 'unbound' },
        { target: 'searching' },
      ],
    },
    searching: {
      entry: 'setLimit',
      invoke: { src: 'search', input: ({ context }) => context.session },
      on: { bound: { target: 'serving', actions: ['emitBound', 'bind'] }, failed: FAILED },
      after: { longest: FAILED },
    },
    awaitingInstance: {
      entry: 'setLimit',
      invoke: { src: 'start', input: ({ context }) => context },
      on: { started: STARTED, failed: FAILED },
      after: { longest: 'unbound' },
    },
    serving: {
      entry: ['serve', 'forgetFailure'],
      on: {
        requested: [
          { guard: 'isServed', actions: ['serve', 'forgetFailure'] },
          { guard: 'mustAwaitRequest', target: 'unbound' },
          ...LOST,
        ],
        upgrade: 'searching',
      },
    },
    unbound: {
      entry: ['refuse', 'forgetFailure'],
      on: {
        requested: [{ guard: 'isServed', target: 'serving' }, ...LOST],
        listened: { guard: 'needsBindingForStream', actions: raise({ type: 'requested' }) },
      },
      // Entered again, so that the session tries again after the next delay, too.
      after: {
        retryDelay: {
          guard: 'needsBindingForStream',
          target: 'unbound',
          reenter: true,
          actions: raise({ type: 'requested' }),
        },
      },
    },
    finishing: {
      entry: ['refuseNew', 'forgetFailure'],
      on: {
        callEnded: [
          { guard: 'isServed', target: 'serving' },
          { guard: 'mayFinish', actions: ['refuseNew', 'forgetFailure'] },
          { target: 'ended' },
        ],
      },
    },
    ended: { type: 'final', entry: ['end', 'emitEnded', 'forgetFailure'] },
    idle: { type: 'final' },
  },
});
