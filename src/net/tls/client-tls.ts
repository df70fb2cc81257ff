// The parts of TLS that a client leaves out, because a server could make them costly.

import { constants } from 'node:crypto';
import { DEFAULT_CIPHERS } from 'node:tls';

/**
 * The options of a client. They exclude keys of finite fields before TLS 1.3, whose size the server chooses: one of 8,192 bits
 * takes 0.2 s. They also exclude a second handshake, which could bring another chain of certificates. Source: ADR 343.
 */
export const CLIENT_TLS = {
  ALPNProtocols: ['http/1.1'],
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
};
