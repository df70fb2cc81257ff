// Turns an exchange with a backend into a reply: the bytes of the result, or an event stream.
// `resultReply` is the hot path: one subscription, no operators, and the result is not parsed.

import { concatAll, concatMap, tap } from 'rxjs';
import type { ExchangeRequest, OpenReport } from '../../domain/calls/exchange.ts';
import { type CallEnd, type ExchangeEvent, isFinal } from '../../domain/calls/exchange-event.ts';
import { asGatewayError, internalError } from '../../domain/errors/errors.ts';
import { isFields, type JsonText } from '../../domain/json/json.ts';
import { LOG, META, PROGRESS } from '../../domain/mcp/mcp.ts';
import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../domain/mcp/media-types.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { ClientGone } from '../client-gone.ts';
import type { HttpRequest } from '../request.ts';
import type { HttpCallReport } from './http-call-report.ts';
import { bytes, type Reply, type StreamEvent } from './reply.ts';

/** Media types of the answer, for the API description; `Accept` selects. */
export const RESULT_TYPES = [JSON_TYPE, EVENT_STREAM_TYPE] as const;

interface ReplyTarget {
  readonly gateway: Pick<Gateway, 'exchange' | 'errorOf'>;
  readonly template: string;
}

/**
 * Sends one request to an instance of the template. Answers with the events `progress`, `log` and `notification`,
 * and `result` at the end. A JSON-RPC error becomes an error of the gateway (`errorOf`). When the client
 * disconnects or loses the permission, the call is cancelled at the backend.
 */
export function streamReply(
  { gateway, template }: ReplyTarget,
  request: ExchangeRequest,
  client: HttpRequest,
): Reply {
  const report = client.report(request);
  const exchange$ = gateway
    .exchange(template, { ...exchangeOf(withLogLevel(request), client, report), wantsProgress: true })
    .pipe(
      tap({
        next: ({ event }) => isFinal(event) && report.ended(event),
        error: (thrown: unknown) => report.ended(endOf(thrown)),
        complete: () => requireAnswer(report),
        unsubscribe: () => report.ended({ kind: 'cancelled' }),
      }),
    );
  // concatMap keeps the order: events before the error are sent before it.
  const events$ = exchange$.pipe(
    concatMap(async ({ event, instanceId }) => {
      if (event.kind === 'error')
        throw await gateway.errorOf(template, request, { instanceId, error: event.error }, client.signal);
      return eventsOf(event, instanceId);
    }),
    concatAll(),
  );
  return { kind: 'stream', events$, report };
}

/**
 * The same without an event stream: answers with the result as the instance gave it, and the id of the instance.
 * `replyOf` maps the result; an error that it throws becomes the answer.
 */
export function resultReply(
  { gateway, template, ...options }: ReplyTarget & { readonly instanceId?: string },
  request: ExchangeRequest,
  client: HttpRequest,
  replyOf: (result: JsonText, instanceId: string) => Reply = passThrough,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const report = client.report(request);
    const exchange = exchangeOf(request, client, report);
    const subscription = gateway.exchange(template, exchange, options).subscribe({
      next: ({ event, instanceId }) => {
        if (!isFinal(event)) return;
        report.ended(event);
        if (event.kind === 'result') {
          try {
            resolve(replyOf(event.result, instanceId));
          } catch (thrown) {
            reject(thrown);
          }
        } else
          void gateway
            .errorOf(template, request, { instanceId, error: event.error }, client.signal)
            .then(reject, reject);
      },
      error: (thrown: unknown) => {
        report.ended(endOf(thrown));
        reject(thrown);
      },
      complete: () => {
        try {
          requireAnswer(report);
        } catch (thrown) {
          reject(thrown);
        }
      },
    });
    client.onLost((reason) => {
      subscription.unsubscribe();
      report.ended(endOf(reason));
      reject(reason);
    }, template);
  });
}

/** Modern servers send log messages only about requests that name a level. Source: MCP 2026-07-28 server/utilities/logging. */
function withLogLevel(request: ExchangeRequest): ExchangeRequest {
  const meta = request.params?._meta ?? {};
  if (!isFields(meta)) return request;
  return { ...request, params: { ...request.params, _meta: { [META.logLevel]: 'info', ...meta } } };
}

function exchangeOf(request: ExchangeRequest, client: HttpRequest, report: OpenReport): ExchangeRequest {
  const { callerId, callerTools: tools, id: requestId } = client;
  return { ...request, report, requestId, callerId, tools };
}

/** Ends the report of an exchange that has completed without an answer, and throws. */
function requireAnswer(report: HttpCallReport): void {
  if (report.outcome !== undefined) return;
  const fault = internalError(new Error('the exchange ended without an answer'));
  report.ended(endOf(fault));
  throw fault;
}

/** The end of a call that threw, for its report. */
export function endOf(thrown: unknown): CallEnd {
  if (thrown instanceof ClientGone) return { kind: 'cancelled' };
  return { kind: 'failed', code: asGatewayError(thrown).code };
}

function passThrough(result: JsonText, instanceId: string): Reply {
  return bytes(200, result.bytes, { instanceId });
}

/** REST callers declare no capabilities, so servers send them no requests; the transport handles interruptions. */
function eventsOf(event: ExchangeEvent, instanceId: string): StreamEvent[] {
  if (event.kind === 'result')
    return [{ name: 'result', data: event.result.bytes, instanceId, isAnswer: true }];
  if (event.kind !== 'notification') return [];
  const { method, params } = event;
  const name = EVENT_NAMES.get(method) ?? 'notification';
  return [{ name, data: JSON.stringify({ method, params }), instanceId }];
}

const EVENT_NAMES: ReadonlyMap<string, string> = new Map([
  [PROGRESS, 'progress'],
  [LOG, 'log'],
]);
