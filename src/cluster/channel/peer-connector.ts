// Opens sockets to another node: TLS, plain TCP to loopback, or the socket file of another worker.

import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Connector } from '../../net/http1/connector.ts';
import { limitKeyUpdates } from '../../net/tls/key-updates.ts';
import { socketOf } from '../reachable-life.ts';
import { PEER_KEEP_ALIVE_MS } from './peer-protocol.ts';
import type { PeerTls } from './trust/peer-tls.ts';

/**
 * Opens sockets to the peer listener of another node. `address`: its URL, as its row has it. `connect` throws for one that
 * cannot be used.
 */
export function peerConnector(address: string, tls: PeerTls): Connector {
  const path = socketOf(address);
  if (path !== undefined)
    return { connectedEvent: 'connect', connect: (onread) => connectTcp({ path, onread }) };
  const url = URL.parse(address);
  if (url === null) {
    const refuse = (): never => {
      throw new Error('its address cannot be used');
    };
    return { connectedEvent: 'connect', connect: refuse };
  }
  const { protocol, hostname, port } = url;
  const host = hostname.replace(/^\[|\]$/g, '');
  const isSecure = protocol === 'https:';
  const common = { host, port: Number(port) };
  return {
    connectedEvent: isSecure ? 'secureConnect' : 'connect',
    connect: (onread) => {
      const connectSecure = (): TLSSocket => {
        const socket = connectTls({ ...common, ...tls.connection(host), ...{ onread } });
        limitKeyUpdates(socket);
        return socket;
      };
      const socket = isSecure ? connectSecure() : connectTcp({ ...common, onread });
      return socket.setNoDelay(true).setKeepAlive(true, PEER_KEEP_ALIVE_MS);
    },
  };
}

/** The value of the header `Host`, which HTTP/1.1 requires. */
export function peerHost(address: string): string {
  return URL.parse(address)?.host || 'localhost'; // a socket file
}
