// The reason why the certificate of a gateway is refused, in one line with an advice, and the addresses that turn out to be
// https.

import { codeOf } from '../../domain/errors/errors.ts';

/** True for the answer of a port of a gateway with TLS to plain HTTP. Source: server/sockets/secure-server.ts. */
export function speaksHttps(url: string, status: number, text: string): boolean {
  return url.startsWith('http:') && status === 400 && text.startsWith('This port speaks HTTPS');
}

/** The address with https. */
export function secured(url: string): string {
  return url.replace(/^http:/, 'https:');
}

export const OTHER_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID';

/** The fault of the certificate in one line; undefined for a failure that has another cause. `error`: the one of fetch. */
export function certificateFault(url: string, error: unknown): string | undefined {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const code = codeOf(cause);
  if (code === undefined) return undefined;
  if (UNTRUSTED.includes(code))
    return `${url} has a certificate of an authority that is not known here (${code}); NODE_EXTRA_CA_CERTS=<file> names one`;
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    const when = code === 'CERT_HAS_EXPIRED' ? 'that has expired' : 'that is not valid yet';
    return `${url} has a certificate ${when}; renew the file of tls.cert, or correct the clock`;
  }
  if (code !== OTHER_NAME) return undefined;
  const names = namesOf(cause);
  const which = names.length === 0 ? 'another name' : `another name (${names.join(', ')})`;
  return `${url} has a certificate for ${which}; name the gateway as its certificate does, with --url or STAGEDOOR_URL`;
}

/** The first host names and addresses of the certificate, which a known authority signed. */
function namesOf(cause: unknown): readonly string[] {
  const { cert } = cause as { readonly cert?: { readonly subjectaltname?: unknown } };
  const found = String(cert?.subjectaltname ?? '').matchAll(/(?:DNS|IP Address):([\w.:*-]{1,253})/g);
  return [...found].slice(0, MAX_NAMES).map(([, name = '']) => name);
}

const MAX_NAMES = 3;

/** The codes of OpenSSL for a chain of certificates that does not end at a known authority. */
const UNTRUSTED: readonly string[] = [
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
];
