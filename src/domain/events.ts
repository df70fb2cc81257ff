// What happens in a gateway, as facts in the past tense. Metrics, stats, logs and embedders subscribe to these.
// No event carries a secret, an argument or a result.

import type { ErrorCode } from './errors.ts';
import type { InstanceDefinition, TransportKind } from './instance.ts';

interface InstanceFact {
  /** Wall-clock time, in ms since 1970. */
  readonly atMs: number;
  readonly template: string;
  readonly instanceId: string;
  readonly serverId: string;
}

/** About the session of an MCP client, and the instance that it is bound to. */
interface SessionFact extends InstanceFact {
  /** See sessionFingerprint: the id of a session is a credential. */
  readonly session: string;
  /** Id of the principal that opened it. */
  readonly principal: string;
}

/** About a conversation that an instance dedicates to one client: over stdio a process, else a session there. */
interface UpstreamFact extends InstanceFact {
  readonly transport: TransportKind;
  /** Id of the principal that it serves. */
  readonly principal: string;
  /** Of the process, where it is one that was started. */
  readonly pid?: number;
}

interface Plain {
  readonly atMs: number;
}

/** About a call. */
interface CallFact {
  /** Number of the call in this run of the gateway: the same in all of its events. */
  readonly call: number;
  readonly method: string;
  /** Of `tools/call`: the name of the tool. */
  readonly tool?: string | undefined;
  /** Id of the caller; `anonymous` without credentials. */
  readonly principal: string;
  /** Id of the HTTP request that it came with, if it did. */
  readonly requestId?: string | undefined;
}

/** About a call at one instance. */
interface AttemptFact extends InstanceFact, CallFact {
  /** 1 for the first instance that was asked, and so on. Two may be under way at the same time. */
  readonly attempt: number;
}

/** How long a call waited. */
interface WaitFact {
  /** From the arrival of the call to the moment when it was sent there, or given up: in the queue, or at other instances. */
  readonly waitMs: number;
}

/** What a stop waits for. */
export interface Outstanding {
  /** Calls in flight. */
  readonly calls: number;
  /** Those of them that wait until their client answers what its server asked it. */
  readonly unanswered: number;
  /** Sessions of MCP clients with calls under way. */
  readonly sessions: number;
  /** How long they may take. */
  readonly graceMs: number;
}

/** The end of a session or conversation of a client. */
export interface Ending {
  /** A clause: "exited with code 1". */
  readonly reason: string;
  /** Neither its client nor the gateway wanted it. */
  readonly isLost: boolean;
}

/** Every event by its name. `on(name)` of the gateway narrows to one of them. */
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
  /** `isProgram`: it is started again; of any other only the connection is opened anew. */
  'instance.restarting': InstanceFact & {
    readonly reason: string;
    readonly delayMs: number;
    readonly isPlanned: boolean;
    readonly isProgram: boolean;
  };
  'instance.draining': InstanceFact;
  'instance.stopped': InstanceFact;
  /** The gateway's actor of the instance failed, by a fault of the gateway: its calls get an answer, and it starts anew. */
  'instance.crashed': InstanceFact & { readonly reason: string };
  /** Its calls failed or stay silent: it gets none for this time, whatever its health. `reason` is a clause. */
  'instance.ejected': InstanceFact & { readonly reason: string; readonly forMs: number };
  /** It gets calls again: one was answered, or too many others are away. */
  'instance.readmitted': InstanceFact;
  'probe.finished': InstanceFact & { readonly passed: boolean; readonly durationMs: number };
  /** It says that its list of tools changed, or one was found to ask for other headers than before. */
  'tools.changed': InstanceFact;
  /**
   * Its lists come without the tool, because no client may call it: `reason` is a clause. Sent again only for another
   * reason, or after a list that had the tool.
   */
  'tool.omitted': InstanceFact & { readonly tool: string; readonly reason: string };
  /**
   * A call came in. There is an `exchange.finished` for each instance that was tried, and one last event: an `exchange.finished`
   * with `isLast`, an `exchange.refused` or an `exchange.cancelled`.
   */
  'exchange.started': Plain & CallFact & { readonly template: string };
  /** No instance takes it, or none any more. */
  'exchange.refused': Plain & CallFact & WaitFact & { readonly template: string; readonly code: ErrorCode };
  /** Its caller left while no instance worked on it. */
  'exchange.cancelled': Plain & CallFact & WaitFact & { readonly template: string };
  'exchange.finished': AttemptFact &
    WaitFact & {
      readonly outcome: ExchangeOutcome;
      readonly durationMs: number;
      /** The call has ended with it. */
      readonly isLast: boolean;
      /** Set when the exchange failed on its way. */
      readonly code?: ErrorCode | undefined;
    };
  /** The call goes on to another instance after this one failed it. */
  'exchange.retried': AttemptFact & { readonly code: ErrorCode };
  /** A client has a session now. A session that cannot be opened is no event: its client gets the error. */
  'session.opened': SessionFact;
  /** It continues at this instance, instead of `fromInstanceId`. The state in its old backend is lost. */
  'session.moved': SessionFact & { readonly fromInstanceId: string; readonly fromServerId: string };
  /** Once per `session.opened`. `isLost`: it was not ended, but no instance could continue it. */
  'session.ended': SessionFact & Ending;
  /** Ends in one `upstream.ended`. The shared conversation of an instance emits none of these events. */
  'upstream.opened': UpstreamFact;
  /** It could not be opened. Not sent when its client went away meanwhile. */
  'upstream.failed': UpstreamFact & { readonly code: ErrorCode; readonly reason: string };
  /** `isLost`: the gateway did not end it. Its process died, or its HTTP backend forgot it. */
  'upstream.ended': UpstreamFact & Ending;
  'template.changed': Plain & { readonly template: string };
  /** What other nodes changed could not be read. It is tried again. Sent once; `registry.current` follows at the end. */
  'registry.behind': Plain & { readonly code: ErrorCode };
  'registry.current': Plain;
}

/** `error`: answered with a JSON-RPC error; `failed`: no answer; `cancelled`: the caller went away. */
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

/** The part that every fact about an instance has, as of now. */
export function eventOf({
  template,
  id,
  serverId,
}: Pick<InstanceDefinition, 'template' | 'id' | 'serverId'>) {
  return { atMs: Date.now(), template, instanceId: id, serverId };
}
