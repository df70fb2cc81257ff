// The approvals of a pinned template, and of a pinned view, outlive the gateway, and hold at every node of its database.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { GatewayError, hasCode } from '../../../src/domain/errors/errors.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import type { ViewDefinition } from '../../../src/domain/views/view.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import { parseRegistryDocument } from '../../../src/registry/files/registry-file.ts';
import { becomes } from '../../helpers/eventually.ts';
import { livesFor } from '../../helpers/stores/lives.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';

const test = suite('pinned templates of a database', { timeoutMs: 30_000 });
const lives = livesFor(test);

async function startPinned(): Promise<Gateway> {
  const gateway = await lives.start();
  await gateway.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  await gateway.changeTemplate('t', { approve: 'pinned' });
  return gateway;
}

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (thrown: unknown) => (hasCode(thrown, 'TOOL_NOT_FOUND') ? 'TOOL_NOT_FOUND' : String(thrown)),
  );

const echo = (gateway: Gateway) => outcome(gateway.call('t', 'echo', { text: 'x' }));

/** Through the view. */
const viewEcho = (gateway: Gateway) => {
  const request = { method: 'tools/call', params: { name: 'echo', arguments: { text: 'x' } } };
  return outcome(firstValueFrom(gateway.views.exchange('v', request)));
};

/** As if the server had another definition of `echo` than the approved one. */
const approveAnother = async (scope = 't', tool = 'echo') => {
  const { approvals } = lives.store;
  const definitions = await approvals.definitionsOf(scope);
  const others = (await approvals.list())
    .filter((approval) => approval.scope === scope && approval.tool !== tool)
    .map((approval) => ({ ...approval, definition: definitions.get(approval.tool) ?? {} }));
  await approvals.deleteOf(scope);
  const another = { scope, tool, digests: ['0'.repeat(64)], definition: { name: 'echo' } };
  await approvals.save([...others, another]);
};

test('after a restart the approved tools are used, and others wait', async () => {
  const first = await startPinned();
  await first.close({ graceMs: 0 });
  const second = await lives.start();
  await second.register('t', { id: 'b', endpoint: lives.server.url }, { waitMs: 20_000 });
  assert.is(await echo(second), 'ok');
  await second.close({ graceMs: 0 });
  await approveAnother();
  const third = await lives.start();
  await third.register('t', { id: 'b', endpoint: lives.server.url }, { waitMs: 20_000 });
  assert.is(await echo(third), 'TOOL_NOT_FOUND');
  assert.equal(third.template('t').withheld, [
    { list: 'tools', name: 'echo', reason: 'its definition has changed since it was approved' },
  ]);
  assert.equal(await third.internals.approvals.approve('t'), ['echo']);
  assert.is(await echo(third), 'ok');
});

test('a list with a tool that waits is read once for each request', async () => {
  await (await startPinned()).close({ graceMs: 0 });
  await approveAnother();
  const gateway = await lives.start();
  await gateway.register('t', { id: 'b', endpoint: lives.server.url }, { waitMs: 20_000 });
  const listings = () =>
    lives.server.requests.filter(({ message }) => Object(message).method === 'tools/list').length;
  const list = () => firstValueFrom(gateway.exchange('t', { method: 'tools/list' }));
  await list();
  const before = listings();
  await list();
  await list();
  assert.is(listings(), before + 2);
});

test('a template that is released while an approval is being stored keeps none', async () => {
  await (await startPinned()).close({ graceMs: 0 });
  await approveAnother();
  const gateway = await lives.start();
  await gateway.register('t', { id: 'b', endpoint: lives.server.url }, { waitMs: 20_000 });
  assert.is(await echo(gateway), 'TOOL_NOT_FOUND');
  const { save } = lives.store.approvals;
  const [saving, stored] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  lives.store.approvals.save = async (rows) => {
    saving.resolve();
    await stored.promise;
    return save(rows);
  };
  const approved = gateway.internals.approvals.approve('t');
  await saving.promise;
  const released = gateway.changeTemplate('t', { approve: 'none' });
  await passTurns(20);
  stored.resolve();
  await Promise.all([approved, released]);
  assert.equal(await lives.store.approvals.list(), []);
});

test('another node follows what was pinned, approved and released here', async () => {
  const other = await lives.start();
  const here = await startPinned();
  await approveAnother();
  const healthy = firstValueFrom(other.on('instance.healthy'));
  // Each change begins with those of other nodes.
  const catchUp = (gateway: Gateway, timeout: number) => gateway.changeTemplate('t', { timeout });
  await catchUp(other, 50);
  await healthy;
  assert.is(await echo(other), 'TOOL_NOT_FOUND');
  await other.internals.approvals.approve('t');
  await catchUp(here, 51);
  assert.is(await echo(here), 'ok');
  await here.changeTemplate('t', { approve: 'none' });
  assert.equal(await lives.store.approvals.list(), []);
  await catchUp(other, 52);
  assert.is(await echo(other), 'ok');
});

test('a template that is deleted leaves no approvals to the next one of its name', async () => {
  const gateway = await startPinned();
  await gateway.deregister('t', 'a');
  await gateway.deleteTemplate('t');
  assert.equal(await lives.store.approvals.list(), []);
  assert.is(gateway.internals.approvals.isPinned('t'), false);
  await gateway.register('t', { id: 'b', endpoint: lives.server.url }, { waitMs: 20_000 });
  await gateway.changeTemplate('t', { approve: 'pinned' });
  assert.is(await echo(gateway), 'ok');
});

test('a template that was pinned while the database failed is not left without tools', async () => {
  const { deleteOf } = lives.store.approvals;
  let isAway = true;
  lives.store.approvals.deleteOf = async (scope) => {
    if (isAway) throw databaseUnavailable(new Error('away'), 'no');
    return deleteOf(scope);
  };
  const gateway = await lives.start();
  await gateway.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  const pinned = gateway.changeTemplate('t', { approve: 'pinned' }).catch((thrown: unknown) => thrown);
  const error = await pinned;
  assert.ok(error instanceof GatewayError, String(error));
  assert.equal([error.code, error.facts.delivered], ['DATABASE_UNAVAILABLE', 'unknown']);
  isAway = false;
  await becomes(() => echo(gateway), 'ok');
});

test('nor does a definition that pinned it', async () => {
  const gateway = await lives.start();
  const { storedDefinitions } = gateway.internals;
  await gateway.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  const about = { name: 'T', description: 'T', version: '1.0.0', transport: 'http' };
  const pinning = { ...about, endpoint: lives.server.url, load_balancer: { approve: 'pinned' } };
  await storedDefinitions.put('t', pinning);
  assert.is(await echo(gateway), 'ok');
  assert.ok((await lives.store.approvals.list()).length > 0);
  await storedDefinitions.delete('t');
  assert.equal(await lives.store.approvals.list(), []);
  await approveAnother(); // as an earlier release left it
  await storedDefinitions.put('t', pinning);
  assert.is(await echo(gateway), 'ok');
});

const VIEW: ViewDefinition = { id: 'v', from: [{ template: 't', tools: ['echo'] }], approve: 'pinned' };

test('the approvals of a view hold after a restart', async () => {
  const first = await lives.start();
  await first.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  await first.views.put(VIEW);
  assert.is(await viewEcho(first), 'ok');
  await first.close({ graceMs: 0 });
  const second = await lives.start();
  await second.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  assert.is(await viewEcho(second), 'ok');
  await second.close({ graceMs: 0 });
  await approveAnother('v', 't/echo');
  const third = await lives.start();
  await third.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  assert.is(await viewEcho(third), 'TOOL_NOT_FOUND');
  assert.is(await echo(third), 'ok');
  assert.equal(
    (await third.views.tools('v')).map(({ name, state }) => [name, state]),
    [['echo', 'changed']],
  );
  assert.equal(await third.views.approve('v'), ['echo']);
  assert.is(await viewEcho(third), 'ok');
  await third.views.delete('v');
  assert.equal(await lives.store.approvals.list(), []);
});

test('a view that was stored while its approvals could not be was perhaps changed', async () => {
  const { save } = lives.store.approvals;
  lives.store.approvals.save = () => Promise.reject(databaseUnavailable(new Error('away'), 'no'));
  const gateway = await lives.start();
  await gateway.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  const error = await gateway.views.put(VIEW).catch((thrown: unknown) => thrown);
  lives.store.approvals.save = save;
  assert.is(gateway.views.find('v').definition.id, 'v');
  assert.ok(error instanceof GatewayError, String(error));
  assert.equal([error.code, error.facts.delivered], ['DATABASE_UNAVAILABLE', 'unknown']);
  await becomes(() => viewEcho(gateway), 'ok');
});

test('another node follows what was pinned, approved and released of a view', async () => {
  const [other, here] = [await lives.start(), await lives.start()];
  await here.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  await here.views.put(VIEW);
  await approveAnother('v', 't/echo');
  const healthy = firstValueFrom(other.on('instance.healthy'));
  const catchUp = (gateway: Gateway, timeout: number) => gateway.changeTemplate('t', { timeout });
  await catchUp(other, 50);
  await healthy;
  assert.is(await viewEcho(other), 'TOOL_NOT_FOUND');
  assert.is(await echo(other), 'ok');
  await other.views.approve('v');
  await catchUp(here, 51);
  assert.is(await viewEcho(here), 'ok');
  await here.views.put({ ...VIEW, approve: 'none' });
  assert.equal(await lives.store.approvals.list(), []);
  await catchUp(other, 52);
  assert.is(await viewEcho(other), 'ok');
});

test('of a pinned view of a file, what is listed first is approved', async () => {
  const gateway = await lives.start();
  await gateway.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  const approved = firstValueFrom(gateway.on('tool.approved'));
  const { id, ...written } = VIEW;
  await gateway.importFile(
    await parseRegistryDocument(JSON.stringify({ views: { [id]: written } }), 'r.json'),
  );
  const { view, template, tool } = await approved;
  assert.equal([view, template, tool], ['v', 't', 'echo']);
  assert.is(await viewEcho(gateway), 'ok');
});

test.run();
