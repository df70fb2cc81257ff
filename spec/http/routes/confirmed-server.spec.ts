// A server that names another authorization server than before: its instance stops until an admin confirms the new one.

import { filter, firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { parseRegistryDocument } from '../../../src/registry/files/registry-file.ts';
import { startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import { startDocuments } from '../../fixtures/oauth-documents.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('another authorization server behind a connection');
const connections = { address: { issuer: 'http://127.0.0.1:8080', isPublic: false } };
const app = appFor(
  test,
  () => startWithAccounts({ gateway: { store: new MemoryStore(), backendAccounts: connections } }),
  'each',
);

for (const who of ['shared', 'user'])
  test(`an instance of a registry file with "${who}" stops, and goes on when it is confirmed`, async () => {
    const [first, second] = [await startOAuthBackend(), await startOAuthBackend()];
    let { issuer } = first;
    const documents = await startDocuments(() => issuer);
    try {
      const instances = [{ id: 'mail-1', endpoint: `${documents.url}/mcp`, auth: { mode: 'oauth', who } }];
      const text = JSON.stringify({ templates: { mail: { instances } } });
      await app.gateway.importFile(await parseRegistryDocument(text, 'registry.json'));
      await untilHealthy(app.gateway);
      issuer = second.issuer;
      const changed = `authorization server changed to ${second.issuer}`;
      const stopped = app.gateway
        .on('instance.unhealthy')
        .pipe(filter(({ reason }) => reason.includes(changed)));
      const stop = firstValueFrom(stopped);
      app.gateway.restart('mail', 'mail-1');
      await stop;
      const confirm = (body: object) =>
        app.as(app.admin, 'POST', '/gateway/connections/confirm', {
          body: { template: 'mail', instance_id: 'mail-1', ...body },
        });
      const wrong = await confirm({ issuer: 'https://elsewhere.example' });
      assert.is(wrong.status, 422);
      assert.match(JSON.stringify(wrong.body), second.issuer);
      const { status, body } = await confirm({ issuer: second.issuer });
      assert.equal([status, body], [200, { issuer: second.issuer, resource: `${documents.url}/mcp` }]);
      await untilHealthy(app.gateway);
    } finally {
      await Promise.all([first.close(), second.close(), documents.close()]);
    }
  });

test('a registration confirms it, but not one by a caller of another template', async () => {
  const [first, second] = [await startOAuthBackend(), await startOAuthBackend()];
  let { issuer } = first;
  const documents = await startDocuments(() => issuer);
  try {
    const auth = { mode: 'oauth', who: 'user' };
    const register = async (as: Credentials, template_name: string) => {
      const body = { template_name, id: 'mail-1', endpoint: `${documents.url}/mcp`, auth };
      assert.ok((await app.as(as, 'POST', '/gateway/register', { body })).status < 300);
      const target = app.gateway.internals.backendAccounts?.targetOf(template_name, 'mail-1');
      const vault = await app.gateway.internals.backendAccounts?.open();
      return target && (await vault?.discover(target))?.backend.server.issuer;
    };
    for (const template of ['mail', 'notes']) assert.is(await register(app.admin, template), first.issuer);
    issuer = second.issuer;
    assert.is(await register(await app.key(['gateway:write'], ['notes']), 'notes'), first.issuer);
    assert.is(await register(app.admin, 'mail'), second.issuer);
  } finally {
    await Promise.all([first.close(), second.close(), documents.close()]);
  }
});

test('a registration is answered as made when its authorization server cannot be stored', async () => {
  const store = new MemoryStore();
  const { find } = store.oauth;
  Object.assign(store.oauth, {
    find: async (...asked: Parameters<typeof find>) => {
      if (asked[0] === 'backend') throw databaseUnavailable(new Error('no answer'));
      return find(...asked);
    },
  });
  const backend = await startOAuthBackend();
  const documents = await startDocuments(() => backend.issuer);
  const own = await startApp({ gateway: { store, backendAccounts: connections } });
  try {
    const auth = { mode: 'oauth', who: 'user' };
    const body = { template_name: 'mail', endpoint: `${documents.url}/mcp`, auth };
    const answer = await own.ask('POST', '/gateway/register', { body });
    assert.is(answer.outcome, '201');
    assert.match(
      String(answer.body.warnings),
      'no account can be connected yet: the database does not answer',
    );
  } finally {
    await Promise.all([own.close(), backend.close(), documents.close()]);
  }
});

async function untilHealthy(gateway: Gateway): Promise<void> {
  const { healthy } = gateway.instance('mail', 'mail-1').snapshot;
  if (!healthy) await firstValueFrom(gateway.on('instance.healthy'));
}

test.run();
