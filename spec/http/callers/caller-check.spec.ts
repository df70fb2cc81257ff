import type { IncomingMessage } from 'node:http';
import * as assert from 'uvu/assert';
import type { Scope } from '../../../src/domain/accounts/account.ts';
import type { Principal } from '../../../src/domain/accounts/principal.ts';
import { mayUse } from '../../../src/domain/accounts/rights.ts';
import { tokenExpired } from '../../../src/domain/errors/account-errors.ts';
import type { GatewayError } from '../../../src/domain/errors/errors.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { callerCheck } from '../../../src/http/callers/caller-check.ts';
import { RequestState } from '../../../src/http/context.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('reauthorization');

const ALL: Principal = { id: 'user:1', kind: 'user', name: 'ada', scopes: new Set<Scope>(['tools:call']) };
const having = (...templates: string[]): Principal => ({ ...ALL, templates: new Set(templates) });
const ADA = having('demo');
const ADMIN: Principal = { ...ADA, scopes: new Set<Scope>(['tools:call', 'admin']) };
const FORBIDDEN = 'INSUFFICIENT_PERMISSIONS';

/** The error code of the second check of a request by `before`, whose credentials now give `now`. */
async function codeOf(
  before: Principal,
  now: Principal | GatewayError,
  pathName: string | undefined,
  waits: boolean,
) {
  const authenticate = () => {
    if (!(now instanceof Error)) return waits ? Promise.resolve(now) : now;
    if (waits) return Promise.reject(now);
    throw now;
  };
  const req = { headers: {} } as IncomingMessage;
  const context = { req, state: { ...new RequestState(), principal: before, pathName } };
  const check = callerCheck(['tools:call'], { authenticate }, { host: () => undefined }, mayUse);
  return (await check(context))?.code;
}

for (const [what, before, now, onDemo, onAll] of [
  ['without changes', ADA, having('demo'), undefined, undefined],
  ['with all templates, without changes', ALL, { ...ALL }, undefined, undefined],
  ['whose token expired', ADA, tokenExpired(), 'TOKEN_EXPIRED', 'TOKEN_EXPIRED'],
  ['while the database is unavailable', ADA, databaseUnavailable(undefined), undefined, undefined],
  ['that is another principal', ADA, { ...ADA, id: 'user:2' }, 'INVALID_CREDENTIALS', 'INVALID_CREDENTIALS'],
  ['that lost the scope', ADA, { ...ADA, scopes: new Set() }, FORBIDDEN, FORBIDDEN],
  ['that lost the template', ADA, having('other'), 'TEMPLATE_NOT_FOUND', FORBIDDEN],
  ['that gained another template', ADA, having('demo', 'other'), undefined, FORBIDDEN],
  ['that lost another template', having('demo', 'other'), ADA, undefined, FORBIDDEN],
  ['that gained all templates', ADA, ALL, undefined, FORBIDDEN],
  ['that is restricted to a template', ALL, ADA, undefined, FORBIDDEN],
  ['that is no longer an admin', ADMIN, ADA, undefined, FORBIDDEN],
  ['that became an admin', ADA, ADMIN, undefined, FORBIDDEN],
] as const satisfies readonly (readonly [string, Principal, Principal | GatewayError, ...unknown[]])[])
  test(`of a caller ${what}: ${onDemo ?? 'allowed'} for its template, ${onAll ?? 'allowed'} for all templates`, async () => {
    for (const waits of [false, true]) {
      assert.is(await codeOf(before, now, 'demo', waits), onDemo);
      assert.is(await codeOf(before, now, undefined, waits), onAll);
    }
  });

test.run();
