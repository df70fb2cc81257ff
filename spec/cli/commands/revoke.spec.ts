import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from './against-gateway.ts';

const test = suite('gateway revoke');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway({ withAccounts: true });
});
test.after(() => gateway.close());

test('ends a key by its id, its name, or the key itself', async () => {
  const [one, two, three] = [await mint('one'), await mint('two'), await mint('three')];
  const named = await gateway.run('gateway', 'revoke', 'one');
  assert.equal([named.code, named.out], [0, `the key "one" (${one.slice(3, 19)}) is revoked`]);
  const byId = await gateway.run('gateway', 'revoke', two.slice(3, 19), '--json');
  assert.equal(JSON.parse(byId.out), { id: two.slice(3, 19), name: 'two', revoked: true });
  assert.is((await gateway.run('gateway', 'revoke', three)).code, 0);
  for (const key of [one, two, three]) assert.is(await codeOf(key), 'INVALID_CREDENTIALS');
});

test('does not guess between keys of one name, and takes an id before a name', async () => {
  const [one, two] = [await mint('twin'), await mint('twin')];
  const { code, err } = await gateway.run('gateway', 'revoke', 'twin');
  assert.is(code, 1);
  const ids = `${one.slice(3, 19)}, ${two.slice(3, 19)}`;
  assert.is(err.split('\n').at(-1), `stagedoor: 2 API keys are called "twin"; name one by its id: ${ids}`);
  const misleading = await mint(one.slice(3, 19));
  await gateway.run('gateway', 'revoke', one.slice(3, 19));
  assert.equal(
    [await codeOf(one), await codeOf(two), await codeOf(misleading)],
    ['INVALID_CREDENTIALS', '', ''],
  );
});

test('fails for a key that nobody knows', async () => {
  const { code, err } = await gateway.run('gateway', 'revoke', 'nothing');
  assert.equal([code, err.split('\n').at(-1)], [1, 'stagedoor: there is no API key "nothing"']);
});

test.run();

async function mint(name: string): Promise<string> {
  return (await gateway.server.auth.accounts.createApiKey({ name, permissions: ['tools:call'] })).key;
}

/** Why the key is refused; empty when it is not. */
async function codeOf(apiKey: string): Promise<string> {
  try {
    await gateway.server.auth.authenticate({ apiKey });
    return '';
  } catch (error) {
    return String(Object(error).code);
  }
}
