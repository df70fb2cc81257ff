// Certificates for specs, made by openssl.

import { execFileSync, spawnSync } from 'node:child_process';
import { isIP } from 'node:net';

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];

export function hasOpenssl(): boolean {
  return spawnSync('openssl', ['version']).status === 0;
}

/** An authority: `<name>.crt` and `<name>.key` in the folder. */
export function makeAuthority(folder: string, name: string): void {
  const subject = ['-subj', `/CN=${name}`];
  run(folder, 'req', '-x509', ...subject, ...KEY, '-keyout', `${name}.key`, '-out', `${name}.crt`);
}

/** A certificate of the authority `by`: `<name>.crt` and `<name>.key` in the folder. `host`: the name of the machine in it, or its address. */
export function issueCertificate(folder: string, by: string, name: string, host?: string): void {
  const kind = isIP(host ?? '') === 0 ? 'DNS' : 'IP';
  const names = host === undefined ? [] : ['-addext', `subjectAltName=${kind}:${host}`];
  const issuer = ['-CA', `${by}.crt`, '-CAkey', `${by}.key`];
  const out = ['-keyout', `${name}.key`, '-out', `${name}.crt`];
  run(folder, 'req', '-x509', '-subj', `/CN=${name}`, ...KEY, ...names, ...issuer, ...out);
}

function run(folder: string, ...words: string[]): void {
  execFileSync('openssl', words, { stdio: 'pipe', cwd: folder });
}
