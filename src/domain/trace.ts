// The spans of a request on its way, as the rooms see them that carry it. src/tracing makes them, with OpenTelemetry; a request
// that is not traced has none.

import type { ErrorCode } from './errors.ts';
import type { TransportKind } from './instance.ts';
import type { JsonFields, JsonText } from './json.ts';
import type { JsonRpcError } from './jsonrpc.ts';

/** `traceparent` and perhaps `tracestate`, as headers of HTTP and as fields of `_meta`. Source: W3C Trace Context; SEP-414. */
export type TraceFields = Readonly<Record<string, string>>;

/** The span of the request of a client. */
export interface RequestTrace {
  /** Begins the span of an attempt below it. */
  attempt(facts: AttemptFacts): AttemptTrace;
}

/** One attempt at one instance. */
export interface AttemptFacts {
  readonly method: string;
  /** Only the name of a tool or prompt is read. */
  readonly params: JsonFields | undefined;
  readonly template: string;
  readonly instanceId: string;
  readonly transport: TransportKind;
  /** 1 for the first one. */
  readonly number: number;
}

/** The span of an attempt. */
export interface AttemptTrace {
  /** What the backend continues with. */
  readonly fields: TraceFields;
  /** The revision that the backend speaks; `''` for none. */
  speaks(protocolVersion: string): void;
  /** Begins the span of an exchange over HTTP below it. An attempt has several where a backend forgot its session. */
  post(origin: string): PostTrace;
  /** The backend answered. */
  answered(answer: TracedAnswer): void;
  /** Without an error for an answer, and for a caller that left. */
  ended(error: ErrorCode | undefined): void;
}

/** As FinalEvent. */
export type TracedAnswer =
  | { readonly kind: 'result'; readonly result: JsonText }
  | { readonly kind: 'error'; readonly error: JsonRpcError };

/** The span of one POST. */
export interface PostTrace {
  readonly fields: TraceFields;
  /** `status`: of the answer; 0 for none. */
  ended(status: number): void;
}
