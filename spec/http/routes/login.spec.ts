import * as assert from 'uvu/assert';
import { PASSWORD, startWithAccounts } from '../../helpers/http-accounts.ts';
import { appFor, startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of the login and the own account');
const app = appFor(test, () => startWithAccounts());

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const form = async (body: string, headers: Record<string, string> = FORM) =>
  app.ask('POST', '/auth/login', { body, headers });
const json = async (body: unknown) => app.ask('POST', '/auth/login', { body });
const written = (fields: Record<string, string>) => new URLSearchParams(fields).toString();
const ADA = { username: 'ada', password: PASSWORD };

test('gives a token for a form', async () => {
  const { status, body, headers } = await form(written(ADA));
  assert.is(status, 200);
  assert.equal(Object.keys(body).sort(), ['access_token', 'expires_in', 'token_type']);
  assert.equal([body.token_type, body.expires_in], ['bearer', 3_600]);
  assert.is(headers.get('cache-control'), 'no-store');
  const me = await app.as({ authorization: `Bearer ${body.access_token}` }, 'GET', '/auth/me');
  assert.equal([me.status, me.body.name], [200, 'ada']);
});

test('gives a token for JSON, and for a form with a charset', async () => {
  assert.is((await json(ADA)).status, 200);
  const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' };
  assert.is((await form(written(ADA), headers)).status, 200);
});

test('ignores the other fields of OAuth clients', async () => {
  const more = { grant_type: 'password', scope: 'admin', client_id: 'x', client_secret: '' };
  assert.is((await form(written({ ...ADA, ...more }))).status, 200);
  assert.is((await json({ ...ADA, ...more, nested: { a: 1 } })).status, 200);
});

test('does not tell a wrong password from an unknown user', async () => {
  const answers = await Promise.all([
    form(written({ ...ADA, password: 'wrong horse' })),
    form(written({ ...ADA, username: 'nobody-at-all' })),
  ]);
  for (const { status, body, headers } of answers) {
    assert.is(status, 401);
    assert.is(headers.get('www-authenticate'), 'Bearer');
    assert.equal({ ...body, request_id: '' }, { ...answers[0]?.body, request_id: '' });
    assert.is(body.error_code, 'INVALID_CREDENTIALS');
    assert.not.match(JSON.stringify({ ...body, request_id: '' }), /horse|ada|nobody-at-all/);
  }
});

for (const type of [
  ...['text/plain', 'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded; charset=latin1'],
  ...['application/x-www-form-urlencodedx', ''],
]) {
  test(`refuses the media type "${type}"`, async () => {
    const { status, body } = await form(written(ADA), { 'content-type': type });
    assert.equal([status, body.error_code], [415, 'UNSUPPORTED_MEDIA_TYPE']);
    assert.match(String(body.detail), /a form or application\/json/);
  });
}

test('reads no more of a stranger than a login can be', async () => {
  const { status, body } = await form(`username=ada&password=${'x'.repeat(70_000)}`);
  assert.equal([status, body.error_code], [413, 'PAYLOAD_TOO_LARGE']);
});

test('slows down those who guess', async () => {
  const answers: number[] = [];
  let retryAfter: string | null = null;
  for (let attempt = 0; attempt < 12; attempt += 1) {
    const { status, body, headers } = await json({ username: 'guessed', password: 'wrong horse' });
    answers.push(status);
    if (status === 429) {
      assert.is(body.error_code, 'TOO_MANY_ATTEMPTS');
      retryAfter = headers.get('retry-after');
    }
  }
  assert.equal(answers, [...Array<number>(10).fill(401), 429, 429]);
  assert.ok(Number(retryAfter) >= 1);
});

test('needs no credentials and is not disturbed by bad ones', async () => {
  const headers = { ...FORM, authorization: 'Bearer nonsense' };
  assert.is((await form(written(ADA), headers)).status, 200);
});

test('tells a user and an admin what they may do', async () => {
  const ada = (await app.as(app.user, 'GET', '/auth/me')).body;
  assert.equal(ada, {
    ...{ id: `user:${ada.user_id}`, kind: 'user', name: 'ada', user_id: ada.user_id },
    ...{ scopes: ['gateway:read', 'tools:call'], templates: null, hourly_limit: 1_000 },
    ...{ role: 'user', auth_enabled: true },
  });
  const root = (await app.as(app.admin, 'GET', '/auth/me')).body;
  assert.equal([root.name, root.role, root.hourly_limit], ['admin', 'admin', null]);
  assert.equal(root.scopes, ['gateway:read', 'gateway:write', 'tools:call', 'admin']);
});

test('tells a key whose it is and where it may be used', async () => {
  const key = await app.key(['gateway:read'], ['zeta', 'alpha']);
  const { id, ...rest } = (await app.as(key, 'GET', '/auth/me')).body;
  assert.match(String(id), /^key:[0-9a-f]{16}$/);
  assert.equal(rest, {
    ...{ kind: 'api-key', name: 'gateway:read', user_id: null, scopes: ['gateway:read'] },
    ...{ templates: ['alpha', 'zeta'], hourly_limit: 5_000, role: null, auth_enabled: true },
  });
});

test('tells everybody that they are nobody in particular while authentication is off', async () => {
  const app = await startApp();
  const { status, body } = await app.ask('GET', '/auth/me');
  assert.equal([status, body.id, body.kind, body.user_id], [200, 'anonymous', 'anonymous', null]);
  assert.equal([body.role, body.auth_enabled], ['admin', false]);
  assert.equal(body.scopes, ['gateway:read', 'gateway:write', 'tools:call', 'admin']);
  await app.close();
});

test.run();
