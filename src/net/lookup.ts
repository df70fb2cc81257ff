// The addresses of a name that an outsider chose. The lookup of the system holds one of two threads that all
// lookups of the process share until the DNS server answers, which an outsider can delay: these go to the DNS
// servers without a thread. Source: ADR 440.

import { type LookupAddress, promises } from 'node:dns';
import { readFile } from 'node:fs/promises';

/** Timeout of one attempt, in ms. */
const TIMEOUT_MS = 2_000;
const TRIES = 2;

interface OutsideLookup {
  readonly family?: number | undefined;
  /** The DNS servers in place of those of the system, as `address:port`. */
  readonly servers?: readonly string[] | undefined;
}

/** Looks a name up in the file of hosts, then by DNS, IPv4 first. Throws as the resolver. */
export async function lookupOutside(
  hostname: string,
  { family = 0, servers }: OutsideLookup = {},
): Promise<LookupAddress[]> {
  // The system reads the file first, so that this asks no server.
  if (await isNamedHere(hostname)) return promises.lookup(hostname, { all: true, family });
  const resolver = new promises.Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  const families = family === 0 ? [4, 6] : [family];
  const found = await Promise.allSettled(
    families.map(async (each) => {
      const addresses = await (each === 4 ? resolver.resolve4(hostname) : resolver.resolve6(hostname));
      return addresses.map((address) => ({ address, family: each }));
    }),
  );
  const addresses = found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  const failed = found.find((each) => each.status === 'rejected');
  if (addresses.length === 0 && failed !== undefined) throw failed.reason;
  return addresses;
}

/** Resolves with true for a name in the file of hosts: no server is asked for it. */
export async function isNamedHere(hostname: string): Promise<boolean> {
  const name = hostname.toLowerCase();
  if (name === 'localhost') return true;
  const hosts = await readFile('/etc/hosts', 'utf8').catch(() => '');
  return hosts.split('\n').some((line) => {
    const [, ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    return names.includes(name);
  });
}
