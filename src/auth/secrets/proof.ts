// The proof that a gateway knows a credential, as the gateway makes it and the command line checks it: before a
// client sends the credential over plain HTTP, because another program on the machine may listen at the address of
// a gateway. Source: ADR 88.

import { createHmac } from 'node:crypto';
import { isSameSecret } from '../../domain/text.ts';

/** Address and port of the gateway's end of a connection. */
export interface OwnAddress {
  readonly address: string;
  readonly port: number;
}

/**
 * The proof: HMAC-SHA-256 over the nonce and the gateway's end of the connection, in hex. `secret`: the SHA-256 of an API
 * key's secret, or the secret in the answer of the login, in hex. An answer that was relayed from another address or port does
 * not fit the client's connection.
 */
export function proofOf(secret: string, nonce: string, { address, port }: OwnAddress): string {
  const plain = address
    .replace(/^::ffff:(?=\d+\.)/i, '')
    .replace(/%.*$/, '')
    .toLowerCase();
  return createHmac('sha256', Buffer.from(secret, 'hex')).update(`${nonce}\n${plain}\n${port}`).digest('hex');
}

export function isProof(found: unknown, wanted: string): boolean {
  return typeof found === 'string' && isSameSecret(found, wanted);
}
