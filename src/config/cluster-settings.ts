// The settings of the gateways that share one database.

import * as types from './setting-types.ts';
import { setting } from './setting-types.ts';

export const CLUSTER = {
  recover: setting({
    key: 'cluster.recover',
    mustAgree: true,
    kind: types.boolean,
    default: true,
    doc: 'MCP sessions of clients outlive a restart or a crash of the gateway; not with a database in memory. See docs/guides/session-recovery.md.',
  }),
  forward: setting({
    key: 'cluster.forward',
    mustAgree: true,
    kind: types.boolean,
    default: true,
    doc: 'Whether requests of a session that is open at another gateway on the same database are forwarded there, and calls to its programs. Off: requests of sessions get 404, and its programs are listed as stopped.',
  }),
  programs: setting({
    key: 'cluster.programs',
    kind: types.boolean,
    default: true,
    doc: 'Whether this gateway runs programs that any node may run, with a database server. Off: it uses those that others run, and new programs belong to it.',
  }),
  ephemeralNodes: setting({
    key: 'cluster.ephemeral_nodes',
    mustAgree: true,
    kind: types.boolean,
    default: false,
    doc: 'Whether the name of a gateway is not used again when it has ended, as with pods in Kubernetes: a program that would belong to one gateway is refused.',
  }),
  listen: setting({
    key: 'cluster.listen',
    kind: types.listenAddress,
    default: undefined,
    defaultText: 'a free port of the advertised address',
    doc: 'Port, or address and port, of the listener for the other gateways on the same database. It is never the public one, and answers only them.',
  }),
  advertise: setting({
    key: 'cluster.advertise',
    kind: types.hostAndPort,
    default: undefined,
    defaultText: '`POD_IP`, else the address from which this gateway reaches its database',
    doc: 'Address at which the other gateways reach that listener: a name or an IP address, with a port if that differs. On loopback it serves plain HTTP, else TLS with a key derived from the secret.',
  }),
  /** The files of the certificates, as absolute paths; all or none. */
  tls: {
    cert: setting({
      key: 'cluster.tls.cert',
      kind: types.path,
      default: undefined,
      defaultText: 'TLS with a key derived from the secret',
      doc: 'File with the certificate of this gateway for the others on the same database, in PEM; for servers and clients. With it TLS is used on loopback, too. See docs/guides/key-rotation.md.',
    }),
    key: setting({
      key: 'cluster.tls.key',
      kind: types.path,
      default: undefined,
      doc: 'File with the private key of that certificate, in PEM.',
    }),
    ca: setting({
      key: 'cluster.tls.ca',
      kind: types.path,
      default: undefined,
      doc: 'File with the certificates of the authorities that issue those of all these gateways, in PEM. Others are refused.',
    }),
  },
} as const;
