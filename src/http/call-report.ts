// The report of one MCP request that came over HTTP: as a call of REST, or as a message to the MCP endpoint. The line of its
// HTTP request shows it (middleware/access-log.ts).

import { type CallEnd, type CallOutcome, type CallReport, outcomeOf } from '../domain/call-report.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { CallRecord, ExchangeRequest, SentTo } from '../domain/exchange.ts';
import type { JsonFields } from '../domain/json.ts';
import type { RequestTrace } from '../domain/trace.ts';

/** The request that is reported. */
export interface Reported extends Pick<ExchangeRequest, 'method' | 'params'> {
  /** Of its JSON-RPC message, if it is one. */
  readonly id?: unknown;
  readonly address?: string | undefined;
}

export class HttpCallReport implements CallReport {
  readonly method: string;
  /** Name of the called tool: as the client wrote it, then as its instance knows it. As a Tracker. */
  tool: string | undefined;
  /** Of the tool, as they came; until its end, since a client may read its answer long after that. */
  arguments: JsonFields[string];
  /** Of the client. */
  readonly address: string | undefined;
  /** As a Tracker. */
  sentTo: SentTo | undefined;
  record: CallRecord | undefined;
  readonly trace: RequestTrace | undefined;
  readonly startMs = performance.now();
  /** Undefined until its end. */
  outcome: CallOutcome | undefined;
  /** The error of the gateway, or of JSON-RPC. */
  errorCode: ErrorCode | number | undefined;
  readonly #onEnded: (report: HttpCallReport) => void;

  /** `onEnded`: called at its end. `trace`: see Tracker. */
  constructor(
    { method, params, address }: Reported,
    onEnded: (report: HttpCallReport) => void,
    trace?: RequestTrace,
  ) {
    this.method = method;
    const isCall = method === 'tools/call';
    this.tool = isCall && typeof params?.name === 'string' ? params.name : undefined;
    this.arguments = isCall ? params?.arguments : undefined;
    this.address = address;
    this.#onEnded = onEnded;
    this.trace = trace;
  }

  /** Instances that it was sent to, or could not be sent to because something failed to open before. */
  get attempts(): number {
    return this.record?.attempts ?? 0;
  }

  ended(end: CallEnd): void {
    if (this.outcome !== undefined) return;
    this.outcome = outcomeOf(this.method, end);
    if (end.kind === 'error') this.errorCode = end.error.code;
    if (end.kind === 'failed') this.errorCode = end.code;
    this.#onEnded(this);
    this.arguments = undefined;
  }
}
