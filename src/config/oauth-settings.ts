// The settings of the sign-in of MCP clients: the address of the gateway, the clients that may ask, and the accepted tokens.

import { HOUR_MS } from '../domain/time/clock.ts';
import { ISSUERS } from './issuer-settings.ts';
import { PROVIDERS } from './provider-settings.ts';
import * as types from './setting-types.ts';
import { setting } from './setting-types.ts';

export const PUBLIC_URL = setting<string | undefined>({
  key: 'public_url',
  mustAgree: true,
  kind: types.publicUrl,
  default: undefined,
  defaultText: '`http://127.0.0.1` with the first port, for clients on this machine',
  doc: 'The one address of the gateway for clients and browsers: `https://gateway.example.com`. Tokens of MCP clients are for this address; its host is an allowed host, its origin an allowed origin. https, except on loopback.',
});

export const OAUTH = {
  isEnabled: setting({
    key: 'auth.oauth',
    mustAgree: true,
    flag: 'oauth',
    variable: 'OAUTH',
    kind: types.boolean,
    default: true,
    doc: 'Whether MCP clients that know only the address may send their user to sign in by browser; only with authentication, and only at `public_url` or on loopback.',
  }),
  clients: setting<types.ClientRule>({
    key: 'auth.clients',
    mustAgree: true,
    kind: types.clientRule,
    default: 'any',
    doc: 'Which MCP clients may ask for sign-in: any, known (those that an admin added), or those from these hosts, `localhost` for programs on the computer of the user.',
  }),
  signInsPerMinute: setting({
    key: 'auth.sign_ins_per_minute',
    mustAgree: true,
    kind: types.integerWithin(10, 10_000),
    default: 60,
    doc: 'Sign-ins that browsers of one address (IPv6: one /64 network) may begin in a minute, of MCP clients and at each identity provider; more where many users share an address.',
  }),
  /** The networks of clients, in CIDR form. */
  clientNetworks: setting({
    key: 'auth.client_networks',
    mustAgree: true,
    kind: types.commaSeparated(types.network),
    default: [],
    doc: 'Networks besides the public ones from which the gateway may fetch documents and keys of MCP clients.',
  }),
  issuers: ISSUERS,
  providers: PROVIDERS,
  accessTokenMs: setting({
    key: 'auth.access_token_minutes',
    mustAgree: true,
    kind: types.minutes(5, 1_440),
    default: HOUR_MS,
    doc: 'Lifetime of an access token of an MCP client, which then uses its refresh token; a grant that ends voids it at once.',
  }),
} as const;
