// Derives errors and clauses from existing errors: with an instance, for the end of an opening, as a reason.
// The errors themselves are in errors.ts and the files it names.

import { GatewayError } from './errors.ts';

/** The same error, with the instance that failed the call. */
export function atInstance(error: GatewayError, instanceId: string): GatewayError {
  return new GatewayError(error.code, error.message, { ...error.facts, instanceId });
}

/** The same error for a call that was sent: its delivery is unknown. */
export function perhapsDelivered({ code, message, facts }: GatewayError): GatewayError {
  const { retryAfterSeconds: _, ...others } = facts;
  return new GatewayError(code, message, { ...others, delivered: 'unknown' });
}

/** What ended an opening, with the last words of the child it was about. Nothing was delivered. */
export function openingFailed(error: GatewayError, stderr: readonly string[]): GatewayError {
  const { cause = error, unreachable, reason, plainMessage } = error.facts;
  return new GatewayError(error.code, error.message, {
    delivered: 'no',
    retryAfterSeconds: 1,
    cause,
    stderr,
    ...(unreachable === undefined ? {} : { unreachable }),
    ...(reason === undefined ? {} : { reason }),
    ...(plainMessage === undefined ? {} : { plainMessage }),
  });
}

/** The clause that says why something failed, from what was thrown: "connection refused". */
export function reasonOf(thrown: unknown): string {
  if (thrown instanceof GatewayError) return thrown.facts.reason ?? thrown.message;
  return thrown instanceof Error ? thrown.message : 'it could not be opened';
}

/** Unreadable lines on the standard output of a program: "2 lines that are no JSON-RPC". */
export function unmatchedLines(count: number): string {
  return `${count === 1 ? '1 line that is' : `${count} lines that are`} no JSON-RPC`;
}
