// What a status that is no success means for the call that it answers. That a session was lost is seen in http-session.ts, and
// what follows from it all is done in http-call.ts.

import { backendUnavailable } from '../../domain/backend-errors.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { Ending } from './http-answer.ts';
import { answeredStatus } from './http-failures.ts';
import { TOO_LARGE } from './missed-headers.ts';

/** What was received. */
export type Refused = Extract<Ending, { kind: 'refused' }>;

/** What it means. */
export type Refusal =
  /** The server says so, or it is what the caller is to hear in its place. */
  | { readonly kind: 'answer'; readonly error: JsonRpcError }
  /** The same, before anything was done: a header is missing or wrong. */
  | { readonly kind: 'header'; readonly error: JsonRpcError }
  /** It may not be the server who says so. */
  | { readonly kind: 'failure'; readonly failure: GatewayError };

/** The call, as it was sent. */
export interface SentCall {
  readonly id: number;
  readonly peer: Peer;
  /** Whether arguments were repeated in headers. */
  readonly hasParamHeaders: boolean;
}

/** Reads a refusal of a call. */
export function refusalOf(refused: Refused, { id, peer, hasParamHeaders }: SentCall): Refusal {
  const { status, error } = refused;
  if (status === HEADERS_TOO_LARGE && hasParamHeaders) return { kind: 'answer', error: TOO_LARGE };
  const isAboutHeader = missesHeader(refused, peer);
  const isOwn = error?.id === id || (error?.id === null && isAboutHeader);
  if (error === undefined || !isOwn || PROXY_STATUS.has(status)) {
    return { kind: 'failure', failure: answeredStatus(status) };
  }
  return { kind: isAboutHeader ? 'header' : 'answer', error: error.error };
}

/** Its session was lost and there is no other: the call never ran, whatever became of the handshake. */
export function sessionNotReopened(thrown: unknown): GatewayError {
  const error = asGatewayError(thrown);
  const reason = 'it forgot the session and no new one could be opened';
  return backendUnavailable(reason, { delivered: 'no', cause: error.cause ?? error, suspicious: true });
}

/**
 * Says so before anything was done, and without an id when it comes from somebody who compares headers and never read the
 * body. With any other status it may come after the work. Source: MCP 2026-07-28
 * basic/transports/streamable-http#server-validation.
 */
function missesHeader({ status, error }: Refused, { era }: Peer): boolean {
  return status === 400 && era === 'modern' && error?.error.code === RPC.headerMismatch;
}

const HEADERS_TOO_LARGE = 431;
/** Statuses of something that stands before the backend: even a JSON-RPC body does not prove that it was asked. */
const PROXY_STATUS: ReadonlySet<number> = new Set([502, 503, 504]);
