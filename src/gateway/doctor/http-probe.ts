// Asks an endpoint of Streamable HTTP once as plain HTTP does, without the tolerance of the gateway's own client: where it redirects,
// how its answer is typed, and which id it repeats. The session that this may open is ended.

import { isJsonObject, jsonIn } from '../../domain/json.ts';
import { LEGACY_VERSIONS } from '../../domain/mcp.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import type { ProviderRequest } from '../../vault/provider-fetch.ts';
import type { Finding } from './faults.ts';

type Send = (request: ProviderRequest) => Promise<Response>;

const ID = 7_001;

/** `send` follows no redirect, and rejects for an endpoint that does not answer: that is no finding of its own. */
export async function probeEndpoint(
  endpoint: string,
  headers: Readonly<Record<string, string>>,
  send: Send,
): Promise<Finding[]> {
  const own = {
    ...{ ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  };
  const initialize = {
    ...{ jsonrpc: '2.0', id: ID, method: 'initialize' },
    params: { protocolVersion: LEGACY_VERSIONS.at(-1), capabilities: {}, clientInfo: GATEWAY_INFO },
  };
  const request = { method: 'POST', headers: own, body: JSON.stringify(initialize) };
  try {
    // An event stream may never end, so its body is not read.
    const first = await send({ ...request, isBodyIgnored: true });
    const findings = faultsOfHead(endpoint, first);
    const isJson = /^application\/json\b/i.test(first.headers.get('content-type') ?? '');
    if (first.ok && isJson) findings.push(...faultsOfBody(await (await send(request)).text()));
    const session = first.headers.get('mcp-session-id');
    if (session !== null)
      await send({ method: 'DELETE', headers: { ...own, 'mcp-session-id': session }, isBodyIgnored: true });
    return findings;
  } catch {
    return []; // whether it can be reached, its instance says
  }
}

function faultsOfHead(endpoint: string, { status, headers, ok }: Response): Finding[] {
  const type = headers.get('content-type') ?? 'none';
  if (status >= 300 && status < 400) {
    const location = headers.get('location');
    const target = location === null ? null : URL.parse(location, endpoint);
    const isFollowed = (status === 307 || status === 308) && target?.origin === new URL(endpoint).origin;
    const where = target === null ? 'without an address (Location)' : `to ${target.origin}${target.pathname}`;
    const message = `It answers POST with ${status}, ${where}.`;
    return [{ code: isFollowed ? 'redirect' : 'redirect-elsewhere', message }];
  }
  if (status === 405) return [{ code: 'redirect-elsewhere', message: 'It answers POST with 405.' }];
  if (status === 401 || status === 403)
    return [
      { code: 'refused', message: `It answers ${status}: credentials are missing, or it refuses them.` },
    ];
  const isKnown = /^(?:application\/json|text\/event-stream)\b/i.test(type);
  if (ok && (!isKnown || status !== 200))
    return [
      {
        code: 'content-type',
        message: `It answers initialize with ${status} and the content type "${type}".`,
      },
    ];
  return [];
}

/** `text`: the answer to `initialize`. */
function faultsOfBody(text: string, id = ID): Finding[] {
  const body = jsonIn(text);
  if (Array.isArray(body))
    return [{ code: 'array-answer', message: 'Its answer to initialize is an array.' }];
  if (!isJsonObject(body))
    return [{ code: 'content-type', message: 'Its answer to initialize is not JSON.' }];
  if (body.id === String(id))
    return [{ code: 'id-as-text', message: `It answers the id ${id} with the text "${id}".` }];
  if (body.id !== id)
    return [{ code: 'wrong-id', message: `It answers the id ${id} with another one, or without one.` }];
  return [];
}
