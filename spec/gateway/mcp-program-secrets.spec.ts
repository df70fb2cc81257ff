// What callers read when a program repeats its variables in an error, at each door: no secret, but paths, modes and levels.

import * as assert from 'uvu/assert';
import { type AppFixture, startApp } from '../helpers/http-app.ts';
import { suite } from '../helpers/suite.ts';
import { modernRequest, openSession, postTo } from './mcp-post.ts';

const test = suite('secrets of programs', { timeoutMs: 30_000 });

/** Refuses each call with all of its own variables. */
const PROGRAM = `
  const say = (id, answer) => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('OWN_')));
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    if (method === 'initialize')
      return say(id, { result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
    if (method === 'ping') return say(id, { result: {} });
    if (method === 'tools/list') return say(id, { result: { tools: [{ name: 'fail', inputSchema: { type: 'object' } }] } });
    if (method !== 'tools/call') return say(id, { error: { code: -32601, message: 'no' } });
    say(id, { error: { code: -32050, message: 'failed with ' + own.OWN_API_KEY + ' at ' + own.OWN_LOG_LEVEL, data: own } });
  });`;

const HIDDEN = {
  OWN_API_KEY: 'sk-4f9a"b',
  OWN_GITHUB_TOKEN: 'ghp_0123456789',
  OWN_DB_PASSWORD: 'correct horse',
  OWN_PIN: '4711',
};
const SHOWN = {
  OWN_LOG_LEVEL: 'debug',
  OWN_KEY_FILE: '/home/me/key.json',
  OWN_ROOT: '/srv/data',
  OWN_MAX_TOKENS: '4096',
  OWN_AUTHOR: 'Ada',
  OWN_AUTH_ENABLED: 'true',
};
const URL_WITH_PASSWORD = { OWN_DATABASE: 'postgres://me:pa%24sword@db.example/main' };

let app: AppFixture;
test.before.each(async () => {
  app = await startApp();
  const env = { ...HIDDEN, ...SHOWN, ...URL_WITH_PASSWORD };
  const program = { command: process.execPath, args: ['-e', PROGRAM], env_vars: env };
  await app.gateway.register('t', { id: 'a', ...program }, { waitMs: 20_000 });
});
test.after.each(async () => {
  await app.gateway.close({ graceMs: 0 });
  await app.close();
});

test('an error of a program shows no secrets that it got, and everything else, at each door', async () => {
  const { gateway } = app;
  const call = (name: string) => ({ method: 'tools/call', params: { name, arguments: {} } });
  const modern = (name: string) => modernRequest('tools/call', call(name).params);
  const posts = [
    { template: 't', message: call('fail'), headers: await openSession(gateway, 't') },
    { template: undefined, message: call('t__fail'), headers: await openSession(gateway, undefined) },
    { template: 't', ...modern('fail') },
    { template: undefined, ...modern('t__fail') },
  ];
  const errors: unknown[] = [];
  for (const post of posts) errors.push((await postTo(gateway, post)).answer.error);
  const rest = await app.ask('POST', '/mcp/t/tools/call', { body: call('fail').params });
  const flat = { tool_name: 'fail', server_id: 'a', arguments: {} };
  const second = await app.ask('POST', '/tools/call', { body: flat });
  errors.push(rest.body.backend_error, second.body.backend_error);
  const hidden = Object.fromEntries(Object.keys(HIDDEN).map((name) => [name, '***']));
  for (const error of errors) {
    const { message, data } = Object(error);
    assert.is(message, 'failed with *** at debug');
    const own = Object.fromEntries(Object.entries(data).filter(([name]) => name.startsWith('OWN_')));
    assert.equal(own, { ...hidden, ...SHOWN, OWN_DATABASE: 'postgres://me:***@db.example/main' });
  }
});

test.run();
