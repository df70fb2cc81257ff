// Calls that take several rounds: which may, and what a backend of the modern era wants to know of its client in between,
// the questions of an `input_required` result.
import { type JsonRpcError, RPC } from '../domain/jsonrpc.ts';

// Whether the client said that it can be asked is needed-capabilities.ts's. Source: MCP 2026-07-28 basic/patterns/mrtr.

import { randomUUID } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../domain/json.ts';

/** Methods that may take several rounds. */
const IN_ROUNDS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** True for a method whose server may want to know something of its client first. */
export function hasRounds(method: string): boolean {
  return IN_ROUNDS.has(method);
}

/** Questions of one result. */
const MOST_QUESTIONS = 64;

/** What has to be answered, and sent back, for the call to go on. */
export interface InputRequired {
  /** By the key that the answer is to carry. */
  readonly requests: ReadonlyMap<string, InputRequest>;
  /** To be sent back as it is. */
  readonly requestState: string | undefined;
}

/** The questions; a sentence when a result is none that a client could answer. */
export function readInputRequired(value: unknown): InputRequired | string {
  const { inputRequests = {}, requestState } = isJsonObject(value) ? value : {};
  if (!isJsonObject(inputRequests)) return 'inputRequests is no object';
  if (requestState !== undefined && typeof requestState !== 'string') return 'requestState is no string';
  const entries = Object.entries(inputRequests);
  if (entries.length > MOST_QUESTIONS) return `more than ${MOST_QUESTIONS} input requests`;
  if (entries.length === 0 && requestState === undefined) return 'neither inputRequests nor requestState';
  const requests = new Map<string, InputRequest>();
  for (const [key, entry] of entries) {
    const request = readInputRequest(entry);
    if (request === undefined) return `the input request '${key}' is of no known kind, or has no params`;
    requests.set(key, request);
  }
  return { requests, requestState };
}

function readInputRequest(entry: unknown): InputRequest | undefined {
  if (!isJsonObject(entry)) return undefined;
  const { method, params } = entry;
  if (method === 'roots/list') return { method, params: isJsonObject(params) ? params : {} };
  if (!isJsonObject(params)) return undefined;
  if (method === 'sampling/createMessage') return { method, params };
  if (method !== 'elicitation/create') return undefined;
  // Legacy clients know a question about a URL by an id, which the modern era has not.
  const isNameless = params.mode === 'url' && params.elicitationId === undefined;
  return { method, params: isNameless ? { ...params, elicitationId: randomUUID() } : params };
}

// Which capabilities a client must have declared to be asked something, and which of them it has not.
// Source: MCP 2026-07-28 basic/patterns/mrtr, basic/index#error-codes; client/elicitation, client/sampling.

/** What is asked of a client. */
export interface InputRequest {
  readonly method: string;
  readonly params: JsonObject;
}

/** The capabilities that the questions need and the client has not declared; undefined when it has them all. */
export function missingCapabilities(
  questions: Iterable<InputRequest>,
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

function needOf({ method, params }: InputRequest): Need | undefined {
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
