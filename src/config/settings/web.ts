// Rows of the table of settings (../settings.ts): who may call from where, and where calls may go.

import { DENIED_NETWORKS } from '../../domain/denied-networks.ts';
import { LIMITS } from '../../domain/limits.ts';
import { setting } from '../setting.ts';
import { hostHeader, integer, list, network, origin, originOrAll } from '../setting-types.ts';

export const WEB_SETTINGS = {
  corsOrigins: setting({
    key: 'cors_origins',
    flag: 'cors-origins',
    variable: 'CORS_ORIGINS',
    kind: list(originOrAll),
    default: ['*'],
    doc: 'Web origins that may call a public gateway. `*` is ignored while authentication is off or the host is loopback.',
  }),
  allowedHosts: setting({
    key: 'allowed_hosts',
    flag: 'allowed-hosts',
    variable: 'ALLOWED_HOSTS',
    kind: list(hostHeader),
    default: [],
    doc: 'Values of the Host header accepted besides localhost, 127.0.0.1 and [::1] while authentication is off or the host is loopback.',
  }),
  allowedOrigins: setting({
    key: 'allowed_origins',
    flag: 'allowed-origins',
    variable: 'ALLOWED_ORIGINS',
    kind: list(origin),
    default: [],
    doc: 'Web origins accepted besides the same origin; on a public gateway besides `cors_origins`.',
  }),
  trustedProxies: setting({
    key: 'trusted_proxies',
    flag: 'trusted-proxies',
    variable: 'TRUSTED_PROXIES',
    kind: list(network),
    default: [],
    doc: 'Proxies whose X-Forwarded-* headers are trusted.',
  }),
  deniedNetworks: setting({
    key: 'http.denied_networks',
    flag: 'denied-networks',
    variable: 'DENIED_NETWORKS',
    kind: list(network),
    default: DENIED_NETWORKS,
    doc: 'Networks in which no HTTP instance may be; replaces the default list.',
  }),
  requestBody: setting({
    key: 'http.max_body_bytes',
    flag: 'max-body-bytes',
    variable: 'MAX_BODY_BYTES',
    kind: integer(1024, 256 * 1024 * 1024, 'bytes'),
    default: LIMITS.requestBodyBytes,
    doc: 'Largest request body; a larger one gets 413.',
  }),
} as const;
