// Which capabilities a client must have declared to be asked something, and which of them it has not.
// Source: MCP 2026-07-28 basic/patterns/mrtr, basic/index#error-codes; client/elicitation, client/sampling.

import { isJsonObject, type JsonObject } from '../domain/json.ts';
import { type JsonRpcError, RPC } from '../domain/jsonrpc.ts';

/** What is asked of a client. */
export interface Question {
  readonly method: string;
  readonly params: JsonObject;
}

/** The capabilities that the questions need and the client has not declared; undefined when it has them all. */
export function missingCapabilities(
  questions: Iterable<Question>,
  declared: JsonObject,
): JsonObject | undefined {
  const missing: JsonObject = {};
  for (const question of questions) {
    const need = needOf(question);
    if (need === undefined || has(declared, need)) continue;
    const { capability, feature } = need;
    const known = missing[capability];
    missing[capability] = {
      ...(isJsonObject(known) ? known : {}),
      ...(feature === undefined ? {} : { [feature]: {} }),
    };
  }
  return Object.keys(missing).length === 0 ? undefined : missing;
}

/** The error for a request that cannot be served without them; 400 over HTTP. */
export function missingCapabilityError(requiredCapabilities: JsonObject): JsonRpcError {
  const names = Object.keys(requiredCapabilities).join(', ');
  const message = `The server needs capabilities that the client did not declare: ${names}`;
  return { code: RPC.missingCapability, message, data: { requiredCapabilities } };
}

interface Need {
  readonly capability: string;
  /** The part of it that is needed, when it has parts. */
  readonly feature?: string;
}

function needOf({ method, params }: Question): Need | undefined {
  switch (method) {
    case 'elicitation/create':
      return { capability: 'elicitation', feature: params.mode === 'url' ? 'url' : 'form' };
    case 'sampling/createMessage': {
      const hasTools = params.tools !== undefined || params.toolChoice !== undefined;
      return hasTools ? { capability: 'sampling', feature: 'tools' } : { capability: 'sampling' };
    }
    case 'roots/list':
      return { capability: 'roots' };
    default:
      return undefined;
  }
}

function has(declared: JsonObject, { capability, feature }: Need): boolean {
  const value = declared[capability];
  if (value === undefined) return false;
  if (feature === undefined || !isJsonObject(value) || value[feature] !== undefined) return true;
  // Without any mode, elicitation means forms: so it was before there were modes.
  return feature === 'form' && value.url === undefined;
}
