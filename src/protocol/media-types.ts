// Which media types a request names: what it holds, and what its client takes for an answer. Both eras want the same.
// Statuses and codes are those of the SDK's servers. Source: MCP 2025-11-25 and 2026-07-28 basic/transports.

import { type Headers, headerOf } from './headers.ts';
import { refused } from './rpc-failure.ts';

const JSON_TYPE = 'application/json';
const EVENTS_TYPE = 'text/event-stream';
/** What nearly every client sends. */
const USUAL_ACCEPT = `${JSON_TYPE}, ${EVENTS_TYPE}`;

/** Refuses a POST that could not be answered (406) or is no JSON (415). */
export function checkPostTypes(headers: Headers): void {
  const accept = headerOf(headers, 'accept') ?? '';
  if (accept !== USUAL_ACCEPT && !(accepts(accept, JSON_TYPE) && accepts(accept, EVENTS_TYPE))) {
    throw refused(406, `Not Acceptable: Client must accept both ${JSON_TYPE} and ${EVENTS_TYPE}`);
  }
  checkContentType(headers);
}

/** Refuses a body that is no JSON (415). */
export function checkContentType(headers: Headers): void {
  const contentType = headerOf(headers, 'content-type') ?? '';
  if (contentType !== JSON_TYPE && contentType.split(';', 1)[0]?.trim().toLowerCase() !== JSON_TYPE) {
    throw refused(415, `Unsupported Media Type: Content-Type must be ${JSON_TYPE}`);
  }
}

/** Refuses a GET that does not want events (406). */
export function checkGetTypes(headers: Headers): void {
  if (accepts(headerOf(headers, 'accept') ?? '', EVENTS_TYPE)) return;
  throw refused(406, `Not Acceptable: Client must accept ${EVENTS_TYPE}`);
}

/** True when event streams are named as such. */
export function namesEventStream(headers: Headers): boolean {
  return rangesOf(headerOf(headers, 'accept') ?? '').includes(EVENTS_TYPE);
}

/** Wildcards count: RFC 9110 section 12.5.1. Weights are not looked at, nor do the SDK's servers. */
function accepts(accept: string, type: string): boolean {
  const family = `${type.split('/', 1)[0]}/*`;
  const ranges = rangesOf(accept);
  return [type, family, '*/*'].some((wanted) => ranges.includes(wanted));
}

function rangesOf(accept: string): (string | undefined)[] {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => range.split(';', 1)[0]?.trim());
}
