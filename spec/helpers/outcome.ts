// The outcome of a promise as a value that can be compared.

import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors/errors.ts';

/** The code of a GatewayError that is thrown; any other error itself; or the resolved value, wrapped. */
export async function codeOf(outcome: Promise<unknown> | (() => unknown)): Promise<unknown> {
  try {
    return { resolvedWith: await (typeof outcome === 'function' ? outcome() : outcome) };
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.code : thrown;
  }
}

/** `done`, the code of a GatewayError, or the text of any other error. */
export function endOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (thrown: unknown) => (thrown instanceof GatewayError ? thrown.code : String(thrown)),
  );
}

/** The error it rejects with or throws. Fails when there is none. */
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

/** The code, delivery and retry time of the GatewayError that it rejects with. */
export async function errorSummary(work: Promise<unknown>): Promise<readonly unknown[]> {
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

/** Expects an error of this kind, rejected or thrown, whose message is one line and matches. */
export async function rejects(
  work: Promise<unknown> | (() => unknown),
  kind: new (...parameters: never[]) => Error,
  message: string | RegExp,
): Promise<void> {
  assert.match(await messageOf(work, kind), message);
}
