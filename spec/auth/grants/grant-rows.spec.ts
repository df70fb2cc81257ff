import * as assert from 'uvu/assert';
import { grantOf, rowOfGrant } from '../../../src/auth/grants/grant-rows.ts';
import type { Grant } from '../../../src/domain/accounts/grant.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { clientKeyOf, oauthKey } from '../../../src/persistence/oauth-rows.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('rows of grants');

const grant: Grant = {
  id: '1b671a64-40d5-491e-99b0-da01ff1f3341',
  userId: 'u1',
  clientId: 'https://client.example/document',
  clientName: 'A client',
  resource: 'https://gateway.example/mcp',
  scopes: ['tools:call'],
  createdAt: '2026-11-26T00:00:00.000Z',
  lastUsedAt: undefined,
  expiresAt: '2027-05-25T00:00:00.000Z',
};

test('a grant is read as it was stored, by its id', async () => {
  const { oauth } = new MemoryStore();
  await oauth.save(rowOfGrant(grant));
  const [row] = await oauth.find('grant', [oauthKey('grant', grant.id)]);
  assert.ok(row);
  assert.equal(grantOf(row), grant);
  assert.is(await oauth.count({ clientKey: clientKeyOf(grant.clientId) }), 1);
  assert.is(grantOf({ ...row, kind: 'code' }), undefined);
});

test('an id of one kind is none of another, and cannot be read from its key', () => {
  assert.is.not(oauthKey('code', 'a'), oauthKey('refresh', 'a'));
  assert.match(oauthKey('code', 'a'), /^[0-9a-f]{64}$/);
});

test.run();
