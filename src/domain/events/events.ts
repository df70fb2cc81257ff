// The events of a gateway, to which metrics, statistics, logs and embedders subscribe. No event contains a secret,
// an argument or a result.

import type { CallOutcome } from '../calls/exchange-event.ts';
import type { ErrorCode } from '../errors/errors.ts';
import type { InstanceDefinition } from '../instances/instance.ts';
import type { TransportKind } from '../instances/transport-kinds.ts';
import type { WithheldItem } from '../mcp/mcp.ts';
import type { Clock } from '../time/clock.ts';

/** The fields of every event about an instance. */
export interface InstanceFields {
  /** Wall-clock time, in ms since 1970. */
  readonly atMs: number;
  readonly template: string;
  readonly instanceId: string;
  readonly serverId: string;
}

/** The session of an MCP client, and the instance that it is bound to. */
interface SessionFields extends InstanceFields {
  /** See sessionFingerprint: the id of a session is a credential. */
  readonly session: string;
  /** The id of the principal that opened it. */
  readonly principal: string;
}

/** A conversation that an instance dedicates to one client: over stdio a process, else a session of the backend. */
interface ConversationFields extends InstanceFields {
  readonly transport: TransportKind;
  /** The id of the principal that it serves. */
  readonly principal: string;
  /** The process id, if it is a process. */
  readonly pid?: number;
  /** True when another node runs the instance: that node emits the same event, and counts the process. */
  readonly isElsewhere?: true;
}

interface EventFields {
  readonly atMs: number;
}

interface PinnedToolFields {
  readonly template: string;
  readonly tool: string;
  /** The pinned view; absent where the template itself is pinned. */
  readonly view?: string;
}

interface CallFields {
  /** The number of the call in this run of the gateway: the same in all of its events. */
  readonly call: number;
  readonly method: string;
  /** The name of the tool, for `tools/call`. */
  readonly tool?: string | undefined;
  /** The id of the view through which it came, if any. */
  readonly view?: string | undefined;
  /** The id of the caller; `anonymous` without credentials. */
  readonly principal: string;
  /** The id of its HTTP request, if any. */
  readonly requestId?: string | undefined;
}

interface AttemptFields extends InstanceFields, CallFields {
  /** 1 for the first instance that was tried, and so on. Two may be under way at the same time. */
  readonly attempt: number;
}

interface WaitFields {
  /** Ms from the arrival of the call until it was sent to this instance, or failed: in the queue, or at other instances. */
  readonly waitMs: number;
}

/** The end of an attempt, or of a call. */
interface EndFields<Outcome extends RequestOutcome> extends WaitFields {
  readonly outcome: Outcome;
  /** The duration of the attempt, in ms; 0 for a call that ended without one. */
  readonly durationMs: number;
  /** True when the call has ended with it. */
  readonly isLast: boolean;
  /** The code of the error, for the outcomes `failed` and `refused`. */
  readonly code?: ErrorCode | undefined;
}

/** The end of a session or conversation of a client. */
interface ClientEndFields {
  /** A clause: "exited with code 1". */
  readonly reason: string;
  /** True when neither its client nor the gateway ended it. */
  readonly isLost: boolean;
}

/** TABLE of all events: the name of each, and its fields. */
export const EVENTS = {
  'gateway.started': fields<EventFields>(),
  /** `calls`: those in flight, for which it waits. */
  'gateway.closing': fields<EventFields & { readonly calls: number; readonly graceMs: number }>(),
  /** The gateway takes no new sessions until `gateway.resumed`. */
  'gateway.draining': fields<EventFields>(),
  'gateway.resumed': fields<EventFields>(),
  'instance.registered': fields<InstanceFields & { readonly replaced: boolean }>(),
  'instance.deregistered': fields<InstanceFields>(),
  'instance.changed': fields<InstanceFields>(),
  'instance.starting': fields<InstanceFields>(),
  'instance.healthy': fields<InstanceFields & { readonly era: string }>(),
  /** `isPlanned`: a restart was requested, so this is not a failure. */
  'instance.unhealthy': fields<InstanceFields & { readonly reason: string; readonly isPlanned: boolean }>(),
  'instance.restarting': fields<
    InstanceFields & {
      readonly reason: string;
      readonly delayMs: number;
      readonly isPlanned: boolean;
    }
  >(),
  'instance.draining': fields<InstanceFields>(),
  'instance.stopped': fields<InstanceFields>(),
  /** The actor of the instance failed, by a bug of the gateway: its calls are answered, and it is started again. */
  'instance.crashed': fields<InstanceFields & { readonly reason: string }>(),
  /**
   * Calls failed: the instance gets no calls for this time, whatever its health. Or calls are unanswered: it gets calls only
   * when no other instance can take them. `reason` is a clause.
   */
  'instance.ejected': fields<InstanceFields & { readonly reason: string; readonly forMs: number }>(),
  /** The instance gets calls again: a trial call was answered, or too many others are ejected. Not after it was unhealthy. */
  'instance.readmitted': fields<InstanceFields>(),
  'probe.finished': fields<InstanceFields & { readonly passed: boolean; readonly durationMs: number }>(),
  /** The instance notified that its list of tools changed, or a tool was found to want other headers than before. */
  'tools.changed': fields<InstanceFields>(),
  /** The list ends before its last page, because it has no end or too much: `reason` is a clause. Once per session and reason. */
  'list.cut': fields<InstanceFields & { readonly list: string; readonly reason: string }>(),
  /**
   * The tool, or the item of another `list`, is left out of lists, because no client could use it: at an instance, or from the
   * list of all templates. `reason` is a clause. Emitted again only for another reason.
   */
  'tool.withheld': fields<
    EventFields &
      Partial<Pick<InstanceFields, 'instanceId' | 'serverId'>> & {
        readonly template: string;
        /** The pinned view in which it waits for approval. */
        readonly view?: string;
        readonly list?: string;
        /** Name or URI of the item; its place in the list if it has none. */
        readonly tool: string;
        readonly reason: string;
        readonly alias: 'tool.omitted';
      }
  >(),
  /** A server of a pinned template or view lists the tool with a definition that was not approved; it is withheld until it is. */
  'tool.changed': fields<EventFields & PinnedToolFields>(),
  /**
   * An admin has approved the tool of a pinned template or view as it is listed now, or it was listed first after
   * that was pinned.
   */
  'tool.approved': fields<EventFields & PinnedToolFields>(),
  /** A call came in. One `call.finished` follows, after an `attempt.finished` for each attempt that was not its end. */
  'call.started': fields<
    EventFields & CallFields & { readonly template: string; readonly alias: 'exchange.started' }
  >(),
  /** An attempt at an instance ended, and the call did not end with it. */
  'attempt.finished': fields<
    AttemptFields & EndFields<CallOutcome> & { readonly alias: 'exchange.finished' }
  >(),
  /** The call continues at another instance after this one failed. */
  'call.retried': fields<AttemptFields & { readonly code: ErrorCode; readonly alias: 'exchange.retried' }>(),
  /**
   * A call has ended: emitted once for every call. It has the instance and the number of its last attempt, unless the
   * call ended while no instance worked on it: then its outcome is `refused` (no instance could take it) or
   * `cancelled` (its caller disconnected).
   */
  'call.finished': fields<
    EventFields &
      CallFields &
      EndFields<RequestOutcome> & {
        readonly [F in 'instanceId' | 'serverId' | 'attempt']?: AttemptFields[F] | undefined;
      } & {
        readonly template: string;
        readonly alias: 'exchange.finished' | 'exchange.refused' | 'exchange.cancelled';
      }
  >(),
  /** A client has a session. A session that cannot be opened emits no event: its client gets the error. */
  'session.opened': fields<SessionFields>(),
  /** The session continues at this instance instead of `fromInstanceId`, without its state in the old backend. */
  'session.moved': fields<
    SessionFields & { readonly fromInstanceId: string; readonly fromServerId: string }
  >(),
  /** A session has ended: emitted once per `session.opened`. `isLost`: no instance could continue it. */
  'session.ended': fields<SessionFields & ClientEndFields>(),
  /** Followed by one `upstream.ended`. Not emitted for the shared conversation of an instance. */
  'upstream.opened': fields<ConversationFields>(),
  /** The conversation could not be opened. Not emitted when its client disconnected meanwhile. */
  'upstream.failed': fields<ConversationFields & { readonly code: ErrorCode; readonly reason: string }>(),
  /** `isLost`: the gateway did not end it. Its process died, or its HTTP backend forgot it. */
  'upstream.ended': fields<ConversationFields & ClientEndFields>(),
  'template.changed': fields<EventFields & { readonly template: string }>(),
  /** A view is new, changed or deleted. */
  'view.changed': fields<
    EventFields & { readonly view: string; readonly change: 'created' | 'changed' | 'deleted' }
  >(),
  /** Changes of other nodes could not be read, which is tried again. Emitted once; `registry.current` follows. */
  'registry.behind': fields<EventFields & { readonly code: ErrorCode }>(),
  'registry.current': fields<EventFields>(),
};

/** Changes of the registry, which every node of a deployment puts in force, and emits, itself. */
export const REGISTRY_EVENTS: ReadonlySet<string> = new Set([
  'instance.registered',
  'instance.deregistered',
  'instance.changed',
  'template.changed',
  'view.changed',
] satisfies EventName[]);

/** Former names of events, which readers may still ask for, and the types that have them as their `alias`. */
export const EVENT_ALIASES: Readonly<Record<string, readonly EventName[]>> = {
  'tool.omitted': ['tool.withheld'],
  'exchange.started': ['call.started'],
  'exchange.finished': ['attempt.finished', 'call.finished'],
  'exchange.retried': ['call.retried'],
  'exchange.refused': ['call.finished'],
  'exchange.cancelled': ['call.finished'],
};

/** A row has the type of the fields and no value. */
function fields<F>(): { readonly fields?: F } {
  return {};
}

/** The fields of every event by its name. */
export type GatewayEvents = {
  readonly [N in keyof typeof EVENTS]: Required<(typeof EVENTS)[N]>['fields'];
};

/** The public name of CallOutcome: the same words as in logs, traces and the audit log. `failed`: no answer. */
export type ExchangeOutcome = CallOutcome;

/** `refused`: no instance could take it. */
export type RequestOutcome = CallOutcome | 'refused';

export type EventName = keyof GatewayEvents;
export type GatewayEvent = { [N in EventName]: { readonly type: N } & GatewayEvents[N] }[EventName];

/** The fields of every event of an instance, with the present time. */
export function eventOf(
  { wall }: Clock,
  { template, id, serverId }: Pick<InstanceDefinition, 'template' | 'id' | 'serverId'>,
) {
  return { atMs: wall(), template, instanceId: id, serverId };
}

/** The event of an item that is left out of the list of all templates. */
export function withheldEvent(
  atMs: number,
  template: string,
  { list, name, reason }: WithheldItem,
): GatewayEvent {
  return { type: 'tool.withheld', atMs, template, list, tool: name, reason, alias: 'tool.omitted' };
}

/** The fields of an event as the API and the log write them: names in snake_case, numbers with at most three decimals. */
export function writtenFields(fields: object): Record<string, unknown> {
  const written: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    const key = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    written[key] =
      typeof value === 'number' && !Number.isInteger(value) ? Math.round(value * 1_000) / 1_000 : value;
  }
  return written;
}
