// The events of a gateway, to which metrics, statistics, logs and embedders subscribe. No event contains a secret, an argument or a
// result.

import type { ErrorCode } from './errors.ts';
import type { InstanceDefinition, TransportKind } from './instance.ts';

interface InstanceFact {
  /** Wall-clock time, in ms since 1970. */
  readonly atMs: number;
  readonly template: string;
  readonly instanceId: string;
  readonly serverId: string;
}

/** Of the session of an MCP client, and the instance that it is bound to. */
interface SessionFact extends InstanceFact {
  /** See sessionFingerprint: the id of a session is a credential. */
  readonly session: string;
  /** Id of the principal that opened it. */
  readonly principal: string;
}

/** Of a conversation that an instance dedicates to one client: over stdio a process, else a session of the backend. */
interface UpstreamFact extends InstanceFact {
  readonly transport: TransportKind;
  /** Id of the principal that it serves. */
  readonly principal: string;
  /** Process id, if it is a process. */
  readonly pid?: number;
}

interface Plain {
  readonly atMs: number;
}

interface CallFact {
  /** Number of the call in this run of the gateway: the same in all of its events. */
  readonly call: number;
  readonly method: string;
  /** Of `tools/call`: the name of the tool. */
  readonly tool?: string | undefined;
  /** Id of the caller; `anonymous` without credentials. */
  readonly principal: string;
  /** Id of its HTTP request, if any. */
  readonly requestId?: string | undefined;
}

/** Of a call at one instance. */
interface AttemptFact extends InstanceFact, CallFact {
  /** 1 for the first instance that was tried, and so on. Two may be under way at the same time. */
  readonly attempt: number;
}

interface WaitFact {
  /** Ms from the arrival of the call until it was sent to this instance, or failed: in the queue, or at other instances. */
  readonly waitMs: number;
}

/** What a stop waits for. */
export interface Outstanding {
  /** Calls in flight. */
  readonly calls: number;
  /** Those of them that wait for their client to answer a request of its server. */
  readonly unanswered: number;
  /** Sessions of MCP clients with calls under way. */
  readonly sessions: number;
  readonly graceMs: number;
}

/** The end of a session or conversation of a client. */
export interface Ending {
  /** A clause: "exited with code 1". */
  readonly reason: string;
  /** Neither its client nor the gateway ended it. */
  readonly isLost: boolean;
}

/** Every event by its name. */
export interface GatewayEvents {
  'gateway.started': Plain;
  'gateway.closing': Plain & Outstanding;
  'instance.registered': InstanceFact & { readonly replaced: boolean };
  'instance.deregistered': InstanceFact;
  'instance.changed': InstanceFact;
  'instance.starting': InstanceFact;
  'instance.healthy': InstanceFact & { readonly era: string };
  /** `isPlanned`: a restart was requested, so this is no failure. */
  'instance.unhealthy': InstanceFact & { readonly reason: string; readonly isPlanned: boolean };
  /** `isProgram`: it is started again; else only its connection is reopened. */
  'instance.restarting': InstanceFact & {
    readonly reason: string;
    readonly delayMs: number;
    readonly isPlanned: boolean;
    readonly isProgram: boolean;
  };
  'instance.draining': InstanceFact;
  'instance.stopped': InstanceFact;
  /** The actor of the instance failed, by a bug of the gateway: its calls are answered, and it is started again. */
  'instance.crashed': InstanceFact & { readonly reason: string };
  /** Its calls failed or are unanswered: it gets no calls for this time, whatever its health. `reason` is a clause. */
  'instance.ejected': InstanceFact & { readonly reason: string; readonly forMs: number };
  /** It gets calls again: a trial call was answered, or too many others are ejected. */
  'instance.readmitted': InstanceFact;
  'probe.finished': InstanceFact & { readonly passed: boolean; readonly durationMs: number };
  /** It notified that its list of tools changed, or a tool was found to want other headers than before. */
  'tools.changed': InstanceFact;
  /**
   * The tool is left out of lists, because no client may call it: `reason` is a clause. Emitted again only for another reason, or
   * after a list that had the tool.
   */
  'tool.omitted': InstanceFact & { readonly tool: string; readonly reason: string };
  /**
   * A call came in. There is an `exchange.finished` for each instance that was tried, and one last event: an `exchange.finished`
   * with `isLast`, an `exchange.refused` or an `exchange.cancelled`.
   */
  'exchange.started': Plain & CallFact & { readonly template: string };
  /** No instance could take it. */
  'exchange.refused': Plain & CallFact & WaitFact & { readonly template: string; readonly code: ErrorCode };
  /** Its caller disconnected while no instance worked on it. */
  'exchange.cancelled': Plain & CallFact & WaitFact & { readonly template: string };
  'exchange.finished': AttemptFact &
    WaitFact & {
      readonly outcome: ExchangeOutcome;
      readonly durationMs: number;
      /** The call has ended with it. */
      readonly isLast: boolean;
      /** Set for the outcome `failed`. */
      readonly code?: ErrorCode | undefined;
    };
  /** The call continues at another instance after this one failed. */
  'exchange.retried': AttemptFact & { readonly code: ErrorCode };
  /** A client has a session. A session that cannot be opened is no event: its client gets the error. */
  'session.opened': SessionFact;
  /** It continues at this instance instead of `fromInstanceId`, without its state in the old backend. */
  'session.moved': SessionFact & { readonly fromInstanceId: string; readonly fromServerId: string };
  /** Once per `session.opened`. `isLost`: no instance could continue it. */
  'session.ended': SessionFact & Ending;
  /** Followed by one `upstream.ended`. Not emitted for the shared conversation of an instance. */
  'upstream.opened': UpstreamFact;
  /** It could not be opened. Not emitted when its client disconnected meanwhile. */
  'upstream.failed': UpstreamFact & { readonly code: ErrorCode; readonly reason: string };
  /** `isLost`: the gateway did not end it. Its process died, or its HTTP backend forgot it. */
  'upstream.ended': UpstreamFact & Ending;
  'template.changed': Plain & { readonly template: string };
  /** Changes of other nodes could not be read, which is tried again. Emitted once; `registry.current` follows. */
  'registry.behind': Plain & { readonly code: ErrorCode };
  'registry.current': Plain;
}

/** `error`: answered with a JSON-RPC error; `failed`: no answer; `cancelled`: the caller disconnected. */
export type ExchangeOutcome = 'result' | 'error' | 'failed' | 'cancelled';

export type EventName = keyof GatewayEvents;
export type GatewayEvent = { [N in EventName]: { readonly type: N } & GatewayEvents[N] }[EventName];

/** The names of all events, for programs without types. */
export const EVENT_NAMES: Readonly<Record<EventName, true>> = {
  'gateway.started': true,
  'gateway.closing': true,
  'instance.registered': true,
  'instance.deregistered': true,
  'instance.changed': true,
  'instance.starting': true,
  'instance.healthy': true,
  'instance.unhealthy': true,
  'instance.restarting': true,
  'instance.draining': true,
  'instance.stopped': true,
  'instance.crashed': true,
  'instance.ejected': true,
  'instance.readmitted': true,
  'probe.finished': true,
  'tools.changed': true,
  'tool.omitted': true,
  'exchange.started': true,
  'exchange.refused': true,
  'exchange.cancelled': true,
  'exchange.finished': true,
  'exchange.retried': true,
  'session.opened': true,
  'session.moved': true,
  'session.ended': true,
  'upstream.opened': true,
  'upstream.failed': true,
  'upstream.ended': true,
  'template.changed': true,
  'registry.behind': true,
  'registry.current': true,
};

/** The fields of every event of an instance, with the present time. */
export function eventOf({
  template,
  id,
  serverId,
}: Pick<InstanceDefinition, 'template' | 'id' | 'serverId'>) {
  return { atMs: Date.now(), template, instanceId: id, serverId };
}
