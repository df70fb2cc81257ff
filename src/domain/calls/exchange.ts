// One exchange: a request to a backend and all messages that come back for it. It is an Observable of
// ExchangeEvent (exchange-event.ts); its errors are GatewayError (errors.ts).

import { ANONYMOUS } from '../accounts/principal.ts';
import type { ToolRights } from '../accounts/rights.ts';
import type { JsonFields, JsonObject } from '../json/json.ts';
import { type CallEnd, type ExchangeEvent, type FinalEvent, isFinal } from './exchange-event.ts';
import type { AttemptTrace, RequestTrace } from './request-trace.ts';

/** The facts that the gateway knows about the call of a request. None of them is sent to a backend. */
interface CallContext {
  /**
   * The id of the calling principal, if any. It selects the receivers of messages that a shared backend does not
   * address to one client.
   */
  readonly callerId?: string | undefined;
  /** The id of the view through which it came, for events. */
  readonly view?: string | undefined;
  /** The tools that the caller may call. Absent: all. */
  readonly tools?: ToolRights | undefined;
  /** The tool whose call with these arguments the user has confirmed: see itemKey. */
  readonly confirmed?: string | undefined;
  /**
   * Present on a further round of a call. Resolves with true once for each state that the client carries: the limit of a view has
   * counted the call in its first round. Never rejects.
   */
  readonly wasCounted?: (() => Promise<boolean>) | undefined;
  /**
   * Arrival time in ms of the gateway's monotonic clock, from which the deadline of a request that had to
   * wait counts. Default: now.
   */
  readonly arrivedAtMs?: number;
  /** Whether a view says that calling its tool twice does no harm. Default: the annotations of the tool. */
  readonly isRepeatable?: boolean | undefined;
  /** The limit of a view for the first answer, in ms. Default: that of the tool or the template. */
  readonly viewTimeoutMs?: number | undefined;
  /** Has the reason of a cancellation, if the client gives one. */
  readonly canceller?: {
    readonly cancelReason: string | undefined;
  };
  /** Is updated with the instance that works on the request. */
  readonly report?: OpenReport;
  /** The id of the HTTP request, for events. */
  readonly requestId?: string | undefined;
  /**
   * Called before each attempt, before the request is sent again, and before it is sent after a wait for a connection.
   * False when its view does not have the tool, prompt or resource any more, and after a freeze of this node, when another node
   * may serve the session. Default: true.
   */
  readonly mayBeSent?: () => boolean;
  /**
   * True: the backend is asked for progress although the caller gave no token. Default: false. Source: ADR 40.
   */
  readonly wantsProgress?: boolean;
  /** The longest time until the answer of an instance of another node, in ms. A node that runs a call ends it before that. */
  readonly longestMs?: number;
  /**
   * True for a request that is sent again in its conversation, after an error with `isRepaired`. If the backend refuses
   * it again, the call has failed.
   */
  readonly isResent?: boolean;
  /**
   * Called with true when the request is held back until the gateway has a token for it, and with false after that. Only
   * for an instance with `auth`.
   */
  readonly held?: (isHeld: boolean) => void;
}

/** A request for a backend. The transport gives it an id; `_meta` of the caller stays in `params`. */
export interface ExchangeRequest extends CallContext {
  readonly method: string;
  /** Fields that the gateway does not read are kept as text: ADR 43. */
  readonly params?: JsonFields;
  /** `mcp-param-*` headers in lower case; sent only to HTTP backends of the modern era. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The span of the attempt. Only its fields are sent, if the era of the backend permits. */
  readonly trace?: AttemptTrace;
}

/** The options of sending a request. */
export interface ExchangeOptions {
  /** The longest wait for the first answer, in ms; each notification restarts it. Default: the template's policy. */
  readonly timeoutMs?: number;
  /** The only instance that may answer: without balancing and failover. */
  readonly instanceId?: string;
  /** True for a request that continues earlier work of that instance, which may be draining or unhealthy. Default: false. */
  readonly isContinuation?: boolean;
}

/** The facts known about a request before its answer, such as the instance that works on it. */
export interface OpenReport {
  /** The instance that works on the request, the last one of several; none while it waits in a queue. */
  sentTo?: SentTo | undefined;
  /** The span of the request, if it is traced. */
  readonly trace?: RequestTrace | undefined;
  /** The number of instances that were tried in its latest round. */
  attempts?: number;
  /** The name of the called tool at its instance. */
  tool?: string | undefined;
  /** The template that the latest round is for, and the view through which it came. */
  template?: string | undefined;
  view?: string | undefined;
  /** The arguments of that tool, where the request named another one. */
  arguments?: JsonFields[string];
}

/** An instance, by its template and its id. */
export interface SentTo {
  readonly template: string;
  readonly id: string;
}

/** The params of `notifications/cancelled`. */
export function cancellation(requestId: number, reason = 'no caller waits for the answer'): JsonObject {
  return { requestId, reason };
}

/** The id of the principal for which a request is counted. */
export function ownerIdOf({ callerId = ANONYMOUS.id }: Pick<ExchangeRequest, 'callerId'>): string {
  return callerId;
}

/** The name of the tool that a request calls, if any. */
export function toolOf({ method, params }: Pick<ExchangeRequest, 'method' | 'params'>): string | undefined {
  return method === 'tools/call' && typeof params?.name === 'string' ? params.name : undefined;
}

/** An event of an exchange, and the instance that it comes from. */
export interface SourcedEvent {
  readonly event: ExchangeEvent;
  /** The instance that gave it. Both ids are empty for an answer of the gateway itself, such as a list of a view. */
  readonly instanceId: string;
  readonly serverId: string;
  /** The answer is from a cache: no backend was asked, and the instance may be gone. */
  readonly isRemembered?: true;
  /** The age of a cached answer that is no longer fresh, in ms, when no backend could be asked. */
  readonly staleMs?: number;
  /** The confirmation of the request, if it needed one. */
  readonly confirmed?: string;
  /** The limit of a view has counted the call: its further rounds are not counted. */
  readonly isCounted?: true;
}

/** The last event of an exchange. */
export type SourcedAnswer = Omit<SourcedEvent, 'event'> & { readonly event: FinalEvent };

export function isSourcedAnswer(sourced: SourcedEvent): sourced is SourcedEvent & SourcedAnswer {
  return isFinal(sourced.event);
}

/**
 * The report of one request of a client for the log, the audit log and the trace. The code that answers the client
 * opens and ends it; the dispatcher writes its fields as an OpenReport.
 */
export interface CallReport extends OpenReport {
  /** Called before the answer is written; only the first call counts. */
  ended(end: CallEnd): void;
}
