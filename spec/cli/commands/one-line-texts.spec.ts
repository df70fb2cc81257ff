// Texts of a gateway that commands show within a line: none begins a line of its own, which would look like one of the command.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { runCommand, serverFor } from './against-gateway.ts';

const test = suite('texts of a gateway on one line');
const serve = serverFor(test);

const METADATA = 'GET /.well-known/oauth-authorization-server';
const TEXT = 'healthy\nstagedoor: forged';
const ANSWERS: Readonly<Record<string, unknown>> = {
  'GET /gateway/log-level': { level: TEXT },
  'PATCH /gateway/log-level': { level: TEXT },
  'POST /gateway/instances/demo/i1/resume': { state: TEXT },
  'POST /auth/users': { username: TEXT },
  'POST /auth/api-keys': { key: TEXT },
  'POST /gateway/connections/confirm': { issuer: TEXT },
  [METADATA]: { detail: TEXT, error_code: TEXT },
  'POST /gateway/sync': {
    reached: [TEXT],
    warnings: [TEXT],
    settings: [TEXT],
    added: [{ instance_id: TEXT }],
  },
  'POST /gateway/templates/demo/doctor': {
    ok: false,
    instances: [
      { id: TEXT, era: TEXT, lists: { [TEXT]: 2 }, findings: [{ code: TEXT, message: TEXT, remedy: TEXT }] },
    ],
  },
};
const EVENT = { type: TEXT, at: TEXT, template: TEXT, instance_id: TEXT, [TEXT]: 1 };

test('no text of a gateway begins a line', async () => {
  const asked: string[] = [];
  const url = await serve(({ method, url: target = '' }, response) => {
    const route = `${method} ${target.replace(/\?.*/, '')}`;
    asked.push(route);
    if (route === 'GET /events')
      response
        .setHeader('Content-Type', 'text/event-stream')
        .end(`data: ${JSON.stringify(EVENT, null, 1).replaceAll('\n', '\ndata: ')}\n\n`);
    else
      response
        .writeHead(route === METADATA ? 404 : 200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify(ANSWERS[route] ?? { status: 'healthy' }));
  });
  const commands = [
    ...[
      'gateway log-level',
      'gateway log-level debug',
      'gateway sync',
      'gateway events',
      'gateway events --json',
    ],
    ...[
      'instance resume demo i1',
      'doctor demo',
      'user create bob --password long-enough-1',
      'api-key create ci',
    ],
    ...['connection confirm demo i1', 'gateway login --device'],
  ];
  for (const line of commands) {
    const { out, err } = await runCommand([...line.split(' '), '--url', url]);
    assert.ok(/forged/.test(out + err), `${line}: ${out}${err}`);
    assert.not.match(`${out}\n${err}`, /^stagedoor: forged/m, line);
    if (line.endsWith('--json')) assert.equal(JSON.parse(out), EVENT);
    if (line.startsWith('gateway events')) assert.is(out.split('\n').length, 1, out);
  }
  for (const route of [...Object.keys(ANSWERS), 'GET /events']) assert.ok(asked.includes(route), route);
});

test.run();
