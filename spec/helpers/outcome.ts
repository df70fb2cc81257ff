// What became of a promise, as something that can be compared.

import * as assert from 'uvu/assert';
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

/** Expects a rejection with an error of this kind, whose message is one line that fits. */
export async function rejects(
  work: Promise<unknown>,
  kind: new (...parameters: never[]) => Error,
  message: string | RegExp,
): Promise<void> {
  const error = await work.catch((thrown: unknown) => thrown);
  assert.instance(error, kind);
  assert.match((error as Error).message, message);
  assert.not.match((error as Error).message, '\n');
}
