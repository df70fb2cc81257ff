// The report of one MCP request that was received by REST or by the MCP endpoint. The log line of the HTTP request contains it
// (middleware/access-log.ts).

import { type CallEnd, type CallOutcome, type CallReport, outcomeOf } from '../domain/call-report.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { CallRecord, ExchangeRequest, SentTo } from '../domain/exchange.ts';
import type { JsonFields } from '../domain/json.ts';
import type { RequestTrace } from '../domain/trace.ts';

export interface ReportedRequest extends Pick<ExchangeRequest, 'method'> {
  readonly params?: ExchangeRequest['params'] | undefined;
  readonly id?: unknown;
  readonly address?: string | undefined;
}

export class HttpCallReport implements CallReport {
  readonly method: string;
  /** Name of the called tool: from the client, later the name at the instance. See Tracker. */
  tool: string | undefined;
  /** Arguments of the tool as received. Dropped at the end of the request: the client may read its answer much later. */
  arguments: JsonFields[string];
  readonly address: string | undefined;
  /** See Tracker. */
  sentTo: SentTo | undefined;
  record: CallRecord | undefined;
  readonly trace: RequestTrace | undefined;
  readonly startMs = performance.now();
  /** Undefined until the end. */
  outcome: CallOutcome | undefined;
  /** Error code of the gateway, or of JSON-RPC. */
  errorCode: ErrorCode | number | undefined;
  readonly #onEnded: (report: HttpCallReport) => void;

  constructor(
    { method, params, address }: ReportedRequest,
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

  /** Number of instances that were tried, with those that could not be opened. */
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
