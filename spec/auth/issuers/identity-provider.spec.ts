// The gateway as a client of an identity provider, a second authorization server of the same library.

import dns from 'node:dns';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { IdentityProvider } from '../../../src/auth/issuers/identity-provider.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { SystemLookups } from '../../../src/net/system-lookups.ts';
import { until } from '../../helpers/eventually.ts';
import {
  answerOf,
  type CompanyProvider,
  startCompanyProvider,
} from '../../helpers/identity/company-provider.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from '../../helpers/time/simulated-time.ts';

const test = suite('an identity provider');
const CALLBACK = 'http://127.0.0.1:43118/oauth/callback/example';

/** The gateway as a client of `there`, and the warnings about it. */
function clientOf(there: Pick<CompanyProvider, 'issuer' | 'setting'>) {
  const { client_id: clientId, client_secret: clientSecret } = Object(there.setting({}));
  const warnings: string[] = [];
  const provider = new IdentityProvider(
    {
      ...{ id: 'example', issuer: there.issuer, label: 'Example', clientId, clientSecret, claims: {} },
      ...{ roles: [], require: [], everyone: { role: 'user' }, sessionMs: 1 },
    },
    {
      ...{ clock: systemClock, keepsSecrets: true, warn: (line) => void warnings.push(line) },
      lookup: new SystemLookups({ clock: systemClock }).lookup,
    },
  );
  return { provider, warnings };
}

for (const refusal of ['invalid_client', 'unauthorized_client'])
  test(`that refuses the secret in the header with ${refusal} gets it in the body, from then on at once`, async () => {
    const there = await startCompanyProvider({ auth: 'client_secret_post', refusal });
    try {
      there.users.set('s-1', { preferred_username: 'eve' });
      const { provider, warnings } = clientOf(there);
      const { proof, location } = await provider.begin(CALLBACK);
      const answer = await answerOf(there, new URL(location), 's-1');
      const { subject, refreshToken = '' } = await provider.finish(answer, proof);
      assert.equal([subject, there.tokenRequests()], ['s-1', 2]);
      assert.is((await provider.refresh(refreshToken, 's-1')).subject, 's-1');
      assert.is(there.tokenRequests(), 3);
      assert.equal(warnings, []);
    } finally {
      await there.close();
    }
  });

test('that refuses the secret in the header of two first sign-ins at once gets it in the body of both', async () => {
  const there = await startCompanyProvider({ auth: 'client_secret_post' });
  try {
    const { provider, warnings } = clientOf(there);
    const users = ['s-1', 's-2'];
    const begun = await Promise.all(
      users.map(async (user) => {
        there.users.set(user, { preferred_username: user });
        const { proof, location } = await provider.begin(CALLBACK);
        return { proof, answer: await answerOf(there, new URL(location), user) };
      }),
    );
    const answers = await Promise.all(begun.map(({ answer, proof }) => provider.finish(answer, proof)));
    assert.equal(
      answers.map(({ subject }) => subject),
      users,
    );
    assert.is(there.tokenRequests(), 4);
    await provider.refresh(answers[0]?.refreshToken ?? '', 's-1');
    assert.is(there.tokenRequests(), 5, 'the way that was found is kept');
    assert.equal(warnings, []);
  } finally {
    await there.close();
  }
});

for (const [name, answer, reason] of [
  [
    'interim answers without end',
    'HTTP/1.1 102 x\r\n\r\n'.repeat(1_000),
    'gave more than 16 interim answers',
  ],
  [
    'a body without end',
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n${' '.repeat(300_000)}`,
    'answered with more than 262144 bytes',
  ],
  [
    'another protocol',
    'HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
    'closed the connection',
  ],
  ['a status that is none', 'HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n', 'unexpected HTTP response status'],
] as const)
  test(`that sends ${name} is left`, async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      socket.once('data', () => socket.write(answer));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const setting = () => ({ client_id: 'c', client_secret: 's' });
      const { provider, warnings } = clientOf({ issuer, setting });
      assert.match(await provider.begin(CALLBACK).then(String, String), 'cannot be reached at this moment');
      assert.equal(warnings.length, 1);
      assert.match(warnings[0] ?? '', reason);
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  });

test('whose DNS servers are silent holds one thread for look-ups, however many users are asked about', async () => {
  const server = createHttpServer((request, response) => {
    const issuer = `http://${request.headers.host}`;
    const found = { issuer, authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}/t` };
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(found));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const { provider } = clientOf({ issuer, setting: () => ({ client_id: 'gateway', client_secret: 'x' }) });
  const held: (() => void)[] = [];
  const silent = () => new Promise<never>((_, reject) => held.push(() => reject(new Error('no answer'))));
  await provider.begin(CALLBACK);
  const mocked = [
    mock.method(dns.promises, 'lookup', silent),
    mock.method(dns, 'lookup', (_name: string, _options: object, done: (error: Error) => void) => {
      silent().catch(done);
    }),
  ];
  try {
    const asked = Array.from({ length: 20 }, () => provider.refresh('token', 's-1').catch(() => 'failed'));
    await until(() => held.length > 0, 'a look-up');
    await settled();
    assert.is(held.length, 1);
    for (const end of held) end();
    await Promise.all(asked);
  } finally {
    for (const each of mocked) each.mock.restore();
    server.close().closeAllConnections();
  }
});

test.run();
