// The spans of a request, as the code that works on it uses them. src/tracing implements them with OpenTelemetry; a
// request that is not traced has no spans.

import type { ErrorCode } from '../errors/errors.ts';
import type { TransportKind } from '../instances/transport-kinds.ts';
import type { JsonFields } from '../json/json.ts';
import type { FinalEvent } from './exchange-event.ts';

/** `traceparent` and perhaps `tracestate`, as headers of HTTP and as fields of `_meta`. Source: W3C Trace Context; SEP-414. */
export type TraceFields = Readonly<Record<string, string>>;

/** The span of one request of a client. */
export interface RequestTrace {
  attempt(details: AttemptDetails): AttemptTrace;
}

/** The facts that the span of an attempt shows. */
export interface AttemptDetails {
  readonly method: string;
  /** The params of the request, of which only the name of the tool or prompt is read. */
  readonly params: JsonFields | undefined;
  readonly template: string;
  readonly view: string | undefined;
  readonly instanceId: string;
  readonly transport: TransportKind;
  /** 1 for the first one. */
  readonly number: number;
}

/** The span of one attempt at an instance. */
export interface AttemptTrace {
  /** The fields for the backend, which continues the trace. */
  readonly fields: TraceFields;
  /** The revision that the backend speaks; `''` for none. */
  speaks(protocolVersion: string): void;
  /** Begins the child span of a POST; an attempt has several when the backend forgot its session. */
  post(origin: string): PostTrace;
  answered(answer: FinalEvent): void;
  /** `error`: undefined for an answer, and for a caller that disconnected. */
  ended(error: ErrorCode | undefined): void;
}

/** The span of one HTTP request of an attempt. */
export interface PostTrace {
  readonly fields: TraceFields;
  /** `status`: of the answer; 0 for none. */
  ended(status: number): void;
}
