import * as assert from 'uvu/assert';
import { leftThere } from '../../../src/cli/commands/instances.ts';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('commands about an instance');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after(() => gateway.close());

test('fail for one that nobody knows, and for a word too few', async () => {
  const unknown = await gateway.run('gateway', 'drain', 'demo', 'a/b?c');
  assert.is(unknown.code, 1);
  assert.match(unknown.err, /^stagedoor: [^\n]+_NOT_FOUND\)$/);
  const { code, err } = await gateway.run('gateway', 'resume', 'demo');
  assert.equal(
    [code, err],
    [2, 'stagedoor: missing required argument <id>; see npx stagedoor gateway resume --help'],
  );
});

test('say what is left there', () => {
  const left = (calls: number, sessions: number) => leftThere({ in_flight: calls, sessions });
  assert.equal(
    [left(0, 0), left(1, 0), left(0, 2), left(2, 1)],
    ['', '1 call remains', '2 sessions remain', '2 calls and 1 session remain'],
  );
  assert.is(leftThere({}), '', 'of a gateway of another version nothing is known');
});

test.run();
