// Opens sockets to one origin, with TLS or without. Denied addresses are refused, literal ones and those that a
// name resolves to: the address that was checked is the one that is used (DNS rebinding).

import { lookup as systemLookup } from 'node:dns';
import { connect as connectTcp, isIP, type LookupFunction, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type AddressCheck, AddressDenied } from '../network-guard.ts';
import type { BackendHandshakes } from '../tls/backend-handshakes.ts';
import { CLIENT_TLS } from '../tls/client-tls.ts';
import { limitKeyUpdates } from '../tls/key-updates.ts';

export interface Connector {
  /**
   * A socket that is being connected, which stays open at its end until it is destroyed. Throws
   * AddressDenied for a literal address; for a name the socket emits that error.
   */
  readonly connect: (onread: OnReadOpts) => Socket;
  /** The event that the socket emits when it can be written to. */
  readonly connectedEvent: 'connect' | 'secureConnect';
}

const KEEP_ALIVE_DELAY_MS = 60_000;

export function guardedConnector(
  { protocol, hostname, port }: Pick<URL, 'protocol' | 'hostname' | 'port'>,
  isDenied: AddressCheck,
  handshakes: BackendHandshakes,
  lookup: LookupFunction = systemLookup,
): Connector {
  const host = hostname.replace(/^\[|\]$/g, '');
  const isSecure = protocol === 'https:';
  const common = {
    host,
    port: port === '' ? (isSecure ? 443 : 80) : Number(port),
    lookup: guardedLookup(isDenied, lookup),
    // Otherwise Node would close the socket in the turn that reads its end, and so thousands at once when their server ends.
    allowHalfOpen: true,
  };
  const isLiteral = isIP(host) !== 0;
  let session: Buffer | undefined;
  const secure = { ...CLIENT_TLS, servername: isLiteral ? '' : host };
  const connectSecure = (onread: OnReadOpts): Socket => {
    const socket = connectTls({ ...common, ...secure, session, ...{ onread } });
    limitKeyUpdates(socket);
    handshakes.guard(socket, `${host}:${common.port}`);
    return socket.on('session', (ticket) => {
      session = ticket;
    });
  };
  return {
    connectedEvent: isSecure ? 'secureConnect' : 'connect',
    connect: (onread) => {
      // Sockets skip the lookup for literal addresses.
      if (isLiteral && isDenied(host)) throw new AddressDenied(host);
      const socket = isSecure ? connectSecure(onread) : connectTcp({ ...common, onread });
      return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
    },
  };
}

function guardedLookup(isDenied: AddressCheck, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, found, family) => {
      if (error) return callback(error, found, family);
      if (!Array.isArray(found)) {
        return isDenied(found) ? callback(new AddressDenied(found), '') : callback(null, found, family);
      }
      const allowed = found.filter(({ address }) => !isDenied(address));
      const [first] = found;
      if (allowed.length === 0 && first) return callback(new AddressDenied(first.address), []);
      callback(null, allowed);
    });
  };
}
