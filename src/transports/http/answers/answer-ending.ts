// The ending of an answer over HTTP, which says whether its stream may be requested again.

import type { GatewayError } from '../../../domain/errors/errors.ts';
import type { BackendMessage } from '../../../domain/mcp/jsonrpc.ts';
import type { RefusedStatus } from './http-failures.ts';

export type AnswerEnding =
  /** A success was read to its end. `detail`: a description of the body, in case the answer was missing. */
  | { readonly kind: 'complete'; readonly detail: string; readonly isStreamed: boolean }
  | RefusedEnding
  | { readonly kind: 'broken'; readonly failure: GatewayError };

/** A status that is not a success, with the JSON-RPC error of its body if there is one. */
export interface RefusedEnding extends RefusedStatus {
  readonly kind: 'refused';
  readonly error: Extract<BackendMessage, { kind: 'error' }> | undefined;
}

/** False when the server does not offer the stream (405, 501), or does not know the session or the event. */
export function mayReopen(ending: AnswerEnding): boolean {
  if (ending.kind === 'broken') return true;
  if (ending.kind === 'complete') return ending.isStreamed;
  return ending.status === 409 || ending.status === 429 || (ending.status >= 500 && ending.status !== 501);
}
