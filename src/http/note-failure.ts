// What the log line of a JSON-RPC request says of its failure.

import type { ErrorCode } from '../domain/error-codes.ts';
import type { RequestState } from './context.ts';

/** Notes the first error of a request, with the gateway's own word for it if it has one; later ones change nothing. */
export function noteFailure(state: RequestState, rpcError: number, errorCode: ErrorCode | undefined): void {
  if (state.rpcError !== undefined) return;
  state.rpcError = rpcError;
  if (errorCode !== undefined) state.errorCode = errorCode;
}
