// Calls that take several rounds: which may, and what a backend of the modern era wants to know of its client in between,
// the questions of an `input_required` result.
// Whether the client said that it can be asked is needed-capabilities.ts's. Source: MCP 2026-07-28 basic/patterns/mrtr.

import { randomUUID } from 'node:crypto';
import { isJsonObject } from '../domain/json.ts';
import type { Question } from './needed-capabilities.ts';

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
  readonly requests: ReadonlyMap<string, Question>;
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
  const requests = new Map<string, Question>();
  for (const [key, entry] of entries) {
    const request = readInputRequest(entry);
    if (request === undefined) return `the input request '${key}' is of no known kind, or has no params`;
    requests.set(key, request);
  }
  return { requests, requestState };
}

function readInputRequest(entry: unknown): Question | undefined {
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
