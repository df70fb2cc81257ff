// The settings of TLS for clients. Each is a file in PEM, as an absolute path.

import * as types from './setting-types.ts';
import { setting } from './setting-types.ts';

/** The certificate and its key; both or none. */
export const PUBLIC_TLS = {
  cert: setting({
    key: 'tls.cert',
    kind: types.path,
    default: undefined,
    defaultText: 'plain HTTP',
    doc: 'File with the certificate that clients see, then intermediate ones, in PEM: the ports of the gateway speak HTTPS. It is read again when it changes. See docs/guides/tls.md.',
  }),
  key: setting({
    key: 'tls.key',
    kind: types.path,
    default: undefined,
    doc: 'File with the private key of that certificate, in PEM, without a passphrase. Only the user of the gateway may read it, or, if it belongs to root, a group.',
  }),
} as const;
