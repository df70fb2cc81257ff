// The report of one MCP request, from which the log, the audit log, events and the span get their fields.

import type { CallReport, ExchangeRequest, SentTo } from '../../domain/calls/exchange.ts';
import { type CallEnd, type CallOutcome, outcomeOf } from '../../domain/calls/exchange-event.ts';
import type { RequestTrace } from '../../domain/calls/request-trace.ts';
import type { ErrorCode } from '../../domain/errors/errors.ts';
import type { JsonFields } from '../../domain/json/json.ts';

export interface ReportedRequest extends Pick<ExchangeRequest, 'method'> {
  readonly params?: ExchangeRequest['params'] | undefined;
  readonly id?: unknown;
}

/**
 * The report of one MCP request that was received by REST or by the MCP endpoint; the log line of the HTTP request
 * contains it.
 */
export class HttpCallReport implements CallReport {
  readonly method: string;
  /** Name of the called tool: from the client, later the name at the instance. See OpenReport. */
  tool: string | undefined;
  /** Arguments of the tool as received. Dropped at the end of the request: the client may read its answer much later. */
  arguments: JsonFields[string];
  template: string | undefined;
  view: string | undefined;
  readonly address: string | undefined;
  sentTo: SentTo | undefined;
  /** Including instances that could not be opened. */
  attempts = 0;
  readonly trace: RequestTrace | undefined;
  readonly startMs: number;
  outcome: CallOutcome | undefined;
  /** Error code of the gateway, or of JSON-RPC. */
  errorCode: ErrorCode | number | undefined;
  readonly #onEnded: (report: HttpCallReport) => void;

  constructor(
    { method, params }: ReportedRequest,
    onEnded: (report: HttpCallReport) => void,
    startMs: number,
    address?: string,
    trace?: RequestTrace,
  ) {
    this.method = method;
    this.startMs = startMs;
    const isCall = method === 'tools/call';
    this.tool = isCall && typeof params?.name === 'string' ? params.name : undefined;
    this.arguments = isCall ? params?.arguments : undefined;
    this.address = address;
    this.#onEnded = onEnded;
    this.trace = trace;
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
