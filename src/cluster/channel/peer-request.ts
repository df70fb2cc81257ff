// One request on the peer channel, as text. Only headers that the holder reads cross: no credentials, no cookies, no
// hop-by-hop headers.

import type { ForwardedRequest } from '../../domain/nodes/forwarding.ts';
import { type HttpHeaders, wordsIn } from '../../domain/text.ts';
import { PEER_HEADERS } from './peer-protocol.ts';

/** The headers of the client that cross, besides those that begin with `mcp-`. */
const CROSSING = wordsIn(
  'accept content-type last-event-id sec-fetch-mode traceparent tracestate user-agent',
);

/** Head and body of a forwarded request. `host`: for the header of this name, which HTTP/1.1 requires. */
export function peerRequestText(request: ForwardedRequest, host: string, token: string): string | Buffer {
  const { hop = 'session', caller, method, target, headers, body } = request;
  let head = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n${PEER_HEADERS.token}: ${token}\r\n`;
  head += `${PEER_HEADERS.hops}: ${hop}\r\nx-request-id: ${caller.requestId}\r\n`;
  if (caller.address !== undefined) head += `${PEER_HEADERS.clientAddress}: ${caller.address}\r\n`;
  head += crossingHeaders(headers);
  if (method !== 'POST') return `${head}\r\n`;
  head += `content-length: ${body.length}\r\n\r\n`;
  const text = Buffer.allocUnsafe(head.length + body.length);
  text.write(head, 0, 'latin1');
  text.set(body, head.length);
  return text;
}

/** Node's parser has refused control characters in values. */
function crossingHeaders(headers: HttpHeaders): string {
  let lines = '';
  for (const name in headers) {
    if (!name.startsWith('mcp-') && !CROSSING.includes(name)) continue;
    const value = headers[name];
    lines += `${name}: ${typeof value === 'string' ? value : (value?.join(', ') ?? '')}\r\n`;
  }
  return lines;
}
