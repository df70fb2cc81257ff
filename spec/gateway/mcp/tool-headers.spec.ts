// Tools of a real HTTP server that require arguments in headers, used by clients of the modern era through a gateway: which of
// them are listed, the log lines about the others, and tools whose headers change without a notice.

import * as assert from 'uvu/assert';
import { logEvents } from '../../../src/cli/foreground/event-log.ts';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import type { GatewayEvent } from '../../../src/domain/events/events.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { until } from '../../helpers/eventually.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { skippingClock } from '../../helpers/time/simulated-time.ts';
import { Backend, REGION, tool } from '../../transports/http/tool-headers-harness.ts';
import { type RawServer, startRawServer } from '../../transports/raw-server.ts';
import { modernRequest, postTo } from './post.ts';

const test = suite('tools with headers, through a gateway');
const { clock, skip } = skippingClock();
let gateway: Gateway;
/** One after the other; by default instances are at the first. */
let servers: (RawServer & { readonly backend: Backend })[];
/** The first server: its tools and its requests. */
let backend: Backend;
let events: GatewayEvent[];
/** Lines of the log: level, message and fields. */
let lines: (readonly [string, string, JsonObject])[];
/** The template in the path of clients; undefined: /mcp. */
let path: string | undefined;
test.before.each(async () => {
  servers = [];
  events = [];
  lines = [];
  path = 't';
  gateway = await createGateway({ clock });
  gateway.events$.subscribe((event) => events.push(event));
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push([level, message, { ...fields }]);
  const levels = { debug: write('debug'), info: write('info'), warn: write('warn') };
  logEvents(gateway.events$, { ...levels, isLevelEnabled: () => true });
  backend = await serve();
});
test.after.each(async () => {
  await gateway.close({ graceMs: 0 });
  for (const server of servers) await server.close();
});

const bad = (type: string) => tool('bad', { secret: { type, 'x-mcp-header': 'Secret' } });
const good = tool('one', { region: REGION });
const BAD = 'a header is declared for "secret", which is not a string, integer or boolean';
const WORSE = 'a header is declared at "items.secret", which is not a single argument';

test('a tool with an invalid header declaration is in no list, and in the log once', async () => {
  backend.pages = [[good, bad('object')]];
  await register('a');
  for (const client of ['ann', 'bob', 'cid']) assert.equal(await listed(client), ['one'], client);
  assert.ok(backend.lists >= 4, 'each client asked the server');
  const fields = { template: 't', instance_id: 'a', server_id: 'a', tool: 'bad', reason: BAD };
  assert.equal(warnings(), [
    ['tool is withheld from lists: clients could not use it', { ...fields, alias: 'tool.omitted' }],
  ]);
});

test('a withheld tool is logged again for another reason, and for another instance', async () => {
  backend.pages = [[good, bad('object')]];
  await register('a');
  const { inputSchema = {} } = bad('string');
  backend.pages = [[good, { name: 'bad', inputSchema: { items: inputSchema } }]];
  assert.equal(await listed('ann'), ['one']);
  backend.pages = [[good, bad('object')]];
  assert.equal(await listed('cid'), ['one']);
  await register('b');
  const reasons = warnings().map(([, { instance_id: id, reason }]) => `${id}: ${reason}`);
  assert.equal(reasons, [`a: ${BAD}`, `a: ${WORSE}`, `a: ${BAD}`, `b: ${BAD}`]);
});

test('arguments of a withheld tool are in no log line and no event', async () => {
  const secret = 'k9-argument-k9';
  backend.pages = [[good, bad('object')]];
  await register('a');
  for (const name of ['bad', 'one']) await call('ann', name, { secret, region: secret }, { region: secret });
  await listed('ann');
  const reported = JSON.stringify([lines, events]);
  assert.match(reported, BAD.replaceAll('"', '\\"'));
  assert.not.match(reported, secret);
});

const ZONED = tool('one', { region: { ...REGION, 'x-mcp-header': 'Zone' } });
const ARGS = { region: 'x' };
const outcome = ({ status, message }: Awaited<ReturnType<typeof send>>) => [
  status,
  Object(message.error).code,
];
const SERVED = [200, undefined];
const REFUSED = [400, -32020];

test('a client that knows a changed header is refused once, and a client with the old one from then on', async () => {
  await register('a');
  skip(1_000); // a list is read again after a second
  backend.pages = [[ZONED]];
  path = undefined;
  await listedAnew(backend, async () =>
    assert.equal(outcome(await call('ann', 't__one', ARGS, { zone: 'x' })), REFUSED),
  );
  assert.equal(outcome(await call('ann', 't__one', ARGS, { zone: 'x' })), SERVED);
  path = 't';
  assert.equal(outcome(await call('bob', 'one', ARGS, { zone: 'x' })), SERVED);
  const found = backend.calls.map((headers) => headers['mcp-param-zone']);
  assert.equal(found, ['x', 'x']);
  assert.equal(outcome(await call('bob', 'one', ARGS, { region: 'x' })), REFUSED);
});

test('an argument that a view sets is in the header, whatever the client sends there', async () => {
  backend.pages = [[tool('one', { region: REGION, zone: { type: 'string', 'x-mcp-header': 'Zone' } })]];
  await register('a');
  const from = [{ template: 't', defaults: { one: { region: 'eu' } } }];
  await gateway.views.put({ id: 'v', from });
  path = 'v';
  await listed('ann');
  for (const sent of [{ zone: 'x' }, { zone: 'x', region: 'us' }])
    assert.equal(outcome(await call('ann', 'one', { zone: 'x' }, sent)), SERVED);
  const seen = backend.calls.map((headers) => [headers['mcp-param-zone'], headers['mcp-param-region']]);
  assert.equal(seen, [
    ['x', 'eu'],
    ['x', 'eu'],
  ]);
});

test.run();

/** Starts one more server. */
async function serve(): Promise<Backend> {
  const backend = new Backend();
  servers.push({ ...(await startRawServer(backend.respond)), backend });
  return backend;
}

/** Warnings: message and fields. */
function warnings(): (readonly [string, JsonObject])[] {
  return lines.filter(([level]) => level === 'warn').map(([, message, fields]) => [message, fields]);
}

/** One more instance of template `t` with that server behind it; resolves when its tools are known. */
async function register(id: string, index = 0): Promise<void> {
  const { url = '', backend: listing = backend } = servers[index] ?? {};
  await listedAnew(listing, () => gateway.register('t', { id, endpoint: url }, { waitMs: 5_000 }));
}

/** The gateway lists tools in the background; the list is complete when it reports an unknown tool as not found. */
async function listedAnew(listing: Backend, cause: () => unknown): Promise<void> {
  const { lists } = listing;
  await cause();
  await until(() => listing.lists !== lists);
  await until(async () => (await codeOf(gateway.call('t', 'none of them'))) === 'TOOL_NOT_FOUND');
  for (const server of servers) server.backend.calls.length = 0;
}

/** Names of the tools that a client gets. A new client is not served from memory. */
async function listed(client: string): Promise<string[]> {
  const tools: JsonObject[] = Object((await send(client, 'tools/list', {})).message.result).tools;
  return tools.map(({ name }) => String(name));
}

/** Calls a tool with headers that begin with `mcp-param-`; `{ region }` is one. */
function call(client: string, name: string, args: JsonObject, headers: Record<string, string>) {
  const params = Object.entries(headers).map(([header, value]) => [`mcp-param-${header}`, value]);
  return send(client, 'tools/call', { name, arguments: args }, Object.fromEntries(params));
}

/** What a client gets: the status, and the result or the error. */
async function send(client: string, method: string, params: JsonObject, headers: object = {}) {
  const { message, headers: own } = modernRequest(method, params);
  const { status, answer } = await postTo(gateway, {
    ...{ template: path, message, headers: { ...own, ...headers } },
    principal: { ...ANONYMOUS, id: client },
  });
  return { status, message: answer };
}
