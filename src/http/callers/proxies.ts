// Address, host and scheme of a caller, from the headers of trusted proxies only. proxy-addr is not used: it
// refuses addresses with ports, and would treat a proxy that names no client as local.

import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { type AddressCheck, addressesIn } from '../../net/network-guard.ts';

/** A host that may be in an answer or a line of the log. */
export const HOST = /^[A-Za-z0-9._:[\]-]{1,300}$/;

export interface Proxies {
  host(request: IncomingMessage): string | undefined;
  /** `http` or `https`, as the client sees it. */
  scheme(request: IncomingMessage): string;
  /** The address of the client; undefined when the socket is closed. */
  address(request: IncomingMessage): string | undefined;
  /** True when the caller runs on this machine. A request that an untrusted proxy forwarded never counts as local. */
  isLocal(request: IncomingMessage): boolean;
}

/**
 * Makes the reader for networks in CIDR form. The rightmost value of a header counts: the nearest proxy wrote it, and the client
 * may have written everything left of it.
 */
export function createProxies(trustedProxies: readonly string[]): Proxies {
  const trusted = addressesIn(trustedProxies);
  const isTrusted = (request: IncomingMessage): boolean =>
    trustedProxies.length > 0 && isIn(trusted, request.socket.remoteAddress);
  const forwarded = (request: IncomingMessage, header: string): string | undefined =>
    isTrusted(request) ? listOf(request, header).at(-1) : undefined;

  /** The client of a trusted proxy; undefined when the proxy names none, or no address. */
  const clientOf = (request: IncomingMessage): string | undefined => {
    const hops = listOf(request, 'x-forwarded-for').map(addressOf);
    const nearest = hops.findLastIndex((hop) => !isIn(trusted, hop));
    return nearest === -1 ? hops[0] : hops[nearest];
  };
  return {
    host: (request) => forwarded(request, 'x-forwarded-host') ?? request.headers.host,
    scheme: (request) =>
      forwarded(request, 'x-forwarded-proto') ?? ('encrypted' in request.socket ? 'https' : 'http'),
    address: (request) =>
      (isTrusted(request) ? clientOf(request) : undefined) ?? request.socket.remoteAddress,
    // A trusted proxy that names no client may forward for any.
    isLocal: (request) =>
      isTrusted(request)
        ? isIn(LOOPBACK, clientOf(request))
        : isIn(LOOPBACK, request.socket.remoteAddress) &&
          !FORWARDING_HEADERS.some((name) => request.headers[name] !== undefined),
  };
}

const LOOPBACK = addressesIn(['127.0.0.0/8', '::1/128']);

function isIn(networks: AddressCheck, address = ''): boolean {
  return isIP(address) !== 0 && networks(address);
}

/** Removes the port and the brackets that some proxies write. Undefined for anything but an address. */
function addressOf(hop: string): string | undefined {
  const bare =
    /^\[([^\]]{1,64})\](?::\d{1,5})?$/.exec(hop)?.[1] ?? /^([\d.]{7,15}):\d{1,5}$/.exec(hop)?.[1] ?? hop;
  return isIP(bare) === 0 ? undefined : bare;
}

/** Headers that proxies add by default, or in the examples of their manuals. */
const FORWARDING_HEADERS = [
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'forwarded', 'via'],
];

function listOf(request: IncomingMessage, header: string): string[] {
  return String(request.headers[header] ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
