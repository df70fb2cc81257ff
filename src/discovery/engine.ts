// The connection to an engine with Docker's API: addresses, TLS, and the texts of failures. dockerode is loaded with the first
// engine.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { codeOf, messageOf } from '../domain/errors.ts';
import { SourceError } from './provider.ts';

/** `unix:///path`, `tcp://host:port`, `http://...` or `https://...`. Throws SourceError for anything else. */
export function checkedAddress(written: string): string {
  if (/^unix:\/\/\/.+/.test(written)) return written;
  const url = /^(tcp|https?):\/\//.test(written) ? URL.parse(written) : null;
  if (url === null || url.username !== '' || url.password !== '')
    throw new SourceError(
      'DOCKER_HOST and CONTAINER_HOST are understood as unix:///path and tcp://host:port, without credentials',
    );
  return `${url.protocol}//${url.host}`;
}

/** A short name of an engine, stable across starts. */
export function originOf(address: string): string {
  return `containers:${createHash('sha256').update(address).digest('hex').slice(0, 16)}`;
}

export async function connect(address: string): Promise<Docker> {
  const { default: Engine } = await import('dockerode');
  if (address.startsWith('unix://')) return new Engine({ socketPath: address.slice('unix://'.length) });
  const { hostname, port, protocol } = new URL(address);
  const tls = tlsFiles(protocol);
  return new Engine({
    host: hostname,
    port: port || (tls === undefined ? 2375 : 2376),
    protocol: tls === undefined ? 'http' : 'https',
    ...tls,
  });
}

function tlsFiles(
  protocol: string,
): { ca: Buffer; cert: Buffer; key: Buffer } | Record<string, never> | undefined {
  const { DOCKER_CERT_PATH: folder, DOCKER_TLS_VERIFY: verify } = process.env;
  if (protocol === 'http:' || (protocol === 'tcp:' && !verify)) return undefined;
  if (!folder) return {};
  const file = (name: string) => readFileSync(join(folder, name));
  return { ca: file('ca.pem'), cert: file('cert.pem'), key: file('key.pem') };
}

export function engineFailure(address: string, thrown: unknown, signal: AbortSignal): SourceError {
  const why =
    REASONS[codeOf(thrown) ?? ''] ?? (signal.aborted ? 'it does not answer' : messageOf(thrown).trim());
  return new SourceError(`${address}: ${why.replace(/\s+/g, ' ').slice(0, 300)}`, { cause: thrown });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no engine runs there (ENOENT)',
  ECONNREFUSED: 'no engine runs there (ECONNREFUSED)',
  EACCES: 'this user may not use it (EACCES)',
  ENOTFOUND: 'its host name is not known (ENOTFOUND)',
};
