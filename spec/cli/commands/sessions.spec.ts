import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, openSession, startGateway } from './against-gateway.ts';

const test = suite('gateway sessions and end-session');
let gateway: GatewayUnderTest;
test.before.each(async () => {
  gateway = await startGateway();
  await gateway.server.gateway.register(
    'demo',
    { id: 'one', handler: () => ({ tools: [] }) },
    { waitMs: 5_000 },
  );
});
test.after.each(() => gateway.close());

test('say that there is none', async () => {
  const { code, out } = await gateway.run('gateway', 'sessions');
  assert.equal([code, out], [0, 'No session is open.']);
});

test('show who has a session and where it is bound', async () => {
  await openSession(gateway.url, 'demo');
  const { out } = await gateway.run('gateway', 'sessions');
  const [headings, row] = out.split('\n').map((line) => line.split(/ {2,}/));
  assert.equal(headings, ['SESSION', 'OF', 'CLIENT', 'BOUND TO', 'OPEN FOR', 'UNUSED FOR']);
  assert.match(String(row?.[0]), /^[0-9a-f]{12}$/);
  assert.equal(row?.slice(1, 4), ['anonymous', 'a 1', 'demo/one']);
  const { sessions } = JSON.parse((await gateway.run('gateway', 'sessions', '--json')).out);
  assert.equal([sessions.length, sessions[0].id], [1, row?.[0]]);
});

test('end a session', async () => {
  await openSession(gateway.url, 'demo');
  const { sessions } = JSON.parse((await gateway.run('gateway', 'sessions', '--json')).out);
  const { id } = sessions[0];
  const first = await gateway.run('gateway', 'end-session', id);
  assert.equal([first.code, first.out], [0, `the session ${id} is ended`]);
  const second = await gateway.run('gateway', 'end-session', id);
  assert.is(second.code, 1);
  assert.match(second.err, `There is no session "${id}"`);
  assert.is((await gateway.run('gateway', 'sessions')).out, 'No session is open.');
});

test.run();
