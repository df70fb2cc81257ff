// One instance: whether it takes calls, when it is probed, when it is started again. It owns the actor of the
// transport, and so the process or the connection, and the dedicated conversations: its end, and a stop of its
// actor, end both. No call passes here; instance-ref.ts sends `idle` when the machine waits for the last call,
// `suspected` and `unreachable`. Two parallel regions:
//
//   connection   connected ─ transport.closed ─► waiting ── back-off ──► connected …        end ──► ended
//                  │ connecting ── opened ──► healthy ◄── 1 passed / 2 failed ──► unhealthy
//                  │    (both probe themselves)          5 more failed: closing ◄──┘
//                  ├ lost ──► closing
//                  └ disconnect / end ──► ending ─ transport.closed ─► endingConversations
//                waiting ── disconnect / end ──► endingConversations
//                endingConversations ── all dedicated ones ended ──► reconnecting ──► connected, without a back-off / ended
//   duty         serving ◄── drain / resume ──► draining
//                  ├ renew ──► renewing ── resume / the link to its node ends ──► serving
//                  ├ restart ──► restarting ── idle ──► serving (disconnects); drain and resume cancel it
//                  │             from draining: restartingDrained ── idle ──► draining
//                  └ leave ──► leaving ── idle ──► left (ends the connection)

import { type ActorRefFrom, assign, emit, not, raise, type SnapshotFrom } from 'xstate';
import type { InstanceState } from '../../domain/instances/instance.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import { runsAnywhere } from '../../domain/nodes/nodes.ts';
import { CallCounter } from './call-counter.ts';
import { DedicatedConversations } from './dedicated-conversations.ts';
import { type InstanceContext, instanceSetup, probeInput } from './instance-setup.ts';
import type { TransportInput } from './transport-actor.ts';

/** Restarts in a row for which calls wait: those after back-offs of up to 2 s. Source: ADR 113. */
const EXPECTED_RESTARTS = 3;

export type InstanceActor = ActorRefFrom<typeof instanceMachine>;
type InstanceMachineSnapshot = SnapshotFrom<typeof instanceMachine>;

const CONVERSATIONS_ENDED = [
  { guard: 'isLeaving', target: '#instance.connection.ended' },
  { target: '#instance.connection.reconnecting' },
] as const;

export const instanceMachine = instanceSetup.createMachine({
  id: 'instance',
  type: 'parallel',
  context: ({ input, self }) => ({
    ...input,
    calls: new CallCounter(),
    dedicated: new DedicatedConversations({
      ...input,
      transport: () => self.getSnapshot().context.opened?.transport,
    }),
    opened: undefined,
    startingDiagnostics: undefined,
    lastHandshake: undefined,
    lastTools: undefined,
    failures: 0,
    failedRechecks: 0,
    shortOpenings: 0,
    openings: 0,
    failedStarts: 0,
    opensAtOnce: false,
    checkedAtMs: undefined,
    probedAtMs: 0,
    openedAtMs: undefined,
    reason: null,
    stderr: [],
    backOffMs: 0,
    refusal: undefined,
    opensAtMs: 0,
    drainLimitMs: LIMITS.drainMs,
  }),
  invoke: { src: 'ownership', input: ({ context }) => context.dedicated },
  on: {
    change: { actions: assign({ definition: ({ event }) => event.definition }) },
    setPolicy: { actions: assign({ policy: ({ event }) => event.policy }) },
    'list.changed': { actions: emit(({ event }) => event) },
    'list.cut': { actions: emit(({ event }) => event) },
    'tool.withheld': { actions: emit(({ event }) => event) },
  },
  states: {
    connection: {
      initial: 'connected',
      states: {
        connected: {
          initial: 'connecting',
          invoke: { id: 'transport', src: 'transport', input: ({ context }): TransportInput => context },
          on: {
            'transport.lost': { target: '.closing', actions: 'recordEnd' },
            'transport.closed': { target: 'waiting', actions: 'recordEnd' },
            disconnect: { target: '.ending', actions: ['resetBackOff', 'endTransport'] },
            end: { target: '.ending', actions: 'endTransport' },
          },
          states: {
            connecting: {
              on: {
                'transport.starting': {
                  actions: assign({ startingDiagnostics: ({ event }) => event.diagnostics }),
                },
                'transport.opened': { target: 'healthy', actions: 'open' },
              },
            },
            healthy: {
              initial: 'resting',
              on: {
                unreachable: {
                  target: 'unhealthy',
                  actions: assign({ reason: ({ event }) => event.reason }),
                },
              },
              states: {
                resting: {
                  after: { nextProbe: 'due' },
                  on: {
                    suspected: { target: 'probing', guard: 'isProbedLongAgo' },
                    setPolicy: {
                      target: 'resting',
                      reenter: true,
                      actions: assign({ policy: ({ event }) => event.policy }),
                    },
                  },
                },
                due: {
                  always: [
                    { guard: 'hasNewMessage', target: 'resting', actions: 'passByMessage' },
                    { target: 'probing' },
                  ],
                },
                probing: {
                  entry: 'noteProbe',
                  invoke: {
                    src: 'probe',
                    input: ({ context }) => probeInput(context),
                    onDone: {
                      target: 'resting',
                      actions: { type: 'passProbe', params: ({ event }) => event.output },
                    },
                    onError: [
                      {
                        guard: 'isLastFailure',
                        target: '#instance.connection.connected.unhealthy',
                        actions: 'failProbe',
                      },
                      {
                        target: 'resting',
                        actions: 'failProbe',
                      },
                    ],
                  },
                },
              },
            },
            unhealthy: {
              initial: 'resting',
              entry: 'beginRechecks',
              states: {
                resting: { after: { nextRecheck: 'probing' } },
                probing: {
                  entry: 'noteProbe',
                  invoke: {
                    src: 'probe',
                    input: ({ context }) => probeInput(context),
                    onDone: {
                      target: '#instance.connection.connected.healthy',
                      actions: { type: 'passProbe', params: ({ event }) => event.output },
                    },
                    onError: [
                      {
                        guard: 'isLastRecheck',
                        target: '#instance.connection.connected.closing',
                        actions: ['failProbe', 'closeTransport'],
                      },
                      {
                        target: 'resting',
                        actions: 'failProbe',
                      },
                    ],
                  },
                },
              },
            },
            closing: {
              on: {
                'transport.closed': { target: '#instance.connection.waiting', actions: 'forgetTransport' },
              },
              after: { abandoned: '#instance.connection.waiting' },
            },
            ending: {
              exit: 'forgetTransport',
              on: { 'transport.closed': '#instance.connection.endingConversations' },
              after: { abandoned: '#instance.connection.endingConversations' },
            },
          },
        },
        reconnecting: { entry: { type: 'emitRestart', params: { isPlanned: true } }, always: 'connected' },
        waiting: {
          entry: ['scheduleOpening', { type: 'emitRestart', params: { isPlanned: false } }],
          on: {
            disconnect: { target: 'endingConversations', actions: 'resetBackOff' },
            end: 'endingConversations',
          },
          after: { backOff: { guard: not('isLeaving'), target: 'connected' } },
        },
        endingConversations: {
          invoke: {
            src: 'endDedicated',
            input: ({ context }) => context.dedicated,
            onDone: CONVERSATIONS_ENDED,
          },
          after: { abandoned: CONVERSATIONS_ENDED },
        },
        ended: { type: 'final' },
      },
    },
    duty: {
      initial: 'serving',
      on: {
        leave: { target: '.leaving', actions: assign({ drainLimitMs: ({ event }) => event.withinMs }) },
      },
      states: {
        serving: { on: { drain: 'draining', restart: 'restarting', renew: 'renewing' } },
        renewing: {
          on: {
            ...{ drain: 'draining', resume: 'serving', restart: 'restarting' },
            ...{ 'transport.lost': 'serving', 'transport.closed': 'serving' },
          },
        },
        draining: { on: { resume: 'serving', restart: 'restartingDrained', renew: 'renewing' } },
        restarting: {
          on: { drain: 'draining', resume: 'serving' },
          always: { guard: 'isIdle', target: 'serving', actions: raise({ type: 'disconnect' }) },
          after: { drained: { target: 'serving', actions: raise({ type: 'disconnect' }) } },
        },
        restartingDrained: {
          on: { drain: 'draining', resume: 'serving' },
          always: { guard: 'isIdle', target: 'draining', actions: raise({ type: 'disconnect' }) },
          after: { drained: { target: 'draining', actions: raise({ type: 'disconnect' }) } },
        },
        leaving: {
          always: { guard: 'isIdle', target: 'left' },
          after: { drained: 'left' },
        },
        left: { type: 'final', entry: raise({ type: 'end' }) },
      },
    },
  },
});

/** The state that other parts of the gateway and users see. */
export function stateOf(snapshot: InstanceMachineSnapshot): InstanceState {
  if (snapshot.status !== 'active') return 'stopped';
  const { connection, duty } = snapshot.value;
  if (duty !== 'serving') return 'draining';
  if (typeof connection === 'string') return connection === 'ended' ? 'stopped' : 'unhealthy';
  const { connected } = connection;
  if (connected === 'connecting') return 'starting';
  return typeof connected === 'object' && 'healthy' in connected ? 'healthy' : 'unhealthy';
}

/** True when the instance is healthy and no probe is under way, so that one may begin. */
export function isBetweenProbes({ value: { connection } }: InstanceMachineSnapshot): boolean {
  if (typeof connection === 'string') return false;
  const { connected } = connection;
  return typeof connected === 'object' && 'healthy' in connected && connected.healthy === 'resting';
}

/** See InstanceRef.isPlannedEnd. */
export function isPlannedEnd({ value: { connection } }: InstanceMachineSnapshot): boolean {
  return typeof connection === 'string'
    ? connection === 'endingConversations'
    : connection.connected === 'ending';
}

/** See InstanceRef.isStarting. */
export function isStarting(snapshot: InstanceMachineSnapshot): boolean {
  if (snapshot.status !== 'active') return false;
  const { connection, duty } = snapshot.value;
  if (duty === 'restarting' || duty === 'renewing') return true;
  if (duty !== 'serving') return false;
  if (connection === 'waiting') return isRestartExpected(snapshot.context);
  if (typeof connection === 'string') return connection !== 'ended';
  const { connected } = connection;
  if (connected === 'connecting') return isRestartExpected(snapshot.context);
  return connected === 'ending' || (connected === 'closing' && isRestartExpected(snapshot.context, 1));
}

/** See InstanceRef.isRenewing. */
export function isRenewing(snapshot: InstanceMachineSnapshot): boolean {
  const { duty } = snapshot.value;
  if (duty === 'leaving' || duty === 'left') return runsAnywhere(snapshot.context.definition);
  return duty === 'restarting' || (duty === 'serving' && isPlannedEnd(snapshot));
}

/** True when a restart is expected soon. `more`: failures that are not counted yet. */
function isRestartExpected(context: InstanceContext, more = 0): boolean {
  const { shortOpenings, openings, definition, refusal } = context;
  if (refusal?.waitMs !== undefined) return false; // the server asked for a wait
  const isEverStarted = runsProgram(definition) || openings === 0;
  return shortOpenings + more <= (isEverStarted ? EXPECTED_RESTARTS : 0);
}
