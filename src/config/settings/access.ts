// Rows of the table of settings (../settings.ts): accounts, tokens, and how much each caller may ask for.

import { LIMITS } from '../../domain/limits.ts';
import { setting } from '../setting.ts';
import { boolean, integer, secretText, url } from '../setting-types.ts';

/** What a limit can be raised to. */
const MOST_REQUESTS = 1_000_000_000;

export const ACCESS_SETTINGS = {
  authEnabled: setting({
    key: 'auth.enabled',
    flag: 'auth',
    variable: 'AUTH_ENABLED',
    kind: boolean,
    default: true,
    doc: 'Whether callers must authenticate. Off: every caller that can reach the gateway is an admin.',
  }),
  tokenLifetime: setting({
    key: 'auth.access_token_expire_minutes',
    flag: 'token-minutes',
    variable: 'ACCESS_TOKEN_EXPIRE_MINUTES',
    kind: integer(1, 525_600, 'minutes'),
    default: 60,
    doc: 'How long a token of a login is valid.',
  }),
  secretKey: setting<string | undefined>({
    key: 'auth.secret_key',
    variable: 'SECRET_KEY',
    secret: true,
    kind: secretText(LIMITS.secretBytes),
    default: undefined,
    defaultText: 'made at the first start',
    doc: 'Secret that signs tokens. Several gateways on one database need the same.',
  }),
  adminPassword: setting<string | undefined>({
    key: 'auth.admin_password',
    variable: 'ADMIN_PASSWORD',
    secret: true,
    kind: secretText(LIMITS.passwordCharacters, LIMITS.passwordBytes),
    default: undefined,
    defaultText: 'made at the first start',
    doc: 'Password of the first user, `admin`; used only while there is no active admin and no user of that name.',
  }),
  userHourlyLimit: setting({
    key: 'rate_limits.user_per_hour',
    flag: 'user-limit',
    variable: 'USER_LIMIT',
    kind: integer(1, MOST_REQUESTS, 'requests'),
    default: 1_000,
    doc: 'Requests per hour of a user; admins have no limit.',
  }),
  apiKeyHourlyLimit: setting({
    key: 'rate_limits.api_key_per_hour',
    flag: 'api-key-limit',
    variable: 'API_KEY_LIMIT',
    kind: integer(1, MOST_REQUESTS, 'requests'),
    default: 5_000,
    doc: 'Requests per hour of an API key; keys with the scope `admin` have no limit.',
  }),
  redisUrl: setting<string | undefined>({
    key: 'redis_url',
    variable: 'REDIS_URL',
    secret: true,
    kind: url('a Redis URL such as redis://127.0.0.1:6379', ['redis', 'rediss']),
    default: undefined,
    defaultText: 'none',
    doc: 'Redis that counts requests for several gateways together; without it each counts for itself.',
  }),
} as const;
