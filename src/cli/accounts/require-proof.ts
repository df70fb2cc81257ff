// Makes a gateway prove that it knows a key or a token before a command sends it over plain HTTP. Source: ADR 88.

import { hash, randomBytes } from 'node:crypto';
import { parseKey } from '../../auth/accounts/api-keys.ts';
import type { TokenProof } from '../../auth/secrets/gateway-proofs.ts';
import { isProof, proofOf } from '../../auth/secrets/proof.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { CommandFailure } from '../failures.ts';
import { fields } from '../remote/answers.ts';
import { secured, speaksHttps } from '../remote/certificate-fault.ts';

/** The function of Node for requests. An import would load more; see server/sockets/listeners.ts. */
const { request } = process.getBuiltinModule('node:http');

/**
 * The secret of the key that the gateway proves to know, in hex (see `proofOf`); undefined for a text that no gateway can
 * have issued as a key.
 */
export function provableKey(key: string): TokenProof | undefined {
  const parts = parseKey(key);
  return parts && { keyId: parts.id, secret: hash('sha256', parts.secret) };
}

interface ProvableCredential {
  readonly provable: TokenProof | undefined;
  /** The name of the credential, and what to do when it is not valid, in the message. */
  readonly name: string;
  readonly remedy: string;
}

/** The gateway cannot answer now: no credentials were sent, or they could not be renewed. */
export class ProofUnavailable extends CommandFailure {}

/**
 * The time for which a proof holds, in ms: after the gateway ended, another program may listen at its address. A
 * broken connection ends it.
 */
export const PROVEN_MS = 1_000;

/** The longest wait for a proof, in ms. The gateway waits up to 16 s for a silent database. */
const PROOF_MS = 20_000;
const PROOF_BYTES = 65_536;

/**
 * Resolves when the gateway at this http URL has proved that it knows the secret. Throws CommandFailure when it
 * has not, ProofUnavailable when it may later, and the error of the connection.
 */
export async function requireProof(
  url: string,
  { provable, name, remedy }: ProvableCredential,
  timeoutMs = PROOF_MS,
): Promise<void> {
  const failure = `${url} did not prove that it knows ${name}, which was not sent`;
  const hint =
    `another program may listen there, a proxy or a mapped port may be in between, or ${name} is not valid there` +
    ` (then ${remedy}); if you trust this address, repeat with --trust`;
  if (provable === undefined) throw new CommandFailure(`${failure}: ${hint}`);
  const nonce = randomBytes(24).toString('base64url');
  const { status, body, address, port } = await post(
    `${url}/auth/proof`,
    JSON.stringify({ key_id: provable.keyId, nonce }),
    Math.min(timeoutMs, PROOF_MS),
  );
  if (status === 429 || status === 503)
    throw new ProofUnavailable(`${failure}: it answers with status ${status}; try again later`);
  if (speaksHttps(url, status, body))
    throw new CommandFailure(`${url} speaks HTTPS; name it as ${secured(url)}`);
  const wanted = proofOf(provable.secret, nonce, { address, port });
  if (status !== 200 || !isProof(fields(jsonIn(body)).proof, wanted))
    throw new CommandFailure(`${failure}: ${hint}`);
}

interface Posted {
  readonly status: number;
  readonly body: string;
  /** The other end of the connection. */
  readonly address: string;
  readonly port: number;
}

/** Posts the text. It does not use fetch, which does not show the other end of the connection. */
function post(url: string, text: string, timeoutMs: number): Promise<Posted> {
  const { promise, resolve, reject } = Promise.withResolvers<Posted>();
  const signal = AbortSignal.timeout(timeoutMs);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
  const fail = (error: Error) => reject(signal.aborted ? signal.reason : error);
  const sent = request(url, { method: 'POST', headers, agent: false, signal }, (response) => {
    const { remoteAddress: address = '', remotePort: port = 0 } = response.socket;
    let body = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      body += chunk;
      if (body.length > PROOF_BYTES) response.destroy(new Error('the answer is too long'));
    });
    response.once('error', fail);
    response.once('end', () => resolve({ status: response.statusCode ?? 0, body, address, port }));
  });
  sent.once('error', fail);
  // Without an answer and without an error: it switched to another protocol.
  sent.once('close', () => fail(new Error('the connection was closed')));
  sent.end(text);
  return promise;
}
