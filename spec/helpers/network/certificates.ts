// Certificates for specs, made by openssl.

import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';

const KEYS = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'],
  rsa: ['-newkey', 'rsa:2048', '-nodes', '-days', '1'],
};

export function hasOpenssl(): boolean {
  return spawnSync('openssl', ['version']).status === 0;
}

/** An authority: `<name>.crt` and `<name>.key` in the folder. */
export function makeAuthority(folder: string, name: string): void {
  const subject = ['-subj', `/CN=${name}`];
  run(folder, 'req', '-x509', ...subject, ...KEYS.ec, '-keyout', `${name}.key`, '-out', `${name}.crt`);
}

/** A certificate of its own authority, for this machine: `<name>.crt` and `<name>.key` in the folder. */
export function makeSelfSigned(folder: string, name: string): void {
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  run(folder, 'req', '-x509', ...subject, ...KEYS.ec, '-keyout', `${name}.key`, '-out', `${name}.crt`);
}

/** A certificate of the authority `by`: `<name>.crt` and `<name>.key` in the folder. `host`: the name of the machine in it, or its address. */
export function issueCertificate(
  folder: string,
  by: string,
  name: string,
  host?: string,
  key: keyof typeof KEYS = 'ec',
): void {
  const kind = isIP(host ?? '') === 0 ? 'DNS' : 'IP';
  const names = host === undefined ? [] : ['-addext', `subjectAltName=${kind}:${host}`];
  const issuer = ['-CA', `${by}.crt`, '-CAkey', `${by}.key`];
  const out = ['-keyout', `${name}.key`, '-out', `${name}.crt`];
  run(folder, 'req', '-x509', '-subj', `/CN=${name}`, ...KEYS[key], ...names, ...issuer, ...out);
}

/**
 * A certificate with issuers that no authority knows: `costly.crt` and `costly.key` in the folder. Checking it takes OpenSSL 4 ms for each of up
 * to 100, which Node lets it do for any chain: each signature, although none is right, is one of the curve that takes longest.
 */
export function makeCostlyChain(folder: string, count: number): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:sect571r1', '-nodes', '-days', '1'];
  run(folder, 'req', '-x509', '-subj', '/CN=x000', ...key, '-keyout', 'x000.key', '-out', 'x000.crt');
  issueCertificate(folder, 'x000', 'costly');
  const { raw } = new X509Certificate(readFileSync(join(folder, 'x000.crt')));
  const issuers = Array.from({ length: count }, (_, at) => {
    const renamed = Buffer.from(raw);
    const issuerAt = renamed.indexOf('x000');
    renamed.write(nameOf(at + 1), issuerAt);
    renamed.write(nameOf(at), renamed.indexOf('x000', issuerAt + 1));
    return `-----BEGIN CERTIFICATE-----\n${renamed.toString('base64')}\n-----END CERTIFICATE-----\n`;
  });
  appendFileSync(join(folder, 'costly.crt'), issuers.join(''));
}

function nameOf(at: number): string {
  return `x${String(at).padStart(3, '0')}`;
}

function run(folder: string, ...words: string[]): void {
  execFileSync('openssl', words, { stdio: 'pipe', cwd: folder });
}
