// A gateway with authentication and rate limits on, and its callers: a user with a token, and an API key.
// Requests of both are counted; the limits are too high for the benchmark to reach.

import { randomBytes } from 'node:crypto';
import { type Instances, type StartedGateway, startGateway } from './gateway.ts';

/** A running gateway and the credentials of two callers without the scope `admin`. */
export interface GuardedGateway extends StartedGateway {
  readonly apiKey: string;
  readonly token: string;
}

const manyRequests = '1000000000';

/** Starts it with the same instances as the other gateways. */
export async function startGuardedGateway(instances: Instances): Promise<GuardedGateway> {
  const password = randomBytes(12).toString('hex');
  const gateway = await startGateway(instances, {
    GATEWAY_AUTH_ENABLED: 'true',
    GATEWAY_ADMIN_PASSWORD: password,
    GATEWAY_USER_LIMIT: manyRequests,
    GATEWAY_API_KEY_LIMIT: manyRequests,
  });
  try {
    return { ...gateway, ...(await callersOf(gateway.origin, password)) };
  } catch (error) {
    await gateway.stop();
    throw error;
  }
}

async function callersOf(origin: string, password: string): Promise<{ apiKey: string; token: string }> {
  const admin = { Authorization: `Bearer ${await login(origin, 'admin', password)}` };
  const user = { username: 'bench', email: 'bench@localhost', password };
  await post(`${origin}/auth/users`, user, admin);
  const made = await post(`${origin}/auth/api-keys`, { name: 'bench', permissions: ['tools:call'] }, admin);
  return { apiKey: textIn(made, 'key'), token: await login(origin, 'bench', password) };
}

async function login(origin: string, username: string, password: string): Promise<string> {
  return textIn(await post(`${origin}/auth/login`, { username, password }), 'access_token');
}

async function post(
  url: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

function textIn(answer: unknown, field: string): string {
  const value = new Map(Object.entries(answer ?? {})).get(field);
  if (typeof value !== 'string') throw new Error(`an answer of the gateway lacks "${field}"`);
  return value;
}
