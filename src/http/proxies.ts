// Who is asking, as far as it can be believed: address, host and scheme of the caller behind trusted proxies.
// What follows from it is decided elsewhere (middleware/guard.ts, checked-command.ts).

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** Reads forwarding headers of trusted proxies only. Source: decisions, "Guard". */
export interface Proxies {
  /** The `Host` the client asked for; undefined when it sent none. */
  host(request: IncomingMessage): string | undefined;
  /** `http` or `https`, as the client sees it. */
  scheme(request: IncomingMessage): string;
  /** The client's address; undefined when the socket is gone. */
  address(request: IncomingMessage): string | undefined;
  /** True when the caller runs on this machine. A request that some untrusted proxy forwarded never counts as local. */
  isLocal(request: IncomingMessage): boolean;
}

/**
 * Makes the reader for a list of addresses and networks (`10.0.0.5`, `10.0.0.0/8`, `fd00::/8`). Throws TypeError for an
 * entry that is neither. The rightmost value of a header counts: it was written by the proxy next to us, everything
 * left of it may have been written by the client.
 */
export function createProxies(trustedProxies: readonly string[]): Proxies {
  const trusted = addressList(trustedProxies);
  const isTrusted = (request: IncomingMessage): boolean =>
    trustedProxies.length > 0 && contains(trusted, request.socket.remoteAddress);
  const forwarded = (request: IncomingMessage, header: string): string | undefined =>
    isTrusted(request) ? listOf(request, header).at(-1) : undefined;

  /** For whom a trusted proxy asks; undefined when it does not say, or says what is no address. */
  const askedFor = (request: IncomingMessage): string | undefined => {
    const hops = listOf(request, 'x-forwarded-for').map(addressOf);
    const nearest = hops.findLastIndex((hop) => hop === undefined || !contains(trusted, hop));
    return nearest === -1 ? hops[0] : hops[nearest];
  };
  return {
    host: (request) => forwarded(request, 'x-forwarded-host') ?? request.headers.host,
    scheme: (request) =>
      forwarded(request, 'x-forwarded-proto') ?? ('encrypted' in request.socket ? 'https' : 'http'),
    address: (request) =>
      (isTrusted(request) ? askedFor(request) : undefined) ?? request.socket.remoteAddress,
    // A trusted proxy that does not say for whom it asks may ask for anybody.
    isLocal: (request) =>
      isTrusted(request)
        ? contains(LOOPBACK, askedFor(request))
        : contains(LOOPBACK, request.socket.remoteAddress) && !wasForwarded(request),
  };
}

const LOOPBACK = addressList(['127.0.0.0/8', '::1']);

/** Some proxies add a port, and brackets around IPv6. Undefined for anything but an address. */
function addressOf(hop: string): string | undefined {
  const bare =
    /^\[([^\]]{1,64})\](?::\d{1,5})?$/.exec(hop)?.[1] ?? /^([\d.]{7,15}):\d{1,5}$/.exec(hop)?.[1] ?? hop;
  return isIP(bare) === 0 ? undefined : bare;
}

/** What proxies add by themselves, or by the examples of their manuals. */
const TRACES = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'forwarded', 'via'];

function wasForwarded({ headers }: IncomingMessage): boolean {
  return TRACES.some((name) => headers[name] !== undefined);
}

function listOf(request: IncomingMessage, header: string): string[] {
  const value = request.headers[header];
  const text = Array.isArray(value) ? value.join(',') : (value ?? '');
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function addressList(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const [network = '', prefix, ...more] = entry.split('/');
    const family = isIP(network) === 6 ? 'ipv6' : 'ipv4';
    const isWritten = prefix === undefined || (more.length === 0 && /^\d{1,3}$/.test(prefix));
    if (isIP(network) === 0 || !isWritten) {
      throw new TypeError(`"${entry}" is neither an address nor a network`);
    }
    if (prefix === undefined) list.addAddress(network, family);
    else list.addSubnet(network, Number(prefix), family);
  }
  return list;
}

function contains(list: BlockList, address: string | undefined): boolean {
  const version = address === undefined ? 0 : isIP(address);
  return address !== undefined && version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4');
}
