// One request of a legacy client that is under way: writes the messages of its exchange to the answer of its POST.

import type { CallReport, SourcedEvent } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent, FinalEvent } from '../../domain/calls/exchange-event.ts';
import type { ServerRequest } from '../../domain/mcp/client.ts';
import { type JsonRpcId, RPC } from '../../domain/mcp/jsonrpc.ts';
import { CANCELLED, PROGRESS } from '../../domain/mcp/mcp.ts';
import { ClientCall } from '../client-call.ts';
import { type FaultListener, noteError } from '../endpoint-types.ts';
import { errorMessage, notificationMessage, type RpcFailure, resultMessage, rpcFailureOf } from '../rpc.ts';
import type { PostAnswer } from './post-answer.ts';

export interface LegacyCallHost {
  /** The template of the session; undefined for an aggregate session. */
  readonly template: string | undefined;
  ask(request: ServerRequest, call: LegacyCall): void;
  /** Called when the call is over, before its answer is written. */
  ended(call: LegacyCall): void;
  readonly onFault: FaultListener;
}

/**
 * A call, from its POST to the end of its answer. A lost connection does not end it. Source: MCP 2025-11-25
 * basic/utilities/cancellation.
 */
export class LegacyCall extends ClientCall<SourcedEvent> {
  readonly id: JsonRpcId;
  readonly post: PostAnswer;
  readonly #host: LegacyCallHost;

  constructor(id: JsonRpcId, post: PostAnswer, host: LegacyCallHost, report: CallReport) {
    super(report, host.onFault);
    this.id = id;
    this.post = post;
    this.#host = host;
  }

  override cancel(): boolean {
    const isCancelled = super.cancel();
    if (isCancelled) this.post.skip();
    return isCancelled;
  }

  // --- for the writer --------------------------------------------------------------------------------------

  get pathName(): string | undefined {
    return this.#host.template;
  }

  /** Begins the event stream, which can be resumed. */
  begin(): void {
    this.post.open();
  }

  take(sourced: SourcedEvent): void {
    this.noteInstanceOf(sourced);
    this.#handle(sourced.event);
  }

  failureOf(thrown: unknown): RpcFailure {
    return rpcFailureOf(thrown);
  }

  refuse({ status, error, errorCode }: RpcFailure): void {
    if (!this.end()) return;
    this.leave();
    // Only the error of an ended session leads to a status, by which clients initialize again. Any other error is the answer to a
    // request that was accepted. Source: 2025-11-25 basic/transports#session-management.
    const isSessionOver = status === 404 && error.code === RPC.sessionNotFound;
    noteError(this.post.log, error.code, errorCode);
    this.post.answer(errorMessage(this.id, error), this.id, isSessionOver ? 404 : 200);
  }

  /** Notes the instance for the access log. With several requests in one POST, the first one is logged. */
  noteInstance(instanceId: string): void {
    this.post.log.instanceId ??= instanceId;
  }

  override onOver(): void {
    this.#host.ended(this);
  }

  #handle(event: ExchangeEvent): void {
    switch (event.kind) {
      case 'result':
        this.#answer(resultMessage(this.id, event.result), event);
        return;
      case 'error':
        this.#answer(errorMessage(this.id, event.error), event);
        return;
      case 'notification':
        // The server cancels its own request, whose id is another one here; the request ends with the call at the latest.
        if (event.method === CANCELLED) return;
        // Only the gateway asked for this progress, to restart its deadline. Source: basic/utilities/progress.
        if (event.method === PROGRESS && event.params.progressToken === undefined) return;
        this.post.open()?.notify(notificationMessage(event.method, event.params));
        return;
      case 'request':
        this.#host.ask(event, this);
        return;
      case 'interrupted':
        this.post.interrupted(event.retryMs);
        return;
    }
  }

  #answer(message: Uint8Array | string, event: FinalEvent): void {
    if (!this.end()) return;
    this.report.ended(event);
    if (event.kind === 'error') noteError(this.post.log, event.error.code);
    this.post.answer(message, this.id);
  }
}
