// What became of a promise, as something that can be compared.

import { GatewayError } from '../../src/domain/errors.ts';

/** The code of the GatewayError it rejects with or throws; whatever else it throws; or what it resolved with, wrapped. */
export async function codeOf(outcome: Promise<unknown> | (() => unknown)): Promise<unknown> {
  try {
    return { resolvedWith: await (typeof outcome === 'function' ? outcome() : outcome) };
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.code : thrown;
  }
}

/** The GatewayError that it rejects with. */
export async function errorOf(outcome: Promise<unknown>): Promise<GatewayError> {
  const thrown = await outcome.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof GatewayError) return thrown;
  throw new Error('expected a GatewayError', { cause: thrown });
}
