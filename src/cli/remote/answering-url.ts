// Finds the gateway of this machine: asks the usual addresses, by http and, where a port says so, by https. Sends no secret.

import { codeOf } from '../../domain/errors/errors.ts';
import { bytesWithin } from '../../domain/memory/bounded-bytes.ts';
import { DEFAULT_URLS, daemonHere } from '../background/daemon-files.ts';
import type { Terminal } from '../terminal.ts';
import { fields } from './answers.ts';
import { certificateFault, OTHER_NAME, secured, speaksHttps } from './certificate-fault.ts';

/**
 * The background gateway of this folder, if there is one, else the first default address, where a gateway answers.
 * One whose certificate is refused counts: the first request says why, and no other gateway silently takes its
 * place.
 */
export function answeringUrl(terminal: Pick<Terminal, 'folder' | 'busy'>): Promise<string | undefined> {
  return terminal.busy('looking for a gateway', async () => {
    const here = await daemonHere(terminal);
    if (here?.lost !== undefined) return undefined;
    for (const url of here === undefined ? DEFAULT_URLS : [here.url]) {
      const found = await gatewayAt(url);
      if (found !== undefined) return found.url;
    }
    return undefined;
  });
}

/** The longest wait for the answer that shows whether a gateway is at an address, in ms. */
export const SEEK_MS = 3_000;

/**
 * The gateway that answers at this address; `timeoutMs` holds for each request. Undefined without one. Its address is by https
 * if the port speaks it, with `localhost` if its certificate is for that name and not for 127.0.0.1. Without headers: its
 * certificate is refused.
 */
export async function gatewayAt(
  url: string,
  timeoutMs = SEEK_MS,
): Promise<{ readonly url: string; readonly headers?: Headers } | undefined> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(`${url}/gateway/health`, { signal, redirect: 'error' });
    const text = await beginningOf(response);
    if (speaksHttps(url, response.status, text)) return await gatewayAt(secured(url), timeoutMs);
    return 'build' in fields(JSON.parse(text)) ? { url, headers: response.headers } : undefined;
  } catch (error) {
    if (certificateFault(url, error) === undefined) return undefined;
    if (codeOf((error as Error).cause) !== OTHER_NAME || !LOOPBACK.test(url)) return { url };
    const named = await gatewayAt(url.replace(LOOPBACK, '//localhost:'), timeoutMs);
    return named?.headers === undefined ? { url } : named;
  }
}

const LOOPBACK = /\/\/127\.0\.0\.1:/;

/** The addresses at which `gatewayAt` may find the gateway of this address. */
export function variantsOf(url: string): readonly string[] {
  const secure = secured(url);
  return [...new Set([url, secure, secure.replace(LOOPBACK, '//localhost:')])];
}

/** The headers of the gateway that answers at exactly this address in time; undefined without one. */
export async function answerOfGateway(url: string, timeoutMs = SEEK_MS): Promise<Headers | undefined> {
  const found = await gatewayAt(url, timeoutMs);
  return found?.url === url ? found.headers : undefined;
}

/** The first 64 KiB of an answer as text: another program on the port of a gateway may write without end. */
export async function beginningOf({ body }: Response): Promise<string> {
  let text = '';
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString('latin1');
    if (text.length >= 65_536) break;
  }
  return text;
}

/**
 * The whole answer as UTF-8. Undefined for one of more than `mostBytes`: its program may write without end, or
 * send it compressed.
 */
export async function textWithin({ body }: Response, mostBytes: number): Promise<string | undefined> {
  return body === null ? '' : (await bytesWithin(body, mostBytes))?.toString('utf8');
}
