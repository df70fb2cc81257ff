// Tokens of other authorization servers: which are accepted, with which rights, and what happens while their keys cannot be read.

import { generateKeyPairSync } from 'node:crypto';
import { NEVER } from 'rxjs';
import * as assert from 'uvu/assert';
import { Passwords } from '../../../src/auth/accounts/passwords.ts';
import { composeAuth } from '../../../src/auth/auth.ts';
import { Issuers } from '../../../src/auth/issuers/issuers.ts';
import type { IssuerSetting } from '../../../src/config/issuer-settings.ts';
import { countedIdOf, nameOf, type Principal } from '../../../src/domain/accounts/principal.ts';
import { GatewayAddress } from '../../../src/domain/accounts/resource.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { CHANGES_ONLY } from '../../helpers/http/anonymous-auth.ts';
import { KeyServer, type TokenParts } from '../../helpers/identity/key-server.ts';
import { errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';
import { stoppedClock } from '../auth-harness.ts';

const test = suite('tokens of other issuers');

const base = 'https://gateway.example';
const secret = Buffer.from('the secret of the specs, long enough');
const ours = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ROLES: IssuerSetting['roles'] = [
  ['owners', { role: 'admin' }],
  ['staff', { role: 'user', templates: ['files'] }],
  ['data', { role: 'user', templates: ['db'] }],
  ['readers', { role: 'user', scopes: ['gateway:read'], templates: ['docs'] }],
];
const servers: KeyServer[] = [];
test.after.each(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function setup(setting: Partial<IssuerSetting> = {}) {
  const stopped = stoppedClock();
  const checks: (() => void)[] = [];
  const every = (_: number, callback: () => void) => {
    checks.push(callback);
    return () => {};
  };
  const clock = Object.assign(stopped, { background: { ...stopped.background, every } });
  const check = () => {
    for (const each of checks) each();
  };
  const server = new KeyServer(clock.wall);
  servers.push(server);
  const issuer = await server.start();
  const alarms: (() => void)[] = [];
  const warnings: string[] = [];
  const rightsSettings = { userHourlyLimit: 1_000, apiKeyHourlyLimit: 5_000 };
  const address = new GatewayAddress(base, () => []);
  const store = new MemoryStore();
  const auth = composeAuth({
    ...{ authEnabled: true, store, secrets: [secret], tokenLifetimeMs: 3_600_000, clock, ...rightsSettings },
    ...{ storeChanges$: NEVER, audit: CHANGES_ONLY, passwords: new Passwords(systemClock, 4) },
    oauth: {
      ...{ store: store.oauth, address },
      keys: { publicKeys: async () => new Map([['our-1', ours.publicKey]]) },
    },
    issuers: new Issuers({
      settings: [{ issuer, claims: {}, roles: ROLES, ...setting }],
      ...{ address, rightsSettings, warn: (line) => void warnings.push(line) },
      clock: {
        ...clock,
        alarm: (_, callback) => {
          alarms.push(callback);
          return () => {};
        },
      },
    }),
    log: { info: () => {}, warn: () => {} },
  });
  const of = async (authorization: string): Promise<Principal> => auth.authenticate({ authorization });
  const codeOf = async (parts: TokenParts = {}) => (await errorOf(of(await token(parts)))).code;
  const token = ({ claims = {}, ...parts }: TokenParts = {}) =>
    server.token({ claims: { aud: `${base}/mcp/files`, groups: ['staff'], ...claims }, ...parts });
  const keyRequests = () => server.asked.filter((path) => path === '/keys').length;
  return { auth, server, issuer, clock, alarms, warnings, check, of, codeOf, token, keyRequests };
}

test('have the rights of their groups at their resource, without an account, and are cached', async () => {
  const { auth, of, token, server, issuer } = await setup();
  const authorization = await token({ claims: { client_id: 'agent\u202e-7', scope: 'openid' } });
  const principal = await of(authorization);
  assert.match(principal.id, /^issuer:[\w-]{43}$/);
  assert.is(countedIdOf(principal.id), principal.id);
  assert.equal([principal.kind, principal.userId], ['user', undefined]);
  assert.is(nameOf(principal), `ada of ${new URL(issuer).host} via agent-7`);
  assert.equal([...principal.scopes].sort(), ['gateway:read', 'tools:call']);
  assert.equal([[...(principal.templates ?? [])], principal.client?.audience], [['files'], '/mcp/files']);
  assert.is(auth.authenticate({ authorization }), principal);
  const renewed = await of(await token({ claims: { jti: 'another' } }));
  assert.is(renewed.id, principal.id);
  assert.is.not((await of(await token({ claims: { sub: 'bob' } }))).id, principal.id);
  assert.equal(server.asked, [
    ...['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration', '/keys'],
  ]);
  await auth.tokenEnds.end({ authorization });
});

test('never have a scope at a template that no single group gives, and scopes of the token narrow them', async () => {
  const { of, token } = await setup();
  const rightsOf = async (claims: Record<string, unknown>) => {
    const { scopes, templates } = await of(await token({ claims: { aud: base, ...claims } }));
    return `${[...scopes].sort().join(' ')} at ${templates === undefined ? 'all' : [...templates].join(' ')}`;
  };
  const both = 'gateway:read tools:call';
  assert.is(await rightsOf({ groups: ['data', 'staff', 'toString'] }), `${both} at files db`);
  assert.is(await rightsOf({ groups: ['readers', 'staff'] }), `${both} at files`);
  assert.is(await rightsOf({ groups: 'readers' }), 'gateway:read at docs');
  assert.is(
    await rightsOf({ groups: ['readers', 'owners'] }),
    `admin gateway:read gateway:write tools:call at all`,
  );
  assert.is(await rightsOf({ groups: ['owners'], scope: 'profile tools:call' }), 'tools:call at all');
  assert.is(await rightsOf({ groups: ['staff'], scp: ['tools:call', 'admin'] }), `${both} at files`);
  assert.is(await rightsOf({ groups: ['readers'], scp: 'tools:call' }), ' at docs');
  const narrow = await of(await token({ claims: { groups: ['owners'] } }));
  assert.equal([...(narrow.templates ?? [])], ['files']);
});

test('are refused without a group that has a role, also one that is called admin', async () => {
  const { codeOf, token, of } = await setup();
  const without = [
    { groups: ['admin'] },
    { groups: undefined },
    { groups: { owners: true } },
    { groups: ['OWNERS'] },
  ];
  for (const claims of without)
    assert.is(await codeOf({ claims }), 'INSUFFICIENT_PERMISSIONS', JSON.stringify(claims));
  const elsewhere = { groups: undefined, _claim_names: { groups: 'src1' } };
  assert.match((await errorOf(of(await token({ claims: elsewhere })))).message, 'use app roles');
});

test('are refused when they are of another issuer, gateway, algorithm or time', async () => {
  const { codeOf, issuer, clock, token, of } = await setup();
  const seconds = Math.floor(clock.wall() / 1000);
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const bad: Record<string, TokenParts> = {
    'of an unknown issuer': { claims: { iss: 'https://other.example' } },
    'of an issuer that looks alike': { claims: { iss: `${issuer}/` } },
    'in our name': { claims: { iss: base } },
    'in our name with our kid': { claims: { iss: base }, header: { kid: 'our-1' } },
    'in our name with our kid and type': { claims: { iss: base }, header: { kid: 'our-1', typ: 'at+jwt' } },
    'with our kid': { header: { kid: 'our-1' } },
    'signed by our key': { header: { kid: 'our-1' }, key: ours.privateKey },
    'signed by another key': { key: other.privateKey },
    'by HMAC with our secret': { header: { alg: 'HS256' }, key: secret },
    'of another algorithm': {
      header: { alg: 'RS256' },
      key: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
    },
    'for another gateway': { claims: { aud: 'https://other.example/mcp/files' } },
    'for the issuer': { claims: { aud: issuer } },
    'for several resources': { claims: { aud: [`${base}/mcp/files`, `${base}/mcp/db`] } },
    'without an audience': { claims: { aud: undefined } },
    'that never expires': { claims: { exp: undefined } },
    'of the future': { claims: { nbf: seconds + 120 } },
    'without a subject': { claims: { sub: undefined } },
    'whose type is no text': { header: { typ: { toString: 1 } }, key: other.privateKey },
  };
  for (const [what, parts] of Object.entries(bad))
    assert.is(await codeOf(parts), 'INVALID_CREDENTIALS', what);
  assert.is(await codeOf({ claims: { exp: seconds - 61 } }), 'TOKEN_EXPIRED');
  const [, payload = ''] = (await token()).split('.');
  for (const alg of ['none', 'None', undefined]) {
    const head = Buffer.from(JSON.stringify({ alg, typ: 'JWT', kid: 'their-1' })).toString('base64url');
    assert.is((await errorOf(of(`Bearer ${head}.${payload}.`))).code, 'INVALID_CREDENTIALS', alg);
  }
  await of(await token({ claims: { exp: seconds - 50 } }));
  await of(await token({ claims: { groups: ['staff', 'x'.repeat(8_000)] } }));
  assert.is(await codeOf({ claims: { groups: ['staff', 'x'.repeat(12_000)] } }), 'INVALID_CREDENTIALS');
});

test('name a configured audience, and claims by name or path', async () => {
  const { of, token, codeOf } = await setup({
    audience: ['api://stagedoor', `${base}/mcp/files`],
    claims: {
      subject: 'oid',
      groups: 'realm_access.roles',
      scope: 'https://example.com/scopes',
      client: 'appid',
    },
  });
  const claims = {
    ...{ aud: ['account', 'api://stagedoor'], oid: 'o-1', realm_access: { roles: ['owners'] }, appid: 'app' },
    'https://example.com/scopes': ['tools:call'],
  };
  const principal = await of(await token({ claims }));
  assert.equal([principal.client?.audience, principal.client?.name], ['', 'app']);
  assert.equal([[...principal.scopes], principal.templates], [['tools:call'], undefined]);
  const files = await of(await token({ claims: { ...claims, aud: `${base}/mcp/files` } }));
  assert.is(files.client?.audience, '/mcp/files');
  assert.is(await codeOf({ claims: { ...claims, aud: base } }), 'INVALID_CREDENTIALS');
});

test('with an unknown key cause one request in 5 s', async () => {
  const { of, token, codeOf, clock, keyRequests } = await setup();
  await of(await token());
  const requestsFor = async (kids: readonly string[]) => {
    for (const kid of kids) assert.is(await codeOf({ header: { kid } }), 'INVALID_CREDENTIALS');
    return keyRequests();
  };
  assert.is(await requestsFor(['no-1', 'no-2']), 1);
  clock.pass(5_000);
  assert.is(await requestsFor(['no-3', 'no-4', 'no-5']), 2);
  clock.pass(4_999);
  assert.is(await requestsFor(['no-6']), 2);
  clock.pass(1);
  assert.is(await requestsFor(['no-7']), 3);
});

test('of a renewed key are accepted together, whatever key another token has named before', async () => {
  const { of, token, codeOf, server, clock, keyRequests } = await setup();
  await of(await token());
  clock.pass(5_000);
  assert.is(await codeOf({ header: { kid: 'no-1' } }), 'INVALID_CREDENTIALS');
  server.rotate('their-2');
  const early = await token();
  assert.is((await errorOf(of(early))).code, 'INVALID_CREDENTIALS');
  clock.pass(5_000);
  const tokens = await Promise.all(['bob', 'eve', 'joe'].map((sub) => token({ claims: { sub } })));
  await Promise.all([early, ...tokens].map(of));
  assert.is(keyRequests(), 3);
  assert.is(await codeOf({ header: { kid: 'their-1' } }), 'INVALID_CREDENTIALS');
});

test('of a new key under the name of the one before are accepted', async () => {
  const { of, token, server, clock, keyRequests } = await setup();
  await of(await token());
  server.rotate('their-1');
  clock.pass(5_000);
  await of(await token());
  assert.is(keyRequests(), 2);
});

test('of a renewed key are neither accepted nor refused, all of them, while the keys cannot be read', async () => {
  const { of, token, server, clock, keyRequests } = await setup();
  await of(await token());
  clock.pass(5_000);
  server.rotate('their-2');
  server.answer = (_, response) => void response.writeHead(503).end();
  const tokens = await Promise.all(['bob', 'eve', 'joe'].map((sub) => token({ claims: { sub } })));
  const codes = async (ofThese: readonly string[]) =>
    Promise.all(ofThese.map(async (each) => (await errorOf(of(each))).code));
  const [last = '', ...others] = tokens;
  assert.equal([...(await codes(others)), ...(await codes([last]))], Array(3).fill('ISSUER_UNAVAILABLE'));
  server.answer = undefined;
  clock.pass(60_000);
  await Promise.all(tokens.map(of));
  assert.is(keyRequests(), 3);
});

test('are neither accepted nor refused while the keys cannot be read, and known ones go on for a while', async () => {
  const { of, token, codeOf, server, clock, warnings, keyRequests } = await setup();
  const known = await token({ claims: { exp: Math.floor(clock.wall() / 1000) + 7_200 } });
  await of(known);
  server.answer = (_, response) => void response.writeHead(503).end('secret of the issuer');
  clock.pass(10 * 60_000 + 1);
  assert.is(await codeOf(), 'ISSUER_UNAVAILABLE');
  assert.is(await codeOf(), 'ISSUER_UNAVAILABLE');
  await of(known);
  assert.is(keyRequests(), 2);
  assert.equal([warnings.length, warnings.join().includes('secret')], [1, false]);
  clock.pass(15 * 60_000);
  assert.is((await errorOf(of(known))).code, 'ISSUER_UNAVAILABLE');
  server.answer = undefined;
  clock.pass(60_001);
  await of(known);
  await of(await token());
});

test('are not accepted from keys that are too large, too slow, elsewhere, or none', async () => {
  const answers: Record<string, NonNullable<KeyServer['answer']>> = {
    'more than 65536 bytes': (_, response) => void response.end(Buffer.alloc(10 * 1024 * 1024, ' ')),
    'status 302': (_, response) => void response.writeHead(302, { Location: '/keys' }).end(),
    'not JSON': (_, response) => void response.end('<html>'),
    'no list of keys': (_, response) => void response.end('{"keys":[null]}'),
    'more than 50 keys': (_, response) =>
      void response.end(JSON.stringify({ keys: Array(51).fill({ kty: 'EC' }) })),
  };
  for (const [reason, answer] of Object.entries(answers)) {
    const { codeOf, server, warnings, keyRequests } = await setup();
    server.answer = answer;
    assert.is(await codeOf(), 'ISSUER_UNAVAILABLE', reason);
    assert.match(warnings.join(), reason);
    assert.is(keyRequests(), 1);
  }
  const { codeOf, server, warnings, alarms } = await setup({});
  server.answer = () => alarms.at(-1)?.();
  assert.is(await codeOf(), 'ISSUER_UNAVAILABLE');
  assert.match(warnings.join(), 'no answer within 2500 ms');
});

test('keep sessions open until 5 min after the last of them has expired', async () => {
  const { auth, of, token, clock, check } = await setup();
  const exp = Math.floor(clock.wall() / 1000);
  const { id } = await of(await token({ claims: { exp: exp + 600 } }));
  await of(await token({ claims: { exp: exp + 60 } }));
  const ended: string[] = [];
  auth.changed$.subscribe((each) => ended.push(each));
  auth.watchSessions(() => [id]);
  const endedAfter = async (seconds: number): Promise<readonly string[]> => {
    clock.pass(seconds * 1_000);
    check();
    await passTurns(1);
    return ended;
  };
  assert.equal(await endedAfter(600 + 60 + 299), []);
  assert.equal(await endedAfter(2), [id]);
});

test.run();
