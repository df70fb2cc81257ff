// The report of one MCP request that came over HTTP: as a call of REST, or as a message to the MCP endpoint. The line of its
// HTTP request shows it (middleware/access-log.ts).

import { type CallEnd, type CallOutcome, type CallReport, outcomeOf } from '../domain/call-report.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { ExchangeRequest, SentTo } from '../domain/exchange.ts';

/** The request that is reported. */
export type Reported = Pick<ExchangeRequest, 'method' | 'params'>;

export class HttpCallReport implements CallReport {
  readonly method: string;
  /** Name of the called tool. */
  readonly tool: string | undefined;
  /** As a Tracker. */
  sentTo: SentTo | undefined;
  attempts = 0;
  readonly startMs = performance.now();
  /** Undefined until its end. */
  outcome: CallOutcome | undefined;
  /** The error of the gateway, or of JSON-RPC. */
  errorCode: ErrorCode | number | undefined;
  readonly #onEnded: (report: HttpCallReport) => void;

  constructor({ method, params }: Reported, onEnded: (report: HttpCallReport) => void) {
    this.method = method;
    this.tool = method === 'tools/call' && typeof params?.name === 'string' ? params.name : undefined;
    this.#onEnded = onEnded;
  }

  ended(end: CallEnd): void {
    if (this.outcome !== undefined) return;
    this.outcome = outcomeOf(this.method, end);
    if (end.kind === 'error') this.errorCode = end.error.code;
    if (end.kind === 'failed') this.errorCode = end.code;
    this.#onEnded(this);
  }
}
