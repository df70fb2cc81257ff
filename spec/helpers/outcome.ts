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

/** `done`, or the code of the GatewayError that it rejects with, or the text of whatever else. */
export function endOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (thrown: unknown) => (thrown instanceof GatewayError ? thrown.code : String(thrown)),
  );
}

/** What it rejects with or throws. Fails when it does not. */
export async function thrownBy(work: Promise<unknown> | (() => unknown)): Promise<unknown> {
  let value: unknown;
  try {
    value = await (typeof work === 'function' ? work() : work);
  } catch (thrown) {
    return thrown;
  }
  throw new Error(`it was not refused: ${String(value)}`);
}

/** The GatewayError that it rejects with. */
export async function errorOf(outcome: Promise<unknown>): Promise<GatewayError> {
  const thrown = await thrownBy(outcome);
  if (thrown instanceof GatewayError) return thrown;
  throw new Error('expected a GatewayError', { cause: thrown });
}

/** Of the GatewayError that it rejects with: code, whether it may have happened, and when to try again. */
export async function fateOf(work: Promise<unknown>): Promise<readonly unknown[]> {
  const { code, delivered, facts } = await errorOf(work);
  return [code, delivered, facts.retryAfterSeconds];
}

/** The message of the error of this kind that it rejects with or throws, which is one line. */
export async function messageOf(
  work: Promise<unknown> | (() => unknown),
  kind: new (...parameters: never[]) => Error,
): Promise<string> {
  const error = await thrownBy(work);
  assert.instance(error, kind, String(error));
  const { message } = error as Error;
  assert.not.match(message, '\n');
  return message;
}

/** Expects a rejection with an error of this kind, or that it is thrown; its message is one line that fits. */
export async function rejects(
  work: Promise<unknown> | (() => unknown),
  kind: new (...parameters: never[]) => Error,
  message: string | RegExp,
): Promise<void> {
  assert.match(await messageOf(work, kind), message);
}
