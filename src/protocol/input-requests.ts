// Requests of servers for client input in the middle of a call: the `input_required` results that carry them, and the
// capabilities that a client must declare for them. Source: MCP 2026-07-28 basic/patterns/mrtr.

import { randomUUID } from 'node:crypto';
import type { ConnectionRequired } from '../domain/calls/connection-required.ts';
import type { FinalEvent } from '../domain/calls/exchange-event.ts';
import { isJsonObject, type JsonObject, JsonText } from '../domain/json/json.ts';
import { CLIENT_CAPABILITIES, type InputRequest } from '../domain/mcp/client.ts';
import { type JsonRpcError, RPC } from '../domain/mcp/jsonrpc.ts';
import { hasRounds } from '../domain/mcp/mcp.ts';

/** The most input requests of one result. */
const MAX_REQUESTS = 64;

/** A result that asks the client for input. */
export interface InputRequired {
  /** The input requests, by the key under which the client answers. */
  readonly requests: ReadonlyMap<string, InputRequest>;
  /** An opaque state that the client sends back unchanged. */
  readonly requestState: string | undefined;
}

/** The input requests of a result; or a clause that says why a client cannot answer the result. */
export function readInputRequired(value: unknown): InputRequired | string {
  const { inputRequests = {}, requestState } = isJsonObject(value) ? value : {};
  if (!isJsonObject(inputRequests)) return 'inputRequests is not an object';
  if (requestState !== undefined && typeof requestState !== 'string') return 'requestState is not a string';
  const entries = Object.entries(inputRequests);
  if (entries.length > MAX_REQUESTS) return `more than ${MAX_REQUESTS} input requests`;
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
  // Legacy clients need an id for the elicitation of a URL, which the modern era does not have.
  const lacksId = params.mode === 'url' && params.elicitationId === undefined;
  return { method, params: lacksId ? { ...params, elicitationId: randomUUID() } : params };
}

// Sources: MCP 2026-07-28 basic/index#error-codes; client/elicitation, client/sampling.

export type InputRequests = Readonly<Record<string, InputRequest>>;

/** The capabilities that the requests need and the client did not declare; undefined when none is missing. */
export function missingCapabilities(
  requests: Iterable<InputRequest>,
  declared: JsonObject,
): JsonObject | undefined {
  const missing: JsonObject = {};
  for (const request of requests) {
    const capability = CLIENT_CAPABILITIES[request.method];
    const feature = featureFor(request);
    if (capability === undefined || has(declared, capability, feature)) continue;
    const known = missing[capability];
    missing[capability] = { ...(isJsonObject(known) ? known : {}), ...(feature && { [feature]: {} }) };
  }
  return Object.keys(missing).length === 0 ? undefined : missing;
}

/** The error for a request that needs undeclared capabilities; 400 over HTTP. */
export function missingCapabilityError(requiredCapabilities: JsonObject): JsonRpcError {
  const names = Object.keys(requiredCapabilities).join(', ');
  const message = `The server needs capabilities that the client did not declare: ${names}`;
  return { code: RPC.missingCapability, message, data: { requiredCapabilities } };
}

const VISIT = [{ method: 'elicitation/create', params: { mode: 'url' } }];

/**
 * Describes a required connection in words, for a client that cannot be asked to open a URL, or when there is no URL;
 * undefined otherwise.
 */
export function connectionInWords(
  method: string,
  { url, message }: ConnectionRequired,
  declared: JsonObject,
): FinalEvent | undefined {
  const isAskable = hasRounds(method) && missingCapabilities(VISIT, declared) === undefined;
  return url !== undefined && isAskable ? undefined : failure(method, message);
}

/** A failure: for tools as a result, which a model reads; for other methods as an error. */
export function failure(method: string, message: string): FinalEvent {
  if (method !== 'tools/call') return errorEvent(message);
  return {
    kind: 'result',
    result: JsonText.ofValue({ content: [{ type: 'text', text: message }], isError: true }),
  };
}

export function errorEvent(message: string): FinalEvent {
  return { kind: 'error', error: { code: RPC.internalError, message } };
}

/** The capability feature that a request needs; undefined when it needs none. */
function featureFor({ method, params }: InputRequest): string | undefined {
  if (method === 'elicitation/create') return params.mode === 'url' ? 'url' : 'form';
  const hasTools = params.tools !== undefined || params.toolChoice !== undefined;
  return method === 'sampling/createMessage' && hasTools ? 'tools' : undefined;
}

function has(declared: JsonObject, capability: string, feature: string | undefined): boolean {
  const value = declared[capability];
  if (value === undefined) return false;
  if (feature === undefined || !isJsonObject(value) || value[feature] !== undefined) return true;
  // Elicitation without a mode means forms, as in revisions without modes.
  return feature === 'form' && value.url === undefined;
}
